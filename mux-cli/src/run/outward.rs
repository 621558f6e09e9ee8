//! What the ssh configuration asks of this machine and the network besides files: commands of `Match exec`, names,
//! homes, addresses of interfaces. Answers as OpenSSH's own code would; decides nothing about what follows.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mux_ssh::config::ExecFailure;
use nix::net::if_::InterfaceFlags;
use nix::unistd::User;

/// How often a running command is looked at: they take milliseconds.
const POLL: Duration = Duration::from_millis(2);

/// How often it is looked at before it has taken too long: 30 s, longer than any test that people put there, most of
/// which wait a second or two for a port.
const MAX_LOOKS: u32 = 15_000;

/// Of getaddrinfo(3); the same number on Linux, the BSDs and macOS.
const AI_CANONNAME: i32 = 2;

/// Questions that may take their time are answered at once, so many at a time: a set of hosts has one each.
const AT_ONCE: usize = 32;

/// A question that may take its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Question {
    /// Whether a command succeeds.
    Exec(String),
    /// Whether a name has an address, and where it leads.
    Lookup(String),
}

/// What became of a question.
#[derive(Debug)]
pub(super) enum Reply {
    Exec(String, Result<bool, ExecFailure>),
    Lookup(String, Option<String>),
}

/// Answers all questions, some at the same time. What `came` holds is 0 unless the process is to end.
pub(super) fn ask(questions: &[Question], came: &AtomicUsize) -> Vec<Reply> {
    let mut replies = Vec::with_capacity(questions.len());
    for some in questions.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let threads: Vec<_> = some
                .iter()
                .map(|question| {
                    let thread = std::thread::Builder::new();
                    thread.spawn_scoped(scope, || answer(question.clone(), came)).ok()
                })
                .collect();
            for (thread, question) in threads.into_iter().zip(some) {
                let joined = thread.and_then(|thread| thread.join().ok());
                // Too many threads already: then one after the other.
                replies.push(joined.unwrap_or_else(|| answer(question.clone(), came)));
            }
        });
    }
    replies
}

fn answer(question: Question, came: &AtomicUsize) -> Reply {
    match question {
        Question::Exec(command) => {
            let succeeded = succeeds(&command, came);
            Reply::Exec(command, succeeded)
        }
        Question::Lookup(name) => {
            let canonical = lookup(&name);
            Reply::Lookup(name, canonical)
        }
    }
}

/// Runs a command as OpenSSH does: by the user's shell, without input and output, with our standard error.
fn succeeds(command: &str, came: &AtomicUsize) -> Result<bool, ExecFailure> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut child = Command::new(shell)
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| ExecFailure::NotStarted(error.kind()))?;
    // Counted and not timed: a process that was stopped for a while has not waited.
    for _ in 0..MAX_LOOKS {
        if came.load(Ordering::SeqCst) != 0 {
            break;
        }
        match child.try_wait() {
            Ok(Some(status)) if status.signal().is_some() => return Err(ExecFailure::Killed),
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => return Err(ExecFailure::NotStarted(error.kind())),
        }
    }
    // What it has started itself is its own affair, as when ssh is interrupted.
    let _gone_already = child.kill();
    let _reaped = child.wait();
    Err(ExecFailure::TimedOut)
}

/// The name at the end of all aliases, if there is an address.
fn lookup(name: &str) -> Option<String> {
    let hints = dns_lookup::AddrInfoHints {
        flags: AI_CANONNAME,
        socktype: dns_lookup::SockType::Stream.into(),
        ..dns_lookup::AddrInfoHints::default()
    };
    let found = dns_lookup::getaddrinfo(Some(name), None, Some(hints)).ok()?;
    let first = found.filter_map(Result::ok).next()?;
    Some(first.canonname.unwrap_or_else(|| name.to_owned()))
}

/// Where a user is at home.
pub(super) fn home(user: &str) -> Option<String> {
    let user = User::from_name(user).ok().flatten()?;
    Some(user.dir.to_string_lossy().into_owned())
}

/// An interface that is up, with one of its addresses.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    /// None of the families that count here. The port is 0.
    pub(super) address: Option<SocketAddr>,
}

/// The interfaces that are up, once for each address; none, if the system does not tell.
pub(super) fn interfaces() -> Vec<Interface> {
    let Ok(all) = nix::ifaddrs::getifaddrs() else {
        return Vec::new();
    };
    let up = all.filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP));
    up.map(|interface| Interface {
        address: interface.address.as_ref().and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
        }),
        name: interface.interface_name,
    })
    .collect()
}

/// The addresses of the interfaces that are up; none, if the system does not tell.
pub(super) fn addresses() -> Vec<IpAddr> {
    let addresses = interfaces().into_iter().filter_map(|interface| interface.address);
    addresses.map(|address| address.ip()).collect()
}

/// What `ssh -V` says, up to the first comma or blank; `None`: there is no `ssh`.
pub(super) fn version() -> Option<String> {
    let output = Command::new("ssh").arg("-V").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    let version = text.split([',', ' ', '\n']).next()?;
    (!version.is_empty()).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: Result<bool, ExecFailure>) {
        assert_eq!(succeeds(command, &AtomicUsize::default()), expected, "{command}");
    }

    #[test]
    fn commands_succeed_fail_or_are_killed() {
        check("true", Ok(true));
        check("exit 3", Ok(false));
        check("kill -9 $$", Err(ExecFailure::Killed));
        // Nothing to read, and what is written goes nowhere.
        check("read -r x", Ok(false));
        check("echo x", Ok(true));
    }

    #[test]
    fn many_questions_take_as_long_as_a_few() {
        let questions: Vec<Question> = (0..AT_ONCE)
            .map(|i| Question::Exec(format!("sleep 0.2; exit {}", i % 2)))
            .collect();
        let start = std::time::Instant::now();
        let replies = ask(&questions, &AtomicUsize::default());
        let succeeded = replies
            .iter()
            .filter(|reply| matches!(reply, Reply::Exec(_, Ok(true))));
        assert_eq!((replies.len(), succeeded.count()), (AT_ONCE, AT_ONCE / 2));
        // One after the other they take longer even on an idle machine.
        assert!(
            start.elapsed() < Duration::from_millis(200) * 32,
            "{:?}",
            start.elapsed()
        );
    }

    #[test]
    fn this_machine_is_known() {
        assert_eq!(home("root").as_deref(), Some("/root"));
        assert_eq!(home("no-such-user"), None);
        assert!(addresses().iter().any(IpAddr::is_loopback));
        assert!(version().is_some_and(|version| version.starts_with("OpenSSH_")));
        assert_eq!(lookup("no-such-name.invalid"), None);
        assert!(lookup("localhost").is_some());
    }
}
