//! The read buffer that all links of a loop share. Decides how much of it a read gets and when it is renewed; an
//! idle link owns none of it.

use bytes::BytesMut;

/// One read takes at most this: four of the largest packets that are common, so that few of them lie across two reads,
/// and what a payload that was sliced out of it may keep alive at worst.
const SCRATCH: usize = 128 * 1024;

/// A read gets at least this much room; with less left the buffer is renewed.
pub(crate) const READ_MIN: usize = 16 * 1024;

/// Reads go one behind the other through the same 128 KiB, so that small ones cost neither an allocation nor the
/// clearing of the whole buffer.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    buffer: BytesMut,
}

impl Scratch {
    /// Room for a read of at least [`READ_MIN`] bytes behind `gap` bytes that are left to what is to go before it.
    pub(crate) fn room(&mut self, gap: usize) -> &mut [u8] {
        if self.buffer.len() < gap + READ_MIN {
            // Reclaims the memory unless a payload that was sliced out of it is still around.
            self.buffer.clear();
            self.buffer.reserve(SCRATCH);
            self.buffer.resize(SCRATCH, 0);
        }
        let (_, room) = self.buffer.split_at_mut(gap);
        room
    }

    /// The first `len` bytes: the gap and what was read.
    pub(crate) fn take(&mut self, len: usize) -> BytesMut {
        self.buffer.split_to(len)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn small_reads_share_one_allocation() {
        let mut scratch = Scratch::default();
        let first = scratch.room(0).as_ptr();
        for _ in 0..10_000 {
            assert!(scratch.room(0).len() >= READ_MIN);
            drop(scratch.take(100));
        }
        let start = first as usize;
        let now = scratch.room(0).as_ptr() as usize;
        assert!(
            (start..start + SCRATCH).contains(&now),
            "the buffer moved although nobody held a part of it"
        );
    }

    #[test]
    fn a_payload_that_is_kept_is_not_overwritten() {
        let mut scratch = Scratch::default();
        let mut kept = Vec::new();
        for round in 0..20_u8 {
            scratch.room(0)[..5000].fill(round);
            kept.push(scratch.take(5000).freeze());
        }
        for (round, payload) in kept.iter().enumerate() {
            assert!(payload.iter().all(|&byte| usize::from(byte) == round));
        }
    }

    #[test]
    fn the_gap_comes_before_what_is_read() {
        let mut scratch = Scratch::default();
        scratch.room(3)[..2].copy_from_slice(b"de");
        let mut input = scratch.take(5);
        input[..3].copy_from_slice(b"abc");
        assert_eq!(&input[..], b"abcde");
    }
}
