//! Whose connections are shared: those of equals, and nobody else's. What runs over one is what ran before.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::home::Home;
use crate::rig::{Ran, Rig, wait_for, write_key};

#[test]
fn the_second_command_uses_the_connection_of_the_first() {
    let home = Home::with_daemon();
    let first = home.connection(&[]);
    assert_eq!(home.connection(&[]), first);
    let status = home.status();
    assert_eq!(
        (&status["finished"], &status["reused"]),
        (&2.into(), &1.into()),
        "{status}"
    );
    assert_ne!(home.connection(&["--no-daemon"]), first);
    assert_eq!(home.connection(&[]), first);
    let fresh = home.connection(&["--fresh"]);
    assert_ne!(fresh, first);
    assert_eq!(home.connection(&[]), fresh, "the fresh one takes its place");
    assert_eq!(home.idle(), 1);
}

#[test]
fn without_a_daemon_and_without_being_asked_nothing_is_left_behind() {
    let home = Home::new();
    assert_ne!(home.connection(&[]), home.connection(&[]));
    assert!(!home.socket().exists());
    assert_eq!(fs::read_dir(home.rig.path("runtime")).unwrap().count(), 0);
}

#[test]
fn output_and_status_are_the_same_over_a_connection_that_stood() {
    let home = Home::with_daemon();
    let line = "echo out; echo err >&2; exit 7";
    let expected = Ran {
        status: 1,
        stdout: "host: out\n".to_owned(),
        stderr: "host: err\nok=0 failed=1 in TIME\nfailed: host: exit status 7\n".to_owned(),
    };
    for round in 0..3 {
        assert_eq!(home.run(&["-w", "host", line]), expected, "round {round}");
    }
    assert_eq!(home.run(&["-S", "-q", "-w", "host", "kill -9 $$"]).status, 137);
    assert_eq!(home.run(&["-S", "-q", "-w", "host", "exit 255"]).status, 255);
    assert_eq!(home.idle(), 1);
}

#[test]
fn bytes_arrive_untouched_both_ways() {
    let home = Home::with_daemon();
    let bytes: Vec<u8> = (0..3_000_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    fs::write(home.rig.path("bytes"), &bytes).unwrap();
    let input = format!("--stdin={}", home.rig.text("bytes"));
    let outdir = home.rig.text("out");
    for round in 0..2 {
        let ran = home.run(&["--outdir", &outdir, &input, "-w", "a,b", "cat"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        for host in ["a", "b"] {
            let got = fs::read(home.rig.path("out").join(host)).unwrap();
            assert!(got == bytes, "round {round}: {host} has {} bytes", got.len());
        }
    }
    assert_eq!(home.idle(), 2);
}

#[test]
fn a_pipe_is_read_through_the_daemon() {
    let home = Home::with_daemon();
    let mut run = home
        .command(&["-N", "-w", "host", "--stdin", "wc -c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = run.stdin.take().unwrap();
    stdin.write_all(&[b'x'; 300_000]).unwrap();
    drop(stdin);
    let output = run.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "300000");
}

/// Runs with `one` share a connection, and runs with `other` do not share it.
fn check_apart(home: &Home, one: &[&str], other: &[&str]) {
    let first = home.connection(one);
    assert_eq!(home.connection(one), first, "{one:?}");
    let second = home.connection(other);
    assert_ne!(second, first, "{one:?} and {other:?}");
    assert_eq!(home.connection(other), second, "{other:?}");
    assert_eq!(home.connection(one), first, "{one:?} again");
}

#[test]
fn two_keys_two_policies_or_two_known_hosts_files_never_share() {
    let home = Home::with_daemon();
    let other_key = write_key(&home.rig.path("other"));
    let keys = fs::read_to_string(home.rig.path("authorized_keys")).unwrap();
    fs::write(home.rig.path("authorized_keys"), format!("{keys}\n{other_key}\n")).unwrap();
    fs::copy(home.rig.path("known_hosts"), home.rig.path("known_again")).unwrap();
    check_apart(&home, &[], &["-i", &home.rig.text("other")]);
    check_apart(&home, &[], &["-o", "StrictHostKeyChecking=accept-new"]);
    let files = format!("UserKnownHostsFile={}", home.rig.text("known_again"));
    check_apart(&home, &[], &["-o", &files]);
    let alias = "HostKeyAlias=[127.0.0.1]";
    let named = format!("{alias}:{}", home.rig.port);
    check_apart(&home, &[], &["-o", &named]);
    check_apart(&home, &[], &["-o", "Ciphers=aes256-gcm@openssh.com"]);
}

#[test]
fn a_key_that_was_replaced_in_its_file_is_another_one() {
    let home = Home::with_daemon();
    let first = home.connection(&[]);
    let new = write_key(&home.rig.path("id"));
    fs::write(home.rig.path("authorized_keys"), new).unwrap();
    assert_ne!(home.connection(&[]), first);
}

#[test]
fn what_an_agent_holds_is_part_of_what_a_connection_is() {
    let home = Home::with_daemon();
    let socket = home.rig.text("agent");
    let mut agent = Command::new("ssh-agent")
        .args(["-D", "-a", &socket])
        .stdout(Stdio::null())
        .spawn()
        .expect("no ssh-agent: apt-get install openssh-client");
    wait_for("the agent to listen", || home.rig.path("agent").exists());
    let add = |words: &[&str]| {
        let mut command = Command::new("ssh-add");
        command.env("SSH_AUTH_SOCK", &socket).args(words);
        assert!(command.output().unwrap().status.success(), "ssh-add {words:?}");
    };
    add(&[&home.rig.text("id")]);
    let with_agent = format!("IdentityAgent={socket}");
    check_apart(&home, &[], &["-o", &with_agent]);
    let before = home.connection(&["-o", &with_agent]);
    write_key(&home.rig.path("further"));
    add(&[&home.rig.text("further")]);
    let after = home.connection(&["-o", &with_agent]);
    assert_ne!(after, before, "it holds another key now");
    agent.kill().unwrap();
    agent.wait().unwrap();
    fs::remove_file(home.rig.path("agent")).unwrap();
    assert_ne!(home.connection(&["-o", &with_agent]), after, "it is gone");
    wait_for("what was made with the agent to be closed", || home.idle() <= 2);
}

#[test]
fn a_connection_that_somebody_typed_a_password_for_is_not_kept() {
    let mut home = Home::of(Rig::with_password("PasswordAuthentication yes"));
    home.start(&[]);
    let helper = home.rig.path("askpass");
    fs::write(&helper, "#!/bin/sh\necho secret\n").unwrap();
    fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let args = [
        "-o",
        "PubkeyAuthentication=no",
        "-l",
        "deploy",
        "-w",
        "host",
        "echo in",
    ];
    let output = home
        .command(&args)
        .env("SSH_ASKPASS", &helper)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .output()
        .unwrap();
    let ran = home.rig.finish(output);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "host: in\n"), "{ran:?}");
    assert_eq!(home.status()["finished"], 1, "it ran over the daemon");
    assert_eq!(home.idle(), 0);
}

#[test]
fn a_connection_that_the_server_closed_is_replaced_in_silence() {
    let home = Home::with_daemon();
    let first = home.connection(&[]);
    let ran = home.run(&["-w", "host", "kill $PPID"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    wait_for("the daemon to hear of it", || home.idle() == 0);
    assert_ne!(home.connection(&[]), first);
}

#[test]
fn a_host_whose_key_is_unknown_is_refused_as_ever() {
    let home = Home::with_daemon();
    fs::write(home.rig.path("known_hosts"), "").unwrap();
    let with = home.run(&["-w", "host", "true"]);
    let without = home.run(&["--no-daemon", "-w", "host", "true"]);
    assert_eq!((with.status, &with.stderr), (4, &without.stderr));
}

#[test]
fn connections_are_dropped_by_name() {
    let home = Home::with_daemon();
    let ran = home.run(&["-w", "a,b,c", "true"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let name = home.status()["connections"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let said = |words: &[&str]| String::from_utf8(home.mux(words).output().unwrap().stdout).unwrap();
    assert_eq!(said(&["daemon", "drop", "-w", &name]), "1 connections dropped\n");
    assert_eq!(home.idle(), 2);
    assert_eq!(said(&["daemon", "drop"]), "2 connections dropped\n");
    assert_eq!(home.idle(), 0);
}
