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

    /// Everything that waits, if it lies in one piece, as it does for most flights.
    #[must_use]
    pub fn as_one_chunk(&self) -> Option<&[u8]> {
        match self.segments.front() {
            None => Some(&self.tail),
            Some(only) if self.segments.len() == 1 && self.tail.is_empty() => Some(only),
            Some(_) => None,
        }
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

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;

    /// A small generator: the same seed gives the same operations on every machine.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((self.0 >> 33) % bound).expect("bounds are small")
        }
    }

    /// The queue next to what it stands for: bytes in a row.
    #[derive(Default)]
    struct Pair {
        queue: SendQueue,
        model: VecDeque<u8>,
        next: u8,
    }

    impl Pair {
        fn fresh(&mut self, len: usize) -> Vec<u8> {
            let data: Vec<u8> = std::iter::successors(Some(self.next), |byte| Some(byte.wrapping_add(1)))
                .take(len)
                .collect();
            self.next = self
                .next
                .wrapping_add(u8::try_from(len % 256).expect("below 256"));
            self.model.extend(&data);
            data
        }

        fn push(&mut self, len: usize) {
            let data = self.fresh(len);
            self.queue.push(Bytes::from(data));
        }

        fn put(&mut self, len: usize) {
            let data = self.fresh(len);
            self.queue.put_slice(&data);
        }

        fn encode(&mut self, len: usize) {
            let data = self.fresh(len);
            self.queue.tail().extend_from_slice(&data);
        }

        fn advance(&mut self, len: usize) {
            let len = len.min(self.model.len());
            self.queue.advance(len);
            self.model.drain(..len);
        }

        fn take(&mut self, max: usize) {
            let taken = self.queue.take(max);
            assert!(taken.len() <= max);
            assert_eq!(
                taken.is_empty(),
                max == 0 || self.model.is_empty(),
                "some of it lies in one piece"
            );
            let expected: Vec<u8> = self.model.drain(..taken.len()).collect();
            assert_eq!(taken, expected);
        }

        fn check(&self) {
            assert_eq!(self.queue.len(), self.model.len());
            assert_eq!(self.queue.is_empty(), self.model.is_empty());
            assert_eq!(self.queue.has_room(), self.model.len() < LOW_WATER);
            let mut slices = [IoSlice::new(&[]); 8];
            let filled = self.queue.chunks_vectored(&mut slices);
            assert!(
                slices[..filled].iter().all(|slice| !slice.is_empty()),
                "no slice is wasted"
            );
            let mut shown = Vec::new();
            slices[..filled]
                .iter()
                .for_each(|slice| shown.extend_from_slice(slice));
            assert!(
                filled == slices.len() || shown.len() == self.model.len(),
                "all of it, or all that fits"
            );
            assert!(self.model.iter().take(shown.len()).eq(&shown));
        }
    }

    #[test]
    fn behaves_like_bytes_in_a_row() {
        for seed in 0..60 {
            let (mut random, mut pair) = (Random(seed), Pair::default());
            for _ in 0..120 {
                match random.below(8) {
                    0 => pair.push(random.below(100)),
                    1 => pair.push(COPY_BELOW - 1 + random.below(3)),
                    2 => pair.push(random.below(20_000)),
                    3 => pair.put(random.below(300)),
                    4 => pair.encode(random.below(5_000)),
                    5 => pair.take(random.below(10_000)),
                    6 => pair.advance(random.below(30_000)),
                    _ => pair.advance(usize::MAX),
                }
                pair.check();
            }
        }
    }

    #[test]
    fn large_payloads_are_passed_on_and_small_ones_gathered() {
        let mut queue = SendQueue::new();
        let large = Bytes::from(vec![1; COPY_BELOW]);
        queue.put_slice(b"header");
        queue.push(Bytes::from_static(b"small"));
        queue.push(large.clone());
        queue.push(Bytes::from_static(b"trailer"));
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(queue.chunks_vectored(&mut slices), 3);
        assert_eq!(&*slices[0], b"headersmall");
        assert_eq!(slices[1].as_ptr(), large.as_ptr(), "without a copy");
        assert_eq!(&*slices[2], b"trailer");
    }

    #[test]
    fn an_emptied_queue_uses_its_buffer_again() {
        let mut queue = SendQueue::new();
        queue.put_slice(&[0; 1000]);
        let buffer = queue.tail().as_ptr();
        queue.advance(400);
        queue.advance(600);
        queue.put_slice(&[0; 1000]);
        assert_eq!(queue.tail().as_ptr(), buffer);
    }
}
