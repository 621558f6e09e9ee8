//! Clients and daemons that come, go and are killed: whoever waits is told, and the next command works.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;
use crate::rig::{is_alive, read_until, wait_for};

/// A run whose command writes its process id into a file and sleeps.
fn sleeper(home: &Home) -> Child {
    let line = format!("echo $$ > {}; echo up; exec sleep 1000", home.rig.text("pid"));
    let mut run = home
        .command(&["-N", "-w", "host", &line])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    read_until(run.stdout.as_mut().unwrap(), "up\n");
    run
}

#[test]
fn a_client_that_is_killed_takes_its_commands_with_it_and_nothing_else() {
    let home = Home::with_daemon();
    let kept = home.connection(&[]);
    let mut run = sleeper(&home);
    let other = home.connection(&[]);
    assert_ne!(other, kept, "the first is in use");
    run.kill().unwrap();
    run.wait().unwrap();
    wait_for("the command to end", || !is_alive(&home.rig.path("pid")));
    wait_for("the daemon to have forgotten it", || {
        home.status()["clients"] == 0
    });
    assert_eq!(home.connection(&[]), other);
}

#[test]
fn a_client_that_is_killed_in_a_transfer_leaves_the_next_one_alone() {
    let home = Home::with_daemon();
    for _ in 0..3 {
        let mut run = home
            .command(&["-N", "-w", "host", "cat /dev/zero"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut [0; 1_000_000]).unwrap();
        run.kill().unwrap();
        run.wait().unwrap();
        home.connection(&[]);
    }
    wait_for("the daemon to have forgotten them", || {
        home.status()["clients"] == 0
    });
}

#[test]
fn whoever_waits_for_a_daemon_that_is_killed_is_told_at_once_and_the_next_command_works() {
    let mut home = Home::with_daemon();
    let run = sleeper(&home);
    kill_process(Pid::from_child(home.daemon_child()), Signal::KILL).unwrap();
    home.daemon_child().wait().unwrap();
    let since = Instant::now();
    let output = run.wait_with_output().unwrap();
    let took = since.elapsed();
    let ran = home.rig.finish(output);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.stderr.contains("the command may have run"), "{ran:?}");
    // At once, on a machine that does nothing else; what would be noticed by silence takes ten seconds and more.
    assert!(took < Duration::from_secs(5), "told after {took:?}");
    assert!(home.socket().exists(), "it had no time to remove it");
    assert_ne!(home.connection(&[]), home.connection(&[]), "nobody listens there");
    home.start(&[]);
    assert_eq!(home.connection(&[]), home.connection(&[]));
}

#[test]
fn a_stale_socket_is_recovered_by_two_at_once() {
    let mut home = Home::with_daemon();
    kill_process(Pid::from_child(home.daemon_child()), Signal::KILL).unwrap();
    home.daemon_child().wait().unwrap();
    let args = ["--persist", "1m", "-N", "-w", "host", "echo $SSH_CONNECTION"];
    let runs: Vec<Child> = (0..4)
        .map(|_| {
            home.command(&args)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for run in runs {
        let ran = home.rig.finish(run.wait_with_output().unwrap());
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    }
    assert_eq!(home.status()["finished"], 4, "one daemon has served them all");
    assert!(home.mux(&["daemon", "stop"]).status().unwrap().success());
    assert!(!home.socket().exists());
}

#[test]
fn a_daemon_that_is_told_to_end_lets_short_commands_end_and_takes_no_new_ones() {
    let mut home = Home::with_daemon();
    let flag = home.rig.path("flag");
    let line = format!(
        "echo up; until [ -e {} ]; do sleep 0.01; done; echo end",
        flag.display()
    );
    let mut run = home
        .command(&["-N", "-w", "host", &line])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = run.stdout.take().unwrap();
    read_until(&mut stdout, "up\n");
    kill_process(Pid::from_child(home.daemon_child()), Signal::TERM).unwrap();
    wait_for("the socket to go", || !home.socket().exists());
    fs::write(&flag, "").unwrap();
    assert_eq!(read_until(&mut stdout, "end\n"), "end\n");
    assert!(run.wait().unwrap().success());
    assert!(home.daemon_child().wait().unwrap().success());
    assert_ne!(home.connection(&[]), home.connection(&[]), "nobody is there");
}

#[test]
fn a_daemon_that_is_told_to_end_stops_what_does_not() {
    let mut home = Home::with_daemon();
    let run = sleeper(&home);
    kill_process(Pid::from_child(home.daemon_child()), Signal::TERM).unwrap();
    let ran = home.rig.finish(run.wait_with_output().unwrap());
    assert_ne!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("host"), "{ran:?}");
    assert!(home.daemon_child().wait().unwrap().success());
    wait_for("the command to end", || !is_alive(&home.rig.path("pid")));
}

#[test]
fn a_daemon_that_nobody_uses_leaves() {
    let mut home = Home::new();
    home.start(&["--idle", "200ms"]);
    home.connection(&[]);
    assert!(home.daemon_child().wait().unwrap().success());
    assert!(!home.socket().exists());
}

#[test]
fn there_is_one_daemon() {
    let home = Home::with_daemon();
    let output = home.mux(&["daemon", "run"]).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "mux: daemon: already running\n"
    );
    let output = home.mux(&["daemon", "start"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "already running\n");
    assert_eq!(home.status()["pid"], home.daemon());
}

#[test]
fn ctrl_c_stops_what_runs_over_the_daemon() {
    let home = Home::with_daemon();
    let run = sleeper(&home);
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let ran = home.rig.finish(run.wait_with_output().unwrap());
    assert_eq!(ran.status, 130, "{ran:?}");
    assert!(ran.stderr.contains("cancelled=1"), "{ran:?}");
    wait_for("the command to end", || !is_alive(&home.rig.path("pid")));
    home.connection(&[]);
}

#[test]
fn a_daemon_that_is_stopped_holds_nobody_up_for_ever() {
    let mut home = Home::with_daemon();
    home.connection(&[]);
    let pid = Pid::from_child(home.daemon_child());
    kill_process(pid, Signal::STOP).unwrap();
    let ran = home.run(&["-v", "-w", "host", "echo here"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "host: here\n"), "{ran:?}");
    assert!(ran.stderr.contains("without the daemon"), "{ran:?}");
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(home.connection(&[]), home.connection(&[]));
    drop(UnixStream::connect(home.socket()).unwrap());
}
