//! What the process may have (`ulimit`), and what it does with little of it.

use std::process::{Command, Stdio};

use crate::rig::{Ran, Rig};

/// A run under limits that a shell sets first.
fn limited(rig: &Rig, limits: &str, args: &[&str]) -> Command {
    let inner = rig.command(args);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{limits}; exec \"$@\""), "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env("XDG_STATE_HOME", rig.path("state"))
        .stdin(Stdio::null());
    shell
}

fn run(rig: &Rig, limits: &str, args: &[&str]) -> Ran {
    rig.finish(limited(rig, limits, args).output().unwrap())
}

/// Everybody has answered, although not all at once, which is said once.
fn check_lowered(limits: &str, args: &[&str]) {
    let ran = run(&Rig::new(), limits, args);
    let stdout = "----------------\nweb[01-40] (40)\n----------------\nhello\n";
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.replace('-', ""), stdout.replace('-', ""));
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", ran.stderr);
    assert!(lines[0].starts_with("mux: only "), "{}", ran.stderr);
    assert!(
        lines[0].ends_with(" hosts at once: open files are limited to 40 (ulimit -n)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn with_few_descriptors_fewer_hosts_run_at_once_and_none_fails() {
    check_lowered("ulimit -n 40", &["-b", "-w", "web[01-40]", "--", "echo hello"]);
}

#[test]
fn local_commands_with_few_descriptors_run_in_turns() {
    let args = [
        "--transport",
        "local",
        "-b",
        "-w",
        "web[01-40]",
        "--",
        "echo hello",
    ];
    check_lowered("ulimit -n 40", &args);
}

#[test]
fn with_almost_no_descriptor_it_is_said_what_is_missing() {
    let rig = Rig::new();
    for limit in 4..12 {
        let args = ["--transport", "local", "-w", "web1", "--", "echo hello"];
        let ran = run(&rig, &format!("ulimit -n {limit}"), &args);
        let said = ran.stderr.contains("mux: could not ") && ran.stderr.contains("ulimit -n");
        assert!(
            said || ran.stderr.contains("lower -f") || ran.status == 0,
            "{limit}: {ran:?}"
        );
    }
}

#[test]
fn output_above_the_limit_of_a_file_is_a_failed_write() {
    let rig = Rig::new();
    let out = std::fs::File::create(rig.path("out")).unwrap();
    let args = ["--transport", "local", "-w", "web1", "--", "yes | head -c 100000"];
    let output = limited(&rig, "ulimit -f 8", &args).stdout(out).output().unwrap();
    let ran = rig.finish(output);
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("standard output: File too large"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_list_above_the_limit_of_a_file_is_a_failed_write() {
    let rig = Rig::new();
    let out = std::fs::File::create(rig.path("out")).unwrap();
    let args = ["-w", "web[0001-5000]", "--list-hosts"];
    let output = limited(&rig, "ulimit -f 8", &args).stdout(out).output().unwrap();
    let ran = rig.finish(output);
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("standard output: File too large"),
        "{}",
        ran.stderr
    );
}

#[test]
fn local_commands_find_signals_as_they_were() {
    let rig = Rig::new();
    let read = "grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status";
    let plain = Command::new("sh").args(["-c", read]).output().unwrap();
    let args = ["--transport", "local", "-N", "-w", "web1", "--", read];
    let ran = rig.run(&args);
    assert_eq!(ran.stdout, String::from_utf8(plain.stdout).unwrap());
}
