//! What the flight recorder shows of a run, to whom, and when: lines of errors, lines on SIGUSR1, and nothing that was said.

use std::io::Read;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, read_until};

/// Lines about `web1`, without their times.
fn lines(said: &str, before: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|line| line.split_once(before));
    let lines = lines.filter_map(|(_, line)| line.split_once(' '));
    lines.map(|(_, what)| what.to_owned()).collect()
}

/// What comes before a wrong host key is found to be one.
const TO_HOST_KEY: [&str; 7] = [
    "begin",
    "prepared keys=1",
    "connect",
    "connected",
    "reached-banner",
    "reached-kex",
    "host-key",
];

/// A rig that knows its server by another key than it has.
fn mistaken() -> Rig {
    let rig = Rig::new();
    let other = crate::rig::write_key(&rig.path("other"));
    rig.know(&other);
    rig
}

#[test]
fn what_went_before_an_error_is_shown_to_who_asks_for_it_twice() {
    let rig = mistaken();
    let ran = rig.run(&["-vv", "-w", "web1", "--", "true"]);
    let shown = lines(&ran.stderr, "mux: web1: +");
    assert_eq!(shown[..7], TO_HOST_KEY, "{}", ran.stderr);
    let ran = rig.run(&["-v", "-w", "web1", "--", "true"]);
    assert!(lines(&ran.stderr, "web1: +").is_empty(), "{}", ran.stderr);
}

#[test]
fn what_went_before_an_error_stands_in_the_log() {
    let rig = mistaken();
    let mut command = rig.command(&["-w", "web1", "--", "true"]);
    let ran = rig.finish(command.env("MUX_LOG", "info").output().unwrap());
    let shown = lines(&ran.stderr, " mux_cli::run::flights] web1: +");
    assert_eq!(shown[..7], TO_HOST_KEY, "{}", ran.stderr);
}

#[test]
fn targets_that_differ_in_a_port_are_told_apart() {
    let rig = mistaken();
    let target = format!("web1:{}", rig.port);
    let ran = rig.run(&["-vv", "-w", &target, "--", "true"]);
    let shown = lines(&ran.stderr, "mux: web1:PORT: +");
    assert_eq!(shown[..7], TO_HOST_KEY, "{}", ran.stderr);
}

#[test]
fn sigusr1_shows_what_runs_and_no_byte_of_what_it_said() {
    let rig = Rig::new();
    let mut child = rig
        .command(&["-vv", "-w", "web1", "--", "printf 'pay%s\n' load; exec sleep 600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    read_until(child.stdout.as_mut().unwrap(), "payload\n");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::USR1).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let mut said = read_until(&mut stderr, " consumed bytes=8");
    kill_process(pid, Signal::TERM).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    let shown = lines(&said, "mux: web1: +");
    assert_eq!(shown[..2], TO_HOST_KEY[..2], "{said}");
    assert!(shown.contains(&"output channel=0 bytes=8".to_owned()), "{said}");
    assert!(!said.contains("payload"), "{said}");
}
