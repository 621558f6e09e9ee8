//! Logins that need a person: how long that may take, how often anybody is asked, and what is said of it.

use std::sync::Arc;
use std::time::Duration;

use mux_cli::hub::{Judgement, Stage, Status};
use mux_ssh::client::{AuthMethod, Methods, Prompt};
use mux_ssh::server::{Act, Authorized, Moment, Plan, Point, Proofs, ServerConfig};

use crate::sim::{Behaviour, Commands, Sim, address, server};

const MINUTE: Duration = Duration::from_secs(60);

/// A simulation in which every way to log in is tried, the key without being asked for.
fn sim(proofs: Proofs, ident: &str, authorized: bool) -> Sim {
    let mut sim = Sim::new(1, 1);
    sim.methods = Methods {
        order: AuthMethod::ALL.to_vec(),
        passwords: 1,
        ..Methods::default()
    };
    sim.proven = true;
    let config = ServerConfig {
        ident: ident.to_owned(),
        proofs: Arc::new(proofs),
        ..server()
    };
    let config = match authorized {
        true => config,
        false => ServerConfig {
            authorized: Authorized::Nobody,
            ..config
        },
    };
    sim.host(
        1,
        Behaviour::Serving(Arc::new(config), Plan::new(), Commands::Echo(0)),
    );
    sim
}

const OPENSSH: &str = "SSH-2.0-OpenSSH_9.2";
const DROPBEAR: &str = "SSH-2.0-dropbear_2022.83";

fn any() -> Proofs {
    Proofs::any_of(&[AuthMethod::PublicKey, AuthMethod::Password])
}

#[test]
fn time_stands_still_while_somebody_is_asked() {
    let mut sim = sim(any(), OPENSSH, false);
    sim.run_for(MINUTE);
    assert_eq!(sim.prompts.len(), 1, "{:?}", sim.log);
    sim.pass(60 * MINUTE);
    sim.answer_prompt("secret");
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 1), "{outcome:?}");
}

#[test]
fn a_host_that_waits_for_somebody_keeps_its_place() {
    let mut sim = sim(any(), OPENSSH, false);
    sim.run_for(5 * MINUTE);
    assert!(!sim.hub.is_idle(), "{:?}", sim.outcome(1));
    assert_eq!(sim.hub.running().len(), 1);
}

/// A server that hangs up as soon as it has said what it takes, and what somebody says then.
fn impatient(method: AuthMethod) -> Sim {
    let mut sim = Sim::new(1, 1);
    sim.methods.order = AuthMethod::ALL.to_vec();
    let config = ServerConfig {
        proofs: Arc::new(Proofs::any_of(&[method])),
        ..server()
    };
    let moment = match method {
        AuthMethod::KeyboardInteractive => Moment::PkOk,
        AuthMethod::PublicKey | AuthMethod::Password => Moment::AuthFailure,
    };
    let plan = Plan::new().with(Point::After(moment, 1), Act::Close);
    sim.host(
        1,
        Behaviour::Serving(Arc::new(config.clone()), plan, Commands::Echo(0)),
    );
    sim.run_for(MINUTE);
    assert_eq!(sim.prompts.len(), 1, "{:?}", sim.log);
    sim.behave(
        address(1),
        Behaviour::Serving(Arc::new(config), Plan::new(), Commands::Echo(0)),
    );
    sim
}

#[test]
fn a_server_that_does_not_wait_for_a_password_is_connected_to_again_when_it_is_known() {
    let mut sim = impatient(AuthMethod::Password);
    sim.pass(60 * MINUTE);
    sim.prompt_answers = [Ok("secret")].into();
    sim.answer_prompt("secret");
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 2), "{outcome:?}");
    assert_eq!(sim.prompts.len(), 2);
}

#[test]
fn a_server_that_does_not_wait_for_answers_to_its_questions_is_not_connected_to_again() {
    let mut sim = impatient(AuthMethod::KeyboardInteractive);
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!(
        (outcome.status, outcome.attempts),
        (Status::Auth, 1),
        "{outcome:?}"
    );
}

#[test]
fn what_was_tried_is_said_in_the_order_in_which_it_was_tried() {
    let mut sim = sim(any(), OPENSSH, false);
    sim.prompt_answers = [Ok("wrong")].into();
    sim.run();
    let outcome = sim.outcome(1);
    let failure = outcome.error.clone().unwrap();
    assert_eq!((outcome.status, failure.stage), (Status::Auth, Stage::Auth));
    let place = |text: &str| {
        failure
            .message
            .find(text)
            .unwrap_or_else(|| unreachable!("{failure:?}"))
    };
    assert!(place("server offers publickey,password") < place("not accepted; password: not accepted"));
}

#[test]
fn why_nobody_was_asked_is_said() {
    let mut sim = sim(any(), OPENSSH, false);
    sim.prompt_answers = [Err("password: there is nobody")].into();
    sim.run();
    let failure = sim.outcome(1).error.clone().unwrap();
    assert!(
        failure.message.ends_with("password: there is nobody"),
        "{failure:?}"
    );
}

#[test]
fn a_host_whose_key_is_not_the_known_one_is_asked_nobody_s_secret_and_that_is_said() {
    let mut sim = sim(any(), OPENSSH, false);
    sim.judgement = Judgement::Distrust;
    sim.run();
    assert_eq!(sim.prompts.len(), 0);
    let error = sim.outcome(1).error.as_ref().unwrap();
    assert!(
        error
            .message
            .ends_with("; password: withheld, as the host key is not the one that is known"),
        "{error:?}"
    );
    assert!(!error.message.contains("keyboard-interactive"), "{error:?}");
}

#[test]
fn a_refused_gamble_costs_a_connection_and_nobody_is_asked_before_it() {
    let mut sim = sim(any(), DROPBEAR, false);
    sim.prompt_answers = [Ok("secret")].into();
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 2), "{outcome:?}");
    assert_eq!(sim.prompts.len(), 1);
}

#[test]
fn questions_are_never_asked_by_a_second_connection() {
    let proofs = Proofs::any_of(&[AuthMethod::PublicKey, AuthMethod::KeyboardInteractive]);
    let mut sim = sim(proofs, DROPBEAR, false);
    sim.prompt_answers = [Ok("wrong"), Ok("secret")].into();
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!(
        (outcome.status, outcome.attempts),
        (Status::Auth, 2),
        "{outcome:?}"
    );
    assert_eq!(sim.prompts.len(), 1);
}

#[test]
fn a_key_that_is_not_enough_is_no_reason_to_ask_for_the_methods_first() {
    let mut sim = sim(
        Proofs::all_of(&[AuthMethod::PublicKey, AuthMethod::Password]),
        DROPBEAR,
        true,
    );
    sim.prompt_answers = [Ok("secret")].into();
    sim.run();
    let outcome = sim.outcome(1);
    assert_eq!((outcome.status, outcome.attempts), (Status::Ok, 2), "{outcome:?}");
    assert!(matches!(
        sim.prompts[..],
        [(_, _, Prompt::Password { refused: 0 })]
    ));
    assert!(
        sim.remembered.iter().all(|memory| !memory.none_first),
        "{:?}",
        sim.remembered
    );
}
