//! Processes that are connections: run as ssh runs them, shown when they fail, gone when they are no longer needed.

use std::fs;
use std::time::{Duration, Instant};

use crate::rig::{Rig, is_alive, wait_for};

/// A server, and hosts that are reached through this line. `%p` and the like are for the line.
fn through(line: &str) -> Rig {
    let rig = Rig::new();
    rig.configure(&format!("Host *\n  ProxyCommand {line}\n"));
    rig
}

/// A shell line that carries bytes to the server and back, in nothing but bash.
const CARRY: &str = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & cat >&3; kill $!'";

#[test]
fn a_process_may_be_the_connection() {
    let rig = through(CARRY);
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
}

#[test]
fn another_ssh_may_be_the_connection() {
    let rig = Rig::new();
    let config = rig.text("config");
    rig.configure(&format!(
        "Match host 127.0.0.1 originalhost gate\n  ProxyCommand none\nHost web*\n  ProxyCommand ssh -F {config} -W \
         %h:%p gate\n",
    ));
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
}

#[test]
fn tokens_name_the_host_as_it_is_connected_to_the_name_the_port_and_the_user() {
    let rig = Rig::new();
    let said = rig.text("said");
    rig.configure(&format!(
        "Host *\n  User root\n  ProxyCommand echo \"%%h=%h %%n=%n %%p=%p %%r=%r\" >{said}; exit 1\n"
    ));
    rig.run(&["-w", "web1", "--", "true"]);
    let expected = format!("%h=127.0.0.1 %n=web1 %p={} %r=root\n", rig.port);
    assert_eq!(fs::read_to_string(rig.path("said")).unwrap(), expected);
}

#[test]
fn what_it_says_is_shown_when_it_fails_and_obeyed_by_no_terminal() {
    let rig = through("sh -c 'printf \"no way\\\\033[31m there\\\\n\" >&2; exit 3'");
    let (status, stderr) = (4, rig.run(&["-w", "web1", "--", "true"]).stderr);
    assert_eq!(status, 4);
    assert!(
        stderr.contains("unreachable: web1: banner: before its SSH identification: the ProxyCommand ended (it said: no way"),
        "{stderr}"
    );
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
}

#[test]
fn a_program_that_is_not_there_is_named_by_the_shell() {
    let rig = through("/nonexistent/proxy %h");
    let ran = rig.run(&["-w", "web[1-3]", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(ran.stderr.contains("web[1-3]: banner: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("/nonexistent/proxy"), "{}", ran.stderr);
}

#[test]
fn one_that_ends_without_a_word_has_its_status_shown() {
    let rig = through("sh -c 'exit 7'");
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert!(
        ran.stderr
            .contains("the ProxyCommand ended (it said: exit status: 7)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn one_that_says_nothing_is_out_of_time_and_does_not_stay() {
    let rig = Rig::new();
    let pid = rig.path("pid");
    rig.configure(&format!(
        "Host *\n  ProxyCommand sh -c 'echo $$ >{}; trap \"\" HUP TERM; exec sleep 300'\n",
        pid.display()
    ));
    let start = Instant::now();
    let ran = rig.run(&["--connect-timeout", "1", "-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr
            .contains("banner: no SSH identification through the ProxyCommand within 1s"),
        "{}",
        ran.stderr
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    wait_for("the process to be gone", || !is_alive(&pid));
}

#[test]
fn none_stays_behind_a_run_that_went_well() {
    let rig = Rig::new();
    let pid = rig.path("pid");
    rig.configure(&format!(
        "Host *\n  ProxyCommand bash -c 'echo $$ >{}; exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & exec cat >&3'\n",
        pid.display()
    ));
    rig.check(&["-w", "web1", "--", "echo", "through"], 0, "web1: through\n", "");
    wait_for("the process to be gone", || !is_alive(&pid));
}

#[test]
fn a_hundred_hosts_share_a_bounded_number_of_processes() {
    let rig = Rig::new();
    let (alive, most) = (rig.text("alive"), rig.text("most"));
    fs::create_dir(&alive).unwrap();
    // Each leaves its number and says how many of those that did are there.
    rig.configure(&format!(
        "Host *\n  ProxyCommand bash -c 'touch {alive}/$$; n=0; for f in {alive}/*; do kill -0 $(basename $f) \
         2>/dev/null && n=$((n+1)); done; echo $n >>{most}; exec 3<>/dev/tcp/127.0.0.1/%p; cat <&3 & cat >&3; kill $!'\n"
    ));
    let ran = rig.run(&["-f", "100", "-w", "web[1-100]", "--", "sleep", "0.2"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let counts = fs::read_to_string(rig.path("most")).unwrap();
    let counts: Vec<usize> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 100);
    let most = counts.iter().max().unwrap();
    assert!(*most <= 64, "{most}");
}
