//! Keeps connections open and measures what they cost: the time to the first byte of output at first contact, with
//! what that contact taught, and for further commands on connections that are kept; SSH packets; resident memory.
//!
//! It is a client without a hub: no retries, no pacing beyond a window, one user, one key. What it decides is only
//! the order of the measurements. Prints one line of JSON.

mod system;

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command, value_parser};
use mux_core::{Driver, Event, Key};
use mux_ssh::client::{self, Client, ClientConfig, Exec, Identity};
use mux_ssh::keys::PrivateKey;
use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Verdict};
use mux_ssh::transport::ServerMemory;
use serde::Serialize;

/// Handshakes under way at once: below what sshd drops by default (`MaxStartups 10:30:100`).
const WINDOW: usize = 10;
/// Nothing that is measured here takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was measured.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// Connect to first byte of output, nothing known about the server.
    first_ms: f64,
    /// Packets of that connection, its one command included.
    first_packets: Packets,
    /// Connect to first byte of output, with what the first contact taught.
    remembered_ms: f64,
    remembered_packets: Packets,
    /// Opening all connections, one command on each.
    open_ms: f64,
    /// Command to first byte of output, on connections that are kept.
    next_ms: Vec<f64>,
    /// Packets of one such command, the replacement of a spare channel included.
    next_packets: Packets,
    connections: usize,
    rss_kib_before: u64,
    rss_kib_held: u64,
    rss_bytes_per_connection: u64,
    /// What the kernel has for the buffers of all TCP sockets, both ends and other programs' included.
    kernel_kib_before: u64,
    kernel_kib_held: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Packets {
    sent: u64,
    received: u64,
}

fn main() -> ExitCode {
    env_logger::init();
    system::raise_file_limit();
    let report = measure(&command().get_matches());
    let written = match &report {
        Ok(report) => writeln!(io::stdout(), "{}", serde_json::json!(report)),
        Err(error) => writeln!(io::stderr(), "hold: {error}"),
    };
    if report.is_ok() && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn command() -> Command {
    let value = |name: &'static str, placeholder: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(placeholder).help(help)
    };
    let path = |name, help| {
        value(name, "FILE", help)
            .value_parser(value_parser!(PathBuf))
            .required(true)
    };
    let number = |name, help| value(name, "N", help).value_parser(value_parser!(usize));
    Command::new("hold")
        .about("Holds SSH connections and measures them. Prints one line of JSON.")
        .arg(
            value("to", "HOST:PORT,…", "servers, dealt in turn")
                .value_delimiter(',')
                .required(true),
        )
        .arg(value("user", "NAME", "log in as").default_value("root"))
        .arg(path("key", "private key without passphrase"))
        .arg(path("known-hosts", "host keys"))
        .arg(number("count", "connections to hold").default_value("1"))
        .arg(number("commands", "commands to run on them, one at a time").default_value("5"))
        .arg(value("command", "TEXT", "what to run; it has to print something").default_value("echo x"))
        .arg(number("idle", "seconds to wait before memory is looked at").default_value("0"))
}

fn measure(options: &ArgMatches) -> io::Result<Report> {
    let number = |name: &str| options.get_one::<usize>(name).copied().unwrap_or(0);
    let mut hold = Hold::new(options)?;
    let mut report = Report {
        connections: number("count"),
        rss_kib_before: system::resident()?,
        kernel_kib_before: system::kernel_memory()?,
        ..Report::default()
    };

    let first = hold.connect(0, None)?;
    (report.first_ms, report.first_packets) = hold.finish_and_close(first)?;
    let memory = hold.learned.get(&0).cloned();
    let remembered = hold.connect(0, memory)?;
    (report.remembered_ms, report.remembered_packets) = hold.finish_and_close(remembered)?;

    let opening = Instant::now();
    let held = hold.open(report.connections)?;
    report.open_ms = milliseconds(opening.elapsed());
    for &key in held
        .iter()
        .cycle()
        .take(if held.is_empty() { 0 } else { number("commands") })
    {
        let before = hold.packets(key);
        report.next_ms.push(hold.run(key)?);
        let after = hold.packets(key);
        report.next_packets = Packets {
            sent: after.sent - before.sent,
            received: after.received - before.received,
        };
    }
    hold.wait(Duration::from_secs(number("idle") as u64))?;
    report.rss_kib_held = system::resident()?;
    report.kernel_kib_held = system::kernel_memory()?;
    let grown = report.rss_kib_held.saturating_sub(report.rss_kib_before) * 1024;
    report.rss_bytes_per_connection = grown / (held.len() as u64).max(1);
    for key in held {
        hold.close(key);
    }
    Ok(report)
}

/// One connection, as far as its owner cares.
#[derive(Debug)]
struct Held {
    server: usize,
    /// When what is being measured began.
    started: Instant,
    first_output: Option<Instant>,
    done: bool,
}

struct Hold {
    driver: Driver<Client>,
    servers: Vec<(HostId, SocketAddr)>,
    user: String,
    command: String,
    key: PrivateKey,
    known: KnownHosts,
    memo: Memo,
    held: HashMap<Key, Held>,
    learned: HashMap<usize, ServerMemory>,
}

impl Hold {
    fn new(options: &ArgMatches) -> io::Result<Self> {
        let text = |name: &str| options.get_one::<String>(name).cloned().unwrap_or_default();
        let file = |name: &str| {
            let path = options.get_one::<PathBuf>(name).expect("clap requires it");
            std::fs::read(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
        };
        let servers = options.get_many::<String>("to").into_iter().flatten();
        let known = file("known-hosts")?;
        Ok(Self {
            driver: Driver::new()?,
            servers: servers.map(|server| resolve(server)).collect::<io::Result<_>>()?,
            user: text("user"),
            command: text("command"),
            key: PrivateKey::parse(&file("key")?, None).map_err(io::Error::other)?,
            known: KnownHosts::parse([("known_hosts", known.as_slice())]),
            memo: Memo::default(),
            held: HashMap::new(),
            learned: HashMap::new(),
        })
    }

    /// Starts a connection that runs the command as early as the server allows.
    fn connect(&mut self, server: usize, memory: Option<ServerMemory>) -> io::Result<Key> {
        let server = server % self.servers.len();
        let (host, address) = self.servers.get(server).expect("the remainder is in range");
        let identity = Identity {
            key: self.key.public().clone(),
            certificate: None,
            proven: true,
            hardware: false,
        };
        let mut client = Client::new(ClientConfig {
            user: self.user.clone(),
            known_host_key_types: self.known.key_types(&mut self.memo, host).types,
            identities: vec![identity],
            memory,
            spare: true,
            ..ClientConfig::default()
        });
        let started = Instant::now();
        client.exec(started, exec(&self.command));
        let key = self.driver.connect(*address, client)?;
        self.held.insert(
            key,
            Held {
                server,
                started,
                first_output: None,
                done: false,
            },
        );
        Ok(key)
    }

    /// Opens `count` connections, a window of them at a time, and waits for the command on each.
    fn open(&mut self, count: usize) -> io::Result<Vec<Key>> {
        let mut keys = Vec::with_capacity(count);
        while keys.len() < count {
            let server = keys.len() % self.servers.len();
            let memory = self.learned.get(&server).cloned();
            keys.push(self.connect(server, memory)?);
            self.pump(|held| held.values().filter(|one| !one.done).count() < WINDOW)?;
        }
        self.pump(|held| held.values().all(|one| one.done))?;
        Ok(keys)
    }

    /// Runs the command on a connection that is there; milliseconds to the first byte.
    fn run(&mut self, key: Key) -> io::Result<f64> {
        let command = exec(&self.command);
        let started = Instant::now();
        let client = self.driver.protocol(key).ok_or(io::ErrorKind::NotConnected)?;
        client.exec(started, command);
        let held = self.held.get_mut(&key).ok_or(io::ErrorKind::NotConnected)?;
        *held = Held {
            server: held.server,
            started,
            first_output: None,
            done: false,
        };
        self.finish(key)
    }

    fn finish(&mut self, key: Key) -> io::Result<f64> {
        self.pump(|held| held.get(&key).is_none_or(|one| one.done))?;
        let held = self.held.get(&key).ok_or(io::ErrorKind::NotConnected)?;
        let first = held
            .first_output
            .ok_or_else(|| io::Error::other("the command printed nothing"))?;
        Ok(milliseconds(first - held.started))
    }

    fn finish_and_close(&mut self, key: Key) -> io::Result<(f64, Packets)> {
        let time = self.finish(key)?;
        let packets = self.packets(key);
        self.close(key);
        Ok((time, packets))
    }

    /// Ends a connection without a word: it is not measured.
    fn close(&mut self, key: Key) {
        self.driver.abort(key);
        self.held.remove(&key);
    }

    fn packets(&mut self, key: Key) -> Packets {
        let stats = self
            .driver
            .protocol(key)
            .map(|client| client.stats())
            .unwrap_or_default();
        Packets {
            sent: stats.packets_sent,
            received: stats.packets_received,
        }
    }

    /// Keeps the connections alive for a while.
    fn wait(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        while let Some(left) = end
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            let now = self.driver.turn(Some(left))?;
            self.drain(now)?;
        }
        Ok(())
    }

    /// Runs the loop until `enough`.
    fn pump(&mut self, enough: impl Fn(&HashMap<Key, Held>) -> bool) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !enough(&self.held) {
            let left = deadline
                .checked_duration_since(Instant::now())
                .ok_or(io::ErrorKind::TimedOut)?;
            let now = self.driver.turn(Some(left))?;
            self.drain(now)?;
        }
        Ok(())
    }

    fn drain(&mut self, now: Instant) -> io::Result<()> {
        while let Some(event) = self.driver.poll_event() {
            match event {
                Event::Protocol(key, event) => self.handle(now, key, event)?,
                Event::Closed(key, _, result) => {
                    let server = self.held.remove(&key).map_or(0, |held| held.server);
                    let error = result
                        .err()
                        .map_or_else(|| "closed".to_owned(), |error| error.to_string());
                    return Err(io::Error::other(format!("server {server}: {error}")));
                }
                Event::Connected(_)
                | Event::Outgoing(_)
                | Event::Finished(_)
                | Event::Consumed(..)
                | Event::Accepted(..)
                | Event::Exited(..)
                | Event::Signal(_)
                | Event::Ready(_) => {}
            }
        }
        Ok(())
    }

    fn handle(&mut self, now: Instant, key: Key, event: client::Event) -> io::Result<()> {
        let (Some(held), Some(client)) = (self.held.get_mut(&key), self.driver.protocol(key)) else {
            return Ok(());
        };
        match event {
            client::Event::HostKey { id, key, .. } => {
                let host = self
                    .servers
                    .get(held.server)
                    .map(|(host, _)| host)
                    .expect("it was connected to");
                let verdict = self.known.lookup(&mut self.memo, host, &key);
                client.answer_host_key(id, matches!(verdict, Verdict::Known(_)));
            }
            client::Event::Sign {
                id, algorithm, data, ..
            } => {
                client.answer_signature(id, self.key.sign(algorithm, &data).ok());
            }
            client::Event::Learned(memory) => drop(self.learned.insert(held.server, memory)),
            client::Event::Output {
                channel,
                stream,
                data,
            } => {
                held.first_output.get_or_insert(now);
                client.consume(channel, stream, data.len());
            }
            client::Event::ChannelClosed { .. } => held.done = true,
            client::Event::ChannelFailed { reason, .. } => {
                return Err(io::Error::other(format!("server {}: {reason:?}", held.server)));
            }
            client::Event::Stage(_)
            | client::Event::HostKeys(_)
            | client::Event::HostKeysProven(_)
            | client::Event::KeyRefused { .. }
            | client::Event::Prompt { .. }
            | client::Event::MethodRefused { .. }
            | client::Event::PartialSuccess { .. }
            | client::Event::PasswordExpired { .. }
            | client::Event::LoginUnanswered { .. }
            | client::Event::Banner(_)
            | client::Event::Greeting(_)
            | client::Event::Authenticated { .. }
            | client::Event::Opened { .. }
            | client::Event::AgentOpened { .. }
            | client::Event::Eof { .. }
            | client::Event::ExitStatus { .. }
            | client::Event::ExitSignal { .. }
            | client::Event::StdinRoom { .. }
            | client::Event::EnvRefused { .. }
            | client::Event::Disconnected { .. } => {}
        }
        Ok(())
    }
}

fn exec(command: &str) -> Exec {
    Exec {
        command: command.to_owned().into(),
        ..Exec::default()
    }
}

fn resolve(server: &str) -> io::Result<(HostId, SocketAddr)> {
    let address = server.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let host = server
        .rsplit_once(':')
        .map_or(server, |(host, _)| host.trim_matches(['[', ']']));
    Ok((HostId::new(host, address.port()), address))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
