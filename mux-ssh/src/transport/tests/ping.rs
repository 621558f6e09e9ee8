//! PING and PONG (OpenSSH PROTOCOL §1.8): who is answered when, and what a flood costs.

use bytes::BytesMut;

use super::pair::Pair;
use crate::message::{KEXINIT, PING, PONG};
use crate::transport::kexinit::{self, Side};
use crate::transport::{Incoming, MAX_OWED, MAX_PING, RekeyLimits, ServerTransportConfig, ext_info};
use crate::wire::Writer;
use crate::{Error, Violation};

/// Two ends that have logged in; the server keeps what it receives unread.
fn logged_in() -> Pair {
    let mut pair = Pair::connected();
    pair.client.transport.login_done();
    pair
}

fn ping(pair: &mut Pair, data: &[u8]) {
    pair.server.transport.control.push(|packet| {
        packet.byte(PING).string(data);
    });
}

/// Takes what the client sends and returns the data of each PONG in it. The server role has no use for them.
fn pongs(pair: &mut Pair) -> Vec<Vec<u8>> {
    let flight = pair.client.transmit(pair.now);
    let mut wire = BytesMut::from(&flight[..]);
    let mut found = Vec::new();
    while let Some(payload) = pair.server.transport.inbound.open(&mut wire).unwrap() {
        assert_eq!(payload.first(), Some(&PONG));
        found.push(payload[5..].to_vec());
    }
    found
}

/// The server's pings arrive at the client.
fn deliver(pair: &mut Pair) {
    let flight = pair.server.transmit(pair.now);
    pair.client.receive(pair.now, &flight, None);
}

#[test]
fn pings_are_answered_in_order_with_their_own_data() {
    let mut pair = logged_in();
    for data in [&b"one"[..], b"", b"three", &[7; MAX_PING]] {
        ping(&mut pair, data);
    }
    deliver(&mut pair);
    assert_eq!(pongs(&mut pair), [&b"one"[..], b"", b"three", &[7; MAX_PING]]);
    assert!(pair.client.incoming.is_empty());
}

#[test]
fn a_ping_before_the_login_is_complete_is_passed_over_as_in_openssh() {
    let mut pair = Pair::connected();
    ping(&mut pair, b"early");
    deliver(&mut pair);
    assert_eq!(pair.client.error, None);
    assert!(pongs(&mut pair).is_empty());
}

#[test]
fn a_flood_of_pings_stops_our_reading_and_nothing_is_lost() {
    let mut pair = logged_in();
    let data = [1; 1000];
    let all = 5000;
    for _ in 0..all {
        ping(&mut pair, &data);
    }
    deliver(&mut pair);
    let owed = pair.client.transport.queued();
    assert!(owed > MAX_OWED && owed < MAX_OWED + 2000, "{owed}");
    assert!(pair.client.transport.owes_much());
    assert!(!pair.client.input.is_empty(), "the rest waits unread");
    let mut answered = 0;
    while answered < all {
        let found = pongs(&mut pair);
        assert!(!found.is_empty(), "after {answered}");
        assert!(found.iter().all(|pong| pong == &data));
        answered += found.len();
        pair.client.drain(pair.now, None);
        assert!(pair.client.transport.queued() < MAX_OWED + 2000);
    }
    assert_eq!(pair.client.transport.queued(), 0);
    assert!(pair.client.input.is_empty());
}

#[test]
fn answers_that_wait_never_hold_up_a_key_exchange() {
    let mut config = crate::transport::TransportConfig {
        rekey: RekeyLimits {
            bytes: 200 * 1024,
            ..RekeyLimits::default()
        },
        ..Default::default()
    };
    config.algorithms.kex = vec![crate::algorithms::Kex::Curve25519];
    let mut pair = Pair::new(
        config,
        ServerTransportConfig::clone(&super::pair::server_config()),
    );
    pair.run();
    pair.client.transport.login_done();
    for _ in 0..2000 {
        ping(&mut pair, &[2; 1000]);
    }
    // The client owes more than it may and starts a key exchange in the middle of its answers.
    deliver(&mut pair);
    assert!(pair.client.transport.owes_much());
    for _ in 0..1000 {
        pair.client.drain(pair.now, None);
        pair.run();
    }
    pair.assert_healthy();
    assert!(pair.client.new_keys() > 1);
    assert!(pair.client.input.is_empty());
    assert_eq!(pair.client.transport.queued(), 0);
}

#[test]
fn a_ping_while_our_key_exchange_is_under_way_is_passed_over_and_costs_nothing() {
    let mut pair = logged_in();
    for _ in 0..100 {
        ping(&mut pair, b"crossing");
    }
    let flight = pair.server.transmit(pair.now);
    pair.client.transport.start_rekey(pair.now);
    pair.client.transmit(pair.now);
    pair.client.receive(pair.now, &flight, None);
    assert_eq!(pair.client.error, None);
    assert_eq!(pair.client.transport.queued(), 0);
}

#[test]
fn a_ping_within_the_peers_key_exchange_is_refused() {
    let mut pair = logged_in();
    let offer = crate::algorithms::Algorithms::default();
    let kexinit = kexinit::build(Side::Server, &offer, false, false).unwrap();
    assert_eq!(kexinit[0], KEXINIT);
    pair.server.transport.control.push(|packet| {
        packet.raw(&kexinit);
    });
    ping(&mut pair, b"late");
    deliver(&mut pair);
    let expected = Error::Violation(Violation::UnexpectedMessage(PING));
    assert_eq!(pair.client.error, Some(expected));
}

#[test]
fn a_ping_that_is_too_long_or_damaged_is_no_ping() {
    let mut pair = logged_in();
    ping(&mut pair, &vec![0; MAX_PING + 1]);
    pair.run();
    assert_eq!(pair.client.error, None);
    assert!(matches!(pair.server.incoming[..], [Incoming::Unimplemented(_)]));
    let check = |write: fn(&mut Writer<'_>), expected| {
        let mut pair = logged_in();
        pair.server.transport.control.push(write);
        pair.run();
        assert_eq!(pair.client.error, Some(Error::Violation(expected)));
    };
    check(
        |packet| {
            packet.byte(PING).uint32(5).raw(b"four");
        },
        Violation::Truncated,
    );
    check(
        |packet| {
            packet.byte(PING).string("").byte(0);
        },
        Violation::TrailingBytes,
    );
}

#[test]
fn a_pong_that_nobody_asked_for_is_passed_over() {
    let mut pair = logged_in();
    for _ in 0..10_000 {
        pair.server.transport.control.push(|packet| {
            packet.byte(PONG).string("x");
        });
    }
    pair.run();
    pair.assert_healthy();
    assert!(pair.client.incoming.is_empty() && pair.server.incoming.is_empty());
}

#[test]
fn the_server_says_that_it_answers_and_the_client_does_not_as_in_openssh() {
    let written = |write: fn(&mut Writer<'_>)| {
        let mut payload = BytesMut::new();
        write(&mut Writer::new(&mut payload));
        String::from_utf8_lossy(&payload).into_owned()
    };
    assert!(written(ext_info::write_server).ends_with("ping@openssh.com\0\0\0\u{1}0"));
    assert!(!written(ext_info::write_client).contains("ping"));
}
