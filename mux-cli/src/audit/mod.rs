//! The record of a run in the log of its machine: who ran what where, and how it ended. Decides when a record leaves and
//! what becomes of one that nobody takes; never stops a run that was not to be stopped by it.
//!
//! A run has two records with the same id: one before anything is connected to, since whoever is killed by SIGKILL says
//! nothing more, and one at its end, which repeats what the first said, so that it can be read alone. A first without a
//! second is a run that was killed.

mod journal;
mod record;
mod socket;
mod syslog;

use std::time::Instant;

pub use record::{Ending, Run};
pub use socket::Loss;

use crate::preferences::{AuditLog, AuditPreferences};
use record::Record;
use socket::{Form, Patience, Socket};

/// The records of one run.
#[derive(Debug)]
pub struct Audit {
    run: Run,
    socket: Socket,
    required: bool,
    started: Instant,
    /// The first record, which has not left: the log was busy.
    pending: Option<Vec<u8>>,
    /// It was already said that records are lost.
    complained: bool,
}

impl Audit {
    /// The records of this run, which begins now; none: they are not wanted.
    #[must_use]
    pub fn new(preferences: &AuditPreferences, now: Instant, run: Run) -> Option<Self> {
        let path = preferences.socket.clone();
        let socket = match preferences.to {
            AuditLog::None => return None,
            AuditLog::Auto => Socket::either(path),
            AuditLog::Journal => Socket::journal(path),
            AuditLog::Syslog => Socket::syslog(path),
        };
        Some(Self {
            run,
            socket,
            required: preferences.required,
            started: now,
            pending: None,
            complained: false,
        })
    }

    /// Writes the first record. One that has to be written is waited for; one for which there is no room now is written
    /// together with the second.
    ///
    /// # Errors
    /// It can't be written. [`is_required`](Self::is_required) says whether the run may go on.
    pub fn begin(&mut self) -> Result<(), Loss> {
        let record = self.encoded(None);
        let patience = match self.required {
            true => Patience::Some,
            false => Patience::None,
        };
        match self.socket.send(&record, patience) {
            Err(Loss::Busy) if !self.required => {
                self.pending = Some(record);
                Ok(())
            }
            sent => {
                self.complained = sent.is_err();
                sent
            }
        }
    }

    /// Whether a run that can't be recorded is not to begin.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Writes the second record.
    ///
    /// # Errors
    /// It can't be written, or the first could not, and that was not yet said.
    pub fn end(&mut self, now: Instant, ending: &Ending) -> Result<(), Loss> {
        let took = now.saturating_duration_since(self.started);
        let pending = self.pending.take();
        let last = self.encoded(Some((ending, took)));
        let sent = pending
            .iter()
            .chain([&last])
            .try_for_each(|record| self.socket.send(record, Patience::Some));
        match sent {
            Err(_) if self.complained => Ok(()),
            sent => sent,
        }
    }

    fn encoded(&mut self, end: Option<(&Ending, std::time::Duration)>) -> Vec<u8> {
        let record = Record { run: &self.run, end };
        match self.socket.form() {
            Form::Journal => journal::encode(&record),
            Form::Syslog => syslog::encode(&record),
        }
    }
}
