//! Single packets: lengths, padding, tags and sequence numbers, for each cipher.

use std::time::Instant;

use aws_lc_rs::digest;
use bytes::BytesMut;

use super::pair::Pair;
use crate::algorithms::{Cipher, Mac};
use crate::transport::cipher::{CLIENT_TO_SERVER, LENGTH, Opener, Protection, Sealer, TAG};
use crate::transport::derive::{Secrets, SharedSecret};
use crate::transport::packet::{Inbound, MAX_PACKET, MAX_PLAIN_PACKET, Outbound};
use crate::{Error, Violation};

/// Every cipher with every MAC that it takes.
fn protections() -> impl Iterator<Item = Protection> {
    Protection::all().into_iter()
}

/// The same, and the state before the first NEWKEYS.
fn states() -> impl Iterator<Item = Option<Protection>> {
    std::iter::once(None).chain(protections().map(Some))
}

/// How many bytes of the length are encrypted together with what follows them, and so count towards whole blocks.
fn counted(state: Option<Protection>) -> usize {
    match state.map(|protection| protection.mac) {
        None | Some(Some(Mac::HmacSha2_256 | Mac::HmacSha2_512)) => LENGTH,
        Some(None | Some(Mac::HmacSha2_256Etm | Mac::HmacSha2_512Etm)) => 0,
    }
}

/// Whether another cipher state than the sender's turns the length into noise.
fn hides_length(protection: Protection) -> bool {
    protection.cipher == Cipher::ChaCha20Poly1305 || counted(Some(protection)) == LENGTH
}

const LONGEST_TAG: usize = 64;

const AES_128_GCM: Protection = Protection {
    cipher: Cipher::Aes128Gcm,
    mac: None,
};

/// The two ends of one direction under fixed keys; `None` is the state before the first NEWKEYS.
fn direction(state: Option<Protection>) -> (Sealer, Outbound, Inbound) {
    let secret = SharedSecret::string(&[3; 32]);
    let secrets = Secrets {
        hash: &digest::SHA256,
        secret: &secret,
        exchange_hash: &[1; 32],
        session_id: &[2; 32],
    };
    let (mut outbound, mut inbound) = (Outbound::new(), Inbound::new());
    let Some(protection) = state else {
        return (Sealer::Plain, outbound, inbound);
    };
    let sealer = || Sealer::new(protection, &secrets, CLIENT_TO_SERVER).unwrap();
    outbound.rekey(sealer(), true);
    inbound.rekey(Opener::new(protection, &secrets, CLIENT_TO_SERVER).unwrap(), true);
    (sealer(), outbound, inbound)
}

fn sealed(outbound: &mut Outbound, payload: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    outbound.seal(&mut out, |packet| {
        packet.raw(payload);
    });
    out
}

/// A packet whose length and padding fields say what they like, with a good tag.
fn forged(sealer: &mut Sealer, length: u32, padding: u8, body: usize) -> BytesMut {
    let mut packet = BytesMut::new();
    packet.extend_from_slice(&length.to_be_bytes());
    packet.extend_from_slice(&[padding]);
    packet.resize(LENGTH + body, 7);
    sealer.seal(0, &mut packet, 0);
    packet
}

#[test]
fn payloads_of_every_small_size_and_of_large_ones_come_back() {
    for state in states() {
        let (_, mut outbound, mut inbound) = direction(state);
        for size in (1..300).chain([4095, 4096, 32 * 1024]) {
            let payload = vec![size as u8; size];
            let mut wire = sealed(&mut outbound, &payload);
            assert_eq!(
                inbound.open(&mut wire).unwrap().as_deref(),
                Some(&payload[..]),
                "{state:?} {size}"
            );
            assert!(wire.is_empty());
        }
    }
}

#[test]
fn every_packet_is_aligned_and_padded_with_four_bytes_or_more() {
    for state in states() {
        let (_, mut outbound, _) = direction(state);
        for size in 1..100 {
            let wire = sealed(&mut outbound, &vec![0; size]);
            let (block, outside) = match state.map(|protection| (protection.cipher, protection.mac)) {
                None => (8, 0),
                Some((Cipher::ChaCha20Poly1305, _)) => (8, LENGTH + TAG),
                Some((_, Some(Mac::HmacSha2_256))) => (16, 32),
                Some((_, Some(Mac::HmacSha2_512))) => (16, 64),
                Some((_, Some(Mac::HmacSha2_256Etm))) => (16, LENGTH + 32),
                Some((_, Some(Mac::HmacSha2_512Etm))) => (16, LENGTH + 64),
                Some((_, None)) => (16, LENGTH + TAG),
            };
            assert!((wire.len() - outside).is_multiple_of(block));
            assert!(wire.len() - outside >= size + 1 + 4);
        }
    }
}

#[test]
fn impossible_lengths_are_refused_from_their_first_four_bytes() {
    for state in states() {
        let max = if state.is_some() {
            MAX_PACKET
        } else {
            MAX_PLAIN_PACKET
        } as u32;
        for length in [
            0,
            1,
            2,
            3,
            4,
            5,
            7,
            9,
            13,
            35,
            max + 1,
            max + 8,
            max + 16,
            0x7fff_fff0,
            u32::MAX,
        ] {
            let (mut sealer, _, mut inbound) = direction(state);
            let mut wire = forged(&mut sealer, length, 4, 64);
            wire.truncate(LENGTH);
            let expected = Err(Violation::PacketLength(length));
            assert_eq!(inbound.open(&mut wire), expected, "{state:?} {length}");
        }
    }
}

#[test]
fn a_block_that_another_cipher_would_allow_is_refused() {
    for protection in protections().filter(|protection| protection.cipher != Cipher::ChaCha20Poly1305) {
        // Whole blocks if the length counts where it does not, and the other way round.
        let wrong = 32 - u32::try_from(LENGTH - counted(Some(protection))).unwrap();
        for length in [24, wrong] {
            let (mut sealer, _, mut inbound) = direction(Some(protection));
            let mut wire = forged(&mut sealer, length, 4, 32);
            let expected = Err(Violation::PacketLength(length));
            assert_eq!(inbound.open(&mut wire), expected, "{protection:?}");
        }
    }
}

#[test]
fn padding_below_four_or_over_the_whole_payload_is_refused() {
    for state in states() {
        let length = 32 - u8::try_from(counted(state)).unwrap();
        for padding in [0, 1, 2, 3, length - 1, length, length + 1, 255] {
            let (mut sealer, _, mut inbound) = direction(state);
            let mut wire = forged(&mut sealer, length.into(), padding, length.into());
            assert_eq!(
                inbound.open(&mut wire),
                Err(Violation::PaddingLength(padding)),
                "{state:?}"
            );
        }
        let (mut sealer, _, mut inbound) = direction(state);
        let mut wire = forged(&mut sealer, length.into(), length - 2, length.into());
        assert_eq!(
            inbound.open(&mut wire).unwrap().as_deref(),
            Some(&[7][..]),
            "one byte may stay"
        );
    }
}

#[test]
fn a_changed_bit_at_any_place_is_never_accepted() {
    for protection in protections() {
        let (_, mut outbound, _) = direction(Some(protection));
        let good = sealed(&mut outbound, b"a payload of some length");
        for bit in 0..good.len() * 8 {
            let (_, _, mut inbound) = direction(Some(protection));
            let mut wire = good.clone();
            wire[bit / 8] ^= 1 << (bit % 8);
            let result = match inbound.open(&mut wire) {
                // A longer length that is possible: the tag is looked for where the peer never put one.
                Ok(None) => {
                    wire.resize(LENGTH + MAX_PACKET + LONGEST_TAG, 0);
                    inbound.open(&mut wire)
                }
                result => result,
            };
            let refused = matches!(result, Err(Violation::Tag))
                || bit < 32 && matches!(result, Err(Violation::PacketLength(_)));
            assert!(refused, "{protection:?}, bit {bit}: {result:?}");
        }
    }
}

#[test]
fn nothing_is_decrypted_before_its_tag_was_verified_where_the_cipher_allows_it() {
    for protection in protections().filter(|&protection| !hides_length(protection)) {
        let (_, mut outbound, _) = direction(Some(protection));
        let (_, _, mut inbound) = direction(Some(protection));
        let mut wire = sealed(&mut outbound, b"a payload of some length");
        let last = wire.len() - 1;
        wire[last] ^= 1;
        let before = wire.clone();
        assert_eq!(inbound.open(&mut wire), Err(Violation::Tag));
        // GCM decrypts while it verifies and wipes what it found.
        if protection.mac.is_some() {
            assert_eq!(wire, before, "{protection:?}");
        }
    }
}

#[test]
fn a_packet_that_is_repeated_left_out_or_swapped_is_refused() {
    for protection in protections() {
        let (_, mut outbound, _) = direction(Some(protection));
        let (first, second) = (sealed(&mut outbound, b"first"), sealed(&mut outbound, b"second"));
        let check = |order: &[&BytesMut]| {
            let (_, _, mut inbound) = direction(Some(protection));
            let mut last = Ok(None);
            for packet in order {
                last = inbound.open(&mut BytesMut::from(&packet[..]));
            }
            let noise = hides_length(protection) && matches!(last, Err(Violation::PacketLength(_)));
            assert!(noise || last == Err(Violation::Tag), "{protection:?}: {last:?}");
        };
        check(&[&first, &first]);
        check(&[&second]);
    }
}

#[test]
fn the_sequence_number_wraps_on_both_sides() {
    for state in states() {
        let (_, mut outbound, mut inbound) = direction(state);
        outbound.sequence = u32::MAX - 1;
        inbound.sequence = u32::MAX - 1;
        for payload in [b"one", b"two", b"six"] {
            let mut wire = sealed(&mut outbound, payload);
            assert_eq!(inbound.open(&mut wire).unwrap().as_deref(), Some(&payload[..]));
        }
        assert_eq!((outbound.sequence, inbound.sequence), (1, 1));
    }
}

#[test]
fn a_key_that_has_carried_all_it_can_is_refused() {
    let (_, mut outbound, mut inbound) = direction(Some(AES_128_GCM));
    inbound.usage.packets = u32::MAX;
    let mut wire = sealed(&mut outbound, b"one too many");
    assert_eq!(inbound.open(&mut wire), Err(Violation::KeyExhausted));
}

#[test]
fn a_declared_length_allocates_nothing() {
    for state in states() {
        let (mut sealer, _, mut inbound) = direction(state);
        let max = if state.is_some() {
            MAX_PACKET
        } else {
            MAX_PLAIN_PACKET
        };
        let length = (max - max % 16 - counted(state)) as u32;
        let mut wire = forged(&mut sealer, length, 4, 16);
        wire.truncate(5);
        let before = wire.capacity();
        assert_eq!(inbound.open(&mut wire), Ok(None));
        assert_eq!((wire.len(), wire.capacity()), (5, before));
    }
}

#[test]
fn a_small_payload_never_keeps_the_read_buffer_alive() {
    let (_, mut outbound, mut inbound) = direction(Some(AES_128_GCM));
    let mut wire = BytesMut::with_capacity(64 * 1024);
    wire.extend_from_slice(&sealed(&mut outbound, b"small"));
    let payload = inbound.open(&mut wire).unwrap().unwrap();
    assert!(wire.try_reclaim(64 * 1024), "nothing else refers to it");
    assert_eq!(&payload[..], b"small");
}

#[test]
fn a_large_payload_is_handed_on_without_a_copy() {
    let (_, mut outbound, mut inbound) = direction(Some(AES_128_GCM));
    let mut wire = sealed(&mut outbound, &[9; 16 * 1024]);
    let start = wire.as_ptr() as usize;
    let payload = inbound.open(&mut wire).unwrap().unwrap();
    assert_eq!(payload.as_ptr() as usize, start + LENGTH + 1);
}

#[test]
fn a_corrupted_packet_ends_the_connection_and_stays_its_error() {
    let mut pair = Pair::connected();
    pair.server.send(b"something");
    let mut wire = BytesMut::from(&pair.server.transmit(pair.now)[..]);
    let last = wire.len() - 1;
    wire[last] ^= 1;
    pair.client.receive(pair.now, &wire, None);
    assert_eq!(pair.client.error, Some(Error::Violation(Violation::Tag)));
    assert_eq!(pair.client.packets(), [&[][..]; 0]);
    let again = pair
        .client
        .transport
        .handle_input(Instant::now(), &mut BytesMut::new());
    assert_eq!(again, Err(Error::Violation(Violation::Tag)));
    let goodbye = pair.client.transmit(pair.now);
    pair.server.receive(pair.now, &goodbye, None);
    assert!(matches!(
        pair.server.error,
        Some(Error::Disconnected { code: 5, .. })
    ));
}
