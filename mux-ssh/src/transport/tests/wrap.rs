//! Whole connections at the end of what their numbers can hold: the sequence at 2^32, the keys at their limits. The
//! counters are set as 2^32 packets would leave them; everything after that is real.

use super::pair::{Pair, offer, server_config};
use crate::transport::cipher::Protection;
use crate::transport::{Incoming, RekeyLimits};

/// So many packets before the wrap.
const BEFORE: u32 = 3;

fn connected(protection: Protection) -> Pair {
    let client = offer(|algorithms| {
        algorithms.ciphers = vec![protection.cipher];
        algorithms
            .macs
            .retain(|mac| protection.mac.is_none_or(|only| *mac == only));
    });
    let mut pair = Pair::new(client, server_config());
    pair.run();
    pair.assert_healthy();
    pair.client.incoming.clear();
    pair.server.incoming.clear();
    pair
}

/// Both directions stand before the wrap.
fn near_the_wrap(pair: &mut Pair) {
    let sequence = u32::MAX - BEFORE + 1;
    for end in [&mut pair.client, &mut pair.server] {
        end.transport.outbound.sequence = sequence;
        end.transport.inbound.sequence = sequence;
    }
}

fn talk(pair: &mut Pair, packets: u32) {
    let text = |number: u32| number.to_be_bytes();
    for number in 0..packets {
        pair.client.send(&text(number));
        pair.server.send(&text(number));
        pair.run();
    }
    let sent: Vec<_> = (0..packets).map(|number| text(number).to_vec()).collect();
    assert_eq!(pair.server.packets(), sent);
    assert_eq!(pair.client.packets(), sent);
    pair.client.incoming.clear();
    pair.server.incoming.clear();
}

#[test]
fn a_connection_goes_on_where_its_sequence_numbers_wrap() {
    for protection in Protection::all() {
        let mut pair = connected(protection);
        near_the_wrap(&mut pair);
        talk(&mut pair, 2 * BEFORE);
        pair.assert_healthy();
        for end in [&pair.client, &pair.server] {
            assert_eq!(end.transport.outbound.sequence, BEFORE, "{protection:?}");
            assert_eq!(end.transport.inbound.sequence, BEFORE, "{protection:?}");
        }
    }
}

#[test]
fn a_key_exchange_that_lasts_from_before_the_wrap_to_behind_it() {
    for protection in Protection::all() {
        let mut pair = connected(protection);
        near_the_wrap(&mut pair);
        pair.server.transport.start_rekey(pair.now);
        pair.run();
        talk(&mut pair, 2 * BEFORE);
        pair.assert_healthy();
        // Strict key exchange: the numbers begin anew with the keys.
        assert_eq!(
            pair.client.transport.inbound.sequence,
            2 * BEFORE,
            "{protection:?}"
        );
    }
}

#[test]
fn an_unknown_message_is_named_by_its_number_on_both_sides_of_the_wrap() {
    let mut pair = Pair::connected();
    near_the_wrap(&mut pair);
    let mut expected = Vec::new();
    for _ in 0..2 * BEFORE {
        expected.push(Incoming::Unimplemented(
            pair.client.transport.next_send_sequence(),
        ));
        pair.client.transport.send(|packet| {
            packet.byte(191);
        });
        pair.run();
    }
    pair.assert_healthy();
    assert_eq!(pair.client.incoming, expected);
}

#[test]
fn keys_are_renewed_at_the_limits_that_everyone_has() {
    let limits = RekeyLimits::default();
    assert_eq!((limits.packets, limits.bytes), (1 << 28, 1 << 30));
    for by_packets in [true, false] {
        for by_client in [true, false] {
            let mut pair = Pair::connected();
            let end = if by_client {
                &mut pair.client
            } else {
                &mut pair.server
            };
            let usage = &mut end.transport.outbound.usage;
            if by_packets {
                usage.packets = limits.packets - 2;
            } else {
                usage.bytes = limits.bytes - 40;
            }
            end.send(b"one");
            pair.run();
            assert_eq!(pair.client.new_keys() + pair.server.new_keys(), 0);
            let end = if by_client {
                &mut pair.client
            } else {
                &mut pair.server
            };
            end.send(b"two");
            pair.run();
            pair.assert_healthy();
            assert_eq!((pair.client.new_keys(), pair.server.new_keys()), (1, 1));
            let arrived = if by_client { &pair.server } else { &pair.client };
            assert_eq!(arrived.packets(), ["one", "two"]);
        }
    }
}
