//! A key exchange as a value: what was said so far and what is due next. It decides nothing; `exchange.rs` moves it on.
//!
//! ```text
//!  client:  Opened ─ KEXINIT ─> Offered ─ REPLY ─> [Asked ─ answer ─>] Agreed ─ NEWKEYS ─> over
//!  server:  Opened ─ KEXINIT ─> Awaiting ─ INIT ─> Agreed ─ NEWKEYS ─> over
//! ```

use std::fmt;
use std::time::Instant;

use bytes::Bytes;

use super::cipher::{Opener, Sealer};
use super::guess::Guess;
use super::kexinit::Negotiated;
use super::method::Offer;

/// A key exchange that is under way.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) our_kexinit: Bytes,
    pub(super) their_kexinit: Option<(Bytes, Negotiated)>,
    /// The peer's guess was wrong: its next key exchange packet is dropped (RFC 4253 §7).
    pub(super) drop_next: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) phase: Phase,
}

/// Its secrets wipe themselves where the library does so; Debug shows none.
pub(super) enum Phase {
    /// Our KEXINIT is queued, perhaps with a guess behind it.
    Opened(Option<(Guess, ClientHalf)>),
    /// Client: our half is queued.
    Offered(ClientHalf),
    /// Server: the client's half is due.
    Awaiting,
    /// Client: the owner is asked about the host key.
    Asked(Keys),
    /// Our NEWKEYS is queued.
    Agreed(Opener),
    /// An error ended it half-way.
    Failed,
}

/// What the client keeps between its half and the server's.
pub(super) struct ClientHalf {
    pub(super) offer: Offer,
    pub(super) public: Vec<u8>,
}

/// The keys of both directions.
pub(super) struct Keys {
    pub(super) opener: Opener,
    pub(super) sealer: Sealer,
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opened(_) => "Opened",
            Self::Offered(_) => "Offered",
            Self::Awaiting => "Awaiting",
            Self::Asked(_) => "Asked",
            Self::Agreed(_) => "Agreed",
            Self::Failed => "Failed",
        })
    }
}

impl Exchange {
    pub(super) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    pub(super) fn has_their_kexinit(&self) -> bool {
        self.their_kexinit.is_some()
    }
}
