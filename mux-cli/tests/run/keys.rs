//! The user's keys: files, passphrases, agents.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::agents::Agent;
use crate::rig::{Rig, write_key};

/// The answer of a server that accepts only keys that we don't have.
pub(crate) fn denied(rig: &Rig, why: &str) -> String {
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(user.stdout).unwrap();
    let _ = rig;
    format!(
        "ok=0 auth=1 in TIME\nauth: web1: auth: {}@web1: permission denied (server offers publickey); {why}\n",
        user.trim()
    )
}

/// The same where our only key is of no use.
fn unused_and_denied(rig: &Rig, why: &str) -> String {
    format!(
        "mux: DIR/config line 5: identity file DIR/id not used: {why}\n{}",
        denied(rig, &format!("DIR/id: {why}"))
    )
}

/// A server that takes keys and nothing else, so that what it offers is the same everywhere.
pub(crate) fn keys_only() -> Rig {
    Rig::with("AuthenticationMethods publickey\nPasswordAuthentication no\nKbdInteractiveAuthentication no")
}

#[test]
fn a_key_that_the_server_does_not_take_is_named() {
    let rig = keys_only();
    write_key(&rig.path("id"));
    rig.check(
        &["-w", "web1", "--", "true"],
        4,
        "",
        &denied(&rig, "DIR/id: not accepted"),
    );
}

#[test]
fn the_second_key_is_tried_when_the_first_is_refused_and_goes_first_the_next_time() {
    let rig = keys_only();
    write_key(&rig.path("wrong"));
    let args = ["-i", &rig.text("wrong"), "-w", "web1", "--", "echo hello"];
    rig.check(&args, 0, "web1: hello\n", "");
    rig.check(&args, 0, "web1: hello\n", "");
    let refusals = fs::read_to_string(rig.path("sshd_log")).unwrap();
    assert!(refusals.matches("Accepted publickey").count() == 2, "{refusals}");
}

#[test]
fn a_key_that_worked_does_not_push_past_one_that_is_named_before_it() {
    let rig = keys_only();
    write_key(&rig.path("tied"));
    let keys = rig.path("authorized_keys");
    let (tied, known) = (
        fs::read_to_string(rig.path("tied.pub")).unwrap(),
        fs::read_to_string(&keys).unwrap(),
    );
    fs::write(&keys, format!("command=\"echo tied\" {tied}{known}")).unwrap();
    let tied = rig.text("tied");
    let plain = ["-w", "web1", "--", "echo plain"];
    let before = ["-i", &tied, "-w", "web1", "--", "echo plain"];
    let by_option = [
        "-o",
        &format!("IdentityFile={tied}"),
        "-w",
        "web1",
        "--",
        "echo plain",
    ];
    for _ in 0..2 {
        rig.check(&plain, 0, "web1: plain\n", "");
        rig.check(&before, 0, "web1: tied\n", "");
        rig.check(&plain, 0, "web1: plain\n", "");
        rig.check(&by_option, 0, "web1: tied\n", "");
    }
}

#[test]
fn a_key_that_others_can_read_is_not_used_and_says_why() {
    let rig = keys_only();
    fs::set_permissions(rig.path("id"), fs::Permissions::from_mode(0o644)).unwrap();
    let why = "DIR/id: mode 0644 lets others read it; chmod 600 DIR/id";
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
}

#[test]
fn a_missing_key_is_named() {
    let rig = keys_only();
    fs::remove_file(rig.path("id")).unwrap();
    fs::remove_file(rig.path("id.pub")).unwrap();
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(ran.stderr.contains("DIR/id: no such file"), "{}", ran.stderr);
}

/// Locks the key under a passphrase.
pub(crate) fn lock(rig: &Rig) {
    let keygen = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "secret", "-f", &rig.text("id")])
        .status();
    assert!(keygen.unwrap().success());
}

/// A session without a terminal, wherever the tests run.
fn without_terminal(rig: &Rig, args: &[&str]) -> Command {
    detached(&rig.command(args))
}

/// The same for any command.
pub(crate) fn detached(inner: &Command) -> Command {
    let mut command = Command::new("setsid");
    command
        .arg("--wait")
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .stdin(Stdio::null());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

#[test]
fn a_locked_key_without_a_terminal_is_skipped_and_named() {
    let rig = keys_only();
    lock(&rig);
    let output = without_terminal(&rig, &["-w", "web1", "--", "true"])
        .output()
        .unwrap();
    let ran = rig.finish(output);
    let why = "needs a passphrase, and there is no terminal to ask on";
    assert_eq!((ran.status, ran.stderr), (4, unused_and_denied(&rig, why)));
}

#[test]
fn a_locked_key_in_batch_mode_is_skipped_and_named() {
    let rig = keys_only();
    lock(&rig);
    let why = "needs a passphrase, and BatchMode forbids to ask";
    rig.check(
        &["-o", "BatchMode=yes", "-w", "web1", "--", "true"],
        4,
        "",
        &unused_and_denied(&rig, why),
    );
}

#[test]
fn a_passphrase_is_asked_for_once_for_all_hosts() {
    let rig = keys_only();
    lock(&rig);
    let mut script = rig.on_terminal(&["-w", "web[1-4]", "-N", "-q", "--", "echo hello"]);
    let mut child = script.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let asked = crate::rig::read_until(&mut stdout, "id': ");
    std::io::Write::write_all(&mut stdin, b"secret\n").unwrap();
    let rest = crate::rig::read_until(&mut stdout, "hello\r\nhello\r\nhello\r\nhello\r\n");
    assert_eq!(
        asked.matches("Enter passphrase").count() + rest.matches("Enter passphrase").count(),
        1,
        "{asked}{rest}"
    );
    drop(stdin);
    std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!rest.contains("secret"));
}

/// A real agent that holds the key, which is in no file any more.
fn agent(rig: &Rig) -> Agent {
    let agent = Agent::start(rig);
    agent.add(&[&rig.text("id")]);
    fs::remove_file(rig.path("id")).unwrap();
    fs::remove_file(rig.path("id.pub")).unwrap();
    rig.configure(&format!("IdentityAgent {}", rig.text("agent")));
    agent
}

#[test]
fn an_agent_signs_for_many_hosts_at_once() {
    let rig = keys_only();
    let _agent = agent(&rig);
    let args = [
        "-b",
        "-w",
        "web[01-25]",
        "--connect-timeout",
        "60",
        "--",
        "echo hello",
    ];
    rig.check(
        &args,
        0,
        "---------------\nweb[01-25] (25)\n---------------\nhello\n",
        "",
    );
}

#[test]
fn an_agent_that_is_gone_is_named() {
    let rig = keys_only();
    drop(agent(&rig));
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr
            .contains("; agent DIR/agent: nobody listens on its socket"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_agent_whose_path_is_too_long_is_named() {
    let rig = keys_only();
    write_key(&rig.path("id"));
    let path = format!("/{}", "x".repeat(119));
    rig.configure(&format!("IdentityAgent {path}"));
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    let why = format!("agent {path}: path too long for a socket: 120 bytes, at most 107");
    assert!(ran.stderr.contains(&why), "{}", ran.stderr);
}

#[test]
fn an_agent_that_hangs_is_named_once_and_keys_in_files_still_work() {
    let rig = keys_only();
    let _listener = UnixListener::bind(rig.path("agent")).unwrap();
    rig.configure(&format!("IdentityAgent {}", rig.text("agent")));
    let said = "mux: agent DIR/agent has not listed its keys within 5s and is left out; see whether ssh-add -l answers, \
                or do without it: -o IdentityAgent=none\n";
    let args = ["-N", "-w", "web[1-2]", "--", "echo hello"];
    rig.check(&args, 0, "hello\nhello\n", said);
    write_key(&rig.path("id"));
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr.contains("agent DIR/agent: does not answer"),
        "{}",
        ran.stderr
    );
}

/// Another key lets us in, so that only a warning tells that a named one is of no use.
fn warned(rig: &Rig, args: &[&str], warning: &str) {
    let ran = rig.run(&[args, &["-w", "web[1-3]", "-N", "--", "echo hello"]].concat());
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "hello\nhello\nhello\n", warning)
    );
}

#[test]
fn a_named_key_that_is_of_no_use_is_said_once_although_another_one_works() {
    let rig = keys_only();
    let missing = rig.text("missing");
    warned(
        &rig,
        &["-i", &missing],
        "mux: identity file DIR/missing not used: no such file\n",
    );
    warned(
        &rig,
        &["-o", &format!("IdentityFile={missing}")],
        "mux: identity file DIR/missing not used: no such file\n",
    );
    rig.configure(&format!("IdentityFile {missing}"));
    // There it may be a key of an agent that is not here today: with -v, or where the login fails.
    warned(&rig, &[], "");
    let ran = rig.run(&["-v", "-w", "web[1-3]", "--", "true"]);
    let remark = "mux: DIR/config line 1: identity file DIR/missing not used: no such file\n";
    assert_eq!(ran.stderr.matches(remark).count(), 1, "{}", ran.stderr);
    warned(&rig, &["-q", "-i", &missing], "");
    rig.configure("");
    fs::write(rig.path("text"), "no key\n").unwrap();
    fs::set_permissions(rig.path("text"), fs::Permissions::from_mode(0o600)).unwrap();
    warned(
        &rig,
        &["-i", &rig.text("text")],
        "mux: identity file DIR/text not used: not a valid key file\n",
    );
    write_key(&rig.path("open"));
    fs::set_permissions(rig.path("open"), fs::Permissions::from_mode(0o644)).unwrap();
    warned(
        &rig,
        &["-i", &rig.text("open")],
        "mux: identity file DIR/open not used: mode 0644 lets others read it; chmod 600 DIR/open\n",
    );
    write_key(&rig.path("half"));
    fs::remove_file(rig.path("half")).unwrap();
    warned(
        &rig,
        &["-i", &rig.text("half")],
        "mux: identity file DIR/half not used: only the public half, and no agent has the other\n",
    );
}

#[test]
fn a_named_key_that_can_not_be_opened_is_said_once_although_another_one_works() {
    let rig = keys_only();
    let second = write_key(&rig.path("second"));
    let first = fs::read_to_string(rig.path("authorized_keys")).unwrap();
    fs::write(rig.path("authorized_keys"), format!("{first}\n{second}\n")).unwrap();
    lock(&rig);
    let args = [
        "-i",
        &rig.text("id"),
        "-i",
        &rig.text("second"),
        "-w",
        "web[1-3]",
        "-N",
        "--",
        "echo hello",
    ];
    let ran = rig.finish(without_terminal(&rig, &args).output().unwrap());
    let why = "mux: identity file DIR/id not used: needs a passphrase, and there is no terminal to ask on\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "hello\nhello\nhello\n", why)
    );
}

#[test]
fn a_default_key_that_is_missing_is_not_worth_a_word() {
    let rig = keys_only();
    let config = fs::read_to_string(rig.path("config")).unwrap();
    let config = config.replace(&format!("IdentityFile {}", rig.text("id")), "");
    fs::write(rig.path("config"), config).unwrap();
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert!(!ran.stderr.contains("identity file"), "{}", ran.stderr);
}
