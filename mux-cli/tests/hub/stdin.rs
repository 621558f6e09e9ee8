//! What commands read: when they are given how much, and what is said about how far they came.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Reason, Request, RequestId, Status, Wish};
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::sim::{Behaviour, Commands, RTT, Sim, address, good, server};

/// A command at a host that behaves like this, which reads `input`.
fn start(behaviour: Behaviour, input: Option<&[u8]>) -> Sim {
    let mut sim = Sim::new(1, 1);
    sim.input = input.map(<[u8]>::to_vec);
    sim.behave(address(1), behaviour);
    let request = Request {
        stdin: true,
        ..sim.request(1, "192.0.2.1")
    };
    sim.submit(request);
    sim
}

#[test]
fn without_a_request_nothing_is_asked_for() {
    let mut sim = Sim::new(1, 1);
    sim.host(1, good());
    sim.run();
    assert!(sim.wishes.is_empty() && sim.taken.is_empty(), "{:?}", sim.wishes);
}

#[test]
fn a_small_input_costs_no_round_trip() {
    let mut with = start(good(), Some(b"input\n"));
    with.run();
    let mut without = Sim::new(1, 1);
    without.host(1, good());
    without.run();
    assert_eq!(with.finished(1).0, without.finished(1).0);
    assert_eq!(with.taken, [(RequestId(1), 6, true)]);
}

#[test]
fn ahead_of_the_session_no_more_than_16_kib_are_asked_for() {
    let mut sim = start(good(), Some(&vec![b'x'; 1_000_000]));
    sim.run();
    let ahead: usize = sim
        .wishes
        .iter()
        .filter(|(_, wish)| wish.may_restart)
        .map(|(_, wish)| wish.room)
        .sum();
    assert_eq!(ahead, 16 * 1024);
    let mut place = 0;
    for (_, Wish { position, room, .. }) in &sim.wishes {
        assert_eq!(*position, place, "each byte is asked for once: {:?}", sim.wishes);
        place = (place + *room as u64).min(1_000_000);
    }
}

#[test]
fn a_server_that_takes_no_more_is_given_no_more() {
    let mut sim = start(
        Behaviour::Serving(
            Arc::new(server()),
            Plan::new().with(Point::Before(Moment::WindowAdjust, 1), Act::Stall),
            Commands::Forever,
        ),
        Some(&vec![b'x'; 64_000_000]),
    );
    sim.run_for(Duration::from_secs(5));
    let asked: usize = sim.wishes.iter().map(|(_, wish)| wish.room).sum();
    // The window of the server, and what may wait in the client.
    assert!(asked <= 2 * 1024 * 1024 + 256 * 1024, "{asked} bytes asked for");
}

#[test]
fn an_attempt_that_starts_over_reads_from_the_start() {
    let mut sim = Sim::new(1, 1);
    sim.input = Some(b"0123456789".to_vec());
    sim.behave(address(1), Behaviour::Mute);
    let request = Request {
        stdin: true,
        retries: 1,
        ..sim.request(1, "192.0.2.1")
    };
    sim.submit(request);
    sim.run_for(Duration::from_secs(5));
    sim.behave(address(1), good());
    sim.run();
    let starts: Vec<u32> = sim
        .wishes
        .iter()
        .filter(|(_, wish)| wish.position == 0)
        .map(|(ticket, _)| ticket.attempt)
        .collect();
    assert_eq!(
        (starts.len(), sim.outcome(1).status),
        (2, Status::Ok),
        "{:?}",
        sim.wishes
    );
    // What was sent into the void was not taken.
    assert_eq!(sim.taken, [(RequestId(1), 0, false), (RequestId(1), 10, true)]);
}

#[test]
fn an_input_without_end_does_not_keep_a_command_alive() {
    let mut sim = start(good(), None);
    sim.run();
    assert_eq!(sim.wishes.len(), 1);
    assert_eq!(sim.outcome(1).status, Status::Ok);
    assert!(sim.finished(1).0 <= 5 * RTT, "{:?}", sim.finished(1).0);
}

#[test]
fn a_command_that_is_stopped_is_given_nothing_more() {
    let behaviour = Behaviour::Serving(Arc::new(server()), Plan::new(), Commands::UntilTerm);
    let mut sim = start(behaviour, Some(&vec![b'x'; 4_000_000]));
    sim.run_for(4 * RTT);
    sim.hub
        .cancel(sim.now, &mut sim.net, RequestId(1), Reason::Interrupted);
    let asked = sim.wishes.len();
    sim.run();
    assert_eq!(
        (sim.outcome(1).status, sim.wishes.len()),
        (Status::Cancelled, asked)
    );
}
