//! The links of a run: gives the hub its connections and turns what the loop says into what the hub and the agents
//! understand. Decides nothing about requests.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::{Driver, Event, Key, LinkError, Ready, Stream};
use mux_proto::{Connection, Protocol, connection};
use mux_ssh::agent::{AgentClient, AgentEvent};
use mux_ssh::client::ChannelId;
use mux_ssh::{Client, Printable};
use rustix::io::Errno;
use rustix::process::Signal;

use super::forwards::Forwards;
use super::limits;
use super::locals::Locals;
use super::locals::NotSpawned;
use super::pipe::{Pipe, PipeEvent};
use super::proxies::{self, Proxies};
use super::relay::Relays;
use super::wire::{Wire, WireError, WireEvent};
use crate::hub::{Kill, LinkEvent, Links, NoLink, Request, StreamKind};

/// What the loop heard.
#[derive(Debug)]
pub(crate) enum Heard {
    /// From a target.
    Link(Key, LinkEvent),
    /// From an agent.
    Agent(Key, AgentEvent),
    /// An agent's socket is gone, or could not be reached.
    AgentClosed(Key, Option<ErrorKind>),
    /// From the daemon, or a client of it.
    Node(Key, connection::Event),
    /// The link to one of them is gone, for this reason.
    NodeClosed(Key, String),
    /// Somebody has connected.
    Accepted(Stream),
    /// A signal of the process.
    Signal(i32),
    /// Something waits in a mailbox.
    Woken,
}

/// The loop with its links.
#[derive(Debug)]
pub(crate) struct Net {
    driver: Driver<Wire>,
    locals: Locals,
    forwards: Forwards,
    relays: Relays,
    proxies: Proxies,
    /// The time of the last turn.
    now: Option<Instant>,
    heard: VecDeque<Heard>,
    /// How many descriptors links may still take. Those that say goodbye have theirs until they are closed.
    room: usize,
    /// Packets of connections that are over: sent, received.
    packets: (u64, u64),
    /// The signals of the terminal come as events, and stop nothing by themselves.
    job_control: bool,
}

impl Net {
    /// `room` is how many descriptors links may have: what is above belongs to files and to the pool.
    pub(crate) fn new(driver: Driver<Wire>, locals: Locals, room: usize) -> Self {
        Self {
            driver,
            relays: Relays::default(),
            proxies: Proxies::new(locals.limit()),
            locals,
            forwards: Forwards::default(),
            now: None,
            heard: VecDeque::new(),
            room,
            packets: (0, 0),
            job_control: false,
        }
    }

    /// Wants to hear when the process is to stop and when it goes on. Not before there is something to do about it:
    /// until then the kernel does it better.
    pub(crate) fn watch_job_control(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.job_control, true) {
            let signals = limits::not_ignored(&[Signal::TSTP, Signal::CONT]);
            self.driver.signals(&signals)?;
        }
        Ok(())
    }

    /// For benchmarks, which read it from the log.
    pub(crate) fn log_packets(&self) {
        let (sent, received) = self.packets;
        log::debug!("SSH packets: {sent} sent, {received} received");
    }

    pub(crate) fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Instant> {
        let now = self.driver.turn(max_wait)?;
        self.now = Some(now);
        Ok(now)
    }

    /// The time of the last turn; none before the first.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.now
    }

    /// The next thing that was heard; `None` once everything was, and everything said is on its way.
    pub(crate) fn poll(&mut self) -> Option<Heard> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Some(heard);
            }
            let event = self.driver.poll_event()?;
            self.translate(event);
        }
    }

    fn translate(&mut self, event: Event<Wire>) {
        match event {
            Event::Connected(key) => self.heard.push_back(Heard::Link(key, LinkEvent::Connected)),
            Event::Protocol(key, WireEvent::Ssh(said)) => {
                let said = self.forwards.on_said(&mut self.driver, key, said);
                let said = said.and_then(|said| self.relays.heard(&mut self.driver, key, said));
                self.heard
                    .extend(said.map(|said| Heard::Link(key, LinkEvent::Client(said))));
            }
            Event::Protocol(key, WireEvent::Tunnel(said)) => {
                self.forwards.on_socket(&mut self.driver, key, said);
            }
            Event::Outgoing(key) => self.relays.outgoing(&mut self.driver, key),
            Event::Finished(key) => self.relays.finished(&mut self.driver, key),
            Event::Consumed(key, count) => self.relays.consumed(&mut self.driver, key, count),
            Event::Protocol(key, WireEvent::Agent(said)) => self.heard.push_back(Heard::Agent(key, said)),
            Event::Protocol(key, WireEvent::Pipe(said)) => {
                if said == PipeEvent::Eof
                    && let Some(Wire::Pipe(pipe)) = self.driver.protocol(key)
                {
                    // The command is gone, whatever it was still to be given.
                    pipe.close();
                }
                match self.proxies.owns(key) {
                    true => self.heard.extend(self.proxies.said(&mut self.driver, key, &said)),
                    false => self
                        .heard
                        .extend(self.locals.on_pipe(&mut self.driver, key, said)),
                }
            }
            Event::Closed(key, wire, result) => self.closed(key, *wire, result),
            Event::Exited(key, status) => {
                self.room += 1;
                match self.proxies.owns(key) {
                    true => self
                        .heard
                        .extend(self.proxies.exited(&mut self.driver, key, status)),
                    false => self
                        .heard
                        .extend(self.locals.on_exit(&mut self.driver, key, status)),
                }
            }
            Event::Signal(number) => self.heard.push_back(Heard::Signal(number)),
            Event::Ready(Ready::Woken) => self.heard.push_back(Heard::Woken),
            Event::Ready(Ready::Timer(timer)) => {
                if let Some(now) = self.now {
                    let (heard, freed) = self.proxies.timed_out(&mut self.driver, now, timer);
                    self.room += freed;
                    self.heard.extend(heard);
                }
            }
            Event::Accepted(_, stream) => self.heard.push_back(Heard::Accepted(stream)),
            Event::Protocol(key, WireEvent::Node(said)) => self.heard.push_back(Heard::Node(key, said)),
            // No source of our own exists here.
            Event::Ready(Ready::Io(..) | Ready::Again(_)) => {}
        }
    }

    fn closed(&mut self, key: Key, wire: Wire, result: Result<(), LinkError<WireError>>) {
        match wire {
            Wire::Ssh(mut client) => {
                self.room += self.forwards.on_link_closed(&mut self.driver, key);
                self.room += self.descriptors(key);
                let stats = client.stats();
                self.packets.0 += stats.packets_sent;
                self.packets.1 += stats.packets_received;
                client.connection_lost();
                let mut heard = Vec::new();
                while let Some(said) = client.poll_event() {
                    let said = self.relays.heard(&mut self.driver, key, said);
                    heard.extend(said.map(|said| Heard::Link(key, LinkEvent::Client(said))));
                }
                let by_itself = result.is_err();
                heard.push(Heard::Link(key, LinkEvent::Closed(ssh_result(result))));
                if let Some(now) = self.now.filter(|_| self.proxies.has_link(key)) {
                    heard = self.proxies.closed(&mut self.driver, now, key, heard, by_itself);
                }
                self.heard.extend(heard);
            }
            Wire::Agent(_) => {
                let kind = match result {
                    Ok(()) => None,
                    Err(LinkError::Io(kind)) => Some(kind),
                    Err(LinkError::Protocol(_)) => Some(ErrorKind::InvalidData),
                };
                self.heard.push_back(Heard::AgentClosed(key, kind));
            }
            Wire::Node(_) => {
                let why = match result {
                    Ok(()) => "hung up".to_owned(),
                    Err(LinkError::Io(kind)) => kind.to_string(),
                    Err(LinkError::Protocol(WireError::Node(error))) => error.to_string(),
                    Err(LinkError::Protocol(
                        WireError::Ssh(_) | WireError::Agent(_) | WireError::Tunnel(_),
                    )) => "broke its protocol".to_owned(),
                };
                self.heard.push_back(Heard::NodeClosed(key, why));
            }
            Wire::Tunnel(_) => {
                self.room += 1;
                self.forwards.on_socket_closed(&mut self.driver, key);
            }
            Wire::Pipe(_) if self.proxies.owns(key) => {
                self.room += 1;
                self.heard
                    .extend(self.proxies.stderr_closed(&mut self.driver, key));
            }
            Wire::Pipe(pipe) => {
                self.room += self.locals.descriptors(key);
                self.heard.extend(self.locals.on_pipe_closed(key, pipe.unsent()));
            }
        }
    }

    /// What a link that is gone had of ours.
    fn descriptors(&mut self, link: Key) -> usize {
        if self.relays.closed(&mut self.driver, link) {
            0
        } else if self.proxies.has_link(link) {
            proxies::LINK_DESCRIPTORS
        } else {
            1
        }
    }

    /// The run is over, and everything that is to leave has left.
    pub(crate) fn end(&mut self) {
        self.proxies.end(&mut self.driver);
    }

    /// The pipe that a local command reads.
    fn input(&mut self, process: Key) -> Option<&mut Pipe> {
        match self
            .driver
            .protocol(self.locals.pipe(process, StreamKind::Stdout)?)?
        {
            Wire::Pipe(pipe) => Some(pipe),
            Wire::Ssh(_) | Wire::Agent(_) | Wire::Tunnel(_) | Wire::Node(_) => None,
        }
    }

    /// Starts to connect to an agent.
    pub(crate) fn connect_agent(&mut self, socket: &Path) -> io::Result<Key> {
        self.driver.connect_unix(socket, Wire::Agent(Box::default()))
    }

    pub(crate) fn agent(&mut self, key: Key) -> Option<&mut AgentClient> {
        match self.driver.protocol(key)? {
            Wire::Agent(agent) => Some(agent),
            Wire::Ssh(_) | Wire::Pipe(_) | Wire::Tunnel(_) | Wire::Node(_) => None,
        }
    }

    /// A link to the daemon, or to a client of it.
    pub(crate) fn add_node(&mut self, stream: Stream, connection: Connection) -> io::Result<Key> {
        self.driver.add(stream, Wire::Node(Box::new(connection)))
    }

    pub(crate) fn node(&mut self, key: Key) -> Option<&mut Connection> {
        match self.driver.protocol(key)? {
            Wire::Node(connection) => Some(connection),
            Wire::Ssh(_) | Wire::Agent(_) | Wire::Pipe(_) | Wire::Tunnel(_) => None,
        }
    }

    /// Takes nobody more there.
    pub(crate) fn unlisten(&mut self, listener: Key) {
        self.driver.remove(listener);
    }

    /// A client to look at.
    pub(crate) fn peek_client(&self, key: Key) -> Option<&Client> {
        match self.driver.peek(key)? {
            Wire::Ssh(client) => Some(client),
            Wire::Agent(_) | Wire::Pipe(_) | Wire::Tunnel(_) | Wire::Node(_) => None,
        }
    }

    pub(crate) fn drop_agent(&mut self, key: Key) {
        self.driver.abort(key);
    }
}

/// Takes the SSH part out: a link that speaks SSH fails in no other language.
fn ssh_result(result: Result<(), LinkError<WireError>>) -> Result<(), LinkError<mux_ssh::Error>> {
    match result {
        Ok(()) => Ok(()),
        Err(LinkError::Io(kind)) => Err(LinkError::Io(kind)),
        Err(LinkError::Protocol(WireError::Ssh(error))) => Err(LinkError::Protocol(error)),
        Err(LinkError::Protocol(WireError::Agent(_) | WireError::Tunnel(_) | WireError::Node(_))) => {
            Err(LinkError::Io(ErrorKind::InvalidData))
        }
    }
}

/// Sorts what the system says by whether it helps to wait.
fn no_link(error: &io::Error) -> NoLink {
    if mux_core::is_shortage(error) {
        NoLink::Descriptors
    } else if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) {
        NoLink::Processes
    } else {
        NoLink::Io(error.kind())
    }
}

fn not_spawned(error: &NotSpawned) -> NoLink {
    match error {
        NotSpawned::Process(error) => no_link(error),
        NotSpawned::Directory(error) => match no_link(error) {
            NoLink::Io(kind) => NoLink::Directory(kind),
            other @ (NoLink::Descriptors | NoLink::Processes) => other,
            other @ (NoLink::Source(_) | NoLink::Directory(_)) => other,
        },
    }
}

impl Links for Net {
    type Key = Key;

    fn connect(&mut self, to: SocketAddr, from: Option<SocketAddr>, client: Client) -> Result<Key, NoLink> {
        let room = self.room.checked_sub(1).ok_or(NoLink::Descriptors)?;
        let wire = Wire::Ssh(Box::new(client));
        let key = match from {
            None => self.driver.connect(to, wire).map_err(|error| no_link(&error)),
            Some(from) => {
                let started = self.driver.connect_from(from, to, wire);
                started.map_err(|error| match no_link(&error) {
                    NoLink::Io(kind) | NoLink::Source(kind) => NoLink::Source(kind),
                    other @ (NoLink::Descriptors | NoLink::Processes | NoLink::Directory(_)) => other,
                })
            }
        }?;
        self.room = room;
        Ok(key)
    }

    fn ride(&mut self, carrier: Key, channel: ChannelId, client: Client) -> Result<Key, NoLink> {
        self.relays
            .add(&mut self.driver, (carrier, channel), Wire::Ssh(Box::new(client)))
            .map_err(|error| no_link(&error))
    }

    fn proxy(&mut self, command: &str, client: Client) -> Result<Key, NoLink> {
        let room = self.room.checked_sub(proxies::DESCRIPTORS);
        let room = room.ok_or(NoLink::Descriptors)?;
        let started = self.proxies.start(&mut self.driver, command, client);
        let key = started.map_err(|error| no_link(&error))?;
        self.room = room;
        // There is nothing to wait for: it is for the process to connect.
        self.heard.push_back(Heard::Link(key, LinkEvent::Connected));
        Ok(key)
    }

    fn spawn(&mut self, request: &Request) -> Result<Key, NoLink> {
        let room = self
            .room
            .checked_sub(Locals::needed(request))
            .ok_or(NoLink::Descriptors)?;
        let key = self
            .locals
            .spawn(&mut self.driver, request)
            .map_err(|error| not_spawned(&error))?;
        self.room = room;
        Ok(key)
    }

    fn client(&mut self, key: Key) -> Option<&mut Client> {
        match self.driver.protocol(key)? {
            Wire::Ssh(client) => Some(client),
            Wire::Agent(_) | Wire::Pipe(_) | Wire::Tunnel(_) | Wire::Node(_) => None,
        }
    }

    fn forward_agent(&mut self, key: Key, channel: ChannelId, socket: &str) {
        let room = self.room.checked_sub(1);
        let room = room.ok_or_else(|| io::Error::from(ErrorKind::OutOfMemory));
        let opened = room.and_then(|room| {
            self.forwards.open(&mut self.driver, (key, channel), socket)?;
            Ok(room)
        });
        match opened {
            Ok(room) => self.room = room,
            Err(error) => {
                log::warn!("the agent at {}: {error}", Printable::new(socket));
                if let Some(client) = self.client(key) {
                    client.close_channel(channel);
                }
            }
        }
    }

    fn consume(&mut self, key: Key, stream: StreamKind, count: usize) {
        if let Some(pipe) = self.locals.pipe(key, stream)
            && let Some(Wire::Pipe(pipe)) = self.driver.protocol(pipe)
        {
            pipe.consume(count);
        }
    }

    fn kill(&mut self, key: Key, signal: Kill) {
        let taken = self.locals.kill(&mut self.driver, key, signal);
        self.room = self.room.saturating_sub(taken);
    }

    fn local_room(&mut self, key: Key) -> usize {
        self.input(key).map_or(0, |pipe| pipe.room())
    }

    fn local_write(&mut self, key: Key, data: Bytes) {
        if let Some(pipe) = self.input(key) {
            match data.is_empty() {
                true => pipe.finish(),
                false => pipe.write(data),
            }
        }
    }

    fn abort(&mut self, key: Key) {
        if self.locals.is_process(key) {
            self.room += self.locals.abandon(&mut self.driver, key);
        } else if self.driver.abort(key).is_some() {
            self.room += self.forwards.on_link_closed(&mut self.driver, key);
            self.room += self.descriptors(key);
            self.relays.dropped(&mut self.driver, key);
            if let Some(now) = self.now {
                self.proxies.dropped(&mut self.driver, now, key);
            }
        }
    }
}
