//! The way out. Decides when a flight leaves and when the link is over; never what is sent.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use mux_proto::{Close, Protocol, SendQueue};

use super::{Link, Pass};
use crate::LinkError;

/// Flights of one link in one turn, 64 KiB each or a little more: after that the others have theirs.
const FLIGHTS_PER_TURN: usize = 4;

/// A link that wants to close has this long to get its last bytes out.
const LINGER: Duration = Duration::from_secs(1);

impl<P: Protocol> Link<P> {
    /// Pulls from the protocol and writes, one vectored write a flight. `flight` is the loop's: a link whose output
    /// is taken at once owns no buffer.
    pub(crate) fn flush(&mut self, now: Instant, flight: &mut SendQueue) -> Pass {
        if self.connecting || self.is_over() {
            return Pass::Drained;
        }
        if self.io.is_memory() {
            self.fill_memory(now);
            return Pass::Drained;
        }
        for _ in 0..FLIGHTS_PER_TURN {
            let own = !self.out.is_empty();
            let queue = if own { &mut self.out } else { &mut *flight };
            if self.write_error.is_none() && !self.write_shut && queue.has_room() {
                self.protocol.poll_transmit(now, queue);
            }
            if queue.is_empty() {
                return Pass::Drained;
            }
            // Pulled until it had no more to give, or until the queue was full?
            let more = !queue.has_room();
            if self.writable {
                match self.io.write(queue) {
                    Ok(written) => {
                        queue.advance(written.count);
                        self.writable = written.count == written.offered || !self.io.is_socket();
                    }
                    Err(error) => write_failed(error.kind(), &mut self.writable, &mut self.write_error),
                }
            }
            if self.write_error.is_some() {
                *queue = SendQueue::new();
                // What the peer said before it went is still there to be read.
                self.readable = true;
                self.read_closed = true;
                return Pass::Again;
            }
            if queue.is_empty() {
                self.out = SendQueue::new();
            } else if !own {
                self.out = std::mem::take(flight);
            }
            if !self.writable || (self.out.is_empty() && !more) {
                return Pass::Drained;
            }
        }
        Pass::Again
    }

    /// Looks whether the link is to be closed, half or whole, and whether that can be done now. `true` if the
    /// direction to the peer has just been closed.
    pub(crate) fn end(&mut self, now: Instant, flush: Pass) -> bool {
        if self.is_over() {
            return false;
        }
        // An attempt to connect that was given up has nothing to flush; nothing else ends one.
        let flushed = self.connecting || (flush == Pass::Drained && self.out.is_empty());
        let close = if self.error.is_some() {
            Some(Close::Both)
        } else {
            self.protocol.poll_close()
        };
        let mut shut = false;
        match close {
            Some(Close::Both) if flushed => self.outcome = Some(self.error.take().map_or(Ok(()), Err)),
            Some(Close::Both) => {
                self.linger.get_or_insert(now + LINGER);
            }
            Some(Close::Write) if flushed && !self.write_shut && !self.connecting => {
                self.write_shut = true;
                shut = true;
            }
            Some(Close::Write) | None => {}
        }
        if self.eof && self.outcome.is_none() {
            if let Some(error) = self.write_error {
                // What the protocol found comes first: that its goodbye found nobody tells less.
                self.outcome = Some(Err(self.error.take().unwrap_or(LinkError::Io(error))));
            } else if self.write_shut {
                self.outcome = Some(Ok(()));
            }
        }
        shut
    }
}

fn write_failed(kind: ErrorKind, writable: &mut bool, failed: &mut Option<ErrorKind>) {
    if kind == ErrorKind::WouldBlock {
        *writable = false;
    } else if kind != ErrorKind::Interrupted {
        *failed = Some(kind);
    }
}
