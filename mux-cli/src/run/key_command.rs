//! `KnownHostsCommand`: a program of the user's that says which keys a host is known by. Decides how it is run and when it
//! is given up; never what follows from what it prints.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mux_ssh::Printable;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::HostId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

/// Hosts wait for it: ten seconds for everything, whether it prints something meanwhile or not. They are counted in pauses
/// between two looks at it, as no clock is read here.
const PAUSES: u32 = 2000;
const PAUSE: Duration = Duration::from_millis(5);

/// Pieces that are read between two pauses: what a pipe holds, so that one that prints without end gets its pauses too.
const PIECES: u32 = 16;

/// A host has a handful of keys; whoever prints this much prints something else.
const MAX_OUTPUT: usize = 1024 * 1024;

/// What it says about a failure is cut to this.
const MAX_ERROR: usize = 4096;

/// So many pauses has a process that leaves for those that run: they look each pause, and need a few on a busy machine.
const LEAVING: u32 = 100;

/// Whether anybody still waits for programs that run; each of these has one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Nobody waits any more. Returns when those that run were stopped, none of which outlives this process.
    pub(crate) fn end(&self) {
        self.0.store(true, Ordering::SeqCst);
        for _ in 0..LEAVING {
            if Arc::strong_count(&self.0) == 1 {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    fn is_over(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The program and its arguments for a host that has shown `key`: `words` as the configuration has them, with the tokens
/// that could not be known before.
pub(crate) fn arguments(words: &[String], host: &HostId, key: &PublicKey) -> Vec<String> {
    let expand = |word: &String| {
        let mut text = String::new();
        let mut chars = word.chars();
        while let Some(next) = chars.next() {
            if next != '%' {
                text.push(next);
                continue;
            }
            match chars.next() {
                Some('f') => text.push_str(&key.fingerprint_sha256()),
                Some('H') => text.push_str(host.name()),
                Some('I') => text.push_str("HOSTNAME"),
                Some('K') => text.push_str(&key.to_base64()),
                Some('t') => text.push_str(key.algorithm()),
                other => text.extend(other),
            }
        }
        text
    };
    words.iter().map(expand).collect()
}

/// Runs it, and returns what it printed. Blocks.
///
/// # Errors
/// It can't be run, fails, takes too long or prints too much: one line.
pub(crate) fn run(arguments: &[String], wanted: &Wanted) -> Result<Vec<u8>, String> {
    run_within(PAUSES, arguments, wanted)
}

fn run_within(pauses: u32, arguments: &[String], wanted: &Wanted) -> Result<Vec<u8>, String> {
    let Some((program, arguments)) = arguments
        .split_first()
        .filter(|(program, _)| program.starts_with('/'))
    else {
        let program = arguments.first().map_or("", String::as_str);
        return Err(format!(
            "KnownHostsCommand {}: not an absolute path",
            Printable::new(program)
        ));
    };
    let failed = |why: String| format!("KnownHostsCommand {}: {why}", Printable::new(program));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let read = read(&mut child, pauses, wanted);
    // Whatever it has left behind writes to nobody any more.
    if read.is_err() {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    let (output, said) = read.map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(output),
        false => {
            let said = String::from_utf8_lossy(&said);
            let said = said.lines().next().unwrap_or_default().trim();
            let said = if said.is_empty() {
                String::new()
            } else {
                format!(" (it said: {})", Printable::new(said))
            };
            Err(failed(format!("{status}{said}")))
        }
    }
}

/// All that it prints, on both streams, until it has ended.
fn read(child: &mut Child, pauses: u32, wanted: &Wanted) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut output, mut said) = (Vec::new(), Vec::new());
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    for _ in 0..pauses {
        if wanted.is_over() {
            return Err(io::Error::new(ErrorKind::Interrupted, "not waited for any more"));
        }
        drain(&mut stdout, &mut output)?;
        drain(&mut stderr, &mut said)?;
        said.truncate(MAX_ERROR);
        if output.len() > MAX_OUTPUT {
            let text = format!("printed more than {} MiB", MAX_OUTPUT >> 20);
            return Err(io::Error::new(ErrorKind::FileTooLarge, text));
        }
        if stdout.is_none() && stderr.is_none() && child.try_wait()?.is_some() {
            return Ok((output, said));
        }
        thread::sleep(PAUSE);
    }
    let within = (PAUSE * pauses).as_secs();
    let what = match (&stdout, &stderr) {
        (None, None) => "ended",
        _ => "finished its output",
    };
    Err(io::Error::new(
        ErrorKind::TimedOut,
        format!("has not {what} within {within}s; stopped"),
    ))
}

/// Reads what is there, without waiting for more; nothing is left of a stream that has ended.
fn drain(from: &mut Option<impl Read + AsFd>, to: &mut Vec<u8>) -> io::Result<()> {
    for _ in 0..PIECES {
        match from {
            Some(open) if is_readable(open.as_fd())? => {}
            Some(_) | None => break,
        }
        if !take(from, to)? {
            *from = None;
        }
    }
    Ok(())
}

/// Whether it has something to say, or has ended.
fn is_readable(end: BorrowedFd<'_>) -> io::Result<bool> {
    let mut ends = [PollFd::from_borrowed_fd(end, PollFlags::IN)];
    loop {
        match poll(&mut ends, Some(&Timespec::default())) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads what is there; false: that was the end.
fn take(from: &mut Option<impl Read>, to: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    let Some(from) = from else { return Ok(false) };
    let count = from.read(&mut piece)?;
    to.extend_from_slice(piece.get(..count).unwrap_or_default());
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn shell(script: &str) -> Result<Vec<u8>, String> {
        run(
            &["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
            &Wanted::default(),
        )
    }

    #[test]
    fn what_only_the_key_tells_stands_in_the_arguments() {
        let text = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
        let key = PublicKey::parse_line(text).unwrap().key;
        let words = ["/bin/keys", "%H", "%I-%t", "%f", "%K", "100%%"].map(str::to_owned);
        let print = key.fingerprint_sha256();
        let expected = [
            "/bin/keys",
            "[web1]:2222",
            "HOSTNAME-ssh-ed25519",
            &print,
            "AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti",
            "100%",
        ];
        assert_eq!(arguments(&words, &HostId::new("web1", 2222), &key), expected);
    }

    #[test]
    fn what_it_prints_is_read_to_its_end_and_a_failure_is_told_with_its_words() {
        assert_eq!(
            shell("echo web1; echo nothing >&2; echo web2"),
            Ok(b"web1\nweb2\n".to_vec())
        );
        let failed = shell("echo web1; echo 'no such host' >&2; exit 3").unwrap_err();
        assert_eq!(
            failed,
            "KnownHostsCommand /bin/sh: exit status: 3 (it said: no such host)"
        );
        let missing = run(&["/nowhere".to_owned()], &Wanted::default()).unwrap_err();
        assert!(
            missing.starts_with("KnownHostsCommand /nowhere: No such file"),
            "{missing}"
        );
        let relative = run(&["keys".to_owned()], &Wanted::default()).unwrap_err();
        assert_eq!(relative, "KnownHostsCommand keys: not an absolute path");
    }

    #[test]
    fn one_that_trickles_has_no_more_time_than_one_that_is_silent() {
        for (script, what) in [
            ("while :; do echo x; sleep 0.1; done", "finished its output"),
            ("exec >&- 2>&-; exec sleep 60", "ended"),
        ] {
            let words = ["/bin/sh", "-c", script].map(str::to_owned);
            let error = run_within(200, &words, &Wanted::default()).unwrap_err();
            let expected = format!("KnownHostsCommand /bin/sh: has not {what} within 1s; stopped");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn one_that_prints_without_end_is_stopped() {
        let error = shell("exec yes").unwrap_err();
        assert_eq!(error, "KnownHostsCommand /bin/sh: printed more than 1 MiB");
    }
}
