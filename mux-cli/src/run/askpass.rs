//! A program that asks in our place (`SSH_ASKPASS`), as ssh knows it: the question is its argument, the answer the first
//! line that it prints. Decides when it is used, and that it ends with whoever wanted to know; never what is asked.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use mux_ssh::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use zeroize::Zeroizing;

/// Where ssh looks if nobody names a program.
const DEFAULT: &str = "/usr/bin/ssh-askpass";

/// What an answer is cut to, as ssh's.
const MAX_ANSWER: usize = 1023;

/// How often one that has closed its output and lives on is looked at.
const LIVES_ON: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Terminal,
    Program(PathBuf),
    Nobody,
}

/// Whom to ask, by what the environment says and by whether there is a terminal.
pub(super) fn way(variable: impl Fn(&str) -> Option<OsString>, has_terminal: impl FnOnce() -> bool) -> Way {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    let require = variable("SSH_ASKPASS_REQUIRE").and_then(|value| value.into_string().ok());
    let (first, allowed) = match require.map(|value| value.to_ascii_lowercase()).as_deref() {
        Some("force") => (true, true),
        Some("prefer") => (display, display),
        Some("never") => (false, false),
        Some(_) | None => (false, display),
    };
    if !first && has_terminal() {
        return Way::Terminal;
    }
    if !allowed {
        return Way::Nobody;
    }
    Way::Program(variable("SSH_ASKPASS").unwrap_or_else(|| DEFAULT.into()).into())
}

/// The thread's end: what it runs, and whether anybody still wants to know.
#[derive(Debug)]
pub(crate) struct Asker {
    program: PathBuf,
    owner: UnixStream,
}

impl Asker {
    pub(super) fn new(program: PathBuf, owner: UnixStream) -> Self {
        Self { program, owner }
    }

    /// Runs the program, and waits until it has answered. Blocks.
    pub(super) fn ask(&mut self, question: &str) -> io::Result<Secret> {
        let name = self.program.display().to_string();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        let child = Command::new(&self.program)
            .arg(question)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.map_err(named)?;
        let answer = self.answer(&mut child);
        if answer.is_err() {
            // It may have ended by itself, and has nothing to say in any case.
            let _ = child.kill();
            let _ = child.wait();
        }
        answer.map_err(named)
    }

    fn answer(&mut self, child: &mut Child) -> io::Result<Secret> {
        let mut answer = Zeroizing::new(Vec::with_capacity(MAX_ANSWER));
        if let Some(mut output) = child.stdout.take() {
            self.read(&mut output, &mut answer)?;
        }
        let status = loop {
            match child.try_wait()? {
                Some(status) => break status,
                None => self.still_wanted(&[], Some(&LIVES_ON))?,
            }
        };
        if !status.success() {
            return Err(io::Error::other(format!("no answer ({status})")));
        }
        let end = answer.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        if let Some(end) = end {
            answer.truncate(end);
        }
        Ok(Secret::from(answer))
    }

    fn read(&mut self, output: &mut ChildStdout, answer: &mut Vec<u8>) -> io::Result<()> {
        let mut byte = Zeroizing::new([0]);
        while answer.len() < MAX_ANSWER {
            self.still_wanted(&[PollFd::new(output, PollFlags::IN)], None)?;
            match output.read(&mut *byte) {
                Ok(0) => break,
                Ok(_) => answer.extend_from_slice(&*byte),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for one of `others`, but no longer than anybody wants to know.
    fn still_wanted(&mut self, others: &[PollFd<'_>], limit: Option<&Timespec>) -> io::Result<()> {
        loop {
            let mut ends = vec![PollFd::new(&self.owner, PollFlags::IN)];
            ends.extend_from_slice(others);
            match poll(&mut ends, limit) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let told = ends.first().is_some_and(|end| !end.revents().is_empty());
            let ready = ends.iter().skip(1).any(|end| !end.revents().is_empty());
            // What the terminal would be told (to show the question, to ask again) is nothing to a program.
            if told && self.owner.read(&mut [0; 16])? == 0 {
                return Err(io::Error::new(ErrorKind::Interrupted, "given up"));
            }
            if ready {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    /// Whom to ask with these variables set.
    fn check(variables: &[(&str, &str)], has_terminal: bool, expected: Way) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        assert_eq!(
            way(variable, || has_terminal),
            expected,
            "{variables:?} {has_terminal}"
        );
    }

    #[test]
    fn the_terminal_is_asked_and_a_program_where_there_is_none() {
        let program = || Way::Program("/ask".into());
        let ask = ("SSH_ASKPASS", "/ask");
        let display = ("DISPLAY", ":0");
        let require = |how| ("SSH_ASKPASS_REQUIRE", how);
        check(&[], true, Way::Terminal);
        check(&[], false, Way::Nobody);
        check(&[ask], false, Way::Nobody);
        check(&[ask, display], true, Way::Terminal);
        check(&[ask, display], false, program());
        check(&[ask, ("WAYLAND_DISPLAY", "w")], false, program());
        check(&[ask, ("DISPLAY", "")], false, Way::Nobody);
        check(&[display], false, Way::Program(DEFAULT.into()));
        check(&[ask, require("force")], true, program());
        check(&[ask, require("FORCE")], false, program());
        check(&[ask, display, require("prefer")], true, program());
        check(&[ask, require("prefer")], true, Way::Terminal);
        check(&[ask, require("prefer")], false, Way::Nobody);
        check(&[ask, display, require("never")], true, Way::Terminal);
        check(&[ask, display, require("never")], false, Way::Nobody);
        check(&[ask, display, require("unheard-of")], true, Way::Terminal);
    }

    /// What a shell line answers as such a program.
    fn asked(line: &str) -> io::Result<Secret> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("ask");
        let script = format!("#!/bin/sh\n{line}\n");
        let mut file = std::fs::OpenOptions::new();
        let mut file = file
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&program)
            .unwrap();
        io::Write::write_all(&mut file, script.as_bytes()).unwrap();
        drop(file);
        let (_loops, owner) = UnixStream::pair().unwrap();
        Asker::new(program, owner).ask("a $question; with 'words'")
    }

    #[test]
    fn the_first_line_is_the_answer_and_the_question_one_argument() {
        let answer = |line| asked(line).unwrap().expose().to_vec();
        assert_eq!(answer("echo secret"), b"secret");
        assert_eq!(answer("printf 'secret\\r\\nmore\\n'"), b"secret");
        assert_eq!(answer("printf ''"), b"");
        assert_eq!(answer("echo \"$# $1\""), b"1 a $question; with 'words'");
        assert_eq!(answer("exec 1>&-; sleep 0.2"), b"");
    }

    #[test]
    fn one_that_fails_or_is_not_there_has_not_answered() {
        // Nobody reads the rest of this one.
        asked("exec head -c 500000 /dev/zero").unwrap_err();
        let error = asked("echo secret; exit 1").unwrap_err().to_string();
        assert!(
            error.ends_with("no answer (exit status: 1)") && !error.contains("secret"),
            "{error}"
        );
        let (_loops, owner) = UnixStream::pair().unwrap();
        let error = Asker::new("/nowhere/ask".into(), owner).ask("?").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with("/nowhere/ask: "), "{error}");
    }

    #[test]
    fn it_is_ended_when_nobody_wants_to_know_any_more() {
        let (loops, owner) = UnixStream::pair().unwrap();
        drop(loops);
        let error = Asker::new("/bin/sh".into(), owner).ask("/dev/stdin").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let (mut loops, owner) = UnixStream::pair().unwrap();
        // Neither of these means that.
        io::Write::write_all(&mut loops, b"..").unwrap();
        let answer = Asker::new("/bin/echo".into(), owner).ask("yes").unwrap();
        assert_eq!(answer.expose(), b"yes");
    }
}
