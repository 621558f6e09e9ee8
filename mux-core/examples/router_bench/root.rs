//! The top of a tree of `node` processes: starts them, opens channels to any of them and says what came of it. Decides
//! nothing about what is measured or tested.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::router::Place;
use mux_core::{Driver, Event, Key, Relay};
use mux_proto::Connection;
use mux_proto::body::Reset;
use mux_proto::connection::{self, ChannelId, Config, Role, Stream};
use mux_proto::frame::NodeId;

/// Whatever takes this long will never be done.
const STUCK: Duration = Duration::from_secs(60);

/// A channel, by its link.
pub(crate) type Call = (Key, ChannelId);

/// What came of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Data(usize),
    Writable,
    Result(Bytes),
    Reset(Reset),
}

pub(crate) struct Root {
    pub(crate) driver: Driver<Connection>,
    pub(crate) relay: Relay,
    program: PathBuf,
    window: u32,
    greeted: Vec<Key>,
    /// The process of each child.
    pids: HashMap<NodeId, u32>,
    /// Bytes that come on these are not consumed.
    pub(crate) held: Vec<Call>,
    pub(crate) happened: VecDeque<(Call, Happened)>,
}

impl Root {
    /// Of a tree of these programs, with windows of so many bytes.
    pub(crate) fn new(program: PathBuf, window: u32) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            driver: Driver::new()?,
            relay: Relay::new(NodeId(1)),
            program,
            window,
            greeted: Vec::new(),
            pids: HashMap::new(),
            held: Vec::new(),
            happened: VecDeque::new(),
        })
    }

    /// Starts a child.
    pub(crate) fn start(&mut self) -> Result<NodeId, Box<dyn Error>> {
        let node = self.relay.allot().ok_or("no number is left")?;
        let mut command = Command::new(&self.program);
        command.args(["--window", &self.window.to_string()]);
        let config = Config {
            names: Some((NodeId(1), node)),
            window: self.window,
            max_channels: 100_000,
            ..Config::new(Role::Above)
        };
        let connection = Connection::new(Instant::now(), config);
        let child = self.driver.piped_child(command, connection, None)?;
        self.relay
            .add(&mut self.driver, child.stdio, Place::Child, node)?;
        self.pids.insert(node, child.pid);
        self.until(|root| root.greeted.contains(&child.stdio))?;
        Ok(node)
    }

    /// Starts a child of another node, and waits until it is known.
    pub(crate) fn start_beneath(&mut self, node: NodeId) -> Result<NodeId, Box<dyn Error>> {
        let child = self.relay.allot().ok_or("no number is left")?;
        let mut item = vec![0x1b];
        item.extend_from_slice(&u64::from(child.0).to_be_bytes());
        let call = self.open(node, "child", item.into())?;
        let ending = self.ending(call)?;
        if !matches!(ending, Happened::Result(_)) {
            return Err(format!("no child: {ending:?}").into());
        }
        self.until(|root| root.relay.router().way(child).is_some())?;
        Ok(child)
    }

    /// A chain of so many nodes, each beneath the one before.
    pub(crate) fn chain(&mut self, len: usize) -> Result<Vec<NodeId>, Box<dyn Error>> {
        let mut chain = vec![self.start()?];
        while chain.len() < len {
            let last = *chain.last().ok_or("there is one")?;
            chain.push(self.start_beneath(last)?);
        }
        Ok(chain)
    }

    pub(crate) fn pid(&self, node: NodeId) -> Option<u32> {
        self.pids.get(&node).copied()
    }

    pub(crate) fn open(&mut self, node: NodeId, kind: &str, item: Bytes) -> Result<Call, Box<dyn Error>> {
        let link = self.relay.router().way(node).ok_or("the node is gone")?;
        let connection = self.driver.protocol(link).ok_or("the link is gone")?;
        Ok((link, connection.open(node, kind, item)?))
    }

    /// As much of so many bytes as there is room for. One that is full tells when half of it is free.
    pub(crate) fn send(&mut self, (link, channel): Call, len: usize) -> usize {
        static BYTES: [u8; 64 * 1024] = [b's'; 64 * 1024];
        let Some(connection) = self.driver.protocol(link) else {
            return 0;
        };
        let mut sent = 0;
        while sent < len {
            let piece = connection.room(channel).min(len - sent).min(BYTES.len());
            let data = Bytes::from_static(&BYTES).slice(..piece);
            if piece == 0 || connection.send(channel, Stream::Out, data).is_err() {
                break;
            }
            sent += piece;
        }
        sent
    }

    pub(crate) fn connection(&mut self, (link, _): Call) -> Option<&mut Connection> {
        self.driver.protocol(link)
    }

    /// One turn of the loop; what it brought is in `happened`.
    pub(crate) fn turn(&mut self, wait: Option<Duration>) -> Result<(), Box<dyn Error>> {
        self.driver.turn(wait)?;
        while let Some(event) = self.driver.poll_event() {
            match event {
                Event::Protocol(key, event) => {
                    if let Some(event) = self.relay.handle(&mut self.driver, key, event) {
                        self.hear(key, event);
                    }
                }
                Event::Closed(key, _, result) => {
                    let reason = result.map_or_else(|error| error.to_string(), |()| "closed".to_owned());
                    self.relay.lose(&mut self.driver, key, &reason);
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

    fn hear(&mut self, link: Key, event: connection::Event) {
        use connection::Event::*;
        let (channel, happened) = match event {
            Hello(_) => return self.greeted.push(link),
            Data { channel, data, .. } => {
                let is_held = self.held.contains(&(link, channel));
                if let Some(connection) = self.driver.protocol(link).filter(|_| !is_held) {
                    connection.consume(channel, data.len());
                }
                (channel, Happened::Data(data.len()))
            }
            Writable(channel) => (channel, Happened::Writable),
            Result(channel, item) => (channel, Happened::Result(item)),
            Reset(channel, reset) => (channel, Happened::Reset(reset)),
            Finished(_) | Opened { .. } | Route(_) | Log(_) | Goodbye(_) | Transit(_) => return,
        };
        self.happened.push_back(((link, channel), happened));
    }

    pub(crate) fn until(&mut self, is_true: impl Fn(&mut Self) -> bool) -> Result<(), Box<dyn Error>> {
        let start = Instant::now();
        while !is_true(self) {
            if start.elapsed() > STUCK {
                return Err("it never came true".into());
            }
            self.turn(Some(Duration::from_secs(1)))?;
        }
        Ok(())
    }

    /// How a channel ends; everything else that happens meanwhile is forgotten.
    pub(crate) fn ending(&mut self, call: Call) -> Result<Happened, Box<dyn Error>> {
        loop {
            while let Some((of, happened)) = self.happened.pop_front() {
                if of == call && matches!(happened, Happened::Result(_) | Happened::Reset(_)) {
                    return Ok(happened);
                }
            }
            self.turn(Some(STUCK))?;
        }
    }
}
