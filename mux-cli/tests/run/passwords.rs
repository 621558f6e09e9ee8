//! Passwords and questions of a real sshd: asked once for all hosts, on the terminal or by a program, and what is said
//! where nobody can be asked. How often the server was tried is counted by the server.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::rig::{Ran, Rig, free_port, read_until, wait_for, write_key};

/// Passwords, and nothing else.
const PASSWORD: &str =
    "AuthenticationMethods password\nPasswordAuthentication yes\nKbdInteractiveAuthentication no";
/// The questions of PAM, and nothing else.
const QUESTIONS: &str =
    "AuthenticationMethods keyboard-interactive\nPasswordAuthentication no\nKbdInteractiveAuthentication yes";

/// A run on a terminal.
struct Session {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    /// Everything that was shown.
    seen: String,
    log: std::path::PathBuf,
}

impl Session {
    fn new(rig: &Rig, args: &[&str]) -> Self {
        let args = [&["-l", "deploy"], args].concat();
        let mut child = rig.on_terminal(&args).spawn().unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            keys,
            screen,
            seen: String::new(),
            log: rig.path("sshd_log"),
        }
    }

    /// Waits for this question, and types an answer.
    fn answers(&mut self, question: &str, answer: &str) {
        self.shows(question);
        self.keys.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }

    /// The same for a question to several hosts: which of them have come by then is a matter of time.
    fn answers_for_all(&mut self, start: &str, end: &str, answer: &str) {
        self.shows(start);
        self.answers(end, answer);
    }

    fn shows(&mut self, text: &str) {
        self.seen += &read_until(&mut self.screen, text);
    }

    /// Waits for the end; what was shown in all, and the status.
    fn ends(mut self, status: i32) -> String {
        self.screen.read_to_string(&mut self.seen).unwrap();
        let log = fs::read_to_string(&self.log).unwrap();
        assert_eq!(
            self.child.wait().unwrap().code(),
            Some(status),
            "{} {log}",
            self.seen
        );
        std::mem::take(&mut self.seen)
    }
}

/// A test that failed leaves nothing behind.
impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How often the server has said this.
fn said(rig: &Rig, text: &str) -> usize {
    fs::read_to_string(rig.path("sshd_log"))
        .unwrap()
        .matches(text)
        .count()
}

#[track_caller]
fn check_log(rig: &Rig, counts: &[(&str, usize)]) {
    for (text, expected) in counts {
        let log = fs::read_to_string(rig.path("sshd_log")).unwrap();
        assert_eq!(said(rig, text), *expected, "{text}: {log}");
    }
}

/// A program to ask, which notes its question.
fn askpass(rig: &Rig, says: &str) -> String {
    let script = format!("#!/bin/sh\necho \"$1\" >> {}\n{says}\n", rig.text("asked"));
    fs::write(rig.path("askpass"), script).unwrap();
    fs::set_permissions(rig.path("askpass"), fs::Permissions::from_mode(0o700)).unwrap();
    rig.text("askpass")
}

fn asked(rig: &Rig) -> String {
    fs::read_to_string(rig.path("asked")).unwrap_or_default()
}

/// Without a terminal, with this program to ask.
fn with_askpass(rig: &Rig, says: &str, args: &[&str]) -> Ran {
    let args = [&["-l", "deploy"], args].concat();
    let mut command = detached(rig, &args);
    command
        .env("SSH_ASKPASS", askpass(rig, says))
        .env("SSH_ASKPASS_REQUIRE", "force");
    rig.finish(command.output().unwrap())
}

/// Without a terminal.
fn detached(rig: &Rig, args: &[&str]) -> Command {
    let run = rig.command(args);
    let mut command = Command::new("setsid");
    command.arg("-w").arg(run.get_program()).args(run.get_args());
    command.env_clear();
    for (name, value) in run.get_envs() {
        command.env(name, value.unwrap());
    }
    command.stdin(Stdio::null());
    command
}

#[test]
fn one_host_asks_as_ssh_does() {
    let rig = Rig::with_password(PASSWORD);
    let mut session = Session::new(&rig, &["-w", "web1", "--", "echo hel''lo $USER"]);
    session.answers("deploy@web1's password: ", "secret");
    let seen = session.ends(0);
    assert!(seen.contains("deploy@web1's password: \r\n"), "{seen}");
    assert!(seen.contains("web1: hello deploy\r\n"), "{seen}");
    assert!(!seen.contains("secret"), "{seen}");
    check_log(&rig, &[("Accepted password", 1), ("Failed password", 0)]);
}

#[test]
fn one_host_may_be_answered_wrong_as_often_as_with_ssh() {
    let rig = Rig::with_password(PASSWORD);
    let mut session = Session::new(&rig, &["-w", "web1", "--", "echo hel''lo"]);
    session.answers("deploy@web1's password: ", "wrong");
    session.answers(
        "Permission denied, please try again.\r\ndeploy@web1's password: ",
        "also wrong",
    );
    session.answers(
        "Permission denied, please try again.\r\ndeploy@web1's password: ",
        "secret",
    );
    assert!(session.ends(0).contains("web1: hello"));
    check_log(&rig, &[("Accepted password", 1), ("Failed password", 2)]);
    let mut session = Session::new(
        &rig,
        &[
            "-o",
            "NumberOfPasswordPrompts=1",
            "-w",
            "web1",
            "--",
            "echo hel''lo",
        ],
    );
    session.answers("deploy@web1's password: ", "wrong");
    let seen = session.ends(4);
    assert!(
        seen.contains("deploy@web1: permission denied (server offers password); ")
            && seen.ends_with("; password: not accepted\r\n"),
        "{seen}"
    );
    check_log(&rig, &[("Failed password", 3)]);
}

#[test]
fn three_hosts_are_one_question() {
    let rig = Rig::with_password(PASSWORD);
    let mut session = Session::new(&rig, &["-w", "web[1-3]", "--", "echo hel''lo"]);
    session.answers_for_all("password for deploy@ (", "): ", "secret");
    let seen = session.ends(0);
    assert_eq!(seen.matches(": hello").count(), 3, "{seen}");
    assert_eq!(seen.matches("password for").count(), 1, "{seen}");
    assert!(!seen.contains("secret"), "{seen}");
    check_log(&rig, &[("Accepted password", 3), ("Failed password", 0)]);
}

#[test]
fn hosts_that_refuse_the_answer_are_not_asked_about_one_by_one() {
    let rig = Rig::with_password(PASSWORD);
    let mut session = Session::new(&rig, &["-w", "web[1-3]", "--", "echo hel''lo"]);
    session.answers_for_all("password for deploy@ (", "): ", "wrong");
    let seen = session.ends(4);
    let id = rig.text("id");
    let last = format!(
        "auth: web[1-3]: auth: as deploy: permission denied (server offers password); {id}: not accepted; password: not \
         accepted\r\n"
    );
    assert!(seen.ends_with(&last), "{seen}");
    assert_eq!(seen.matches("password for").count(), 1, "{seen}");
    check_log(&rig, &[("Accepted password", 0), ("Failed password", 3)]);
}

#[test]
fn hosts_that_come_later_have_the_answer() {
    let rig = Rig::with_password(PASSWORD);
    let mut session = Session::new(&rig, &["-f", "1", "-w", "web[1-3]", "--", "echo hel''lo"]);
    session.answers_for_all("password for deploy@ (", "): ", "secret");
    let seen = session.ends(0);
    assert_eq!(
        (
            seen.matches(": hello").count(),
            seen.matches("password for").count()
        ),
        (3, 1),
        "{seen}"
    );
    check_log(&rig, &[("Accepted password", 3), ("Failed password", 0)]);
}

#[test]
fn questions_are_asked_once_and_answered_for_all() {
    let rig = Rig::with_password(QUESTIONS);
    let mut session = Session::new(&rig, &["-w", "web[1-3]", "--", "echo hel''lo"]);
    session.answers_for_all("(deploy@, ", ") Password: ", "secret");
    let seen = session.ends(0);
    assert_eq!(
        (
            seen.matches(": hello").count(),
            seen.matches("Password: ").count()
        ),
        (3, 1),
        "{seen}"
    );
    check_log(&rig, &[("Accepted keyboard-interactive/pam", 3)]);
}

#[test]
fn questions_are_answered_once_a_host_and_by_no_second_connection() {
    let rig = Rig::with_password(QUESTIONS);
    let mut session = Session::new(&rig, &["-w", "web1", "--", "echo hel''lo"]);
    session.answers("(deploy@web1) Password: ", "wrong");
    let seen = session.ends(4);
    assert!(seen.contains("keyboard-interactive: not accepted\r\n"), "{seen}");
    check_log(
        &rig,
        &[
            ("Failed keyboard-interactive/pam", 1),
            ("Connection from", 1),
            ("Accepted", 0),
        ],
    );
}

#[test]
fn a_key_and_then_a_password() {
    let rig = Rig::with_password("AuthenticationMethods publickey,password");
    let mut session = Session::new(&rig, &["-w", "web[1-2]", "--", "echo hel''lo"]);
    session.answers_for_all("password for deploy@ (", "): ", "secret");
    assert_eq!(session.ends(0).matches(": hello").count(), 2);
    check_log(
        &rig,
        &[("Partial publickey", 2), ("Accepted password", 2), ("Failed", 0)],
    );
}

#[test]
fn a_password_or_questions_and_then_a_key() {
    for (methods, question, partial) in [
        (
            "password,publickey",
            "deploy@web1's password: ",
            "Partial password",
        ),
        (
            "keyboard-interactive,publickey",
            "(deploy@web1) Password: ",
            "Partial keyboard-interactive/pam",
        ),
    ] {
        let rig = Rig::with_password(&format!("AuthenticationMethods {methods}"));
        let mut session = Session::new(&rig, &["-w", "web1", "--", "echo hel''lo"]);
        session.answers(question, "secret");
        assert!(session.ends(0).contains("web1: hello"));
        check_log(
            &rig,
            &[(partial, 1), ("Accepted publickey", 1), ("Connection from", 1)],
        );
    }
}

#[test]
fn a_jump_host_is_asked_about_by_itself() {
    let rig = Rig::with_password(PASSWORD);
    // By another name, or it would be a jump from a host to itself.
    rig.configure("Host gate\n  HostName localhost\n  AddressFamily inet\n");
    let known = ["localhost", "127.0.0.1"].map(|name| format!("[{name}]:{} {}\n", rig.port, rig.host_key));
    fs::write(rig.path("known_hosts"), known.concat()).unwrap();
    let ran = with_askpass(
        &rig,
        "echo secret",
        &["-J", "deploy@gate", "-w", "web[1-2]", "--", "echo hello"],
    );
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let asked = asked(&rig);
    let lines: Vec<&str> = asked.lines().collect();
    assert_eq!(lines.len(), 2, "{asked}");
    assert_eq!(lines[0], "deploy@gate's password: ", "{asked}");
    assert!(lines[1].starts_with("password for deploy@ ("), "{asked}");
    check_log(&rig, &[("Accepted password", 3)]);
}

/// A dropbear for the same users, and where it listens.
pub(crate) struct Dropbear(Child, pub(crate) u16);

impl Drop for Dropbear {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With further arguments.
pub(crate) fn dropbear(rig: &Rig, more: &[&str]) -> Dropbear {
    let converted = Command::new("dropbearconvert")
        .args([
            "openssh",
            "dropbear",
            &rig.text("host_key"),
            &rig.text("dropbear_key"),
        ])
        .output();
    let converted = converted.expect("no dropbearconvert: apt-get install dropbear-bin");
    assert!(converted.status.success(), "{converted:?}");
    let port = free_port();
    let mut server = rig.among_own_users("/usr/sbin/dropbear".as_ref());
    server
        .args(["-F", "-E", "-p", &format!("127.0.0.1:{port}")])
        .args(["-r", &rig.text("dropbear_key"), "-P", &rig.text("dropbear_pid")])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(rig.path("dropbear_log")).unwrap());
    let server = Dropbear(server.spawn().unwrap(), port);
    wait_for("dropbear to listen", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let known = format!("[127.0.0.1]:{port} {}\n", rig.host_key);
    fs::write(rig.path("known_hosts"), known).unwrap();
    server
}

/// It ends the connection over the command that went ahead with the refused key.
#[test]
fn a_server_that_ends_after_a_refused_key_costs_a_second_connection_and_one_question() {
    let rig = Rig::with_password(PASSWORD);
    let server = dropbear(&rig, &[]);
    let port = server.1.to_string();
    let log = || fs::read_to_string(rig.path("dropbear_log")).unwrap();
    let count = |text: &str| log().matches(text).count();
    for (answer, hosts, status) in [("secret", 3, 0), ("wrong", 3, 4)] {
        let _ = fs::remove_file(rig.path("asked"));
        let before = ["auth succeeded", "Bad password"].map(count);
        let says = format!("echo {answer}");
        let ran = with_askpass(&rig, &says, &["-p", &port, "-w", "web[1-3]", "--", "echo hello"]);
        assert_eq!(ran.status, status, "{} {}", ran.stderr, log());
        assert_eq!(asked(&rig).lines().count(), 1, "{}", asked(&rig));
        let after = ["auth succeeded", "Bad password"].map(count);
        let expected = if status == 0 { [hosts, 0] } else { [0, hosts] };
        assert_eq!(
            [after[0] - before[0], after[1] - before[1]],
            expected,
            "{}",
            log()
        );
    }
    // Each run: three over which it hung up, and three with the password.
    wait_for("the last connection", || count("Child connection") >= 12);
    assert_eq!(count("before userauth"), 6, "{}", log());
}

#[test]
fn half_a_login_says_what_was_right_and_what_was_not() {
    let rig = Rig::with_password("AuthenticationMethods publickey,password");
    let ran = with_askpass(&rig, "echo wrong", &["-w", "web1", "--", "true"]);
    assert_eq!(
        ran,
        Ran {
            status: 4,
            stdout: String::new(),
            stderr: "ok=0 auth=1 in TIME\nauth: web1: auth: deploy@web1: the server wants a further proof; DIR/id: \
                     accepted, and not enough; password: not accepted; password: not accepted; password: not accepted\n"
                .to_owned()
        }
    );
}

#[test]
fn a_host_with_another_key_than_the_known_one_gets_no_password_and_that_is_said() {
    let rig = Rig::with_password(PASSWORD);
    rig.know(&write_key(&rig.path("another")));
    let args = ["-o", "StrictHostKeyChecking=no", "-w", "web1", "--", "true"];
    let ran = with_askpass(&rig, "echo secret", &args);
    let said = "; password: withheld, as the host key is not the one that is known\n";
    assert!(ran.status == 4 && ran.stderr.ends_with(said), "{ran:?}");
    assert_eq!(asked(&rig), "");
    check_log(&rig, &[("Failed password", 0), ("Accepted", 0)]);
}

#[test]
fn where_nobody_can_be_asked_the_method_and_the_reason_are_named() {
    let rig = Rig::with_password(PASSWORD);
    fs::write(rig.path("authorized_keys"), "").unwrap();
    let nobody = rig.finish(
        detached(&rig, &["-l", "deploy", "-w", "web1", "--", "true"])
            .output()
            .unwrap(),
    );
    let denied = |reason: &str| Ran {
        status: 4,
        stdout: String::new(),
        stderr: format!(
            "ok=0 auth=1 in TIME\nauth: web1: auth: deploy@web1: permission denied (server offers password); \
             DIR/id: not accepted; password: {reason}\n"
        ),
    };
    assert_eq!(
        nobody,
        denied("there is no terminal to ask on, and no program (SSH_ASKPASS)")
    );
    let batch = ["-o", "BatchMode=yes", "-w", "web1", "--", "true"];
    assert_eq!(
        with_askpass(&rig, "echo secret", &batch),
        denied("BatchMode forbids to ask")
    );
    let off = ["-o", "PasswordAuthentication=no", "-w", "web1", "--", "true"];
    assert_eq!(
        with_askpass(&rig, "echo secret", &off),
        denied("PasswordAuthentication is off (command line)")
    );
    assert_eq!(asked(&rig), "");
    check_log(&rig, &[("Failed password", 0), ("Accepted", 0)]);
}

#[test]
fn a_program_is_asked_once_for_all_hosts() {
    let rig = Rig::with_password(PASSWORD);
    let ran = with_askpass(&rig, "echo secret", &["-w", "web[1-3]", "--", "echo hello"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    let asked = asked(&rig);
    assert!(
        asked.starts_with("password for deploy@ (") && asked.ends_with("): \n"),
        "{asked}"
    );
    assert_eq!(asked.lines().count(), 1, "{asked}");
    check_log(&rig, &[("Accepted password", 3)]);
}

#[test]
fn a_program_that_fails_has_not_answered() {
    let rig = Rig::with_password(PASSWORD);
    let ran = with_askpass(&rig, "echo secret; exit 3", &["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr
            .ends_with("; password: no answer: DIR/askpass: no answer (exit status: 3)\n"),
        "{}",
        ran.stderr
    );
    check_log(&rig, &[("Failed password", 0)]);
}

#[test]
fn an_answer_with_a_zero_byte_is_sent_nowhere_and_the_reason_is_said() {
    let says = "printf 'sec\\000ret\\n'";
    let reason = "there is a zero byte in it, which no password, passphrase or answer can have";
    for (server, method) in [(PASSWORD, "password"), (QUESTIONS, "keyboard-interactive")] {
        let rig = Rig::with_password(server);
        let ran = with_askpass(&rig, says, &["-w", "web1", "--", "true"]);
        let expected = format!("; {method}: no answer: {reason}\n");
        assert!(ran.status == 4 && ran.stderr.ends_with(&expected), "{ran:?}");
        check_log(&rig, &[("Failed", 0), ("Accepted", 0)]);
    }
    let rig = crate::keys::keys_only();
    crate::keys::lock(&rig);
    let mut command = detached(&rig, &["-w", "web1", "--", "true"]);
    command
        .env("SSH_ASKPASS", askpass(&rig, says))
        .env("DISPLAY", ":0");
    let ran = rig.finish(command.output().unwrap());
    let expected = format!("no passphrase: {reason}\n");
    assert!(ran.status == 4 && ran.stderr.contains(&expected), "{ran:?}");
}

#[test]
fn a_program_is_asked_for_passphrases_too() {
    let rig = crate::keys::keys_only();
    crate::keys::lock(&rig);
    let mut command = detached(&rig, &["-w", "web[1-3]", "--", "echo hello"]);
    command
        .env("SSH_ASKPASS", askpass(&rig, "echo secret"))
        .env("DISPLAY", ":0");
    let ran = rig.finish(command.output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        asked(&rig),
        format!("Enter passphrase for key '{}': \n", rig.text("id"))
    );
}

#[test]
fn a_signal_at_the_question_ends_the_run_and_the_program_that_asks() {
    let rig = Rig::with_password(PASSWORD);
    let mut command = detached(&rig, &["-l", "deploy", "-w", "web1", "--", "true"]);
    let program = askpass(&rig, &format!("echo $$ > {}; exec sleep 600", rig.text("pid")));
    command
        .env("SSH_ASKPASS", program)
        .env("SSH_ASKPASS_REQUIRE", "force");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    wait_for("the question", || {
        fs::read_to_string(rig.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    // `setsid` has become the run, or waits for it: its child is who is to hear.
    let run = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let run = run
        .split_whitespace()
        .next()
        .map_or(child.id().to_string(), ToOwned::to_owned);
    let comm = fs::read_to_string(format!("/proc/{run}/comm")).unwrap();
    let run = if comm.trim() == "mux" {
        run
    } else {
        child.id().to_string()
    };
    Command::new("kill").args(["-TERM", &run]).status().unwrap();
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert!(ran.stderr.contains("cancelled=1"), "{}", ran.stderr);
    wait_for("the end of the program", || {
        !crate::rig::is_alive(&rig.path("pid"))
    });
}
