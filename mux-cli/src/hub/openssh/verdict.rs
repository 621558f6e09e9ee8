//! How a request ended whose `ssh` has ended: which status, which stage and which words. Pure; it is told everything.

use super::super::job::Ended;
use super::super::{Failure, MissingStatus, Stage, Status, outcome};
use super::log::{End, Log};

/// Lines of ssh's own words in one message: the last ones say what it was.
const SHOWN_WORDS: usize = 3;

/// What is said of an `ssh` that does not know an option without which its ends are all 255.
const TOO_OLD: &str = "this ssh is older than OpenSSH 8.5, whose LogVerbose tells how a command ended";

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: Status,
    pub(super) rc: Option<i32>,
    pub(super) error: Option<Failure>,
    /// It may fare better another time.
    pub(super) may_pass: bool,
}

/// Words of ssh, and what they mean.
const KNOWN: [(&str, Status, Stage); 11] = [
    (TOO_OLD, Status::Unreachable, Stage::Dns),
    ("Could not resolve hostname", Status::Unreachable, Stage::Dns),
    ("Bad configuration option", Status::Unreachable, Stage::Dns),
    ("host key is known for", Status::HostKey, Stage::HostKey),
    ("Host key verification failed", Status::HostKey, Stage::HostKey),
    ("IDENTIFICATION HAS CHANGED", Status::HostKey, Stage::HostKey),
    ("Unable to negotiate", Status::Unreachable, Stage::Kex),
    ("Permission denied (", Status::Auth, Stage::Auth),
    ("Too many authentication failures", Status::Auth, Stage::Auth),
    ("Authentication failed", Status::Auth, Stage::Auth),
    ("ControlPath", Status::Unreachable, Stage::Dns),
];

/// `status` is what the process ended with, `signal` what ended it, `stderr` what it wrote besides its log before there
/// was a session: ssh's own words, or a proxy's.
pub(super) fn verdict(
    log: &Log,
    (status, signal): (Option<i32>, Option<i32>),
    stderr: &[String],
    missing: MissingStatus,
) -> Verdict {
    match (log.end, status) {
        (Some(End::Status), Some(rc)) => {
            let ended = Ended {
                rc: Some(rc),
                signal: None,
            };
            let (status, error) = outcome::ended(&ended, missing);
            return over(status, Some(rc), error);
        }
        (Some(End::Signal), Some(_)) => {
            let message = "killed by a signal; ssh does not say which";
            let failure = Failure::new(Stage::Command, message);
            return over(Status::Failed, None, Some(failure));
        }
        (Some(_) | None, _) => {}
    }
    let words = words(log, signal, stderr);
    if log.stage == Some(Stage::Command) && log.closed && log.words.is_empty() && status.is_some() {
        let (status, error) = outcome::ended(&Ended::default(), missing);
        return over(status, None, error);
    }
    if log.refused {
        let message = "the server refused to run the command";
        let failure = Failure::new(Stage::Channel, message);
        return over(Status::Unreachable, None, Some(failure));
    }
    if log.sent {
        let failure = failure(Stage::Command, "connection lost, may have run: ", &words);
        return over(Status::Unknown, None, Some(failure));
    }
    not_begun(log, signal, &words)
}

/// The command has reached no server.
fn not_begun(log: &Log, signal: Option<i32>, words: &[String]) -> Verdict {
    let says = |text: &str| words.iter().any(|line| line.contains(text));
    let known = KNOWN.iter().find(|(text, ..)| says(text));
    let stage = log.stage.unwrap_or(Stage::Dns);
    let (status, stage) = match (known, stage) {
        (Some((_, status, stage)), _) => (*status, *stage),
        (None, Stage::Auth) => (Status::Auth, Stage::Auth),
        (None, stage) => (Status::Unreachable, stage),
    };
    // ssh that was killed, or says nothing of a connection, is no matter of the server's.
    let may_pass = match stage {
        Stage::Dns => says("Could not resolve hostname"),
        Stage::Kex => known.is_none(),
        Stage::Tcp | Stage::Banner | Stage::Channel => true,
        Stage::HostKey | Stage::Auth | Stage::Command => false,
    };
    let (before, may_pass) = match (stage, known) {
        (Stage::Channel, _) => ("session refused: ", may_pass),
        (Stage::Auth, None) => ("during authentication: ", may_pass),
        _ => ("", may_pass),
    };
    Verdict {
        status,
        rc: None,
        error: Some(failure(stage, before, words)),
        may_pass: may_pass && signal.is_none(),
    }
}

fn over(status: Status, rc: Option<i32>, error: Option<Failure>) -> Verdict {
    Verdict {
        status,
        rc,
        error,
        may_pass: false,
    }
}

/// ssh's own words: its log first, and what it could not write there.
fn words(log: &Log, signal: Option<i32>, stderr: &[String]) -> Vec<String> {
    if let Some(number) = signal {
        return vec![format!("ssh was ended by SIG{}", outcome::signal_name(number))];
    }
    let mut words: Vec<String> = stderr.iter().chain(&log.words).cloned().collect();
    words.dedup();
    if words
        .iter()
        .any(|line| line.ends_with("configuration option: logverbose"))
    {
        return vec![TOO_OLD.to_owned()];
    }
    if words.is_empty() {
        words.push("ssh ended and did not say why".to_owned());
    }
    words
}

fn failure(stage: Stage, before: &str, words: &[String]) -> Failure {
    let skipped = words.len().saturating_sub(SHOWN_WORDS);
    let shown: Vec<&str> = words.iter().skip(skipped).map(String::as_str).collect();
    let own = format!("{before}{}", shown.join("; "));
    let general: Vec<&str> = shown.iter().map(|line| general(line)).collect();
    let general = format!("{before}{}", general.join("; "));
    match own == general {
        true => Failure::new(stage, own),
        false => Failure::new(stage, own).in_general(general),
    }
}

/// What is left of a line without names and addresses: `Connection refused` of `ssh: connect to host 10.0.0.1 port 22:
/// Connection refused`, `Connection closed` of `Connection closed by 10.0.0.1 port 22`.
fn general(line: &str) -> &str {
    let names_address =
        |text: &str| text.contains(" port ") || text.contains("hostname ") || text.contains('@');
    match line.rsplit_once(": ") {
        Some((before, rest)) if names_address(before) && !names_address(rest) => rest,
        Some(_) | None => match line.split_once(" by ") {
            Some((what, by)) if names_address(by) => what,
            Some(_) | None => line,
        },
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn log(stage: Stage, words: &[&str]) -> Log {
        Log {
            stage: Some(stage),
            sent: stage == Stage::Command,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Log::default()
        }
    }

    /// A log that came this far and said this, with ssh's own 255, gives this.
    fn check(stage: Stage, words: &[&str], status: Status, at: Stage, message: &str, general: &str) {
        let verdict = verdict(&log(stage, words), (Some(255), None), &[], MissingStatus::Unknown);
        let error = verdict.error.unwrap();
        assert_eq!((verdict.status, error.stage), (status, at), "{words:?}");
        assert_eq!(error.message, message);
        assert_eq!(error.general.as_deref().unwrap_or(&error.message), general);
    }

    #[test]
    fn words_of_ssh_name_the_stage_and_are_shown() {
        use Status::{Auth, HostKey, Unknown, Unreachable};
        let text = "ssh: Could not resolve hostname h1: Name or service not known";
        check(
            Stage::Dns,
            &[text],
            Unreachable,
            Stage::Dns,
            text,
            "Name or service not known",
        );
        let text = "ssh: connect to host 10.0.0.1 port 22: Connection refused";
        check(
            Stage::Tcp,
            &[text],
            Unreachable,
            Stage::Tcp,
            text,
            "Connection refused",
        );
        let text = "Connection closed by 10.0.0.1 port 22";
        check(
            Stage::Kex,
            &[text],
            Unreachable,
            Stage::Kex,
            text,
            "Connection closed",
        );
        let text = "Host key verification failed.";
        check(Stage::Kex, &[text], HostKey, Stage::HostKey, text, text);
        let text = "u@h1: Permission denied (publickey).";
        check(
            Stage::Auth,
            &[text],
            Auth,
            Stage::Auth,
            text,
            "Permission denied (publickey).",
        );
        let text = "Connection reset by 10.0.0.1 port 22";
        check(
            Stage::Auth,
            &[text],
            Auth,
            Stage::Auth,
            "during authentication: Connection reset by 10.0.0.1 port 22",
            "during authentication: Connection reset",
        );
        check(
            Stage::Command,
            &[text],
            Unknown,
            Stage::Command,
            "connection lost, may have run: Connection reset by 10.0.0.1 port 22",
            "connection lost, may have run: Connection reset",
        );
        check(
            Stage::Dns,
            &[],
            Unreachable,
            Stage::Dns,
            "ssh ended and did not say why",
            "ssh ended and did not say why",
        );
    }

    #[test]
    fn three_kinds_of_255_are_told_apart() {
        let of = |end, closed| {
            let log = Log {
                end,
                closed,
                ..log(Stage::Command, &[])
            };
            let verdict = verdict(&log, (Some(255), None), &[], MissingStatus::Unknown);
            (
                verdict.status,
                verdict.rc,
                verdict.error.map(|error| error.message),
            )
        };
        assert_eq!(of(Some(End::Status), true), (Status::Failed, Some(255), None));
        let signal = Some("killed by a signal; ssh does not say which".to_owned());
        assert_eq!(of(Some(End::Signal), true), (Status::Failed, None, signal));
        let none = Some("the command ended without an exit status".to_owned());
        assert_eq!(of(None, true), (Status::Unknown, None, none));
        let lost = Some("connection lost, may have run: ssh ended and did not say why".to_owned());
        assert_eq!(of(None, false), (Status::Unknown, None, lost));
    }

    #[test]
    fn ssh_that_was_killed_says_so() {
        let verdict = verdict(
            &log(Stage::Kex, &[]),
            (None, Some(9)),
            &[],
            MissingStatus::Unknown,
        );
        assert_eq!(verdict.error.unwrap().message, "ssh was ended by SIGKILL");
        assert!(!verdict.may_pass);
    }
}
