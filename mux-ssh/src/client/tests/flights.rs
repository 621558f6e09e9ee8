//! How many flights each kind of server takes until a command is on its way, and what shares a write.

use super::pair::*;
use crate::client::{ChannelFailure, ChannelViolation, ClientConfig, Event, Stage};
use crate::message::*;
use crate::transport::ServerMemory;

/// The messages of the flight that carries the first signed request, of a client with one proven key and one command.
fn signed_flight(ident: &str) -> (Pair, Vec<u8>) {
    let mut pair = Pair::simple(ident);
    pair.exec(exec("uptime"));
    pair.until_auth();
    let kinds = pair.take_kinds();
    (pair, kinds)
}

const SIGNED: [u8; 2] = [SERVICE_REQUEST, USERAUTH_REQUEST];
const GAMBLED: [u8; 5] = [
    SERVICE_REQUEST,
    USERAUTH_REQUEST,
    CHANNEL_OPEN,
    CHANNEL_REQUEST,
    CHANNEL_EOF,
];

#[test]
fn openssh_dropbear_and_paramiko_get_login_channel_and_command_in_one_write() {
    for ident in [OPENSSH, DROPBEAR, PARAMIKO, crate::transport::OUR_IDENT] {
        let (pair, kinds) = signed_flight(ident);
        assert_eq!(kinds, GAMBLED, "{ident}");
        // Identification with KEXINIT; the key exchange's value; NEWKEYS with all the rest.
        assert_eq!(pair.writes, 3, "{ident}");
    }
}

#[test]
fn a_remembered_server_gets_its_command_in_the_second_write() {
    let memory = ServerMemory {
        ident: "SSH-2.0-OpenSSH_9.2p1".to_owned(),
        first_kex: "mlkem768x25519-sha256".to_owned(),
        first_host_key: "ssh-ed25519".to_owned(),
        post_quantum: true,
        ..ServerMemory::default()
    };
    let config = ClientConfig {
        memory: Some(memory),
        algorithms: crate::algorithms::Algorithms::default(),
        ..config(&keys(1))
    };
    let mut pair = Pair::new(OPENSSH, config, keys(1));
    pair.exec(exec("uptime"));
    assert_eq!(pair.take_kinds(), GAMBLED);
    assert_eq!(pair.writes, 2);
}

#[test]
fn asyncssh_gets_the_channel_with_the_login_and_the_command_after_its_confirmation() {
    let (mut pair, kinds) = signed_flight(ASYNCSSH);
    assert_eq!(kinds, [SERVICE_REQUEST, USERAUTH_REQUEST, CHANNEL_OPEN]);
    pair.accept_service();
    pair.success();
    assert_eq!(pair.take_kinds(), []);
    pair.confirm(0, 0);
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn tinyssh_gets_channel_and_command_in_one_write_after_the_login_under_our_number() {
    let (mut pair, kinds) = signed_flight(TINYSSH);
    assert_eq!(kinds, SIGNED);
    pair.accept_service();
    let writes = pair.writes;
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
    assert_eq!(pair.writes, writes + 1);
}

#[test]
fn tinyssh_gives_one_channel_and_is_asked_for_no_other() {
    let (mut pair, _) = signed_flight(TINYSSH);
    let second = pair.exec(exec("second"));
    pair.accept_service();
    pair.success();
    pair.assert_failed(second, ChannelFailure::NoSession, false);
    let third = pair.exec(exec("third"));
    pair.assert_failed(third, ChannelFailure::NoSession, false);
}

#[test]
fn an_unknown_server_gets_each_step_after_the_answer_to_the_one_before() {
    let (mut pair, kinds) = signed_flight(UNKNOWN);
    assert_eq!(kinds, SIGNED);
    pair.accept_service();
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN]);
    pair.confirm(0, 5);
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn a_cautious_client_asks_for_one_thing_at_a_time_and_for_none_first() {
    let config = ClientConfig {
        cautious: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::new(OPENSSH, config, keys(1));
    pair.exec(exec("uptime"));
    assert_eq!(pair.take_kinds(), [SERVICE_REQUEST]);
    pair.accept_service();
    assert_eq!(pair.take_kinds(), [USERAUTH_REQUEST]);
    pair.failure("publickey", false);
    assert_eq!(pair.take_kinds(), [USERAUTH_REQUEST]);
    pair.pk_ok(1);
    assert_eq!(pair.take_kinds(), [USERAUTH_REQUEST]);
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn a_server_known_to_want_none_first_gets_it_and_is_remembered_so() {
    let memory = ServerMemory {
        none_first: true,
        ..ServerMemory::default()
    };
    let config = ClientConfig {
        memory: Some(memory),
        ..config(&keys(1))
    };
    let mut pair = Pair::new(UNKNOWN, config, keys(1));
    pair.until_auth();
    let mut request = pair.last(USERAUTH_REQUEST);
    let fields = [
        request.text().unwrap(),
        request.text().unwrap(),
        request.text().unwrap(),
    ];
    assert_eq!(fields, ["root", "ssh-connection", "none"]);
    assert!(
        pair.events
            .iter()
            .any(|event| matches!(event, Event::Learned(memory) if memory.none_first))
    );
}

#[test]
fn a_key_that_is_not_proven_is_asked_about_and_its_signature_carries_the_command() {
    let user = keys(1);
    let mut config = config(&user);
    config.identities = vec![user[0].identity(false)];
    let mut pair = Pair::new(OPENSSH, config, user);
    pair.exec(exec("uptime"));
    assert_eq!(pair.take_kinds(), SIGNED);
    pair.accept_service();
    pair.pk_ok(1);
    assert_eq!(
        pair.take_kinds(),
        [USERAUTH_REQUEST, CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]
    );
}

#[test]
fn a_hardware_key_never_signs_before_the_server_wants_it() {
    let user = keys(1);
    let mut config = config(&user);
    config.identities[0].hardware = true;
    let mut pair = Pair::new(OPENSSH, config, user);
    pair.until_auth();
    assert!(
        !pair
            .events
            .iter()
            .any(|event| matches!(event, Event::Sign { .. }))
    );
}

#[test]
fn a_command_given_while_the_login_is_out_is_gambled_too() {
    let mut pair = Pair::simple(OPENSSH);
    pair.until_auth();
    pair.take_kinds();
    pair.exec(exec("uptime"));
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn only_the_first_of_several_commands_is_gambled() {
    let mut pair = Pair::simple(OPENSSH);
    pair.exec(exec("first"));
    pair.exec(exec("second"));
    pair.until_auth();
    assert_eq!(pair.take_kinds(), GAMBLED);
    pair.accept_service();
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN]);
    pair.confirm(0, 0);
    pair.confirm(1, 1);
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn dropbear_gets_each_channel_and_command_in_one_write_on_the_lowest_free_number() {
    let mut pair = Pair::logged_in(DROPBEAR);
    let pair_of = |pair: &Pair| {
        let open = pair.last(CHANNEL_OPEN).rest()[11..15].to_vec();
        let number = pair.last(CHANNEL_REQUEST).uint32().unwrap();
        (open[3], number)
    };
    for expected in 0..3 {
        pair.exec(exec("x"));
        assert_eq!(pair.kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
        assert_eq!(pair_of(&pair), (u8::try_from(expected).unwrap(), expected));
        pair.take_kinds();
        pair.confirm(expected, expected);
    }
    pair.tell(CHANNEL_CLOSE, 1);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
    pair.exec(exec("y"));
    assert_eq!(pair_of(&pair), (1, 1));
    pair.assert_healthy();
}

#[test]
fn dropbear_never_gets_a_spare() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(DROPBEAR, config);
    pair.exec(exec("x"));
    pair.confirm(0, 0);
    pair.tell(CHANNEL_CLOSE, 0);
    assert!(!pair.kinds().iter().skip(3).any(|&kind| kind == CHANNEL_OPEN));
}

#[test]
fn a_spare_makes_the_next_command_one_write() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::new(OPENSSH, config, keys(1));
    pair.until_auth();
    pair.accept_service();
    pair.take_kinds();
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN]);
    pair.confirm(0, 0);
    pair.exec(exec("uptime"));
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF, CHANNEL_OPEN]);
    pair.confirm(1, 1);
    pair.exec(exec("uptime"));
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF, CHANNEL_OPEN]);
}

#[test]
fn a_wrong_number_after_a_gamble_ends_the_connection_and_the_command_may_have_run() {
    let (mut pair, _) = signed_flight(OPENSSH);
    let id = channel(&pair);
    pair.accept_service();
    pair.success();
    pair.confirm(0, 3);
    pair.assert_violation(ChannelViolation::Number);
    pair.assert_failed(id, ChannelFailure::ConnectionLost, true);
}

#[test]
fn stages_are_told_once_and_in_order() {
    let mut pair = Pair::simple(OPENSSH);
    pair.until_auth();
    pair.accept_service();
    pair.success();
    let stages: Vec<Stage> = pair
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Stage(stage) => Some(*stage),
            _ => None,
        })
        .collect();
    assert_eq!(stages, [Stage::Banner, Stage::Kex, Stage::Auth, Stage::Ready]);
}

/// The id of the first command of a fresh client.
pub(super) fn channel(_: &Pair) -> crate::client::ChannelId {
    crate::client::ChannelId {
        slot: 0,
        generation: 1,
    }
}
