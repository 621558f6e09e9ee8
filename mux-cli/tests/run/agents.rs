//! Many keys, many runs: agents with more keys than a server bears, runs side by side that use different ones, and a key
//! that somebody has to open for some of the hosts while the others go on.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use crate::keys::{keys_only, lock};
use crate::rig::{Rig, read_until, wait_for, write_key};

/// A real agent, empty at first, that listens on `agent` in the rig's directory.
pub(crate) struct Agent {
    process: Child,
    socket: String,
}

impl Agent {
    pub(crate) fn start(rig: &Rig) -> Self {
        let socket = rig.text("agent");
        let process = Command::new("ssh-agent")
            .args(["-D", "-a", &socket])
            .stdout(Stdio::null())
            .spawn()
            .expect("no ssh-agent: apt-get install openssh-client");
        let agent = Self { process, socket };
        // Its socket is there before it listens. One without keys says so with status 1.
        wait_for("the agent to answer", || {
            agent.tool(&["-l"]).output().unwrap().status.code() != Some(2)
        });
        agent
    }

    fn tool(&self, args: &[&str]) -> Command {
        let mut tool = Command::new("ssh-add");
        tool.args(args).env("SSH_AUTH_SOCK", &self.socket);
        tool
    }

    /// `ssh-add` with these arguments.
    pub(crate) fn add(&self, args: &[&str]) {
        let added = self.tool(&[&["-q"], args].concat()).status();
        assert!(added.unwrap().success(), "ssh-add {args:?}");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An agent with twenty keys of which the server takes one, `place` before the last, and no file.
fn twenty(rig: &Rig, place: usize) -> Agent {
    let agent = Agent::start(rig);
    for number in 0..20 {
        let name = format!("key{number:02}");
        let line = write_key(&rig.path(&name));
        if number == place {
            fs::write(rig.path("authorized_keys"), line).unwrap();
        }
        agent.add(&[&rig.text(&name)]);
        fs::remove_file(rig.path(&name)).unwrap();
    }
    for name in ["id", "id.pub"] {
        fs::remove_file(rig.path(name)).unwrap();
    }
    rig.configure(&format!("IdentityAgent {}", rig.text("agent")));
    agent
}

const HELLO: [&str; 4] = ["-w", "web1", "--", "echo hello"];

#[test]
fn of_twenty_keys_in_the_agent_the_right_one_is_found_as_long_as_the_server_bears_it() {
    let rig = keys_only();
    let _agent = twenty(&rig, 4);
    rig.check(&HELLO, 0, "web1: hello\n", "");
    // The next time it goes first.
    let before = fs::read_to_string(rig.path("sshd_log")).unwrap().len();
    rig.check(&HELLO, 0, "web1: hello\n", "");
    let log = fs::read_to_string(rig.path("sshd_log")).unwrap();
    assert!(!log[before..].contains("Failed publickey"), "{}", &log[before..]);
}

#[test]
fn of_twenty_keys_in_the_agent_a_late_one_is_one_too_many_for_the_server_until_it_is_named() {
    let rig = keys_only();
    let agent = twenty(&rig, 15);
    let ran = rig.run(&HELLO);
    assert_eq!(ran.status, 4, "{ran:?}");
    assert!(ran.stderr.contains("Too many authentication failures"), "{ran:?}");
    // Each that was shown is named, the last straw too, so that two of the same comment can be told apart.
    let listed = String::from_utf8(agent.tool(&["-l"]).output().unwrap().stdout).unwrap();
    for (number, line) in listed.lines().enumerate() {
        let print = line.split(' ').nth(1).unwrap();
        let named = format!("{print}): not accepted");
        assert_eq!(ran.stderr.contains(&named), number < 6, "{named} {ran:?}");
    }
    assert!(
        ran.stderr.contains("14 keys were not tried before it hung up: ")
            && ran.stderr.contains("IdentitiesOnly=yes"),
        "{ran:?}"
    );
    // Its public half names it, and the agent signs.
    rig.configure(&format!(
        "IdentityAgent {}\nIdentityFile {}",
        rig.text("agent"),
        rig.text("key15.pub")
    ));
    let ran = rig.run(&HELLO);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1: hello\n"), "{ran:?}");
}

#[test]
fn two_runs_at_once_with_different_keys_for_the_same_host_use_each_its_own() {
    let rig = Rig::with(
        "AuthenticationMethods publickey\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE",
    );
    let names = ["one", "two"];
    let lines = names.map(|name| write_key(&rig.path(name)) + "\n");
    fs::write(rig.path("authorized_keys"), lines.concat()).unwrap();
    let run = |name: &str| {
        let key = rig.text(name);
        let option = format!("IdentityFile={key}");
        let mut command = rig.command(&[
            "-o",
            &option,
            "-o",
            "IdentitiesOnly=yes",
            "-w",
            "web[1-20]",
            "--",
            "echo hello",
        ]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    // Each remembers what worked, in the same place; the rounds after the first begin with what the others left there.
    for round in 1..=3 {
        let children = names.map(run);
        for child in children {
            let ran = rig.finish(child.wait_with_output().unwrap());
            assert_eq!((ran.status, ran.stdout.lines().count()), (0, 20), "{ran:?}");
        }
        let log = fs::read_to_string(rig.path("sshd_log")).unwrap();
        for line in &lines {
            let print = mux_ssh::keys::PublicKey::parse_line(line)
                .unwrap()
                .key
                .fingerprint_sha256();
            let accepted = log
                .lines()
                .filter(|line| line.starts_with("Accepted publickey") && line.contains(&print));
            assert_eq!(accepted.count(), 20 * round, "{print} {log}");
        }
    }
}

#[test]
fn a_key_to_be_opened_for_half_of_the_hosts_is_asked_for_once_and_holds_up_no_other_host() {
    let rig = keys_only();
    let plain = write_key(&rig.path("plain"));
    let both = fs::read_to_string(rig.path("id.pub")).unwrap() + &plain + "\n";
    fs::write(rig.path("authorized_keys"), both).unwrap();
    lock(&rig);
    rig.configure(&format!(
        "Host web2 web4\n  IdentitiesOnly yes\n  IdentityFile {}\nMatch all",
        rig.text("plain")
    ));
    // The others have to be done before anybody answers: only then the answer is given.
    let command = format!("echo hel''lo; echo done >> {}", rig.text("done"));
    let args = ["-w", "web[1-4]", "--", &command];
    let mut child = rig.on_terminal(&args).spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = read_until(&mut screen, "id': ");
    let done = || fs::read_to_string(rig.path("done")).is_ok_and(|text| text.lines().count() == 2);
    wait_for("the hosts that need no passphrase", done);
    keys.write_all(b"secret\n").unwrap();
    screen.read_to_string(&mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{seen}");
    assert_eq!(seen.matches("Enter passphrase for key").count(), 1, "{seen}");
    assert!(!seen.contains("secret"), "{seen}");
    // No word of another host stands behind the question, and no output is lost.
    let question = format!("Enter passphrase for key '{}': ", rig.text("id"));
    assert!(seen.lines().any(|line| line == question), "{seen}");
    for host in ["web1", "web2", "web3", "web4"] {
        let line = format!("{host}: hello");
        assert_eq!(
            seen.lines().filter(|other| other.ends_with(&line)).count(),
            1,
            "{seen}"
        );
    }
}
