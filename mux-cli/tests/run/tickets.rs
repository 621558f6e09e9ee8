//! `GSSAPIAuthentication`: by itself it selects nothing; with a Kerberos ticket the system's `ssh` is tried once every
//! login of ours was refused. Scripts stand in for `klist` and for `ssh`, which no test has a realm for.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::keys::keys_only;
use crate::rig::{Ran, Rig, write_key};

fn script(rig: &Rig, name: &str, text: &str) {
    let _ = fs::create_dir(rig.path("bin"));
    let path = rig.path("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Logs as ssh does when a login is taken, and runs the last word. Counts how often it was called.
const SSH: &str = r#"echo "$*" >>"$0.calls"
say() { echo "debug1: $1():1 (pid=$$): $2" >>"$log"; }
log=$2; for command; do :; done
say clientloop.c:client_session2_setup "id 0"
say clientloop.c:client_session2_setup "Sending command"
say clientloop.c:client_status_confirm "exec request accepted on channel 0"
sh -c "$command"; status=$?
say clientloop.c:client_input_channel_req "channel 0 rtype exit-status reply 0"
exit $status"#;

/// A server that takes none of our keys, and these stand-ins.
fn refused(klist: Option<&str>) -> Rig {
    let rig = keys_only();
    write_key(&rig.path("id"));
    script(&rig, "ssh", SSH);
    if let Some(klist) = klist {
        script(&rig, "klist", klist);
    }
    rig
}

fn run(rig: &Rig, args: &[&str]) -> Ran {
    let path = format!("{}:/usr/bin:/bin", rig.text("bin"));
    let mut run = rig.command(&[&["-o", "GSSAPIAuthentication=yes"], args].concat());
    rig.finish(run.env("PATH", path).output().unwrap())
}

fn calls(rig: &Rig) -> Vec<String> {
    let calls = fs::read_to_string(rig.path("bin").join("ssh.calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn with_a_ticket_ssh_is_tried_once_a_host_after_our_own_logins() {
    let rig = refused(Some("echo asked >>\"$0.calls\""));
    let ran = run(&rig, &["-w", "web[1-2]", "--", "echo hello; exit 3"]);
    let stderr = "ok=0 failed=2 in TIME\nfailed: web[1-2]: exit status 3\n\
                  via-openssh=2 (command line: GSSAPIAuthentication, after all other methods): web[1-2]\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (1, stderr));
    let calls = calls(&rig);
    assert_eq!(calls.len(), 2, "{calls:?}");
    let only = "-o PreferredAuthentications=gssapi-keyex,gssapi-with-mic";
    assert!(calls.iter().all(|call| call.contains(only)), "{calls:?}");
    let asked = fs::read_to_string(rig.path("bin").join("klist.calls")).unwrap();
    assert_eq!(asked, "asked\n");
}

#[test]
fn without_a_ticket_the_host_fails_as_it_did() {
    for klist in [None, Some("exit 1")] {
        let rig = refused(klist);
        let ran = run(&rig, &["-w", "web1", "--", "echo hello"]);
        assert_eq!(ran.status, 4);
        assert!(
            ran.stderr.starts_with("ok=0 auth=1 in TIME\nauth: web1: auth: "),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("via-openssh"), "{}", ran.stderr);
        assert_eq!(calls(&rig), [""; 0]);
    }
}

#[test]
fn a_login_of_ours_that_is_taken_needs_no_ticket() {
    let rig = refused(Some("echo asked >>\"$0.calls\""));
    fs::write(rig.path("authorized_keys"), fs::read(rig.path("id.pub")).unwrap()).unwrap();
    let ran = run(&rig, &["-w", "web1", "--", "echo hello"]);
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "web1: hello\n", "")
    );
    assert!(!rig.path("bin").join("klist.calls").exists());
}
