//! The way in. Decides how much is read and how an unfinished packet waits for its rest; never what it means.

use std::io::ErrorKind;
use std::time::Instant;

use bytes::BytesMut;
use mux_proto::{Close, Protocol};

use super::{Link, Pass};
use crate::LinkError;
use crate::scratch::{READ_MIN, Scratch};
use crate::stream::Io;

/// Reads of one link in one turn, 128 KiB each at most: after that the others have theirs.
const READS_PER_TURN: usize = 2;

/// A protocol may leave this much of an unfinished packet with the link. More is not read: it would not be a packet
/// but memory that a peer can claim.
const LEFT_OVER_MAX: usize = 1024 * 1024;

/// A rest up to this size is put before what was read into the shared buffer; a larger one has what was read put
/// behind it, so that a large packet that drips in is not moved with every drop.
const GAP_MAX: usize = 2 * READ_MIN;

impl<P: Protocol> Link<P> {
    pub(crate) fn may_read(&self) -> bool {
        self.readable
            && !self.connecting
            && !self.eof
            && self.error.is_none()
            && self.outcome.is_none()
            && self.rest.len() < LEFT_OVER_MAX
            && self.protocol.wants_input()
            && self.protocol.poll_close() != Some(Close::Both)
    }

    /// Reads what is there, up to the budget, and lets the protocol have it.
    pub(crate) fn receive(&mut self, now: Instant, scratch: &mut Scratch) -> Pass {
        let pass = self.receive_some(now, scratch);
        if pass == Pass::Drained && std::mem::take(&mut self.rest_is_shared) {
            // Nobody knows when the next bytes come: the shared buffer is not held until then.
            self.rest = BytesMut::from(&self.rest[..]);
        }
        pass
    }

    fn receive_some(&mut self, now: Instant, scratch: &mut Scratch) -> Pass {
        for _ in 0..READS_PER_TURN {
            if !self.may_read() {
                return Pass::Drained;
            }
            let gap = if self.rest.len() <= GAP_MAX {
                self.rest.len()
            } else {
                0
            };
            let room = scratch.room(gap);
            let size = room.len();
            match self.io.read(room) {
                Ok(0) => self.end_of_input(now),
                Ok(count) => {
                    // A short read has emptied a socket or pipe: the next bytes come with an event of their own. An
                    // end that was announced together with them does not.
                    if count < size && self.io.is_queue() && !self.read_closed {
                        self.readable = false;
                    }
                    self.arrived(now, scratch, gap, count);
                }
                Err(error) => self.read_failed(error.kind()),
            }
        }
        if self.may_read() {
            Pass::Again
        } else {
            Pass::Drained
        }
    }

    fn read_failed(&mut self, kind: ErrorKind) {
        if kind == ErrorKind::WouldBlock {
            self.readable = false;
            if self.io.is_socket() {
                // The socket that could not be written has nothing more to say either.
                self.outcome = self.write_error.map(|error| Err(LinkError::Io(error)));
            }
        } else if kind != ErrorKind::Interrupted {
            self.outcome = Some(Err(LinkError::Io(kind)));
        }
    }

    /// Puts the rest and what was read together, moving the smaller of the two where it pays.
    fn arrived(&mut self, now: Instant, scratch: &mut Scratch, gap: usize, count: usize) {
        let mut input = scratch.take(gap + count);
        if self.rest.is_empty() {
            self.offer(now, input);
        } else if gap > 0 && gap <= 2 * count {
            let (front, _) = input.split_at_mut(gap);
            front.copy_from_slice(&self.rest);
            self.offer(now, input);
        } else {
            let (_, read) = input.split_at(gap);
            self.rest.extend_from_slice(read);
            self.rest_is_shared = false;
            self.reoffer(now);
        }
    }

    /// Offers again what the protocol has left: it was paused, or it has learned something meanwhile.
    pub(crate) fn reoffer(&mut self, now: Instant) {
        if !self.rest.is_empty() && self.error.is_none() && self.protocol.wants_input() {
            let rest = std::mem::take(&mut self.rest);
            let len = rest.len();
            let left = self.feed(now, rest);
            // Untouched, it goes back as it is; otherwise what is left goes into a buffer of its size.
            if left.len() == len {
                self.rest = left;
            } else {
                self.rest = BytesMut::from(&left[..]);
                self.rest_is_shared = false;
            }
        }
    }

    /// What is left stays where it is, in the shared buffer, until it is known whether more follows at once.
    fn offer(&mut self, now: Instant, input: BytesMut) {
        self.rest = self.feed(now, input);
        self.rest_is_shared = !self.rest.is_empty();
        if !self.rest_is_shared {
            self.rest = BytesMut::new();
        }
    }

    /// Calls the protocol until it leaves its input as it was.
    fn feed(&mut self, now: Instant, mut input: BytesMut) -> BytesMut {
        while !input.is_empty() && self.protocol.wants_input() {
            let before = input.len();
            if let Err(error) = self.protocol.handle_input(now, &mut input) {
                self.fail(error);
                break;
            }
            if input.len() == before {
                break;
            }
        }
        input
    }

    pub(super) fn end_of_input(&mut self, now: Instant) {
        self.eof = true;
        if let Err(error) = self.protocol.handle_eof(now) {
            self.fail(error);
        }
    }

    /// Throws away what is still unread, within the budget: closing a TCP socket with unread input resets the
    /// connection, and the peer may lose our last bytes. No other kind is touched: unread input of a pipe or a
    /// terminal belongs to whoever reads it next.
    pub(crate) fn discard(&mut self, scratch: &mut Scratch) {
        if matches!(self.io, Io::Tcp(_)) && self.readable && !self.eof {
            for _ in 0..READS_PER_TURN {
                let room = scratch.room(0);
                let size = room.len();
                if !self.io.read(room).is_ok_and(|count| count == size) {
                    return;
                }
            }
        }
    }
}
