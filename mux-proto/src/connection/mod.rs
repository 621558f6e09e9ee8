//! One link of the framed protocol as a value: [`Connection`]. This file has its commands; `receive.rs` decides what
//! frames of the peer mean, `channels.rs` what is sent next, `relaying.rs` passes frames of others on. Nothing here knows
//! of other links or runs commands.

mod channel;
mod channels;
mod config;
mod drive;
mod event;
mod flow;
mod keepalive;
mod passing;
mod receive;
mod relaying;
#[cfg(test)]
mod tests;
mod unsent;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use channel::{INITIAL_CREDIT, MAX_CREDIT, MAX_UNSENT};
use channels::Channels;
pub use config::{Config, Role};
pub use event::{ChannelId, Event, Stream};
pub use flow::FlowId;
use keepalive::Keepalive;
pub use passing::MAX_FLOWS;

use crate::body::{self, BodyError, Goodbye, GoodbyeCode, Hello, Log, MAX_ROUTE_NODES, Open, Reset, Route};
use crate::error::{Error, Misuse};
use crate::frame::{Frame, Header, Kind, MAX_BODY, NodeId};

/// Nodes that may lie beneath one link.
pub const MAX_ROUTES: usize = 65_536;

/// With so many frames waiting ahead of all data, no routes are added and no words taken: those below who cause them may
/// be many, and 4 MiB of words are enough.
const MAX_OUTBOX: usize = 1024;

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

/// One end of a link. Made with [`new`](Self::new), driven as every [`Protocol`](crate::Protocol); `PROTOCOL.md` of this crate is the
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

    /// Tells the side above of nodes beneath this one. That some are lost is said behind the last frame that came from
    /// them and is still under way.
    ///
    /// # Errors
    /// This side may not, it is more than [`MAX_ROUTE_NODES`] at once, or more were added than the peer reads.
    pub fn announce(&mut self, route: &Route) -> Result<(), Misuse> {
        self.usable(Role::Below)?;
        if route.added.len() + route.lost.len() > MAX_ROUTE_NODES {
            return Err(Misuse::Body(BodyError::Field("added")));
        }
        if !route.added.is_empty() && self.outbox.len() >= MAX_OUTBOX {
            return Err(Misuse::QueueFull);
        }
        if route.lost.is_empty() {
            self.put(Header::link(Kind::Route, 0), route.encode());
        } else {
            self.channels.part(route);
        }
        Ok(())
    }

    /// Words for a person above.
    ///
    /// # Errors
    /// This side may not, or the peer does not read what was said before.
    pub fn log(&mut self, log: &Log) -> Result<(), Misuse> {
        self.usable(Role::Below)?;
        if self.outbox.len() >= MAX_OUTBOX {
            return Err(Misuse::QueueFull);
        }
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

    /// The numbers of this node and of the peer, once they are known.
    #[must_use]
    pub fn names(&self) -> Option<(NodeId, NodeId)> {
        self.own.zip(self.peer)
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
}
