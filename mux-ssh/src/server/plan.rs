//! How a server misbehaves, as values: a [`Plan`] is a list of steps, each an act at a point of the server's own
//! output. The points never depend on what the client sends, because every point that matters to a client is one at
//! which it waits for bytes of the server. Decides nothing; `tap.rs` carries it out.

use bytes::Bytes;

/// A kind of thing that the server sends, whatever its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The identification line (RFC 4253 §4.2); not a packet.
    Ident,
    /// `SSH_MSG_KEXINIT`. The second one belongs to the first rekey.
    KexInit,
    /// `SSH_MSG_KEX_ECDH_REPLY` and its namesakes.
    KexReply,
    /// `SSH_MSG_NEWKEYS`.
    NewKeys,
    /// `SSH_MSG_EXT_INFO`.
    ExtInfo,
    /// `SSH_MSG_SERVICE_ACCEPT`.
    ServiceAccept,
    /// `SSH_MSG_USERAUTH_PK_OK`, or what its number means in another method: questions, an expired password.
    PkOk,
    /// `SSH_MSG_USERAUTH_FAILURE`.
    AuthFailure,
    /// `SSH_MSG_USERAUTH_SUCCESS`.
    AuthSuccess,
    /// `SSH_MSG_CHANNEL_OPEN_CONFIRMATION`.
    OpenConfirmation,
    /// `SSH_MSG_CHANNEL_OPEN_FAILURE`.
    OpenFailure,
    /// `SSH_MSG_CHANNEL_SUCCESS`, which answers an exec.
    ChannelSuccess,
    /// `SSH_MSG_CHANNEL_WINDOW_ADJUST`.
    WindowAdjust,
    /// `SSH_MSG_CHANNEL_DATA` or `SSH_MSG_CHANNEL_EXTENDED_DATA`.
    Output,
    /// `SSH_MSG_CHANNEL_REQUEST`: exit-status or exit-signal.
    ExitReport,
    /// `SSH_MSG_CHANNEL_EOF`.
    Eof,
    /// `SSH_MSG_CHANNEL_CLOSE`.
    ChannelClose,
    /// Everything else.
    Other,
}

impl Moment {
    /// The moment that a packet with this message number is.
    #[must_use]
    pub fn of_message(number: u8) -> Self {
        match number {
            6 => Self::ServiceAccept,
            7 => Self::ExtInfo,
            20 => Self::KexInit,
            21 => Self::NewKeys,
            31 => Self::KexReply,
            51 => Self::AuthFailure,
            52 => Self::AuthSuccess,
            60 => Self::PkOk,
            91 => Self::OpenConfirmation,
            92 => Self::OpenFailure,
            93 => Self::WindowAdjust,
            94 | 95 => Self::Output,
            96 => Self::Eof,
            97 => Self::ChannelClose,
            98 => Self::ExitReport,
            99 => Self::ChannelSuccess,
            _ => Self::Other,
        }
    }
}

/// When a step is due. Counts start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before the given occurrence of this moment leaves.
    Before(Moment, u32),
    /// Directly behind it, in the same write.
    After(Moment, u32),
    /// Behind the data packet with which this many bytes of output have left.
    OutputBytes(u64),
}

/// What happens at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// These bytes leave as they are, outside of any packet.
    Raw(Bytes),
    /// A packet with this payload leaves under the keys of that point, whatever the phase forbids.
    Packet(Bytes),
    /// The same payload this many times, made as the client takes it: a flood costs the server no memory.
    Flood {
        /// Payload of each packet.
        payload: Bytes,
        /// How many of them.
        times: u32,
    },
    /// The packet (or identification) at a [`Point::Before`] does not leave; its sequence number is not used up.
    Drop,
    /// The packet at a [`Point::Before`] is encrypted and then lost on its way: its sequence number is used up.
    Lose,
    /// Another payload leaves in place of the one at a [`Point::Before`].
    Replace(Bytes),
    /// Flips bits of the payload at a [`Point::Before`], before it is encrypted.
    Patch {
        /// Which byte, counted from the end: 0 is the last one. A signature or a tag is at the end.
        from_end: usize,
        /// The bits.
        mask: u8,
    },
    /// Flips one bit of the packet at a [`Point::Before`] after it was encrypted; counted modulo its length.
    FlipBit(usize),
    /// The length field of the packet at a [`Point::Before`] says this; encrypted and authenticated like any other.
    Length(u32),
    /// The padding field of the packet at a [`Point::Before`] says this; encrypted and authenticated like any other.
    Padding(u8),
    /// The packet at a [`Point::Before`] leaves a second time, bit by bit the same.
    Replay,
    /// Of the packet at a [`Point::Before`] only so many bytes leave, and nothing after them. The server goes on
    /// reading.
    Cut(usize),
    /// Nothing leaves any more. The server goes on reading.
    Stall,
    /// Nothing leaves any more and nothing is read any more.
    NeverRead,
    /// What is queued leaves, then both directions close.
    Close,
    /// What is queued leaves, then the sending direction closes.
    HalfClose,
}

/// One act at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Point,
    /// What.
    pub act: Act,
}

/// What a server does beside its duty. Empty: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps; several may share a point and then happen in this order.
    pub steps: Vec<Step>,
}

impl Plan {
    /// A plan without steps: the server behaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The plan with one more step.
    #[must_use]
    pub fn with(mut self, at: Point, act: Act) -> Self {
        self.steps.push(Step { at, act });
        self
    }
}
