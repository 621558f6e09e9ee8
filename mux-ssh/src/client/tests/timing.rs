//! Probes, dead servers, and new keys in the middle of everything.

use std::time::Duration;

use super::pair::*;
use crate::Error;
use crate::client::{ChannelFailure, ClientConfig, Event, Keepalive};
use crate::message::*;

const SECOND: Duration = Duration::from_secs(1);

fn probing() -> ClientConfig {
    ClientConfig {
        keepalive: Keepalive {
            idle: (SECOND * 10, 2),
            busy: (SECOND, 2),
        },
        ..config(&keys(1))
    }
}

#[test]
fn a_silent_server_is_probed_and_then_dead() {
    let mut pair = Pair::log_in(OPENSSH, probing());
    let id = pair.exec(exec("x"));
    pair.confirm(0, 0);
    pair.take_kinds();
    pair.pass(SECOND);
    pair.pass(SECOND);
    assert_eq!(pair.take_kinds(), [GLOBAL_REQUEST, GLOBAL_REQUEST]);
    pair.pass(SECOND);
    assert_eq!(pair.error, Some(Error::Silent));
    pair.assert_failed(id, ChannelFailure::ConnectionLost, true);
}

#[test]
fn an_answer_of_either_kind_keeps_it_alive() {
    let mut pair = Pair::log_in(OPENSSH, probing());
    pair.exec(exec("x"));
    for answer in [REQUEST_FAILURE, REQUEST_SUCCESS].repeat(5) {
        pair.pass(SECOND);
        assert!(pair.take_kinds().contains(&GLOBAL_REQUEST));
        pair.say(|to| {
            to.byte(answer);
        });
    }
    pair.assert_healthy();
}

#[test]
fn half_a_packet_that_is_offered_again_and_again_is_no_sign_of_life() {
    let mut pair = Pair::log_in(OPENSSH, probing());
    pair.exec(exec("x"));
    pair.confirm(0, 0);
    pair.peer.send(|to| {
        to.byte(REQUEST_FAILURE);
    });
    let mut out = mux_proto::SendQueue::new();
    pair.peer.poll_transmit(pair.now, &mut out);
    pair.deliver(&out.take(10));
    for _ in 0..3 {
        assert_eq!(pair.error, None);
        pair.pass(SECOND);
        pair.offer();
    }
    assert_eq!(pair.error, Some(Error::Silent));
    assert_eq!(pair.unread(), 10);
}

#[test]
fn a_probe_before_the_login_is_never_sent() {
    let mut pair = Pair::new(OPENSSH, probing(), keys(1));
    pair.until_auth();
    pair.pass(SECOND * 100);
    assert_eq!(pair.error, None);
    assert!(!pair.kinds().contains(&GLOBAL_REQUEST));
}

#[test]
fn a_server_whose_output_is_not_consumed_is_not_dead() {
    let mut pair = Pair::log_in(OPENSSH, probing());
    pair.consumes = false;
    pair.exec(exec("x"));
    pair.confirm(0, 0);
    pair.data(0, &[b'x'; 32 * 1024]);
    for _ in 0..100 {
        pair.pass(SECOND);
        pair.say(|to| {
            to.byte(REQUEST_FAILURE);
        });
    }
    pair.assert_healthy();
}

/// Sends a KEXINIT from the server's side, and lets nothing of it arrive yet.
fn server_rekeys(pair: &mut Pair) {
    pair.peer.start_rekey(pair.now);
}

#[test]
fn new_keys_while_a_channel_opens_hold_the_command_back_and_lose_nothing() {
    let mut pair = Pair::logged_in(UNKNOWN);
    let id = pair.exec(exec("x"));
    server_rekeys(&mut pair);
    pair.confirm(0, 0);
    pair.reply(0, true);
    pair.data(0, b"ok");
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
    assert_eq!(pair.output(id), b"ok");
    assert!(pair.peer.can_send_now());
    pair.assert_healthy();
}

#[test]
fn new_keys_wanted_by_both_sides_at_once_lose_nothing() {
    use bytes::Bytes;
    let (mut pair, id) = Pair::running(open_exec("cat"));
    pair.client.transport.start_rekey(pair.now);
    server_rekeys(&mut pair);
    pair.client
        .write_stdin(id, Bytes::from(vec![b'i'; 100_000]))
        .unwrap();
    pair.data(0, &[b'o'; 30_000]);
    let sent: usize = pair
        .received
        .iter()
        .filter(|payload| payload[0] == CHANNEL_DATA)
        .map(|payload| payload.len() - 9)
        .sum();
    assert_eq!((sent, pair.output(id).len()), (100_000, 30_000));
    assert!(pair.peer.can_send_now());
    pair.assert_healthy();
}

#[test]
fn a_command_is_held_back_while_a_key_exchange_is_out() {
    let mut pair = Pair::logged_in(OPENSSH);
    server_rekeys(&mut pair);
    // The server's KEXINIT arrives; the client's answer does not leave yet.
    pair.answer();
    pair.client.exec(pair.now, exec("x"));
    pair.flight();
    assert_eq!(pair.kinds(), []);
    pair.run();
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn new_keys_during_the_login_lose_nothing() {
    let mut pair = Pair::simple(OPENSSH);
    pair.exec(exec("x"));
    pair.until_auth();
    server_rekeys(&mut pair);
    pair.accept_service();
    server_rekeys(&mut pair);
    pair.success();
    server_rekeys(&mut pair);
    pair.confirm(0, 0);
    pair.reply(0, true);
    assert!(pair.told(&Event::Authenticated { identity: Some(0) }));
    pair.assert_healthy();
}

#[test]
fn new_keys_while_someone_signs_leave_the_session_id_as_it_was() {
    let mut pair = Pair::simple(OPENSSH);
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    pair.run();
    let session = pair.peer.session_id().unwrap().clone();
    server_rekeys(&mut pair);
    pair.run();
    assert!(pair.peer.can_send_now());
    let (question, data) = pair
        .events
        .iter()
        .find_map(|event| match event {
            Event::Sign { id, data, .. } => Some((*id, data.clone())),
            _ => None,
        })
        .unwrap();
    assert_eq!(data[4..4 + session.len()], session[..]);
    let signature = pair.keys[0].sign(&data);
    pair.client.answer_signature(question, Some(signature));
    pair.run();
    assert_eq!(pair.take_kinds(), [SERVICE_REQUEST, USERAUTH_REQUEST]);
}

#[test]
fn new_keys_every_kilobyte_lose_no_output_and_no_input() {
    use bytes::Bytes;
    let mut config = config(&keys(1));
    config.rekey.bytes = 1024;
    let mut pair = Pair::log_in(OPENSSH, config);
    let id = pair.exec(open_exec("cat"));
    pair.confirm(0, 0);
    pair.reply(0, true);
    pair.take_kinds();
    for piece in 0..20u8 {
        pair.client
            .write_stdin(id, Bytes::from(vec![piece; 2000]))
            .unwrap();
        pair.data(0, &[piece; 1500]);
    }
    let sent: usize = pair
        .received
        .iter()
        .filter(|payload| payload[0] == CHANNEL_DATA)
        .map(|payload| payload.len() - 9)
        .sum();
    assert_eq!(sent, 40_000);
    assert_eq!(pair.output(id).len(), 30_000);
    pair.assert_healthy();
}

#[test]
fn probes_wait_for_new_keys_and_silence_still_counts() {
    let mut pair = Pair::log_in(OPENSSH, probing());
    pair.exec(exec("x"));
    pair.confirm(0, 0);
    // The client begins an exchange that nobody answers.
    server_rekeys(&mut pair);
    pair.answer();
    for _ in 0..3 {
        pair.now += SECOND;
        let due = mux_proto::Protocol::handle_timeout(&mut pair.client, pair.now);
        pair.error = due.err();
    }
    assert_eq!(pair.error, Some(Error::Silent));
}
