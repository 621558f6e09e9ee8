//! What the flight recorder shows of a connection: exactly which lines, at which times.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Reason, RequestId};
use mux_ssh::server::Plan;

use crate::sim::{Behaviour, Commands, Sim, good, server};

/// A login at 20 ms, up to a command that says nothing.
const LOGIN: [&str; 15] = [
    "+0.000000 begin",
    "+0.000000 prepared keys=1",
    "+0.000000 connect",
    "+0.020000 connected",
    "+0.030000 reached-banner",
    "+0.050000 reached-kex",
    "+0.050000 host-key",
    "+0.050000 judged",
    "+0.050000 learned",
    "+0.050000 reached-auth",
    "+0.050000 sign identity=0",
    "+0.050000 signed",
    "+0.070000 authenticated",
    "+0.070000 reached-ready",
    "+0.070000 opened channel=0",
];

fn serving(commands: Commands) -> Behaviour {
    Behaviour::Serving(Arc::new(server()), Plan::new(), commands)
}

/// A host that behaves like this fails, and these are the lines about it, each time that it does.
fn check(behaviour: Behaviour, lines: &[&[&str]]) {
    let mut sim = Sim::new(4, 1);
    sim.hub.show_flights();
    sim.host(1, behaviour);
    sim.run();
    let mut shown = Vec::new();
    while let Some((request, host, flight)) = sim.hub.poll_flight() {
        assert_eq!((request, host.as_str()), (RequestId(1), "host1"));
        shown.push(flight.lines());
    }
    assert_eq!(shown, lines);
}

#[test]
fn a_connection_that_breaks_shows_what_went_before() {
    let end = ["+0.070000 channel-failed channel=0", "+0.070000 broken"];
    let lines = [LOGIN.as_slice(), &end].concat();
    check(serving(Commands::Breaks), &[&lines]);
}

#[test]
fn a_host_that_is_silent_shows_how_far_it_came() {
    check(Behaviour::Dropping, &[&LOGIN[..3]]);
}

#[test]
fn a_command_that_ends_badly_is_no_error_of_its_connection() {
    check(serving(Commands::Echo(7)), &[]);
    check(good(), &[]);
}

#[test]
fn nothing_is_kept_for_nobody() {
    let mut sim = Sim::new(4, 1);
    sim.host(1, Behaviour::Dropping);
    sim.run();
    assert!(sim.hub.poll_flight().is_none());
}

#[test]
fn what_is_under_way_can_be_looked_at() {
    let mut sim = Sim::new(4, 2);
    sim.host(1, serving(Commands::Forever));
    sim.host(2, Behaviour::Mute);
    sim.run_for(Duration::from_secs(1));
    let flights = sim.hub.flights();
    let shown: Vec<(&str, Vec<String>)> = flights
        .iter()
        .map(|(_, host, flight)| (*host, flight.lines()))
        .collect();
    assert_eq!(
        shown,
        [
            ("host1", LOGIN.map(str::to_owned).to_vec()),
            (
                "host2",
                LOGIN[..4].iter().map(|line| (*line).to_owned()).collect()
            )
        ]
    );
    sim.hub
        .cancel(sim.now, &mut sim.net, RequestId(1), Reason::Interrupted);
    let flights = sim.hub.flights();
    assert_eq!(flights[0].2.lines().last().unwrap(), "+1.000000 cancel");
}
