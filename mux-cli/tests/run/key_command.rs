//! `KnownHostsCommand` and `NoHostAuthenticationForLocalhost` on a real sshd.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};

use crate::learning::{fingerprint, known_hosts};
use crate::rig::{Rig, is_alive, wait_for, write_key};

/// A host that no file knows, and a program of the user's that runs `script`.
fn rig(script: &str) -> Rig {
    let rig = Rig::new();
    fs::write(rig.path("known_hosts"), "").unwrap();
    fs::write(rig.path("keys"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(rig.path("keys"), fs::Permissions::from_mode(0o700)).unwrap();
    rig.configure(&format!(
        "UpdateHostKeys yes\nKnownHostsCommand {} %H %t %K %f %I %h",
        rig.text("keys")
    ));
    rig
}

const ARGS: [&str; 4] = ["-w", "web1", "--", "echo hello"];

#[test]
fn a_key_that_the_command_knows_is_known_and_nothing_is_written() {
    let rig = rig("echo \"$@\" > $0.args; echo \"$1 $2 $3\"");
    rig.check(&ARGS, 0, "web1: hello\n", "");
    assert_eq!(known_hosts(&rig), "");
    let (algorithm, base64) = rig.host_key.split_once(' ').unwrap();
    let print = fingerprint(&rig.host_key);
    let expected = format!(
        "[127.0.0.1]:{} {algorithm} {base64} {print} HOSTNAME 127.0.0.1\n",
        rig.port
    );
    assert_eq!(fs::read_to_string(rig.path("keys.args")).unwrap(), expected);
}

#[test]
fn a_command_that_knows_nothing_leaves_it_to_the_files() {
    let rig = rig("exit 0");
    let ran = rig.run(&ARGS);
    assert!(
        ran.status == 4 && ran.stderr.contains("host key not known (ssh-ed25519 "),
        "{}",
        ran.stderr
    );
    rig.know(&rig.host_key);
    rig.check(&ARGS, 0, "web1: hello\n", "");
}

#[test]
fn a_command_that_knows_another_key_says_so_and_one_that_revokes_wins() {
    let rig = rig("cat $0.lines");
    let other = write_key(&rig.path("other"));
    fs::write(
        rig.path("keys.lines"),
        format!("# ours\n[127.0.0.1]:{} {other}\n", rig.port),
    )
    .unwrap();
    let changed = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key changed (KnownHostsCommand:2 has {}, server sent {}); if \
         you expect this: mend what KnownHostsCommand prints\n",
        fingerprint(&other),
        fingerprint(&rig.host_key)
    );
    rig.check(&ARGS, 4, "", &changed);
    rig.know(&rig.host_key);
    rig.check(&ARGS, 0, "web1: hello\n", "");
    fs::write(rig.path("keys.lines"), format!("@revoked * {}\n", rig.host_key)).unwrap();
    let revoked = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key revoked (KnownHostsCommand:1 names {})\n",
        fingerprint(&rig.host_key)
    );
    rig.check(&ARGS, 4, "", &revoked);
}

#[test]
fn a_command_that_fails_fails_the_host_with_its_words() {
    let rig = rig("echo 'no route to the key store' >&2; exit 3");
    rig.know(&rig.host_key);
    let stderr = "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: KnownHostsCommand DIR/keys: exit status: 3 (it said: no \
                  route to the key store)\n";
    rig.check(&ARGS, 4, "", stderr);
}

#[test]
fn many_hosts_ask_at_once_and_no_time_of_theirs_runs() {
    let rig = rig("sleep 2; echo \"$1 $2 $3\"");
    let args = [
        "--connect-timeout",
        "1",
        "-b",
        "-w",
        "web[01-10]",
        "--",
        "echo hello",
    ];
    rig.check(
        &args,
        0,
        "---------------\nweb[01-10] (10)\n---------------\nhello\n",
        "",
    );
}

#[test]
fn a_key_of_this_machine_is_taken_where_that_is_wanted() {
    let rig = Rig::new();
    let other = write_key(&rig.path("other"));
    rig.know(&other);
    let before = known_hosts(&rig);
    rig.configure("NoHostAuthenticationForLocalhost yes\nUpdateHostKeys yes");
    rig.check(&ARGS, 0, "web1: hello\n", "");
    assert_eq!(known_hosts(&rig), before);
    // A name of its own is a host of its own.
    rig.configure("NoHostAuthenticationForLocalhost yes\nHostKeyAlias web1");
    assert_eq!(rig.run(&ARGS).status, 4);
}

#[test]
fn a_command_that_is_running_ends_with_the_run() {
    let rig = rig("echo $$ > $0.pid; exec sleep 600");
    let mut child = rig.command(&ARGS).spawn().unwrap();
    wait_for("the command", || {
        fs::read_to_string(rig.path("keys.pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    wait_for("the end of the command", || !is_alive(&rig.path("keys.pid")));
}
