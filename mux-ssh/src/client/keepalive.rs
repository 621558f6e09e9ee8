//! When a silent server is probed and when it counts as dead: only after its probes went unanswered and nothing else
//! was read from it either. It counts; it sends nothing.

use std::time::{Duration, Instant};

use super::Keepalive;
use crate::Error;

#[derive(Debug)]
pub(crate) struct KeepaliveTimer {
    config: Keepalive,
    /// The login is complete; before, the owner's deadlines count.
    started: bool,
    deadline: Option<Instant>,
    /// Probes since something was last read.
    unanswered: u32,
    /// A probe waits to be sent.
    probe_due: bool,
}

impl KeepaliveTimer {
    pub(crate) fn new(config: Keepalive) -> Self {
        Self {
            config,
            started: false,
            deadline: None,
            unanswered: 0,
            probe_due: false,
        }
    }

    /// Something was read, or the login is complete.
    pub(crate) fn touch(&mut self, now: Instant, busy: bool) {
        self.started = true;
        self.unanswered = 0;
        self.deadline = self.next_deadline(now, busy);
    }

    /// A command was given: from now on the shorter interval counts.
    pub(crate) fn become_busy(&mut self, now: Instant) {
        if self.started {
            let busy = self.next_deadline(now, true);
            self.deadline = self.deadline.into_iter().chain(busy).min();
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// `reading`: whether the owner lets us read at all. If not, silence says nothing about the server.
    pub(crate) fn handle_timeout(&mut self, now: Instant, busy: bool, reading: bool) -> Result<(), Error> {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return Ok(());
        }
        self.deadline = self.next_deadline(now, busy);
        if !reading {
            self.unanswered = 0;
            return Ok(());
        }
        let (_, count) = self.policy(busy);
        if self.unanswered >= count.max(1) {
            return Err(Error::Silent);
        }
        self.unanswered += 1;
        self.probe_due = true;
        Ok(())
    }

    /// Whether a probe is to be sent now; says so once.
    pub(crate) fn take_probe(&mut self) -> bool {
        std::mem::take(&mut self.probe_due)
    }

    fn policy(&self, busy: bool) -> (Duration, u32) {
        if busy { self.config.busy } else { self.config.idle }
    }

    fn next_deadline(&self, now: Instant, busy: bool) -> Option<Instant> {
        let (interval, _) = self.policy(busy);
        // A duration beyond what the clock can hold is as good as never.
        if interval.is_zero() {
            None
        } else {
            now.checked_add(interval)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn timer(start: Instant) -> KeepaliveTimer {
        let mut timer = KeepaliveTimer::new(Keepalive {
            idle: (SECOND * 10, 1),
            busy: (SECOND, 2),
        });
        timer.touch(start, true);
        timer
    }

    #[test]
    fn a_server_is_dead_after_its_probes_and_not_before() {
        let start = Instant::now();
        let mut timer = timer(start);
        for second in 1..=2 {
            assert_eq!(timer.handle_timeout(start + SECOND * second, true, true), Ok(()));
            assert!(timer.take_probe());
            assert!(!timer.take_probe());
        }
        assert_eq!(
            timer.handle_timeout(start + SECOND * 3, true, true),
            Err(Error::Silent)
        );
    }

    #[test]
    fn anything_read_starts_the_count_again() {
        let start = Instant::now();
        let mut timer = timer(start);
        for second in 1..100 {
            assert_eq!(timer.handle_timeout(start + SECOND * second, true, true), Ok(()));
            timer.touch(start + SECOND * second, true);
        }
    }

    #[test]
    fn a_stalled_loop_probes_before_it_judges() {
        let start = Instant::now();
        let mut timer = timer(start);
        assert_eq!(timer.handle_timeout(start + SECOND * 1000, true, true), Ok(()));
        assert!(timer.take_probe());
        assert_eq!(timer.deadline(), Some(start + SECOND * 1001));
    }

    #[test]
    fn a_server_that_is_not_read_from_is_never_dead() {
        let start = Instant::now();
        let mut timer = timer(start);
        for second in 1..100 {
            assert_eq!(timer.handle_timeout(start + SECOND * second, true, false), Ok(()));
            assert!(!timer.take_probe());
        }
    }

    #[test]
    fn a_command_on_an_idle_connection_brings_the_next_probe_forward() {
        let start = Instant::now();
        let mut timer = timer(start);
        timer.touch(start, false);
        assert_eq!(timer.deadline(), Some(start + SECOND * 10));
        timer.become_busy(start);
        assert_eq!(timer.deadline(), Some(start + SECOND));
    }

    #[test]
    fn a_zero_interval_never_probes() {
        let start = Instant::now();
        let mut timer = KeepaliveTimer::new(Keepalive {
            idle: (Duration::ZERO, 3),
            busy: (Duration::ZERO, 3),
        });
        timer.touch(start, true);
        assert_eq!(timer.deadline(), None);
    }
}
