//! Why a link ends and why a call is refused, sorted by whom to blame. Decides no consequence: who reconnects and what
//! a person is told belongs to the owner. What is wrong with one channel is a [`ResetCode`](crate::body::ResetCode) and ends no link.

use std::fmt;

use bytes::Bytes;

use crate::body::BodyError;
use crate::frame::{Kind, MAX_BODY, NodeId, VERSION};

/// Why a link ends. The first error of a connection is its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer broke the protocol.
    Violation(Violation),
    /// Both sides keep the protocol and have nothing in common.
    Incompatible(Incompatible),
    /// The peer's last byte came without a goodbye.
    UnexpectedEof,
    /// The peer did not say hello in time.
    NoHello,
    /// The peer answered no ping, and nothing else came from it either.
    Silent,
}

/// What the peer did that the protocol forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// These bytes stand where a frame should begin.
    Magic(Seen),
    /// No frame has this number.
    Kind(u8),
    /// A body longer than this kind may have.
    TooLong {
        /// The kind.
        kind: Kind,
        /// Bytes that were promised.
        len: usize,
    },
    /// A body shorter than this kind needs.
    TooShort {
        /// The kind.
        kind: Kind,
        /// Bytes that were promised.
        len: usize,
    },
    /// Flags that this kind doesn't have.
    Flags {
        /// The kind.
        kind: Kind,
        /// All flags of the frame.
        flags: u8,
    },
    /// A frame about the link that names a node or a channel.
    Addressed(Kind),
    /// The stream ends within a frame.
    Truncated,
    /// Another frame came before the hello.
    BeforeHello(Kind),
    /// A second hello.
    SecondHello,
    /// A frame that only the side below may send.
    FromAbove(Kind),
    /// The body of a frame about the link can't be read.
    Body {
        /// The kind.
        kind: Kind,
        /// What is wrong with it.
        error: BodyError,
    },
    /// A pong with other bytes than the last ping, or without one.
    Pong,
    /// A route that can't be: to the sender, to us, to a node that is known already, or one too many.
    Route(NodeId),
}

/// What the two ends don't have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incompatible {
    /// The peer speaks another version; ours is [`VERSION`].
    Version {
        /// Its version.
        theirs: u8,
    },
    /// Both want to open channels, or neither does.
    Role,
    /// Nobody gave this side or the other a number, or both did and they differ.
    Names,
}

/// Why a call on a connection did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The connection has failed or said goodbye.
    Ended,
    /// Only the side above opens channels, only the side below gives results, routes and words.
    WrongSide,
    /// Nothing is known of this node.
    UnknownNode,
    /// As many channels are open as the peer takes.
    TooManyChannels,
    /// Every number was used: make a new connection.
    NumbersUsedUp,
    /// The channel is not open (any more).
    UnknownChannel,
    /// Data, an end or a result after the end.
    Finished,
    /// More than [`MAX_UNSENT`](crate::connection::MAX_UNSENT) bytes would wait: send what `room` allows and wait for `Writable`.
    /// Or the peer does not read what was announced and said before.
    QueueFull,
    /// Arguments or a result that are not one item of CBOR as the specification has it.
    Body(BodyError),
}

/// Bytes that came where a frame should have begun, at most [`Seen::MAX`] of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen(Bytes);

impl Seen {
    /// Enough for a line that tells a person which program wrote it.
    pub const MAX: usize = 64;

    pub(crate) fn new(input: &[u8]) -> Self {
        let len = input.len().min(Self::MAX);
        Self(Bytes::copy_from_slice(input.get(..len).unwrap_or_default()))
    }

    /// The bytes as they came.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<Incompatible> for Error {
    fn from(incompatible: Incompatible) -> Self {
        Self::Incompatible(incompatible)
    }
}

impl From<BodyError> for Misuse {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => violation.fmt(f),
            Self::Incompatible(incompatible) => incompatible.fmt(f),
            Self::UnexpectedEof => f.write_str("the peer went away without a goodbye"),
            Self::NoHello => f.write_str("the peer did not say hello in time"),
            Self::Silent => f.write_str("the peer answers no more"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(seen) => write!(
                f,
                "{seen} came where a frame should begin: does another program write to this stream?"
            ),
            Self::Kind(number) => write!(f, "a frame of unknown kind {number}"),
            Self::TooLong { kind, len } => {
                write!(f, "{kind:?} with {len} bytes (no body exceeds {MAX_BODY})")
            }
            Self::TooShort { kind, len } => write!(f, "{kind:?} with {len} bytes, which are too few"),
            Self::Flags { kind, flags } => write!(f, "{kind:?} with flags {flags:#04x}"),
            Self::Addressed(kind) => write!(f, "{kind:?} with a node or a channel"),
            Self::Truncated => f.write_str("the stream ends within a frame"),
            Self::BeforeHello(kind) => write!(f, "{kind:?} before Hello"),
            Self::SecondHello => f.write_str("a second Hello"),
            Self::FromAbove(kind) => write!(f, "{kind:?} from above"),
            Self::Body { kind, error } => write!(f, "{kind:?}: {error}"),
            Self::Pong => f.write_str("a Pong without its Ping"),
            Self::Route(node) => write!(f, "a route to {node} that cannot be"),
        }
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version { theirs } => write!(
                f,
                "the peer speaks version {theirs} of the protocol, this side {VERSION}: install the same mux on both"
            ),
            Self::Role => f.write_str("both ends want to be above, or both below"),
            Self::Names => f.write_str("the two ends do not agree on their numbers"),
        }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the connection has ended"),
            Self::WrongSide => f.write_str("this side of the link may not do that"),
            Self::UnknownNode => f.write_str("there is no such node"),
            Self::TooManyChannels => f.write_str("the peer takes no more channels at a time"),
            Self::NumbersUsedUp => f.write_str("all channel numbers are used up"),
            Self::UnknownChannel => f.write_str("the channel is not open"),
            Self::Finished => f.write_str("the channel was finished"),
            Self::QueueFull => f.write_str("too much waits to be sent"),
            Self::Body(error) => write!(f, "a body that cannot be sent: {error}"),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Misuse {}
