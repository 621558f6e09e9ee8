//! Links that somebody carries. Decides what has been seen and what was announced; never moves a byte by itself.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::Protocol;

use super::Link;

impl<P: Protocol> Link<P> {
    /// Input of a memory link.
    pub(crate) fn deliver(&mut self, data: Bytes) {
        self.unseen += data.len();
        if self.rest.is_empty() {
            self.rest = data
                .try_into_mut()
                .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        } else {
            self.rest.extend_from_slice(&data);
        }
    }

    /// Lets a memory link's protocol see what waits, and counts what it has seen: everything, unless it is paused.
    pub(crate) fn reoffer_delivered(&mut self, now: Instant) {
        self.reoffer(now);
        let unseen = if self.protocol.wants_input() {
            0
        } else {
            self.rest.len().min(self.unseen)
        };
        self.seen += self.unseen - unseen;
        self.unseen = unseen;
        if self.read_closed && unseen == 0 && !self.eof && self.error.is_none() {
            self.end_of_input(now);
        }
    }

    pub(crate) fn deliver_eof(&mut self) {
        self.read_closed = true;
    }

    /// Delivered bytes that the protocol has seen since this was last asked.
    pub(crate) fn take_seen(&mut self) -> usize {
        std::mem::take(&mut self.seen)
    }

    pub(super) fn fill_memory(&mut self, now: Instant) {
        if !self.write_shut && self.out.has_room() {
            self.protocol.poll_transmit(now, &mut self.out);
        }
    }

    /// Whether a memory link has something to say that its owner was not told yet.
    pub(crate) fn announce(&mut self) -> bool {
        !self.out.is_empty() && !std::mem::replace(&mut self.announced, true)
    }

    /// Whether a memory link has said everything and its owner was not told yet.
    pub(crate) fn announce_finish(&mut self) -> bool {
        self.io.is_memory() && self.write_shut && !std::mem::replace(&mut self.finish_announced, true)
    }

    pub(crate) fn take_outgoing(&mut self, now: Instant, max: usize) -> Bytes {
        self.fill_memory(now);
        let first = self.out.take(max);
        if first.len() == max || self.out.is_empty() {
            self.announced = first.len() == max;
            return first;
        }
        let mut taken = BytesMut::from(&first[..]);
        while taken.len() < max && !self.out.is_empty() {
            taken.extend_from_slice(&self.out.take(max - taken.len()));
        }
        self.announced = taken.len() == max;
        taken.freeze()
    }
}
