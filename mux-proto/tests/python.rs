//! The client in Python, written from the specification alone, against the example server: its own tests are run, with a
//! socket to the server as their standard input.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

#[path = "../examples/serve.rs"]
mod serve;

fn check(module: &str) {
    let (ours, theirs) = UnixStream::pair().expect("the system gives a pair of sockets");
    let server = thread::spawn(move || serve::serve(ours.try_clone()?, ours));
    let client = Command::new("python3")
        .args(["-B", "-m", "unittest", "-v", module])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python"))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .output()
        .unwrap_or_else(|error| panic!("python3 does not start ({error}): install it (apt install python3)"));
    let words = String::from_utf8_lossy(&client.stderr);
    assert!(client.status.success(), "{module}:\n{words}");
    assert!(words.contains("OK") && !words.contains("skipped"), "{words}");
    // A farewell where there was a link; the tests that need none just go away.
    drop(server.join().expect("the server does not panic"));
}

#[test]
fn its_bytes_are_the_golden_ones() {
    check("tests.test_golden");
}

#[test]
fn it_runs_commands_and_streams_through_credit() {
    check("tests.test_server");
}

#[test]
fn it_stands_up_to_peers_that_break_the_protocol() {
    check("tests.test_hostile");
}
