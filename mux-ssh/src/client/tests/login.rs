//! Which identity is tried when, and what a refusal does to a command that was sent ahead of it.

use bytes::Bytes;

use super::flights::channel;
use super::pair::*;
use crate::Error;
use crate::algorithms::SignatureAlgorithm;
use crate::client::{ChannelFailure, ClientConfig, Event};
use crate::message::*;

/// Two proven keys, one command, and the first signed request with all that shares its flight on its way.
fn gambling(ident: &str, identities: u8) -> Pair {
    let mut pair = Pair::new(ident, config(&keys(identities)), keys(identities));
    pair.exec(exec("uptime"));
    pair.until_auth();
    pair.accept_service();
    pair
}

fn auth_failed(methods: &[&str], partial: bool) -> Option<Error> {
    let methods = methods.iter().map(|&method| method.to_owned()).collect();
    Some(Error::AuthFailed { methods, partial })
}

#[test]
fn openssh_goes_on_after_a_refusal_and_the_command_is_sent_again() {
    let mut pair = gambling(OPENSSH, 2);
    let (open, command) = (pair.sequence_of(CHANNEL_OPEN), pair.sequence_of(CHANNEL_REQUEST));
    pair.take_kinds();
    pair.failure("publickey,password", false);
    pair.unimplemented(open);
    pair.unimplemented(command);
    pair.unimplemented(command + 1);
    assert!(pair.told(&Event::KeyRefused { identity: 0 }));
    assert_eq!(
        pair.take_kinds(),
        [USERAUTH_REQUEST, CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]
    );
    pair.success();
    pair.confirm(0, 0);
    pair.reply(0, true);
    pair.data(0, b"up");
    assert_eq!(pair.output(channel(&pair)), b"up");
    pair.assert_healthy();
}

#[test]
fn standard_input_that_went_ahead_is_sent_again_whole() {
    let mut pair = Pair::new(OPENSSH, config(&keys(2)), keys(2));
    let id = pair.client.exec(pair.now, open_exec("cat"));
    pair.client
        .write_stdin(id, Bytes::from(vec![b'a'; 10_000]))
        .unwrap();
    pair.client
        .write_stdin(id, Bytes::from(vec![b'b'; 10_000]))
        .unwrap();
    pair.client.finish_stdin(id);
    pair.until_auth();
    pair.accept_service();
    pair.take_kinds();
    pair.failure("publickey", false);
    pair.success();
    pair.confirm(0, 0);
    let mut stdin = Vec::new();
    for payload in pair.received.iter().filter(|payload| payload[0] == CHANNEL_DATA) {
        stdin.extend_from_slice(&payload[9..]);
    }
    assert_eq!(stdin.len(), 20_000);
    assert!(stdin[..10_000].iter().all(|&byte| byte == b'a'));
    assert!(stdin[10_000..].iter().all(|&byte| byte == b'b'));
    assert_eq!(pair.kinds().last(), Some(&CHANNEL_EOF));
}

#[test]
fn a_late_unimplemented_does_not_touch_what_was_sent_again() {
    let mut pair = gambling(OPENSSH, 2);
    let command = pair.sequence_of(CHANNEL_REQUEST);
    pair.failure("publickey", false);
    pair.success();
    pair.unimplemented(command);
    pair.confirm(0, 0);
    pair.reply(0, true);
    pair.assert_healthy();
    assert_eq!(pair.client.open_channels(), 1);
}

#[test]
fn other_servers_end_after_a_refused_gamble_and_one_reconnect_is_asked_for() {
    for ident in [DROPBEAR, PARAMIKO, ASYNCSSH] {
        let mut pair = gambling(ident, 2);
        pair.failure("publickey", false);
        assert_eq!(
            pair.error,
            Some(Error::EarlyAuthRefused { identity: Some(0) }),
            "{ident}"
        );
        pair.assert_failed(channel(&pair), ChannelFailure::ConnectionLost, false);
    }
}

#[test]
fn without_another_identity_a_refused_gamble_is_a_failed_login() {
    for ident in [DROPBEAR, PARAMIKO, ASYNCSSH, OPENSSH] {
        let mut pair = gambling(ident, 1);
        pair.failure("publickey,password", false);
        assert_eq!(
            pair.error,
            auth_failed(&["publickey", "password"], false),
            "{ident}"
        );
        pair.assert_failed(channel(&pair), ChannelFailure::ConnectionLost, false);
    }
}

#[test]
fn tinyssh_and_unknown_servers_go_on_because_nothing_was_gambled() {
    for ident in [TINYSSH, UNKNOWN] {
        let mut pair = gambling(ident, 2);
        pair.take_kinds();
        pair.failure("publickey", false);
        assert_eq!(pair.take_kinds(), [USERAUTH_REQUEST], "{ident}");
        pair.assert_healthy();
    }
}

#[test]
fn the_end_of_the_connection_without_an_answer_leaves_the_command_in_doubt() {
    for ident in [OPENSSH, DROPBEAR, PARAMIKO] {
        let mut pair = gambling(ident, 1);
        pair.eof();
        assert_eq!(pair.error, Some(Error::UnexpectedEof), "{ident}");
        pair.assert_failed(channel(&pair), ChannelFailure::ConnectionLost, true);
    }
}

#[test]
fn the_end_of_the_connection_after_a_refusal_is_a_failed_login() {
    let mut pair = gambling(OPENSSH, 2);
    pair.failure("publickey", false);
    pair.say(|to| {
        to.byte(DISCONNECT)
            .uint32(2)
            .string("Too many authentication failures")
            .string("");
    });
    // The second signature was on its way, with the command behind it: nobody may send it again.
    assert_eq!(pair.error, auth_failed(&["publickey"], false));
    assert!(
        pair.events
            .iter()
            .any(|event| matches!(event, Event::Disconnected { code: 2, .. }))
    );
    pair.assert_failed(channel(&pair), ChannelFailure::ConnectionLost, true);
}

#[test]
fn the_end_of_the_connection_after_a_refusal_asks_for_a_reconnect_if_the_command_cannot_have_run() {
    let user = keys(2);
    let mut config = config(&user);
    config.identities[1].proven = false;
    let mut pair = Pair::new(OPENSSH, config, user);
    pair.exec(exec("uptime"));
    pair.until_auth();
    pair.accept_service();
    pair.failure("publickey", false);
    pair.eof();
    assert_eq!(pair.error, Some(Error::EarlyAuthRefused { identity: Some(0) }));
    pair.assert_failed(channel(&pair), ChannelFailure::ConnectionLost, false);
}

#[test]
fn unimplemented_without_a_refusal_takes_the_command_back_until_the_login() {
    let mut pair = gambling(OPENSSH, 1);
    let open = pair.sequence_of(CHANNEL_OPEN);
    pair.take_kinds();
    pair.unimplemented(open);
    assert_eq!(pair.take_kinds(), []);
    pair.success();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn unimplemented_for_a_command_after_the_login_means_that_it_did_not_run() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.exec(exec("x"));
    let command = pair.sequence_of(CHANNEL_REQUEST);
    pair.confirm(0, 0);
    pair.unimplemented(command);
    pair.assert_failed(id, ChannelFailure::ExecRefused, false);
    pair.assert_healthy();
}

#[test]
fn a_command_that_was_never_sent_did_not_run() {
    let mut pair = Pair::simple(OPENSSH);
    pair.answers = false;
    let id = pair.exec(exec("x"));
    pair.eof();
    pair.assert_failed(id, ChannelFailure::ConnectionLost, false);
}

/// What is told when the link ends, by a reset or an orderly end, while the signed request and what was sent ahead
/// behind it are unanswered.
fn cut_off(ident: &str, orderly: bool) -> usize {
    let mut pair = gambling(ident, 2);
    if orderly {
        pair.eof();
    } else {
        pair.client.connection_lost();
        pair.drain_events();
    }
    pair.client.connection_lost();
    pair.drain_events();
    let unanswered = Event::LoginUnanswered { identity: 0 };
    pair.events.iter().filter(|event| **event == unanswered).count()
}

#[test]
fn a_reset_that_may_have_taken_the_refusal_along_names_the_identity() {
    for orderly in [true, false] {
        for ident in [DROPBEAR, PARAMIKO, ASYNCSSH] {
            assert_eq!(cut_off(ident, orderly), 1, "{ident}");
        }
        // These go on after a refusal, or were sent nothing ahead.
        for ident in [OPENSSH, TINYSSH, UNKNOWN] {
            assert_eq!(cut_off(ident, orderly), 0, "{ident}");
        }
    }
}

/// A connection made to find out whether the first of two identities is accepted.
fn doubting() -> Pair {
    let mut config = config(&keys(2));
    config.cautious = true;
    config.doubted = Some(0);
    config.accept_none = true;
    let mut pair = Pair::new(DROPBEAR, config, keys(2));
    pair.exec(exec("uptime"));
    pair.run();
    pair.accept_service();
    pair
}

/// Nothing that runs anything left, and nothing was signed.
fn check_kept_back(pair: &Pair) {
    assert_eq!(pair.error, Some(Error::MayHaveRun));
    assert!(!pair.kinds().contains(&CHANNEL_OPEN));
    assert!(
        !pair
            .events
            .iter()
            .any(|event| matches!(event, Event::Sign { .. }))
    );
}

#[test]
fn a_doubted_identity_that_is_accepted_ends_the_connection() {
    let mut pair = doubting();
    pair.failure("publickey", false);
    pair.pk_ok(1);
    check_kept_back(&pair);
}

#[test]
fn a_server_that_lets_anybody_in_has_let_the_doubted_identity_in() {
    let mut pair = doubting();
    pair.success();
    check_kept_back(&pair);
}

#[test]
fn a_doubted_identity_that_is_refused_is_doubted_no_more() {
    let mut pair = doubting();
    pair.failure("publickey", false);
    pair.failure("publickey", false);
    pair.pk_ok(2);
    pair.success();
    assert!(pair.told(&Event::Authenticated { identity: Some(1) }));
    assert!(pair.kinds().contains(&CHANNEL_OPEN));
}

#[test]
fn a_lost_link_is_told_by_the_owner() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.client.connection_lost();
    pair.drain_events();
    pair.assert_failed(id, ChannelFailure::ConnectionLost, true);
    pair.client.connection_lost();
    pair.drain_events();
    pair.last_word(id);
}

#[test]
fn a_rejected_host_key_ends_all_and_nothing_ran() {
    let mut pair = Pair::simple(OPENSSH);
    pair.answers = false;
    let id = pair.exec(exec("x"));
    let question = pair.question();
    pair.client.answer_host_key(question, false);
    pair.pass(std::time::Duration::ZERO);
    assert_eq!(pair.error, Some(Error::HostKeyRejected));
    pair.assert_failed(id, ChannelFailure::ConnectionLost, false);
    assert_eq!(pair.kinds(), []);
}

#[test]
fn partial_success_with_no_method_left_names_what_the_server_wants() {
    let mut pair = gambling(OPENSSH, 2);
    pair.failure("password,keyboard-interactive", true);
    assert_eq!(
        pair.error,
        auth_failed(&["password", "keyboard-interactive"], true)
    );
    assert!(
        !pair
            .events
            .iter()
            .any(|event| matches!(event, Event::KeyRefused { .. }))
    );
}

#[test]
fn partial_success_that_wants_another_key_goes_on() {
    let mut pair = gambling(OPENSSH, 2);
    pair.take_kinds();
    pair.failure("publickey", true);
    assert_eq!(
        pair.take_kinds(),
        [USERAUTH_REQUEST, CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]
    );
    pair.success();
    assert!(pair.told(&Event::Authenticated { identity: Some(1) }));
}

#[test]
fn a_server_without_publickey_is_not_asked_again() {
    let mut pair = gambling(OPENSSH, 2);
    pair.failure("password", false);
    assert_eq!(pair.error, auth_failed(&["password"], false));
}

#[test]
fn without_identities_the_methods_are_asked_for_to_name_them() {
    let mut pair = Pair::new(OPENSSH, config(&[]), Vec::new());
    pair.until_auth();
    pair.accept_service();
    pair.failure("password", false);
    assert_eq!(pair.error, auth_failed(&["password"], false));
}

#[test]
fn an_identity_that_cannot_sign_makes_room_for_the_next() {
    let mut pair = Pair::new(UNKNOWN, config(&keys(2)), keys(2));
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    pair.run();
    let question = pair.question();
    pair.client.answer_signature(question, None);
    pair.run();
    let next = pair.question();
    assert_ne!(question, next);
    // The answer to a question that is no longer open changes nothing.
    pair.client
        .answer_signature(question, Some(Bytes::from_static(b"stale")));
    pair.run();
    assert!(!pair.kinds().contains(&USERAUTH_REQUEST));
    let data = pair.events.iter().rev().find_map(|event| match event {
        Event::Sign {
            data, identity: 1, ..
        } => Some(data.clone()),
        _ => None,
    });
    let signature = pair.keys[1].sign(&data.unwrap());
    pair.client.answer_signature(next, Some(signature));
    pair.run();
    assert!(pair.kinds().contains(&USERAUTH_REQUEST));
}

#[test]
fn when_the_last_identity_cannot_sign_the_error_comes_at_the_next_moment() {
    let mut pair = Pair::simple(UNKNOWN);
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    pair.run();
    let question = pair.question();
    pair.client.answer_signature(question, None);
    pair.run();
    // The methods are asked for before giving up.
    pair.accept_service();
    pair.failure("publickey", false);
    assert_eq!(pair.error, auth_failed(&["publickey"], false));
}

#[test]
fn a_signature_by_another_algorithm_is_as_good_as_none() {
    let mut pair = Pair::new(UNKNOWN, config(&keys(2)), keys(2));
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    pair.run();
    let question = pair.question();
    let foreign = Bytes::from_static(b"\0\0\0\x07ssh-rsa\0\0\0\x01x");
    pair.client.answer_signature(question, Some(foreign));
    pair.run();
    assert_ne!(question, pair.question());
}

#[test]
fn what_is_signed_begins_with_the_session_and_verifies_as_sent() {
    let mut pair = Pair::simple(UNKNOWN);
    pair.until_auth();
    let session = pair.peer.session_id().unwrap().clone();
    let payload = pair
        .received
        .iter()
        .find(|payload| payload[0] == USERAUTH_REQUEST)
        .unwrap();
    let length = payload.len();
    let (request, signature) = payload.split_at(length - 4 - 83);
    let mut signed = bytes::BytesMut::new();
    crate::wire::Writer::new(&mut signed)
        .string(&session)
        .raw(request);
    let key = &pair.keys[0].public;
    assert_eq!(
        key.verify(SignatureAlgorithm::Ed25519, &signed, &signature[4..]),
        Ok(())
    );
    let binding = pair.events.iter().find_map(|event| match event {
        Event::Sign { binding, .. } => Some(binding.clone()),
        _ => None,
    });
    let binding = binding.unwrap();
    assert_eq!(binding.session_id, session);
    let host = crate::keys::PublicKey::parse(&binding.host_key).unwrap();
    assert_eq!(
        host.verify(SignatureAlgorithm::Ed25519, &session, &binding.signature),
        Ok(())
    );
}

#[test]
fn a_gateway_that_hangs_up_on_the_first_request_is_tried_once_more_step_by_step() {
    let mut pair = Pair::simple(UNKNOWN);
    pair.exec(exec("x"));
    pair.until_auth();
    pair.eof();
    assert_eq!(pair.error, Some(Error::EarlyAuthRefused { identity: None }));
    let mut again = Pair::new(
        UNKNOWN,
        ClientConfig {
            cautious: true,
            ..config(&keys(1))
        },
        keys(1),
    );
    again.run();
    again.accept_service();
    again.eof();
    assert_eq!(again.error, Some(Error::UnexpectedEof));
}

#[test]
fn everything_works_one_byte_at_a_time() {
    let mut pair = Pair::simple(OPENSSH);
    pair.step = 1;
    let id = pair.exec(exec("x"));
    pair.until_auth();
    pair.accept_service();
    pair.success();
    pair.confirm(0, 0);
    pair.reply(0, true);
    pair.data(0, b"out");
    pair.stderr(0, 1, b"err");
    pair.exit_status(0, 3);
    pair.tell(CHANNEL_EOF, 0);
    pair.tell(CHANNEL_CLOSE, 0);
    assert_eq!(pair.output(id), b"outerr");
    assert!(pair.told(&Event::ExitStatus {
        channel: id,
        status: 3
    }));
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    assert!(pair.client.is_idle());
}
