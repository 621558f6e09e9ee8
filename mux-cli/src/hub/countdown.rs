//! A deadline that can stand still. Decides how much time is left; never reads a clock.

use std::time::{Duration, Instant};

/// Time that runs only while nobody is asked and nothing is queued: connect and login timeouts measure the other
/// side, not the person at the keyboard.
#[derive(Clone, Copy, Debug)]
pub(super) enum Countdown {
    /// Not running; this much is left.
    Stopped(Duration),
    /// Runs out at this moment.
    Running(Instant),
}

impl Countdown {
    pub(super) fn start(&mut self, now: Instant) {
        if let Self::Stopped(left) = *self {
            *self = Self::Running(now + left);
        }
    }

    pub(super) fn stop(&mut self, now: Instant) {
        if let Self::Running(end) = *self {
            *self = Self::Stopped(end.saturating_duration_since(now));
        }
    }

    /// Moves the moment at which it runs out, if it runs.
    pub(super) fn postpone(&mut self, moved: impl FnOnce(Instant) -> Instant) {
        if let Self::Running(end) = *self {
            *self = Self::Running(moved(end));
        }
    }

    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Stopped(_) => None,
            Self::Running(end) => Some(end),
        }
    }

    pub(super) fn is_over(self, now: Instant) -> bool {
        self.deadline().is_some_and(|end| end <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spent_standing_still_does_not_count() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut countdown = Countdown::Stopped(10 * second);
        countdown.start(start);
        countdown.stop(start + 4 * second);
        assert!(!countdown.is_over(start + 100 * second));
        countdown.start(start + 100 * second);
        assert_eq!(countdown.deadline(), Some(start + 106 * second));
        assert!(countdown.is_over(start + 106 * second));
    }
}
