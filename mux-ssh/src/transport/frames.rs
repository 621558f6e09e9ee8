//! Payloads that wait to be encrypted, one behind the other in one buffer. It decides nothing about their order.

use std::fmt;

use bytes::{Buf, BytesMut};

use crate::wire::Writer;

const LENGTH: usize = 4;

/// What the first payload finds: enough for all that a login sends but KEXINIT, of which [`Frames::push_bytes`] knows the
/// length.
const ROOM: usize = 256;

/// A queue of payloads, each behind its length. Holds no memory while it is empty.
#[derive(Default)]
pub(super) struct Frames {
    bytes: BytesMut,
    count: u32,
}

impl Frames {
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        if self.bytes.is_empty() {
            self.bytes.reserve(ROOM);
        }
        Writer::new(&mut self.bytes).string_of(write);
        self.count += 1;
    }

    /// A payload that is there already.
    pub(super) fn push_bytes(&mut self, payload: &[u8]) {
        self.bytes.reserve(LENGTH + payload.len());
        self.push(|packet| {
            packet.raw(payload);
        });
    }

    pub(super) fn front(&self) -> Option<&[u8]> {
        self.iter().next()
    }

    pub(super) fn pop(&mut self) {
        let Some(length) = self.front().map(<[u8]>::len) else {
            return;
        };
        self.bytes.advance(LENGTH + length);
        self.count -= 1;
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk::<LENGTH>()?;
            let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (payload, behind) = behind.split_at_checked(length)?;
            rest = behind;
            Some(payload)
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Payloads may be passwords: only their number is shown.
impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frames({})", self.count)
    }
}
