//! The order of things within a turn: readiness, then timers, then flights. Decides what is done next; one thing
//! for each event that the application takes.

use std::io;
use std::time::{Duration, Instant};

use mux_proto::Protocol;

use super::{Driver, What};
use crate::link::Pass;
use crate::{Event, Key, Readiness, Ready};

impl<P: Protocol> Driver<P> {
    /// Flushes what is still unflushed, waits for at most `max_wait` until something happens, and returns the time
    /// after that. The only place, with the turn of the reactor in it, that reads the clock.
    ///
    /// # Errors
    /// What the system says about waiting. What befalls a single link is an event.
    pub fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Instant> {
        if !self.dirty.is_empty() {
            let now = Instant::now();
            self.now = Some(now);
            while let Some(key) = self.dirty.pop_front() {
                self.settle(now, key);
            }
        }
        let max_wait = if self.is_quiet() {
            max_wait
        } else {
            Some(Duration::ZERO)
        };
        let now = self.reactor.turn(max_wait)?;
        self.now = Some(now);
        Ok(now)
    }

    /// The next thing that happened. Does the work of the turn as it goes; after `None`, everything that was ready
    /// has been handled and every flight has left.
    pub fn poll_event(&mut self) -> Option<Event<P>> {
        let now = self.now?;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if let Some(&key) = self.speaking.front() {
                if let Some(event) = self.speak(key) {
                    return Some(event);
                }
                self.speaking.pop_front();
            } else if let Some(ready) = self.reactor.poll_ready() {
                self.dispatch(now, ready);
            } else if let Some(key) = self.dirty.pop_front() {
                self.settle(now, key);
            } else {
                return None;
            }
        }
    }

    /// When the next turn is due if no descriptor becomes ready before: `now` while anything is queued, `None` if
    /// only a descriptor or a waker can cause one.
    #[must_use]
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        if self.is_quiet() && self.dirty.is_empty() {
            self.reactor.next_deadline(now)
        } else {
            Some(now)
        }
    }

    fn is_quiet(&self) -> bool {
        self.events.is_empty() && self.speaking.is_empty()
    }

    /// The next event of a link: its protocol's, and last of all its end.
    fn speak(&mut self, key: Key) -> Option<Event<P>> {
        let link = self.link(key)?;
        if let Some(event) = link.protocol.poll_event() {
            return Some(Event::Protocol(key, event));
        }
        if !link.is_over() {
            return None;
        }
        let (protocol, outcome) = self.take_link(key)?.into_parts();
        Some(Event::Closed(key, Box::new(protocol), outcome))
    }

    fn dispatch(&mut self, now: Instant, ready: Ready) {
        match ready {
            Ready::Io(key, readiness) => self.dispatch_io(now, key, readiness, ready),
            Ready::Again(key) => self.dispatch_io(now, key, Readiness::default(), ready),
            Ready::Timer(key) => self.dispatch_timer(now, key),
            Ready::Woken => self.events.push_back(Event::Ready(ready)),
        }
    }

    fn dispatch_io(&mut self, now: Instant, key: Key, readiness: Readiness, ready: Ready) {
        match self.entry(key) {
            Some(What::Link(_)) => self.serve(now, key, readiness),
            Some(What::Listener(_)) => self.accept(now, key),
            Some(What::Process(_)) => self.collect(key),
            Some(What::Signals(_)) => self.deliver_signals(key),
            Some(What::Timer) => {}
            None => self.events.push_back(Event::Ready(ready)),
        }
    }

    fn dispatch_timer(&mut self, now: Instant, key: Key) {
        match self.entry(key) {
            Some(What::Link(link)) => {
                link.time(now);
                self.served(key);
            }
            Some(What::Listener(_)) => self.accept(now, key),
            Some(What::Timer) => {
                self.forget(key);
                self.events.push_back(Event::Ready(Ready::Timer(key)));
            }
            Some(What::Process(_) | What::Signals(_)) | None => {}
        }
    }

    fn serve(&mut self, now: Instant, key: Key, readiness: Readiness) {
        let Some(Some(super::Entry {
            what: What::Link(link),
            ..
        })) = self.entries.get_mut(key.slot())
        else {
            return;
        };
        if link.notice(readiness) {
            self.events.push_back(Event::Connected(key));
        }
        if link.receive(now, &mut self.scratch) == Pass::Again {
            self.reactor.requeue(key);
        }
        if !std::mem::replace(&mut link.dirty, true) {
            self.dirty.push_back(key);
        }
        self.speaking.push_back(key);
    }

    fn served(&mut self, key: Key) {
        self.speaking.push_back(key);
        self.mark_dirty(key);
    }

    /// Everything that follows from a link having been served or talked to: what it left is offered again, its
    /// flight leaves, its end and its deadline are looked after. It may have more to say after that.
    fn settle(&mut self, now: Instant, key: Key) {
        let Some(Some(super::Entry {
            key: owner,
            what: What::Link(link),
        })) = self.entries.get_mut(key.slot())
        else {
            return;
        };
        if *owner != key {
            return;
        }
        link.dirty = false;
        if link.io.is_memory() {
            link.reoffer_delivered(now);
        } else {
            link.reoffer(now);
        }
        let flush = link.flush(now, &mut self.flight);
        if link.end(now, flush) {
            link.io.shutdown_write(&mut self.reactor);
        }
        // A link that was paused has no new readiness to wait for.
        if flush == Pass::Again || link.may_read() {
            self.reactor.requeue(key);
        }
        if let Some(deadline) = link.rearm() {
            self.reactor.set_timer(key, deadline);
        }
        if link.io.is_memory() {
            let seen = link.take_seen();
            let tell = [
                (seen > 0).then_some(Event::Consumed(key, seen)),
                link.announce().then_some(Event::Outgoing(key)),
                link.announce_finish().then_some(Event::Finished(key)),
            ];
            self.events.extend(tell.into_iter().flatten());
        }
        // Most have nothing more to say, and are spared the queue.
        let said = link.protocol.poll_event();
        if said.is_some() || link.is_over() {
            self.speaking.push_back(key);
        }
        self.events.extend(said.map(|said| Event::Protocol(key, said)));
    }
}
