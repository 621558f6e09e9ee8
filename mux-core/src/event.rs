//! What the loop tells its owner. A closed list of plain values; never a callback.

use std::fmt;
use std::process::ExitStatus;

use mux_proto::Protocol;

use crate::{Key, LinkError, Stream};

/// What a [`Reactor`](crate::Reactor) found out in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A registered source can be read or written.
    Io(Key, Readiness),
    /// The key was requeued, or has a source that the system cannot poll and that is therefore always ready.
    Again(Key),
    /// The time set for the key has come. A timer fires once.
    Timer(Key),
    /// A [`Waker`](crate::Waker) was used since the last turn: look into the mailboxes.
    Woken,
}

/// In which ways a source is ready. Edge-triggered: said once, until the source was drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// Reading will not block. Also set by errors, which reading finds.
    pub readable: bool,
    /// Writing will not block. Also set by errors, which writing finds.
    pub writable: bool,
    /// The peer has sent its last byte: a short read does not mean that nothing follows.
    pub read_closed: bool,
    /// The source has failed; what `SO_ERROR` says is why.
    pub failed: bool,
}

/// What a [`Driver`](crate::Driver) tells the application.
///
/// The events of a link come in the order in which they happened; [`Event::Closed`] is the last one of its key.
pub enum Event<P: Protocol> {
    /// A link opened by [`connect`](crate::Driver::connect) or [`connect_unix`](crate::Driver::connect_unix)
    /// reached its peer.
    Connected(Key),
    /// An event of the link's protocol.
    Protocol(Key, P::Event),
    /// The link is gone and its key with it. Gives the protocol back, for what its owner still wants to know.
    /// `Ok` if both sides had finished or the protocol asked for the end.
    Closed(Key, Box<P>, Result<(), LinkError<P::Error>>),
    /// A [`Stream::Memory`] link has bytes to send: take them with
    /// [`take_outgoing`](crate::Driver::take_outgoing). Said once, until a take got less than it asked for.
    Outgoing(Key),
    /// A [`Stream::Memory`] link will send nothing more; the other direction stays open.
    Finished(Key),
    /// The protocol of a [`Stream::Memory`] link has seen this many more of the delivered bytes: whoever carries
    /// them may refill its window by as much.
    Consumed(Key, usize),
    /// A listener (the key) accepted a connection, which is not part of the loop until it is added.
    Accepted(Key, Stream),
    /// A child ended. `None` if somebody else has already collected its status.
    Exited(Key, Option<ExitStatus>),
    /// A signal asked for with [`signals`](crate::Driver::signals) arrived, once or several times.
    Signal(i32),
    /// An application timer, a source that the application registered, or a wake-up from another thread.
    Ready(Ready),
}

impl<P: Protocol> Event<P> {
    /// The link that the event is about, if it is about one.
    #[must_use]
    pub fn link(&self) -> Option<Key> {
        match self {
            Self::Connected(key)
            | Self::Protocol(key, _)
            | Self::Closed(key, ..)
            | Self::Outgoing(key)
            | Self::Finished(key)
            | Self::Consumed(key, _) => Some(*key),
            Self::Accepted(..) | Self::Exited(..) | Self::Signal(_) | Self::Ready(_) => None,
        }
    }
}

impl<P: Protocol> fmt::Debug for Event<P>
where
    P::Event: fmt::Debug,
    P::Error: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected(key) => f.debug_tuple("Connected").field(key).finish(),
            Self::Protocol(key, event) => f.debug_tuple("Protocol").field(key).field(event).finish(),
            Self::Closed(key, _, result) => f.debug_tuple("Closed").field(key).field(result).finish(),
            Self::Outgoing(key) => f.debug_tuple("Outgoing").field(key).finish(),
            Self::Finished(key) => f.debug_tuple("Finished").field(key).finish(),
            Self::Consumed(key, count) => f.debug_tuple("Consumed").field(key).field(count).finish(),
            Self::Accepted(key, stream) => f.debug_tuple("Accepted").field(key).field(stream).finish(),
            Self::Exited(key, status) => f.debug_tuple("Exited").field(key).field(status).finish(),
            Self::Signal(number) => f.debug_tuple("Signal").field(number).finish(),
            Self::Ready(ready) => f.debug_tuple("Ready").field(ready).finish(),
        }
    }
}
