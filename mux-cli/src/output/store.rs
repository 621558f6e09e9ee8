//! Gathers the output of hosts until it is wanted: in memory up to a limit, then in files, and never more than a total.
//! It decides what goes where and keeps count; the writer thread does the writing. It never looks at what the bytes
//! mean.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use bytes::BytesMut;

use super::write::{Credit, Destination, Extent, MAX_WRITE, Queue};
use crate::hub::{RequestId, StreamKind};
use crate::plan::DEFAULT_SPILL_MAX;

/// What one stream of one host may keep in memory before it goes to a file.
pub(super) const MAX_IN_MEMORY: usize = 1024 * 1024;

/// What all of them may.
pub(super) const MAX_IN_MEMORY_TOTAL: usize = 64 * 1024 * 1024;

/// A stream that went to a file once is sent after in pieces of this size: large enough that a list of them stays
/// short (4 GiB are 16,384), small enough that 20 such hosts hold 5 MiB.
const SPILL_PIECE: usize = MAX_WRITE;

/// The limits of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) in_memory: usize,
    pub(super) in_memory_total: usize,
    /// What all files together may hold; above, output is cut, and said to be.
    pub(super) spilled: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_memory: MAX_IN_MEMORY,
            in_memory_total: MAX_IN_MEMORY_TOTAL,
            spilled: DEFAULT_SPILL_MAX,
        }
    }
}

/// Where a store puts what is too large.
#[derive(Debug)]
pub(super) enum Overflow {
    /// In one file without a name: it is read back by this process.
    Shared,
    /// In a file for each stream, in this directory: they are named in the output.
    Files(PathBuf),
}

/// The output of all hosts.
#[derive(Debug)]
pub(super) struct Store {
    limits: Limits,
    overflow: Overflow,
    /// Two a host: standard output at `2 * request`, standard error after it.
    streams: Vec<Gathered>,
    in_memory: usize,
    /// The length of the shared file once everything queued is written.
    spill_end: u64,
    spilled: u64,
    /// What is in files, and what has to follow it there: a stream that is in a file ends in it.
    committed: u64,
}

/// What one stream has written.
#[derive(Debug)]
pub(super) struct Gathered {
    /// The tail that is in memory.
    memory: BytesMut,
    /// What went to the shared file before it.
    extents: Vec<Extent>,
    /// Or to a file of its own.
    pub(super) file: Option<Arc<Path>>,
    /// Bytes in either.
    pub(super) spilled: u64,
    /// Bytes that were dropped.
    pub(super) cut: u64,
    /// Of everything that was not cut; none before the first byte, and none where nothing is compared.
    digest: Option<Digest>,
    pub(super) len: u64,
    pub(super) ends_with_newline: bool,
}

/// SHA-256 so far: equal outputs are found without having two of them at hand.
struct Digest(digest::Context);

impl Digest {
    fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Digest")
    }
}

/// What two hosts must have in common to have written the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    digest: Option<Vec<u8>>,
    len: u64,
    cut: u64,
}

impl Default for Gathered {
    fn default() -> Self {
        Self {
            memory: BytesMut::new(),
            extents: Vec::new(),
            file: None,
            spilled: 0,
            cut: 0,
            digest: None,
            len: 0,
            ends_with_newline: false,
        }
    }
}

impl Gathered {
    fn take_in(&mut self, data: &[u8], is_compared: bool) {
        if is_compared && !data.is_empty() {
            let Digest(context) = self.digest.get_or_insert_with(Digest::new);
            context.update(data);
        }
        self.len += data.len() as u64;
        self.ends_with_newline = data.last().map_or(self.ends_with_newline, |byte| *byte == b'\n');
        self.memory.extend_from_slice(data);
    }

    /// What it may have in memory.
    fn allowed(&self, limits: Limits) -> usize {
        match self.spilled {
            0 => limits.in_memory,
            _ => SPILL_PIECE.min(limits.in_memory),
        }
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        let digest = self
            .digest
            .as_ref()
            .map(|digest| digest.0.clone().finish().as_ref().to_vec());
        Fingerprint {
            digest,
            len: self.len,
            cut: self.cut,
        }
    }

    /// The parts: what is in the shared file, then what is in memory.
    pub(super) fn parts(&self) -> (&[Extent], &[u8]) {
        (&self.extents, &self.memory)
    }
}

fn index(request: RequestId, kind: StreamKind) -> usize {
    let offset = match kind {
        StreamKind::Stdout => 0,
        StreamKind::Stderr => 1,
    };
    usize::try_from(request.0).map_or(usize::MAX, |request| {
        request.saturating_mul(2).saturating_add(offset)
    })
}

impl Store {
    pub(super) fn new(hosts: usize, overflow: Overflow, limits: Limits) -> Self {
        let mut streams = Vec::new();
        streams.resize_with(hosts * 2, Gathered::default);
        Self {
            limits,
            overflow,
            streams,
            in_memory: 0,
            spill_end: 0,
            spilled: 0,
            committed: 0,
        }
    }

    /// What all files together may hold.
    pub(super) fn spill_max(&self) -> u64 {
        self.limits.spilled
    }

    /// What a stream has written so far.
    pub(super) fn get(&self, request: RequestId, kind: StreamKind) -> Option<&Gathered> {
        self.streams.get(index(request, kind))
    }

    /// The hosts some of whose output went to a file, and how many bytes did.
    pub(super) fn spilled(&self) -> (HashSet<usize>, u64) {
        (self.hosts(|stream| stream.spilled > 0), self.spilled)
    }

    /// The hosts some of whose output was cut, and how many bytes were.
    pub(super) fn cut(&self) -> (HashSet<usize>, u64) {
        (
            self.hosts(|stream| stream.cut > 0),
            self.streams.iter().map(|stream| stream.cut).sum(),
        )
    }

    fn hosts(&self, wanted: impl Fn(&Gathered) -> bool) -> HashSet<usize> {
        let streams = self.streams.iter().enumerate();
        streams
            .filter(|(_, stream)| wanted(stream))
            .map(|(index, _)| index / 2)
            .collect()
    }

    /// Takes bytes in, and gives them back: they are stored, or cut.
    pub(super) fn push(&mut self, request: RequestId, kind: StreamKind, data: &[u8], queue: &mut Queue) {
        let place = index(request, kind);
        queue.give_back(Credit {
            request,
            stream: kind,
            bytes: data.len(),
        });
        let room = self.room(place);
        let Some(stream) = self.streams.get_mut(place) else {
            return;
        };
        let (kept, rest) = data.split_at(room.min(data.len()));
        stream.cut += rest.len() as u64;
        if kept.is_empty() {
            return;
        }
        stream.take_in(kept, matches!(self.overflow, Overflow::Shared));
        self.in_memory += kept.len();
        if stream.spilled > 0 {
            self.committed += kept.len() as u64;
        }
        if stream.memory.len() > stream.allowed(self.limits) {
            self.spill(place, queue);
        }
        if self.in_memory > self.limits.in_memory_total {
            self.spill_largest(queue);
        }
    }

    /// How many bytes a stream may still take.
    fn room(&self, place: usize) -> usize {
        let in_files = self.limits.spilled - self.committed;
        let Some(stream) = self.streams.get(place) else {
            return 0;
        };
        // Once cut, a stream stays cut: a gap in the middle would look like output. That memory is full is seen only
        // where files are full too.
        if stream.cut > 0 || self.in_memory > self.limits.in_memory_total {
            return 0;
        }
        let in_files = usize::try_from(in_files).unwrap_or(usize::MAX);
        if stream.spilled > 0 {
            return in_files;
        }
        // All of it in memory, or all of it in a file.
        in_files
            .max(self.limits.in_memory)
            .saturating_sub(stream.memory.len())
    }

    /// Sends the largest parts to files until half of the memory is free: one sort for many pieces, and no small ones.
    /// Those for which there is no room in files stay.
    fn spill_largest(&mut self, queue: &mut Queue) {
        let sizes = self
            .streams
            .iter()
            .enumerate()
            .map(|(place, stream)| (stream.memory.len(), place));
        let mut by_size: Vec<(usize, usize)> = sizes.filter(|(size, _)| *size > 0).collect();
        by_size.sort_unstable_by(|a, b| b.cmp(a));
        for (_, place) in by_size {
            if self.in_memory <= self.limits.in_memory_total / 2 {
                break;
            }
            if self.may_spill(place) {
                self.spill(place, queue);
            }
        }
    }

    fn may_spill(&self, place: usize) -> bool {
        self.streams.get(place).is_some_and(|stream| {
            stream.spilled > 0 || self.committed + stream.memory.len() as u64 <= self.limits.spilled
        })
    }

    /// Sends what a stream has in memory to its file.
    fn spill(&mut self, place: usize, queue: &mut Queue) {
        let Some(stream) = self.streams.get_mut(place) else {
            return;
        };
        let bytes = std::mem::take(&mut stream.memory).freeze();
        let len = bytes.len() as u64;
        let to = match &self.overflow {
            Overflow::Shared => {
                stream.extents.push(Extent {
                    offset: self.spill_end,
                    len,
                });
                self.spill_end += len;
                Destination::Spill
            }
            Overflow::Files(directory) => {
                let name = format!(
                    "{}.{}",
                    place / 2,
                    if place.is_multiple_of(2) {
                        "stdout"
                    } else {
                        "stderr"
                    }
                );
                let file = stream.file.get_or_insert_with(|| directory.join(name).into());
                Destination::File(Arc::clone(file))
            }
        };
        if stream.spilled == 0 {
            self.committed += len;
        }
        stream.spilled += len;
        self.spilled += len;
        self.in_memory -= bytes.len();
        queue.push_bytes(&to, bytes, None);
    }

    /// Sends the rest of a stream after what went to a file before, so that it is whole there.
    pub(super) fn complete(&mut self, request: RequestId, kind: StreamKind, queue: &mut Queue) {
        let place = index(request, kind);
        if self
            .streams
            .get(place)
            .is_some_and(|stream| stream.spilled > 0 && !stream.memory.is_empty())
        {
            self.spill(place, queue);
        }
    }

    /// Forgets what a stream has in memory: it was rendered.
    pub(super) fn release(&mut self, request: RequestId, kind: StreamKind) {
        if let Some(stream) = self.streams.get_mut(index(request, kind)) {
            self.in_memory -= stream.memory.len();
            stream.memory = BytesMut::new();
        }
    }
}
