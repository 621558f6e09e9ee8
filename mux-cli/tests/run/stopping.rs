//! Timeouts and signals: what runs is stopped, what was said is printed, what can't be stopped is listed.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Stdio};

use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};

use crate::rig::{Ran, Rig, is_alive, read_until, wait_for};

/// A command that leaves its process id behind, says so and stays.
fn staying(rig: &Rig) -> String {
    format!("echo $$ > {}; echo ready; exec sleep 600", rig.text("pid"))
}

fn start(rig: &Rig, args: &[&str]) -> Child {
    let mut command = rig.command(args);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Starts a command that stays, sends a signal once it runs, and waits for the end.
fn interrupted(rig: &Rig, command: &str, signal: Signal) -> Ran {
    let mut child = start(rig, &["-w", "web1", "--", command]);
    let mut stdout = child.stdout.take().unwrap();
    let mut said = read_until(&mut stdout, "ready\n");
    send(&child, signal);
    stdout.read_to_string(&mut said).unwrap();
    let mut ran = rig.finish(child.wait_with_output().unwrap());
    ran.stdout = said;
    ran
}

#[test]
fn a_command_that_takes_too_long_is_stopped_and_does_not_survive() {
    let rig = Rig::new();
    let args = ["--timeout", "1.5", "-w", "web1", "--", &staying(&rig)];
    let stderr = "ok=0 timeout=1 in TIME\ntimeout: web1: command: not finished within 1.5s\n";
    rig.check(&args, 3, "web1: ready\n", stderr);
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn off_a_terminal_the_first_interrupt_stops_what_runs() {
    let rig = Rig::new();
    let ran = interrupted(&rig, &staying(&rig), Signal::INT);
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (130, "web1: ready\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.starts_with("ok=0 cancelled=1 in TIME\n"),
        "{}",
        ran.stderr
    );
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn termination_stops_what_runs() {
    let rig = Rig::new();
    let ran = interrupted(&rig, &staying(&rig), Signal::TERM);
    assert_eq!(ran.status, 143, "{}", ran.stderr);
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn a_command_that_ignores_its_signal_is_killed() {
    let rig = Rig::new();
    let command = format!(
        "trap '' TERM; echo $$ > {}; echo ready; while :; do sleep 1; done",
        rig.text("pid")
    );
    let ran = interrupted(&rig, &command, Signal::INT);
    assert!(!ran.stderr.contains("may still be running"), "{}", ran.stderr);
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn a_forced_command_that_survives_is_listed() {
    let rig = Rig::new();
    let key = fs::read_to_string(rig.path("authorized_keys")).unwrap();
    let script = format!(
        "trap '' TERM; echo ready; while [ -e {} ]; do sleep 0.1; done",
        rig.text("stay")
    );
    // It stays until the file is gone, which it is at the latest with the directory.
    fs::write(rig.path("stay"), "").unwrap();
    fs::write(rig.path("authorized_keys"), format!("command=\"{script}\" {key}")).unwrap();
    let ran = interrupted(&rig, "whatever", Signal::INT);
    assert!(
        ran.stderr.starts_with("mux: may still be running on web1\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 130);
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let rig = Rig::new();
    let mut child = start(&rig, &["-w", "web1", "--", "yes"]);
    let mut stdout = child.stdout.take().unwrap();
    read_until(&mut stdout, "web1: y\n");
    drop(stdout);
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (141, ""));
}

#[test]
fn a_status_can_be_asked_for_by_signal() {
    let rig = Rig::new();
    let mut child = start(&rig, &["-w", "web1", "--", &staying(&rig)]);
    read_until(child.stdout.as_mut().unwrap(), "ready\n");
    send(&child, Signal::USR1);
    let said = read_until(child.stderr.as_mut().unwrap(), "\n");
    assert!(said.starts_with("mux: command: web1 ("), "{said}");
    send(&child, Signal::TERM);
    assert_eq!(rig.finish(child.wait_with_output().unwrap()).status, 143);
}

#[test]
fn the_line_that_kills_touches_nothing_unless_its_parent_is_a_server() {
    use std::os::unix::process::CommandExt;
    // As after a connection that is gone: the shell's parent has other children, and they are nobody's sessions.
    let mut bystander = std::process::Command::new("sleep")
        .arg("60")
        .process_group(0)
        .spawn()
        .unwrap();
    let status = std::process::Command::new("sh")
        .arg("-c")
        .arg(mux_cli::hub::KILL_LINE)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn on_a_terminal_the_first_interrupt_tells_and_the_second_stops() {
    let rig = Rig::new();
    let mut child = rig
        .on_terminal(&["-f", "1", "-w", "web[1-3]", "--", &staying(&rig)])
        .spawn()
        .unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    read_until(&mut screen, "ready");
    keyboard.write_all(b"\x03").unwrap();
    let told = read_until(&mut screen, "command: web1 (");
    assert!(
        told.contains("mux: 2 hosts not started; Ctrl-C again stops what runs"),
        "{told}"
    );
    assert!(is_alive(&rig.path("pid")));
    keyboard.write_all(b"\x03").unwrap();
    let mut rest = String::new();
    screen.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("skipped=2") && rest.contains("cancelled=1"),
        "{rest}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}

#[test]
fn the_third_interrupt_leaves_at_once_and_says_what_may_still_run() {
    let rig = Rig::new();
    let stop = rig.text("stop");
    let script = format!("trap '' TERM; echo ready; while [ ! -e {stop} ]; do sleep 0.1; done");
    let key = fs::read_to_string(rig.path("authorized_keys")).unwrap();
    fs::write(rig.path("authorized_keys"), format!("command=\"{script}\" {key}")).unwrap();
    let mut child = rig
        .on_terminal(&["-w", "web1", "--", "whatever"])
        .spawn()
        .unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    read_until(&mut screen, "ready");
    let start = std::time::Instant::now();
    keyboard.write_all(b"\x03").unwrap();
    read_until(&mut screen, "command: web1 (");
    keyboard.write_all(b"\x03").unwrap();
    read_until(&mut screen, "mux: stopping web1");
    keyboard.write_all(b"\x03").unwrap();
    let mut rest = String::new();
    screen.read_to_string(&mut rest).unwrap();
    fs::write(stop, "").unwrap();
    assert!(rest.contains("mux: may still be running on web1"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        start.elapsed() < std::time::Duration::from_secs(5),
        "left only after {:?}",
        start.elapsed()
    );
}

/// The letter that /proc has for what a process does.
fn state(child: &Child) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[test]
fn hosts_that_answered_while_the_process_was_stopped_have_not_timed_out() {
    let rig = Rig::new();
    let (ready, go, done) = (rig.text("ready"), rig.text("go"), rig.text("done"));
    let command =
        format!("echo x >> {ready}; until [ -e {go} ]; do sleep 0.05; done; echo ok; echo x >> {done}");
    let lines = |name: &str| fs::read_to_string(name).unwrap_or_default().lines().count();
    let child = start(
        &rig,
        &["--timeout", "5", "-b", "-w", "web[01-10]", "--", &command],
    );
    wait_for("ten hosts to begin", || lines(&ready) == 10);
    send(&child, Signal::STOP);
    wait_for("the process to stand still", || state(&child) == Some('T'));
    let everybody_is_late = std::time::Instant::now() + std::time::Duration::from_secs(6);
    fs::write(&go, "").unwrap();
    wait_for("ten hosts to end", || lines(&done) == 10);
    wait_for("the time to be over", || {
        std::time::Instant::now() > everybody_is_late
    });
    send(&child, Signal::CONT);
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("web[01-10] (10)"), "{}", ran.stdout);
}

#[test]
fn a_command_that_was_stopped_has_no_status_of_its_own() {
    let rig = Rig::new();
    let command = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
    let ran = rig.run(&["--timeout", "1", "--output", "jsonl", "-w", "web1", "--", command]);
    let line = ran.stdout.lines().next().unwrap();
    assert!(
        line.contains(r#""status":"timeout""#) && line.contains(r#""rc":null"#),
        "{line}"
    );
}

/// Starts commands that write far more than fits anywhere, and leaves the pipe unread once there is something in it.
fn stalled(rig: &Rig, args: &[&str]) -> Child {
    let command = format!("echo x >> {}; exec seq 2000001", rig.text("begun"));
    let mut child = start(rig, &[args, &["-w", "web[1-5]", "--", &command]].concat());
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    let begun = || {
        fs::read_to_string(rig.path("begun"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    wait_for("five commands to begin", || begun() == 5);
    wait_for("a full pipe", || {
        ioctl_fionread(child.stdout.as_ref().unwrap()).unwrap() > 32 * 1024
    });
    child
}

/// Until no connection is left, which is when the run has made up its mind about all hosts.
fn wait_for_the_end_of_connections(rig: &Rig) {
    let children = format!("/proc/{0}/task/{0}/children", rig.sshd_id());
    wait_for("the end of all connections", || {
        fs::read_to_string(&children).unwrap().is_empty()
    });
}

#[test]
fn a_reader_that_stands_still_does_not_hide_that_the_commands_have_ended() {
    let rig = Rig::new();
    let child = stalled(&rig, &[]);
    send(&child, Signal::TERM);
    wait_for_the_end_of_connections(&rig);
    let ran = rig.finish(child.wait_with_output().unwrap());
    assert_eq!(ran.status, 143, "{}", ran.stderr);
    assert!(ran.stderr.contains("cancelled=5"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("may still be running"), "{}", ran.stderr);
}

#[test]
fn who_leaves_a_reader_that_stands_still_is_told_how_hosts_ended_and_what_is_lost() {
    let rig = Rig::new();
    for args in [&[][..], &["--outdir", &rig.text("out"), "--output", "text"]] {
        let _ = fs::remove_file(rig.path("begun"));
        let mut child = stalled(&rig, args);
        send(&child, Signal::INT);
        wait_for_the_end_of_connections(&rig);
        send(&child, Signal::INT);
        let mut stderr = String::new();
        child
            .stderr
            .as_mut()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{stderr}");
        assert!(stderr.contains("cancelled=5"), "{stderr}");
        let lost = "mux: left before all output was taken: up to ";
        assert_eq!(stderr.matches(lost).count(), 1, "{stderr}");
        assert!(!stderr.contains("may still be running"), "{stderr}");
    }
}

#[test]
fn a_signal_before_the_run_has_begun_ends_what_the_configuration_runs() {
    let rig = Rig::new();
    rig.configure(&format!(
        "Match exec \"echo $$ > {}; exec sleep 600\"\n  User nobody\nMatch all",
        rig.text("pid")
    ));
    let mut child = start(&rig, &["-w", "web1", "--", "true"]);
    wait_for("the command of the configuration", || {
        fs::read_to_string(rig.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    send(&child, Signal::TERM);
    let ended = child.wait().unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
    assert_eq!(signal, Some(Signal::TERM.as_raw()), "{ended:?}");
    wait_for("the end of the command", || !is_alive(&rig.path("pid")));
}
