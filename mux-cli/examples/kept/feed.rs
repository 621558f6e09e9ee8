//! The other direction: bytes into one command, as many as it takes at a time.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::ArgMatches;
use mux_core::Key;
use mux_ssh::client::{ChannelId, Event, Exec, Stdin};

use crate::links::Links;

/// Nothing that is measured here takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a reader of a file would give at a time.
const PIECE: usize = 64 * 1024;

struct Feed {
    links: Links,
    key: Key,
    channel: ChannelId,
    zeros: Bytes,
    left: usize,
    output: Vec<u8>,
    over: bool,
}

/// Sends `size` zeros to the command on the first host; what it printed.
pub(crate) fn run(options: &ArgMatches, size: usize) -> io::Result<Vec<u8>> {
    let command = options.get_one::<String>("command").cloned().unwrap_or_default();
    let exec = Exec {
        command: command.into(),
        stdin: Stdin::Open,
        ..Exec::default()
    };
    let started = Instant::now();
    let mut links = Links::new(options)?;
    let mut channel = None;
    let key = links.connect(0, |client| channel = Some(client.exec(started, exec)))?;
    let mut feed = Feed {
        links,
        key,
        channel: channel.expect("every client is prepared"),
        zeros: Bytes::from(vec![0; PIECE]),
        left: size,
        output: Vec::new(),
        over: false,
    };
    feed.fill()?;
    let deadline = started + PATIENCE;
    while !feed.over {
        let left = deadline.checked_duration_since(Instant::now());
        feed.links.turn(left.ok_or(io::ErrorKind::TimedOut)?)?;
        while let Some((_, event)) = feed.links.poll()? {
            feed.handle(event)?;
        }
    }
    feed.links.leave(key);
    feed.links.turn(Duration::ZERO)?;
    Ok(feed.output)
}

impl Feed {
    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event {
            Event::StdinRoom { .. } => return self.fill(),
            Event::Output {
                channel,
                stream,
                data,
            } => {
                self.output.extend_from_slice(&data);
                if let Some(client) = self.links.client(self.key) {
                    client.consume(channel, stream, data.len());
                }
            }
            Event::ChannelClosed { .. } => self.over = true,
            Event::ChannelFailed { reason, .. } => return Err(io::Error::other(format!("{reason:?}"))),
            Event::ExitStatus { .. }
            | Event::HostKey { .. }
            | Event::Sign { .. }
            | Event::Learned(_)
            | Event::Greeting(_)
            | Event::Stage(_)
            | Event::KeyRefused { .. }
            | Event::Banner(_)
            | Event::Authenticated { .. }
            | Event::Opened { .. }
            | Event::Eof { .. }
            | Event::ExitSignal { .. }
            | Event::EnvRefused { .. }
            | Event::Disconnected { .. } => {}
        }
        Ok(())
    }

    /// Queues as much as there is room for.
    fn fill(&mut self) -> io::Result<()> {
        let client = self.links.client(self.key).ok_or(io::ErrorKind::NotConnected)?;
        while self.left > 0 {
            let size = client.stdin_room(self.channel).min(self.left).min(PIECE);
            if size == 0 {
                return Ok(());
            }
            let piece = self.zeros.slice(..size);
            client
                .write_stdin(self.channel, piece)
                .map_err(io::Error::other)?;
            self.left -= size;
        }
        client.finish_stdin(self.channel);
        Ok(())
    }
}
