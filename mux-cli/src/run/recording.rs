//! The record of a run, as far as this process is asked for it: gathers who runs what where, and puts into words what
//! could not be recorded. What a record says and where it goes is the audit's.

use std::time::Instant;

use nix::unistd::Uid;

use crate::audit::{Audit, Ending, Loss, Run};
use crate::exit::Cut;
use crate::files;
use crate::output::Tally;
use crate::plan::{Action, Plan};
use crate::preferences::{AuditLog, AuditPreferences};
use crate::targets::{Target, fold};

/// Who has logged in, by the kernel; a number of ten digits at most.
const LOGIN_UID: &str = "/proc/self/loginuid";
const MAX_LOGIN_UID: u64 = 16;

/// A run that is being recorded.
#[derive(Debug)]
pub(super) struct Recording {
    audit: Audit,
    started: Instant,
    lost: Option<Loss>,
}

impl Recording {
    /// Records that a run begins; none: nobody wants to know, or it runs no command.
    ///
    /// # Errors
    /// It can't be recorded, and must not go on without. In words.
    pub(super) fn begin(
        preferences: &AuditPreferences,
        now: Instant,
        plan: &Plan,
        targets: &[Target],
    ) -> Result<Option<Self>, String> {
        let command = match &plan.action {
            Action::Run(command) if preferences.to != AuditLog::None => command,
            Action::Run(_) | Action::ListHosts | Action::LearnHosts(_) => return Ok(None),
        };
        // A number that nobody can guess is as good as one that nobody else has.
        let mut random = [0; 8];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| "no randomness for the name of the run".to_owned())?;
        let run = Run {
            id: format!("{:016x}", u64::from_ne_bytes(random)),
            pid: std::process::id(),
            uid: Uid::current().as_raw(),
            login_uid: login_uid(),
            command: command.clone(),
            targets: fold(targets),
            hosts: targets.len(),
        };
        let Some(mut audit) = Audit::new(preferences, now, run) else {
            return Ok(None);
        };
        let lost = audit.begin().err();
        if let Some(loss) = lost.as_ref().filter(|_| audit.is_required()) {
            return Err(format!(
                "audit: {loss}; nothing was run, for the configuration says that every run has to be recorded"
            ));
        }
        Ok(Some(Self {
            audit,
            started: now,
            lost,
        }))
    }

    /// That the beginning is not recorded, if it isn't.
    pub(super) fn lost_words(&self) -> Option<String> {
        self.lost.as_ref().map(words)
    }

    /// Records how the run ended. What could not be recorded is returned in words, if that was not said before.
    pub(super) fn end(
        &mut self,
        now: Option<Instant>,
        status: u8,
        cut: Option<Cut>,
        tally: &Tally,
    ) -> Option<String> {
        let ending = Ending::new(status, cut.map(Cut::name), tally);
        let ended = self.audit.end(now.unwrap_or(self.started), &ending);
        ended.err().as_ref().map(words)
    }
}

fn words(loss: &Loss) -> String {
    format!("audit: {loss}; this run is not recorded as [audit] of the configuration asks")
}

fn login_uid() -> Option<u32> {
    let text = files::read(LOGIN_UID.as_ref(), MAX_LOGIN_UID).ok()?;
    Run::login_uid(&String::from_utf8_lossy(&text))
}
