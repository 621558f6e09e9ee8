//! What is recorded of a run, and the one line that says it. Environments, inputs and outputs are not part of it: they
//! are where secrets are.

use std::fmt::Write as _;
use std::time::Duration;

use crate::hub::Status;
use crate::output::Tally;

/// The command is recorded whole up to this many bytes: the longest that one argument of a program can be on Linux
/// (`MAX_ARG_STRLEN`) is twice that, and a datagram of everything has to fit into the buffer of a socket (208 KiB).
pub(super) const MAX_COMMAND: usize = 64 * 1024;

/// As much of the folded targets: thousands of hosts that differ in a number fold to some bytes.
pub(super) const MAX_TARGETS: usize = 32 * 1024;

/// Bytes of the command in a line, and of the targets. Both with everything else stay below the 8 KiB at which rsyslog
/// cuts, and the line says how long they are.
const MAX_SHOWN_COMMAND: usize = 4096;
const MAX_SHOWN_TARGETS: usize = 2048;

/// The user that the kernel names where nobody has logged in: a service, or cron without PAM.
const NO_LOGIN: u32 = u32::MAX;

/// What is known of a run before it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The same in both records, and in those of no other run: hexadecimal digits.
    pub id: String,
    /// This process.
    pub pid: u32,
    /// Whose run it is.
    pub uid: u32,
    /// Who has logged in, whoever they became since; none where nobody has.
    pub login_uid: Option<u32>,
    /// The exec string, byte for byte.
    pub command: Vec<u8>,
    /// The folded names.
    pub targets: String,
    /// How many they are.
    pub hosts: usize,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Ours.
    pub status: u8,
    /// What cut the run short: the name of a signal, or `internal`.
    pub cut: Option<&'static str>,
    /// How many hosts ended in which way; ways in which none did are left out.
    pub counts: Vec<(Status, usize)>,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) run: &'a Run,
    /// How it ended and how long it took; none: it begins.
    pub(super) end: Option<(&'a Ending, Duration)>,
}

impl Run {
    /// The login uid as the kernel writes it.
    #[must_use]
    pub fn login_uid(text: &str) -> Option<u32> {
        text.trim().parse().ok().filter(|uid| *uid != NO_LOGIN)
    }

    pub(super) fn shown_login_uid(&self) -> String {
        self.login_uid
            .map_or_else(|| "unset".to_owned(), |uid| uid.to_string())
    }
}

impl Ending {
    /// How a run ended with this status and these outcomes.
    #[must_use]
    pub fn new(status: u8, cut: Option<&'static str>, tally: &Tally) -> Self {
        Self {
            status,
            cut,
            counts: tally.counts().collect(),
        }
    }
}

impl Record<'_> {
    /// Which of the two this is.
    pub(super) fn event(&self) -> &'static str {
        match self.end {
            None => "begin",
            Some(_) => "end",
        }
    }

    /// Everything in one line of printable characters, the longest at the end.
    pub(super) fn line(&self) -> String {
        let run = self.run;
        let mut line = format!(
            "{} run={} login_uid={} uid={}",
            self.event(),
            run.id,
            run.shown_login_uid(),
            run.uid
        );
        if let Some((ending, took)) = self.end {
            add(&mut line, format_args!(" status={}", ending.status));
            if let Some(cut) = ending.cut {
                add(&mut line, format_args!(" cut={cut}"));
            }
            for (status, count) in &ending.counts {
                add(&mut line, format_args!(" {status}={count}"));
            }
            add(&mut line, format_args!(" seconds={:.3}", took.as_secs_f64()));
        }
        add(&mut line, format_args!(" hosts={}", run.hosts));
        let (targets, command) = (run.targets.as_bytes(), run.command.as_slice());
        for (name, value, limit) in [
            ("targets", targets, MAX_SHOWN_TARGETS),
            ("command", command, MAX_SHOWN_COMMAND),
        ] {
            let (text, is_cut) = quoted(value, limit);
            add(&mut line, format_args!(" {name}={text}"));
            if is_cut {
                add(&mut line, format_args!(" {name}_bytes={}", value.len()));
            }
        }
        line
    }
}

fn add(line: &mut String, text: std::fmt::Arguments<'_>) {
    line.write_fmt(text).expect("writing to a String does not fail");
}

/// In quotation marks, with escapes for what would end them, the line or the text; and whether it had to be cut.
fn quoted(value: &[u8], limit: usize) -> (String, bool) {
    let mut text = String::from("\"");
    for chunk in value.utf8_chunks() {
        let valid = chunk.valid().chars().map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            '\n' => "\\n".to_owned(),
            '\t' => "\\t".to_owned(),
            c if c.is_control() => format!("\\u{{{:x}}}", u32::from(c)),
            c => c.to_string(),
        });
        let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        for piece in valid.chain(invalid) {
            if text.len() + piece.len() > limit {
                text.push_str("…\"");
                return (text, true);
            }
            text.push_str(&piece);
        }
    }
    text.push('"');
    (text, false)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::audit) fn run(command: &[u8]) -> Run {
        Run {
            id: "0123456789abcdef".to_owned(),
            pid: 42,
            uid: 0,
            login_uid: Some(1000),
            command: command.to_vec(),
            targets: "web[1-3]".to_owned(),
            hosts: 3,
        }
    }

    pub(in crate::audit) fn ending() -> (Ending, Duration) {
        let ending = Ending {
            status: 143,
            cut: Some("TERM"),
            counts: vec![(Status::Ok, 1), (Status::Cancelled, 2)],
        };
        (ending, Duration::from_millis(1500))
    }

    fn check(run: &Run, end: Option<(&Ending, Duration)>, line: &str) {
        assert_eq!(Record { run, end }.line(), line);
    }

    #[test]
    fn the_first_record_says_who_runs_what_where() {
        check(
            &run(b"uptime"),
            None,
            r#"begin run=0123456789abcdef login_uid=1000 uid=0 hosts=3 targets="web[1-3]" command="uptime""#,
        );
        let service = Run {
            login_uid: None,
            ..run(b"uptime")
        };
        check(
            &service,
            None,
            r#"begin run=0123456789abcdef login_uid=unset uid=0 hosts=3 targets="web[1-3]" command="uptime""#,
        );
    }

    #[test]
    fn the_second_record_says_it_again_and_how_it_ended() {
        let (ending, took) = ending();
        check(
            &run(b"uptime"),
            Some((&ending, took)),
            r#"end run=0123456789abcdef login_uid=1000 uid=0 status=143 cut=TERM ok=1 cancelled=2 seconds=1.500 hosts=3 targets="web[1-3]" command="uptime""#,
        );
    }

    #[test]
    fn a_command_stays_one_line_that_can_be_told_from_ours() {
        let check_quoted =
            |value: &[u8], text: &str| assert_eq!(quoted(value, 4096), (text.to_owned(), false));
        check_quoted(b"echo \"a\\b\"\n\tid", r#""echo \"a\\b\"\n\tid""#);
        check_quoted(b"\x1b[31m \xff \xc3\xbc", "\"\\u{1b}[31m \\xff ü\"");
        check_quoted("\u{9b}".as_bytes(), r#""\u{9b}""#);
    }

    #[test]
    fn what_is_too_long_is_cut_and_its_length_said() {
        let (ending, took) = ending();
        let mut run = run("ü\n".repeat(100_000).as_bytes());
        run.targets = "h,".repeat(10_000);
        let line = Record {
            run: &run,
            end: Some((&ending, took)),
        }
        .line();
        assert!(line.len() < 8000, "{}", line.len());
        assert!(line.contains(" targets_bytes=20000 command=\""));
        assert!(line.ends_with("…\" command_bytes=300000"), "{line}");
    }

    #[test]
    fn nobody_logged_in_is_no_user() {
        assert_eq!(Run::login_uid("1000\n"), Some(1000));
        assert_eq!(Run::login_uid("0"), Some(0));
        assert_eq!(Run::login_uid("4294967295"), None);
        assert_eq!(Run::login_uid(""), None);
    }
}
