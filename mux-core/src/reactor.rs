//! Readiness, timers and wake-ups as values. Decides the order in which they are reported; knows nothing of links.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;

use crate::timers::{Slot, Timers, slot_of};
use crate::{Key, Readiness, Ready, Waker};

/// No key: every bit is set.
const WAKER: Token = Token(usize::MAX);

/// Events taken from the system by one call: 16 KiB of them, so that a busy loop makes few calls.
const EVENTS_PER_CALL: usize = 1024;

/// The lower of the two layers: readiness from the system, timers, and wake-ups from other threads.
///
/// Usable alone. One round is [`turn`](Self::turn), then [`poll_ready`](Self::poll_ready) until it returns `None`.
///
/// # Guarantees
/// - Readiness is edge-triggered: a source is reported once and must be drained, or handed to
///   [`requeue`](Self::requeue) by whoever has done enough for now.
/// - All readiness of a turn is reported before its timers: after a stall, whoever has data waiting is heard before
///   anybody's deadline.
/// - What is reported under a key belongs to that key, never to one that used its slot before.
/// - A source that the system cannot poll (a regular file) is always ready: it is reported once,
///   as [`Ready::Again`], and never blocks.
#[derive(Debug)]
pub struct Reactor {
    poll: Poll,
    events: Events,
    waker: Waker,
    slots: Slab<Slot>,
    generation: usize,
    timers: Timers,
    ready: VecDeque<Ready>,
    due: VecDeque<Key>,
    again: Vec<Key>,
}

impl Reactor {
    /// A reactor that watches nothing.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(mio::Waker::new(poll.registry(), WAKER)?);
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS_PER_CALL),
            waker,
            slots: Slab::new(),
            generation: 0,
            timers: Timers::default(),
            ready: VecDeque::new(),
            due: VecDeque::new(),
            again: Vec::new(),
        })
    }

    /// A key without a source, for a timer or to [`attach`](Self::attach) sources to.
    pub fn reserve(&mut self) -> Key {
        self.generation = self.generation.wrapping_add(1);
        let vacant = self.slots.vacant_entry();
        let key = Key::new(vacant.key(), self.generation);
        vacant.insert(Slot::new(key));
        key
    }

    /// Forgets a key and its timer. Its sources must have been [detached](Self::detach).
    pub fn release(&mut self, key: Key) {
        if self.contains(key) {
            self.slots.remove(key.slot());
        }
    }

    /// Whether `key` is in use.
    #[must_use]
    pub fn contains(&self, key: Key) -> bool {
        self.slots.get(key.slot()).is_some_and(|slot| slot.key == key)
    }

    /// Watches one more source under `key`: the two descriptors of a pipe pair are one link.
    ///
    /// # Errors
    /// What the system says; a source that cannot be polled is no error.
    pub fn attach(&mut self, key: Key, source: &mut impl Source, interest: Interest) -> io::Result<()> {
        match self.poll.registry().register(source, key.token(), interest) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) => {
                self.requeue(key);
                Ok(())
            }
            result => result,
        }
    }

    /// Stops watching a source. A source that was never watched, or could not be, is left alone.
    pub fn detach(&mut self, source: &mut impl Source) {
        if let Err(error) = self.poll.registry().deregister(source) {
            log::trace!("a source was not watched: {error}");
        }
    }

    /// Watches a source under a key of its own.
    ///
    /// # Errors
    /// What the system says.
    pub fn register(&mut self, source: &mut impl Source, interest: Interest) -> io::Result<Key> {
        let key = self.reserve();
        match self.attach(key, source, interest) {
            Ok(()) => Ok(key),
            Err(error) => {
                self.release(key);
                Err(error)
            }
        }
    }

    /// Stops watching a source and forgets its key.
    pub fn deregister(&mut self, key: Key, source: &mut impl Source) {
        self.detach(source);
        self.release(key);
    }

    /// Sets, moves or drops (`None`) the one timer of `key`. It fires once, as [`Ready::Timer`].
    pub fn set_timer(&mut self, key: Key, at: Option<Instant>) {
        self.timers.set(&mut self.slots, key, at);
    }

    /// Reports `key` as [`Ready::Again`] in the next turn, which will not wait: its budget was spent, not its data.
    pub fn requeue(&mut self, key: Key) {
        let Some(slot) = slot_of(&mut self.slots, key) else {
            return;
        };
        if !std::mem::replace(&mut slot.again, true) {
            self.again.push(key);
        }
    }

    /// A handle that ends the wait from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// When the next turn is due if no source becomes ready before: `now` while anything is queued, `None` if only
    /// a source or a waker can cause one. Too early when a timer was moved or dropped since the last turn, never
    /// too late.
    #[must_use]
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        if self.is_idle() {
            self.timers.next()
        } else {
            Some(now)
        }
    }

    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.due.is_empty() && self.again.is_empty()
    }

    /// Waits until something is ready or due, for at most `max_wait`, and returns the time after that. What was
    /// ready when a timer came due is reported before it. The only place of this layer that reads the clock.
    ///
    /// # Errors
    /// What the system says; being interrupted is no error.
    pub fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Instant> {
        let wait = if self.is_idle() && max_wait != Some(Duration::ZERO) {
            self.timers.settle(&mut self.slots);
            let due = self.timers.next();
            let until_due = due.map(|due| due.saturating_duration_since(Instant::now()));
            [max_wait, until_due].into_iter().flatten().min()
        } else {
            Some(Duration::ZERO)
        };
        let waited_in_vain = self.collect(wait)? == 0 && wait != Some(Duration::ZERO);
        let now = Instant::now();
        self.timers.settle(&mut self.slots);
        // The process may have been stopped since the system was asked: a wait that is interrupted tells nothing of
        // what arrived meanwhile. Nobody's time is over before there was a look that began after it.
        if waited_in_vain || self.timers.next().is_some_and(|at| at <= now) {
            self.collect(Some(Duration::ZERO))?;
        }
        for key in self.again.drain(..) {
            if let Some(slot) = slot_of(&mut self.slots, key) {
                slot.again = false;
                self.ready.push_back(Ready::Again(key));
            }
        }
        while let Some(key) = self.timers.pop_due(&mut self.slots, now) {
            self.due.push_back(key);
        }
        Ok(now)
    }

    /// The next thing found out in the last turn: readiness first, then timers.
    pub fn poll_ready(&mut self) -> Option<Ready> {
        while let Some(ready) = self.ready.pop_front() {
            match ready {
                Ready::Io(key, _) | Ready::Again(key) if !self.contains(key) => {}
                Ready::Io(..) | Ready::Again(_) | Ready::Timer(_) | Ready::Woken => return Some(ready),
            }
        }
        while let Some(key) = self.due.pop_front() {
            if slot_of(&mut self.slots, key).is_some_and(|slot| slot.alarm.take_due()) {
                return Some(Ready::Timer(key));
            }
        }
        None
    }

    /// Takes every event that the system has. More than one call's worth means that more sources are ready; their
    /// data must be seen before the timers of this turn. A second round for all of them is the next turn's. Returns
    /// how many events there were; none if the wait was interrupted.
    fn collect(&mut self, mut wait: Option<Duration>) -> io::Result<usize> {
        let mut total = 0;
        let mut calls_left = 1 + self.slots.len() / EVENTS_PER_CALL;
        loop {
            match self.poll.poll(&mut self.events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(total),
                Err(error) => return Err(error),
            }
            let mut count = 0;
            for event in &self.events {
                count += 1;
                if event.token() == WAKER {
                    self.waker.settle();
                    self.ready.push_back(Ready::Woken);
                } else {
                    self.ready
                        .push_back(Ready::Io(Key::from_token(event.token()), readiness(event)));
                }
            }
            total += count;
            calls_left -= 1;
            if count < EVENTS_PER_CALL || calls_left == 0 {
                return Ok(total);
            }
            wait = Some(Duration::ZERO);
        }
    }
}

impl AsFd for Reactor {
    /// Readable when a turn would find something; for waiting in somebody else's loop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.registry().as_fd()
    }
}

fn readiness(event: &mio::event::Event) -> Readiness {
    let failed = event.is_error();
    let read_closed = event.is_read_closed();
    Readiness {
        readable: event.is_readable() || read_closed || failed,
        writable: event.is_writable() || event.is_write_closed() || failed,
        read_closed: read_closed || failed,
        failed: failed || (read_closed && event.is_write_closed()),
    }
}
