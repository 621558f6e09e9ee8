//! The guessed key exchange packet, by the rule of each server, right and wrong.

use bytes::BytesMut;

use super::pair::{Pair, ed25519_key, server_config};
use crate::algorithms::{Algorithms, HostKeyAlgorithm, Kex, KeyType};
use crate::message::{KEX_ECDH_REPLY, KEXINIT};
use crate::transport::kexinit::{self, Side};
use crate::transport::{GuessRule, HostKey, Incoming, ServerMemory, ServerTransportConfig, TransportConfig};
use crate::{Error, Violation};
use std::sync::Arc;

const RULES: [(&str, GuessRule); 5] = [
    ("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u10", GuessRule::Rfc),
    ("SSH-2.0-dropbear_2022.83", GuessRule::Rfc),
    ("SSH-2.0-AsyncSSH_2.24.1", GuessRule::Negotiated),
    ("SSH-2.0-tinyssh_20230101 b2Fs1x", GuessRule::Negotiated),
    ("SSH-2.0-paramiko_5.1.0", GuessRule::Ignored),
];
/// Servers that nobody knows may judge by any rule.
const UNKNOWN: [(&str, GuessRule); 3] = [
    ("SSH-2.0-x", GuessRule::Rfc),
    ("SSH-2.0-x", GuessRule::Negotiated),
    ("SSH-2.0-x", GuessRule::Ignored),
];

fn memory(kex: Kex, host_key: HostKeyAlgorithm) -> ServerMemory {
    ServerMemory {
        first_kex: kex.name().to_owned(),
        first_host_key: host_key.name().to_owned(),
        ..ServerMemory::default()
    }
}

fn client(memory: ServerMemory) -> TransportConfig {
    TransportConfig {
        known_host_key_types: KeyType::ALL.to_vec(),
        memory: Some(memory),
        ..TransportConfig::default()
    }
}

fn server((ident, guess_rule): (&str, GuessRule), kex: &[Kex]) -> ServerTransportConfig {
    let keys: [HostKey; 2] = [ed25519_key(7), HostKey::generate_ecdsa_nistp256().unwrap()];
    let mut config = ServerTransportConfig::new(Arc::from(keys));
    config.ident = ident.to_owned();
    config.guess_rule = guess_rule;
    config.algorithms.kex = kex.to_vec();
    config
}

/// What becomes of a guess.
#[derive(Debug, PartialEq)]
enum Fate {
    /// Answered: one flight is saved.
    Used,
    /// Dropped and made good.
    Dropped,
    /// The client gave up before the server could be confused.
    Rejected,
}

fn fate(client: TransportConfig, server: ServerTransportConfig) -> Fate {
    let mut pair = Pair::new(client, server);
    pair.run();
    if pair.client.error == Some(Error::GuessRejected) {
        return Fate::Rejected;
    }
    pair.assert_healthy();
    let mut without = Pair::new(TransportConfig::default(), server_config());
    without.run();
    // Ident, KEXINIT, (the guess), NEWKEYS and EXT_INFO: what is more was sent because the guess was dropped.
    let packets =
        pair.client.transport.counters().packets_sent - without.client.transport.counters().packets_sent;
    match packets {
        0 => Fate::Used,
        1 => Fate::Dropped,
        _ => panic!("{packets} packets more"),
    }
}

#[test]
fn a_right_guess_is_used_by_every_server() {
    for rule in RULES.into_iter().chain(UNKNOWN) {
        for &kex in Kex::ALL {
            let guess = client(memory(kex, HostKeyAlgorithm::Ed25519));
            assert_eq!(fate(guess, server(rule, &[kex])), Fate::Used, "{rule:?} {kex:?}");
        }
    }
}

#[test]
fn a_right_guess_saves_a_flight() {
    let flights = |memory: Option<ServerMemory>| {
        let config = TransportConfig {
            memory,
            known_host_key_types: KeyType::ALL.to_vec(),
            ..Default::default()
        };
        let mut pair = Pair::new(config, server_config());
        pair.client.send(b"done");
        let mut flights = 0;
        while pair.server.packets().is_empty() {
            let flight = pair.client.transmit(pair.now);
            pair.server.receive(pair.now, &flight, None);
            let answer = pair.server.transmit(pair.now);
            pair.client.receive(pair.now, &answer, Some(true));
            flights += 1;
        }
        flights
    };
    assert_eq!(flights(None), 3);
    assert_eq!(
        flights(Some(memory(Kex::Mlkem768X25519, HostKeyAlgorithm::Ed25519))),
        2
    );
}

#[test]
fn what_is_learned_makes_the_next_guess_right() {
    let mut first = Pair::new(
        TransportConfig {
            known_host_key_types: KeyType::ALL.to_vec(),
            ..TransportConfig::default()
        },
        server(RULES[3], Kex::ALL),
    );
    first.run();
    let learned = first.client.transport.learned().unwrap().clone();
    let mut expected = memory(Kex::Mlkem768X25519, HostKeyAlgorithm::Ed25519);
    expected.ident = "SSH-2.0-tinyssh_20230101".to_owned();
    expected.post_quantum = true;
    assert_eq!(learned, expected);
    assert_eq!(fate(client(learned), server(RULES[3], Kex::ALL)), Fate::Used);
}

#[test]
fn a_wrong_kex_is_dropped_or_makes_the_client_give_up() {
    let guess = || client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519));
    for (rule, expected) in RULES.into_iter().zip([
        Fate::Dropped,
        Fate::Dropped,
        Fate::Dropped,
        Fate::Dropped,
        Fate::Rejected,
    ]) {
        assert_eq!(
            fate(guess(), server(rule, &[Kex::EcdhNistp256])),
            expected,
            "{rule:?}"
        );
    }
    for rule in UNKNOWN {
        assert_eq!(
            fate(guess(), server(rule, &[Kex::EcdhNistp256])),
            Fate::Rejected,
            "{rule:?}"
        );
    }
}

#[test]
fn the_guessed_kex_behind_the_servers_first_is_dropped_or_used_by_rule() {
    let guess = || client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519));
    let list = [Kex::EcdhNistp256, Kex::Curve25519];
    for (rule, expected) in
        RULES
            .into_iter()
            .zip([Fate::Dropped, Fate::Dropped, Fate::Used, Fate::Used, Fate::Used])
    {
        assert_eq!(fate(guess(), server(rule, &list)), expected, "{rule:?}");
    }
    for rule in UNKNOWN {
        assert_eq!(fate(guess(), server(rule, &list)), Fate::Rejected, "{rule:?}");
    }
}

#[test]
fn another_first_host_key_is_dropped_or_used_by_rule() {
    let guess = || client(memory(Kex::Curve25519, HostKeyAlgorithm::EcdsaNistp256));
    for (rule, expected) in
        RULES
            .into_iter()
            .zip([Fate::Dropped, Fate::Dropped, Fate::Used, Fate::Used, Fate::Used])
    {
        assert_eq!(
            fate(guess(), server(rule, &[Kex::Curve25519])),
            expected,
            "{rule:?}"
        );
    }
    for rule in UNKNOWN {
        assert_eq!(
            fate(guess(), server(rule, &[Kex::Curve25519])),
            Fate::Rejected,
            "{rule:?}"
        );
    }
}

/// Whether the first flight has a guess in it.
fn guesses(config: TransportConfig) -> bool {
    let mut pair = Pair::new(config, server_config());
    pair.client.transmit(pair.now);
    pair.client.transport.counters().packets_sent == 2
}

#[test]
fn nothing_is_guessed_without_memory_that_fits() {
    let good = || client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519));
    assert!(guesses(good()));
    let check = |name: &str, change: &dyn Fn(&mut TransportConfig)| {
        let mut config = good();
        change(&mut config);
        assert!(!guesses(config), "{name}");
    };
    check("first contact", &|config| config.memory = None);
    check("unknown kex", &|config| {
        config.memory.as_mut().unwrap().first_kex = "dh".to_owned()
    });
    check("unknown host key", &|config| {
        config.memory.as_mut().unwrap().first_host_key = "dsa".to_owned()
    });
    check("host key type not known", &|config| {
        config.known_host_key_types = vec![KeyType::Rsa]
    });
    check("kex not offered", &|config| {
        config.algorithms.kex = vec![Kex::EcdhNistp256]
    });
    check("classical before post-quantum", &|config| {
        config.memory.as_mut().unwrap().post_quantum = true
    });
    check("against a chosen kex order", &|config| {
        config.algorithms.kex_explicit = true
    });
    check("a plain key where a certificate is wanted", &|config| {
        config.known_authority = true;
    });
    check("against a chosen host key order", &|config| {
        config.algorithms.host_keys.reverse();
        config.algorithms.host_keys_explicit = true;
    });
}

#[test]
fn a_chosen_order_that_fits_is_guessed() {
    let mut config = client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519));
    config
        .algorithms
        .set_kex("curve25519-sha256,ecdh-sha2-nistp256")
        .unwrap();
    assert!(guesses(config));
}

#[test]
fn the_offer_is_never_shortened_and_keeps_its_order_behind_the_guess() {
    let config = client(memory(Kex::Curve25519, HostKeyAlgorithm::RsaSha2_512));
    let offer = crate::transport::Transport::client(config).offer;
    let rest = |all: &[Kex]| {
        all.iter()
            .copied()
            .filter(|&kex| kex != Kex::Curve25519)
            .collect::<Vec<_>>()
    };
    assert_eq!(offer.kex[0], Kex::Curve25519);
    assert_eq!(offer.kex[1..], rest(Kex::ALL));
    assert_eq!(offer.host_keys[0], HostKeyAlgorithm::RsaSha2_512);
    assert_eq!(
        offer.host_keys.len(),
        HostKeyAlgorithm::ALL.len() / 2,
        "no certificates"
    );
}

#[test]
fn a_server_that_has_learned_a_post_quantum_method_is_not_held_to_a_classical_one() {
    let stale = client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519));
    assert_eq!(fate(stale, server(RULES[0], Kex::ALL)), Fate::Rejected);
}

#[test]
fn an_end_that_a_guess_may_have_caused_asks_for_another_try_without_it() {
    let ends: [fn(&mut Pair) -> Error; 2] = [
        |pair| pair.client.transport.handle_eof(),
        |pair| {
            pair.server.transport.disconnect(2, "what was that");
            pair.run();
            pair.client.error.clone().unwrap()
        },
    ];
    for end in ends {
        for (memory, guessed) in [
            (Some(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519)), true),
            (None, false),
        ] {
            let config = TransportConfig {
                memory,
                known_host_key_types: KeyType::ALL.to_vec(),
                ..Default::default()
            };
            let mut pair = Pair::new(config, server(RULES[0], &[Kex::Curve25519]));
            pair.client.transmit(pair.now);
            let hello = pair.server.transmit(pair.now);
            pair.client.receive(pair.now, &hello, None);
            assert_eq!(end(&mut pair) == Error::GuessRejected, guessed);
        }
    }
}

#[test]
fn a_wrong_signature_is_never_excused_by_a_guess() {
    let mut pair = Pair::new(
        client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519)),
        server(RULES[0], &[Kex::Curve25519]),
    );
    let mut hello = BytesMut::from(&pair.client.transmit(pair.now)[..]);
    hello[40] ^= 1;
    pair.server.receive(pair.now, &hello, None);
    pair.run();
    assert_eq!(pair.client.error, Some(Violation::Signature.into()));
}

/// A server that claims a guess of its own: `wrong` is what it sends before its true answer.
fn server_guess(kex: Kex, packets: u32) -> Pair {
    let mut pair = Pair::new(TransportConfig::default(), server(RULES[0], Kex::ALL));
    pair.server.transport.begin_exchange(pair.now).unwrap();
    let mut algorithms = Algorithms {
        host_keys: vec![HostKeyAlgorithm::Ed25519],
        ..Algorithms::default()
    };
    algorithms.kex.retain(|&other| other != kex);
    algorithms.kex.insert(0, kex);
    let kexinit = kexinit::build(Side::Server, &algorithms, true, true).unwrap();
    pair.server.transport.control.clear();
    pair.server.transport.control.push(|packet| {
        packet.raw(&kexinit);
    });
    pair.server.transport.exchange.as_mut().unwrap().our_kexinit = kexinit;
    for _ in 0..packets {
        pair.server.transport.control.push(|packet| {
            packet.byte(KEX_ECDH_REPLY).string("nonsense");
        });
    }
    pair.run();
    pair
}

#[test]
fn a_servers_wrong_guess_is_dropped_once() {
    server_guess(Kex::EcdhNistp256, 1).assert_healthy();
    let twice = server_guess(Kex::EcdhNistp256, 2);
    assert!(matches!(twice.client.error, Some(Error::Violation(_))));
}

#[test]
fn a_guess_again_on_every_rekey_is_dropped_again_and_keeps_nothing() {
    let mut pair = Pair::connected();
    for _ in 0..20 {
        pair.server.transport.begin_exchange(pair.now).unwrap();
        let offer = Algorithms {
            kex: vec![Kex::EcdhNistp256],
            ..Algorithms::default()
        };
        let kexinit = kexinit::build(Side::Server, &offer, false, true).unwrap();
        pair.server.transport.control.clear();
        pair.server.transport.control.push(|packet| {
            packet.raw(&kexinit);
        });
        pair.server.transport.control.push(|packet| {
            packet.byte(KEX_ECDH_REPLY).string("nonsense");
        });
        pair.server.transport.exchange.as_mut().unwrap().our_kexinit = kexinit;
        pair.server.transport.offer.kex = vec![Kex::EcdhNistp256];
        pair.run();
        pair.assert_healthy();
        assert_eq!(pair.client.transport.queued(), 0);
    }
    assert_eq!(pair.client.new_keys(), 20);
}

#[test]
fn a_kexinit_alone_is_no_answer_to_a_guess() {
    let mut pair = Pair::new(
        client(memory(Kex::Curve25519, HostKeyAlgorithm::Ed25519)),
        server(RULES[0], &[Kex::Curve25519]),
    );
    let hello = pair.server.transmit(pair.now);
    pair.client.receive(pair.now, &hello, None);
    assert_eq!(pair.client.incoming, [Incoming::Ident, Incoming::KexInit]);
    // Even where the server speaks first, our KEXINIT and the guess leave in one flight behind our ident.
    let flight = pair.client.transmit(pair.now);
    assert_eq!(flight.iter().filter(|&&byte| byte == b'\n').count().min(1), 1);
    assert_eq!(pair.client.transport.counters().packets_sent, 2);
    assert_eq!(flight[crate::transport::OUR_IDENT.len() + 2 + 5], KEXINIT);
}
