//! The system's `ssh` as the transport: how many there are at once, what their ends mean, and how they are stopped.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Event, Kill, NoLink, OpenSsh, Reason, Request, Stage, Status, StreamKind, Transport};

use super::children::{CLOSED, Does, SIGNAL, STATUS, STEP, Script, Stops, after, ends, runs};
use super::sim::Sim;

const SECOND: Duration = Duration::from_secs(1);

fn request(sim: &Sim, id: u32, door: &str) -> Request {
    let ssh = OpenSsh {
        program: "ssh".into(),
        options: Vec::new(),
        door: Arc::from(door),
        reason: "--transport openssh".to_owned(),
        asks_nobody: true,
    };
    Request {
        transport: Transport::OpenSsh(Arc::new(ssh)),
        ..sim.request(id, "192.0.2.1")
    }
}

/// Asks for a command on a host whose process does this.
fn host(sim: &mut Sim, id: u32, script: Script) {
    sim.net.children.behave(&format!("host{id}"), script);
    let request = request(sim, id, &format!("door{id}"));
    sim.submit(request);
}

fn one(script: Script) -> Sim {
    let mut sim = Sim::new(10, 1);
    host(&mut sim, 1, script);
    sim.run();
    assert_eq!(sim.net.children.running(), 0);
    sim
}

#[track_caller]
fn check(script: Script, status: Status, rc: Option<i32>, words: &str) {
    let sim = one(script);
    let outcome = sim.outcome(1);
    let said = outcome.error.as_ref().map(mux_cli::hub::Failure::words);
    assert_eq!(
        (outcome.status, outcome.rc, said.as_deref().unwrap_or_default()),
        (status, rc, words)
    );
}

#[test]
fn a_command_runs_and_its_stages_are_told() {
    let sim = one(ends(3));
    assert_eq!(
        (sim.outcome(1).status, sim.outcome(1).rc),
        (Status::Failed, Some(3))
    );
    assert_eq!(sim.printed(1), 3);
    let stages = sim.log.iter().filter_map(|(_, event)| match event {
        Event::Stage { stage, .. } => Some(*stage),
        _ => None,
    });
    assert!(stages.is_sorted_by(|a, b| a < b), "{:?}", sim.log);
    assert!(sim.log.iter().any(|(_, event)| matches!(
        event,
        Event::Stage {
            stage: Stage::Command,
            ..
        }
    )));
    assert!(sim.outcome(1).timings.auth.is_some());
}

/// 255 is what ssh ends with by itself, and what a command or its signal makes it end with.
#[test]
fn the_kinds_of_255_are_told_apart() {
    use Does::{Ends, Logs};
    check(ends(255), Status::Failed, Some(255), "");
    check(
        runs(&[Logs(SIGNAL), Logs(CLOSED), Ends(255)]),
        Status::Failed,
        None,
        "command: killed by a signal; ssh does not say which",
    );
    check(
        runs(&[Logs(CLOSED), Ends(255)]),
        Status::Unknown,
        None,
        "command: the command ended without an exit status",
    );
    check(
        runs(&[Ends(255)]),
        Status::Unknown,
        None,
        "command: connection lost, may have run: ssh ended and did not say why",
    );
    // The command's status had come before the connection was lost: it is known how it ended.
    check(runs(&[Logs(STATUS), Ends(7)]), Status::Failed, Some(7), "");
    check(
        after(0, &[Ends(255)]),
        Status::Unreachable,
        None,
        "dns: ssh ended and did not say why",
    );
}

/// Log and standard error are two pipes: of what is read at the same moment nobody knows which was written first.
#[test]
fn what_is_read_together_with_the_start_of_the_command_is_the_commands() {
    const KIB: usize = 1024;
    let text: &'static str = "x".repeat(4 * KIB).leak();
    let noise: &'static str = "p".repeat(6 * KIB).leak();
    let mut script = runs(&[Does::Logs(STATUS), Does::Logs(CLOSED), Does::Ends(0)]);
    // Everything from the session on, and what the command writes before that.
    let at = script[5].0;
    script[5..].iter_mut().for_each(|(when, _)| *when = at);
    let output = std::iter::repeat_n((at, Does::Writes(StreamKind::Stderr, text)), 5);
    script.splice(5..5, output);
    // Before that, what a proxy says: more than anybody wants to know.
    let said = std::iter::repeat_n((script[4].0, Does::Writes(StreamKind::Stderr, noise)), 3);
    script.splice(4..4, said);
    let sim = one(script);
    assert_eq!((sim.outcome(1).status, sim.printed(1)), (Status::Ok, 20 * KIB));
}

#[test]
fn one_that_fails_on_its_way_says_where() {
    use Does::{Ends, Logs};
    let refused = "ssh: connect to host h port 22: Connection refused";
    check(
        after(1, &[Logs(refused), Ends(255)]),
        Status::Unreachable,
        None,
        &format!("tcp: {refused}"),
    );
    let closed = "Connection closed by 192.0.2.1 port 22";
    check(
        after(3, &[Logs(closed), Ends(255)]),
        Status::Unreachable,
        None,
        &format!("kex: {closed}"),
    );
    let denied = "me@h: Permission denied (publickey).";
    check(
        after(4, &[Logs(denied), Ends(255)]),
        Status::Auth,
        None,
        &format!(
            "auth: {denied}; nothing is asked over this transport, neither for passwords nor for passphrases: \
             with SSH_ASKPASS_REQUIRE=force the program of SSH_ASKPASS answers"
        ),
    );
    // What is written beside the log, before there is a session, is ssh's own, too.
    check(
        after(
            0,
            &[Does::Writes(StreamKind::Stderr, "no\u{1b}[31m way\n"), Ends(255)],
        ),
        Status::Unreachable,
        None,
        "dns: no^[[31m way",
    );
}

#[test]
fn one_that_is_killed_says_by_what() {
    check(
        after(2, &[Does::Dies(9)]),
        Status::Unreachable,
        None,
        "banner: ssh was ended by SIGKILL",
    );
    check(
        runs(&[Does::Dies(11)]),
        Status::Unknown,
        None,
        "command: connection lost, may have run: ssh was ended by SIGSEGV",
    );
}

#[test]
fn one_that_is_older_than_what_tells_its_ends_apart_says_so() {
    check(
        after(
            0,
            &[
                Does::Writes(
                    StreamKind::Stderr,
                    "command-line: line 0: Bad configuration option: logverbose\r\n",
                ),
                Does::Ends(255),
            ],
        ),
        Status::Unreachable,
        None,
        "dns: this ssh is older than OpenSSH 8.7, which tells how a command ended and can be kept in front",
    );
}

#[test]
fn one_that_can_not_be_started_fails_and_one_for_which_something_lacks_waits() {
    let mut sim = Sim::new(10, 1);
    sim.net
        .children
        .refusals
        .push_back(NoLink::Io(ErrorKind::NotFound));
    host(&mut sim, 1, ends(0));
    sim.run();
    let words = sim.outcome(1).error.as_ref().unwrap().words();
    assert_eq!(
        (sim.outcome(1).status, words.as_str()),
        (Status::Unreachable, "tcp: could not start ssh: entity not found")
    );

    let mut sim = Sim::new(10, 2);
    host(&mut sim, 1, ends(0));
    sim.net.children.refusals.push_back(NoLink::Processes);
    host(&mut sim, 2, ends(0));
    sim.run();
    assert!((1..3).all(|id| sim.outcome(id).status == Status::Ok));
    assert_eq!(sim.net.children.started, 2);
}

#[test]
fn hundreds_share_a_bounded_number_of_processes_and_few_log_in_at_one_door() {
    let mut sim = Sim::new(300, 300);
    for id in 0..300 {
        sim.net.children.behave(
            &format!("host{id}"),
            // They run until all that may have started.
            runs(&[Does::Logs(STATUS), Does::Logs(CLOSED), Does::Ends(0)])
                .into_iter()
                .map(|(at, does)| (if at > 8 * STEP { at + SECOND } else { at }, does))
                .collect(),
        );
        // Two hundred behind one bastion.
        let door = if id < 200 {
            "bastion".to_owned()
        } else {
            id.to_string()
        };
        let request = request(&sim, id, &door);
        sim.submit(request);
    }
    sim.run();
    assert!((0..300).all(|id| sim.outcome(id).status == Status::Ok));
    let children = &sim.net.children;
    assert_eq!(
        (children.started, children.most, children.most_at_door),
        (300, 64, 8)
    );
    assert_eq!(children.running(), 0);
}

#[test]
fn one_that_is_silent_has_the_time_for_connecting_and_for_the_login() {
    for (steps, seconds, status, words) in [
        (
            1,
            10,
            Status::Unreachable,
            "tcp: no answer from 192.0.2.1 port 22 within 10s",
        ),
        (
            2,
            10,
            Status::Unreachable,
            "banner: connected, but no SSH identification within 10s",
        ),
        (
            3,
            10,
            Status::Unreachable,
            "kex: key exchange not finished within 10s",
        ),
        (
            4,
            60,
            Status::Auth,
            "auth: authentication not finished within 60s",
        ),
    ] {
        let sim = one(after(steps, &[]));
        let (at, outcome) = sim.finished(1);
        let said = outcome.error.as_ref().unwrap().words();
        assert_eq!((outcome.status, said.as_str()), (status, words));
        assert!(at >= seconds * SECOND && at < (seconds + 1) * SECOND, "{at:?}");
    }
}

#[test]
fn what_was_refused_on_its_way_is_tried_again_and_what_was_denied_is_not() {
    for (script, attempts) in [
        (
            after(
                1,
                &[
                    Does::Logs("ssh: connect to host h port 22: Connection refused"),
                    Does::Ends(255),
                ],
            ),
            3,
        ),
        (
            after(
                4,
                &[
                    Does::Logs("me@h: Permission denied (publickey)."),
                    Does::Ends(255),
                ],
            ),
            1,
        ),
        (runs(&[Does::Ends(255)]), 1),
    ] {
        let mut sim = Sim::new(10, 1);
        sim.net.children.behave("host1", script);
        let request = Request {
            retries: 2,
            ..request(&sim, 1, "door")
        };
        sim.submit(request);
        sim.run();
        assert_eq!(
            (sim.net.children.started, sim.outcome(1).attempts),
            (attempts, u32::try_from(attempts).unwrap())
        );
    }
}

/// A hundred, some on their way and some whose commands run; those that don't mind are left and said to be.
#[test]
fn a_cancelled_run_leaves_no_process_and_stops_the_commands_on_their_servers() {
    let mut sim = Sim::new(100, 100);
    for id in 0..100 {
        let (script, stops) = match id % 4 {
            0 => (after(2, &[]), Stops::Yes),
            1 => (after(4, &[]), Stops::Yes),
            2 => (runs(&[]), Stops::Yes),
            _ => (runs(&[]), Stops::No),
        };
        sim.net.children.stoppable(&format!("host{id}"), script, stops);
        let request = request(&sim, id, &id.to_string());
        sim.submit(request);
    }
    sim.run_for(SECOND);
    let (running, before) = (sim.net.children.running(), sim.now - sim.start);
    assert_eq!(running, 64);
    sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
    // Those on their way are gone at once.
    assert_eq!(sim.net.children.running(), 32);
    assert_eq!(sim.net.children.kills, vec![Kill::Remote; 32]);
    sim.run();
    assert_eq!(sim.net.children.running(), 0);
    assert_eq!(sim.hub.left_running().len(), 16);
    for id in 0..100 {
        let (at, outcome) = sim.finished(id);
        assert!(
            matches!(outcome.status, Status::Cancelled | Status::Skipped),
            "{outcome:?}"
        );
        assert!(at < before + 8 * SECOND, "{at:?}");
    }
}

#[test]
fn a_command_out_of_time_is_stopped_on_its_server() {
    let mut sim = Sim::new(10, 1);
    sim.net.children.stoppable("host1", runs(&[]), Stops::Yes);
    let request = Request {
        command_timeout: Some(5 * SECOND),
        ..request(&sim, 1, "door")
    };
    sim.submit(request);
    sim.run();
    let (at, outcome) = sim.finished(1);
    assert_eq!((outcome.status, outcome.rc), (Status::Timeout, None));
    assert!(at < 6 * SECOND, "{at:?}");
    assert!(sim.hub.left_running().is_empty());
    assert_eq!(sim.net.children.kills, [Kill::Remote]);
}
