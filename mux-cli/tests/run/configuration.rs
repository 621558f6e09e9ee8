//! What the ssh configuration says of hosts: `mux config`, and runs that depend on commands and names.

use std::fs;

use crate::rig::Rig;

/// What `mux config` prints, or complains.
fn config(rig: &Rig, args: &[&str]) -> (Option<i32>, String, String) {
    let output = rig.subcommand(&["config"], args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let dir = rig.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let plain = |bytes| text(bytes).replace(&dir, "DIR");
    (output.status.code(), plain(output.stdout), plain(output.stderr))
}

#[test]
fn the_configuration_of_a_host_is_printed_with_its_places() {
    let rig = Rig::new();
    rig.configure("Match user joe\n  Tag %h\n  SetEnv A=1");
    let (status, stdout, stderr) = config(&rig, &["-G", "--origin", "-o", "Compression=yes", "joe@web1"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    let line = |keyword: &str| {
        let lines = stdout
            .lines()
            .filter(|line| line.split(' ').next() == Some(keyword));
        lines
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!(line("hostname"), ["hostname 127.0.0.1 # DIR/config line 5"]);
    assert_eq!(line("user"), ["user joe # command line"]);
    assert_eq!(line("tag"), ["tag %h # DIR/config line 2"]);
    assert_eq!(line("setenv"), ["setenv A=1 # DIR/config line 3"]);
    assert_eq!(line("compression"), ["compression yes # command line"]);
    assert_eq!(line("batchmode"), ["batchmode no # default"]);
    let (_, plain, _) = config(&rig, &["-G", "-p", "77", "web1"]);
    assert!(plain.starts_with("host web1\nuser "), "{plain}");
    assert!(plain.contains("\nport 77\n") && !plain.contains("tag"), "{plain}");
}

#[test]
fn a_host_is_read_as_for_a_run_and_has_to_be_one() {
    let rig = Rig::new();
    let lines = |args: &[&str]| {
        let (status, stdout, stderr) = config(&rig, &[&["-G"], args].concat());
        assert_eq!((status, stderr.as_str()), (Some(0), ""), "{args:?}");
        stdout
    };
    let written = lines(&["joe@[2001:db8::7]:99"]);
    for line in ["host 2001:db8::7\n", "user joe\n", "port 99\n"] {
        assert!(written.contains(line), "{line}: {written}");
    }
    assert!(lines(&["web[3]:77"]).starts_with("host web3\n"));
    assert!(lines(&["-J", "gate", "-6", "web1"]).contains("\nproxyjump gate\n"));
    assert!(lines(&["-6", "-o", "AddressFamily=inet", "web1"]).contains("\naddressfamily inet6\n"));
    for (host, said) in [
        ("web[1-2]", "one host at a time, and web[1-2] is 2 (web[1-2])"),
        ("web1:x", "not a port"),
        ("a b", "blank in a target"),
    ] {
        let (status, stdout, stderr) = config(&rig, &["-G", host]);
        assert_eq!((status, stdout.as_str()), (Some(2), ""), "{host}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_told_with_its_line() {
    let rig = Rig::new();
    rig.configure("Host bad\n  Port x");
    let (status, stdout, stderr) = config(&rig, &["-G", "web1"]);
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    assert_eq!(
        stderr,
        "mux: DIR/config line 2: bad value \"x\" for Port: expected a port between 1 and 65535\n"
    );
}

#[test]
fn commands_decide_for_each_host_and_run_once_a_run() {
    let rig = Rig::new();
    let (log, only) = (rig.text("log"), rig.text("only"));
    rig.configure(&format!(
        "Match exec \"echo same >> {log}\"\n  SetEnv A=1\nMatch exec \"echo %n >> {only}; test %n = web2\"\n  User nobody-at-all\n\
         Match sessiontype exec command \"echo *\"\n  BatchMode yes"
    ));
    let ran = rig.run(&["-w", "web[1-4],web1", "--list-hosts"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "web1\nweb2\nweb3\nweb4\n"));
    assert!(!rig.path("log").exists(), "nobody asked for a configuration");
    let ran = rig.run(&["-w", "web[1-4]", "--", "echo x"]);
    assert_eq!(ran.status, 4, "{}", ran.stderr);
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["web1: x", "web3: x", "web4: x"], "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&log).unwrap(), "same\n");
    let asked = fs::read_to_string(&only).unwrap();
    let mut asked: Vec<&str> = asked.lines().collect();
    asked.sort_unstable();
    assert_eq!(asked, ["web1", "web2", "web3", "web4"]);
}

#[test]
fn a_connection_starts_from_the_address_that_the_configuration_says() {
    let rig = Rig::new();
    rig.configure(
        "Host web1\n  BindAddress 127.0.0.7\nHost web2\n  BindInterface lo\nHost web3\n  BindAddress localhost\n\
         Host web4\n  BindAddress 127.0.0.8\n  BindInterface no-such0",
    );
    let from = |host: &str| {
        let ran = rig.run(&["-w", host, "--", "echo $SSH_CONNECTION | cut -d' ' -f1"]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
        ran.stdout
    };
    assert_eq!(from("web1"), "web1: 127.0.0.7\n");
    assert_eq!(from("web2"), "web2: 127.0.0.1\n");
    assert_eq!(from("web3"), "web3: 127.0.0.1\n");
    assert_eq!(from("web4"), "web4: 127.0.0.8\n");
}

#[test]
fn an_address_that_is_not_ours_is_told_with_its_line() {
    let rig = Rig::new();
    // Of the block that is set aside for documentation (RFC 5737): nobody has it.
    for (line, status, stderr) in [
        (
            "BindAddress 192.0.2.1",
            4,
            "ok=0 unreachable=1 in TIME\nunreachable: web1: tcp: DIR/config line 1: BindAddress 192.0.2.1: no address of this \
             machine\n",
        ),
        (
            "BindAddress ::1",
            4,
            "ok=0 unreachable=1 in TIME\nunreachable: web1: tcp: DIR/config line 1: BindAddress ::1: IPv6 only, and the server \
             has IPv4 only\n",
        ),
        (
            "BindAddress no-such-name.invalid",
            2,
            "mux: DIR/config line 1: BindAddress no-such-name.invalid: neither an address nor a name that leads to one\n",
        ),
        (
            "BindInterface no-such0",
            2,
            "mux: DIR/config line 1: BindInterface no-such0: no interface of this name is up\n",
        ),
    ] {
        rig.configure(line);
        rig.check(&["-w", "web1", "--", "true"], status, "", stderr);
    }
}

#[test]
fn a_name_is_completed_before_anybody_connects() {
    let rig = Rig::new();
    let ran = rig.run(&[
        "-o",
        "CanonicalizeHostname=yes",
        "-o",
        "CanonicalDomains=no-such-domain.invalid",
        "-o",
        "CanonicalizeFallbackLocal=no",
        "-o",
        "HostName=%h",
        "-w",
        "web1",
        "--",
        "true",
    ]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("no address for web1 in CanonicalDomains"),
        "{}",
        ran.stderr
    );
}
