//! Files that are not what they should be, and words in them that a terminal would obey: named, bounded, in one form.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::rig::Rig;

fn pipe(path: &Path) {
    let mkfifo = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(mkfifo.success());
}

/// What can stand in the place of a file, with the word for it.
fn impostors(rig: &Rig) -> [(String, &'static str); 4] {
    pipe(&rig.path("pipe"));
    fs::create_dir(rig.path("directory")).unwrap();
    drop(UnixListener::bind(rig.path("socket")).unwrap());
    [
        (rig.text("pipe"), "not a regular file"),
        (rig.text("directory"), "is a directory"),
        (rig.text("socket"), "not a regular file"),
        ("/dev/zero".to_owned(), "not a regular file"),
    ]
}

#[test]
fn what_stands_in_place_of_an_included_file_is_named_and_not_waited_for() {
    let rig = Rig::new();
    for (path, why) in impostors(&rig) {
        rig.configure(&format!("Include {path}"));
        let ran = rig.run(&["-w", "web1", "--", "true"]);
        let stderr = format!("mux: DIR/config line 1: Include {path}: {why}\n")
            .replace(rig.dir.path().to_str().unwrap(), "DIR");
        assert_eq!((ran.status, ran.stderr), (2, stderr));
    }
}

#[test]
fn what_stands_in_place_of_known_hosts_is_named_and_not_waited_for() {
    let rig = Rig::new();
    for (path, why) in impostors(&rig) {
        let option = format!("UserKnownHostsFile={path}");
        for policy in ["yes", "accept-new"] {
            let policy = format!("StrictHostKeyChecking={policy}");
            let ran = rig.run(&["-o", &option, "-o", &policy, "-w", "web1", "--", "true"]);
            let warning = format!("mux: {path}: {why}\n").replace(rig.dir.path().to_str().unwrap(), "DIR");
            assert!(ran.stderr.contains(&warning), "{option} {policy}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_new_key_that_cannot_be_stored_is_taken_and_that_is_said() {
    let rig = Rig::new();
    let option = format!("UserKnownHostsFile={}/known_hosts", rig.text("id"));
    let policy = "StrictHostKeyChecking=accept-new";
    let ran = rig.run(&["-o", &option, "-o", policy, "-w", "web1", "--", "echo hello"]);
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (0, "web1: hello\n"),
        "{}",
        ran.stderr
    );
    let said = ": host key taken, but not stored: DIR/id/known_hosts: ";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn a_line_of_standard_input_and_a_filter_of_the_log_are_named_as_such() {
    let rig = Rig::new();
    let output = |command: &mut Command| {
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"web1\nweb[\n").unwrap();
        rig.finish(child.wait_with_output().unwrap())
    };
    let ran = output(&mut rig.command(&["--hosts", "-", "--", "true"]));
    assert!(ran.stderr.starts_with("mux: standard input:2:"), "{}", ran.stderr);
    let ran = output(
        rig.command(&["-w", "web1", "--", "true"])
            .env("MUX_LOG", "===,,[["),
    );
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (
            0,
            "mux: MUX_LOG====,,[[: no log; write a level, or modules with theirs: debug, mux_ssh=trace,warn\n"
        )
    );
}

#[test]
fn what_stands_in_place_of_a_key_is_named_and_not_waited_for() {
    let rig = Rig::new();
    for (path, why) in impostors(&rig) {
        let ran = rig.run(&["-i", &path, "-w", "web1", "--", "echo hello"]);
        let warning = format!("mux: identity file {path} not used: {why}\n")
            .replace(rig.dir.path().to_str().unwrap(), "DIR");
        assert_eq!(
            (ran.status, ran.stdout.as_str(), ran.stderr),
            (0, "web1: hello\n", warning)
        );
    }
}

#[test]
fn what_stands_in_place_of_a_list_of_hosts_is_named() {
    let rig = Rig::new();
    for (path, why) in impostors(&rig).into_iter().skip(1) {
        let ran = rig.run(&["--hosts", &path, "--list-hosts"]);
        let stderr = format!("mux: {path}: {why}\n").replace(rig.dir.path().to_str().unwrap(), "DIR");
        assert_eq!((ran.status, ran.stderr), (2, stderr));
    }
    let ran = rig.run(&["--hosts", &rig.text("none"), "--list-hosts"]);
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (2, "mux: DIR/none: no such file\n")
    );
}

#[test]
fn a_file_that_is_too_large_is_refused_and_not_read_in_part() {
    let rig = Rig::new();
    let large = fs::File::create(rig.path("large")).unwrap();
    large.set_len(65 * 1024 * 1024).unwrap();
    let large = rig.text("large");
    rig.configure(&format!("Include {large}"));
    let ran = rig.run(&["-w", "web1", "--", "true"]);
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (
            2,
            "mux: DIR/config line 1: Include DIR/large: larger than 16 MiB\n"
        )
    );
    rig.configure("");
    let option = format!("UserKnownHostsFile={large}");
    let ran = rig.run(&["-o", &option, "-w", "web1", "--", "true"]);
    assert!(
        ran.stderr.contains("mux: DIR/large: larger than 64 MiB\n"),
        "{}",
        ran.stderr
    );
    let ran = rig.run(&["-i", &large, "-w", "web1", "--", "echo hello"]);
    let warning = "mux: identity file DIR/large not used: larger than 1 MiB\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "web1: hello\n", warning)
    );
}

#[test]
fn the_null_device_is_an_empty_file_everywhere() {
    let rig = Rig::new();
    let ran = rig.run(&["-F", "/dev/null", "-w", "web1", "--list-hosts"]);
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "web1\n", "")
    );
    let args = [
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "StrictHostKeyChecking=accept-new",
    ];
    let args = [&args[..], &["-w", "web1", "--", "echo hello"]].concat();
    rig.check(&args, 0, "web1: hello\n", "");
}

#[test]
fn lists_and_configurations_come_through_pipes_that_were_named() {
    let rig = Rig::new();
    pipe(&rig.path("list"));
    pipe(&rig.path("words"));
    let args = [
        "--hosts",
        &rig.text("list"),
        "-F",
        &rig.text("words"),
        "--",
        "echo hello",
    ];
    let mut child = rig.command(&args);
    let child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let writer = |name, text: Vec<u8>| {
        let path = rig.path(name);
        std::thread::spawn(move || {
            fs::OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .write_all(&text)
                .unwrap()
        })
    };
    let list = writer("list", b"web[1-2]\n".to_vec());
    let words = writer("words", fs::read(rig.path("config")).unwrap());
    let ran = rig.finish(child.wait_with_output().unwrap());
    list.join().unwrap();
    words.join().unwrap();
    assert_eq!(
        (ran.status, ran.stderr.as_str(), ran.stdout.lines().count()),
        (0, "", 2)
    );
}

#[test]
fn a_pipe_that_nobody_fills_ends_with_the_signal() {
    let rig = Rig::new();
    pipe(&rig.path("list"));
    let mut child = rig
        .command(&["--hosts", &rig.text("list"), "--list-hosts"])
        .spawn()
        .unwrap();
    let path = rig.path("list");
    // Opening succeeds as soon as the other side is there.
    let held = fs::OpenOptions::new().write(true).open(path).unwrap();
    let id = i32::try_from(child.id()).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(id).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    drop(held);
}

/// Nothing in it but newlines is for a terminal to obey, and no line is endless.
fn harmless(text: &str) {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(text.lines().all(|line| line.len() < 4096), "{} bytes", text.len());
    assert!(text.is_empty() || text.starts_with("mux: "), "{text:?}");
}

#[test]
fn words_of_files_and_arguments_reach_the_terminal_as_text() {
    let rig = Rig::new();
    let evil = "\u{1b}]0;owned\u{7}\u{9b}31m\r";
    let long = "x".repeat(100_000);
    for word in [evil, "a\u{7}b", "\0\0", &long] {
        for line in [
            format!("{word} yes"),
            format!("Port {word}"),
            format!("HostName {word}"),
            format!("User {word}"),
            format!("ProxyJump {word}"),
            format!("IdentityFile %{word}"),
            format!("UserKnownHostsFile ~{word}/x"),
            format!("KexAlgorithms {word}"),
            format!("Include {word}/\u{1b}[31m"),
            format!("StrictHostKeyChecking {word}"),
        ] {
            rig.configure(&line);
            harmless(
                &rig.run(&["-w", "web1", "--", "true"])
                    .stderr
                    .replace("ok=", "mux: ok="),
            );
        }
        if !word.contains('\0') {
            for args in [
                ["-F", word],
                ["-o", word],
                ["-w", word],
                ["-x", word],
                ["--hosts", word],
                ["--output", word],
                ["-f", word],
                ["--timeout", word],
                ["-l", word],
                ["--nonsense", word],
                [word, "-x"],
            ] {
                harmless(
                    &rig.run(&[&args[..], &["-w", "web1", "--list-hosts"]].concat())
                        .stderr
                        .replace("ok=", "mux: ok="),
                );
            }
        }
    }
}

#[test]
fn all_mistakes_on_the_command_line_have_one_form() {
    let rig = Rig::new();
    for (args, says) in [
        (&["--frob"][..], "--frob"),
        (&["-f", "99999999999999999999999"], "at most"),
        (&["-f", "0"], "at least 1"),
        (&["--timeout", "-1"], "write seconds"),
        (&["--timeout", "0.0000000001"], "at least 1ms"),
        (&["--connect-timeout", "0.0000000001"], "at least 1ms"),
        (&["--hosts", "/dev/null/none"], "not a directory"),
        (&["-u", "5"], "--timeout"),
        (&["--output", "xml"], "jsonl"),
        (&["-b", "--output", "jsonl"], "-b and -B"),
        (&["-x"], "-x"),
    ] {
        let ran = rig.run(&[args, &["-w", "web1", "--", "true"]].concat());
        let first = ran.stderr.lines().next().unwrap_or_default();
        assert!(first.starts_with("mux: "), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{args:?}");
    }
    let bare = Command::new(env!("CARGO_BIN_EXE_mux"))
        .arg("frob")
        .output()
        .unwrap();
    let stderr = String::from_utf8(bare.stderr).unwrap();
    assert!(
        stderr.starts_with("mux: ") && stderr.contains("--help"),
        "{stderr}"
    );
}

#[test]
fn an_algorithm_that_nobody_knows_is_said_once_a_run_and_one_that_openssh_has_is_not() {
    let rig = Rig::new();
    rig.configure("MACs bogus,hmac-sha1,hmac-sha2-256");
    let ran = rig.run(&[
        "-o",
        "Ciphers=foo,aes128-ctr,aes128-cbc",
        "-o",
        "KexAlgorithms=+worse,diffie-hellman-group14-sha1",
        "-b",
        "-w",
        "web[1-2]",
        "--",
        "echo hello",
    ]);
    let stderr = "mux: DIR/config line 1: MACs: no algorithm is called bogus\n\
        mux: command line: Ciphers: no algorithm is called foo\n\
        mux: command line: KexAlgorithms: no algorithm is called worse\n";
    let stdout = "---------------\nweb[1-2] (2)\n---------------\nhello\n";
    assert_eq!(
        (ran.status, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, stdout, stderr)
    );
}
