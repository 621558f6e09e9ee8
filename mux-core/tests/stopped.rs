//! A process that is stopped and continued. Stops the process of the tests, so that this file has one test and a
//! process of its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mio::Interest;
use mio::net::UnixStream;
use mux_core::{Reactor, Ready};

/// Stops its parent once that waits, answers while it stands still, and lets it go on when its time is over.
const HELPER: &str = r#"
    trap 'kill -CONT $PPID' EXIT
    state() { sed 's/.*) //;s/ .*//' /proc/$PPID/task/$1/stat; }
    until [ "$(state $1)" = S ]; do sleep 0.01; done
    kill -STOP $PPID
    until [ "$(state $1)" = T ]; do sleep 0.01; done
    printf x
    sleep 3.1
"#;

#[test]
fn what_arrived_while_the_process_stood_still_is_reported_before_the_timers_that_came_due() {
    let mut reactor = Reactor::new().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let key = reactor.register(&mut ours, Interest::READABLE).unwrap();
    reactor.set_timer(key, Some(Instant::now() + Duration::from_secs(3)));
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let mut helper = Command::new("sh")
        .args(["-c", HELPER, "sh"])
        .arg(thread.file_name().unwrap())
        .stdout(Stdio::from(OwnedFd::from(theirs)))
        .spawn()
        .unwrap();
    let mut first = None;
    while first.is_none() {
        reactor.turn(None).unwrap();
        first = reactor.poll_ready();
    }
    assert!(matches!(first, Some(Ready::Io(..))), "{first:?}");
    assert_eq!(
        reactor.poll_ready(),
        Some(Ready::Timer(key)),
        "it came due meanwhile"
    );
    helper.wait().unwrap();
}
