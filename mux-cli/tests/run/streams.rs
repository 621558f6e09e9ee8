//! Standard streams that are closed, and disks that are full: said, with the status of a failure of ours, and whoever
//! has a working stream left loses nothing.

use std::process::Command;

use crate::rig::{Ran, Rig};

/// `mux` behind these redirections of a shell.
fn redirected(rig: &Rig, args: &[&str], redirections: &str) -> Ran {
    let inner = rig.command(args);
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("exec \"$@\" {redirections}"))
        .arg("sh")
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear();
    shell.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    rig.finish(shell.output().unwrap())
}

/// One run behind redirections, all of what it prints and its exit status.
fn check(rig: &Rig, args: &[&str], redirections: &str, status: i32, stdout: &str, stderr: &str) {
    let expected = Ran {
        status,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    let ran = redirected(rig, args, redirections);
    assert_eq!(ran, expected, "mux run {args:?} {redirections}");
}

const HELLO: [&str; 4] = ["-w", "web1", "--", "echo hello"];

#[test]
fn a_closed_standard_input_changes_nothing() {
    check(&Rig::new(), &HELLO, "<&-", 0, "web1: hello\n", "");
}

#[test]
fn a_closed_standard_error_changes_nothing_but_what_is_said_there() {
    let rig = Rig::new();
    check(&rig, &HELLO, "</dev/null 2>&-", 0, "web1: hello\n", "");
    let failing = ["-w", "web1", "--", "echo hello; exit 3"];
    check(&rig, &failing, "</dev/null 2>&-", 1, "web1: hello\n", "");
    check(&rig, &failing, "</dev/null 2>/dev/full", 1, "web1: hello\n", "");
}

/// What is said in place of the output, whatever its form.
fn is_told(redirection: &str, why: &str) {
    let rig = Rig::new();
    for form in ["text", "grouped", "jsonl"] {
        let args = [&["-q", "--output", form], &HELLO[..]].concat();
        let stderr = format!("mux: standard output: {why}, after 0 bytes; what follows is lost\n");
        check(
            &rig,
            &args,
            &format!("</dev/null {redirection}"),
            125,
            "",
            &stderr,
        );
    }
}

#[test]
fn a_closed_standard_output_is_a_failure_of_ours() {
    is_told(">&-", "it is closed");
}

#[test]
fn a_full_disk_under_standard_output_is_a_failure_of_ours() {
    is_told(">/dev/full", "No space left on device (os error 28)");
}

#[test]
fn a_full_disk_does_not_let_hosts_go_on_for_nothing() {
    let rig = Rig::new();
    let args = ["-w", "web[1-2]", "--", "echo hello; exec sleep 600"];
    let ran = redirected(&rig, &args, "</dev/null >/dev/full");
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
    // How far the other one had come when the first line found no room is not the point; none ran on.
    assert!(ran.stderr.contains("cancelled=2"), "{}", ran.stderr);
}

#[test]
fn text_that_is_asked_for_and_finds_no_room_is_a_failure_of_ours() {
    let stderr = "mux: standard output: No space left on device (os error 28)\n";
    let rig = Rig::new();
    check(&rig, &["--help"], ">/dev/full", 125, "", stderr);
    check(
        &rig,
        &["-w", "a,b", "--list-hosts"],
        ">/dev/full",
        125,
        "",
        stderr,
    );
}

#[test]
fn a_place_for_large_output_that_fails_is_named_and_the_loss_is_said() {
    let rig = Rig::new();
    let mut command = rig.command(&["-b", "-w", "web[1-2]", "--", "head -c 3000000 /dev/zero; echo"]);
    let output = command.env("TMPDIR", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(
        lines[0].starts_with("mux: temporary file for large output, in /nowhere: ")
            && lines[0].ends_with("; what follows is lost; free some space or set TMPDIR"),
        "{stderr}"
    );
    assert!(
        lines[1].ends_with(" of it was for a temporary file, which failed: what is missing above is lost"),
        "{stderr}"
    );
    assert_eq!(lines.len(), 2, "{stderr}");
}

#[test]
fn a_key_file_that_holds_no_key_is_named_when_nobody_lets_us_in() {
    let rig = Rig::with("AuthenticationMethods publickey");
    std::fs::write(rig.path("id"), "no key\n").unwrap();
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(ran.stderr.contains("DIR/id: "), "{}", ran.stderr);
}

#[test]
fn errors_of_hosts_that_find_no_room_are_a_failure_of_ours() {
    let rig = Rig::new();
    let words = ["-w", "web1", "--", "echo hello; echo trouble >&2"];
    check(&rig, &words, "</dev/null 2>&-", 125, "web1: hello\n", "");
    check(&rig, &words, "</dev/null 2>/dev/full", 125, "web1: hello\n", "");
    check(&rig, &words, "</dev/null 2>/dev/null", 0, "web1: hello\n", "");
    // A word of ours that finds no room first does not hide that the host's found none.
    let missing = [
        "-i",
        "/dev/null/none",
        "-w",
        "web1",
        "--",
        "echo hello; sleep 1; echo trouble >&2",
    ];
    check(&rig, &missing, "</dev/null 2>/dev/full", 125, "web1: hello\n", "");
}

#[test]
fn whatever_streams_are_closed_nothing_lands_in_a_wrong_place() {
    let rig = Rig::new();
    let words = ["-w", "web1", "--", "echo hello; echo trouble >&2"];
    for closed in 0..8 {
        let has = |stream| closed & (1 << stream) == 0;
        let place = |stream, there: &str, gone: &str| (if has(stream) { there } else { gone }).to_owned();
        let redirections = [
            place(0, "</dev/null", "<&-"),
            place(1, "", ">&-"),
            place(2, "", "2>&-"),
        ]
        .join(" ");
        let ran = redirected(&rig, &words, &redirections);
        let lost = "mux: standard output: it is closed, after 0 bytes; what follows is lost\n";
        let stdout = place(1, "web1: hello\n", "");
        assert_eq!(ran.stdout, stdout, "{redirections}");
        match (has(1), has(2)) {
            (true, true) => assert_eq!(
                (ran.status, ran.stderr.as_str()),
                (0, "web1: trouble\n"),
                "{redirections}"
            ),
            (true, false) => assert_eq!((ran.status, ran.stderr.as_str()), (125, ""), "{redirections}"),
            (false, true) => {
                assert_eq!(ran.status, 125, "{redirections}");
                assert!(ran.stderr.contains(lost), "{redirections}: {}", ran.stderr);
            }
            // With all three gone there is nothing that tells it from a daemon, which wants it so.
            (false, false) => assert_eq!(ran.status, if has(0) { 125 } else { 0 }, "{redirections}"),
        }
    }
    let known_hosts = std::fs::read_to_string(rig.path("known_hosts")).unwrap();
    assert_eq!(known_hosts.lines().count(), 1);
}

#[test]
fn text_that_is_asked_for_and_has_no_place_is_a_failure_of_ours() {
    let rig = Rig::new();
    let stderr = "mux: standard output: it is closed\n";
    check(&rig, &["--help"], "</dev/null >&-", 125, "", stderr);
    check(
        &rig,
        &["-w", "a,b", "--list-hosts"],
        "</dev/null >&-",
        125,
        "",
        stderr,
    );
}

#[test]
fn a_list_from_a_standard_input_that_is_closed_is_no_empty_list() {
    let rig = Rig::new();
    let stderr = "mux: standard input: closed; name hosts with -w or --hosts FILE\n";
    check(&rig, &["--hosts", "-", "--list-hosts"], "<&-", 2, "", stderr);
}
