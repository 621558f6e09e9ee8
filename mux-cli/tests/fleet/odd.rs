//! Servers that run the command and say little about its end.

use crate::servers::{Kind, Servers};

/// What a run on two hosts of this kind prints, without the time it took, and its exit status.
fn run(kind: Kind, args: &[&str]) -> (Option<i32>, String, String) {
    let servers = Servers::new(&[kind, kind]);
    let mut command = servers.command(&["-w", "h[001-002]", "-b"]);
    let output = command.args(args).args(["--", "say hello"]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let stderr = stderr.lines().map(|line| line.split(" in ").next().unwrap());
    let stdout = String::from_utf8(output.stdout).unwrap();
    (
        output.status.code(),
        stdout,
        stderr.collect::<Vec<_>>().join("\n"),
    )
}

const HELLO: &str = "---------------\nh[001-002] (2)\n---------------\nhello\n";

#[test]
fn a_command_without_an_exit_status_is_unknown_unless_that_is_said_to_be_well() {
    let (status, stdout, stderr) = run(Kind::NoStatus, &[]);
    let expected = "ok=0 unknown=2\nunknown: h[001-002]: command: the command ended without an exit status";
    assert_eq!(
        (status, stdout.as_str(), stderr.as_str()),
        (Some(1), HELLO, expected)
    );
    let (status, stdout, stderr) = run(Kind::NoStatus, &["--missing-status", "ok"]);
    assert_eq!((status, stdout.as_str(), stderr.as_str()), (Some(0), HELLO, ""));
}

#[test]
fn a_connection_that_ends_with_the_command_has_given_its_result() {
    let failed = "ok=0 failed=2\nfailed: h[001-002]: exit status 7";
    let (status, stdout, stderr) = run(Kind::HangsUp, &[]);
    assert_eq!(
        (status, stdout.as_str(), stderr.as_str()),
        (Some(1), HELLO, failed)
    );
    let (status, stdout, stderr) = run(Kind::HangsUpAtOnce, &[]);
    assert_eq!((status, stdout.as_str()), (Some(1), HELLO));
    let warning = "the connection ended before the command's output did: some may be missing";
    assert!(stderr.contains(warning) && stderr.ends_with(failed), "{stderr}");
}
