//! Bytes on their way to a command's standard input. It decides how much may be queued and how much may be sent before
//! the channel is confirmed; it knows nothing of packets.

use std::collections::VecDeque;

use bytes::Bytes;

/// What the owner may queue on one channel: two full pipes of Linux, so that a reader of 64 KiB pieces never waits for
/// a round trip of ours.
pub(crate) const MAX_QUEUED: usize = 128 * 1024;

/// What may follow a command before its channel is confirmed: dropbear's window is 24,576 bytes, and one byte more
/// resets the connection.
pub(crate) const MAX_UNCONFIRMED: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct StdinQueue {
    queue: VecDeque<Bytes>,
    queued: usize,
    /// Sent before the confirmation: to be sent again if the login ahead of it is refused.
    unconfirmed: Vec<Bytes>,
    unconfirmed_bytes: usize,
    /// The owner has written its last byte.
    finished: bool,
    eof_sent: bool,
    /// Less than half of the room was left, and the owner was not told yet that there is more.
    crowded: bool,
}

impl StdinQueue {
    pub(crate) fn room(&self) -> usize {
        if self.finished {
            0
        } else {
            MAX_QUEUED.saturating_sub(self.queued)
        }
    }

    /// Bytes that have not left.
    pub(crate) fn unsent(&self) -> usize {
        self.queued
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(crate) fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        self.queued += data.len();
        self.crowded |= self.queued > MAX_QUEUED / 2;
        self.queue.push_back(data);
    }

    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// How much more may be sent before the confirmation.
    pub(crate) fn unconfirmed_room(&self) -> usize {
        MAX_UNCONFIRMED - self.unconfirmed_bytes
    }

    /// The next piece, at most `max` bytes; `max` is not zero.
    pub(crate) fn take(&mut self, max: usize) -> Option<Bytes> {
        let front = self.queue.front_mut()?;
        let piece = front.split_to(front.len().min(max));
        self.queued -= piece.len();
        if front.is_empty() {
            self.queue.pop_front();
        }
        Some(piece)
    }

    /// Like [`take`](Self::take), and keeps the piece in case that it must be sent again.
    pub(crate) fn take_unconfirmed(&mut self, max: usize) -> Option<Bytes> {
        let piece = self.take(max)?;
        self.unconfirmed_bytes += piece.len();
        self.unconfirmed.push(piece.clone());
        Some(piece)
    }

    /// Whether the end is to be sent now; says so once.
    pub(crate) fn take_eof(&mut self) -> bool {
        let due = self.finished && self.queued == 0 && !self.eof_sent;
        self.eof_sent |= due;
        due
    }

    /// Whether the owner, who found little room, is to be told that half of it is free; says so once.
    pub(crate) fn take_room_news(&mut self) -> bool {
        let news = self.crowded && self.queued <= MAX_QUEUED / 2;
        self.crowded &= !news;
        news
    }

    /// The channel is confirmed. Returns how many bytes were sent before, to be taken off its window.
    pub(crate) fn confirm(&mut self) -> usize {
        self.unconfirmed = Vec::new();
        std::mem::take(&mut self.unconfirmed_bytes)
    }

    /// Nothing that was sent has been read: it all waits again.
    pub(crate) fn revert(&mut self) {
        for piece in std::mem::take(&mut self.unconfirmed).into_iter().rev() {
            self.queued += piece.len();
            self.queue.push_front(piece);
        }
        self.unconfirmed_bytes = 0;
        self.eof_sent = false;
    }

    /// Nothing will be sent any more.
    pub(crate) fn discard(&mut self) {
        *self = Self {
            finished: true,
            eof_sent: true,
            ..Self::default()
        };
    }
}
