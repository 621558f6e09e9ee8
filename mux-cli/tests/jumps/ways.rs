//! Which way a host is reached by: what the configuration and the command line say, and what can't be.

use crate::rig::Rig;

/// Fails before anything is connected to.
#[track_caller]
fn check_no_way(first: &str, args: &[&str], words: &[&str]) {
    let rig = Rig::new();
    rig.configure(first);
    let ran = rig.run(&[args, &["--", "true"]].concat());
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
}

#[test]
fn a_jump_host_that_names_itself_is_said_with_its_line() {
    check_no_way(
        "Host *\n  ProxyJump gate\n",
        &["-w", "web1"],
        &[
            "DIR/config line 2: ProxyJump leads from gate back to gate",
            "`ProxyJump none` for gate",
        ],
    );
}

#[test]
fn a_circle_of_jump_hosts_is_said() {
    let circle = "Host web1\n  ProxyJump a\nHost a\n  HostName a\n  ProxyJump b\nHost b\n  HostName b\n  ProxyJump c\n\
                  Host c\n  HostName c\n  ProxyJump a\n";
    check_no_way(
        circle,
        &["-w", "web1"],
        &["line 11: ProxyJump leads from a back to a"],
    );
}

#[test]
fn a_target_is_no_jump_host_of_its_own() {
    check_no_way(
        "",
        &["-J", "web1", "-w", "web1"],
        &["command line: ProxyJump leads from web1 back to web1"],
    );
}

#[test]
fn none_ends_what_a_later_line_would_begin() {
    let rig = Rig::new();
    rig.configure(
        "Host gate\n  ProxyJump none\nHost *\n  ProxyJump gate\n  User root\nHost gate\n  User root\n",
    );
    // The same server under two names; the target itself is another account as far as anyone can tell.
    rig.configure("Host gate\n  ProxyJump none\n  HostKeyAlias gate\nHost web*\n  ProxyJump gate\n");
    let known = format!(
        "gate {key}\n[127.0.0.1]:{port} {key}\n",
        key = rig.host_key,
        port = rig.port
    );
    std::fs::write(rig.path("known_hosts"), known).unwrap();
    // Through the server to itself, by another name of the loopback.
    rig.configure(
        "Host gate\n  ProxyJump none\nHost web*\n  HostName localhost\n  HostKeyAlias web\n  ProxyJump gate\n",
    );
    let known = format!(
        "web {key}\n[127.0.0.1]:{port} {key}\n",
        key = rig.host_key,
        port = rig.port
    );
    std::fs::write(rig.path("known_hosts"), known).unwrap();
    rig.check(
        &["-w", "web[1-3]", "-b", "--", "echo", "in"],
        0,
        "---------------\nweb[1-3] (3)\n---------------\nin\n",
        "",
    );
    rig.check(&["-w", "gate", "--", "echo", "in"], 0, "gate: in\n", "");
}

#[test]
fn options_for_targets_are_not_for_jump_hosts() {
    let rig = Rig::new();
    rig.configure("Host gate\n  User nobody-there\nHost web*\n  HostName localhost\n  HostKeyAlias web\n  ProxyJump gate\n");
    let ran = rig.run(&["-o", "User=root", "-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr.contains("web1: via gate: auth: nobody-there@gate: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_jump_host_that_no_one_could_name_is_refused() {
    for name in ["-oProxyCommand=x", "a;b", "a b", "$(x)", "a\u{1}b", ""] {
        let rig = Rig::new();
        let ran = rig.run(&["-J", name, "-w", "web1", "--", "true"]);
        assert_eq!(
            (ran.status, ran.stdout.as_str()),
            (2, ""),
            "{name:?}: {}",
            ran.stderr
        );
    }
}

/// In two networks the same address is two machines, and here it is one that is reached through itself.
#[test]
fn a_jump_host_with_the_address_of_its_target_is_another_host() {
    let rig = Rig::new();
    rig.check(
        &["-J", "gate", "-w", "web1", "--", "echo", "in"],
        0,
        "web1: in\n",
        "",
    );
}

#[test]
fn a_jump_host_may_be_written_with_user_address_and_port() {
    let rig = Rig::with("ListenAddress ::1");
    rig.configure("Host ::1\n  HostName ::1\nHost gate\n  Port 1\n");
    let known = format!(
        "[127.0.0.1]:{port},[::1]:{port} {key}\n",
        key = rig.host_key,
        port = rig.port
    );
    std::fs::write(rig.path("known_hosts"), known).unwrap();
    let port = rig.port;
    for way in [
        format!("root@127.0.0.1:{port}"),
        format!("ssh://root@gate:{port}"),
        format!("[::1]:{port}"),
        format!("root@[::1]:{port},gate:{port}"),
    ] {
        rig.check(
            &["-J", &way, "-w", "web1", "--", "echo", "in"],
            0,
            "web1: in\n",
            "",
        );
    }
    let log = std::fs::read_to_string(rig.path("sshd_log")).unwrap();
    let from = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(from("Accepted publickey for root from ::1 "), 2, "{log}");
}
