//! The line on a terminal that says how far the run is. It decides what the line says and when it is due; the writer
//! puts it in the place of the one before and takes it away before anything else is written.

use std::time::{Duration, Instant};

use super::tally::{Tally, shown_duration};
use crate::targets::{Target, fold};

/// A run that ends sooner shows no line: it would only flicker.
const FIRST_AFTER: Duration = Duration::from_millis(300);

/// Ten times a second looks alive and costs nothing.
const EVERY: Duration = Duration::from_millis(100);

/// Names are shown of at most so many running hosts; folding thousands ten times a second would cost more than the run.
const MAX_NAMED: usize = 64;

/// How far the run is.
#[derive(Debug)]
pub(super) struct Progress {
    started: Instant,
    due: Instant,
    held: bool,
    running: Vec<bool>,
    count: usize,
    width: usize,
}

impl Progress {
    pub(super) fn new(now: Instant, hosts: usize, width: usize) -> Self {
        Self {
            started: now,
            due: now + FIRST_AFTER,
            held: false,
            running: vec![false; hosts],
            count: 0,
            width,
        }
    }

    pub(super) fn resize(&mut self, width: usize) {
        self.width = width;
    }

    pub(super) fn set_running(&mut self, index: usize, running: bool) {
        let Some(slot) = self.running.get_mut(index) else {
            return;
        };
        if std::mem::replace(slot, running) != running {
            self.count = if running { self.count + 1 } else { self.count - 1 };
        }
    }

    pub(super) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        (!self.held).then_some(self.due)
    }

    /// The line for now, if it is due.
    pub(super) fn line(&mut self, now: Instant, tally: &Tally, hosts: &[Target]) -> Option<String> {
        if self.held || now < self.due {
            return None;
        }
        self.due = now + EVERY;
        let time = shown_duration(now.saturating_duration_since(self.started));
        let mut line = format!("{}/{} done", tally.finished(), tally.hosts());
        if tally.not_ok() > 0 {
            line += &format!(", {} not ok", tally.not_ok());
        }
        line += &format!(", {} running, {time}", self.count);
        if (1..=MAX_NAMED).contains(&self.count) {
            let running = self
                .running
                .iter()
                .zip(hosts)
                .filter(|(running, _)| **running)
                .map(|(_, host)| host);
            line += &format!(": {}", fold(running));
        }
        // The last column is left free: some terminals wrap when it is written to.
        Some(shortened(&line, self.width.saturating_sub(1)))
    }
}

fn shortened(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(3)).collect();
    format!("{kept}...")
}
