//! New keys within a connection: from either side, from both, at any time, and the peers that get it wrong.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::pair::{Pair, ed25519_key, server_config};
use crate::message::{CHANNEL_DATA, IGNORE, KEXINIT, NEWKEYS, SERVICE_REQUEST};
use crate::transport::exchange::REKEY_TIMEOUT;
use crate::transport::kexinit::{self, Side};
use crate::transport::{Incoming, RekeyLimits, Role, TransportConfig};
use crate::{Error, Violation};

fn limits(bytes: u64, packets: u32) -> RekeyLimits {
    RekeyLimits {
        bytes,
        packets,
        ..RekeyLimits::default()
    }
}

#[test]
fn either_side_and_both_at_once_may_start() {
    for (client, server) in [(true, false), (false, true), (true, true)] {
        let mut pair = Pair::connected();
        for round in 1..=3 {
            if client {
                pair.client.transport.start_rekey(pair.now);
            }
            if server {
                pair.server.transport.start_rekey(pair.now);
            }
            pair.client.send(b"to the server");
            pair.server.send(b"to the client");
            pair.run();
            pair.assert_healthy();
            assert_eq!((pair.client.new_keys(), pair.server.new_keys()), (round, round));
            assert_eq!(
                (pair.client.packets().len(), pair.server.packets().len()),
                (round, round)
            );
        }
        assert!(
            !pair
                .client
                .incoming
                .iter()
                .any(|incoming| matches!(incoming, Incoming::HostKey(_)))
        );
    }
}

#[test]
fn the_next_exchange_may_begin_before_newkeys_of_the_last_has_left() {
    let mut pair = Pair::connected();
    pair.server.transport.start_rekey(pair.now);
    // The client has read NEWKEYS and has its own still queued: everything is due at once.
    while pair.client.new_keys() == 0 {
        let flight = pair.client.transmit(pair.now);
        pair.server.receive(pair.now, &flight, None);
        let flight = pair.server.transmit(pair.now);
        pair.client.receive(pair.now, &flight, None);
    }
    pair.client.transport.start_rekey(pair.now);
    pair.client.send(b"behind both");
    pair.run();
    pair.assert_healthy();
    assert_eq!(pair.client.new_keys(), 2);
    assert_eq!(pair.server.packets(), [&b"behind both"[..]]);
}

#[test]
fn packets_of_services_wait_for_newkeys_and_keep_their_order() {
    let mut pair = Pair::connected();
    pair.client.send(b"before");
    let before = pair.client.transmit(pair.now);
    pair.client.transport.start_rekey(pair.now);
    pair.client.send(b"during");
    assert!(!pair.client.transport.can_send_now());
    let out = &mut pair.client.out;
    pair.client.transport.send_now(out, |packet| {
        packet.byte(CHANNEL_DATA).raw(b"during too");
    });
    let kexinit = pair.client.transmit(pair.now);
    pair.server.receive(pair.now, &before, None);
    pair.server.receive(pair.now, &kexinit, None);
    assert_eq!(pair.server.packets(), [&b"before"[..]], "the rest is held back");
    pair.run();
    pair.assert_healthy();
    assert_eq!(pair.server.packets(), [&b"before"[..], b"during", b"during too"]);
}

#[test]
fn the_peers_packets_are_taken_until_its_kexinit_and_not_after() {
    let mut pair = Pair::connected();
    pair.client.transport.start_rekey(pair.now);
    pair.client.transmit(pair.now);
    pair.server.send(b"crossing");
    let crossing = pair.server.transmit(pair.now);
    pair.client.receive(pair.now, &crossing, None);
    assert_eq!(pair.client.packets(), [&b"crossing"[..]]);
    for number in [SERVICE_REQUEST, CHANNEL_DATA, 200] {
        let mut pair = Pair::connected();
        pair.server.transport.start_rekey(pair.now);
        pair.server.transport.control.push(|packet| {
            packet.byte(number);
        });
        pair.run();
        assert_eq!(
            pair.client.error,
            Some(Violation::UnexpectedMessage(number).into())
        );
    }
}

#[test]
fn messages_without_meaning_may_come_during_a_rekey() {
    let mut pair = Pair::connected();
    pair.server.transport.start_rekey(pair.now);
    pair.server.transport.control.push(|packet| {
        packet.byte(IGNORE).string("x");
    });
    pair.run();
    pair.assert_healthy();
}

#[test]
fn new_keys_are_due_by_bytes_by_packets_and_by_time() {
    let with = |rekey: RekeyLimits| {
        let mut pair = Pair::new(
            TransportConfig {
                rekey,
                ..TransportConfig::default()
            },
            server_config(),
        );
        pair.run();
        pair
    };
    let mut by_bytes = with(limits(10_000, u32::MAX));
    by_bytes.client.send(&[0; 10_000]);
    by_bytes.run();
    assert_eq!(by_bytes.client.new_keys(), 2);
    let mut by_packets = with(limits(u64::MAX, 5));
    for _ in 0..5 {
        by_packets.server.send(b"x");
    }
    by_packets.run();
    by_packets.run();
    assert_eq!(by_packets.client.new_keys(), 2, "what arrives counts too");
    let mut by_time = with(RekeyLimits::default());
    by_time.pass(Duration::from_secs(3599));
    by_time.run();
    assert_eq!(by_time.client.new_keys(), 1);
    by_time.pass(Duration::from_secs(1));
    by_time.run();
    by_time.assert_healthy();
    assert_eq!(by_time.client.new_keys(), 2);
}

#[test]
fn a_large_write_is_cut_by_new_keys_every_kibibyte_and_arrives_whole() {
    for step in [1, 1000, usize::MAX] {
        let mut server = server_config();
        server.rekey = limits(1024, u32::MAX);
        let client = TransportConfig {
            rekey: limits(1024, u32::MAX),
            ..TransportConfig::default()
        };
        let mut pair = Pair::new(client, server);
        pair.step = step;
        pair.run();
        for number in 0..50_u8 {
            pair.client.send(&[number; 700]);
            pair.server.send(&[number; 900]);
        }
        pair.run();
        assert_eq!((&pair.client.error, &pair.server.error), (&None, &None));
        let numbers = |packets: Vec<Bytes>| packets.iter().map(|packet| packet[0]).collect::<Vec<_>>();
        assert_eq!(numbers(pair.server.packets()), (0..50).collect::<Vec<_>>());
        assert_eq!(numbers(pair.client.packets()), (0..50).collect::<Vec<_>>());
        assert!(pair.client.new_keys() > 10);
    }
}

#[test]
fn the_strict_marker_counts_in_the_first_kexinit_only_and_sequences_start_again() {
    let mut pair = Pair::connected();
    for _ in 0..20 {
        pair.client.send(b"x");
        pair.server.send(b"x");
    }
    pair.run();
    let payload = kexinit::build(Side::Server, &server_config().algorithms, false, false).unwrap();
    assert!(
        !String::from_utf8_lossy(&payload).contains("kex-strict"),
        "we leave it out ourselves"
    );
    pair.client.transport.start_rekey(pair.now);
    pair.run();
    pair.assert_healthy();
    assert!(pair.client.transport.peer.strict);
    assert_eq!(pair.client.transport.outbound.sequence, 0);
    assert_eq!(pair.client.transport.inbound.sequence, 0);
}

/// A server that does no strict key exchange, and a client that finds out.
fn without_strict() -> Pair {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.server.transport.begin_exchange(pair.now).unwrap();
    let plain = kexinit::build(Side::Server, &pair.server.transport.offer, false, false).unwrap();
    pair.server.transport.control.clear();
    pair.server.transport.control.push(|packet| {
        packet.raw(&plain);
    });
    pair.server.transport.exchange.as_mut().unwrap().our_kexinit = plain;
    let hello = pair.client.transmit(pair.now);
    pair.server.receive(pair.now, &hello, None);
    pair.server.transport.peer.strict = false;
    pair
}

#[test]
fn without_strict_key_exchange_sequences_run_on() {
    let mut pair = without_strict();
    pair.run();
    pair.client.transport.start_rekey(pair.now);
    pair.client.send(b"and on");
    pair.run();
    pair.assert_healthy();
    assert!(!pair.client.transport.peer.strict);
    assert_eq!(
        u64::from(pair.client.transport.outbound.sequence),
        pair.client.transport.outbound.packets
    );
    assert_eq!(pair.server.packets(), [&b"and on"[..]]);
}

#[test]
fn another_host_key_on_a_rekey_is_refused() {
    let mut pair = Pair::connected();
    let Role::Server { host_keys, .. } = &mut pair.server.transport.role else {
        panic!("a server")
    };
    *host_keys = Arc::from([ed25519_key(8)]);
    pair.client.transport.start_rekey(pair.now);
    pair.client.send(b"secret");
    pair.run();
    assert_eq!(pair.client.error, Some(Violation::HostKeyChanged.into()));
    assert!(pair.server.packets().is_empty());
}

#[test]
fn a_second_kexinit_during_a_rekey_is_refused() {
    let mut pair = Pair::connected();
    pair.server.transport.start_rekey(pair.now);
    let again = Bytes::copy_from_slice(pair.server.transport.control.front().unwrap());
    pair.server.transport.control.push(|packet| {
        packet.raw(&again);
    });
    pair.run();
    assert_eq!(
        pair.client.error,
        Some(Violation::UnexpectedMessage(KEXINIT).into())
    );
}

#[test]
fn newkeys_before_the_reply_of_a_rekey_is_refused() {
    let mut pair = Pair::connected();
    pair.server.transport.start_rekey(pair.now);
    pair.server.transport.control.push(|packet| {
        packet.byte(NEWKEYS);
    });
    pair.run();
    assert_eq!(
        pair.client.error,
        Some(Violation::UnexpectedMessage(NEWKEYS).into())
    );
}

#[test]
fn a_peer_that_never_finishes_a_rekey_is_given_up() {
    let mut pair = Pair::connected();
    pair.client.transport.start_rekey(pair.now);
    pair.client.transmit(pair.now);
    assert_eq!(
        pair.client.transport.poll_timeout(),
        Some(pair.now + REKEY_TIMEOUT)
    );
    pair.pass(REKEY_TIMEOUT - Duration::from_millis(1));
    assert_eq!(pair.client.error, None);
    pair.pass(Duration::from_millis(1));
    assert_eq!(pair.client.error, Some(Error::RekeyTimeout));
}

#[test]
fn the_first_exchange_has_no_deadline_of_its_own() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    assert_eq!(pair.client.transport.poll_timeout(), None);
    pair.client.transport.start_rekey(pair.now);
    pair.run();
    pair.assert_healthy();
    assert_eq!(
        pair.client.new_keys(),
        1,
        "asking for new keys before there are any does nothing"
    );
}

#[test]
fn a_goodbye_leaves_behind_what_is_queued_and_nothing_after_it() {
    let mut pair = Pair::connected();
    pair.client.send(b"last words");
    pair.client.transport.disconnect(11, "bye");
    pair.client.send(b"too late");
    pair.run();
    let description = "bye".to_owned();
    assert_eq!(
        pair.server.error,
        Some(Error::Disconnected {
            code: 11,
            description
        })
    );
    assert_eq!(pair.server.packets(), [&b"last words"[..]]);
    assert!(pair.client.transmit(pair.now).is_empty());
}

#[test]
fn a_goodbye_during_a_rekey_does_not_wait_for_it() {
    let mut pair = Pair::connected();
    pair.client.transport.start_rekey(pair.now);
    pair.client.send(b"held back");
    pair.client.transport.disconnect(11, "bye");
    let flight = pair.client.transmit(pair.now);
    pair.server.receive(pair.now, &flight, None);
    assert!(matches!(
        pair.server.error,
        Some(Error::Disconnected { code: 11, .. })
    ));
    assert!(pair.server.packets().is_empty());
}

#[test]
fn a_peer_that_never_reads_bounds_what_leaves_at_a_time() {
    let mut pair = Pair::connected();
    for _ in 0..100 {
        pair.client.send(&[0; 10_000]);
    }
    pair.client
        .transport
        .poll_transmit(pair.now, &mut pair.client.out);
    assert!(pair.client.out.len() < 2 * mux_proto::LOW_WATER);
    assert!(!pair.client.out.has_room());
    let before = pair.client.out.len();
    pair.client
        .transport
        .poll_transmit(pair.now, &mut pair.client.out);
    assert_eq!(pair.client.out.len(), before);
}
