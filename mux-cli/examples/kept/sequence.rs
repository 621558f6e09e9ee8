//! The commands: each host runs its own, one after the other, as fast as it answers.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use bytes::{Buf as _, BytesMut};
use clap::ArgMatches;
use mux_core::Key;
use mux_ssh::client::{ChannelId, Event, Exec};
use serde::Serialize;

use crate::links::Links;

/// Nothing that is measured here takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was done.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    hosts: usize,
    commands: usize,
    /// From the start to the last first command's end.
    opened_ms: f64,
    /// From the start to the last command's end.
    finished_ms: f64,
    packets_sent: u64,
    packets_received: u64,
}

/// A host with its connection.
struct Host {
    server: usize,
    channel: ChannelId,
    left: usize,
    line: BytesMut,
}

struct Sequence {
    links: Links,
    exec: Exec,
    hosts: HashMap<Key, Host>,
    started: Instant,
    /// The next server to connect to.
    next: usize,
    /// Hosts whose first command has not ended.
    opening: usize,
    fanout: usize,
    commands: usize,
    report: Report,
    out: Vec<u8>,
}

pub(crate) fn run(options: &ArgMatches) -> io::Result<Report> {
    let number = |name: &str| options.get_one::<usize>(name).copied().unwrap_or(0);
    let command = options.get_one::<String>("command").cloned().unwrap_or_default();
    let mut sequence = Sequence {
        started: Instant::now(),
        links: Links::new(options)?,
        exec: Exec {
            command: command.into(),
            ..Exec::default()
        },
        hosts: HashMap::new(),
        next: 0,
        opening: 0,
        fanout: number("fanout").max(1),
        commands: number("commands").max(1),
        report: Report::default(),
        out: Vec::new(),
    };
    sequence.run()?;
    Ok(sequence.report)
}

impl Sequence {
    fn run(&mut self) -> io::Result<()> {
        let deadline = self.started + PATIENCE;
        loop {
            self.open()?;
            if self.hosts.is_empty() {
                break;
            }
            let left = deadline.checked_duration_since(Instant::now());
            let now = self.links.turn(left.ok_or(io::ErrorKind::TimedOut)?)?;
            while let Some((key, event)) = self.links.poll()? {
                self.handle(now, key, event)?;
            }
            self.print()?;
        }
        // Goodbyes leave before the process does.
        self.links.turn(Duration::ZERO)?;
        while self.links.poll()?.is_some() {}
        self.report.hosts = self.next;
        Ok(())
    }

    /// Connects to further hosts, as many at once as was asked for.
    fn open(&mut self) -> io::Result<()> {
        while self.opening < self.fanout && self.next < self.links.servers.len() {
            let server = self.next;
            let (exec, started) = (self.exec.clone(), self.started);
            let mut channel = None;
            let key = self
                .links
                .connect(server, |client| channel = Some(client.exec(started, exec)))?;
            let host = Host {
                server,
                channel: channel.expect("every client is prepared"),
                left: self.commands,
                line: BytesMut::new(),
            };
            self.hosts.insert(key, host);
            self.next += 1;
            self.opening += 1;
        }
        Ok(())
    }

    fn handle(&mut self, now: Instant, key: Key, event: Event) -> io::Result<()> {
        let Some(host) = self.hosts.get_mut(&key) else {
            return Ok(());
        };
        match event {
            Event::Output {
                channel,
                stream,
                data,
            } => {
                host.line.extend_from_slice(&data);
                let name = self
                    .links
                    .servers
                    .get(host.server)
                    .map_or("", |server| &server.name);
                while let Some(end) = host.line.iter().position(|byte| *byte == b'\n') {
                    self.out.extend_from_slice(name.as_bytes());
                    self.out.extend_from_slice(b": ");
                    self.out.extend_from_slice(&host.line.split_to(end + 1));
                }
                if let Some(client) = self.links.client(key) {
                    client.consume(channel, stream, data.remaining());
                }
                Ok(())
            }
            Event::ChannelClosed { channel } if channel == host.channel => self.ended(now, key),
            Event::ChannelFailed { reason, .. } => Err(io::Error::other(format!("{reason:?}"))),
            Event::ExitStatus { status, .. } if status != 0 => {
                Err(io::Error::other(format!("the command ended with {status}")))
            }
            Event::ExitStatus { .. }
            | Event::ChannelClosed { .. }
            | Event::HostKey { .. }
            | Event::Sign { .. }
            | Event::Learned(_)
            | Event::Greeting(_)
            | Event::Stage(_)
            | Event::KeyRefused { .. }
            | Event::Prompt { .. }
            | Event::MethodRefused { .. }
            | Event::PartialSuccess { .. }
            | Event::PasswordExpired { .. }
            | Event::LoginUnanswered { .. }
            | Event::Banner(_)
            | Event::Authenticated { .. }
            | Event::Opened { .. }
            | Event::AgentOpened { .. }
            | Event::Eof { .. }
            | Event::ExitSignal { .. }
            | Event::StdinRoom { .. }
            | Event::EnvRefused { .. }
            | Event::HostKeys(_)
            | Event::HostKeysProven(_)
            | Event::Disconnected { .. } => Ok(()),
        }
    }

    /// A command has ended: on to the next, or goodbye.
    fn ended(&mut self, now: Instant, key: Key) -> io::Result<()> {
        let host = self.hosts.get_mut(&key).ok_or(io::ErrorKind::NotConnected)?;
        self.report.commands += 1;
        if host.left == self.commands {
            self.opening -= 1;
            self.report.opened_ms = milliseconds(now - self.started);
        }
        host.left -= 1;
        let client = self.links.client(key).ok_or(io::ErrorKind::NotConnected)?;
        if host.left > 0 {
            host.channel = client.exec(now, self.exec.clone());
            return Ok(());
        }
        let stats = client.stats();
        self.report.packets_sent += stats.packets_sent;
        self.report.packets_received += stats.packets_received;
        self.report.finished_ms = milliseconds(now - self.started);
        self.hosts.remove(&key);
        self.links.leave(key);
        Ok(())
    }

    fn print(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            io::stdout().write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
