//! The first key exchange as it should go: algorithms, flights, what is kept and what is forgotten.

use super::pair::{Pair, ed25519_key, offer, server_config};
use crate::algorithms::{Cipher, HostKeyAlgorithm, Kex, KeyType, Mac, SignatureAlgorithm};
use crate::message;
use crate::transport::kexinit::{KexInit, Side};
use crate::transport::{Incoming, OUR_IDENT, ServerTransportConfig, ShownKey, Transport, TransportConfig};
use crate::{Error, Incompatible};

#[test]
fn one_byte_at_a_time_changes_nothing() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.step = 1;
    pair.client.send(b"hello");
    pair.run();
    pair.assert_healthy();
    assert_eq!(pair.server.packets(), [&b"hello"[..]]);
}

#[test]
fn the_first_flight_leaves_before_anything_is_read() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    let flight = pair.client.transmit(pair.now);
    assert!(flight.starts_with(OUR_IDENT.as_bytes()));
    assert_eq!(flight[OUR_IDENT.len()..][..2], *b"\r\n");
    assert_eq!(flight[OUR_IDENT.len() + 2 + 5], message::KEXINIT);
}

#[test]
fn the_peer_is_reported_step_by_step() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.run();
    let key = ed25519_key(7).public().clone();
    assert_eq!(
        pair.client.incoming[..4],
        [
            Incoming::Ident,
            Incoming::KexInit,
            Incoming::HostKey(ShownKey {
                key: key.clone(),
                certificate: None
            }),
            Incoming::NewKeys { first: true }
        ]
    );
    assert!(matches!(pair.client.incoming[4], Incoming::ExtInfo(_)));
    assert_eq!(
        pair.client.transport.host_key().map(|blob| &**blob),
        Some(key.blob())
    );
    let session = pair.client.transport.session_id().unwrap();
    let signature = pair.client.transport.host_signature().unwrap();
    assert_eq!(
        key.verify(SignatureAlgorithm::Ed25519, session, signature),
        Ok(())
    );
}

#[test]
fn nothing_is_read_or_sent_while_the_host_key_is_asked_about() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.accept = None;
    pair.client.send(b"secret");
    pair.server.send(b"early");
    pair.run();
    assert!(pair.client.transport.waits_for_answer());
    assert!(!pair.client.input.is_empty(), "NEWKEYS and what follows wait");
    assert!(pair.server.packets().is_empty());
    pair.client.transport.answer_host_key(true);
    pair.client.drain(pair.now, None);
    pair.run();
    pair.assert_healthy();
    assert_eq!(pair.server.packets(), [&b"secret"[..]]);
    assert_eq!(pair.client.packets(), [&b"early"[..]]);
}

#[test]
fn newkeys_and_what_was_sent_after_it_leave_in_one_flight() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.accept = None;
    pair.run();
    pair.client.transport.answer_host_key(true);
    pair.client.send(b"auth");
    pair.client.send(b"open");
    let flight = pair.client.transmit(pair.now);
    pair.server.receive(pair.now, &flight, None);
    assert_eq!(pair.server.packets(), [&b"auth"[..], b"open"]);
}

#[test]
fn a_host_key_that_is_not_accepted_ends_the_connection() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.accept = Some(false);
    pair.client.send(b"secret");
    pair.run();
    assert_eq!(pair.client.error, Some(Error::HostKeyRejected));
    assert!(matches!(
        pair.server.error,
        Some(Error::Disconnected { code: 9, .. })
    ));
    assert!(pair.server.packets().is_empty());
}

#[test]
fn the_sequence_number_of_a_packet_is_known_when_it_is_queued() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.accept = None;
    pair.run();
    pair.client.transport.answer_host_key(true);
    pair.client.send(b"known");
    let sequence = pair.client.transport.next_send_sequence();
    pair.client.send(b"unknown");
    pair.client.send(b"known");
    let flight = pair.client.transmit(pair.now);
    pair.server.input.extend_from_slice(&flight);
    while let Ok(Some(incoming)) = pair
        .server
        .transport
        .handle_input(pair.now, &mut pair.server.input)
    {
        if matches!(&incoming, Incoming::Packet(payload) if payload[1..] == *b"unknown") {
            pair.server.transport.reject_packet().unwrap();
        }
    }
    pair.client.drain(pair.now, None);
    pair.run();
    assert_eq!(
        pair.client.incoming.last(),
        Some(&Incoming::Unimplemented(sequence))
    );
}

#[test]
fn an_unknown_message_is_answered_with_its_sequence_number() {
    let mut pair = Pair::connected();
    pair.client.send(b"first");
    let sequence = pair.client.transport.next_send_sequence();
    pair.client.transport.send(|packet| {
        packet.byte(200).string("from the future");
    });
    pair.run();
    assert_eq!(pair.client.incoming, [Incoming::Unimplemented(sequence)]);
}

#[test]
fn compression_and_names_that_are_no_kex_are_offered_as_they_must() {
    let payload =
        super::super::kexinit::build(Side::Client, &TransportConfig::default().algorithms, true, false)
            .unwrap();
    let ours = KexInit::parse(&payload).unwrap();
    assert!(ours.is_strict(Side::Client));
    assert!(ours.takes_ext_info(Side::Client));
    assert_eq!(ours.kex.first(), Some("mlkem768x25519-sha256"));
    let text = String::from_utf8_lossy(&payload);
    assert!(!text.contains("zlib"));
    assert_eq!(text.matches("none").count(), 2);
}

#[test]
fn nothing_in_common_names_what_the_server_offers() {
    let server = |change: fn(&mut ServerTransportConfig)| {
        let mut config = server_config();
        change(&mut config);
        config
    };
    let check = |client: TransportConfig, server, expected: Incompatible| {
        let mut pair = Pair::new(client, server);
        pair.run();
        assert_eq!(pair.client.error, Some(Error::Incompatible(expected)));
    };
    check(
        offer(|ours| ours.kex = vec![Kex::EcdhNistp256]),
        server(|config| config.algorithms.kex = vec![Kex::Curve25519]),
        Incompatible::Kex("curve25519-sha256".into()),
    );
    check(
        offer(|ours| ours.host_keys = vec![HostKeyAlgorithm::RsaSha2_512]),
        server_config(),
        Incompatible::HostKey("ssh-ed25519".into()),
    );
    check(
        offer(|ours| ours.ciphers = vec![Cipher::Aes128Gcm]),
        server(|config| config.algorithms.ciphers = vec![Cipher::Aes256Gcm]),
        Incompatible::Cipher("aes256-gcm@openssh.com".into()),
    );
    check(
        offer(|ours| {
            ours.ciphers = vec![Cipher::Aes128Ctr];
            ours.macs = vec![Mac::HmacSha2_512];
        }),
        server(|config| config.algorithms.macs = vec![Mac::HmacSha2_256]),
        Incompatible::Mac("hmac-sha2-256".into()),
    );
}

#[test]
fn macs_need_no_overlap_where_the_cipher_takes_none() {
    let mut server = server_config();
    server.algorithms.macs = vec![Mac::HmacSha2_256];
    let mut pair = Pair::new(offer(|ours| ours.macs = vec![Mac::HmacSha2_512]), server);
    pair.run();
    pair.assert_healthy();
}

#[test]
fn host_key_types_that_are_known_come_first_as_in_openssh() {
    let order = |known: &[KeyType], explicit: bool| {
        let mut config = TransportConfig {
            known_host_key_types: known.to_vec(),
            ..TransportConfig::default()
        };
        config.algorithms.host_keys_explicit = explicit;
        Transport::client(config).offer.host_keys
    };
    let plain = |algorithm: &&HostKeyAlgorithm| !algorithm.is_certificate();
    let default: Vec<_> = HostKeyAlgorithm::ALL
        .iter()
        .copied()
        .filter(|algorithm| plain(&algorithm))
        .collect();
    assert_eq!(order(&[], false), default);
    assert_eq!(
        order(&[KeyType::Ed25519, KeyType::Rsa], false),
        default,
        "the first is known anyway"
    );
    let chosen = order(&[KeyType::Rsa], true);
    assert_eq!(chosen, HostKeyAlgorithm::ALL, "someone chose the order");
    let rsa_first = order(&[KeyType::Rsa], false);
    assert_eq!(
        rsa_first[..2],
        [HostKeyAlgorithm::RsaSha2_512, HostKeyAlgorithm::RsaSha2_256]
    );
    assert_eq!(rsa_first[2..], default[..6]);
}

#[test]
fn certificates_are_asked_for_first_where_an_authority_is_known_and_nowhere_else() {
    let order = |known: &[KeyType], list: Option<&str>, known_authority: bool| {
        let mut config = TransportConfig {
            known_host_key_types: known.to_vec(),
            known_authority,
            ..TransportConfig::default()
        };
        if let Some(list) = list {
            config.algorithms.set_host_keys(list).unwrap();
        }
        Transport::client(config).offer.host_keys
    };
    let certificates =
        |order: &[HostKeyAlgorithm]| order.iter().take_while(|one| one.is_certificate()).count();
    // What `ssh -vv` 9.2 offers where known_hosts has such lines.
    assert_eq!(order(&[], None, true), HostKeyAlgorithm::ALL);
    assert_eq!(order(&[KeyType::Ed25519], None, true), HostKeyAlgorithm::ALL);
    let rsa = order(&[KeyType::Rsa], None, true);
    assert_eq!(certificates(&rsa), 8);
    assert_eq!(
        rsa[8..10],
        [HostKeyAlgorithm::RsaSha2_512, HostKeyAlgorithm::RsaSha2_256]
    );
    for list in [None, Some("+ssh-rsa"), Some("-ecdsa-*")] {
        assert_eq!(certificates(&order(&[], list, false)), 0, "{list:?}");
    }
    // Who lists them gets them.
    let listed = "ssh-ed25519-cert-v01@openssh.com,ssh-ed25519";
    let both = [HostKeyAlgorithm::Ed25519Cert, HostKeyAlgorithm::Ed25519];
    assert_eq!(order(&[], Some(listed), false), both);
    assert_eq!(order(&[KeyType::Rsa], Some(listed), true), both);
    let only = order(
        &[],
        Some("-ssh-*,rsa-*,ecdsa-*2-nistp???,sk-*@openssh.com"),
        false,
    );
    assert!(only.iter().all(|one| one.is_certificate()), "{only:?}");
}

#[test]
fn an_idle_transport_is_small_and_keeps_nothing_of_the_exchange() {
    let pair = Pair::connected();
    for transport in [&pair.client.transport, &pair.server.transport] {
        assert!(transport.exchange.is_none());
        assert!(transport.next_sealer.is_none());
        assert_eq!(transport.queued(), 0);
    }
    assert!(size_of::<Transport>() <= 1024, "{}", size_of::<Transport>());
}
