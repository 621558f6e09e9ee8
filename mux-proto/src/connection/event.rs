//! What a connection tells its owner. Plain values.

use bytes::Bytes;

use crate::body::{Goodbye, Hello, Log, Reset, Route};
use crate::frame::{Frame, NodeId};

/// A channel of a connection: the node at its other end, and the number that the opener gave to it. Not used again
/// while the connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    /// The node at the other end; [`NodeId::NEIGHBOUR`] if it is that of the link.
    pub node: NodeId,
    /// The number.
    pub number: u32,
}

/// Which of the two streams of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// The only one, but for output of commands.
    Out,
    /// Standard error.
    Err,
}

/// One thing that happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer has said hello and suits. The first event.
    Hello(Hello),
    /// The peer has opened a channel (only below). It is accepted unless it is reset.
    Opened {
        /// Its name from now on.
        channel: ChannelId,
        /// The kind; foreign text.
        kind: String,
        /// One item of CBOR.
        arguments: Bytes,
    },
    /// Bytes came. Give as many back with `consume` when they have found their place, or the peer gets no more credit.
    Data {
        /// On this channel.
        channel: ChannelId,
        /// And this stream of it.
        stream: Stream,
        /// In order.
        data: Bytes,
    },
    /// Nothing more will come on this channel, a result or reset aside.
    Finished(ChannelId),
    /// After `QueueFull`, or a queue that was filled to the brim: half of it is free again.
    Writable(ChannelId),
    /// The channel has ended with this result (only above): one item of CBOR.
    Result(ChannelId, Bytes),
    /// The channel has ended without a result; what waited on it is dropped.
    Reset(ChannelId, Reset),
    /// A frame for another node, as it came: only its header was looked at. Comes if the configuration says `relays`;
    /// whether its source may be that is for the owner to judge, who gives it to another link with
    /// [`relay`](super::Connection::relay) or [refuses](super::Connection::refuse) it.
    Transit(Frame),
    /// Nodes beneath the peer came or went (only above). Channels to lost ones were reset.
    Route(Route),
    /// Words for a person (only above).
    Log(Log),
    /// The peer ends the link. Every channel was reset.
    Goodbye(Goodbye),
}
