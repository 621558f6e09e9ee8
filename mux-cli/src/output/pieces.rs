//! Bytes of one stream that wait to be printed: whole lines in front, the beginning of one behind them. Decides what is
//! copied and where a piece ends; never breaks a line by itself.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Whole lines of at least this size may be passed on as they came. A piece of what was read keeps all of it alive: of
/// 128 KiB, so that what waits takes at most eight times its size.
const PASSED_ON: usize = 16 * 1024;

/// Where a line need not lie in one piece, no more is gathered in one: a buffer that grows is copied as it does.
const GATHERED: usize = 64 * 1024;

/// A buffer that grew larger than this is given back when it is empty.
const KEPT_CAPACITY: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Pieces as they came or were gathered, in front of what is being gathered.
    passed_on: VecDeque<Bytes>,
    /// Bytes in them.
    passed_on_len: usize,
    gathered: BytesMut,
    /// Bytes at the front that are whole lines, or are to be broken off.
    complete: usize,
}

impl Pieces {
    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.passed_on_len + self.gathered.len()
    }

    pub(super) fn has_complete(&self) -> bool {
        self.complete > 0
    }

    /// Takes bytes in. `may_pass_on`: a line that is taken out need not lie in one piece.
    pub(super) fn push(&mut self, mut data: Bytes, may_pass_on: bool) {
        let whole = memchr::memrchr(b'\n', &data).map_or(0, |end| end + 1);
        if whole > 0 {
            self.complete = self.len() + whole;
        }
        if may_pass_on && whole >= PASSED_ON {
            let rest = data.split_off(whole);
            self.pass_on_gathered();
            self.passed_on_len += data.len();
            self.passed_on.push_back(data);
            data = rest;
        }
        if may_pass_on && self.gathered.len() + data.len() > GATHERED {
            self.pass_on_gathered();
            self.gathered.reserve(GATHERED);
        }
        self.gathered.extend_from_slice(&data);
    }

    fn pass_on_gathered(&mut self) {
        if !self.gathered.is_empty() {
            self.passed_on_len += self.gathered.len();
            self.passed_on
                .push_back(std::mem::take(&mut self.gathered).freeze());
        }
    }

    /// What there is counts as whole lines, newline or not.
    pub(super) fn complete_all(&mut self) {
        self.complete = self.len();
    }

    /// Takes whole lines off the front, about `max` bytes of them but at least one line.
    pub(super) fn take(&mut self, max: usize) -> Vec<Bytes> {
        let mut taken = Vec::new();
        let mut room = max;
        while self.complete > 0 {
            let ends_line = taken.last().is_none_or(|piece: &Bytes| piece.ends_with(b"\n"));
            // What little is left would only be a small write.
            if room < max.div_ceil(2) && ends_line {
                break;
            }
            let piece = self.take_piece(room);
            room = room.saturating_sub(piece.len());
            taken.push(piece);
        }
        taken
    }

    fn take_piece(&mut self, room: usize) -> Bytes {
        let piece = match self.passed_on.front_mut() {
            Some(front) => {
                let complete = front.get(..self.complete).unwrap_or(front);
                let piece = front.split_to(cut(complete, room));
                if front.is_empty() {
                    self.passed_on.pop_front();
                }
                self.passed_on_len -= piece.len();
                piece
            }
            None => {
                let complete = self.gathered.get(..self.complete).unwrap_or(&self.gathered);
                let len = cut(complete, room);
                take_front(&mut self.gathered, len)
            }
        };
        self.complete = self.complete.saturating_sub(piece.len());
        piece
    }
}

/// How much of `piece` to take: all that fits up to the end of a line, else one line.
fn cut(piece: &[u8], room: usize) -> usize {
    let last = |room: &[u8]| memchr::memrchr(b'\n', room);
    let first = || memchr::memchr(b'\n', piece);
    match piece.get(..room) {
        None => piece.len(),
        Some(fits) => last(fits).or_else(first).map_or(piece.len(), |end| end + 1),
    }
}

/// The first `len` bytes, with a copy of the smaller part at most. A small buffer is kept for what comes next.
fn take_front(buffer: &mut BytesMut, len: usize) -> Bytes {
    if len < KEPT_CAPACITY && buffer.len() == len && buffer.capacity() <= KEPT_CAPACITY {
        let copy = Bytes::copy_from_slice(buffer);
        buffer.clear();
        return copy;
    }
    if buffer.len() - len > len {
        return buffer.split_to(len).freeze();
    }
    let rest = BytesMut::from(buffer.get(len..).unwrap_or_default());
    buffer.truncate(len);
    std::mem::replace(buffer, rest).freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that can be taken, piece by piece.
    fn all(pieces: &mut Pieces, max: usize) -> Vec<Vec<u8>> {
        let some = std::iter::from_fn(|| Some(pieces.take(max)).filter(|taken| !taken.is_empty()));
        some.map(|taken| taken.concat()).collect()
    }

    fn lines(len: usize, line: usize) -> Bytes {
        (0..len)
            .map(|at| if (at + 1) % line == 0 { b'\n' } else { b'x' })
            .collect()
    }

    #[test]
    fn what_is_taken_ends_with_a_line_and_nothing_is_lost() {
        for may_pass_on in [false, true] {
            for size in [1, 100, PASSED_ON, 3 * PASSED_ON] {
                let mut pieces = Pieces::default();
                let (mut given, mut taken) = (Vec::new(), Vec::new());
                let text = lines(200_000, 700);
                for data in text.chunks(size) {
                    given.extend_from_slice(data);
                    pieces.push(text.slice_ref(data), may_pass_on);
                    if given.len() % 3 == 0 {
                        let some = pieces.take(10_000).concat();
                        assert!(some.is_empty() || some.ends_with(b"\n"), "pieces of {size}");
                        taken.extend(some);
                    }
                    assert_eq!(pieces.len(), given.len() - taken.len());
                }
                pieces.complete_all();
                taken.extend(all(&mut pieces, 10_000).concat());
                assert_eq!(taken, given, "pieces of {size}");
            }
        }
    }

    #[test]
    fn a_line_that_is_longer_than_asked_for_is_taken_whole() {
        let mut pieces = Pieces::default();
        pieces.push(Bytes::from_static(b"the beginning, "), true);
        pieces.push(lines(3 * PASSED_ON, 2 * PASSED_ON), true);
        let taken = all(&mut pieces, 100);
        assert_eq!(
            taken.iter().map(Vec::len).collect::<Vec<_>>(),
            [15 + 2 * PASSED_ON]
        );
        assert_eq!(pieces.len(), PASSED_ON);
    }

    #[test]
    fn large_pieces_are_passed_on_as_they_came() {
        let mut pieces = Pieces::default();
        let data = lines(PASSED_ON, 64);
        pieces.push(data.clone(), true);
        let taken = pieces.take(usize::MAX);
        assert_eq!(taken.first().map(|piece| piece.as_ptr()), Some(data.as_ptr()));
    }

    #[test]
    fn a_large_buffer_is_not_kept() {
        let mut pieces = Pieces::default();
        pieces.push(lines(100_000, 50), false);
        pieces.take(usize::MAX);
        assert_eq!((pieces.len(), pieces.gathered.capacity()), (0, 0));
    }
}
