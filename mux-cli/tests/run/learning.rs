//! `mux hosts learn` on a real sshd: what is printed, what is written, and that nobody logs in.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use mux_ssh::keys::PublicKey;

use crate::keys::detached;
use crate::rig::{Ran, Rig, free_port, read_until, write_key};

pub(crate) fn fingerprint(key: &str) -> String {
    PublicKey::parse_line(key).unwrap().key.fingerprint_sha256()
}

/// Hosts `web1` to `web4` that are filed under names of their own, and of which nobody knows any.
pub(crate) fn rig() -> Rig {
    let rig = Rig::new();
    let aliases = (1..5).map(|number| format!("Host web{number}\n  HostKeyAlias web{number}\n"));
    rig.configure(&aliases.collect::<String>());
    fs::remove_file(rig.path("known_hosts")).unwrap();
    rig
}

fn learn(rig: &Rig, args: &[&str]) -> Ran {
    let command = rig.subcommand(&["hosts", "learn"], args);
    rig.finish(detached(&command).output().unwrap())
}

/// One `mux hosts learn` without a terminal.
fn check(rig: &Rig, args: &[&str], status: i32, stdout: &str, stderr: &str) {
    let ran = learn(rig, args);
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (status, stdout, stderr),
        "{args:?}"
    );
}

/// The file with these hosts, each with the key that the server has.
pub(crate) fn written(rig: &Rig, hosts: &[&str]) -> String {
    hosts
        .iter()
        .map(|host| format!("{host} {}\n", rig.host_key))
        .collect()
}

/// The lines of known_hosts, sorted: in which order hosts answer is their own affair.
pub(crate) fn known_hosts(rig: &Rig) -> String {
    let text = fs::read_to_string(rig.path("known_hosts")).unwrap_or_default();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

#[test]
fn keys_are_written_and_printed_under_folded_names_and_nobody_logs_in() {
    let rig = rig();
    let print = fingerprint(&rig.host_key);
    check(
        &rig,
        &["--yes", "web[1-2]"],
        0,
        &format!("web[1-2]: ssh-ed25519 {print} learned\n"),
        "",
    );
    assert_eq!(known_hosts(&rig), written(&rig, &["web1", "web2"]));
    let both = format!("web[1-2]: ssh-ed25519 {print} known\nweb[3-4]: ssh-ed25519 {print} learned\n");
    check(&rig, &["--yes", "-w", "web[1-3]", "web4"], 0, &both, "");
    assert_eq!(
        known_hosts(&rig),
        written(&rig, &["web1", "web2", "web3", "web4"])
    );
    let log = fs::read_to_string(rig.path("sshd_log")).unwrap();
    assert!(
        !log.contains("Accepted") && !log.contains("Failed") && !log.contains("Invalid"),
        "{log}"
    );
    rig.check(&["-w", "web4", "--", "echo hello"], 0, "web4: hello\n", "");
}

#[test]
fn what_a_file_expects_is_written_and_what_it_does_not_fails_by_name() {
    let rig = rig();
    let (print, other) = (fingerprint(&rig.host_key), write_key(&rig.path("other")));
    let wrong = fingerprint(&other);
    fs::write(
        rig.path("expected"),
        format!("web1 {}\nweb2: ssh-ed25519 {print}\nweb3 {other}\n", rig.host_key),
    )
    .unwrap();
    let stderr = format!(
        "ok=2 hostkey=2 in TIME\nhostkey: web3: hostkey: host key not written: not the one that was expected \
         (DIR/expected:3 has {wrong}, server sent ssh-ed25519 {print})\nhostkey: web4: hostkey: host key not written: \
         DIR/expected says nothing about the host, which sent ssh-ed25519 {print}\n"
    );
    let stdout = format!("web[1-2]: ssh-ed25519 {print} learned\n");
    check(
        &rig,
        &["--from", &rig.text("expected"), "web[1-4]"],
        4,
        &stdout,
        &stderr,
    );
    assert_eq!(known_hosts(&rig), written(&rig, &["web1", "web2"]));
}

#[test]
fn what_learn_prints_is_what_it_expects() {
    let rig = rig();
    let ran = learn(&rig, &["--yes", "web[1-4]"]);
    fs::write(rig.path("expected"), &ran.stdout).unwrap();
    fs::remove_file(rig.path("known_hosts")).unwrap();
    check(
        &rig,
        &["--from", &rig.text("expected"), "web[1-4]"],
        0,
        &ran.stdout,
        "",
    );
}

#[test]
fn what_is_expected_may_come_on_standard_input() {
    let rig = rig();
    let line = format!("web1 {}\n", rig.host_key);
    let mut child = rig
        .subcommand(&["hosts", "learn"], &["--from", "-", "web1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(known_hosts(&rig), line);
    check(
        &rig,
        &["--from", "-", "web2"],
        4,
        "",
        &format!(
            "ok=0 hostkey=1 in TIME\nhostkey: web2: hostkey: host key not written: standard input says nothing about the \
         host, which sent ssh-ed25519 {}\n",
            fingerprint(&rig.host_key)
        ),
    );
}

#[test]
fn two_hosts_of_one_name_and_two_keys_are_told_from_a_host_that_has_changed() {
    let (rig, other) = (rig(), Rig::new());
    rig.configure(&format!(
        "Host web1 web2\n  HostKeyAlias both\nHost web2\n  Port {}",
        other.port
    ));
    let ran = learn(&rig, &["--yes", "-f", "1", "web[1-2]"]);
    assert_eq!(ran.status, 4, "{}", ran.stderr);
    let said = "another target of this run has the same name in known_hosts, both, and that key";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(!ran.stderr.contains("ssh-keygen"), "{}", ran.stderr);
}

#[test]
fn a_file_that_keeps_nothing_has_learned_nothing() {
    let rig = rig();
    for file in ["none", "/dev/null"] {
        let option = format!("UserKnownHostsFile={file}");
        let said = format!(
            "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key not written: UserKnownHostsFile is {file}\n"
        );
        check(&rig, &["-o", &option, "--yes", "web1"], 4, "", &said);
    }
}

#[test]
fn a_file_that_can_not_be_understood_is_a_usage_error_and_nothing_is_connected_to() {
    let rig = rig();
    fs::write(rig.path("expected"), "web1 SHA256\n").unwrap();
    let stderr = "mux: DIR/expected:1: names, type and key expected; write a line of known_hosts, or names and a SHA256: \
                  fingerprint\n";
    check(&rig, &["--from", &rig.text("expected"), "web1"], 2, "", stderr);
    check(
        &rig,
        &["--from", &rig.text("missing"), "web1"],
        2,
        "",
        "mux: DIR/missing: no such file\n",
    );
    let log = fs::read_to_string(rig.path("sshd_log")).unwrap();
    assert!(!log.contains("Connection"), "{log}");
}

#[test]
fn a_changed_key_is_not_written_over_whatever_is_expected() {
    let rig = rig();
    let (print, other) = (fingerprint(&rig.host_key), write_key(&rig.path("other")));
    let before = format!("web1 {other}\n");
    fs::write(rig.path("known_hosts"), &before).unwrap();
    fs::write(rig.path("expected"), format!("web1 {print}\n")).unwrap();
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key changed (DIR/known_hosts:1 has {}, server sent {print}); \
         if you expect this: ssh-keygen -R web1 -f DIR/known_hosts\n",
        fingerprint(&other)
    );
    check(&rig, &["--yes", "web1"], 4, "", &stderr);
    check(&rig, &["--from", &rig.text("expected"), "web1"], 4, "", &stderr);
    assert_eq!(known_hosts(&rig), before);
}

#[test]
fn without_a_terminal_the_key_is_shown_and_not_written() {
    let rig = rig();
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key not written (ssh-ed25519 {}): no terminal to ask on; \
         --from FILE says which keys are right, --yes takes them as they are\n",
        fingerprint(&rig.host_key)
    );
    check(&rig, &["web1"], 4, "", &stderr);
    assert_eq!(known_hosts(&rig), "");
}

#[test]
fn hosts_that_can_not_be_reached_are_named_and_the_others_learned() {
    let rig = rig();
    let port = free_port();
    let target = format!("web1:{port}");
    let ran = learn(&rig, &["--yes", "web2", &target]);
    let print = fingerprint(&rig.host_key);
    assert_eq!(
        (ran.status, ran.stdout),
        (4, format!("web2: ssh-ed25519 {print} learned\n"))
    );
    assert!(
        ran.stderr.contains("unreachable: ") && ran.stderr.contains("connection refused"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_file_that_can_not_be_written_fails_the_host() {
    let rig = rig();
    fs::create_dir(rig.path("known_hosts")).unwrap();
    let ran = learn(&rig, &["--yes", "web1"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (4, ""));
    let said = "hostkey: web1: hostkey: host key not written: DIR/known_hosts: is a directory\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn a_full_disk_leaves_no_half_line_behind() {
    let rig = rig();
    let before = format!("# {}\n", "x".repeat(500));
    fs::write(rig.path("known_hosts"), &before).unwrap();
    let command = rig.subcommand(&["hosts", "learn"], &["--yes", "web1"]);
    let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
    // 512 bytes for each file: the first ten of the line would still fit.
    let mut shell = std::process::Command::new("bash");
    shell.args([
        "-c",
        "ulimit -f 1; ulimit -c 0; exec \"$@\"",
        "-",
        command.get_program().to_str().unwrap(),
    ]);
    shell.args(words).env("XDG_STATE_HOME", rig.path("state"));
    fs::write(rig.path("known_hosts"), before.repeat(2)).unwrap();
    let ran = rig.finish(detached(&shell).output().unwrap());
    assert_eq!(ran.status, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("host key not written: DIR/known_hosts: "),
        "{}",
        ran.stderr
    );
    assert_eq!(known_hosts(&rig), before.repeat(2));
}

#[test]
fn what_is_asked_for_wrongly_is_a_usage_error() {
    let rig = rig();
    for (args, said) in [
        (&[] as &[&str], "no targets"),
        (&["--yes", "--from", "x", "web1"], "cannot be used with"),
        (
            &["--from", "-", "--hosts", "-"],
            "--hosts - and --from -: both can't read standard input",
        ),
        (
            &["--yes", "--transport", "local", "web1"],
            "--transport: only the native one sees host keys; leave it out",
        ),
    ] {
        let ran = learn(&rig, args);
        assert_eq!(ran.status, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
}

/// `mux` at its question.
pub(crate) struct Asked {
    child: Child,
    keys: ChildStdin,
    pub(crate) screen: ChildStdout,
    pub(crate) question: String,
}

impl Asked {
    pub(crate) fn new(rig: &Rig, names: &[&str], args: &[&str]) -> Self {
        let mut script = rig.typed(&rig.subcommand(names, args));
        let mut child = script.spawn().unwrap();
        let (keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let question = read_until(&mut screen, "? ");
        Self {
            child,
            keys,
            screen,
            question,
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// What is said until the end, and the exit status.
    pub(crate) fn ends(mut self) -> (String, i32) {
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.screen, &mut rest).unwrap();
        drop(self.keys);
        (rest, self.child.wait().unwrap().code().unwrap())
    }
}

#[test]
fn on_a_terminal_there_is_one_question_and_yes_writes() {
    let rig = rig();
    let mut asked = Asked::new(&rig, &["hosts", "learn"], &["-q", "web[1-4]"]);
    let print = fingerprint(&rig.host_key);
    assert_eq!(
        asked.question,
        format!(
            "The host key of web[1-4] is not known: ssh-ed25519 {print}\r\nWrite it down (yes/no/[fingerprint])? "
        )
    );
    assert_eq!(known_hosts(&rig), "");
    asked.types("perhaps\n");
    read_until(&mut asked.screen, "Please type 'yes', 'no' or the fingerprint: ");
    asked.types("yes\n");
    let said = format!("yes\r\nweb[1-4]: ssh-ed25519 {print} learned\r\n");
    assert_eq!(asked.ends(), (said, 0));
    assert_eq!(
        known_hosts(&rig),
        written(&rig, &["web1", "web2", "web3", "web4"])
    );
}

#[test]
fn the_fingerprint_is_as_good_as_a_yes_and_another_one_is_no_answer() {
    let rig = rig();
    let mut asked = Asked::new(&rig, &["hosts", "learn"], &["-q", "web1"]);
    asked.types(&format!("{}\n", fingerprint(&write_key(&rig.path("other")))));
    read_until(&mut asked.screen, "Please type 'yes', 'no' or the fingerprint: ");
    asked.types(&format!("{}\n", fingerprint(&rig.host_key)));
    assert_eq!(asked.ends().1, 0);
    assert_eq!(known_hosts(&rig), written(&rig, &["web1"]));
}

#[test]
fn no_writes_nothing_and_says_so() {
    let rig = rig();
    let mut asked = Asked::new(&rig, &["hosts", "learn"], &["web[1-2]"]);
    asked.types("no\n");
    let (said, status) = asked.ends();
    let failed = format!(
        "hostkey: web[1-2]: hostkey: host key not accepted (ssh-ed25519 {})\r\n",
        fingerprint(&rig.host_key)
    );
    assert!(said.contains(&failed), "{said}");
    assert_eq!((status, known_hosts(&rig).as_str()), (4, ""));
}

#[test]
fn ctrl_c_at_the_question_ends_it() {
    let rig = rig();
    let mut asked = Asked::new(&rig, &["hosts", "learn"], &["web[1-2]"]);
    asked.types("\x03");
    let (said, status) = asked.ends();
    assert!(said.contains("cancelled=2"), "{said}");
    assert_eq!((status, known_hosts(&rig).as_str()), (130, ""));
}
