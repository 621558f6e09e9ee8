//! Bytes of one direction that wait for credit and their turn: which stream each belongs to, in order. Decides how they
//! are kept; never when they leave.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::Stream;
use crate::SendQueue;

/// What was handed in as many small pieces leaves as few large ones, and costs hardly more than its bytes: a peer that
/// sends one byte a frame fills no more memory than one that does not.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    bytes: SendQueue,
    /// Stretches of one stream each; all their lengths are those of `bytes` together.
    stretches: VecDeque<(Stream, usize)>,
}

impl Unsent {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    pub(super) fn push(&mut self, stream: Stream, data: Bytes) {
        if data.is_empty() {
            return;
        }
        match self.stretches.back_mut() {
            Some((last, len)) if *last == stream => *len += data.len(),
            Some(_) | None => self.stretches.push_back((stream, data.len())),
        }
        self.bytes.push(data);
    }

    /// At most `max` bytes from the front, as many as belong to one stream and lie in one piece.
    pub(super) fn take(&mut self, max: usize) -> Option<(Stream, Bytes)> {
        let (stream, len) = self.stretches.front_mut()?;
        let stream = *stream;
        let data = self.bytes.take(max.min(*len));
        *len -= data.len();
        if *len == 0 {
            self.stretches.pop_front();
        }
        (!data.is_empty()).then_some((stream, data))
    }
}
