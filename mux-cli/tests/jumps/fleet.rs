//! Many hosts behind one bastion as it comes: `MaxStartups 10:30:100`, `MaxSessions 10`.

use std::fs;

use crate::network::Network;
use crate::rig::write_key;

const HOSTS: usize = 200;

/// A bastion with the limits of a stock sshd, and behind it a machine with an address for each host.
fn fleet() -> Network {
    let mut network = Network::chain(2);
    let key = write_key(&network.path("id"));
    let gate = network.serve(1, &key, "MaxStartups 10:30:100\nMaxSessions 10");
    let host = network.serve(2, &key, "MaxStartups 2000:30:4000");
    let mut known = format!("{} {gate}\n", network.address(1));
    for number in 1..=HOSTS {
        let address = format!("10.1.0.{number}");
        network.ip_in(2, &["address", "add", &format!("{address}/32"), "dev", "lo"]);
        known.push_str(&format!("{address} {host}\n"));
    }
    network.ip_in(1, &["route", "add", "10.1.0.0/24", "via", "10.0.2.2"]);
    fs::write(network.path("known_hosts"), known).unwrap();
    let dir = network.dir.path().display();
    let config = format!(
        "Host gate\n  HostName {}\nHost 10.1.0.*\n  ProxyJump gate\nHost *\n  User root\n  IdentityFile {dir}/id\n  \
         IdentityAgent none\n  UserKnownHostsFile {dir}/known_hosts\n  GlobalKnownHostsFile none\n",
        network.address(1)
    );
    fs::write(network.path("config"), config).unwrap();
    network
}

#[test]
fn two_hundred_hosts_behind_a_stock_bastion_take_one_connection_to_it() {
    let network = fleet();
    let (status, stdout, stderr) = network.run(&["-w", "10.1.0.[1-200]", "--", "echo", "ok"]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(
        stdout.lines().filter(|line| line.ends_with(": ok")).count(),
        HOSTS
    );
    assert_eq!(network.logged(1, "Accepted publickey"), 1);
    assert_eq!(network.logged(1, "Connection from"), 0, "no probe, no second try");
    assert_eq!(network.logged(2, "Accepted publickey"), HOSTS);
}

#[test]
fn a_bastion_that_is_gone_fails_them_all_with_one_reason_said_once() {
    let mut network = fleet();
    network.stop(1);
    let (status, stdout, stderr) = network.run(&["-w", "10.1.0.[1-200]", "--", "echo", "ok"]);
    assert_eq!((status, stdout.as_str()), (4, ""));
    assert_eq!(
        stderr,
        "ok=0 unreachable=200 in TIME\nunreachable: 10.1.0.[1-200]: via gate: tcp: connect to 10.0.1.2:22: connection \
         refused\n"
    );
}

#[test]
fn a_refused_login_at_the_bastion_is_tried_once() {
    let network = fleet();
    fs::write(network.path("authorized_keys1"), "").unwrap();
    let (status, _, stderr) = network.run(&["-w", "10.1.0.[1-200]", "--", "echo", "ok"]);
    assert_eq!(status, 4);
    let start = "ok=0 auth=200 in TIME\nauth: 10.1.0.[1-200]: via gate: auth: root@gate: ";
    assert!(stderr.starts_with(start), "{stderr}");
    assert_eq!(stderr.lines().count(), 2, "{stderr}");
    assert_eq!(network.logged(1, "Disconnected from authenticating user root"), 1);
}

#[test]
fn much_output_and_much_input_pass_through_at_once() {
    let network = fleet();
    let input = network.path("input");
    fs::write(&input, vec![b'x'; 4 << 20]).unwrap();
    let stdin = format!("--stdin={}", input.display());
    let (status, stdout, stderr) = network.run(&[
        &stdin,
        "-w",
        "10.1.0.[1-8]",
        "--",
        "wc -c; head -c 4194304 /dev/zero | wc -c",
    ]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    assert_eq!(
        stdout.lines().filter(|line| line.ends_with(": 4194304")).count(),
        16
    );
}

/// Its input fills what there is of room on its way and stays there; the others share that way.
#[test]
fn one_that_does_not_read_its_input_holds_up_none_that_shares_its_jump_host() {
    let network = fleet();
    let (input, read) = (network.path("input"), network.text("read"));
    // More than both windows on the way take.
    fs::write(&input, vec![b'x'; 12 << 20]).unwrap();
    fs::write(&read, "").unwrap();
    let stdin = format!("--stdin={}", input.display());
    let command = format!(
        "case $SSH_CONNECTION in *' 10.1.0.1 22') while [ $(wc -l <{read}) -lt 7 ]; do sleep 0.1; done;; esac; wc -c; \
         echo x >>{read}"
    );
    let (status, stdout, stderr) =
        network.run(&["--timeout", "100", &stdin, "-w", "10.1.0.[1-8]", "--", &command]);
    assert_eq!((status, stderr.as_str()), (0, ""));
    let whole = stdout.lines().filter(|line| line.ends_with(": 12582912"));
    assert_eq!(whole.count(), 8, "{stdout}");
    assert!(
        stdout.lines().last().unwrap().starts_with("10.1.0.1: "),
        "{stdout}"
    );
    assert_eq!(network.logged(1, "Accepted publickey"), 1);
}
