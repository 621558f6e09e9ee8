//! What a signal does to a run: the loop's side of `stop`, which decides what it means.

use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::process::Signal as Number;

use super::engine::Engine;
use super::report;
use super::stop::{Order, Signal};
use crate::exit::Cut;
use crate::hub::{Level, Reason, RequestId, Stage};
use crate::output::Destination;
use crate::words;

/// Who leaves does not wait longer for a reader that stands still.
const LEAVING: Duration = Duration::from_secs(1);

impl Engine {
    /// A signal of the process has come.
    pub(super) fn signal(&mut self, now: Instant, number: i32) {
        let signal = match number {
            number if number == Number::INT.as_raw() => Signal::Interrupt,
            number if number == Number::QUIT.as_raw() => Signal::Quit,
            number if number == Number::TERM.as_raw() => Signal::Terminate,
            number if number == Number::HUP.as_raw() => Signal::Hangup,
            number if number == Number::WINCH.as_raw() => {
                if let Some(width) = super::terminal::width() {
                    self.output.resize(width);
                }
                return;
            }
            number if number == Number::TSTP.as_raw() => return self.outside.suspend(),
            number if number == Number::CONT.as_raw() => return self.outside.continued(),
            _ => {
                self.say_running(now);
                return self.show_flights();
            }
        };
        let order = self.stop.on_signal(signal);
        self.cut = self.cut.or(self.stop.cut());
        match order {
            Order::Hold if self.ask_no_more(now) && !self.runs_something() => {
                self.stop.kill_at_once();
                self.kill(now);
            }
            Order::Hold => self.hold(now),
            Order::Kill => self.kill(now),
            Order::Leave => self.leave(now),
        }
    }

    /// Whoever waits for somebody's answer does not start any more; true: one was being asked for.
    fn ask_no_more(&mut self, now: Instant) -> bool {
        let asked = self.outside.is_asking();
        for request in self.outside.waiting_for_answers() {
            self.cancel(now, request, Reason::Interrupted);
        }
        self.outside.ask_no_more();
        asked
    }

    fn runs_something(&self) -> bool {
        let running = self.running();
        running.iter().any(|(_, stage, _)| *stage >= Stage::Channel)
    }

    fn hold(&mut self, now: Instant) {
        let queued = self.queued();
        self.hold_all(now);
        let started = if queued == 0 {
            String::new()
        } else {
            format!("{queued} hosts not started; ")
        };
        self.say(
            Level::Warning,
            format!("{started}Ctrl-C again stops what runs, once more leaves at once"),
        );
        self.say_running(now);
    }

    fn kill(&mut self, now: Instant) {
        self.ask_no_more(now);
        self.cancel_all(now, Reason::Interrupted);
        let running: Vec<RequestId> = self.running().iter().map(|(request, ..)| *request).collect();
        if self.stop.on_terminal() && !running.is_empty() {
            let names = report::names(&running, &self.targets);
            self.say(
                Level::Warning,
                format!("stopping {names}; Ctrl-C once more leaves at once"),
            );
        }
    }

    fn say_running(&mut self, now: Instant) {
        for line in report::running(now, &self.running(), &self.targets) {
            self.say(Level::Warning, line);
        }
    }

    /// Prints what there is and goes, whatever still runs.
    fn leave(&mut self, now: Instant) {
        if self.leave_by.is_some() {
            return;
        }
        self.leave_by = Some(now + LEAVING);
        let running = self.running();
        let running = running
            .iter()
            .filter(|(_, stage, _)| *stage >= Stage::Auth)
            .map(|(request, ..)| *request);
        let left = self.left_running().into_iter().chain(running).collect();
        if !std::mem::replace(&mut self.over, true) {
            self.say_left_running(left);
            self.output.finish(now);
        }
    }
    /// Who leaves a reader that stands still has standard error all the same: nothing of what belongs there is held up
    /// by what the other stream does not take.
    pub(super) fn say_last_words(&mut self) {
        let is_written = self.output.is_done() && self.writer.is_idle();
        // A reader that has left is no news.
        if is_written || self.cut == Some(Cut::BrokenPipe) {
            return;
        }
        let mut left = self.writer.take_back();
        for request in std::mem::take(&mut left.saved) {
            self.output.saved(request);
        }
        while let Some(write) = self.output.poll_write() {
            left.add(&write);
            if let Destination::Saved { request, .. } = write.to {
                self.output.saved(request);
            }
        }
        if left.lost > 0 {
            let text = format!(
                "left before all output was taken: up to {} bytes are lost",
                left.lost
            );
            left.words.push(Bytes::from(words::line(&text)));
        }
        if !self.stderr_failed {
            self.writer.write_last(&left.words);
        }
    }
}
