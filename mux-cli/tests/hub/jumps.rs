//! Targets behind jump hosts: one connection to each of those, whatever lies behind it, and what its end means to all.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Event, Failure, Judgement, Reason, Request, RequestId, Route, Stage, Status};
use mux_ssh::server::{Act, Authorized, Moment, Plan, Point};

use super::sim::{Behaviour, Commands, RTT, Sim, address, good, server};

/// Ids of jump hosts are beyond those of targets.
const GATE: u32 = 1000;

/// A server that connects to others for its clients.
pub(crate) fn gate() -> Behaviour {
    gate_that(Plan::new())
}

pub(crate) fn gate_that(plan: Plan) -> Behaviour {
    let mut config = server();
    config.forwards = true;
    Behaviour::Serving(Arc::new(config), plan, Commands::Echo(0))
}

pub(crate) fn gate_address(number: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, number], 22))
}

/// Puts a jump host there, reached by this way, and returns the way behind it.
pub(crate) fn hop(sim: &mut Sim, number: u8, behaviour: Behaviour, route: Route) -> Route {
    let at = gate_address(number);
    sim.behave(at, behaviour);
    let id = GATE + u32::from(number);
    let request = Request {
        host: format!("gate{number}"),
        route,
        ..sim.request(id, &at.ip().to_string())
    };
    sim.hub.add_hop(request);
    Route::Jump(RequestId(id))
}

pub(crate) fn target(sim: &mut Sim, id: u32, behaviour: Behaviour, route: &Route) -> Request {
    let at = address(u8::try_from(id).unwrap());
    sim.behave(at, behaviour);
    Request {
        route: route.clone(),
        ..sim.request(id, &at.ip().to_string())
    }
}

/// `count` targets behind one jump host.
fn behind(count: u32, fanout: usize, behaviour: Behaviour) -> Sim {
    let mut sim = Sim::new(fanout, usize::try_from(count).unwrap());
    let route = hop(&mut sim, 1, behaviour, Route::Direct);
    for id in 0..count {
        let request = target(&mut sim, id, good(), &route);
        sim.submit(request);
    }
    sim
}

fn failure(sim: &Sim, id: u32) -> (Status, Failure) {
    let outcome = sim.outcome(id);
    (outcome.status, outcome.error.clone().unwrap())
}

pub(crate) fn assert_failed(sim: &Sim, id: u32, status: Status, words: &str) {
    let (found, failure) = failure(sim, id);
    assert_eq!((found, failure.words().as_str()), (status, words));
}

pub(crate) fn connects(sim: &Sim) -> Vec<SocketAddr> {
    sim.net.connects.iter().map(|(_, to)| *to).collect()
}

#[test]
fn a_target_is_reached_through_its_jump_host() {
    let mut sim = behind(1, 10, gate());
    sim.run();
    assert_eq!(sim.outcome(0).status, Status::Ok);
    assert_eq!(connects(&sim), [gate_address(1)]);
    assert_eq!(sim.net.forwarded, [address(0)]);
    assert_eq!(sim.net.commands, ["hostname"]);
}

#[test]
fn two_hundred_targets_share_one_connection_however_many_run_at_once() {
    for fanout in [1, 64, 200] {
        let mut sim = behind(200, fanout, gate());
        sim.run();
        assert!(
            (0..200).all(|id| sim.outcome(id).status == Status::Ok),
            "{fanout}"
        );
        assert_eq!(connects(&sim), [gate_address(1)]);
        assert_eq!(sim.net.forwarded.len(), 200);
    }
}

#[test]
fn jumps_nest_to_any_depth() {
    let mut sim = Sim::new(10, 1);
    let mut route = Route::Direct;
    for number in 1..=5 {
        route = hop(&mut sim, number, gate(), route);
    }
    let request = target(&mut sim, 0, good(), &route);
    sim.submit(request);
    sim.run();
    assert_eq!(sim.outcome(0).status, Status::Ok);
    assert_eq!(connects(&sim), [gate_address(1)]);
    let inner: Vec<_> = (2..=5).map(gate_address).chain([address(0)]).collect();
    assert_eq!(sim.net.forwarded, inner);
}

/// The target's server has been reached when its channel is confirmed, and that is asked for in the flight of the login.
#[test]
fn each_hop_adds_the_round_trips_of_its_handshake_and_no_more() {
    let took = |depth: u8| {
        let mut sim = Sim::new(10, 1);
        let mut route = Route::Direct;
        for number in 1..=depth {
            route = hop(&mut sim, number, gate(), route);
        }
        let request = target(&mut sim, 0, good(), &route);
        sim.submit(request);
        sim.run();
        assert_eq!(sim.outcome(0).status, Status::Ok);
        sim.finished(0).0
    };
    // TCP, key exchange, login with the command; half a round trip is that the server's first words are on their way
    // before ours have arrived.
    let direct = took(0);
    assert_eq!(direct, 7 * RTT / 2);
    for depth in 1..4 {
        // Key exchange, and login with the opening of the next channel. There is no TCP to wait for: whoever connects to
        // what lies behind it is right beside it here.
        assert_eq!(took(depth), direct + 2 * RTT * u32::from(depth), "{depth}");
    }
}

#[test]
fn a_jump_host_that_cannot_be_reached_fails_all_behind_it_with_one_reason_and_one_attempt() {
    let mut sim = behind(200, 64, Behaviour::Refusing);
    sim.run();
    for id in 0..200 {
        assert_failed(
            &sim,
            id,
            Status::Unreachable,
            "via gate1: tcp: connect to 198.51.100.1:22: connection refused",
        );
    }
    assert_eq!(connects(&sim), [gate_address(1)]);
}

#[test]
fn a_login_that_a_jump_host_refuses_is_its_own() {
    let mut config = server();
    config.authorized = Authorized::Nobody;
    let refusing = Behaviour::Serving(Arc::new(config), Plan::new(), Commands::Echo(0));
    let mut sim = Sim::new(10, 2);
    let outer = hop(&mut sim, 1, gate(), Route::Direct);
    let inner = hop(&mut sim, 2, refusing, outer.clone());
    for (id, route) in [(0, &inner), (1, &outer)] {
        let request = target(&mut sim, id, good(), route);
        sim.submit(request);
    }
    sim.run();
    let (status, failure) = failure(&sim, 0);
    assert_eq!(
        (status, failure.via.as_deref(), failure.stage),
        (Status::Auth, Some("gate2"), Stage::Auth)
    );
    assert!(failure.message.starts_with("me@gate2: "), "{failure:?}");
    assert_eq!(sim.outcome(1).status, Status::Ok);
}

#[test]
fn a_host_key_that_is_refused_names_the_host_whose_it_is() {
    let mut sim = behind(1, 10, gate());
    sim.judgement = Judgement::Refuse("host key unknown".to_owned());
    sim.run();
    assert_failed(&sim, 0, Status::HostKey, "via gate1: hostkey: host key unknown");

    let mut sim = behind(1, 10, gate());
    sim.judgement = Judgement::Refuse("host key unknown".to_owned());
    sim.first_judgements.push_back(Judgement::Accept);
    sim.run();
    assert_failed(&sim, 0, Status::HostKey, "hostkey: host key unknown");
}

#[test]
fn what_lies_behind_and_is_not_to_be_had_fails_alone() {
    let mut sim = Sim::new(10, 3);
    let route = hop(&mut sim, 1, gate(), Route::Direct);
    for (id, behaviour) in [(0, Behaviour::Refusing), (1, good()), (2, Behaviour::Dropping)] {
        let request = target(&mut sim, id, behaviour, &route);
        sim.submit(request);
    }
    sim.run();
    assert_failed(
        &sim,
        0,
        Status::Unreachable,
        "tcp: gate1 could not connect to 192.0.2.0 port 22: Connection refused",
    );
    assert_eq!(sim.outcome(1).status, Status::Ok);
    assert_failed(
        &sim,
        2,
        Status::Unreachable,
        "tcp: no answer from 192.0.2.2 port 22 within 10s",
    );
}

#[test]
fn a_jump_host_that_forwards_nothing_says_what_to_look_at() {
    let mut sim = behind(2, 10, good());
    sim.run();
    for id in 0..2 {
        let (status, failure) = failure(&sim, id);
        assert_eq!(status, Status::Unreachable);
        let words = failure.words();
        assert!(
            words.starts_with("via gate1: channel: may not connect to"),
            "{words}"
        );
        assert!(words.contains("AllowTcpForwarding"), "{words}");
    }
}

/// The time of the target covers the chain; that of the login, and whatever else stands still, does not count.
#[test]
fn the_connect_timeout_of_a_target_covers_its_chain() {
    for (behaviour, words) in [
        (Behaviour::Dropping, "via gate1: tcp: no answer within 3s"),
        (
            Behaviour::Mute,
            "via gate1: banner: connected, but no SSH identification within 3s",
        ),
        (
            gate_that(Plan::new().with(Point::Before(Moment::KexReply, 1), Act::Stall)),
            "via gate1: kex: key exchange not finished within 3s",
        ),
    ] {
        let mut sim = Sim::new(10, 1);
        let outer = hop(&mut sim, 1, behaviour, Route::Direct);
        let inner = hop(&mut sim, 2, gate(), outer);
        let mut request = target(&mut sim, 0, good(), &inner);
        request.connect_timeout = Duration::from_secs(3);
        sim.submit(request);
        sim.run();
        assert_failed(&sim, 0, Status::Unreachable, words);
        assert_eq!(sim.finished(0).0, Duration::from_secs(3));
    }
}

#[test]
fn a_chain_whose_steps_are_all_slow_is_too_slow_together() {
    let run = |limit: Duration| {
        let mut sim = Sim::new(10, 1);
        let outer = hop(&mut sim, 1, gate(), Route::Direct);
        let inner = hop(&mut sim, 2, gate(), outer);
        let mut request = target(&mut sim, 0, good(), &inner);
        request.connect_timeout = limit;
        sim.submit(request);
        sim.run();
        sim
    };
    // Of the seven and a half round trips three are logins.
    assert_eq!(run(5 * RTT).outcome(0).status, Status::Ok);
    let late = run(4 * RTT);
    assert_failed(
        &late,
        0,
        Status::Unreachable,
        "kex: key exchange not finished within 0.08s",
    );
}

#[test]
fn a_login_at_a_jump_host_has_its_own_time_and_takes_none_of_the_targets() {
    let stalled = gate_that(Plan::new().with(Point::After(Moment::NewKeys, 1), Act::Stall));
    let mut sim = Sim::new(10, 1);
    let outer = hop(&mut sim, 1, stalled, Route::Direct);
    let mut request = target(&mut sim, 0, good(), &outer);
    request.connect_timeout = Duration::from_secs(3);
    sim.submit(request);
    sim.run();
    assert_failed(
        &sim,
        0,
        Status::Auth,
        "via gate1: auth: authentication not finished within 60s",
    );
}

#[test]
fn a_question_at_a_jump_host_stops_everybodys_time() {
    let mut sim = Sim::new(10, 1);
    let outer = hop(&mut sim, 1, gate(), Route::Direct);
    let request = target(&mut sim, 0, good(), &outer);
    sim.agent_hangs = true;
    sim.submit(request);
    sim.run_for(Duration::from_secs(1));
    let ticket = sim.waiting[0];
    assert_eq!(ticket.request, RequestId(GATE + 1));
    sim.answer(ticket, mux_cli::hub::Answer::Asking(true));
    sim.run_for(Duration::from_secs(600));
    assert!(!sim.hub.is_idle());
    assert_eq!(sim.log.iter().filter(|(_, event)| is_end(event)).count(), 0);
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::Finished { .. })
}

#[test]
fn a_jump_host_counts_as_one_handshake_and_those_behind_it_as_their_own() {
    let mut sim = behind(50, 50, gate());
    // Some are reached from here as well, at the same address.
    for id in 50..60 {
        let request = Request {
            host: format!("gate1-{id}"),
            ..sim.request(id, &gate_address(1).ip().to_string())
        };
        sim.submit(request);
    }
    sim.run();
    assert!((0..60).all(|id| sim.outcome(id).status == Status::Ok));
    assert!(sim.net.most_open <= 10, "{}", sim.net.most_open);
}

#[test]
fn a_jump_host_that_dies_while_commands_run_leaves_each_in_the_state_it_was_in() {
    let mut sim = Sim::new(10, 3);
    let breaking = Behaviour::Serving(
        Arc::new({
            let mut config = server();
            config.forwards = true;
            config
        }),
        Plan::new(),
        Commands::Breaks,
    );
    let route = hop(&mut sim, 1, breaking, Route::Direct);
    for (id, behaviour) in [
        (
            0,
            Behaviour::Serving(Arc::new(server()), Plan::new(), Commands::Forever),
        ),
        (1, Behaviour::Mute),
        (2, Behaviour::Dropping),
    ] {
        let request = target(&mut sim, id, behaviour, &route);
        sim.submit(request);
    }
    sim.run_for(Duration::from_secs(2));
    // A command on the jump host itself, over another connection, is what breaks that one; the shared one is cut here.
    let cut = sim.now - sim.start;
    sim.net.cut(gate_address(1));
    sim.run();
    assert_failed(
        &sim,
        0,
        Status::Unknown,
        "command: connection lost, may have run: via gate1: channel: connection lost: closed by the server",
    );
    assert!((0..3).all(|id| sim.finished(id).0 == cut), "all are told at once");
    assert_eq!(sim.outcome(1).status, Status::Unreachable);
    let (_, failure) = failure(&sim, 1);
    assert!(
        failure.words().contains("via gate1: channel: connection lost"),
        "{failure:?}"
    );
    assert_failed(
        &sim,
        2,
        Status::Unreachable,
        "via gate1: channel: connection lost: closed by the server",
    );
}

#[test]
fn a_jump_host_that_falls_silent_is_given_up_after_its_probes_and_so_is_what_runs_behind_it() {
    let mut sim = Sim::new(10, 2);
    let route = hop(&mut sim, 1, gate(), Route::Direct);
    for id in 0..2 {
        let behaviour = Behaviour::Serving(Arc::new(server()), Plan::new(), Commands::Forever);
        let request = target(&mut sim, id, behaviour, &route);
        sim.submit(request);
    }
    sim.run_for(Duration::from_secs(2));
    sim.net.mute(gate_address(1));
    sim.run();
    for id in 0..2 {
        let (status, failure) = failure(&sim, id);
        assert_eq!((status, failure.stage), (Status::Unknown, Stage::Command));
        assert!(
            failure.message.starts_with("connection lost, may have run: "),
            "{failure:?}"
        );
        // Three probes of 15 s, for the jump host and for what is inside alike.
        assert!(sim.finished(id).0 < Duration::from_secs(120));
    }
    assert_eq!(sim.net.open(), 0);
}

#[test]
fn a_jump_host_that_was_lost_is_connected_to_again_for_those_who_come_later() {
    let mut sim = Sim::new(1, 2);
    let route = hop(&mut sim, 1, gate(), Route::Direct);
    let forever = Behaviour::Serving(Arc::new(server()), Plan::new(), Commands::Forever);
    for (id, behaviour) in [(0, forever), (1, good())] {
        let request = target(&mut sim, id, behaviour, &route);
        sim.submit(request);
    }
    sim.run_for(Duration::from_secs(2));
    sim.net.cut(gate_address(1));
    sim.run();
    assert_eq!(sim.outcome(0).status, Status::Unknown);
    assert_eq!(sim.outcome(1).status, Status::Ok);
    assert_eq!(connects(&sim), [gate_address(1); 2]);
}

#[test]
fn a_jump_host_has_the_retries_of_the_run_and_those_behind_it_wait() {
    let mut sim = Sim::new(10, 2);
    let at = gate_address(1);
    let request = Request {
        host: "gate1".to_owned(),
        retries: 2,
        ..sim.request(GATE + 1, &at.ip().to_string())
    };
    sim.hub.add_hop(request);
    sim.behave(at, Behaviour::Refusing);
    for id in 0..2 {
        let mut request = target(&mut sim, id, good(), &Route::Jump(RequestId(GATE + 1)));
        request.retries = 2;
        sim.submit(request);
    }
    sim.run_for(Duration::from_millis(100));
    sim.behave(at, gate());
    sim.run();
    assert!((0..2).all(|id| sim.outcome(id).status == Status::Ok));
    assert_eq!(connects(&sim), [at; 2]);
}

#[test]
fn a_cancelled_run_stops_what_runs_behind_a_jump_host_and_leaves_nothing() {
    for (commands, left) in [(Commands::UntilTerm, 0), (Commands::Forever, 1)] {
        let mut sim = Sim::new(1, 2);
        let route = hop(&mut sim, 1, gate(), Route::Direct);
        for id in 0..2 {
            let behaviour = Behaviour::Serving(Arc::new(server()), Plan::new(), commands);
            let request = target(&mut sim, id, behaviour, &route);
            sim.submit(request);
        }
        sim.run_for(Duration::from_secs(1));
        sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
        sim.run();
        assert_eq!(sim.outcome(0).status, Status::Cancelled);
        assert_eq!(sim.outcome(1).status, Status::Skipped);
        assert_eq!(sim.hub.left_running().len(), left);
        sim.run_for(Duration::from_secs(10));
        assert_eq!(sim.net.open(), 0);
    }
}

#[test]
fn a_cancelled_run_waits_for_no_jump_host() {
    for behaviour in [
        Behaviour::Dropping,
        Behaviour::Mute,
        gate_that(Plan::new().with(Point::After(Moment::NewKeys, 1), Act::Stall)),
    ] {
        let mut sim = behind(3, 10, behaviour);
        sim.run_for(Duration::from_secs(1));
        sim.hub.cancel_all(sim.now, &mut sim.net, Reason::Interrupted);
        assert!(sim.hub.is_idle());
        sim.run_for(Duration::from_secs(1));
        assert_eq!(sim.outcome(2).status, Status::Cancelled);
        assert_eq!(sim.net.open(), 0);
    }
}

#[test]
fn no_event_bears_the_id_of_a_jump_host() {
    let mut sim = behind(3, 10, gate());
    sim.run();
    for (_, event) in &sim.log {
        let request = match event {
            Event::Stage { request, .. }
            | Event::Output { request, .. }
            | Event::EnvRefused { request, .. }
            | Event::ViaOpenSsh { request, .. }
            | Event::Finished { request, .. } => Some(*request),
            Event::Notice { request, .. } => *request,
        };
        assert!(request.is_none_or(|request| request.0 < GATE), "{event:?}");
    }
}

#[test]
fn a_login_that_went_wrong_for_want_of_patience_is_made_again_for_all_that_wait() {
    // As dropbear: it ends the connection over what was sent ahead of a login that it refuses.
    let mut config = server();
    config.forwards = true;
    config.ident = "SSH-2.0-dropbear_2022.83".to_owned();
    let second = super::sim::key();
    config.authorized = Authorized::Keys(vec![second.public().clone()]);
    let plan = Plan::new().with(Point::After(Moment::AuthFailure, 1), Act::Close);
    let mut sim = Sim::new(10, 2);
    sim.keys.push(second);
    let behaviour = Behaviour::Serving(Arc::new(config.clone()), plan, Commands::Echo(0));
    let route = hop(&mut sim, 1, behaviour, Route::Direct);
    for id in 0..2 {
        let request = target(&mut sim, id, good(), &route);
        sim.submit(request);
    }
    sim.run_for(2 * RTT);
    let patient = Behaviour::Serving(Arc::new(config), Plan::new(), Commands::Echo(0));
    sim.behave(gate_address(1), patient);
    sim.run();
    assert!(
        (0..2).all(|id| sim.outcome(id).status == Status::Ok),
        "{:?}",
        sim.log
    );
    assert_eq!(connects(&sim).len(), 2);
}

#[test]
fn a_question_about_a_jump_hosts_key_is_asked_however_many_wait_behind_it() {
    let mut sim = behind(200, 10, gate());
    sim.first_judgements.push_back(Judgement::Later);
    sim.run_for(Duration::from_secs(3600));
    assert!(sim.hub.waits_for_judgements());
    assert_eq!((sim.looked_at_later.len(), sim.net.open()), (1, 0));
    sim.look_now(|_| Judgement::Accept);
    assert!(!sim.hub.waits_for_judgements());
    sim.run();
    assert!((0..200).all(|id| sim.outcome(id).status == Status::Ok));
    assert_eq!(connects(&sim), [gate_address(1); 2]);
}

#[test]
fn questions_about_targets_keys_are_asked_while_their_jump_host_waits_for_nobody() {
    let mut sim = behind(20, 10, gate());
    sim.judgement = Judgement::Later;
    sim.first_judgements.push_back(Judgement::Accept);
    sim.run_for(Duration::from_secs(3600));
    assert!(sim.hub.waits_for_judgements());
    assert_eq!(sim.looked_at_later.len(), 20);
    sim.judgement = Judgement::Accept;
    sim.look_now(|_| Judgement::Accept);
    sim.run();
    assert!((0..20).all(|id| sim.outcome(id).status == Status::Ok));
    assert_eq!(connects(&sim), [gate_address(1)]);
}

#[test]
fn a_jump_host_whose_key_nobody_accepts_fails_all_behind_it() {
    let mut sim = behind(20, 10, gate());
    sim.first_judgements.push_back(Judgement::Later);
    sim.run_for(Duration::from_secs(60));
    sim.look_now(|_| Judgement::Refuse("host key not accepted".to_owned()));
    sim.run();
    for id in 0..20 {
        assert_failed(
            &sim,
            id,
            Status::HostKey,
            "via gate1: hostkey: host key not accepted",
        );
    }
}
