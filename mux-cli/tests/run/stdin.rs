//! What commands read: nothing, unless it was asked for; then all of it, each at its own pace.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rig::{Ran, Rig, free_port, read_until, wait_for};

/// Starts `mux` with a pipe as its standard input.
fn piped(rig: &Rig, args: &[&str]) -> Child {
    let mut command = rig.command(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// One run that reads these bytes from a pipe.
fn fed(rig: &Rig, args: &[&str], input: &[u8]) -> Ran {
    let mut mux = piped(rig, args);
    let (mut pipe, input) = (mux.stdin.take().unwrap(), input.to_vec());
    // A reader that leaves is no failure here.
    let writer = std::thread::spawn(move || {
        let _ = pipe.write_all(&input);
    });
    let ran = rig.finish(mux.wait_with_output().unwrap());
    writer.join().unwrap();
    ran
}

fn check(ran: Ran, status: i32, stdout: &str, stderr: &str) {
    let expected = Ran {
        status,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    assert_eq!(ran, expected);
}

/// Text that tells whether anything is missing, doubled or out of order.
fn numbers(count: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|number| format!("{number}\n").into_bytes())
        .collect()
}

fn sum(bytes: &[u8]) -> String {
    let mut cksum = Command::new("cksum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    cksum.stdin.take().unwrap().write_all(bytes).unwrap();
    String::from_utf8(cksum.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_loop_that_reads_lines_keeps_them() {
    let rig = Rig::new();
    let inner = rig.command(&["-w", "HOST", "--", "cat"]);
    let words: Vec<_> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| match word.to_str().unwrap() {
            "HOST" => "\"$host\"".to_owned(),
            word => format!("'{word}'"),
        })
        .collect();
    let script = format!(
        "printf 'a\\nb\\nc\\n' | while read host; do echo $host; {}; done",
        words.join(" ")
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .env("XDG_STATE_HOME", rig.path("state"));
    check(rig.finish(shell.output().unwrap()), 0, "a\nb\nc\n", "");
}

#[test]
fn one_command_reads_a_pipe_and_many_read_all_of_it_each() {
    let rig = Rig::new();
    let input = numbers(300_000);
    let sum = sum(&input);
    for (targets, names) in [("web1", "web1"), ("web[1-3]", "web[1-3] (3)")] {
        let ran = fed(&rig, &["-b", "--stdin", "-w", targets, "--", "cksum"], &input);
        check(
            ran,
            0,
            &format!("---------------\n{names}\n---------------\n{sum}"),
            "",
        );
    }
    fs::write(rig.path("input"), &input).unwrap();
    let file = format!("--stdin={}", rig.text("input"));
    let ran = rig.run(&["-b", &file, "-w", "web[1-3]", "-f", "2", "--", "cksum"]);
    check(
        ran,
        0,
        &format!("---------------\nweb[1-3] (3)\n---------------\n{sum}"),
        "",
    );
}

#[test]
fn a_file_as_standard_input_is_read_from_where_it_stands() {
    let rig = Rig::new();
    fs::write(rig.path("input"), "first\nsecond\nthird\n").unwrap();
    let inner = rig.command(&["--stdin", "-w", "web[1-2]", "-b", "--", "cat"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "read line; \"$@\"; cat", "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .stdin(fs::File::open(rig.path("input")).unwrap())
        .env("XDG_STATE_HOME", rig.path("state"));
    let stdout = "---------------\nweb[1-2] (2)\n---------------\nsecond\nthird\nsecond\nthird\n";
    check(rig.finish(shell.output().unwrap()), 0, stdout, "");
}

#[test]
fn commands_that_run_here_read_too() {
    let rig = Rig::new();
    let input = numbers(200_000);
    let sum = sum(&input);
    let args = [
        "--transport",
        "local",
        "--stdin",
        "-b",
        "-w",
        "a,b",
        "--",
        "cksum",
    ];
    check(
        fed(&rig, &args, &input),
        0,
        &format!("---------------\na,b (2)\n---------------\n{sum}"),
        "",
    );
    let args = ["--transport", "local", "--stdin", "-w", "a", "--", "head -n 1"];
    let ran = fed(&rig, &args, &input);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "a: 0\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no command took all of it"), "{}", ran.stderr);
}

#[test]
fn an_empty_input_ends_at_once() {
    let rig = Rig::new();
    check(
        fed(&rig, &["--stdin", "-w", "web1", "--", "cat; echo end"], b""),
        0,
        "web1: end\n",
        "",
    );
    let args = ["--stdin=/dev/null", "-w", "web1", "--", "cat; echo end"];
    check(rig.run(&args), 0, "web1: end\n", "");
}

#[test]
fn a_command_that_ends_first_is_no_failure_and_what_nobody_took_is_said() {
    let rig = Rig::new();
    let input = numbers(2_000_000);
    let mut mux = piped(&rig, &["--stdin", "-w", "web1", "--", "head -n 1"]);
    let (mut pipe, lines) = (mux.stdin.take().unwrap(), input.clone());
    // The end is held back: before a server has noticed that its command is gone, it may have taken in all of the rest.
    let writer = std::thread::spawn(move || {
        let _ = pipe.write_all(&lines);
        pipe
    });
    let ran = rig.finish(mux.wait_with_output().unwrap());
    drop(writer.join().unwrap());
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (0, "web1: 0\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .starts_with("mux: standard input: no command took all of it; ")
            && ran.stderr.ends_with(", and more may follow\n"),
        "{}",
        ran.stderr
    );
    // One that takes all of it is enough.
    let command = "[ $MUX_NODENUM = 0 ] && head -n 1 || wc -l";
    let rig = Rig::with("AcceptEnv MUX_*");
    let ran = fed(
        &rig,
        &[
            "--env-info",
            "--stdin",
            "-f",
            "1",
            "-w",
            "web[1-2]",
            "--",
            command,
        ],
        &input,
    );
    check(ran, 0, "web1: 0\nweb2: 2000000\n", "");
}

#[test]
fn an_input_that_never_ends_does_not_hold_the_run() {
    let rig = Rig::new();
    for targets in ["web1", "web[1-2]"] {
        let mut mux = piped(
            &rig,
            &["-b", "--stdin", "-w", targets, "--", "read line; echo got $line"],
        );
        let mut pipe = mux.stdin.take().unwrap();
        pipe.write_all(b"one\n").unwrap();
        // The other end stays open.
        let output = mux.wait_with_output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().ends_with("got one\n"));
        assert_eq!(output.status.code(), Some(0));
        drop(pipe);
    }
}

#[test]
fn bytes_arrive_as_they_come() {
    let rig = Rig::new();
    let mut mux = piped(
        &rig,
        &[
            "--stdin",
            "-w",
            "web1",
            "--",
            "while read line; do echo got $line; done",
        ],
    );
    let (mut pipe, mut stdout) = (mux.stdin.take().unwrap(), mux.stdout.take().unwrap());
    for word in ["one", "two", "three"] {
        pipe.write_all(format!("{word}\n").as_bytes()).unwrap();
        read_until(&mut stdout, &format!("web1: got {word}\n"));
    }
    drop(pipe);
    assert!(mux.wait().unwrap().success());
}

#[test]
fn a_slow_host_holds_up_no_other() {
    let rig = Rig::with("AcceptEnv MUX_*");
    let go = rig.text("go");
    let input = numbers(1_000_000);
    let command = format!("[ $MUX_NODENUM = 0 ] && until [ -e {go} ]; do sleep 0.05; done; cksum");
    let mut mux = piped(&rig, &["--env-info", "--stdin", "-w", "web[1-3]", "--", &command]);
    let (mut pipe, bytes) = (mux.stdin.take().unwrap(), input.clone());
    let writer = std::thread::spawn(move || pipe.write_all(&bytes).unwrap());
    let mut stdout = mux.stdout.take().unwrap();
    let (mut seen, sum) = (String::new(), sum(&input));
    for _ in 0..2 {
        seen += &read_until(&mut stdout, &sum);
    }
    assert!(seen.contains("web2: ") && seen.contains("web3: "), "{seen}");
    fs::write(&go, "").unwrap();
    assert_eq!(read_until(&mut stdout, &sum), format!("web1: {sum}"));
    writer.join().unwrap();
    assert!(mux.wait().unwrap().success());
}

/// The most memory that a process has used so far, in KiB.
fn peak(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn a_large_input_for_many_takes_little_memory() {
    const LEN: u64 = 100 * 1024 * 1024;
    let rig = Rig::new();
    for from in ["pipe", "file"] {
        let mut feeder = None;
        let mut command = rig.command(&["-b", "--stdin", "-w", "web[1-5]", "--", "wc -c"]);
        if from == "pipe" {
            let mut head = Command::new("head");
            head.args(["-c", &LEN.to_string(), "/dev/zero"])
                .stdout(Stdio::piped());
            let mut head = head.spawn().unwrap();
            command.stdin(head.stdout.take().unwrap());
            feeder = Some(head);
        } else {
            let file = fs::File::create_new(rig.path("input")).unwrap();
            file.set_len(LEN).unwrap();
            command.stdin(fs::File::open(rig.path("input")).unwrap());
        }
        let mut mux = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut most = 0;
        while mux.try_wait().unwrap().is_none() {
            most = most.max(peak(mux.id()).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut text = String::new();
        mux.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        mux.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(
            text,
            format!("---------------\nweb[1-5] (5)\n---------------\n{LEN}\n")
        );
        assert!(most < 48 * 1024, "{most} KiB with a {from}");
        drop(feeder.map(|mut feeder| feeder.wait()));
    }
}

#[test]
fn a_file_that_becomes_shorter_stops_its_readers_and_is_said() {
    let rig = Rig::new();
    let file = rig.path("input");
    fs::File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let started = rig.text("started");
    let command = format!("touch {started}; until [ -s {started} ]; do sleep 0.05; done; wc -c; sleep 600");
    let mux = rig
        .command(&[
            &format!("--stdin={}", rig.text("input")),
            "-w",
            "web1",
            "--",
            &command,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the command to start", || fs::exists(&started).unwrap());
    fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    fs::write(&started, "go").unwrap();
    let ran = rig.finish(mux.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (125, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with(
            "mux: DIR/input: it has become shorter while it was read; no command has had all of it, those that run are \
             stopped\n"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_file_that_is_changed_while_it_is_read_is_named() {
    let rig = Rig::new();
    fs::write(rig.path("input"), "before\n").unwrap();
    let command = format!("cat; echo more >> {}", rig.text("input"));
    let stderr = "mux: DIR/input changed while it was read: not every command may have had the same\n";
    let file = format!("--stdin={}", rig.text("input"));
    check(
        rig.run(&[&file, "-w", "web1", "--", &command]),
        0,
        "web1: before\n",
        stderr,
    );
}

#[test]
fn an_input_that_can_not_be_read_is_said_before_anything_runs() {
    let rig = Rig::new();
    let run = |file: &str| rig.run(&[&format!("--stdin={file}"), "-w", "web1", "--", "echo ran"]);
    check(run("/nowhere"), 2, "", "mux: --stdin: /nowhere: no such file\n");
    check(run("/"), 2, "", "mux: --stdin: /: is a directory\n");
    let file = format!("exec \"$@\" 0>{}", rig.text("written"));
    for (redirection, why) in [
        ("exec \"$@\" <&-", "standard input is closed"),
        ("exec \"$@\" 0>/dev/null", "standard input: not open for reading"),
        (&file, "standard input: not open for reading"),
    ] {
        let inner = rig.command(&["--stdin", "-w", "web1", "--", "echo ran"]);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", redirection, "sh"])
            .arg(inner.get_program())
            .args(inner.get_args());
        let ran = rig.finish(shell.env("XDG_STATE_HOME", rig.path("state")).output().unwrap());
        let stderr = format!("mux: --stdin: {why}; write --stdin=FILE, or < FILE behind the command\n");
        check(ran, 2, "", &stderr);
    }
}

#[test]
fn an_error_while_reading_stops_the_commands() {
    let rig = Rig::new();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    // Closed with something left to read: the other end is told that it was reset.
    (&theirs).write_all(b"never read").unwrap();
    drop(ours);
    let mut command = rig.command(&["--stdin", "-w", "web1", "--", "cat; echo got all of it"]);
    let command = command.stdin(std::os::fd::OwnedFd::from(theirs));
    let ran = rig.finish(command.output().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (125, ""), "{}", ran.stderr);
    assert!(
        ran.stderr
            .starts_with("mux: standard input: Connection reset by peer"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_named_pipe_is_read_once_somebody_writes() {
    let rig = Rig::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        rig.path("fifo"),
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
    let mux = rig
        .command(&[
            &format!("--stdin={}", rig.text("fifo")),
            "-b",
            "-w",
            "web[1-2]",
            "--",
            "cat",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fs::write(rig.path("fifo"), "through the pipe\n").unwrap();
    let stdout = "---------------\nweb[1-2] (2)\n---------------\nthrough the pipe\n";
    check(rig.finish(mux.wait_with_output().unwrap()), 0, stdout, "");
}

#[test]
fn files_that_pretend_to_be_empty_are_read() {
    let rig = Rig::new();
    let version = fs::read_to_string("/proc/version").unwrap();
    let ran = rig.run(&["-N", "--stdin=/proc/version", "-w", "web1", "--", "cat"]);
    check(ran, 0, &version, "");
}

#[test]
fn a_socket_is_read_as_well_and_keeps_its_flags() {
    let rig = Rig::new();
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = rig.command(&["--stdin", "-w", "web1", "--", "cat"]);
    let mux = command.stdin(std::os::fd::OwnedFd::from(theirs.try_clone().unwrap()));
    let mux = mux.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (&ours).write_all(b"through a socket\n").unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    check(
        rig.finish(mux.wait_with_output().unwrap()),
        0,
        "web1: through a socket\n",
        "",
    );
    let flags = rustix::fs::fcntl_getfl(&theirs).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
}

#[test]
fn a_host_that_is_lost_costs_the_others_nothing() {
    let rig = Rig::new();
    let port = free_port();
    let targets = format!("web1,web2:{port},web3");
    let ran = fed(&rig, &["-b", "--stdin", "-w", &targets, "--", "cat"], b"input\n");
    assert_eq!(ran.status, 4);
    assert_eq!(
        ran.stdout,
        "---------------\nweb[1,3] (2)\n---------------\ninput\n"
    );
}

#[test]
fn what_is_typed_arrives_line_by_line_until_its_end() {
    let rig = Rig::new();
    let mut mux = rig
        .on_terminal(&[
            "--stdin",
            "-w",
            "web1",
            "--",
            "while read line; do echo got $line; done; echo end",
        ])
        .spawn()
        .unwrap();
    let (mut typed, mut screen) = (mux.stdin.take().unwrap(), mux.stdout.take().unwrap());
    typed.write_all(b"one\n").unwrap();
    read_until(&mut screen, "web1: got one");
    typed.write_all(b"two\n").unwrap();
    read_until(&mut screen, "web1: got two");
    typed.write_all(b"\x04").unwrap();
    read_until(&mut screen, "web1: end");
    drop(typed);
    assert!(mux.wait().unwrap().success());
}

#[test]
fn a_job_in_the_background_says_that_it_waits_for_the_terminal() {
    let rig = Rig::new();
    let inner = rig.command(&["--stdin", "-w", "web1", "--", "cat; echo end"]);
    let words: Vec<_> = std::iter::once(inner.get_program())
        .chain(inner.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    // `set -m`: jobs have process groups of their own, as in an interactive shell.
    let script = rig.path("script");
    fs::write(&script, format!("set -m\n{} &\nread line\nfg\n", words.join(" "))).unwrap();
    let mut terminal = Command::new("script");
    terminal
        .args(["-qec", &format!("sh {}", rig.text("script")), "/dev/null"])
        .env("NO_COLOR", "1")
        .env("XDG_STATE_HOME", rig.path("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut terminal = terminal.spawn().unwrap();
    let (mut typed, mut screen) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    read_until(&mut screen, "this job is in the background");
    let start = Instant::now();
    typed.write_all(b"for the shell\n").unwrap();
    read_until(&mut screen, "cat; echo end");
    typed.write_all(b"for the command\n").unwrap();
    read_until(&mut screen, "web1: for the command");
    typed.write_all(b"\x04").unwrap();
    read_until(&mut screen, "web1: end");
    assert!(start.elapsed() < Duration::from_secs(60));
    drop(typed);
    let _ = terminal.wait();
}
