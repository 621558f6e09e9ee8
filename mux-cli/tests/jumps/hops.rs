//! Each way in which one of three jump hosts or the target can fail, at each of them: which is named, in which stage, and
//! in whose words.

use std::fs;
use std::time::{Duration, Instant};

use crate::chain::{Chain, TARGET, USERS};
use crate::rig::write_key;

/// What stands before the stage of a failure at this machine.
fn via(index: usize) -> String {
    match index {
        TARGET => String::new(),
        gate => format!("via gate{gate}: "),
    }
}

fn name(index: usize) -> String {
    match index {
        TARGET => "web".to_owned(),
        gate => format!("gate{gate}"),
    }
}

/// Who can't connect to a machine, and in whose words: we ourselves to the first, the one before it to any other.
fn cannot_connect(index: usize, ours: &str, theirs: &str) -> String {
    match index {
        1 => format!("via gate1: tcp: connect to 10.0.1.2:22: {ours}"),
        _ => format!(
            "{}tcp: gate{} could not connect to 10.0.{index}.2 port 22: {theirs}",
            via(index),
            index - 1
        ),
    }
}

/// One run that ends with this status and begins its last words so.
#[track_caller]
fn check_starts(chain: &Chain, status: &str, words: &str) {
    let (code, stdout, stderr) = chain.network.run(&["-w", "web", "--", "true"]);
    assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
    let start = format!("ok=0 {status}=1 in TIME\n{status}: web: {words}");
    assert!(stderr.starts_with(&start), "{start}\n{stderr}");
    assert_eq!(stderr.lines().count(), 2, "{stderr}");
}

#[test]
fn a_server_that_does_not_listen() {
    let mut chain = Chain::new();
    for index in 1..=TARGET {
        chain.network.stop(index);
        let words = cannot_connect(index, "connection refused", "Connection refused");
        chain.check_fails(&[], "unreachable=1", &format!("unreachable: web: {words}"));
        chain.serve(index, "");
    }
    chain.check(&["-w", "web", "--", "echo", "there"], (0, "web: there\n", ""));
}

#[test]
fn a_machine_to_which_there_is_no_way() {
    let chain = Chain::new();
    for index in 1..=TARGET {
        let to = format!("{}/32", chain.network.address(index));
        chain
            .network
            .ip_in(index - 1, &["route", "add", "unreachable", &to]);
        // sshd does not say what failed at once.
        let words = cannot_connect(index, "host unreachable", "open failed");
        chain.check_fails(&[], "unreachable=1", &format!("unreachable: web: {words}"));
        chain
            .network
            .ip_in(index - 1, &["route", "delete", "unreachable", &to]);
    }
}

/// The time for connecting covers the chain up to the machine that stands still: neither more for each hop nor forever.
#[track_caller]
fn check_late(chain: &Chain, words: &str) {
    let start = Instant::now();
    let reason = format!("unreachable: web: {words}");
    chain.check_fails(&["--connect-timeout", "3"], "unreachable=1", &reason);
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(3), "{took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn a_machine_that_is_cut_off() {
    for index in 1..=TARGET {
        let chain = Chain::new();
        chain.network.cut(index);
        let words = match index {
            TARGET => "tcp: no answer from 10.0.4.2 port 22 within 3s".to_owned(),
            gate => format!("via gate{gate}: tcp: no answer within 3s"),
        };
        check_late(&chain, &words);
    }
}

#[test]
fn a_server_that_takes_connections_and_says_nothing() {
    let mut chain = Chain::new();
    for index in 1..=TARGET {
        chain.network.still(index);
        let words = "banner: connected, but no SSH identification within 3s";
        check_late(&chain, &format!("{}{words}", via(index)));
        chain.serve(index, "");
    }
}

#[test]
fn a_key_that_is_not_accepted() {
    let mut chain = Chain::new();
    for (index, user) in (1..).zip(USERS) {
        fs::write(chain.network.path(&format!("authorized_keys{index}")), "").unwrap();
        let words = format!("{}auth: {user}@{}: ", via(index), name(index));
        check_starts(&chain, "auth", &words);
        chain.serve(index, "");
    }
}

#[test]
fn a_host_key_that_is_another_than_the_one_that_is_known() {
    let chain = Chain::new();
    let other = write_key(&chain.network.path("other"));
    for index in 1..=TARGET {
        let file = chain.network.path(&format!("known_hosts{index}"));
        let known = fs::read(&file).unwrap();
        let address = chain.network.address(index);
        fs::write(&file, format!("{address} {other}\n")).unwrap();
        let (code, _, stderr) = chain.network.run(&["-w", "web", "--", "true"]);
        assert_eq!(code, 4);
        let start = format!(
            "ok=0 hostkey=1 in TIME\nhostkey: web: {}hostkey: host key changed (",
            via(index)
        );
        assert!(stderr.starts_with(&start), "{stderr}");
        assert!(
            stderr.contains(&format!("ssh-keygen -R {address} -f ")),
            "{stderr}"
        );
        fs::write(&file, known).unwrap();
    }
    // Nothing beyond a machine that is not the right one was connected to: the target only once, for its own turn.
    assert_eq!(chain.network.logged(TARGET, "Accepted publickey"), 0);
}

#[test]
fn a_jump_host_that_forwards_nothing() {
    let mut chain = Chain::new();
    for index in 1..TARGET {
        chain.serve(index, "AllowTcpForwarding no");
        let words = format!(
            "via gate{index}: channel: may not connect to 10.0.{}.2 port 22: open failed; AllowTcpForwarding, PermitOpen \
             or the key's options on it forbid that",
            index + 1
        );
        chain.check_fails(&[], "unreachable=1", &format!("unreachable: web: {words}"));
        chain.serve(index, "");
    }
}

/// What OpenSSH counts by `MaxSessions` are sessions; a connection through it is none.
#[test]
fn a_machine_that_allows_no_sessions() {
    let mut chain = Chain::new();
    for index in 1..TARGET {
        chain.serve(index, "MaxSessions 0");
    }
    chain.check(&["-w", "web", "--", "echo", "there"], (0, "web: there\n", ""));
    chain.serve(TARGET, "MaxSessions 0");
    chain.check_fails(
        &[],
        "unreachable=1",
        "unreachable: web: channel: session refused: open failed",
    );
}
