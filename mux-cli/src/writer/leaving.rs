//! Leaving while the thread stands still at a destination that takes nothing: what it has not begun is taken from it,
//! so that nothing is written twice, and standard error gets its part. Decides when that has taken long enough.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Writer;
use super::thread::CLEAR_LINE;
use crate::hub::RequestId;
use crate::output::{Destination, Payload, Write};

/// Who leaves waits half a second for standard error, at most: ten times this long.
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
const WAITS: usize = 10;

/// Looks, and does not wait.
const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// What a pipe with room for anything takes at once (POSIX: PIPE_BUF is at least 512; Linux and macOS: a pipe is writable
/// with at least this much room), so that a write after `poll` never blocks.
const PIECE: usize = 512;

/// How many writes the thread has begun, and how many of them together at last; the loop can put an end to it.
#[derive(Debug, Default)]
pub(super) struct Begun(AtomicU64);

/// Writes that the thread had begun when it was left.
struct Taken {
    begun: usize,
    /// Of those surely written: all but the last, or the last that were begun together.
    done: usize,
}

impl Begun {
    const TAKEN: u64 = u64::MAX;

    /// The upper half counts those that were begun together, the lower half all; it wraps, as does what it is compared
    /// with.
    const HALF: u32 = u64::BITS / 2;

    /// The thread is about to begin its next writes, so many as one; false: the rest was taken from it.
    pub(super) fn begin(&self, together: u32) -> bool {
        let next = |state: u64| {
            let begun = lower_half(state).wrapping_add(together);
            (state != Self::TAKEN).then_some(u64::from(together) << Self::HALF | u64::from(begun))
        };
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .is_ok()
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) == Self::TAKEN
    }

    /// From now on the thread begins none; what it had begun beyond the first `reported`.
    fn take(&self, reported: usize) -> Taken {
        let state = self.0.swap(Self::TAKEN, Ordering::AcqRel);
        let reported = lower_half(reported as u64);
        let count = |half: u32| usize::try_from(half).unwrap_or_default();
        let begun = if state == Self::TAKEN {
            0
        } else {
            count(lower_half(state).wrapping_sub(reported))
        };
        Taken {
            begun,
            done: begun.saturating_sub(count(lower_half(state >> Self::HALF))),
        }
    }
}

fn lower_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

/// What the loop remembers of a write that was not reported yet.
#[derive(Debug)]
pub(super) enum Sent {
    Words(Bytes),
    Saved(RequestId, u64),
    Other(u64),
}

impl Sent {
    pub(super) fn of(write: &Write) -> Self {
        match (&write.to, &write.payload) {
            (Destination::Stderr, Payload::Bytes(words)) => Self::Words(words.clone()),
            (Destination::Saved { request, .. }, payload) => Self::Saved(*request, len(payload)),
            // What is gathered in there is printed later, and counts then; a progress line is no loss.
            (Destination::Spill | Destination::Progress, _) => Self::Other(0),
            (Destination::Stdout | Destination::Stderr | Destination::File(_), payload) => {
                Self::Other(len(payload))
            }
        }
    }
}

fn len(payload: &Payload) -> u64 {
    match payload {
        Payload::Bytes(bytes) => bytes.len() as u64,
        Payload::Spilled { extents, .. } => extents.iter().map(|extent| extent.len).sum(),
    }
}

/// What the thread had not written when it was left.
#[derive(Debug, Default)]
pub struct Left {
    /// For standard error, in order.
    pub words: Vec<Bytes>,
    /// Bytes for other places: gone, or on their way if they were begun.
    pub lost: u64,
    /// The hosts for whose own files some were, once for each write.
    pub saved: Vec<RequestId>,
}

impl Left {
    /// Adds what was never handed over.
    pub fn add(&mut self, write: &Write) {
        self.put(Sent::of(write));
    }

    fn put(&mut self, sent: Sent) {
        match sent {
            Sent::Words(words) => self.words.push(words),
            Sent::Saved(request, bytes) => {
                self.saved.push(request);
                self.lost += bytes;
            }
            Sent::Other(bytes) => self.lost += bytes,
        }
    }
}

impl Writer {
    /// Takes everything from the thread that it has not begun. It writes no more after that.
    pub fn take_back(&mut self) -> Left {
        let Taken { begun, done } = self.begun.take(self.reported);
        let mut left = Left::default();
        for (at, sent) in std::mem::take(&mut self.sent).into_iter().enumerate() {
            match sent {
                // Has been written since the last report, or is what the thread stands still at.
                Sent::Words(_) if at < begun => {}
                Sent::Other(_) if at < done => {}
                Sent::Saved(request, _) if at < done => left.saved.push(request),
                sent @ (Sent::Words(_) | Sent::Saved(..) | Sent::Other(_)) => left.put(sent),
            }
        }
        left
    }

    /// Writes to standard error in the place of the thread, as far as it takes it within a moment.
    pub fn write_last(&self, words: &[Bytes]) {
        let Some(stderr) = &self.streams.stderr else {
            return;
        };
        let mut waits = 0;
        let progress = self.streams.stderr_is_terminal && !self.streams.stdout_is_terminal;
        let clear = Bytes::from_static(if progress { CLEAR_LINE } else { b"" });
        for mut rest in std::iter::once(clear).chain(words.iter().cloned()) {
            while !rest.is_empty() {
                if !has_room(stderr, &AT_ONCE) {
                    waits += 1;
                    if waits > WAITS {
                        return;
                    }
                    has_room(stderr, &WAIT);
                    continue;
                }
                match rustix::io::write(stderr, rest.get(..PIECE).unwrap_or(&rest)) {
                    Ok(written) => drop(rest.split_to(written)),
                    Err(Errno::INTR) => {}
                    Err(_) => return,
                }
            }
        }
    }
}

/// A descriptor that can't be asked is found out by writing to it.
fn has_room(descriptor: &OwnedFd, wait: &Timespec) -> bool {
    let mut room = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::OUT)];
    match poll(&mut room, Some(wait)) {
        Ok(ready) => ready > 0,
        Err(error) => error != Errno::INTR,
    }
}
