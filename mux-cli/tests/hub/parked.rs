//! Hosts whose key a person looks at: what they hold meanwhile, and how they go on.

use std::time::Duration;

use mux_cli::hub::{Judgement, Reason, Stage, Status};

use crate::sim::{Sim, good};

/// Twenty hosts, two at a time, and somebody is asked about the key of each.
fn asked() -> Sim {
    let mut sim = Sim::new(2, 20);
    sim.judgement = Judgement::Later;
    for id in 1..21 {
        sim.host(id, good());
    }
    sim.run_for(Duration::from_secs(3600));
    assert_eq!(sim.looked_at_later.len(), 20);
    sim
}

#[test]
fn all_hosts_of_a_set_turn_up_for_one_question_and_hold_nothing_while_it_stands() {
    let mut sim = asked();
    assert_eq!(sim.connections(), 0);
    assert!(sim.hub.waits_for_judgements());
    assert!(
        sim.hub
            .running()
            .iter()
            .all(|(_, stage, _)| *stage == Stage::HostKey)
    );
    assert!(sim.net.commands.is_empty());
    sim.judgement = Judgement::Accept;
    sim.look_now(|_| Judgement::Accept);
    assert!(!sim.hub.waits_for_judgements());
    sim.run();
    for id in 1..21 {
        let outcome = sim.outcome(id);
        assert_eq!(
            (outcome.status, outcome.attempts),
            (Status::Ok, 2),
            "{id}: {outcome:?}"
        );
    }
    assert_eq!(sim.net.commands.len(), 20);
}

#[test]
fn those_who_go_on_keep_to_the_fanout() {
    let mut sim = asked();
    sim.judgement = Judgement::Accept;
    sim.look_now(|_| Judgement::Accept);
    assert_eq!(sim.connections(), 2);
    sim.run();
}

#[test]
fn each_host_ends_as_its_key_was_judged() {
    let mut sim = asked();
    sim.judgement = Judgement::Accept;
    sim.look_now(|id| match id % 3 {
        0 => Judgement::Refuse("no".to_owned()),
        1 => Judgement::Enough,
        _ => Judgement::Accept,
    });
    sim.run();
    for id in 1..21 {
        let outcome = sim.outcome(id);
        let expected = match id % 3 {
            0 => (Status::HostKey, 1),
            1 => (Status::Ok, 1),
            _ => (Status::Ok, 2),
        };
        assert_eq!((outcome.status, outcome.attempts), expected, "{id}: {outcome:?}");
    }
    // Of those whose key was all that was wanted, nothing else was.
    assert_eq!(sim.net.commands.len(), 7);
}

#[test]
fn whoever_comes_after_the_question_is_asked_about_in_the_next() {
    let mut sim = asked();
    sim.host(21, good());
    assert!(!sim.hub.waits_for_judgements());
    sim.run_for(Duration::from_secs(1));
    assert_eq!(sim.looked_at_later.len(), 21);
    assert!(sim.hub.waits_for_judgements());
}

#[test]
fn a_run_that_is_stopped_waits_for_no_answer() {
    for hold in [true, false] {
        let mut sim = asked();
        sim.look_now(|_| Judgement::Accept);
        match hold {
            true => sim.hub.hold(sim.now, &mut sim.net),
            false => sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted),
        }
        sim.judgement = Judgement::Accept;
        sim.run();
        for id in 1..21 {
            let status = sim.outcome(id).status;
            assert!(
                status == Status::Cancelled || (hold && status == Status::Ok && id <= 2),
                "{id}: {status}"
            );
        }
    }
}

#[test]
fn an_answer_that_comes_too_late_changes_nothing() {
    let mut sim = asked();
    let late = sim.looked_at_later.clone();
    sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
    sim.run();
    sim.looked_at_later = late;
    sim.look_now(|_| Judgement::Accept);
    sim.run();
    assert_eq!(sim.outcome(1).status, Status::Cancelled);
}
