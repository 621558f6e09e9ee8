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

/// Two packets, SERVICE_REQUEST and an empty IGNORE, under the keys of [`direction`], as another implementation of
/// RFC 4253 §7.2 and of each cipher and MAC writes them.
#[rustfmt::skip]
const SEALED: [(Cipher, Option<Mac>, &str); 15] = [
    (Cipher::ChaCha20Poly1305, None, "815dbe39cbe28aa9a4124a6d58c17dca3ba499d5db631924b28ebb692316be8df25231e1a758812cdd2afaaa9ce926aae3322ab12635cc97d9945ee88d06e9617bcfa49081ebba577cfc55329874be4a"),
    (Cipher::Aes128Gcm, None, "00000020709d385f13fa465ed2b9f561a34c3fa06a0b0472715879cb89b946b6dc635ee85d17c92cf401909e07f6b52793306fee00000010b10d2efc469fda108a42f55cdc6a977f99e755967db7639396f63432580b104d"),
    (Cipher::Aes256Gcm, None, "000000202ef1d7af99e5508b2e20d1237f9523f1045076d35028ae70fa38f946285844570bb507038ff04dc0b8c2720d4e930e6500000010c88793bb738e6401dff0038ec8fbc076d8417d9dc117003639957785c36649dd"),
    (Cipher::Aes128Ctr, Some(Mac::HmacSha2_256Etm), "000000208e2cd5eccffeb2ee3cf2a3e9ef4282463b17b6729007b37ff905307321723122ea56bc97b5770bb64c56793c99a2f742710227202a648320d47ec112f0c2c5fe00000010953f11329aa6bf058b95db3fd4ba1ac0526dc1b09ec05c3129571205fdd04915dd2cf3f8d81c02c52cb78e7c440bb08b"),
    (Cipher::Aes128Ctr, Some(Mac::HmacSha2_512Etm), "000000208e2cd5eccffeb2ee3cf2a3e9ef4282463b17b6729007b37ff90530732172312299e7772686c1058de1119cf8275f2319da599894d844d0783056f4a8011108615a339c7f93cc6478c5a43795f7f088b37bd0ecf6ad5c7d413ff18997852f189400000010953f11329aa6bf058b95db3fd4ba1ac078b2b62e6c3d021624f3f90244d1f2229dd31050103ecb66859ab2cdac297bce604e46a247dd61ed9b30fbac752bd4eee6641a3614d8191b985484940a802a7c"),
    (Cipher::Aes128Ctr, Some(Mac::HmacSha2_256), "8029d5f0c5f7c19d54d3a5e9e21d96402a0dd707e46fb37ff90530732172312247486c0267b02d34ec60c2c18d8b660b445b251dedafd95d20bb04cab79bdfc69f3d113e9ca4bf058b95db3fd4ba1ac0d5e49f68cb48ec7b1f3ef11cd4d5e331b7cbebbb12a53d493661486989bd7ab7"),
    (Cipher::Aes128Ctr, Some(Mac::HmacSha2_512), "8029d5f0c5f7c19d54d3a5e9e21d96402a0dd707e46fb37ff9053073217231225629ca3e8188876ffa7052ba94738d8fa06151db9eb2521fe5bc69ce8e6c99ab726ea1b431f45ad4c2485edf59e0cbe85b43342c08eae4016a3b84a35f3620909f3d113e9ca4bf058b95db3fd4ba1ac03b453f845d6ffdcddbe06dcb260dc47ade5f331830d1d3b735f5849dfcd541725bcb354a93bca194184ba611df0817d04da0c107d47d17afaa36d1050197e9bd"),
    (Cipher::Aes192Ctr, Some(Mac::HmacSha2_256Etm), "0000002044b8498c95b6e8e93c1e6518c9b4330313f2bea304812161af85067cb44d10ed8f4be633f3f12cd74d00695f484017708cc55c50ea4c2be1889668711f3254c000000010c6c887eee00f4744487d4c00cdb5dbf66c5d766f2339adb456e8c456939edbe33116e679301587c3f910c86990b13a50"),
    (Cipher::Aes192Ctr, Some(Mac::HmacSha2_512Etm), "0000002044b8498c95b6e8e93c1e6518c9b4330313f2bea304812161af85067cb44d10edc55bd9b2f08d63624a8145cd8e6648aba9245ad468230538969e979dec904ee5f3f22b59a5c3008c6d3243e0a3de2edcfebf821a2a15539df22bb252343295b700000010c6c887eee00f4744487d4c00cdb5dbf6a5ddf3f2491d434cd8914ae38f3e804e08806e088c7df674eb1b9e8c4a05017dc29a258a3d7f4939b43ad9fb9f3ff0c55aa46d037b7bed21283b046a3ba0de50"),
    (Cipher::Aes192Ctr, Some(Mac::HmacSha2_256), "4abd49909fbf9b9a543f6318c4eb270502e8dfd670e92161af85067cb44d10ed47486c0267b02d34ec60c2c18d8b660b445b251dedafd95d20bb04cab79bdfc6ccca87e2e60d4744487d4c00cdb5dbf6d5e49f68cb48ec7b1f3ef11cd4d5e331b7cbebbb12a53d493661486989bd7ab7"),
    (Cipher::Aes192Ctr, Some(Mac::HmacSha2_512), "4abd49909fbf9b9a543f6318c4eb270502e8dfd670e92161af85067cb44d10ed5629ca3e8188876ffa7052ba94738d8fa06151db9eb2521fe5bc69ce8e6c99ab726ea1b431f45ad4c2485edf59e0cbe85b43342c08eae4016a3b84a35f362090ccca87e2e60d4744487d4c00cdb5dbf63b453f845d6ffdcddbe06dcb260dc47ade5f331830d1d3b735f5849dfcd541725bcb354a93bca194184ba611df0817d04da0c107d47d17afaa36d1050197e9bd"),
    (Cipher::Aes256Ctr, Some(Mac::HmacSha2_256Etm), "0000002017316294d13f931b90ad566d549cb9f33db71ec2f0262d226fc008cb7869c8aad92a4515c99d9925954e97c804c1fe4c43560a35ff56d7a30ac082302fd4968700000010f3e839abeee08424ad878542ea0e4855c94398f21ebf614687a5881bee823f5f13f2ff311561de15bd7064041a1bd854"),
    (Cipher::Aes256Ctr, Some(Mac::HmacSha2_512Etm), "0000002017316294d13f931b90ad566d549cb9f33db71ec2f0262d226fc008cb7869c8aa70b452bbde550465a622d220b8dbcf8719b2c4c624836667f325b8a7923ee5725d181d428a5de382330a522832137a0188bab70dc13b7e659f1c1640193fea4c00000010f3e839abeee08424ad878542ea0e4855b2e331992a7037d6e596e6f021a257034b2d403b4d7b8b7f1e51ea6db9caece6c4c7e193e6a4de11be6863d8c564151dfd5559bfbf40fc8946e6faa0d6a211ae"),
    (Cipher::Aes256Ctr, Some(Mac::HmacSha2_256), "19346288db36e068f88c506d59c3adf52cad7fb7844e2d226fc008cb7869c8aa47486c0267b02d34ec60c2c18d8b660b445b251dedafd95d20bb04cab79bdfc6f9ea39a7e8e28424ad878542ea0e4855d5e49f68cb48ec7b1f3ef11cd4d5e331b7cbebbb12a53d493661486989bd7ab7"),
    (Cipher::Aes256Ctr, Some(Mac::HmacSha2_512), "19346288db36e068f88c506d59c3adf52cad7fb7844e2d226fc008cb7869c8aa5629ca3e8188876ffa7052ba94738d8fa06151db9eb2521fe5bc69ce8e6c99ab726ea1b431f45ad4c2485edf59e0cbe85b43342c08eae4016a3b84a35f362090f9ea39a7e8e28424ad878542ea0e48553b453f845d6ffdcddbe06dcb260dc47ade5f331830d1d3b735f5849dfcd541725bcb354a93bca194184ba611df0817d04da0c107d47d17afaa36d1050197e9bd"),
];

#[test]
fn packets_are_sealed_as_by_others() {
    for (cipher, mac, expected) in SEALED {
        let (_, mut outbound, mut inbound) = direction(Some(Protection { cipher, mac }));
        let payloads = [&b"\x05\0\0\0\x0cssh-userauth"[..], b"\x02\0\0\0\0"];
        let mut wire = BytesMut::new();
        for payload in payloads {
            wire.extend_from_slice(&sealed(&mut outbound, payload));
        }
        let hex: String = wire.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{cipher:?} {mac:?}");
        for payload in payloads {
            assert_eq!(inbound.open(&mut wire).unwrap().as_deref(), Some(payload));
        }
    }
    assert_eq!(SEALED.len(), Protection::all().len());
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
