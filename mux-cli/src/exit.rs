//! The exit status of a run, from how its hosts ended and what cut it short.

use crate::hub::{Outcome, Status};
use crate::output::Tally;
use crate::plan::ExitRule;

/// All hosts ended well.
pub const OK: u8 = 0;
/// A remote command failed, or how it ended is not known.
pub const FAILED: u8 = 1;
/// Usage, configuration, or nothing to run on.
pub const USAGE: u8 = 2;
/// Killed by `--timeout`.
pub const TIMEOUT: u8 = 3;
/// Unreachable, authentication or host key.
pub const UNREACHABLE: u8 = 4;
/// Something of ours failed: output that could not be written, a resource that ran out.
pub const INTERNAL: u8 = 125;
/// SIGINT: 128 + 2, as shells have it.
pub const SIGINT: u8 = 130;
/// SIGQUIT: 128 + 3.
pub const SIGQUIT: u8 = 131;
/// SIGPIPE: 128 + 13. Whoever read our output left, and tools that ignore this status ignore it from all writers.
pub const SIGPIPE: u8 = 141;
/// SIGTERM and SIGHUP: 128 + 15.
pub const SIGTERM: u8 = 143;

/// What a missing remote status counts with `-S`; ssh gives the same.
const NO_STATUS: u8 = 255;

/// What ended a run before its hosts did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// SIGINT.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTERM or SIGHUP.
    Terminate,
    /// Nobody reads standard output any more.
    BrokenPipe,
    /// Something of ours failed.
    Internal,
}

impl Cut {
    /// The word for it in records: the name of the signal, if it was one.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
            Self::Terminate => "TERM",
            Self::BrokenPipe => "PIPE",
            Self::Internal => "internal",
        }
    }
}

/// The exit status of a run.
#[must_use]
pub fn status(tally: &Tally, rule: ExitRule, cut: Option<Cut>) -> u8 {
    match cut {
        Some(Cut::Interrupt) => SIGINT,
        Some(Cut::Quit) => SIGQUIT,
        Some(Cut::Terminate) => SIGTERM,
        Some(Cut::BrokenPipe) => SIGPIPE,
        Some(Cut::Internal) => INTERNAL,
        None => match rule {
            ExitRule::Fleet => tally.outcomes().map(kind).max().unwrap_or(OK),
            ExitRule::Largest => tally.outcomes().map(remote).max().unwrap_or(OK),
        },
    }
}

/// The statuses are ordered by how much they say about the fleet: 4 > 3 > 1.
fn kind(outcome: Option<&Outcome>) -> u8 {
    match outcome.map(|outcome| outcome.status) {
        Some(Status::Ok) => OK,
        Some(Status::Failed | Status::Unknown | Status::Skipped | Status::Cancelled) | None => FAILED,
        Some(Status::Timeout) => TIMEOUT,
        Some(Status::Unreachable | Status::Auth | Status::HostKey) => UNREACHABLE,
    }
}

/// What a host's command itself says.
fn remote(outcome: Option<&Outcome>) -> u8 {
    let Some(outcome) = outcome else { return NO_STATUS };
    match (outcome.rc, outcome.signal.as_deref().and_then(signal_number)) {
        (_, Some(signal)) => 128 + signal,
        // Statuses above 255 exist in the protocol (RFC 4254, section 6.10), and cut to a byte they could be 0.
        (Some(rc), None) => u8::try_from(rc).unwrap_or(NO_STATUS),
        (None, None) if outcome.status == Status::Ok => OK,
        (None, None) => NO_STATUS,
    }
}

/// The numbers of the signals that RFC 4254, section 6.10, names, and of those that OpenSSH adds, on Linux and macOS
/// where they agree.
fn signal_number(name: &str) -> Option<u8> {
    const SIGNALS: [(&str, u8); 15] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ILL", 4),
        ("TRAP", 5),
        ("ABRT", 6),
        ("FPE", 8),
        ("KILL", 9),
        ("SEGV", 11),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("XCPU", 24),
        ("USR1", 10),
        ("USR2", 12),
    ];
    SIGNALS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Timings;
    use crate::output::tally_of;

    fn outcome(status: Status, rc: Option<i32>, signal: Option<&str>) -> Outcome {
        let signal = signal.map(str::to_owned);
        Outcome {
            status,
            rc,
            signal,
            error: None,
            timings: Timings::default(),
            attempts: 1,
            retries: 0,
        }
    }

    /// These outcomes give this status, and this one with `-S`.
    fn check(outcomes: &[(Status, Option<i32>, Option<&str>)], fleet: u8, largest: u8) {
        let tally = tally_of(
            outcomes
                .iter()
                .map(|(status, rc, signal)| outcome(*status, *rc, *signal)),
        );
        assert_eq!(status(&tally, ExitRule::Fleet, None), fleet, "{outcomes:?}");
        assert_eq!(status(&tally, ExitRule::Largest, None), largest, "{outcomes:?}");
        assert_eq!(status(&tally, ExitRule::Fleet, Some(Cut::Interrupt)), 130);
        assert_eq!(status(&tally, ExitRule::Largest, Some(Cut::Terminate)), 143);
        assert_eq!(status(&tally, ExitRule::Largest, Some(Cut::Quit)), 131);
        assert_eq!(status(&tally, ExitRule::Largest, Some(Cut::Internal)), 125);
        assert_eq!(status(&tally, ExitRule::Fleet, Some(Cut::BrokenPipe)), 141);
    }

    #[test]
    fn the_worst_kind_of_failure_counts_and_with_s_the_largest_remote_status() {
        let ok = (Status::Ok, Some(0), None);
        let failed = (Status::Failed, Some(7), None);
        let timeout = (Status::Timeout, None, Some("TERM"));
        let dead = (Status::Unreachable, None, None);
        check(&[], 0, 0);
        check(&[ok, ok], 0, 0);
        check(&[ok, failed], 1, 7);
        check(&[failed, timeout, ok], 3, 143);
        check(&[failed, dead, timeout], 4, 255);
        check(&[ok, (Status::Auth, None, None)], 4, 255);
        check(&[ok, (Status::HostKey, None, None)], 4, 255);
        check(&[ok, (Status::Unknown, None, None)], 1, 255);
        // A missing status that was asked to be taken for a good one.
        check(&[ok, (Status::Ok, None, None)], 0, 0);
        check(&[(Status::Failed, None, Some("KILL"))], 1, 137);
        check(&[(Status::Failed, None, Some("GRUE"))], 1, 255);
        check(&[(Status::Failed, Some(256), None)], 1, 255);
        check(&[(Status::Failed, Some(-1), None)], 1, 255);
        check(&[(Status::Failed, Some(255), None), failed], 1, 255);
    }
}
