//! Who may start when.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Stage, Status};
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::sim::{Behaviour, Commands, RTT, Sim, address, good, server};

#[test]
fn a_command_runs_and_its_outcome_says_how_long_each_stage_took() {
    let mut sim = Sim::new(4, 1);
    sim.host(1, good());
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!(
        (outcome.status, outcome.rc, outcome.attempts),
        (Status::Ok, Some(0), 1)
    );
    assert_eq!(outcome.timings.tcp, Some(RTT));
    assert_eq!(outcome.timings.dns, None);
}

#[test]
fn the_fanout_bounds_how_many_are_under_way() {
    let mut sim = Sim::new(3, 9);
    for id in 1..=9 {
        sim.host(id, good());
    }
    assert_eq!(sim.net.connects.len(), 3);
    sim.run();
    assert!((1..=9).all(|id| sim.outcome(id).status == Status::Ok));
    let last = sim.log.last().unwrap().0;
    assert!(
        last >= 3 * 3 * RTT,
        "nine hosts in threes take three turns, not {last:?}"
    );
}

#[test]
fn silent_hosts_give_their_place_away_after_a_second() {
    let mut sim = Sim::new(8, 30);
    for id in 1..=20 {
        sim.host(id, Behaviour::Dropping);
    }
    for id in 21..=30 {
        sim.host(id, good());
    }
    sim.run();
    for id in 21..=30 {
        let (at, outcome) = sim.finished(id);
        assert_eq!(outcome.status, Status::Ok);
        assert!(at < Duration::from_secs(4), "host {id} ended only after {at:?}");
    }
    // 8 a second start: the last of the dead ones begins after 2 s and has its 10 s.
    let last = sim.log.last().unwrap().0;
    assert!(last <= Duration::from_secs(13), "{last:?}");
}

#[test]
fn an_endpoint_sees_at_most_eight_unauthenticated_connections_and_nobody_times_out_in_its_queue() {
    let mut sim = Sim::new(64, 40);
    sim.behave(address(1), good());
    for id in 1..=40 {
        let mut request = sim.request(id, "192.0.2.1");
        // Five turns of three round trips and more: longer than anyone's own time.
        request.connect_timeout = 4 * RTT;
        sim.submit(request);
    }
    assert_eq!(sim.net.connects.len(), 8);
    sim.run();
    assert!(sim.net.most_open <= 8, "{} at once", sim.net.most_open);
    assert!((1..=40).all(|id| sim.outcome(id).status == Status::Ok));
}

#[test]
fn those_who_waited_together_do_not_start_together() {
    let mut sim = Sim::new(64, 20);
    sim.behave(address(1), good());
    for id in 1..=20 {
        let request = sim.request(id, "192.0.2.1");
        sim.submit(request);
    }
    sim.run();
    let mut starts: Vec<_> = sim.net.connects[8..].iter().map(|(at, _)| *at).collect();
    starts.dedup();
    assert!(starts.len() > 5, "{starts:?}");
}

#[test]
fn the_next_address_of_a_name_is_tried_beside_a_silent_one() {
    let mut sim = Sim::new(4, 1);
    sim.behave(address(1), Behaviour::Dropping);
    sim.behave(address(2), good());
    sim.names.insert("web".to_owned(), vec![address(1), address(2)]);
    let request = sim.request(1, "web");
    sim.submit(request);
    sim.run();
    assert_eq!(sim.outcome(1).status, Status::Ok);
    assert_eq!(sim.outcome(1).attempts, 2);
    let starts: Vec<_> = sim.net.connects.clone();
    assert_eq!(
        starts,
        [
            (Duration::ZERO, address(1)),
            (Duration::from_millis(250), address(2))
        ]
    );
}

#[test]
fn a_refused_address_gives_way_at_once_and_the_last_one_names_itself() {
    let mut sim = Sim::new(4, 1);
    sim.behave(address(1), Behaviour::Refusing);
    sim.behave(address(2), Behaviour::Refusing);
    sim.names.insert("web".to_owned(), vec![address(1), address(2)]);
    let request = sim.request(1, "web");
    sim.submit(request);
    sim.run();
    assert_eq!(sim.net.connects[1], (RTT, address(2)));
    let outcome = sim.outcome(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((outcome.status, error.stage), (Status::Unreachable, Stage::Tcp));
    assert_eq!(error.message, "connect to 192.0.2.2:22: connection refused");
}

#[test]
fn an_unknown_name_fails_in_dns() {
    let mut sim = Sim::new(4, 1);
    let request = sim.request(1, "nosuch");
    sim.submit(request);
    sim.run();
    let outcome = sim.outcome(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((outcome.status, error.stage), (Status::Unreachable, Stage::Dns));
    assert_eq!(
        error.message,
        "could not resolve nosuch: Name or service not known"
    );
    assert_eq!(outcome.attempts, 0);
}

/// A hundred hosts: ten each of five kinds of trouble, spread among fifty good ones. When the last good one ended.
fn troubled(fanout: usize, trouble: bool) -> (Duration, Sim) {
    let mut sim = Sim::new(fanout, 100);
    let config = Arc::new(server());
    let serving = |plan, commands| Behaviour::Serving(Arc::clone(&config), plan, commands);
    for id in 1..=100 {
        let behaviour = match id % 10 {
            _ if !trouble && id % 10 < 5 => continue,
            0 => Behaviour::Refusing,
            1 => Behaviour::Dropping,
            2 => Behaviour::Mute,
            3 => {
                let stall = Plan::new().with(Point::Before(Moment::AuthSuccess, 1), Act::Stall);
                serving(stall, Commands::Echo(0))
            }
            4 => serving(Plan::new(), Commands::Breaks),
            _ => serving(Plan::new(), Commands::Echo(0)),
        };
        sim.host(id, behaviour);
    }
    sim.run();
    let good = (1..=100).filter(|id| id % 10 >= 5);
    let last = good.map(|id| {
        let (at, outcome) = sim.finished(id);
        assert_eq!(outcome.status, Status::Ok);
        at
    });
    (last.max().unwrap(), sim)
}

#[test]
fn every_kind_of_trouble_is_named_and_costs_the_good_hosts_nothing() {
    let (alone, _) = troubled(100, false);
    let (among, sim) = troubled(100, true);
    assert_eq!(among, alone);
    let stages = [
        (0, Status::Unreachable, Stage::Tcp),
        (1, Status::Unreachable, Stage::Tcp),
        (2, Status::Unreachable, Stage::Banner),
        (3, Status::Auth, Stage::Auth),
        (4, Status::Unknown, Stage::Command),
    ];
    for (digit, status, stage) in stages {
        for id in (1..=100).filter(|id| id % 10 == digit) {
            let outcome = sim.outcome(id);
            assert_eq!(
                (outcome.status, outcome.error.as_ref().unwrap().stage),
                (status, stage),
                "host {id}"
            );
        }
    }
    let end = sim.log.last().unwrap().0;
    assert!(
        end > Duration::from_secs(60) && end < Duration::from_secs(61),
        "the login timeout is the longest: {end:?}"
    );
}

#[test]
fn under_a_small_fanout_silent_hosts_hold_nobody_up_for_long() {
    let (last, sim) = troubled(8, true);
    // Thirty silent hosts in eight places, each for a second.
    assert!(last < Duration::from_secs(5), "{last:?}");
    assert!(sim.log.last().unwrap().0 < Duration::from_secs(66));
}

#[test]
fn nobody_fails_for_want_of_descriptors_while_others_have_some() {
    let mut sim = Sim::new(16, 40);
    sim.net.most_links = Some(3);
    for id in 1..=40 {
        sim.host(id, good());
    }
    sim.run();
    for id in 1..=40 {
        let outcome = sim.outcome(id);
        assert_eq!(
            (outcome.status, outcome.attempts),
            (Status::Ok, 1),
            "{id}: {:?}",
            outcome.error
        );
    }
}

#[test]
fn without_a_descriptor_to_wait_for_it_is_said_what_to_raise() {
    let mut sim = Sim::new(2, 3);
    sim.net.most_links = Some(0);
    for id in 1..=3 {
        sim.host(id, good());
    }
    sim.run();
    for id in 1..=3 {
        let outcome = sim.outcome(id);
        let message = "could not connect within 10s: too many open files; raise ulimit -n or lower -f";
        assert_eq!(outcome.error.as_ref().unwrap().message, message);
        assert_eq!(outcome.status, Status::Unreachable);
    }
}
