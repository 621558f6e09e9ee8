//! Targets behind one jump host among themselves: what one of them does, or is not read, is nothing to the others, and
//! what becomes of their jump host is told to all of them at once.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mux_cli::hub::{Outcome, Route, Stage, Status};
use mux_ssh::server::{Act, Moment, Plan, Point};

use super::jumps::{assert_failed, connects, gate, gate_address, hop, target};
use super::sim::{Behaviour, Commands, RTT, Sim, server};

/// More than all windows between here and there take together.
const MUCH: usize = 8 << 20;

/// The odd one is the first of these.
const TARGETS: u32 = 4;

fn serving(plan: Plan, commands: Commands) -> Behaviour {
    Behaviour::Serving(Arc::new(server()), plan, commands)
}

/// Behind one jump host: one that behaves like this, and some that print much.
fn beside(odd: Behaviour) -> Sim {
    let mut sim = Sim::new(10, usize::try_from(TARGETS).unwrap());
    let route = hop(&mut sim, 1, gate(), Route::Direct);
    for id in 0..TARGETS {
        let behaviour = match id {
            0 => odd.clone(),
            _ => serving(Plan::new(), Commands::Print(MUCH)),
        };
        let mut request = target(&mut sim, id, behaviour, &route);
        request.command_timeout = Some(Duration::from_secs(100));
        sim.submit(request);
    }
    sim
}

#[track_caller]
fn assert_others_ran(sim: &Sim) {
    for id in 1..TARGETS {
        let (at, outcome) = sim.finished(id);
        assert_eq!((outcome.status, sim.printed(id)), (Status::Ok, MUCH), "{id}");
        assert!(at < Duration::from_secs(5), "{at:?}");
    }
    assert_eq!(connects(sim), [gate_address(1)]);
}

#[test]
fn one_whose_output_nobody_takes_holds_up_no_other_and_prints_the_rest_later() {
    let mut sim = beside(serving(Plan::new(), Commands::Print(MUCH)));
    sim.paused.push(0);
    sim.run_for(Duration::from_secs(50));
    assert_others_ran(&sim);
    let printed = sim.printed(0);
    assert!(
        (64 << 10..=2 << 20).contains(&printed),
        "its window and no more: {printed}"
    );
    assert_eq!(sim.hub.running().len(), 1);
    sim.take_all();
    sim.run();
    assert_eq!((sim.outcome(0).status, sim.printed(0)), (Status::Ok, MUCH));
}

/// The others run, and this is what became of the one.
#[track_caller]
fn check_alone(plan: Plan, commands: Commands, status: Status, stage: Stage, words: &str) {
    let mut sim = beside(serving(plan, commands));
    sim.run();
    assert_others_ran(&sim);
    let Outcome {
        status: found, error, ..
    } = sim.outcome(0);
    let error = error.as_ref().unwrap();
    assert_eq!((*found, error.stage), (status, stage), "{error:?}");
    assert!(error.message.starts_with(words), "{error:?}");
}

#[test]
fn one_that_dies_dies_alone() {
    check_alone(
        Plan::new(),
        Commands::Breaks,
        Status::Unknown,
        Stage::Command,
        "connection lost, may have run: closed by the server",
    );
    check_alone(
        Plan::new().with(Point::After(Moment::KexInit, 1), Act::Close),
        Commands::Echo(0),
        Status::Unreachable,
        Stage::Kex,
        "closed by the server",
    );
}

#[test]
fn one_that_stalls_stalls_alone() {
    check_alone(
        Plan::new(),
        Commands::Forever,
        Status::Timeout,
        Stage::Command,
        "not finished within 100s",
    );
    check_alone(
        Plan::new().with(Point::Before(Moment::KexReply, 1), Act::Stall),
        Commands::Echo(0),
        Status::Unreachable,
        Stage::Kex,
        "key exchange not finished within 10s",
    );
    check_alone(
        Plan::new().with(Point::Before(Moment::KexReply, 1), Act::NeverRead),
        Commands::Echo(0),
        Status::Unreachable,
        Stage::Kex,
        "key exchange not finished within 10s",
    );
}

#[test]
fn one_that_floods_is_thrown_out_alone() {
    // Data for a channel whose window is full: nobody takes any.
    let mut data = vec![94, 0, 0, 0, 0, 0, 0, 0x40, 0];
    data.resize(9 + 0x4000, b'x');
    let flood = Act::Flood {
        payload: Bytes::from(data),
        times: 1000,
    };
    let plan = Plan::new().with(Point::After(Moment::OpenConfirmation, 1), flood);
    let mut sim = beside(serving(plan, Commands::Forever));
    sim.paused.push(0);
    sim.run();
    assert_others_ran(&sim);
    assert_failed(
        &sim,
        0,
        Status::Unknown,
        "command: connection lost, may have run: the server broke the SSH protocol: more output than allowed",
    );
    check_alone(
        Plan::new().with(
            Point::Before(Moment::Ident, 1),
            Act::Raw(Bytes::from(vec![b'x'; 1 << 20])),
        ),
        Commands::Echo(0),
        Status::Unreachable,
        Stage::Banner,
        "before its SSH identification: the server broke the SSH protocol: too much text before",
    );
}

/// Whatever each of them was doing, at any depth.
#[test]
fn a_jump_host_that_dies_is_named_to_all_behind_it_in_the_same_moment() {
    let mut sim = Sim::new(100, 40);
    let outer = hop(&mut sim, 1, gate(), Route::Direct);
    let inner = hop(&mut sim, 2, gate(), outer.clone());
    for id in 0..40 {
        let behaviour = match id % 4 {
            0 | 1 => serving(Plan::new(), Commands::Forever),
            2 => Behaviour::Mute,
            _ => Behaviour::Dropping,
        };
        let route = if id % 2 == 0 { &outer } else { &inner };
        let request = target(&mut sim, id, behaviour, route);
        sim.submit(request);
    }
    sim.run_for(Duration::from_secs(2));
    let cut = sim.now - sim.start;
    sim.net.cut(gate_address(1));
    sim.run();
    for id in 0..40 {
        assert!(sim.finished(id).0 <= cut + RTT, "{id}: {:?}", sim.finished(id));
        let lost = "channel: connection lost: closed by the server";
        let gone = match id % 2 {
            0 => format!("via gate1: {lost}"),
            // What came to gate2 by way of gate1.
            _ => format!("via gate2: channel: connection lost: via gate1: {lost}"),
        };
        let (status, words) = match id % 4 {
            0 | 1 => (
                Status::Unknown,
                format!("command: connection lost, may have run: {gone}"),
            ),
            2 => (
                Status::Unreachable,
                format!("banner: before its SSH identification: {gone}"),
            ),
            _ => (Status::Unreachable, gone),
        };
        assert_failed(&sim, id, status, &words);
    }
    assert_eq!(sim.net.open(), 0);
}
