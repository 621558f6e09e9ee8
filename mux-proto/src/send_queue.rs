//! Bytes that wait to be written. Decides what is copied and what is passed on; never touches a descriptor.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// A protocol is asked for more only while fewer bytes than this wait: enough for one full socket buffer's worth of
/// progress between two readiness events, little enough that 10,000 stalled links hold 640 MiB at the very worst.
pub const LOW_WATER: usize = 64 * 1024;

/// Payloads of at least this size are queued as they are; smaller ones are copied into the tail, where a copy is
/// cheaper than a segment and keeps no larger buffer alive.
pub const COPY_BELOW: usize = 4 * 1024;

/// An ordered queue of bytes with a low-water mark, written with one vectored write.
///
/// Small pieces are gathered in one growing tail, large ones are passed on without a copy. A queue that was emptied
/// keeps the tail's buffer for the next flight; put [`SendQueue::new`] in its place to give it back.
#[derive(Debug, Default)]
pub struct SendQueue {
    segments: VecDeque<Bytes>,
    tail: BytesMut,
    queued: usize,
}

impl SendQueue {
    /// An empty queue; holds no memory until something is queued.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queued + self.tail.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a protocol may go on filling: fewer than [`LOW_WATER`] bytes wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.len() < LOW_WATER
    }

    /// Appends `data`: without a copy from [`COPY_BELOW`] bytes on.
    pub fn push(&mut self, data: Bytes) {
        if data.len() < COPY_BELOW {
            self.tail.extend_from_slice(&data);
            return;
        }
        self.seal_tail();
        self.queued += data.len();
        self.segments.push_back(data);
    }

    /// Appends a copy of `data`.
    pub fn put_slice(&mut self, data: &[u8]) {
        self.tail.extend_from_slice(data);
    }

    /// The growing end of the queue, to encode and encrypt into in place. Bytes already in it stay as they are.
    pub fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Fills `slices` from the front of the queue and returns how many were filled.
    pub fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let waiting = self.segments.iter().map(|segment| &segment[..]);
        let chunks = waiting
            .chain(std::iter::once(&self.tail[..]))
            .filter(|chunk| !chunk.is_empty());
        slices
            .iter_mut()
            .zip(chunks)
            .map(|(slice, chunk)| *slice = IoSlice::new(chunk))
            .count()
    }

    /// Drops the first `count` bytes, which were written.
    pub fn advance(&mut self, mut count: usize) {
        while let Some(front) = self.segments.front_mut() {
            let step = count.min(front.len());
            front.advance(step);
            self.queued -= step;
            count -= step;
            if !front.is_empty() {
                return;
            }
            self.segments.pop_front();
        }
        let step = count.min(self.tail.len());
        self.tail.advance(step);
        if self.tail.is_empty() {
            self.tail.clear();
        }
    }

    /// Takes up to `max` bytes from the front, as many as lie in one piece, for links without a descriptor.
    pub fn take(&mut self, max: usize) -> Bytes {
        if self.segments.is_empty() {
            let step = max.min(self.tail.len());
            let taken = self.tail.split_to(step).freeze();
            if self.tail.is_empty() {
                self.tail = BytesMut::new();
            }
            return taken;
        }
        let Some(front) = self.segments.front_mut() else {
            return Bytes::new();
        };
        let taken = front.split_to(max.min(front.len()));
        self.queued -= taken.len();
        if front.is_empty() {
            self.segments.pop_front();
        }
        taken
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            let sealed = std::mem::take(&mut self.tail).freeze();
            self.queued += sealed.len();
            self.segments.push_back(sealed);
        }
    }
}
