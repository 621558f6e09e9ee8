//! The user's agent at a command's disposal: with one host as asked for, with a set only on a second word, and never
//! for a host that is not known to be the right one.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;

use crate::agents;
use crate::rig::{Rig, write_key};

/// A real agent with one key.
struct Agent {
    _process: agents::Agent,
    key: String,
}

impl Agent {
    fn new(rig: &Rig) -> Self {
        let process = agents::Agent::start(rig);
        let key = write_key(&rig.path("in_agent"));
        process.add(&[&rig.text("in_agent")]);
        rig.configure(&format!(
            "Match all\n  IdentityAgent {}\n  IdentitiesOnly yes\nMatch all\n",
            rig.text("agent")
        ));
        let key = key.split(' ').take(2).collect::<Vec<_>>().join(" ");
        Self {
            _process: process,
            key,
        }
    }
}

/// Says which keys the command can use.
const LIST: &str = "ssh-add -L 2>&1 | cut -d' ' -f1,2";

#[test]
fn a_command_uses_the_agent_if_that_was_asked_for_and_otherwise_has_none() {
    let rig = Rig::new();
    let agent = Agent::new(&rig);
    let with = format!("web1: {}\n", agent.key);
    rig.check(&["-A", "-w", "web1", "--", LIST], 0, &with, "");
    let without = "web1: <>\n";
    rig.check(&["-w", "web1", "--", "echo \"<$SSH_AUTH_SOCK>\""], 0, without, "");
    let option = format!("ForwardAgent={}", rig.text("agent"));
    rig.check(&["-o", &option, "-w", "web1", "--", LIST], 0, &with, "");
    let option = "ForwardAgent=yes";
    rig.check(&["-o", option, "-w", "web1", "--", LIST], 0, &with, "");
}

#[test]
fn a_command_signs_with_a_key_of_the_agent_and_uses_it_many_times_at_once() {
    let rig = Rig::new();
    let agent = Agent::new(&rig);
    fs::write(
        rig.path("authorized_keys"),
        fs::read_to_string(rig.path("id.pub")).unwrap() + &agent.key,
    )
    .unwrap();
    let hop = format!(
        "for n in 1 2 3 4 5 6; do ssh -F {} -o IdentitiesOnly=no -i {} -o IdentityAgent=$SSH_AUTH_SOCK web2 echo $n & done; \
         wait",
        rig.text("config"),
        rig.text("in_agent.pub")
    );
    fs::remove_file(rig.path("in_agent")).unwrap();
    let ran = rig.run(&["-A", "-w", "web1", "--", &hop]);
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = (1..=6).map(|n| format!("web1: {n}")).collect();
    assert_eq!(lines, expected, "{}", ran.stderr);
}

#[test]
fn the_agent_is_told_that_the_connection_forwards() {
    let rig = Rig::new();
    let _agent = Agent::new(&rig);
    // A key for one host alone, which is not to be used from it for another.
    let destination = "127.0.0.1";
    let known = fs::read_to_string(rig.path("known_hosts")).unwrap();
    let bare = known.replace(&format!("[127.0.0.1]:{}", rig.port), destination);
    fs::write(rig.path("known_for_add"), bare).unwrap();
    let bound = write_key(&rig.path("bound"));
    let added = Command::new("ssh-add")
        .args([
            "-q",
            "-H",
            &rig.text("known_for_add"),
            "-h",
            destination,
            &rig.text("bound"),
        ])
        .env("SSH_AUTH_SOCK", rig.text("agent"))
        .output();
    let added = added.unwrap();
    assert!(
        added.status.success(),
        "{}",
        String::from_utf8_lossy(&added.stderr)
    );
    let listed = rig.run(&["-A", "-w", "web1", "--", LIST]).stdout;
    let key = bound.split(' ').nth(1).unwrap();
    assert!(!listed.contains(key), "{listed}");
}

#[test]
fn a_set_of_hosts_needs_a_second_word() {
    let rig = Rig::new();
    let agent = Agent::new(&rig);
    let stderr = "mux: -A: each of the 2 hosts could use all keys of the agent while its command runs; if that is meant, \
                  add --forward-agent-to-all\n";
    rig.check(&["-A", "-w", "web[1-2]", "--", "true"], 2, "", stderr);
    let all = [
        "-A",
        "--forward-agent-to-all",
        "-w",
        "web[1-2]",
        "-b",
        "-N",
        "--",
        LIST,
    ];
    rig.check(&all, 0, &format!("{}\n", agent.key), "");
    let option = [
        "-o",
        "ForwardAgent=yes",
        "-w",
        "web[1-2]",
        "-b",
        "-N",
        "--",
        "echo \"<$SSH_AUTH_SOCK>\"",
    ];
    let stderr = "mux: command line: ForwardAgent: without effect for a set of hosts, unless --forward-agent-to-all is \
                  given\n";
    rig.check(&option, 0, "<>\n", stderr);
}

#[test]
fn a_set_of_hosts_is_told_so_by_whatever_transport_it_is_reached() {
    let rig = Rig::new();
    let agent = Agent::new(&rig);
    let told = "without effect for a set of hosts, unless --forward-agent-to-all is given\n";
    let show = "echo \"<$SSH_AUTH_SOCK>\"";
    let config = fs::read_to_string(rig.path("config")).unwrap();
    fs::write(rig.path("config"), format!("ForwardAgent yes\n{config}")).unwrap();
    let stderr = format!("mux: DIR/config line 1: ForwardAgent: {told}");
    for more in [&[][..], &["--transport", "openssh"]] {
        let args = [more, &["-w", "web[1-2]", "-b", "-N", "--", show]].concat();
        rig.check(&args, 0, "<>\n", &stderr);
        let args = [more, &["-w", "web1", "-N", "--", LIST]].concat();
        rig.check(&args, 0, &format!("{}\n", agent.key), "");
    }
    // One that only ssh can reach: its configuration can't be read here, or not be followed.
    for line in ["HostbasedAuthentication yes", "PKCS11Provider /nowhere"] {
        fs::write(
            rig.path("config"),
            format!("ForwardAgent yes\n{config}\n{line}\n"),
        )
        .unwrap();
        let ran = rig.run(&["-w", "web1", "-N", "--", LIST]);
        assert_eq!(
            (ran.status, ran.stdout),
            (0, format!("{}\n", agent.key)),
            "{line}: {}",
            ran.stderr
        );
        let ran = rig.run(&["-w", "web[1-2]", "-b", "-N", "--", show]);
        assert_eq!(
            (ran.status, ran.stdout.as_str()),
            (0, "<>\n"),
            "{line}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(told), "{line}: {}", ran.stderr);
    }
}

#[test]
fn without_an_agent_the_command_runs_and_that_is_said() {
    let rig = Rig::new();
    let stderr = "mux: -A: there is no agent (SSH_AUTH_SOCK, IdentityAgent)\n";
    rig.check(
        &["-A", "-w", "web1", "--", "echo \"<$SSH_AUTH_SOCK>\""],
        0,
        "web1: <>\n",
        stderr,
    );
}

#[test]
fn an_agent_that_is_gone_or_says_nothing_does_not_hold_the_command() {
    let rig = Rig::new();
    let gone = format!("ForwardAgent={}", rig.text("gone"));
    let asks = "ssh-add -L >/dev/null 2>&1 || echo none";
    rig.check(&["-o", &gone, "-w", "web1", "--", asks], 0, "web1: none\n", "");
    let _silent = UnixListener::bind(rig.path("silent")).unwrap();
    let silent = format!("ForwardAgent={}", rig.text("silent"));
    let asks = "timeout 1 ssh-add -L; echo $?";
    rig.check(&["-o", &silent, "-w", "web1", "--", asks], 0, "web1: 124\n", "");
}

#[test]
fn the_systems_ssh_forwards_under_the_same_rules() {
    let rig = Rig::new();
    let agent = Agent::new(&rig);
    let ssh = ["--transport", "openssh", "-w", "web1"];
    let with = format!("web1: {}\n", agent.key);
    rig.check(&[&ssh[..], &["-A", "--", LIST]].concat(), 0, &with, "");
    let nothing = ["--", "echo \"<$SSH_AUTH_SOCK>\""];
    rig.check(&[&ssh[..], &nothing[..]].concat(), 0, "web1: <>\n", "");
    let set = [
        "--transport",
        "openssh",
        "-w",
        "web[1-2]",
        "-bN",
        "-o",
        "ForwardAgent=yes",
    ];
    let stderr = "mux: command line: ForwardAgent: without effect for a set of hosts, unless --forward-agent-to-all is \
                  given\n";
    rig.check(&[&set[..], &nothing[..]].concat(), 0, "<>\n", stderr);
}

#[test]
fn a_host_that_is_not_the_one_that_is_known_gets_no_agent() {
    let rig = Rig::new();
    let _agent = Agent::new(&rig);
    rig.know(&write_key(&rig.path("another")));
    let option = "StrictHostKeyChecking=no";
    let ran = rig.run(&[
        "-A",
        "-o",
        option,
        "-w",
        "web1",
        "--",
        "echo \"<$SSH_AUTH_SOCK>\"",
    ]);
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (0, "web1: <>\n"),
        "{}",
        ran.stderr
    );
    let said = "mux: web1: the agent is not forwarded: the host key is not the one that is known\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}
