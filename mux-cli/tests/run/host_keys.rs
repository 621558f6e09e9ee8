//! Host keys under hashed names: what is remembered of them, and what is asked for when memory is incomplete.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{HostId, format_entry};

use crate::rig::Rig;

/// Makes a key with `ssh-keygen` and returns its public half.
fn make(directory: &tempfile::TempDir, name: &str, key_type: &[&str]) -> PublicKey {
    let path = directory.path().join(name);
    let keygen = Command::new("ssh-keygen")
        .args(["-q", "-N", "", "-t"])
        .args(key_type)
        .arg("-f")
        .arg(&path)
        .status();
    assert!(keygen.unwrap().success());
    let line = fs::read_to_string(path.with_extension("pub")).unwrap();
    PublicKey::parse_line(&line).unwrap().key
}

/// The salt of a hashed line.
fn salt(line: &str) -> &str {
    line.split('|').nth(2).unwrap()
}

#[test]
fn a_line_that_memory_does_not_know_of_is_found_and_remembered() {
    let keys = tempfile::tempdir().unwrap();
    let shown = make(&keys, "ecdsa", &["ecdsa"]);
    let gone = make(&keys, "gone", &["rsa", "-b", "2048"]);
    let rig = Rig::with(&format!("HostKey {}/ecdsa", keys.path().display()));
    // The server has a key that nobody knows, which is asked for first; one that is known; and has lost another.
    let host = HostId::new("127.0.0.1", rig.port);
    let lines = [&gone, &shown].map(|key| format_entry(&host, key, true).unwrap());
    fs::write(rig.path("known_hosts"), lines.concat()).unwrap();
    fs::create_dir_all(rig.path("state/mux")).unwrap();
    let [old, new] = [salt(&lines[0]), salt(&lines[1])];
    fs::write(
        rig.path("state/mux/hosts"),
        format!("mux host memory 2\nsalts\t{}\t{old}\n", host.name()),
    )
    .unwrap();
    for _ in 0..2 {
        rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
    }
    let state = fs::read_to_string(rig.path("state/mux/hosts")).unwrap();
    let remembered = format!("salts\t{}\t{old} {new}\n", host.name());
    assert!(state.contains(&remembered), "{state}");
    // The first run took a second connection, the second did not.
    let log = fs::read_to_string(rig.path("sshd_log")).unwrap();
    assert_eq!(log.matches("Accepted publickey").count(), 2, "{log}");
    assert_eq!(log.matches("Disconnected from 127.0.0.1").count(), 1, "{log}");
}

#[test]
fn a_changed_key_under_a_hashed_name_is_refused_with_memory_and_without() {
    let keys = tempfile::tempdir().unwrap();
    let other = make(&keys, "other", &["ed25519"]);
    let rig = Rig::new();
    let host = HostId::new("127.0.0.1", rig.port);
    let right = PublicKey::parse_line(&rig.host_key).unwrap().key;
    fs::write(
        rig.path("known_hosts"),
        format_entry(&host, &right, true).unwrap(),
    )
    .unwrap();
    rig.check(&["-w", "web1", "--", "true"], 0, "", "");
    fs::write(
        rig.path("known_hosts"),
        format_entry(&host, &other, true).unwrap(),
    )
    .unwrap();
    for _ in 0..2 {
        let ran = rig.run(&["-w", "web1", "--", "true"]);
        assert!(
            ran.stderr
                .contains("host key changed (DIR/known_hosts:1 has SHA256:"),
            "{}",
            ran.stderr
        );
        fs::remove_dir_all(rig.path("state")).unwrap();
    }
}

#[test]
fn hosts_that_are_unknown_or_changed_are_found_to_be_in_thousands_of_hashed_lines() {
    let keys = tempfile::tempdir().unwrap();
    let other = make(&keys, "other", &["ed25519"]);
    let rig = Rig::new();
    let aliases = (1..10).map(|number| format!("Host web{number}\n  HostKeyAlias web{number}\n"));
    rig.configure(&aliases.collect::<String>());
    let names = (1..=1500).map(|number| format!("db{number}"));
    let lines = names.chain(["web9".to_owned()]);
    let lines = lines.map(|name| format_entry(&HostId::alias(&name), &other, true).unwrap());
    let before: String = lines.collect();
    fs::write(rig.path("known_hosts"), &before).unwrap();
    let options = ["-o", "StrictHostKeyChecking=accept-new", "-b"];
    let args = [&options as &[&str], &["-w", "web[1-9]", "--", "echo hello"]].concat();
    let ran = rig.run(&args);
    assert!(
        ran.status == 4 && ran.stdout.contains("web[1-8] (8)\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("web9: hostkey: host key changed (DIR/known_hosts:1501 has "),
        "{}",
        ran.stderr
    );
    let written = fs::read_to_string(rig.path("known_hosts")).unwrap();
    let new = written.strip_prefix(&before).unwrap();
    assert_eq!(new.lines().count(), 8, "{new}");
}

#[test]
fn no_time_of_a_host_runs_while_its_key_waits_to_be_written() {
    let rig = Rig::new();
    fs::write(rig.path("known_hosts"), "").unwrap();
    let file = fs::File::open(rig.path("known_hosts")).unwrap();
    file.lock().unwrap();
    let options = ["-o", "StrictHostKeyChecking=accept-new", "--connect-timeout", "1"];
    let args = [&options as &[&str], &["-w", "web1", "--", "echo hello"]].concat();
    let mut command = rig.command(&args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // Longer than the host has for everything until here.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(fs::read_to_string(rig.path("known_hosts")).unwrap(), "");
    file.unlock().unwrap();
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "web1: hello\n", "")
    );
    let written = fs::read_to_string(rig.path("known_hosts")).unwrap();
    assert_eq!(written, format!("[127.0.0.1]:{} {}\n", rig.port, rig.host_key));
}
