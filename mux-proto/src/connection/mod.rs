//! One link of the framed protocol as a value: [`Connection`]. This file has its commands; `receive.rs` decides what
//! frames of the peer mean, `channels.rs` what is sent next. Nothing here relays frames or runs commands.

mod channel;
mod channels;
mod event;
mod keepalive;
mod receive;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

pub use channel::{INITIAL_CREDIT, MAX_CREDIT, MAX_UNSENT};
use channels::{Channels, Outgoing};
pub use event::{ChannelId, Event, Stream};
use keepalive::{Due, Keepalive};

use crate::body::{
    self, BodyError, Goodbye, GoodbyeCode, Hello, Log, MAX_ROUTE_NODES, Open, Reset, ResetCode, Route,
};
use crate::error::{Error, Misuse, Violation};
use crate::frame::{Frame, Header, Kind, MAX_BODY, NodeId};
use crate::{Close, Protocol, SendQueue};

/// Input stops while events of more bytes than this wait for the owner: what every protocol may hold for a slow one.
const MAX_UNDELIVERED: usize = 256 * 1024;

/// What an event costs beside its payload, so that a flood of empty ones is bounded too.
const EVENT_COST: usize = 64;

/// Input stops while more answers than this wait to be sent: a peer that only asks and never reads is not listened to.
const MAX_OWED: usize = 1024;

/// Nodes that may lie beneath one link.
pub const MAX_ROUTES: usize = 65_536;

/// Which end of a link this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens channels and takes none: a client of the hub, the hub towards an agent.
    Above,
    /// Takes channels and opens none: the hub towards its clients, an agent.
    Below,
}

/// What a connection is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which end this is.
    pub role: Role,
    /// Program and version, for people.
    pub software: String,
    /// As `uname -sm` has it.
    pub platform: String,
    /// The numbers of this node and of the peer, if this side is the one that gives them. One of the two must be.
    pub names: Option<(NodeId, NodeId)>,
    /// Channels at a time: that are taken (below), or opened at most, whatever the peer takes (above).
    pub max_channels: u32,
    /// Bytes that may be under way towards us on a new channel: [`INITIAL_CREDIT`] to [`MAX_CREDIT`].
    pub window: u32,
    /// Ask whether the peer is there when nothing came for so long.
    pub keepalive: Option<Duration>,
    /// How long a hello, and an answer to a ping, may take.
    pub answer_time: Duration,
}

impl Config {
    /// 1,024 channels, windows of 64 KiB, a ping after 15 seconds of silence and 15 seconds for the answer.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self {
            role,
            software: concat!("mux ", env!("CARGO_PKG_VERSION")).to_owned(),
            platform: String::new(),
            names: None,
            max_channels: 1024,
            window: INITIAL_CREDIT,
            keepalive: Some(Duration::from_secs(15)),
            answer_time: Duration::from_secs(15),
        }
    }
}

/// How far a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Our hello is under way, theirs has not come.
    Greeting,
    Open,
    /// One of the two has said goodbye.
    Parted,
    Failed(Error),
}

/// One end of a link. Made with [`new`](Self::new), driven as every [`Protocol`]; `PROTOCOL.md` of this crate is the
/// specification.
///
/// Memory is bounded: by the windows of its channels for what comes, by [`MAX_UNSENT`] a channel for what goes, and
/// beside that by constants.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    phase: Phase,
    own: Option<NodeId>,
    peer: Option<NodeId>,
    /// Channels that the peer takes.
    peer_channels: u32,
    routes: BTreeSet<NodeId>,
    channels: Channels,
    keepalive: Keepalive,
    /// Frames that go before all data, and whether each is an answer.
    outbox: VecDeque<(Frame, bool)>,
    owed: usize,
    events: VecDeque<Event>,
    undelivered: usize,
    refused: u64,
    /// The last input ended within a frame.
    is_mid_frame: bool,
}

impl Connection {
    /// A link that has just been made: the hello goes out first, and need not be answered before channels are opened.
    #[must_use]
    pub fn new(now: Instant, config: Config) -> Self {
        let hello = Hello {
            software: config.software.clone(),
            platform: config.platform.clone(),
            is_above: config.role == Role::Above,
            channels: if config.role == Role::Above {
                0
            } else {
                config.max_channels
            },
            node: config.names.map(|names| names.0),
            peer: config.names.map(|names| names.1),
        };
        let mut connection = Self {
            phase: Phase::Greeting,
            own: config.names.map(|names| names.0),
            peer: config.names.map(|names| names.1),
            peer_channels: u32::MAX,
            routes: BTreeSet::new(),
            channels: Channels::new(config.window),
            keepalive: Keepalive::new(now, config.keepalive, config.answer_time),
            outbox: VecDeque::new(),
            owed: 0,
            events: VecDeque::new(),
            undelivered: 0,
            refused: 0,
            is_mid_frame: false,
            config,
        };
        connection.put(Header::link(Kind::Hello, 0), hello.encode());
        connection
    }

    /// Opens a channel to a node: [`NodeId::NEIGHBOUR`] or one that the peer has announced.
    ///
    /// # Errors
    /// This side may not, the node is unknown, too many are open, or `arguments` are no item of CBOR.
    pub fn open(&mut self, node: NodeId, kind: &str, arguments: Bytes) -> Result<ChannelId, Misuse> {
        self.usable(Role::Above)?;
        let node = self.origin(node).ok_or(Misuse::UnknownNode)?;
        let max = self.peer_channels.min(self.config.max_channels);
        if self.channels.len() >= max as usize {
            return Err(Misuse::TooManyChannels);
        }
        let kind = kind.to_owned();
        let body = Open { kind, arguments }.encode()?;
        let channel = self.channels.open(node)?;
        let frame = self.channel_frame(channel, Kind::Open, 0, body);
        self.outbox.push_back((frame, false));
        Ok(channel)
    }

    /// Bytes that [`send`](Self::send) takes now; nothing for a channel that is finished or gone.
    #[must_use]
    pub fn room(&self, channel: ChannelId) -> usize {
        self.channels.get(channel).map_or(0, channel::Channel::room)
    }

    /// Queues `data`, which goes out as credit and turns allow.
    ///
    /// # Errors
    /// The channel is gone or finished, or [`room`](Self::room) is smaller: then `Writable` follows.
    pub fn send(&mut self, channel: ChannelId, stream: Stream, data: Bytes) -> Result<(), Misuse> {
        self.on(channel, |channel| channel.send(stream, data))
    }

    /// Says that nothing follows what was queued.
    ///
    /// # Errors
    /// The channel is gone or was finished.
    pub fn finish(&mut self, channel: ChannelId) -> Result<(), Misuse> {
        self.on(channel, channel::Channel::finish)
    }

    /// Ends the channel, once all that was queued has left, with a result: one item of CBOR.
    ///
    /// # Errors
    /// This side may not, the channel is gone or has its result, or `body` is no such item.
    pub fn give_result(&mut self, channel: ChannelId, body: Bytes) -> Result<(), Misuse> {
        self.usable(Role::Below)?;
        if body.len() > MAX_BODY {
            return Err(Misuse::Body(BodyError::Field("result")));
        }
        body::check_item(&body)?;
        self.on(channel, |channel| channel.give_result(body))
    }

    /// Ends the channel at once; what waited on it is dropped.
    ///
    /// # Errors
    /// The channel is gone.
    pub fn reset(&mut self, channel: ChannelId, reset: &Reset) -> Result<(), Misuse> {
        if !self.channels.remove(channel) {
            return Err(Misuse::UnknownChannel);
        }
        let frame = self.channel_frame(channel, Kind::Reset, 0, reset.encode());
        self.outbox.push_back((frame, false));
        Ok(())
    }

    /// `count` more bytes of a channel have found their place: as many may come again. Nothing for one that is gone.
    pub fn consume(&mut self, channel: ChannelId, count: usize) {
        self.channels.with(channel, |channel| channel.consume(count));
    }

    /// Bytes that may be under way towards us on this channel. A smaller window takes back no credit that was given.
    pub fn set_window(&mut self, channel: ChannelId, window: u32) {
        self.channels.with(channel, |channel| channel.set_window(window));
    }

    /// Tells the side above of nodes beneath this one.
    ///
    /// # Errors
    /// This side may not, or it is more than [`MAX_ROUTE_NODES`] at once.
    pub fn announce(&mut self, route: &Route) -> Result<(), Misuse> {
        self.usable(Role::Below)?;
        if route.added.len() + route.lost.len() > MAX_ROUTE_NODES {
            return Err(Misuse::Body(BodyError::Field("added")));
        }
        self.put(Header::link(Kind::Route, 0), route.encode());
        Ok(())
    }

    /// Words for a person above.
    ///
    /// # Errors
    /// This side may not.
    pub fn log(&mut self, log: &Log) -> Result<(), Misuse> {
        self.usable(Role::Below)?;
        self.put(Header::link(Kind::Log, 0), log.encode());
        Ok(())
    }

    /// Asks whether the peer is there, unless that is being asked: an answer that does not come in time ends the link.
    pub fn ping(&mut self, now: Instant) {
        if self.phase == Phase::Open
            && let Some(bytes) = self.keepalive.ping(now)
        {
            self.put(Header::link(Kind::Ping, 0), Bytes::copy_from_slice(&bytes));
        }
    }

    /// The time between the last ping and its answer.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.keepalive.rtt()
    }

    /// Ends the link. Open channels are gone, here without an event: whoever wants to drain waits for
    /// [`channels`](Self::channels) to be none.
    pub fn goodbye(&mut self, code: GoodbyeCode, text: &str) {
        if matches!(self.phase, Phase::Greeting | Phase::Open) {
            self.phase = Phase::Parted;
            self.channels.remove_all();
            let text = text.to_owned();
            self.put(Header::link(Kind::Goodbye, 0), Goodbye { code, text }.encode());
        }
    }

    /// Channels that are open.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Frames of the peer that were refused. Each was answered, but for resets.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn usable(&self, role: Role) -> Result<(), Misuse> {
        match self.phase {
            Phase::Parted | Phase::Failed(_) => Err(Misuse::Ended),
            Phase::Greeting | Phase::Open if self.config.role != role => Err(Misuse::WrongSide),
            Phase::Greeting | Phase::Open => Ok(()),
        }
    }

    fn on(
        &mut self,
        id: ChannelId,
        act: impl FnOnce(&mut channel::Channel) -> Result<(), Misuse>,
    ) -> Result<(), Misuse> {
        self.channels.with(id, act).ok_or(Misuse::UnknownChannel)?
    }

    fn put(&mut self, header: Header, body: Bytes) {
        self.outbox.push_back((Frame::new(header, body), false));
    }

    fn channel_frame(&self, channel: ChannelId, kind: Kind, flags: u8, body: Bytes) -> Frame {
        let source = match self.own {
            Some(own) if channel.node != NodeId::NEIGHBOUR => own,
            Some(_) | None => NodeId::NEIGHBOUR,
        };
        let header = Header {
            kind,
            flags,
            destination: channel.node,
            source,
            channel: channel.number,
            len: 0,
        };
        Frame::new(header, body)
    }

    fn tell(&mut self, event: Event) {
        self.undelivered += cost(&event);
        self.events.push_back(event);
    }

    /// Every channel ends for this reason.
    fn lose_channels(&mut self, text: &str) {
        for channel in self.channels.remove_all() {
            let text = text.to_owned();
            let code = ResetCode::Gone;
            self.tell(Event::Reset(channel, Reset { code, text }));
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        let text = error.to_string();
        self.lose_channels(&text);
        self.outbox.clear();
        self.owed = 0;
        let code = match &error {
            // Whoever wrote that is no peer of ours and would not understand.
            Error::Violation(Violation::Magic(_)) | Error::UnexpectedEof => None,
            Error::Violation(_) => Some(GoodbyeCode::Violation),
            Error::Incompatible(_) => Some(GoodbyeCode::Incompatible),
            Error::NoHello | Error::Silent => Some(GoodbyeCode::Silent),
        };
        if let Some(code) = code {
            self.put(Header::link(Kind::Goodbye, 0), Goodbye { code, text }.encode());
        }
        self.phase = Phase::Failed(error.clone());
        error
    }
}

impl Protocol for Connection {
    type Event = Event;
    type Error = Error;

    fn wants_input(&self) -> bool {
        self.undelivered <= MAX_UNDELIVERED && self.owed <= MAX_OWED
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Error> {
        match &self.phase {
            Phase::Failed(error) => return Err(error.clone()),
            Phase::Parted => {
                input.clear();
                return Ok(());
            }
            Phase::Greeting | Phase::Open => {}
        }
        if !input.is_empty() {
            self.keepalive.heard(now);
        }
        let outcome = Frame::take(input).and_then(|frame| match frame {
            Some(frame) => self.receive(now, frame),
            None => Ok(()),
        });
        self.is_mid_frame = !input.is_empty();
        outcome.map_err(|error| self.fail(error))
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Error> {
        match &self.phase {
            Phase::Failed(error) => Err(error.clone()),
            Phase::Parted => Ok(()),
            Phase::Greeting | Phase::Open if self.is_mid_frame => Err(self.fail(Violation::Truncated.into())),
            Phase::Greeting | Phase::Open => Err(self.fail(Error::UnexpectedEof)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        match &self.phase {
            Phase::Failed(error) => return Err(error.clone()),
            Phase::Parted => return Ok(()),
            Phase::Greeting | Phase::Open => {}
        }
        if !self.wants_input() {
            // Nothing can come while we don't read: the peer is not to blame for it.
            self.keepalive.heard(now);
        }
        match self.keepalive.due(now) {
            None => Ok(()),
            Some(Due::NoHello) => Err(self.fail(Error::NoHello)),
            Some(Due::Silent) => Err(self.fail(Error::Silent)),
            Some(Due::Ping(bytes)) => {
                self.put(Header::link(Kind::Ping, 0), Bytes::copy_from_slice(&bytes));
                Ok(())
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        while out.has_room() {
            if let Some((frame, is_owed)) = self.outbox.pop_front() {
                self.owed -= usize::from(is_owed);
                put(out, frame);
            } else if let Some((outgoing, unblocked)) = self.channels.next_frame() {
                let Outgoing {
                    channel,
                    kind,
                    flags,
                    body,
                } = outgoing;
                put(out, self.channel_frame(channel, kind, flags, body));
                if let Some(channel) = unblocked {
                    self.tell(Event::Writable(channel));
                }
            } else {
                return;
            }
        }
    }

    fn poll_close(&self) -> Option<Close> {
        matches!(self.phase, Phase::Parted | Phase::Failed(_)).then_some(Close::Both)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Greeting | Phase::Open => self.keepalive.deadline(),
            Phase::Parted | Phase::Failed(_) => None,
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.undelivered -= cost(&event);
        Some(event)
    }
}

fn put(out: &mut SendQueue, frame: Frame) {
    out.put_slice(&frame.header.encode());
    out.push(frame.body);
}

fn cost(event: &Event) -> usize {
    let payload = match event {
        Event::Opened { kind, arguments, .. } => kind.len() + arguments.len(),
        Event::Data { data, .. } => data.len(),
        Event::Result(_, body) => body.len(),
        Event::Reset(_, reset) => reset.text.len(),
        Event::Route(route) => size_of_val(&*route.added) + size_of_val(&*route.lost) + route.reason.len(),
        Event::Log(log) => log.text.len(),
        Event::Hello(_) | Event::Finished(_) | Event::Writable(_) | Event::Goodbye(_) => 0,
    };
    EVENT_COST + payload
}
