//! What is tried again, and what a failure is called.

use std::sync::Arc;

use mux_cli::hub::{Judgement, KeyId, MissingStatus, Request, Stage, Status};
use mux_ssh::algorithms::KeyType;
use mux_ssh::server::{Act, Authorized, Moment, Plan, Point, ServerConfig};
use mux_ssh::transport::{HostKey, ServerMemory};

use crate::sim::{Behaviour, Commands, RTT, Sim, address, good, key, server};

fn serving(config: ServerConfig, commands: Commands) -> Behaviour {
    Behaviour::Serving(Arc::new(config), Plan::new(), commands)
}

#[test]
fn what_was_learned_about_a_server_is_handed_out_to_be_remembered() {
    let mut sim = Sim::new(1, 1);
    sim.host(1, good());
    sim.run();
    assert!(!sim.remembered.is_empty());
    let memory = sim.remembered.pop();
    let mut again = Sim::new(1, 1);
    again.memory = memory;
    again.host(1, good());
    again.run();
    assert_eq!(
        (again.outcome(1).status, again.outcome(1).attempts),
        (Status::Ok, 1)
    );
}

#[test]
fn a_guess_that_the_server_takes_amiss_costs_one_connection_and_no_failure() {
    let mut sim = Sim::new(1, 1);
    let mut config = server();
    // This implementation ignores that the guess was wrong; nothing but a new connection helps.
    config.ident = "SSH-2.0-paramiko_5.1.0".to_owned();
    config.guess_rule = mux_ssh::transport::GuessRule::Ignored;
    sim.known_types = vec![KeyType::Ed25519];
    sim.memory = Some(ServerMemory {
        ident: "SSH-2.0-paramiko_5.1.0".to_owned(),
        first_kex: "ecdh-sha2-nistp256".to_owned(),
        first_host_key: "ssh-ed25519".to_owned(),
        ..ServerMemory::default()
    });
    sim.host(1, serving(config, Commands::Echo(0)));
    sim.run();
    assert_eq!(sim.outcome(1).status, Status::Ok, "{:?}", sim.outcome(1));
    assert_eq!(sim.outcome(1).attempts, 2);
    assert_eq!(sim.net.commands.len(), 1);
}

#[test]
fn a_server_that_hears_nothing_before_none_is_remembered_as_such() {
    let mut sim = Sim::new(1, 1);
    // Where the command is not sent ahead of the login, an end without an answer puts nothing in doubt.
    let mut gateway = server();
    gateway.ident = "SSH-2.0-Gateway".to_owned();
    let plan = Plan::new().with(Point::Before(Moment::AuthSuccess, 1), Act::Close);
    sim.host(
        1,
        Behaviour::Serving(Arc::new(gateway.clone()), plan, Commands::Echo(0)),
    );
    sim.run_for(3 * RTT);
    sim.behave(address(1), serving(gateway, Commands::Echo(0)));
    sim.run();
    assert_eq!(
        (sim.outcome(1).status, sim.outcome(1).attempts),
        (Status::Ok, 2),
        "{:?}",
        sim.log
    );
    let none_first: Vec<bool> = sim.remembered.iter().map(|memory| memory.none_first).collect();
    assert_eq!(none_first, [false, true]);
}

/// Kinds of server whose refusal of an early login a reset may take along.
const SWALLOW: [&str; 2] = ["SSH-2.0-dropbear_2022.83", "SSH-2.0-paramiko_5.1.0"];

/// A login by the first of two keys is cut off without an answer; then the server is `after`.
fn cut_off(ident: &str, after: impl FnOnce(&Sim, &mut ServerConfig) -> bool) -> Sim {
    let mut sim = Sim::new(1, 1);
    sim.keys = vec![key(), key()];
    let mut config = server();
    config.ident = ident.to_owned();
    let plan = Plan::new().with(Point::Before(Moment::AuthSuccess, 1), Act::Close);
    sim.host(
        1,
        Behaviour::Serving(Arc::new(config.clone()), plan, Commands::Echo(0)),
    );
    sim.run_for(3 * RTT);
    let behaviour = match after(&sim, &mut config) {
        true => serving(config, Commands::Echo(0)),
        false => Behaviour::Refusing,
    };
    sim.behave(address(1), behaviour);
    sim.net.commands.clear();
    sim.run();
    sim
}

#[test]
fn after_a_login_that_had_no_answer_a_refused_key_proves_that_nothing_ran_and_the_next_one_logs_in() {
    for ident in SWALLOW {
        let sim = cut_off(ident, |sim, config| {
            config.authorized = Authorized::Keys(vec![sim.keys[1].public().clone()]);
            true
        });
        let outcome = sim.outcome(1);
        assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 2), "{outcome:?}");
        assert_eq!(sim.forgotten, [KeyId(0)]);
        assert_eq!(sim.net.commands.len(), 1);
    }
}

#[test]
fn after_a_login_that_had_no_answer_nothing_is_sent_again_unless_the_key_is_refused() {
    for ident in SWALLOW {
        let accepts = cut_off(ident, |_, _| true);
        let is_gone = cut_off(ident, |_, _| false);
        for sim in [accepts, is_gone] {
            let outcome = sim.outcome(1);
            assert_eq!(
                (outcome.status, outcome.attempts),
                (Status::Unknown, 2),
                "{outcome:?}"
            );
            let message = &outcome.error.as_ref().unwrap().message;
            assert!(
                message.starts_with("connection lost, may have run: "),
                "{message}"
            );
            assert!(sim.net.commands.is_empty());
        }
    }
}

#[test]
fn an_early_login_that_ends_the_connection_is_repeated_step_by_step_with_the_other_keys() {
    let mut sim = Sim::new(1, 1);
    sim.keys = vec![key(), key()];
    let mut config = server();
    config.ident = "SSH-2.0-dropbear_2022.83".to_owned();
    config.authorized = Authorized::Keys(vec![sim.keys[1].public().clone()]);
    // dropbear resets the connection when a channel is asked for before the login.
    let plan = Plan::new().with(Point::After(Moment::AuthFailure, 1), Act::Close);
    sim.host(
        1,
        Behaviour::Serving(Arc::new(config.clone()), plan, Commands::Echo(0)),
    );
    sim.run_for(3 * RTT);
    // Step by step nothing is sent too early, and nothing breaks.
    sim.behave(address(1), serving(config, Commands::Echo(0)));
    sim.run();
    assert_eq!(
        (sim.outcome(1).status, sim.outcome(1).attempts),
        (Status::Ok, 2),
        "{:?}",
        sim.log
    );
    assert_eq!(sim.forgotten, [KeyId(0)]);
    assert_eq!(sim.net.commands.len(), 1);
}

#[test]
fn a_refused_key_is_named_with_what_was_tried() {
    let mut sim = Sim::new(1, 1);
    let mut config = server();
    config.authorized = Authorized::Nobody;
    sim.host(1, serving(config, Commands::Echo(0)));
    sim.run();
    let outcome = sim.outcome(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((outcome.status, error.stage), (Status::Auth, Stage::Auth));
    assert!(error.message.starts_with("me@host1: "), "{}", error.message);
    assert!(
        error.message.ends_with("; key0: not accepted"),
        "{}",
        error.message
    );
    assert!(sim.net.commands.is_empty());
}

#[test]
fn a_host_key_that_is_refused_ends_the_request_before_anything_is_signed() {
    let mut sim = Sim::new(1, 1);
    sim.judgement = Judgement::Refuse("host key changed".to_owned());
    sim.agent_hangs = true;
    sim.host(1, good());
    sim.run();
    let outcome = sim.outcome(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!((outcome.status, error.stage), (Status::HostKey, Stage::HostKey));
    assert_eq!(error.message, "host key changed");
    assert!(sim.waiting.is_empty());
}

#[test]
fn a_host_that_is_known_by_another_type_of_key_is_asked_for_it_on_a_new_connection() {
    let mut sim = Sim::new(1, 1);
    let mut config = server();
    let ed25519 = HostKey::generate_ed25519().unwrap();
    let ecdsa = HostKey::generate_ecdsa_nistp256().unwrap();
    config.host_keys = Arc::from([ed25519, ecdsa]);
    sim.first_judgements = [Judgement::AskForOthers(vec![KeyType::EcdsaNistp256])].into();
    sim.host(1, serving(config, Commands::Echo(0)));
    sim.run();
    assert_eq!(sim.shown, [KeyType::Ed25519, KeyType::EcdsaNistp256]);
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 2), "{outcome:?}");
    assert_eq!(sim.net.commands.len(), 1);
}

#[test]
fn a_connection_lost_under_a_command_is_unknown_and_says_that_it_may_have_run() {
    let mut sim = Sim::new(1, 1);
    sim.host(1, serving(server(), Commands::Breaks));
    sim.run();
    let outcome = sim.outcome(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(
        (outcome.status, outcome.rc, error.stage),
        (Status::Unknown, None, Stage::Command)
    );
    assert!(
        error.message.starts_with("connection lost, may have run: "),
        "{}",
        error.message
    );
    assert_eq!(outcome.attempts, 1);
}

#[test]
fn a_command_without_an_exit_status_is_unknown() {
    let mut sim = Sim::new(1, 1);
    sim.host(1, serving(server(), Commands::NoStatus));
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.rc), (Status::Unknown, None));
    assert_eq!(
        outcome.error.as_ref().unwrap().message,
        "the command ended without an exit status"
    );
}

#[test]
fn a_command_without_an_exit_status_is_ok_where_that_was_asked_for() {
    let mut sim = Sim::new(1, 1);
    sim.behave(address(1), serving(server(), Commands::NoStatus));
    let request = Request {
        missing_status: MissingStatus::Ok,
        ..sim.request(1, "192.0.2.1")
    };
    sim.submit(request);
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.rc), (Status::Ok, None));
    assert_eq!(outcome.error, None);
}

#[test]
fn a_refused_channel_is_unreachable() {
    let mut sim = Sim::new(1, 1);
    let mut config = server();
    config.sessions.max_sessions = 0;
    sim.host(1, serving(config, Commands::Echo(0)));
    sim.run();
    let outcome = sim.outcome(1);
    let error = outcome.error.as_ref().unwrap();
    assert_eq!(
        (outcome.status, error.stage),
        (Status::Unreachable, Stage::Channel),
        "{outcome:?}"
    );
}

#[test]
fn a_failing_command_is_failed_with_its_status() {
    let mut sim = Sim::new(1, 1);
    sim.host(1, serving(server(), Commands::Echo(7)));
    sim.run();
    assert_eq!(
        (sim.outcome(1).status, sim.outcome(1).rc),
        (Status::Failed, Some(7))
    );
    assert_eq!(sim.outcome(1).error, None);
}
