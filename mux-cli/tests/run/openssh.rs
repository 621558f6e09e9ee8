//! The system's `ssh` as the transport: the same results, words and ends as over the native one.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Rig, free_port, is_alive, read_until, wait_for, write_key};

const VIA: &str = "via-openssh=1 (--transport openssh): web1\n";

/// One run through ssh on `web1`: its exit status, what it prints and the summary.
fn check(rig: &Rig, args: &[&str], status: i32, stdout: &str, stderr: &str) {
    let all = [&["--transport", "openssh", "-w", "web1"], args].concat();
    rig.check(&all, status, stdout, &format!("{stderr}{VIA}"));
}

#[test]
fn what_a_command_writes_arrives_untouched_without_the_servers_banner() {
    let rig = Rig::with("Banner /etc/passwd");
    // One after the other: lines of hosts that run at the same time may take turns.
    let args = ["--transport", "openssh", "-w", "web1,web2", "-f", "1", "-N", "--"];
    let command = r"printf 'a\r\n\377\n'; echo err >&2";
    let mut run = rig.command(&[&args[..], &[command]].concat());
    let output = run.output().unwrap();
    assert_eq!(output.stdout, b"a\r\n\xff\na\r\n\xff\n", "{output:?}");
    assert_eq!(output.stderr, b"err\nerr\n", "{output:?}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_kinds_of_255_are_told_apart() {
    let rig = Rig::new();
    check(
        &rig,
        &["--", "exit 255"],
        1,
        "",
        "ok=0 failed=1 in TIME\nfailed: web1: exit status 255\n",
    );
    check(
        &rig,
        &["--", "kill -9 $$"],
        1,
        "",
        "ok=0 failed=1 in TIME\nfailed: web1: command: killed by a signal; ssh does not say which\n",
    );
    // What ssh says about it differs with what it was doing.
    let lost = rig.run(&["--transport", "openssh", "-w", "web1", "--", "kill -9 $PPID"]);
    let expected = "unknown: web1: command: connection lost, may have run: ";
    assert!(
        lost.status == 1 && lost.stderr.contains(expected),
        "{}",
        lost.stderr
    );
}

#[test]
fn failures_of_ssh_have_their_stage_and_its_words() {
    let rig = Rig::new();
    let port = free_port().to_string();
    let refused = format!("ssh: connect to host 127.0.0.1 port {port}: Connection refused");
    check(
        &rig,
        &["-p", &port, "--", "true"],
        4,
        "",
        &format!("ok=0 unreachable=1 in TIME\nunreachable: web1: tcp: {refused}\n"),
    );
    write_key(&rig.path("other"));
    fs::write(
        rig.path("authorized_keys"),
        fs::read(rig.path("other.pub")).unwrap(),
    )
    .unwrap();
    let user = rig.run(&["--transport", "openssh", "-w", "web1", "--", "true"]);
    assert_eq!(user.status, 4);
    let expected = "Permission denied (publickey,password,keyboard-interactive).; nothing is asked";
    assert!(
        user.stderr.starts_with("ok=0 auth=1 in TIME\nauth: web1: auth: "),
        "{}",
        user.stderr
    );
    assert!(user.stderr.contains(expected), "{}", user.stderr);
    fs::write(rig.path("known_hosts"), "").unwrap();
    check(
        &rig,
        &["--", "true"],
        4,
        "",
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key not known (ED25519, of [127.0.0.1]:PORT); \
         to look at it and keep it: mux hosts learn web1; to take it as it is: -o StrictHostKeyChecking=accept-new\n",
    );
    let args = [
        "--transport",
        "openssh",
        "-w",
        "web1",
        "-o",
        "HostName=no.invalid",
        "--",
        "true",
    ];
    let unknown = rig.run(&args).stderr;
    let expected = "unreachable: web1: dns: ssh: Could not resolve hostname no.invalid: ";
    assert!(unknown.contains(expected), "{unknown}");
}

#[test]
fn a_server_that_says_nothing_has_the_connect_timeout() {
    let rig = Rig::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let stderr = "ok=0 unreachable=1 in TIME\n\
                  unreachable: web1: banner: connected, but no SSH identification within 1.5s\n";
    let args = ["-p", &port, "--connect-timeout", "1.5", "--", "true"];
    check(&rig, &args, 4, "", stderr);
}

#[test]
fn a_command_that_takes_too_long_is_stopped_on_its_server() {
    let rig = Rig::new();
    let command = format!("echo $$ > {}; echo ready; exec sleep 600", rig.text("pid"));
    let stderr = "ok=0 timeout=1 in TIME\ntimeout: web1: command: not finished within 2s\n";
    check(
        &rig,
        &["--timeout", "2", "--", &command],
        3,
        "web1: ready\n",
        stderr,
    );
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn an_interrupt_stops_the_command_on_its_server() {
    let rig = Rig::new();
    let command = format!(
        "trap '' TERM; echo $$ > {}; echo ready; while :; do sleep 1; done",
        rig.text("pid")
    );
    let mut run = rig.command(&["--transport", "openssh", "-w", "web1", "--", &command]);
    let mut mux = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    read_until(mux.stdout.as_mut().unwrap(), "ready\n");
    kill_process(Pid::from_child(&mux), Signal::INT).unwrap();
    let ran = rig.finish(mux.wait_with_output().unwrap());
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("ok=0 cancelled=1 in TIME\n"),
        "{}",
        ran.stderr
    );
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn nothing_is_left_in_the_temporary_directory() {
    let rig = Rig::new();
    let temporary = rig.path("tmp");
    fs::create_dir(&temporary).unwrap();
    for command in ["true", "kill -9 $PPID"] {
        let mut run = rig.command(&["--transport", "openssh", "-w", "web1", "--", command]);
        run.env("TMPDIR", &temporary).output().unwrap();
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{command}");
    }
}

#[test]
fn a_command_reads_what_it_is_given_and_otherwise_nothing() {
    let rig = Rig::new();
    let args = ["--transport", "openssh", "-w", "web1", "--", "wc -c"];
    rig.check(&args, 0, "web1: 0\n", "");
}

#[test]
fn large_input_and_output_pass_whole() {
    let rig = Rig::new();
    let input: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    fs::write(rig.path("input"), &input).unwrap();
    let file = format!("--stdin={}", rig.text("input"));
    let args = ["--transport", "openssh", "-w", "web1", "-N", &file, "--", "cat"];
    let output = rig.command(&args).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.stdout == input.as_bytes(), "{} bytes", output.stdout.len());
}

#[test]
fn hosts_that_only_ssh_can_reach_go_through_it_and_the_summary_says_why() {
    let rig = Rig::new();
    rig.configure("Host old\n  PKCS11Provider /nowhere.so\n");
    let ran = rig.run(&["-w", "web1,old", "--", "echo $SSH_CONNECTION | wc -w; exit 3"]);
    let stderr = "ok=0 failed=2 in TIME\nfailed: web1,old: exit status 3\n\
                  via-openssh=1 (DIR/config line 2: PKCS11Provider /nowhere.so): old\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (1, stderr), "{}", ran.stdout);
    let line = rig.run(&["-w", "old", "--output", "jsonl", "--", "true"]).stdout;
    assert!(
        line.contains(r#""via_openssh":"DIR/config line 2: PKCS11Provider"#),
        "{line}"
    );
    assert!(line.contains(r#""via_openssh":1}}"#), "{line}");
}

#[test]
fn some_hosts_go_through_it_by_request_and_the_others_do_not() {
    let rig = Rig::new();
    rig.configure("Host old\n  PKCS11Provider /nowhere.so\n");
    let run =
        |more: &[&str]| rig.run(&[more, &["-w", "web[1-5],old", "-b", "--", "echo hi; exit 3"]].concat());
    let gathered = "---------------\nweb[1-5],old (6)\n---------------\nhi\n";
    let ran = run(&[
        "--transport",
        "openssh=web[1,3]",
        "--transport",
        "openssh=web*&web[3-4],web1",
    ]);
    let stderr = "ok=0 failed=6 in TIME\nfailed: web[1-5],old: exit status 3\n\
                  via-openssh=1 (--transport openssh=web*&web[3-4],web1): web4\n\
                  via-openssh=2 (--transport openssh=web[1,3]): web[1,3]\n\
                  via-openssh=1 (DIR/config line 2: PKCS11Provider /nowhere.so): old\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (1, gathered, stderr)
    );
    // What means none of the targets is said, and what means nothing is an error, before anything has run.
    let ran = run(&["--transport", "openssh=web9"]);
    assert!(
        ran.stderr
            .contains("mux: --transport openssh=web9: no target of this run\n"),
        "{}",
        ran.stderr
    );
    let ran = run(&["--transport", "openssh=web[3-1]"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (2, ""));
    assert!(
        ran.stderr.starts_with("mux: --transport openssh: "),
        "{}",
        ran.stderr
    );
}

/// A directory with nothing in it but what a run needs to start.
fn without_ssh(rig: &Rig) -> String {
    let directory = rig.path("bin");
    fs::create_dir(&directory).unwrap();
    directory.to_str().unwrap().to_owned()
}

#[test]
fn without_ssh_only_the_host_that_needs_it_fails_by_name() {
    let rig = Rig::new();
    rig.configure("Host old\n  PKCS11Provider /nowhere.so\n");
    let mut run = rig.command(&["-w", "web1,old", "--", "echo hi"]);
    let ran = rig.finish(run.env("PATH", without_ssh(&rig)).output().unwrap());
    let stderr = "ok=1 unreachable=1 in TIME\nunreachable: old: dns: DIR/config line 2: PKCS11Provider /nowhere.so: \
                  there is no ssh in PATH, which would be used for it\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (4, "web1: hi\n", stderr)
    );
}

/// A stand-in for ssh that writes down how it was called, one argument a line, and ends like this.
fn stand_in(rig: &Rig, ending: &str) -> String {
    let directory = without_ssh(rig);
    let script = format!(
        "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >{}\n{ending}\n",
        rig.text("called")
    );
    let program = rig.path("bin").join("ssh");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn ssh_is_told_what_was_typed_and_the_host_stands_behind_two_dashes() {
    let rig = Rig::new();
    // Where nothing is written, ssh would ask.
    let config = fs::read_to_string(rig.path("config")).unwrap();
    fs::write(
        rig.path("config"),
        config.replace("StrictHostKeyChecking yes", ""),
    )
    .unwrap();
    let path = format!("{}:/usr/bin:/bin", stand_in(&rig, "echo oops >&2; exit 255"));
    let args = [
        "--transport",
        "openssh",
        "-w",
        "u@web1:77",
        "-i",
        "k",
        "-o",
        "Compression=yes",
        "-4",
    ];
    let mut run = rig.command(&[&args[..], &["--env", "A=\"\\ b", "--", "-x  'y'"]].concat());
    let ran = rig.finish(run.env("PATH", path).output().unwrap());
    assert!(ran.stderr.contains(": dns: oops\n"), "{}", ran.stderr);
    let called = fs::read_to_string(rig.path("called")).unwrap();
    let called = called.replace("-o\nStrictHostKeyChecking=yes\n", "");
    let wanted = format!(
        "-F\n{}\n-o\nCompression=yes\n-i\nk\n-4\n-l\nu\n-p\n77\n-o\nServerAliveInterval=30\n-o\nServerAliveCountMax=10\n\
         -o\nSetEnv=\"A=\\\"\\\\ b\" \n-a\n--\nweb1\n-x  'y'\n",
        rig.text("config")
    );
    assert!(called.ends_with(&wanted), "{called}");
    let (ours, _) = called.split_once("-F\n").unwrap();
    for option in [
        "BatchMode=yes",
        "LogLevel=ERROR",
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
    ] {
        assert!(ours.contains(&format!("-o\n{option}\n")), "{option} in {ours}");
    }
}

#[test]
fn what_a_killed_run_leaves_behind_is_removed_by_the_next() {
    let rig = Rig::new();
    let place = rig.path("tmp");
    fs::create_dir(&place).unwrap();
    let run = |command: &str| {
        let mut run = rig.command(&["--transport", "openssh", "-w", "web1", "--", command]);
        run.env("TMPDIR", &place);
        run
    };
    let left = || fs::read_dir(&place).unwrap().count();
    let started = rig.text("started");
    let mut killed = run(&format!(
        "touch {started}; while test -e {started}; do sleep 0.1; done"
    ))
    .spawn()
    .unwrap();
    wait_for("the command to run", || rig.path("started").exists());
    // One whose owner lives stays.
    assert!(run("true").output().unwrap().status.success());
    assert_eq!(left(), 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(left(), 1);
    assert!(run("true").output().unwrap().status.success());
    fs::remove_file(rig.path("started")).unwrap();
    assert_eq!(left(), 0);
}

#[test]
fn no_more_log_in_at_once_than_a_server_takes() {
    // Fewer than are let go at once: those that it turns away come back.
    let rig = Rig::with("MaxStartups 4:100:4");
    let ran = rig.run(&["--transport", "openssh", "-w", "n[1-25]", "-b", "--", "echo hi"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("n[1-25] (25)"), "{}", ran.stdout);
}

#[test]
fn what_a_proxy_says_before_the_session_is_no_failure() {
    let rig = Rig::new();
    let relay = format!(
        "ProxyCommand=sh -c 'echo via >&2; exec ssh -F {} -o ProxyCommand=none -W 127.0.0.1:{} web1'",
        rig.text("config"),
        rig.port
    );
    let ran = rig.run(&[
        "--transport",
        "openssh",
        "-w",
        "web1",
        "-o",
        &relay,
        "--",
        "echo hi",
    ]);
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (0, "web1: hi\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr, "");
}

#[test]
fn keywords_that_would_take_the_command_or_its_input_away_change_nothing() {
    let rig = Rig::new();
    fs::write(rig.path("input"), "hello\n").unwrap();
    let file = format!("--stdin={}", rig.text("input"));
    for keyword in [
        "StdinNull=yes",
        "ForkAfterAuthentication=yes",
        "SessionType=none",
        "SessionType=subsystem",
    ] {
        let ran = rig.run(&[
            "--transport",
            "openssh",
            "-w",
            "web1",
            "--retries",
            "2",
            "-o",
            keyword,
            &file,
            "--",
            "echo ran; wc -c",
        ]);
        assert_eq!(
            (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
            (0, "web1: ran\nweb1: 6\n", ""),
            "{keyword}"
        );
    }
}

#[test]
fn the_key_of_a_host_that_only_ssh_can_reach_is_learned_and_then_it_is_reached() {
    let rig = Rig::new();
    rig.configure("Host old\n  PKCS11Provider /nowhere.so\n");
    fs::write(rig.path("known_hosts"), "").unwrap();
    let ran = rig.run(&["-w", "old", "--", "true"]);
    assert!(ran.stderr.contains("mux hosts learn old"), "{}", ran.stderr);
    let mut learn = rig.subcommand(&["hosts", "learn"], &["--yes", "old"]);
    let ran = rig.finish(learn.output().unwrap());
    assert!(
        ran.status == 0 && ran.stdout.contains(" learned\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    rig.check(&["-w", "old", "--", "echo hi"], 0, "old: hi\n", "");
}

#[test]
fn an_ssh_that_is_killed_from_outside_is_said() {
    let rig = Rig::new();
    let path = format!("{}:/usr/bin:/bin", stand_in(&rig, "kill -9 $$"));
    let mut run = rig.command(&["--transport", "openssh", "-w", "web1", "--", "true"]);
    let mut said = String::new();
    let mut mux = run.env("PATH", path).stderr(Stdio::piped()).spawn().unwrap();
    mux.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(mux.wait().unwrap().code(), Some(4));
    assert!(
        said.contains("unreachable: web1: dns: ssh was ended by SIGKILL\n"),
        "{said}"
    );
}
