//! What is said when something is wrong, and with which status.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use mux_ssh::keys::PublicKey;

use crate::rig::{Rig, free_port, write_key};

fn fingerprint(line: &str) -> String {
    PublicKey::parse_line(line).unwrap().key.fingerprint_sha256()
}

#[test]
fn an_unknown_name_is_unreachable_in_dns() {
    let rig = Rig::new();
    rig.configure("Host nosuch\n  HostName nosuch.invalid");
    let ran = rig.run(&["-w", "nosuch", "--", "true"]);
    // The resolver's own words differ between systems.
    let start = "ok=0 unreachable=1 in TIME\nunreachable: nosuch: dns: could not resolve nosuch.invalid: ";
    assert!(ran.stderr.starts_with(start), "{}", ran.stderr);
    assert_eq!((ran.status, ran.stdout.as_str()), (4, ""));
}

#[test]
fn a_refused_port_is_unreachable_in_tcp() {
    let rig = Rig::new();
    let port = free_port();
    let target = format!("web1:{port}");
    let stderr = format!(
        "ok=0 unreachable=1 in TIME\nunreachable: {target}: tcp: connect to 127.0.0.1:{port}: connection refused\n"
    );
    rig.check(&["-w", &target, "--", "true"], 4, "", &stderr);
}

#[test]
fn what_befalls_many_hosts_is_said_once_in_words_without_their_names_and_addresses() {
    let rig = Rig::new();
    let [first, second] = [free_port(), free_port()];
    rig.configure(&format!(
        "Host web1\n  Port {first}\nHost web2\n  Port {second}\n  HostName 127.0.0.2\nHost gone*\n  HostName %h.invalid"
    ));
    let args = [
        "-w",
        "web[1-2],in[1-2],gone[1-2]",
        "-l",
        "nobody-here",
        "--",
        "true",
    ];
    let ran = rig.run(&args);
    let expected = [
        "unreachable: web[1-2]: tcp: connection refused\n",
        "unreachable: gone[1-2]: dns: could not resolve the name: ",
        "auth: in[1-2]: auth: as nobody-here: permission denied (",
    ];
    for line in expected {
        assert!(ran.stderr.contains(line), "{line}\n{}", ran.stderr);
    }
}

#[test]
fn a_server_that_says_nothing_is_unreachable_in_banner() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("web1:{}", listener.local_addr().unwrap().port());
    let stderr = format!(
        "ok=0 unreachable=1 in TIME\nunreachable: {target}: banner: connected, but no SSH identification within 0.5s\n"
    );
    rig.check(
        &["-w", &target, "--connect-timeout", "0.5", "--", "true"],
        4,
        "",
        &stderr,
    );
}

#[test]
fn a_dead_host_costs_the_others_nothing() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rig.configure(&format!(
        "Host dead\n  Port {}",
        listener.local_addr().unwrap().port()
    ));
    let ran = rig.run(&[
        "-f",
        "1",
        "-w",
        "dead,web1",
        "--connect-timeout",
        "5",
        "--",
        "echo hello",
    ]);
    assert_eq!((ran.status, ran.stdout.as_str()), (4, "web1: hello\n"));
}

#[test]
fn a_changed_host_key_names_the_line_and_what_to_do() {
    let rig = Rig::new();
    let other = write_key(&rig.path("other"));
    rig.know(&other);
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key changed (DIR/known_hosts:1 has {}, server sent {}); \
         if you expect this: ssh-keygen -R '[127.0.0.1]:PORT' -f DIR/known_hosts\n",
        fingerprint(&other),
        fingerprint(&rig.host_key)
    );
    rig.check(&["-w", "web1", "--", "true"], 4, "", &stderr);
    rig.check(
        &[
            "-o",
            "StrictHostKeyChecking=accept-new",
            "-w",
            "web1",
            "--",
            "true",
        ],
        4,
        "",
        &stderr,
    );
}

#[test]
fn an_unknown_host_key_says_how_to_accept_it() {
    let rig = Rig::new();
    fs::remove_file(rig.path("known_hosts")).unwrap();
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key not known (ssh-ed25519 {}); to look at it and keep it: \
         mux hosts learn web1; to take it as it is: -o StrictHostKeyChecking=accept-new\n",
        fingerprint(&rig.host_key),
    );
    rig.check(&["-w", "web1", "--", "true"], 4, "", &stderr);
    assert!(!rig.path("known_hosts").exists());
}

#[test]
fn accept_new_writes_the_key_down_once() {
    let rig = Rig::new();
    let written = fs::read_to_string(rig.path("known_hosts")).unwrap();
    fs::remove_file(rig.path("known_hosts")).unwrap();
    let args = [
        "-o",
        "StrictHostKeyChecking=accept-new",
        "-w",
        "web[1-4]",
        "-N",
        "--",
        "echo hello",
    ];
    rig.check(&args, 0, "hello\nhello\nhello\nhello\n", "");
    assert_eq!(fs::read_to_string(rig.path("known_hosts")).unwrap(), written);
    rig.check(&["-w", "web1", "--", "echo hello"], 0, "web1: hello\n", "");
}

#[test]
fn a_revoked_host_key_is_refused() {
    let rig = Rig::new();
    let mut lines = fs::read_to_string(rig.path("known_hosts")).unwrap();
    lines.push_str(&format!("@revoked * {}\n", rig.host_key));
    fs::write(rig.path("known_hosts"), lines).unwrap();
    let stderr = format!(
        "ok=0 hostkey=1 in TIME\nhostkey: web1: hostkey: host key revoked (DIR/known_hosts:2 names {})\n",
        fingerprint(&rig.host_key)
    );
    rig.check(&["-w", "web1", "--", "true"], 4, "", &stderr);
}

#[test]
fn a_configuration_that_no_host_can_use_is_a_configuration_error() {
    let rig = Rig::new();
    rig.configure("Frobnicate yes");
    let stderr = "mux: DIR/config line 1: Bad configuration option: frobnicate\n";
    rig.check(&["-w", "web[1-9]", "--", "true"], 2, "", stderr);
}

#[test]
fn a_missing_configuration_file_is_named() {
    let rig = Rig::new();
    fs::remove_file(rig.path("config")).unwrap();
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.starts_with("mux: DIR/config: "), "{}", ran.stderr);
}

#[test]
fn unusable_command_lines_exit_with_2() {
    let rig = Rig::new();
    for args in [
        &["-w", "web[1-", "--", "true"][..],
        &["-w", "@web", "--", "true"],
        &["--nosuch"],
        &["-w", "web1"],
    ] {
        let ran = rig.run(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_refused_session_is_unreachable() {
    let rig = Rig::with("MaxSessions 0");
    let stderr = "ok=0 unreachable=1 in TIME\nunreachable: web1: channel: session refused: open failed\n";
    rig.check(&["-w", "web1", "--", "true"], 4, "", stderr);
}

#[test]
fn output_that_cannot_be_written_is_said_and_exits_with_125() {
    let rig = Rig::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = rig
        .command(&["-w", "web1", "--", "echo hello"])
        .stdout(full)
        .output()
        .unwrap();
    let ran = rig.finish(output);
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("standard output: No space left on device"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_closed_standard_output_is_said_and_exits_with_125() {
    let rig = Rig::new();
    let inner = rig.command(&["-w", "web1", "--", "echo hello"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$@\" >&-", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args());
    shell
        .env("XDG_STATE_HOME", rig.path("state"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = rig.finish(shell.spawn().unwrap().wait_with_output().unwrap());
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("standard output: it is closed"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_key_that_is_too_short_for_the_configuration_is_not_offered() {
    let rig = Rig::new();
    let keygen = ["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", &rig.text("rsa")];
    assert!(
        Command::new("ssh-keygen")
            .args(keygen)
            .status()
            .unwrap()
            .success()
    );
    fs::remove_file(rig.path("id")).unwrap();
    fs::remove_file(rig.path("id.pub")).unwrap();
    let args = [
        "-i",
        &rig.text("rsa"),
        "-o",
        "RequiredRSASize=3072",
        "-w",
        "web1",
        "--",
        "true",
    ];
    let ran = rig.run(&args);
    assert_eq!(ran.status, 4);
    assert!(
        ran.stderr
            .contains("DIR/rsa: 2048 bits, and RequiredRSASize is 3072"),
        "{}",
        ran.stderr
    );
}

/// A server that says this as soon as somebody connects and closes, with all that was sent to it unread.
fn host_that_says(words: &'static [u8]) -> (std::net::SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, words).unwrap();
    });
    (address, server)
}

/// One host that says `words` instead of its identification, and what is said about it.
fn check_refusal(words: &'static [u8], stage: &str, reason: &str) {
    let rig = Rig::new();
    let (address, server) = host_that_says(words);
    let target = format!("web1:{}", address.port());
    let ran = rig.run(&["-w", &target, "--", "true"]);
    server.join().unwrap();
    let stderr = format!("ok=0 unreachable=1 in TIME\nunreachable: {target}: {stage}: {reason}\n");
    // What we sent was not read, so that the system adds a reset to the end; which one comes first is open.
    let said = ran.stderr.replace("connection reset", "closed by the server");
    assert_eq!((ran.status, said), (4, stderr));
}

#[test]
fn what_a_server_says_before_it_hangs_up_is_shown() {
    check_refusal(
        b"Not allowed at this time\r\n",
        "banner",
        "before its SSH identification: closed by the server (it said: Not allowed at this time); it bans this address \
         for a while after failed logins (PerSourcePenalties): wait, and look at what failed",
    );
    check_refusal(
        b"Exceeded MaxStartups\r\n",
        "banner",
        "before its SSH identification: closed by the server (it said: Exceeded MaxStartups); too many logins at once \
         for it: wait, or raise its MaxStartups",
    );
    check_refusal(
        b"HTTP/1.1 400 Bad Request\r\nServer: \x1b[31mx\r\n\r\n",
        "banner",
        "before its SSH identification: closed by the server (it said: HTTP/1.1 400 Bad Request; Server: ^[[31mx); it \
         is no SSH server: check the port",
    );
    check_refusal(
        b"go away",
        "banner",
        "before its SSH identification: closed by the server (it said: go away)",
    );
    check_refusal(
        b"SSH-1.5-old\r\n",
        "banner",
        "before its SSH identification: the server does not speak SSH 2 (it said: SSH-1.5-old)",
    );
}

#[test]
fn what_a_server_says_before_it_falls_silent_is_shown() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("web1:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"under maintenance\r\n").unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let ran = rig.run(&["-w", &target, "--connect-timeout", "0.5", "--", "true"]);
    server.join().unwrap();
    let why = "connected, but no SSH identification within 0.5s (it said: under maintenance)";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
}

#[test]
fn an_endless_greeting_is_shown_in_part() {
    let rig = Rig::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("web1:{}", listener.local_addr().unwrap().port());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        while std::io::Write::write_all(&mut stream, &[b'x'; 4096]).is_ok() {}
    });
    let ran = rig.run(&["-w", &target, "--", "true"]);
    server.join().unwrap();
    assert!(ran.stderr.contains("(it said: xxxxx"), "{}", ran.stderr);
    assert!(ran.stderr.len() < 2000, "{}", ran.stderr);
}
