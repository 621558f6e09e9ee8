//! What is to be written where, and what may be read on once it is: the values between the renderers and the writer
//! thread. They order nothing and open nothing.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::hub::{RequestId, StreamKind};

/// The most bytes of one [`Write`] that carries its bytes: a quarter of the writer's budget, so that one host's output
/// never fills it alone.
pub(crate) const MAX_WRITE: usize = 256 * 1024;

/// One thing to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where to.
    pub to: Destination,
    /// What.
    pub payload: Payload,
    /// What the hub may consume once it is written.
    pub credit: Option<Credit>,
}

/// Where bytes go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The progress line, in place of the one before; empty: none.
    Progress,
    /// The end of the spill file.
    Spill,
    /// The end of this file, which is private and in a directory of the run.
    File(Arc<Path>),
    /// The end of a host's own file; what was in it before the run is replaced.
    Saved {
        /// Whose.
        request: RequestId,
        /// The file.
        path: Arc<Path>,
    },
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// These bytes.
    Bytes(Bytes),
    /// These parts of the spill file, one after the other.
    Spilled {
        /// Where they are.
        extents: Vec<Extent>,
        /// Whether terminal escapes are to be made visible.
        neutralise: bool,
    },
}

/// A part of the spill file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Bytes that a host may send more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Whose.
    pub request: RequestId,
    /// Of which stream.
    pub stream: StreamKind,
    /// How many.
    pub bytes: usize,
}

impl Write {
    pub(crate) fn bytes(to: Destination, bytes: impl Into<Bytes>) -> Self {
        Self {
            to,
            payload: Payload::Bytes(bytes.into()),
            credit: None,
        }
    }

    /// The memory that it takes while it waits.
    pub(crate) fn cost(&self) -> usize {
        match &self.payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Spilled { extents, .. } => extents.len() * size_of::<Extent>(),
        }
    }
}

/// Writes and credits that wait to be fetched, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    writes: VecDeque<Write>,
    waiting: usize,
    consumed: VecDeque<Credit>,
    held_back: HashMap<(RequestId, StreamKind), usize>,
}

impl Queue {
    /// Above this many waiting bytes nothing is given back: what waits must not grow while nobody reads.
    const HIGH_WATER: usize = 1024 * 1024;

    pub(super) fn push(&mut self, write: Write) {
        self.waiting += write.cost();
        self.writes.push_back(write);
    }

    /// Bytes in pieces that fit the writer's budget; the credit comes with the last.
    pub(super) fn push_bytes(&mut self, to: &Destination, mut bytes: Bytes, credit: Option<Credit>) {
        while bytes.len() > MAX_WRITE {
            self.push(Write::bytes(to.clone(), bytes.split_to(MAX_WRITE)));
        }
        if !bytes.is_empty() || credit.is_some() {
            self.push(Write {
                to: to.clone(),
                payload: Payload::Bytes(bytes),
                credit,
            });
        }
    }

    /// Gives back what was stored; at once, unless too much waits to be written.
    pub(super) fn give_back(&mut self, credit: Credit) {
        if credit.bytes == 0 {
            return;
        }
        if self.waiting <= Self::HIGH_WATER {
            self.consumed.push_back(credit);
        } else {
            *self.held_back.entry((credit.request, credit.stream)).or_default() += credit.bytes;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Write> {
        let write = self.writes.pop_front()?;
        self.waiting -= write.cost();
        if self.waiting <= Self::HIGH_WATER {
            let held_back = self.held_back.drain();
            self.consumed
                .extend(held_back.map(|((request, stream), bytes)| Credit {
                    request,
                    stream,
                    bytes,
                }));
        }
        Some(write)
    }

    pub(super) fn pop_consumed(&mut self) -> Option<Credit> {
        self.consumed.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
}
