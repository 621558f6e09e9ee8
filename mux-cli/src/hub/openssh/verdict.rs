//! How a request ended whose `ssh` has ended: which status, which stage and which words. Pure; it is told everything.

use super::super::job::Ended;
use super::super::{Failure, MissingStatus, Stage, Status, host_key as host_key_words, outcome};
use super::log::{End, Log};

/// Lines of ssh's own words in one message: the last ones say what it was.
const SHOWN_WORDS: usize = 3;

/// What is said of an `ssh` that does not know an option without which its ends are all 255.
const TOO_OLD: &str =
    "this ssh is older than OpenSSH 8.7, which tells how a command ended and can be kept in front";

/// Options that no run can do without, as an ssh calls them that does not know them.
const NEEDED: [&str; 4] = [
    "logverbose",
    "stdinnull",
    "forkafterauthentication",
    "sessiontype",
];

/// What is said of a refused login where nobody was asked for what the server would have taken.
const ASKS_NOBODY: &str = "nothing is asked over this transport, neither for passwords nor for passphrases: \
                           with SSH_ASKPASS_REQUIRE=force the program of SSH_ASKPASS answers";

/// What there is to know about a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'a> {
    pub(super) host: &'a str,
    pub(super) asks_nobody: bool,
    pub(super) missing: MissingStatus,
}

/// Of an `ssh` that ended without one.
const NO_WORD: &str = "ssh ended and did not say why";

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
    (TOO_OLD, Status::Unreachable, Stage::Tcp),
    ("Could not resolve hostname", Status::Unreachable, Stage::Dns),
    ("Bad configuration option", Status::Unreachable, Stage::Tcp),
    ("host key is known for", Status::HostKey, Stage::HostKey),
    ("Host key verification failed", Status::HostKey, Stage::HostKey),
    ("IDENTIFICATION HAS CHANGED", Status::HostKey, Stage::HostKey),
    ("Unable to negotiate", Status::Unreachable, Stage::Kex),
    ("Permission denied (", Status::Auth, Stage::Auth),
    ("Too many authentication failures", Status::Auth, Stage::Auth),
    ("Authentication failed", Status::Auth, Stage::Auth),
    ("ControlPath", Status::Unreachable, Stage::Tcp),
];

/// `status` is what the process ended with, `signal` what ended it, `stderr` what it wrote besides its log before there
/// was a session: ssh's own words, or a proxy's.
pub(super) fn verdict(
    log: &Log,
    (status, signal): (Option<i32>, Option<i32>),
    stderr: &[String],
    about: &About<'_>,
) -> Verdict {
    let missing = about.missing;
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
    if log.sent || silently_over(log, status, &words) {
        let failure = failure(Stage::Command, "connection lost, may have run: ", &words);
        return over(Status::Unknown, None, Some(failure));
    }
    not_begun(log, signal, &words, about)
}

/// It ended as if all was well, or after the login without a word: that may be a process which leaves the session to
/// another one, and whose log shows nothing of it. Nobody knows then what ran.
fn silently_over(log: &Log, status: Option<i32>, words: &[String]) -> bool {
    status == Some(0)
        || status.is_some()
            && log.stage >= Some(Stage::Channel)
            && words.first().is_some_and(|word| word == NO_WORD)
}

/// The command has reached no server.
fn not_begun(log: &Log, signal: Option<i32>, words: &[String], about: &About<'_>) -> Verdict {
    let says = |text: &str| words.iter().any(|line| line.contains(text));
    let known = KNOWN.iter().find(|(text, ..)| says(text));
    // Of a name that it can't find it speaks.
    let stage = log.stage.unwrap_or(Stage::Tcp);
    let (status, stage) = match (known, stage) {
        (Some((_, status, stage)), _) => (*status, *stage),
        (None, Stage::Auth) => (Status::Auth, Stage::Auth),
        (None, stage) => (Status::Unreachable, stage),
    };
    // ssh that was killed, or says nothing of a connection, is no matter of the server's.
    let may_pass = match stage {
        Stage::Dns => says("Could not resolve hostname"),
        Stage::Kex => known.is_none(),
        Stage::Tcp => log.stage.is_some() && known.is_none(),
        Stage::Banner | Stage::Channel => true,
        Stage::HostKey | Stage::Auth | Stage::Command => false,
    };
    let (before, may_pass) = match (stage, known) {
        (Stage::Channel, _) => ("session refused: ", may_pass),
        (Stage::Auth, None) => ("during authentication: ", may_pass),
        _ => ("", may_pass),
    };
    let error = match stage {
        Stage::HostKey => host_key(words, about.host),
        Stage::Auth if about.asks_nobody && says("Permission denied (") => {
            and_also(failure(stage, before, words), ASKS_NOBODY)
        }
        Stage::Dns
        | Stage::Tcp
        | Stage::Banner
        | Stage::Kex
        | Stage::Auth
        | Stage::Channel
        | Stage::Command => failure(stage, before, words),
    };
    Verdict {
        status,
        rc: None,
        error: Some(error),
        may_pass: may_pass && signal.is_none(),
    }
}

/// What ssh says about a key that it does not take, and what to do about it. It stands in many lines, the last of which
/// say the least.
fn host_key(words: &[String], host: &str) -> Failure {
    let between = |before: &str, after: &str| {
        let lines = words.iter();
        lines
            .filter_map(|line| line.split_once(before)?.1.split_once(after))
            .map(|(found, _)| found)
            .next()
    };
    if let Some(key_type) = between("No ", " host key is known for ") {
        let whose = between(" host key is known for ", " and you have requested ").unwrap_or(host);
        let host = host_key_words::quoted(host);
        let message = format!(
            "host key not known ({key_type}, of {whose}); to look at it and keep it: mux hosts learn {host}; \
             to take it as it is: -o StrictHostKeyChecking=accept-new"
        );
        return Failure::new(Stage::HostKey, message);
    }
    let starting = |with: &str| {
        words
            .iter()
            .map(|line| line.trim())
            .find(|line| line.starts_with(with))
    };
    let place = words.iter().find_map(|line| {
        let rest = line.strip_prefix("Offending ")?;
        rest.split_once(" in ").map(|(_, place)| place)
    });
    let (Some(place), Some(_)) = (place, starting("Host key for ")) else {
        return failure(Stage::HostKey, "", words);
    };
    let sent = starting("SHA256:").map(|sent| format!(", server sent {}", sent.trim_end_matches('.')));
    let remove = starting("ssh-keygen ").map(|line| format!("; if you expect this: {line}"));
    let (sent, remove) = (sent.unwrap_or_default(), remove.unwrap_or_default());
    let message = format!("host key changed ({place} has another{sent}){remove}");
    Failure::new(Stage::HostKey, message).in_general("host key changed".to_owned())
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
    // One that the user wrote is in no list of ours but its own.
    let unknown = |line: &String| {
        let name = line.split_once("configuration option: ").map(|(_, name)| name);
        line.starts_with("command-line") && name.is_some_and(|name| NEEDED.contains(&name))
    };
    if words.iter().any(unknown) {
        return vec![TOO_OLD.to_owned()];
    }
    if words.is_empty() {
        words.push(NO_WORD.to_owned());
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

/// The same with another half sentence.
fn and_also(mut failure: Failure, text: &str) -> Failure {
    let general = failure.general.iter_mut();
    for message in general.chain([&mut failure.message]) {
        message.push_str("; ");
        message.push_str(text);
    }
    failure
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

    const ABOUT: About<'_> = About {
        host: "h1",
        asks_nobody: false,
        missing: MissingStatus::Unknown,
    };

    /// A log that came this far and said this, with ssh's own 255, gives this.
    fn check(stage: Stage, words: &[&str], status: Status, at: Stage, message: &str, general: &str) {
        let verdict = verdict(&log(stage, words), (Some(255), None), &[], &ABOUT);
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
            let verdict = verdict(&log, (Some(255), None), &[], &ABOUT);
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
    fn a_key_that_is_not_taken_has_what_to_do_about_it() {
        check(
            Stage::Kex,
            &[
                "No ED25519 host key is known for [10.0.0.1]:23 and you have requested strict checking.",
                "Host key verification failed.",
            ],
            Status::HostKey,
            Stage::HostKey,
            "host key not known (ED25519, of [10.0.0.1]:23); to look at it and keep it: mux hosts learn h1; \
             to take it as it is: -o StrictHostKeyChecking=accept-new",
            "host key not known (ED25519, of [10.0.0.1]:23); to look at it and keep it: mux hosts learn h1; \
             to take it as it is: -o StrictHostKeyChecking=accept-new",
        );
        check(
            Stage::Kex,
            &[
                "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!",
                "The fingerprint for the ED25519 key sent by the remote host is",
                "SHA256:abc.",
                "Please contact your system administrator.",
                "Add correct host key in /k to get rid of this message.",
                "Offending ED25519 key in /k:7",
                "  remove with:",
                "  ssh-keygen -f \"/k\" -R \"h1\"",
                "Host key for h1 has changed and you have requested strict checking.",
                "Host key verification failed.",
            ],
            Status::HostKey,
            Stage::HostKey,
            "host key changed (/k:7 has another, server sent SHA256:abc); if you expect this: ssh-keygen -f \"/k\" -R \"h1\"",
            "host key changed",
        );
    }

    #[test]
    fn one_that_leaves_the_session_to_another_process_may_have_run_the_command() {
        let of = |stage, status, words: &[&str]| {
            let log = Log {
                sent: false,
                ..log(stage, words)
            };
            let verdict = verdict(&log, (Some(status), None), &[], &ABOUT);
            (verdict.status, verdict.may_pass)
        };
        assert_eq!(of(Stage::Channel, 0, &[]), (Status::Unknown, false));
        assert_eq!(of(Stage::Channel, 255, &[]), (Status::Unknown, false));
        assert_eq!(of(Stage::Dns, 0, &[]), (Status::Unknown, false));
        let refused = "open failed: administratively prohibited";
        assert_eq!(of(Stage::Channel, 255, &[refused]), (Status::Unreachable, true));
    }

    #[test]
    fn a_login_that_nobody_was_asked_for_says_how_somebody_can_be() {
        let denied = log(Stage::Auth, &["u@h1: Permission denied (publickey,password)."]);
        let about = About {
            asks_nobody: true,
            ..ABOUT
        };
        let error = verdict(&denied, (Some(255), None), &[], &about).error.unwrap();
        let expected = format!("u@h1: Permission denied (publickey,password).; {ASKS_NOBODY}");
        assert_eq!(error.message, expected);
    }

    #[test]
    fn ssh_that_was_killed_says_so() {
        let verdict = verdict(&log(Stage::Kex, &[]), (None, Some(9)), &[], &ABOUT);
        assert_eq!(verdict.error.unwrap().message, "ssh was ended by SIGKILL");
        assert!(!verdict.may_pass);
    }
}
