//! What is tried again, when, and what never is.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Event, Judgement, Level, Reason, Request, RequestId, Stage, Status};
use mux_ssh::server::{Act, Authorized, Moment, Plan, Point, ServerConfig};

use crate::sim::{Behaviour, Commands, Sim, address, good, server};

fn serving(config: ServerConfig, plan: Plan, commands: Commands) -> Behaviour {
    Behaviour::Serving(Arc::new(config), plan, commands)
}

/// A request for one host, tried again so often.
fn start(behaviour: Behaviour, retries: u32) -> Sim {
    let mut sim = Sim::new(1, 1);
    sim.behave(address(1), behaviour);
    again(&mut sim, 1, "192.0.2.1", retries);
    sim
}

fn again(sim: &mut Sim, id: u32, address: &str, retries: u32) {
    let request = Request {
        retries,
        ..sim.request(id, address)
    };
    sim.submit(request);
}

/// How it ends when it is tried again up to three times, and how many connections that took.
fn check(behaviour: Behaviour, status: Status, stage: Stage, connections: u32) {
    let mut sim = start(behaviour, 3);
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!(
        (outcome.status, outcome.error.as_ref().map(|error| error.stage)),
        (status, Some(stage)),
        "{outcome:?}"
    );
    assert_eq!(
        (outcome.attempts, outcome.retries),
        (connections, connections - 1),
        "{outcome:?}"
    );
}

#[test]
fn what_can_not_have_started_is_tried_again_and_no_more_often_than_asked() {
    check(Behaviour::Refusing, Status::Unreachable, Stage::Tcp, 4);
    check(Behaviour::Dropping, Status::Unreachable, Stage::Tcp, 4);
    check(Behaviour::Mute, Status::Unreachable, Stage::Banner, 4);
    let closing = Plan::new().with(Point::Before(Moment::Ident, 1), Act::Close);
    check(
        serving(server(), closing, Commands::Echo(0)),
        Status::Unreachable,
        Stage::Banner,
        4,
    );
}

#[test]
fn a_session_that_is_refused_is_tried_again() {
    let mut config = server();
    config.sessions.max_sessions = 0;
    check(
        serving(config, Plan::new(), Commands::Echo(0)),
        Status::Unreachable,
        Stage::Channel,
        4,
    );
}

#[test]
fn a_login_that_was_refused_is_not_tried_again() {
    let config = ServerConfig {
        authorized: Authorized::Nobody,
        ..server()
    };
    check(
        serving(config, Plan::new(), Commands::Echo(0)),
        Status::Auth,
        Stage::Auth,
        1,
    );
}

#[test]
fn a_wrong_host_key_is_not_tried_again() {
    let mut sim = Sim::new(1, 1);
    sim.judgement = Judgement::Refuse("changed".to_owned());
    sim.behave(address(1), good());
    again(&mut sim, 1, "192.0.2.1", 3);
    sim.run();
    assert_eq!(
        (sim.outcome(1).status, sim.outcome(1).attempts),
        (Status::HostKey, 1)
    );
}

#[test]
fn a_command_that_may_have_run_is_not_tried_again() {
    check(
        serving(server(), Plan::new(), Commands::Breaks),
        Status::Unknown,
        Stage::Command,
        1,
    );
}

#[test]
fn a_command_that_failed_is_not_tried_again() {
    let mut sim = start(serving(server(), Plan::new(), Commands::Echo(3)), 3);
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!(
        (outcome.status, outcome.attempts, outcome.retries),
        (Status::Failed, 1, 0)
    );
}

#[test]
fn a_host_that_comes_back_runs_the_command_once() {
    let mut sim = start(Behaviour::Refusing, 5);
    sim.run_for(Duration::from_secs(2));
    sim.behave(address(1), good());
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.rc), (Status::Ok, Some(0)));
    assert!(
        outcome.retries >= 2 && outcome.attempts == outcome.retries + 1,
        "{outcome:?}"
    );
    assert_eq!(sim.net.commands.len(), 1);
}

#[test]
fn every_try_has_all_of_its_time() {
    let mut sim = start(Behaviour::Mute, 1);
    sim.run();
    let (at, _) = sim.finished(1);
    // Twice the 10 s, and the pause between.
    assert!(
        at >= Duration::from_millis(20_500) && at <= Duration::from_secs(21),
        "{at:?}"
    );
}

#[test]
fn a_pause_holds_nobody_up() {
    let mut sim = Sim::new(1, 2);
    sim.behave(address(1), Behaviour::Refusing);
    again(&mut sim, 1, "192.0.2.1", 3);
    sim.host(2, good());
    sim.run();
    let (at, outcome) = sim.finished(2);
    assert_eq!(outcome.status, Status::Ok);
    assert!(at < Duration::from_millis(500), "{at:?}");
}

#[test]
fn a_name_that_is_not_found_is_asked_again() {
    let mut sim = Sim::new(1, 1);
    again(&mut sim, 1, "web1.example", 2);
    sim.run_for(Duration::from_millis(400));
    sim.names.insert("web1.example".to_owned(), vec![address(1)]);
    sim.behave(address(1), good());
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!(
        (outcome.status, outcome.attempts, outcome.retries),
        (Status::Ok, 1, 1)
    );
}

#[test]
fn a_run_that_starts_nothing_more_tries_nothing_again() {
    let mut sim = start(Behaviour::Refusing, 100);
    sim.run_for(Duration::from_millis(300));
    sim.hub.hold(sim.now, &mut sim.net);
    sim.run();
    let (at, outcome) = sim.finished(1);
    assert_eq!((outcome.status, outcome.attempts), (Status::Unreachable, 1));
    assert!(at <= Duration::from_millis(300), "{at:?}");
}

#[test]
fn a_request_that_pauses_can_be_stopped() {
    let mut sim = start(Behaviour::Refusing, 100);
    sim.run_for(Duration::from_millis(300));
    sim.hub
        .cancel(sim.now, &mut sim.net, RequestId(1), Reason::Interrupted);
    sim.run();
    assert_eq!(sim.outcome(1).status, Status::Cancelled);
}

#[test]
fn each_retry_is_told_to_whoever_wants_to_know() {
    let mut sim = start(Behaviour::Refusing, 2);
    sim.run();
    let told = sim.log.iter().filter_map(|(_, event)| match event {
        Event::Notice {
            level: Level::Verbose,
            text,
            ..
        } => Some(text.as_str()),
        _ => None,
    });
    let told: Vec<&str> = told.collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("connection refused; retry 1 of 2 in 0."),
        "{told:?}"
    );
}
