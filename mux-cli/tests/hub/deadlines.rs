//! Which deadline ends what, and when it stands still.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Answer, Outcome, Stage, Status};
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::sim::{Behaviour, Commands, Sim, good, server};

fn stalling(at: Moment) -> Behaviour {
    let plan = Plan::new().with(Point::Before(at, 1), Act::Stall);
    Behaviour::Serving(Arc::new(server()), plan, Commands::Echo(0))
}

/// One host that behaves like this ends so, then, and says so.
fn check(behaviour: Behaviour, seconds: u64, status: Status, stage: Stage, message: &str) {
    let mut sim = Sim::new(4, 1);
    sim.host(1, behaviour);
    sim.run();
    let (at, outcome) = sim.finished(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(
        (outcome.status, error.stage, error.message.as_str()),
        (status, stage, message)
    );
    assert_eq!(outcome.rc, None);
    let expected = Duration::from_secs(seconds);
    assert!(
        at >= expected && at < expected + Duration::from_secs(1),
        "after {at:?}"
    );
}

#[test]
fn a_host_that_drops_packets_is_unreachable_in_tcp() {
    let message = "no answer from 192.0.2.1 port 22 within 10s";
    check(Behaviour::Dropping, 10, Status::Unreachable, Stage::Tcp, message);
    let mut sim = Sim::new(4, 1);
    sim.host(1, Behaviour::Dropping);
    sim.run();
    let general = sim.outcome(1).error.as_ref().unwrap().general.as_deref();
    assert_eq!(general, Some("no answer within 10s"), "in words for many hosts");
}

#[test]
fn a_host_that_says_nothing_is_unreachable_in_banner() {
    let message = "connected, but no SSH identification within 10s";
    check(Behaviour::Mute, 10, Status::Unreachable, Stage::Banner, message);
}

#[test]
fn a_stall_in_the_key_exchange_is_unreachable_in_kex() {
    let message = "key exchange not finished within 10s";
    check(
        stalling(Moment::KexReply),
        10,
        Status::Unreachable,
        Stage::Kex,
        message,
    );
}

#[test]
fn a_stall_in_authentication_is_an_authentication_failure_after_the_login_timeout() {
    let message = "authentication not finished within 60s";
    check(
        stalling(Moment::AuthSuccess),
        60,
        Status::Auth,
        Stage::Auth,
        message,
    );
}

#[test]
fn a_name_that_is_never_resolved_is_unreachable_in_dns() {
    let mut sim = Sim::new(4, 1);
    sim.names.insert("web".to_owned(), Vec::new());
    let request = sim.request(1, "web");
    sim.submit(request);
    sim.run();
    let (at, outcome) = sim.finished(1);
    assert_eq!(at, Duration::from_secs(10));
    assert_eq!(outcome.error.as_ref().unwrap().stage, Stage::Dns);
}

#[test]
fn an_agent_that_never_signs_is_named_when_the_login_timeout_is_over() {
    let mut sim = Sim::new(4, 1);
    sim.agent_hangs = true;
    sim.host(1, good());
    sim.run();
    let (at, outcome) = sim.finished(1);
    assert_eq!(outcome.status, Status::Auth);
    assert_eq!(
        outcome.error.as_ref().unwrap().message,
        "key0 did not sign within 60s"
    );
    assert!(at >= Duration::from_secs(60));
}

#[test]
fn a_session_that_is_not_opened_is_ended_by_the_time_for_the_login() {
    // Our own kind of server gets the command ahead of the confirmation: whether it runs is not known.
    let message = "session not opened within 60s, may have run";
    check(
        stalling(Moment::OpenConfirmation),
        60,
        Status::Unknown,
        Stage::Channel,
        message,
    );
    // One that we don't know is sent nothing before it has confirmed.
    let mut strange = server();
    strange.ident = "SSH-2.0-Strange_1".to_owned();
    let plan = Plan::new().with(Point::Before(Moment::OpenConfirmation, 1), Act::Stall);
    let behaviour = Behaviour::Serving(Arc::new(strange), plan, Commands::Echo(0));
    let message = "session not opened within 60s";
    check(behaviour, 60, Status::Unreachable, Stage::Channel, message);
}

#[test]
fn time_stands_still_while_a_person_is_asked() {
    let mut sim = Sim::new(4, 1);
    sim.agent_hangs = true;
    sim.host(1, good());
    sim.run_for(Duration::from_secs(1));
    let ticket = sim.waiting[0];
    sim.hub
        .answer(sim.now, &mut sim.net, ticket, Answer::Asking(true));
    sim.run_for(Duration::from_secs(600));
    sim.hub
        .answer(sim.now, &mut sim.net, ticket, Answer::Asking(false));
    sim.run();
    let (at, outcome) = sim.finished(1);
    assert_eq!(outcome.status, Status::Auth);
    assert!(
        at >= Duration::from_secs(659) && at <= Duration::from_secs(661),
        "{at:?}"
    );
}

#[test]
fn a_timeout_of_the_command_is_the_only_one_called_timeout() {
    let mut sim = Sim::new(4, 1);
    sim.behave(
        crate::sim::address(1),
        Behaviour::Serving(Arc::new(server()), Plan::new(), Commands::UntilTerm),
    );
    let mut request = sim.request(1, "192.0.2.1");
    request.command_timeout = Some(Duration::from_millis(1500));
    sim.submit(request);
    sim.run();
    let (at, outcome) = sim.finished(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((outcome.status, error.stage), (Status::Timeout, Stage::Command));
    assert_eq!(error.message, "not finished within 1.5s");
    assert!(at < Duration::from_secs(2), "{at:?}");
    assert!(sim.hub.left_running().is_empty());
}

/// A host that answers, a process that stands still for a minute when so much time has passed since the start, and
/// what comes of it.
fn stand_still(at: Duration) -> Outcome {
    let mut sim = Sim::new(4, 1);
    let address = crate::sim::address(1);
    sim.behave(address, good());
    let mut request = sim.request(1, "192.0.2.1");
    request.login_timeout = Duration::from_secs(10);
    request.command_timeout = Some(Duration::from_secs(10));
    sim.submit(request);
    sim.run_for(at);
    let due = sim.hub.poll_timeout();
    sim.pass(Duration::from_secs(60));
    let late = due.map_or(Duration::ZERO, |due| sim.now.saturating_duration_since(due));
    sim.hub.stood_still(sim.now, &mut sim.net, late);
    sim.run();
    sim.outcome(1).clone()
}

#[test]
fn time_for_which_the_process_stood_still_is_nobodys() {
    for step in 0..12 {
        let at = step * crate::sim::RTT / 2;
        let outcome = stand_still(at);
        assert_eq!(
            outcome.status,
            Status::Ok,
            "stopped after {at:?}: {:?}",
            outcome.error
        );
    }
}

#[test]
fn a_host_that_is_dead_stays_so_when_the_process_has_stood_still() {
    let mut sim = Sim::new(4, 1);
    sim.host(1, Behaviour::Mute);
    sim.run_for(Duration::from_secs(5));
    sim.pass(Duration::from_secs(60));
    sim.hub
        .stood_still(sim.now, &mut sim.net, Duration::from_secs(55));
    sim.run();
    let (at, outcome) = sim.finished(1);
    assert_eq!(outcome.status, Status::Unreachable);
    assert_eq!(at.as_secs(), 66, "a second more than nothing");
}
