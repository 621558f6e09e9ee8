//! Targets that don't run what they are told, or run it in a shell of their own: each has its name and its own status.
//!
//! sshd gives a login shell the command behind `-c`, which is what a forced command does here with the original one; so
//! no account has to be made. Where a shell may be missing a small script stands in for it that differs from a POSIX shell
//! where that shell does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::rig::{Rig, is_alive, wait_for};

/// A server that gives all commands to this program as it would to a login shell.
fn with_shell(program: &str) -> Rig {
    Rig::with(&format!(
        "ForceCommand exec {program} -c \"$SSH_ORIGINAL_COMMAND\""
    ))
}

/// A login shell that is this script.
fn with_script(script: &str) -> Rig {
    let rig = with_shell("$HOME/shell");
    let path = rig.path("shell");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    rig
}

/// csh knows no descriptors in front of `>`: `2>file` is the word `2` and the output to `file`. The last line of its input
/// is not run without an end.
const CSH: &str = r#"exec sh -c "$(printf %s "$2" | sed 's/2>/2 >/g')""#;

/// fish runs no `$(…)` before 3.4, nor assignments in front of commands, and says so with status 127.
const FISH: &str =
    r#"case $2 in *'`'*|[A-Z]=*) echo "fish: Unsupported use" >&2; exit 127;; esac; exec sh -c "$2""#;

#[test]
fn a_forced_command_runs_in_the_place_of_ours_and_has_its_own_status() {
    let rig = Rig::with("ForceCommand echo instead of $SSH_ORIGINAL_COMMAND; exit 3");
    let stderr = "ok=0 failed=1 in TIME\nfailed: web1: exit status 3\n";
    rig.check(
        &["-w", "web1", "--", "uptime"],
        1,
        "web1: instead of uptime\n",
        stderr,
    );
}

#[test]
fn a_shell_that_lets_nobody_in_says_so() {
    let rig = with_shell("/usr/sbin/nologin");
    let stderr = "ok=0 failed=1 in TIME\nfailed: web1: exit status 1\n";
    let words = "web1: This account is currently not available.\n";
    rig.check(&["-w", "web1", "--", "uptime"], 1, words, stderr);
}

#[test]
fn a_shell_that_is_not_there_is_a_status_of_the_server() {
    let rig = Rig::with("ForceCommand exec /no/such/shell -c \"$SSH_ORIGINAL_COMMAND\"");
    let ran = rig.run(&["-w", "web1", "--", "uptime"]);
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("failed: web1: exit status 127\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_restricted_shell_runs_what_it_allows_and_refuses_the_rest() {
    let rig = with_shell("/bin/rbash");
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
    let ran = rig.run(&["-w", "web1", "--", "echo x > file"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("restricted"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("failed: web1: exit status 1\n"),
        "{}",
        ran.stderr
    );
}

/// A command that does not end by itself is stopped, whatever shell its server has.
fn is_stopped(rig: &Rig) {
    let command = format!("sh -c 'echo $$ > {}; exec sleep 600'", rig.text("pid"));
    let args = ["--timeout", "2", "-w", "web1", "--", &command];
    let stderr = "ok=0 timeout=1 in TIME\ntimeout: web1: command: not finished within 2s\n";
    rig.check(&args, 3, "", stderr);
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn commands_under_csh_run_and_are_stopped() {
    let rig = with_script(CSH);
    rig.check(
        &["-w", "web1", "--", "echo hello; exit 4"],
        1,
        "web1: hello\n",
        "ok=0 failed=1 in TIME\nfailed: web1: exit status 4\n",
    );
    is_stopped(&rig);
}

#[test]
fn commands_under_fish_run_and_are_stopped() {
    let rig = with_script(FISH);
    rig.check(
        &["-w", "web1", "--", "echo hello; exit 4"],
        1,
        "web1: hello\n",
        "ok=0 failed=1 in TIME\nfailed: web1: exit status 4\n",
    );
    is_stopped(&rig);
}

#[test]
fn a_shell_that_talks_at_its_start_changes_nothing_but_its_own_output() {
    let rig = with_script(r#"echo motd; echo warning >&2; exec sh -c "$2""#);
    let ran = rig.run(&["-w", "web1", "--", "echo hello"]);
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (0, "web1: motd\nweb1: hello\n")
    );
    assert_eq!(ran.stderr, "web1: warning\n");
}

#[test]
fn a_server_that_hangs_up_after_each_command_has_given_its_result() {
    // The shell ends its connection a moment after the command, as appliances do.
    let rig = with_script(r#"(sleep 0.2; kill $PPID) >/dev/null 2>&1 </dev/null & sh -c "$2""#);
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
    let stderr = "ok=0 failed=1 in TIME\nfailed: web1: exit status 5\n";
    rig.check(&["-w", "web1", "--", "exit 5"], 1, "", stderr);
}
