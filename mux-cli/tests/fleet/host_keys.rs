//! Unknown host keys by the hundred: one question, and files that several processes write to at once.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::rig::read_until;
use crate::servers::{Kind, Servers};

/// The lines of a file, none of them twice.
fn lines(text: &str) -> BTreeSet<&str> {
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!(lines.len(), text.lines().count(), "{text}");
    lines
}

#[test]
fn four_processes_that_learn_the_same_200_hosts_leave_the_file_whole() {
    let servers = Servers::new(&[Kind::Good; 200]);
    let known = fs::read_to_string(servers.known_hosts()).unwrap();
    for hash in ["no", "yes"] {
        fs::remove_file(servers.known_hosts()).unwrap();
        let hash = format!("HashKnownHosts={hash}");
        let start = || -> Child {
            let options = ["-o", "StrictHostKeyChecking=accept-new", "-o", &hash];
            let args = [&options as &[&str], &["-q", "-b", "-w", "h[001-200]", "--", "x"]].concat();
            let mut command = servers.command(&args);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let children = [start(), start(), start(), start()];
        for child in children {
            let output = child.wait_with_output().unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(stdout.contains("h[001-200] (200)"), "{stdout}{stderr}");
            assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
        }
        let written = fs::read_to_string(servers.known_hosts()).unwrap();
        if hash.ends_with("no") {
            assert_eq!(lines(&written), lines(&known));
        } else {
            let hashed = |line: &&str| line.starts_with("|1|");
            assert_eq!(
                lines(&written).iter().filter(|line| hashed(line)).count(),
                200,
                "{written}"
            );
            assert_eq!(written.lines().count(), 200);
        }
    }
    // Every host is known by now, under its hash.
    let output = servers
        .command(&["-q", "-b", "-w", "h[001-200]", "--", "x"])
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_hundred_unknown_hosts_are_one_question() {
    let servers = Servers::new(&[Kind::Good; 100]);
    let known = fs::read_to_string(servers.known_hosts()).unwrap();
    fs::remove_file(servers.known_hosts()).unwrap();
    let options = ["-o", "StrictHostKeyChecking=ask", "-f", "16", "-q", "-b"];
    let command = servers.command(&[&options as &[&str], &["-w", "h[001-100]", "--", "x"]].concat());
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script");
    script
        .args(["-qec", &words.join(" "), "/dev/null"])
        .env("NO_COLOR", "1");
    let state = command
        .get_envs()
        .find_map(|(name, value)| (name == "XDG_STATE_HOME").then_some(value));
    script.env("XDG_STATE_HOME", state.flatten().unwrap());
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let question = read_until(&mut screen, "? ");
    assert!(
        question.starts_with("The host key of h[001-100] is not known: ssh-ed25519 SHA256:"),
        "{question}"
    );
    keys.write_all(b"yes\n").unwrap();
    let mut rest = String::new();
    screen.read_to_string(&mut rest).unwrap();
    assert_eq!(
        rest,
        "yes\r\n---------------\r\nh[001-100] (100)\r\n---------------\r\nhello\r\n"
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(
        lines(&fs::read_to_string(servers.known_hosts()).unwrap()),
        lines(&known)
    );
}
