//! Three jump hosts before a target, each with a user, keys and known_hosts of its own: what works, what fails where,
//! and in whose words.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::network::{Network, told};
use crate::rig::{read_until, wait_for, write_key};

/// The users of the three jump hosts and of the target. None of the first three could run a command: a jump host has
/// nothing to run.
pub(crate) const USERS: [&str; 4] = ["daemon", "games", "nobody", "root"];

pub(crate) const TARGET: usize = 4;

/// The chain with all its servers; `hosts` are blocks of configuration that stand before all others.
pub(crate) struct Chain {
    pub(crate) network: Network,
}

impl Chain {
    pub(crate) fn new() -> Self {
        Self::with(|_| "")
    }

    /// With further lines for the server of a machine.
    fn with(lines: impl Fn(usize) -> &'static str) -> Self {
        let mut network = Network::chain(TARGET);
        for index in 1..=TARGET {
            let key = write_key(&network.path(&format!("id{index}")));
            let host_key = network.serve(index, &key, lines(index));
            let known = format!("{} {host_key}\n", network.address(index));
            fs::write(network.path(&format!("known_hosts{index}")), known).unwrap();
        }
        let chain = Self { network };
        chain.configure("");
        chain
    }

    /// Puts another server in the place of a machine's, with the same keys.
    pub(crate) fn serve(&mut self, index: usize, lines: &str) {
        self.network.stop(index);
        let key = fs::read_to_string(self.network.path(&format!("id{index}.pub"))).unwrap();
        self.network.serve(index, key.trim(), lines);
    }

    fn configure(&self, first: &str) {
        let mut text = format!("{first}\n");
        for index in 1..=TARGET {
            let (name, dir) = (name(index), self.network.dir.path().display());
            let address = self.network.address(index);
            text.push_str(&format!(
                "Host {name}\n  HostName {address}\n  User {}\n  IdentityFile {dir}/id{index}\n  \
                 UserKnownHostsFile {dir}/known_hosts{index}\n",
                USERS[index - 1]
            ));
        }
        text.push_str("Host web\n  ProxyJump gate1,gate2,gate3\n");
        text.push_str("Host *\n  GlobalKnownHostsFile none\n  IdentityAgent none\n  IdentitiesOnly yes\n");
        fs::write(self.network.path("config"), text).unwrap();
    }

    #[track_caller]
    pub(crate) fn check(&self, args: &[&str], expected: (i32, &str, &str)) {
        let (status, stdout, stderr) = self.network.run(args);
        assert_eq!((status, stdout.as_str(), stderr.as_str()), expected);
    }

    /// One run that reaches nothing, and what is said about it.
    #[track_caller]
    pub(crate) fn check_fails(&self, args: &[&str], counts: &str, reason: &str) {
        let summary = format!("ok=0 {counts} in TIME\n{reason}\n");
        let args = [args, &["-w", "web", "--", "true"]].concat();
        self.check(&args, (4, "", &summary));
    }
}

fn name(index: usize) -> String {
    match index {
        TARGET => "web".to_owned(),
        gate => format!("gate{gate}"),
    }
}

#[test]
fn three_jump_hosts_each_have_their_own_user_key_and_known_hosts() {
    let chain = Chain::new();
    let command = "echo $SSH_CONNECTION";
    chain.check(
        &["-w", "web", "--", command, "|", "cut", "-d' '", "-f1,3"],
        (0, "web: 10.0.4.1 10.0.4.2\n", ""),
    );
    for (index, user) in (1..).zip(USERS) {
        let text = format!("Accepted publickey for {user} from 10.0.{index}.1");
        assert_eq!(chain.network.logged(index, &text), 1, "{text}");
    }
    // With what was remembered, once more.
    chain.check(&["-w", "web", "--", "echo", "again"], (0, "web: again\n", ""));
}

#[test]
fn each_stop_is_bound_by_its_own_configuration_where_it_connects_from_here() {
    let chain = Chain::new();
    let more = ["address", "add", "10.0.1.77/24", "dev", "down0"];
    chain.network.ip_in(0, &more);
    // Only the first stop is connected to from here: what stands for the others is for those who connect to them.
    chain.configure("Host web gate2\n  BindAddress 192.0.2.1\nHost gate1\n  BindAddress 10.0.1.77\n");
    chain.check(&["-w", "web", "--", "echo", "there"], (0, "web: there\n", ""));
    assert_eq!(
        chain
            .network
            .logged(1, "Accepted publickey for daemon from 10.0.1.77 "),
        1
    );
    chain.configure("Host gate1\n  BindInterface down0\n");
    chain.check(&["-w", "web", "--", "echo", "there"], (0, "web: there\n", ""));
    assert_eq!(
        chain
            .network
            .logged(1, "Accepted publickey for daemon from 10.0.1.1 "),
        1
    );
    // An interface that has no address is as good as none.
    chain.network.ip_in(0, &["link", "add", "idle0", "type", "veth"]);
    chain.network.ip_in(0, &["link", "set", "idle0", "up"]);
    chain.configure("Host gate1\n  BindInterface idle0\n");
    let dir = chain.network.dir.path().display();
    let stderr = format!("mux: via gate1: {dir}/config line 2: BindInterface idle0: it has no address\n");
    chain.check(&["-w", "web", "--", "true"], (2, "", &stderr));
}

#[test]
fn the_hosts_of_the_command_line_are_the_way_whatever_the_configuration_says() {
    let chain = Chain::new();
    chain.configure("Host web\n  ProxyJump nowhere\n");
    for way in [["-J", "gate1,gate2,gate3"], ["-o", "ProxyJump=gate1,gate2,gate3"]] {
        let args = [&way[..], &["-w", "web", "--", "echo", "there"]].concat();
        chain.check(&args, (0, "web: there\n", ""));
    }
    let args = [
        "-o",
        "ProxyJump=none",
        "--connect-timeout",
        "1",
        "-w",
        "web",
        "--",
        "true",
    ];
    let (status, _, stderr) = chain.network.run(&args);
    assert_eq!(status, 4);
    assert!(stderr.contains("unreachable: web: tcp: "), "{stderr}");
}

#[test]
fn a_jump_host_that_lies_behind_others_is_reached_through_them() {
    let chain = Chain::new();
    chain.configure(
        "Host web\n  ProxyJump gate3\nHost gate3\n  ProxyJump gate2\nHost gate2\n  ProxyJump gate1\nHost gate1\n  \
         ProxyJump none\n",
    );
    chain.check(&["-w", "web", "--", "echo", "there"], (0, "web: there\n", ""));
}

#[test]
fn a_host_key_that_changed_names_the_jump_host_whose_it_is() {
    let chain = Chain::new();
    let other = write_key(&chain.network.path("other"));
    let known = format!("10.0.2.2 {other}\n");
    fs::write(chain.network.path("known_hosts2"), known).unwrap();
    let (status, _, stderr) = chain.network.run(&["-w", "web", "--", "true"]);
    assert_eq!(status, 4);
    let start = "ok=0 hostkey=1 in TIME\nhostkey: web: via gate2: hostkey: host key changed (";
    assert!(stderr.starts_with(start), "{stderr}");
    assert!(stderr.contains("ssh-keygen -R 10.0.2.2 -f "), "{stderr}");
    assert_eq!(
        chain.network.logged(3, "Connection"),
        0,
        "nothing beyond it was connected to"
    );
}

#[test]
fn a_command_whose_way_is_lost_may_have_run() {
    let chain = Chain::new();
    let started = chain.network.text("started");
    let mux = chain
        .network
        .mux(&["-w", "web", "--", &format!("echo x >{started}; sleep 300")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the command", || {
        fs::read_to_string(&started).is_ok_and(|text| text == "x\n")
    });
    // The session of the jump host in the middle, not its listener.
    chain.network.kill_sessions(2);
    let (status, _, stderr) = told(mux.wait_with_output().unwrap());
    assert_eq!(status, 1, "{stderr}");
    let start = "ok=0 unknown=1 in TIME\nunknown: web: command: connection lost, may have run: ";
    assert!(stderr.starts_with(start), "{stderr}");
    assert!(stderr.contains("via gate2"), "{stderr}");
}

#[test]
fn a_command_that_printed_and_whose_way_is_lost_may_have_run() {
    let chain = Chain::new();
    let mut mux = chain
        .network
        .mux(&["-w", "web", "--", "echo x; sleep 300"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What it printed has come all the way: the login is over for us too.
    let mut line = String::new();
    let stdout = mux.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert_eq!(line, "web: x\n");
    // The session of the jump host in the middle, not its listener.
    chain.network.kill_sessions(2);
    let (status, _, stderr) = told(mux.wait_with_output().unwrap());
    assert_eq!(status, 1, "{stderr}");
    let start = "ok=0 unknown=1 in TIME\nunknown: web: command: connection lost, may have run: ";
    assert!(stderr.starts_with(start), "{stderr}");
    assert!(stderr.contains("via gate2"), "{stderr}");
}

#[test]
fn an_interrupt_stops_the_command_at_the_end_of_the_chain() {
    let chain = Chain::new();
    let pid = chain.network.path("pid");
    let mut mux = chain
        .network
        .mux(&[
            "-w",
            "web",
            "--",
            &format!("echo started; echo $$ >{}; exec sleep 300", pid.display()),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    read_until(mux.stdout.as_mut().unwrap(), "started");
    // `ip netns exec` has become the program itself.
    let id = rustix::process::Pid::from_raw(mux.id().cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let (status, _, stderr) = told(mux.wait_with_output().unwrap());
    assert_eq!(status, 130, "{stderr}");
    wait_for("the command to end", || !crate::rig::is_alive(&pid));
}
