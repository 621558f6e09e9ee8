//! Frames: the header, the table of kinds, how long each may be. Decides whether bytes are a frame; never what a frame
//! means.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::COPY_BELOW;
use crate::error::{Error, Incompatible, Seen, Violation};

/// How every frame begins. The first byte never occurs in UTF-8 and is no ASCII, so that no line of a login banner
/// passes for a frame.
pub const MAGIC: [u8; 3] = [0xf5, b'm', b'x'];

/// The version of the protocol: the fourth byte of every frame, in this version and in all that follow.
pub const VERSION: u8 = 1;

/// Bytes before the body.
pub const HEADER_LEN: usize = 20;

/// The longest body. At 25 MB/s it delays what waits behind it by 1.3 ms, and its header is 0.06 % of it.
pub const MAX_BODY: usize = 32 * 1024;

/// The longest body that describes something instead of carrying it: a greeting, a farewell, a reason.
pub const MAX_NOTE: usize = 4 * 1024;

/// In `flags` of [`Kind::Data`]: the bytes belong to the second stream (standard error).
pub const FLAG_STDERR: u8 = 0x01;

/// A context in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Whoever is at the other end of the link, whatever its number.
    pub const NEIGHBOUR: Self = Self(0);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// What a frame is for. The numbers below 16 are about the link and concern its two ends alone; the others are about a
/// channel and may be relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The first frame each way: who I am.
    Hello = 1,
    /// Are you there? Eight bytes that come back.
    Ping = 2,
    /// The eight bytes of a ping.
    Pong = 3,
    /// Nodes beneath the sender came or went.
    Route = 4,
    /// Words for a person.
    Log = 5,
    /// The last frame of a link: why it ends.
    Goodbye = 6,
    /// A channel begins.
    Open = 16,
    /// Bytes of a channel.
    Data = 17,
    /// That many more bytes may be sent.
    Credit = 18,
    /// The sender has sent its last byte.
    Finish = 19,
    /// How it went; ends the channel.
    Result = 20,
    /// Why it went no further; ends the channel.
    Reset = 21,
}

/// Every kind with the shortest and the longest body, and the flags that may be set.
const KINDS: &[(Kind, usize, usize, u8)] = &[
    (Kind::Hello, 1, MAX_NOTE, 0),
    (Kind::Ping, 8, 8, 0),
    (Kind::Pong, 8, 8, 0),
    (Kind::Route, 1, MAX_BODY, 0),
    (Kind::Log, 1, MAX_NOTE, 0),
    (Kind::Goodbye, 1, MAX_NOTE, 0),
    (Kind::Open, 1, MAX_BODY, 0),
    // Not empty: empty ones would need no credit, so that a sender of them could not be slowed.
    (Kind::Data, 1, MAX_BODY, FLAG_STDERR),
    (Kind::Credit, 4, 4, 0),
    (Kind::Finish, 0, 0, 0),
    (Kind::Result, 1, MAX_BODY, 0),
    (Kind::Reset, 1, MAX_NOTE, 0),
];

impl Kind {
    /// The number in the header.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether it concerns the two ends of a link alone.
    #[must_use]
    pub fn is_link(self) -> bool {
        self.number() < Self::Open.number()
    }
}

/// What stands before every body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the frame is for.
    pub kind: Kind,
    /// [`FLAG_STDERR`] or nothing.
    pub flags: u8,
    /// Whom it is for.
    pub destination: NodeId,
    /// Who sent it.
    pub source: NodeId,
    /// The number that the opener gave to the channel; zero in frames about the link.
    pub channel: u32,
    /// Bytes of the body.
    pub len: usize,
}

impl Header {
    /// A header between the two ends of a link, about the link itself.
    #[must_use]
    pub fn link(kind: Kind, len: usize) -> Self {
        Self {
            kind,
            flags: 0,
            destination: NodeId::NEIGHBOUR,
            source: NodeId::NEIGHBOUR,
            channel: 0,
            len,
        }
    }

    /// The bytes of it. `len` beyond what sixteen bits hold is cut: [`Frame::new`] keeps bodies below [`MAX_BODY`].
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let [m0, m1, m2] = MAGIC;
        let [l0, l1] = u16::try_from(self.len).unwrap_or(u16::MAX).to_be_bytes();
        let [d0, d1, d2, d3] = self.destination.0.to_be_bytes();
        let [s0, s1, s2, s3] = self.source.0.to_be_bytes();
        let [c0, c1, c2, c3] = self.channel.to_be_bytes();
        let kind = self.kind.number();
        [
            m0, m1, m2, VERSION, kind, self.flags, l0, l1, d0, d1, d2, d3, s0, s1, s2, s3, c0, c1, c2, c3,
        ]
    }

    /// The header at the front of `input`, once it is complete; wrong bytes are refused as soon as they are there.
    ///
    /// # Errors
    /// The bytes are no header of this version, or one that promises a body that its kind can't have.
    pub fn decode(input: &[u8]) -> Result<Option<Self>, Error> {
        if input.iter().zip(MAGIC).any(|(seen, wanted)| *seen != wanted) {
            return Err(Violation::Magic(Seen::new(input)).into());
        }
        if let Some(&theirs) = input.get(MAGIC.len())
            && theirs != VERSION
        {
            return Err(Incompatible::Version { theirs }.into());
        }
        let Some(&bytes) = input.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let (kind, flags, len, [destination, source, channel]) = fields(bytes);
        let Some(&(kind, shortest, longest, allowed)) = KINDS.iter().find(|row| row.0.number() == kind)
        else {
            return Err(Violation::Kind(kind).into());
        };
        if len > longest {
            return Err(Violation::TooLong { kind, len }.into());
        }
        if len < shortest {
            return Err(Violation::TooShort { kind, len }.into());
        }
        if flags & !allowed != 0 {
            return Err(Violation::Flags { kind, flags }.into());
        }
        let header = Self {
            kind,
            flags,
            destination: NodeId(destination),
            source: NodeId(source),
            channel,
            len,
        };
        let is_addressed = header != Self::link(kind, len);
        if kind.is_link() && is_addressed {
            return Err(Violation::Addressed(kind).into());
        }
        Ok(Some(header))
    }
}

/// Kind, flags, length of the body; destination, source and channel.
fn fields(header: [u8; HEADER_LEN]) -> (u8, u8, usize, [u32; 3]) {
    #[rustfmt::skip]
    let [_, _, _, _, kind, flags, l0, l1, d0, d1, d2, d3, s0, s1, s2, s3, c0, c1, c2, c3] = header;
    let addresses = [[d0, d1, d2, d3], [s0, s1, s2, s3], [c0, c1, c2, c3]];
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    (kind, flags, len, addresses.map(u32::from_be_bytes))
}

/// A header and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// With the length of `body`.
    pub header: Header,
    /// At most [`MAX_BODY`] bytes.
    pub body: Bytes,
}

impl Frame {
    /// `header` with the length that `body` has.
    #[must_use]
    pub fn new(header: Header, body: Bytes) -> Self {
        debug_assert!(body.len() <= MAX_BODY, "whoever makes a body bounds it");
        let len = body.len();
        Self {
            header: Header { len, ..header },
            body,
        }
    }

    /// Takes the first frame off `input`; `None` until all of it is there.
    ///
    /// # Errors
    /// As [`Header::decode`]: before the body has arrived, and `input` stays as it is.
    pub fn take(input: &mut BytesMut) -> Result<Option<Self>, Error> {
        let Some(header) = Header::decode(input)? else {
            return Ok(None);
        };
        if input.len() < HEADER_LEN + header.len {
            return Ok(None);
        }
        let mut frame = input.split_to(HEADER_LEN + header.len);
        let body = frame.split_off(HEADER_LEN);
        // A slice of the loop's read buffer would keep all of it alive for a few bytes.
        let body = if body.len() >= COPY_BELOW {
            body.freeze()
        } else {
            Bytes::copy_from_slice(&body)
        };
        Ok(Some(Self { header, body }))
    }
}

#[cfg(test)]
mod tests;
