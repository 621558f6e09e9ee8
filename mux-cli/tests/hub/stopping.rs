//! How requests are stopped.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Reason, RequestId, Status};
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::sim::{Behaviour, Commands, Sim, server};

fn running(commands: Commands) -> Behaviour {
    Behaviour::Serving(Arc::new(server()), Plan::new(), commands)
}

/// Stops a command after a minute; returns how long that took and the simulation.
fn stop(commands: Commands) -> (Duration, Sim) {
    let mut sim = Sim::new(1, 1);
    sim.host(1, running(commands));
    sim.run_for(Duration::from_secs(60));
    assert_eq!(sim.hub.running().len(), 1);
    let before = sim.now;
    sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
    sim.run();
    let took = sim.finished(1).0.saturating_sub(before - sim.start);
    assert_eq!(sim.outcome(1).status, Status::Cancelled);
    (took, sim)
}

#[test]
fn a_command_that_obeys_ends_by_its_signal() {
    let (took, sim) = stop(Commands::UntilTerm);
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_eq!(sim.outcome(1).signal.as_deref(), Some("TERM"));
    assert!(sim.hub.left_running().is_empty());
    assert_eq!(sim.net.commands.len(), 1);
}

#[test]
fn one_that_does_not_is_ended_over_a_second_channel_of_the_same_connection() {
    let (took, sim) = stop(Commands::UntilSecond);
    assert!(
        took >= Duration::from_secs(1) && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert!(sim.hub.left_running().is_empty());
    assert_eq!(sim.net.connects.len(), 1);
    assert!(sim.net.commands[1].starts_with(b"exec sh -c 'u=$PPID;"));
}

#[test]
fn one_that_survives_is_listed() {
    let (took, sim) = stop(Commands::Forever);
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(sim.hub.left_running(), [RequestId(1)]);
}

#[test]
fn what_has_not_started_is_skipped_and_what_is_connecting_ends_at_once() {
    let mut sim = Sim::new(2, 4);
    sim.host(1, Behaviour::Dropping);
    sim.host(2, running(Commands::UntilTerm));
    sim.host(3, running(Commands::UntilTerm));
    sim.host(4, running(Commands::UntilTerm));
    sim.run_for(Duration::from_millis(500));
    sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
    sim.run();
    let statuses: Vec<_> = (1..=4).map(|id| sim.outcome(id).status).collect();
    assert_eq!(
        statuses,
        [
            Status::Cancelled,
            Status::Cancelled,
            Status::Skipped,
            Status::Skipped
        ]
    );
    assert!(sim.hub.left_running().is_empty());
}

#[test]
fn holding_lets_what_runs_go_on() {
    let mut sim = Sim::new(1, 2);
    sim.host(1, running(Commands::Echo(0)));
    sim.host(2, running(Commands::Echo(0)));
    sim.hub.hold(sim.now, &mut sim.net);
    sim.run();
    assert_eq!(
        (sim.outcome(1).status, sim.outcome(2).status),
        (Status::Ok, Status::Skipped)
    );
}

#[test]
fn one_request_can_be_stopped_alone() {
    let mut sim = Sim::new(3, 3);
    for id in 1..=3 {
        sim.host(id, running(Commands::UntilTerm));
    }
    sim.run_for(Duration::from_secs(5));
    sim.hub
        .cancel(sim.now, &mut sim.net, RequestId(2), Reason::Interrupted);
    sim.run_for(Duration::from_secs(5));
    assert_eq!(sim.outcome(2).status, Status::Cancelled);
    assert_eq!(sim.hub.running().len(), 2);
}

#[test]
fn a_login_that_stalls_is_stopped_at_once_unless_the_command_went_along_which_is_listed_after_a_second() {
    let mut sim = Sim::new(1, 1);
    let stall = Plan::new().with(Point::Before(Moment::AuthSuccess, 1), Act::Stall);
    let mut config = server();
    // With this one the command leaves with the login.
    config.ident = "SSH-2.0-OpenSSH_9.2p1".to_owned();
    sim.host(
        1,
        Behaviour::Serving(Arc::new(config), stall.clone(), Commands::Forever),
    );
    // With an unknown one it does not.
    let mut other = Sim::new(1, 1);
    let mut config = server();
    config.ident = "SSH-2.0-unheard_of".to_owned();
    other.host(1, Behaviour::Serving(Arc::new(config), stall, Commands::Forever));
    for (sim, ended, left) in [(&mut sim, 6, &[RequestId(1)][..]), (&mut other, 5, &[])] {
        sim.run_for(Duration::from_secs(5));
        sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
        sim.run();
        assert_eq!(sim.outcome(1).status, Status::Cancelled);
        assert_eq!(sim.finished(1).0, Duration::from_secs(ended));
        assert_eq!(sim.hub.left_running(), left);
    }
}
