//! `mux hosts learn` on a real sshd with several keys: every type that the server has is learned, and what is said of those
//! that are not.

use std::fs;
use std::process::Command;

use crate::keys::detached;
use crate::learning::{Asked, fingerprint, known_hosts};
use crate::rig::{Ran, Rig, write_key};

/// A server with three keys, under the names `web1` and `web2`, and of which nobody knows any.
struct Server {
    rig: Rig,
    /// Its keys, in the order in which they are printed.
    keys: [String; 3],
    _dir: tempfile::TempDir,
}

impl Server {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let make = |key_type: &str| {
            let path = dir.path().join(key_type);
            let keygen = Command::new("ssh-keygen")
                .args(["-q", "-N", "", "-t", key_type, "-f"])
                .arg(&path)
                .status();
            assert!(keygen.unwrap().success());
            let line = fs::read_to_string(path.with_extension("pub")).unwrap();
            line.split(' ').take(2).collect::<Vec<_>>().join(" ")
        };
        let [ecdsa, rsa] = ["ecdsa", "rsa"].map(make);
        let path = dir.path().display();
        let rig = Rig::with(&format!("HostKey {path}/rsa\nHostKey {path}/ecdsa"));
        let aliases = (1..3).map(|number| format!("Host web{number}\n  HostKeyAlias web{number}\n"));
        rig.configure(&aliases.collect::<String>());
        fs::remove_file(rig.path("known_hosts")).unwrap();
        let keys = [ecdsa, rig.host_key.clone(), rsa];
        Self { rig, keys, _dir: dir }
    }

    /// What is written about these hosts.
    fn lines(&self, hosts: &[&str]) -> String {
        let keys = |host: &&str| {
            self.keys
                .iter()
                .map(|key| format!("{host} {key}\n"))
                .collect::<String>()
        };
        hosts.iter().map(keys).collect()
    }

    /// What is printed.
    fn said(&self, names: &str, how: [&str; 3]) -> String {
        let line = |(key, how): (&String, &str)| {
            let algorithm = key.split(' ').next().unwrap();
            format!("{names}: {algorithm} {} {how}\n", fingerprint(key))
        };
        self.keys.iter().zip(how).map(line).collect()
    }

    fn learn(&self, args: &[&str]) -> Ran {
        let command = self.rig.subcommand(&["hosts", "learn"], args);
        self.rig.finish(detached(&command).output().unwrap())
    }

    fn check(&self, args: &[&str], status: i32, stdout: &str, stderr: &str) {
        let ran = self.learn(args);
        assert_eq!(
            (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
            (status, stdout, stderr),
            "{args:?}"
        );
    }
}

const ALL: [&str; 3] = ["learned"; 3];

#[test]
fn every_type_of_key_that_the_server_has_is_learned_and_nothing_twice() {
    let server = Server::new();
    server.check(&["--yes", "web[1-2]"], 0, &server.said("web[1-2]", ALL), "");
    let all = server.lines(&["web1", "web2"]);
    assert_eq!(known_hosts(&server.rig), all);
    server.check(
        &["--yes", "web[1-2]"],
        0,
        &server.said("web[1-2]", ["known"; 3]),
        "",
    );
    assert_eq!(known_hosts(&server.rig), all);
    // The others follow the one that is known.
    fs::write(
        server.rig.path("known_hosts"),
        format!("web1 {}\n", server.keys[1]),
    )
    .unwrap();
    let some = server.said("web1", ["learned", "known", "learned"]);
    let mut some: Vec<&str> = some.split_inclusive('\n').collect();
    some.sort_unstable();
    server.check(&["--yes", "web1"], 0, &some.concat(), "");
    assert_eq!(known_hosts(&server.rig), server.lines(&["web1"]));
    // Only what the configuration allows is looked at.
    fs::remove_file(server.rig.path("known_hosts")).unwrap();
    let one = server.said("web1", ALL);
    let one: Vec<&str> = one.lines().filter(|line| line.contains("ssh-ed25519")).collect();
    let args = ["--yes", "-o", "HostKeyAlgorithms=ssh-ed25519", "web1"];
    server.check(&args, 0, &format!("{}\n", one[0]), "");
    let log = fs::read_to_string(server.rig.path("sshd_log")).unwrap();
    assert!(!log.contains("Accepted") && !log.contains("Failed"), "{log}");
}

#[test]
fn two_that_learn_the_same_hosts_at_once_write_each_key_once() {
    let server = Server::new();
    let start = || {
        let command = server.rig.subcommand(&["hosts", "learn"], &["--yes", "web[1-2]"]);
        detached(&command)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    for child in [start(), start(), start()] {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert_eq!(known_hosts(&server.rig), server.lines(&["web1", "web2"]));
}

#[test]
fn one_question_is_about_all_keys_of_all_hosts() {
    let server = Server::new();
    let mut asked = Asked::new(&server.rig, &["hosts", "learn"], &["-q", "web[1-2]"]);
    let lines = server.said("web[1-2]", [""; 3]).replace(" \n", "\r\n  ");
    assert_eq!(
        asked.question,
        format!(
            "The host keys of 2 hosts are not known:\r\n  {}Write them down (yes/no)? ",
            lines.trim_end_matches("  ")
        )
    );
    assert_eq!(known_hosts(&server.rig), "");
    asked.types("yes\n");
    assert_eq!(asked.ends().1, 0);
    assert_eq!(known_hosts(&server.rig), server.lines(&["web1", "web2"]));
    fs::remove_file(server.rig.path("known_hosts")).unwrap();
    let ran = server.learn(&["web1"]);
    let listed: Vec<String> = server.keys.iter().map(|key| fingerprint(key)).collect();
    assert!(
        ran.status == 4 && listed.iter().all(|print| ran.stderr.contains(print)),
        "{}",
        ran.stderr
    );
    assert_eq!(known_hosts(&server.rig), "");
}

#[test]
fn keys_that_a_file_says_nothing_about_are_said_and_a_wrong_one_fails_the_host() {
    let server = Server::new();
    let [ecdsa, ed25519, rsa] = server.keys.each_ref().map(|key| fingerprint(key));
    let from = |lines: &str| fs::write(server.rig.path("expected"), lines).unwrap();
    let file = server.rig.text("expected");
    let args = ["--from", file.as_str(), "web1"];
    from(&format!(
        "web1 ssh-ed25519 {ed25519}\r\n# nothing\r\nweb1 {}\r\n",
        server.keys[2]
    ));
    let stdout = format!("web1: ssh-ed25519 {ed25519} learned\nweb1: ssh-rsa {rsa} learned\n");
    let stderr = format!(
        "mux: web1: host key not written: not the one that was expected (DIR/expected:3 has {rsa}, DIR/expected:1 has \
         {ed25519}, server sent ecdsa-sha2-nistp256 {ecdsa})\n"
    );
    server.check(&args, 0, &stdout, &stderr);
    let lines = server.lines(&["web1"]);
    let two: String = lines.split_inclusive('\n').skip(1).collect();
    assert_eq!(known_hosts(&server.rig), two);
    // Another key of a type that it names.
    fs::remove_file(server.rig.path("known_hosts")).unwrap();
    let other = fingerprint(&write_key(&server.rig.path("other")));
    from(&format!("web1 ssh-ed25519 {other}\nweb1 ssh-rsa {rsa}\n"));
    let ran = server.learn(&args);
    assert!(
        ran.status == 4
            && ran.stdout.is_empty()
            && ran
                .stderr
                .contains(&format!("server sent ssh-ed25519 {ed25519})")),
        "{}",
        ran.stderr
    );
    assert_eq!(known_hosts(&server.rig), "");
    // All of them, as ssh-keyscan prints them, hashed and with a port.
    let host = mux_ssh::known_hosts::HostId::new("127.0.0.1", server.rig.port);
    let hashed = server.keys.each_ref().map(|key| {
        let key = mux_ssh::keys::PublicKey::parse_line(key).unwrap().key;
        mux_ssh::known_hosts::format_entry(&host, &key, true).unwrap()
    });
    from(&hashed.concat());
    let plain = ["--from", file.as_str(), "web3"];
    server.check(&plain, 0, &server.said("web3", ALL), "");
}

#[test]
fn a_changed_key_of_one_type_fails_the_host_whatever_the_others_say() {
    let server = Server::new();
    let other = write_key(&server.rig.path("other"));
    let before = format!("web1 {}\nweb1 {other}\n", server.keys[0]);
    fs::write(server.rig.path("known_hosts"), &before).unwrap();
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key changed (DIR/known_hosts:2 has {}, server sent \
         {}); if you expect this: ssh-keygen -R web1 -f DIR/known_hosts\n",
        fingerprint(&other),
        fingerprint(&server.keys[1])
    );
    server.check(&["--yes", "web1"], 4, "", &stderr);
    assert_eq!(known_hosts(&server.rig), before);
}
