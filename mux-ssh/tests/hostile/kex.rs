//! The first key exchange: order, lists, keys, proofs, guesses.

use bytes::Bytes;
use mux_ssh::client::Event;
use mux_ssh::keys::KeyBlobError;
use mux_ssh::message;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::{GuessRule, HostKey, ServerMemory};
use mux_ssh::wire::Writer;
use mux_ssh::{Error, Incompatible, Violation};

use crate::harness::{Case, drop_ref, fails, payload, violates};

fn before(moment: Moment, payload: impl Into<Bytes>) -> Plan {
    Plan::new().with(Point::Before(moment, 1), Act::Packet(payload.into()))
}

fn instead(moment: Moment, payload: Bytes) -> Plan {
    Plan::new().with(Point::Before(moment, 1), Act::Replace(payload))
}

/// A KEXINIT with these lists of kex, host keys, ciphers and compression.
fn kexinit(kex: &str, host_key: &str, cipher: &str, compression: &str) -> Bytes {
    payload(|w| {
        w.byte(message::KEXINIT)
            .raw(&[7; 16])
            .string(kex)
            .string(host_key)
            .string(cipher)
            .string(cipher);
        w.string("hmac-sha2-256")
            .string("hmac-sha2-256")
            .string(compression)
            .string(compression);
        w.string("").string("").boolean(false).uint32(0);
    })
}

const KEX: &str = "curve25519-sha256,kex-strict-s-v00@openssh.com";
const AES: &str = "aes128-gcm@openssh.com";

/// Line 1: a packet inserted before NEWKEYS.
#[test]
fn terrapin_insert_before_newkeys() {
    for number in [message::IGNORE, message::DEBUG, message::UNIMPLEMENTED] {
        let packet = payload(|w| drop_ref(w.byte(number).uint32(0).uint32(0).uint32(0)));
        violates(
            before(Moment::NewKeys, packet),
            Violation::UnexpectedMessage(number),
        );
    }
}

/// Line 1: a packet before the first KEXINIT.
#[test]
fn terrapin_insert_before_kexinit() {
    violates(
        before(Moment::KexInit, &b"\x02\0\0\0\0"[..]),
        Violation::StrictFirstPacket,
    );
}

/// Line 1: the first packet under the new keys is cut out.
#[test]
fn terrapin_cut_behind_newkeys() {
    violates(
        Plan::new().with(Point::Before(Moment::ExtInfo, 1), Act::Lose),
        Violation::Tag,
    );
}

/// Line 1: somebody on the way changes any byte of the server's offer, the marker of strict key exchange included.
#[test]
fn an_offer_that_is_tampered_with_breaks_the_signature() {
    let mut signatures = 0;
    for from_end in 0.. {
        let act = Act::Patch { from_end, mask: 1 };
        let case = Case::new(Plan::new().with(Point::Before(Moment::KexInit, 1), act));
        let seen = case.kex("curve25519-sha256").run();
        if !seen.stdout.is_empty() {
            // The byte in front of the first one: nothing was changed.
            assert!(from_end > 400, "byte {from_end} of the offer can be changed");
            break;
        }
        assert!(seen.error.is_some() || from_end == 4, "byte {from_end}");
        signatures += usize::from(seen.error == Some(Violation::Signature.into()));
    }
    assert!(signatures > 100, "{signatures}");
}

/// Line 7.
#[test]
fn a_second_kexinit_during_the_exchange() {
    let again = kexinit(KEX, "ssh-ed25519", AES, "none");
    violates(
        before(Moment::KexReply, again),
        Violation::UnexpectedMessage(message::KEXINIT),
    );
}

/// Line 7.
#[test]
fn a_kexinit_with_too_many_names() {
    for count in [257, 1000, 6000] {
        let names = vec!["a"; count].join(",");
        for at in 0..3 {
            let mut lists = [KEX, "ssh-ed25519", AES];
            lists[at] = &names;
            let plan = instead(Moment::KexInit, kexinit(lists[0], lists[1], lists[2], "none"));
            violates(plan, Violation::TooManyNames);
        }
    }
}

/// Line 7: more names than a packet before the first NEWKEYS may hold.
#[test]
fn a_kexinit_larger_than_its_packet_may_be() {
    let names = vec!["aaaaaaaaa"; 10_000].join(",");
    let seen = Case::new(instead(
        Moment::KexInit,
        kexinit(&names, "ssh-ed25519", AES, "none"),
    ))
    .run();
    assert!(
        matches!(seen.error, Some(Error::Violation(Violation::PacketLength(_)))),
        "{:?}",
        seen.error
    );
}

/// Line 7.
#[test]
fn names_that_are_none() {
    for bad in [
        "curve25519-sha256,,a",
        ",",
        "a\0b",
        "käse",
        "a b",
        "curve25519-sha256,",
    ] {
        violates(
            instead(Moment::KexInit, kexinit(bad, "ssh-ed25519", AES, "none")),
            Violation::NameList,
        );
    }
}

/// Lines 7 and 16.
#[test]
fn lists_without_overlap() {
    let check = |kexinit: Bytes, expected: Incompatible| {
        fails(Case::new(instead(Moment::KexInit, kexinit)), expected);
    };
    let old = "diffie-hellman-group1-sha1";
    check(
        kexinit(old, "ssh-ed25519", AES, "none"),
        Incompatible::Kex(old.to_owned()),
    );
    check(
        kexinit("", "", "", "none"),
        Incompatible::Kex("nothing".to_owned()),
    );
    check(
        kexinit(KEX, "ssh-dss", AES, "none"),
        Incompatible::HostKey("ssh-dss".to_owned()),
    );
    check(
        kexinit(KEX, "ssh-ed25519", "3des-cbc", "none"),
        Incompatible::Cipher("3des-cbc".to_owned()),
    );
    let zlib = "zlib,zlib@openssh.com";
    check(
        kexinit(KEX, "ssh-ed25519", AES, zlib),
        Incompatible::Compression(zlib.to_owned()),
    );
}

/// Line 16.
#[test]
fn compression_is_not_offered() {
    let seen = Case::good().run();
    assert!(!seen.client_says.windows(4).any(|window| window == b"zlib"));
}

/// Line 7: names twice are no reason to trust less, and none to trust more.
#[test]
fn a_kexinit_that_was_exchanged_breaks_the_signature() {
    let twice = format!("{KEX},{KEX}");
    let plan = instead(
        Moment::KexInit,
        kexinit(&twice, "ssh-ed25519,ssh-ed25519", AES, "none"),
    );
    fails(Case::new(plan).kex("curve25519-sha256"), Violation::Signature);
}

/// Line 7.
#[test]
fn a_kexinit_that_is_cut_or_too_long() {
    let whole = kexinit(KEX, "ssh-ed25519", AES, "none");
    for len in 1..whole.len() {
        violates(instead(Moment::KexInit, whole.slice(..len)), Violation::Truncated);
    }
    let longer = [&whole[..], b"x"].concat();
    violates(instead(Moment::KexInit, longer.into()), Violation::TrailingBytes);
}

/// Line 8: the server announces a guess of its own; with the announcement the hash is another one.
#[test]
fn a_server_that_guesses() {
    let announce = Act::Patch { from_end: 4, mask: 1 };
    let seen = Case::new(Plan::new().with(Point::Before(Moment::KexInit, 1), announce)).run();
    assert!(
        matches!(seen.error, None | Some(Error::Violation(Violation::Signature))),
        "{:?}",
        seen.error
    );
    assert!(seen.stdout.is_empty());
}

/// Line 9.
#[test]
fn messages_between_kexinit_and_newkeys() {
    for number in [
        message::SERVICE_ACCEPT,
        message::EXT_INFO,
        message::USERAUTH_SUCCESS,
        80,
        94,
        32,
        33,
        49,
    ] {
        let plan = before(Moment::KexReply, vec![number, 0, 0, 0, 0]);
        violates(plan, Violation::UnexpectedMessage(number));
    }
}

/// Line 9.
#[test]
fn two_replies() {
    let plan = Plan::new().with(
        Point::After(Moment::KexReply, 1),
        Act::Packet(Bytes::from_static(&[31, 0, 0])),
    );
    violates(plan, Violation::UnexpectedMessage(message::KEX_ECDH_REPLY));
}

/// Line 9.
#[test]
fn newkeys_before_the_reply_twice_and_with_something_in_it() {
    let newkeys = Violation::UnexpectedMessage(message::NEWKEYS);
    violates(before(Moment::KexReply, &b"\x15"[..]), newkeys);
    violates(
        Plan::new().with(
            Point::After(Moment::ExtInfo, 1),
            Act::Packet(Bytes::from_static(b"\x15")),
        ),
        newkeys,
    );
    violates(
        instead(Moment::NewKeys, Bytes::from_static(b"\x15x")),
        Violation::TrailingBytes,
    );
}

/// Line 9: no NEWKEYS at all, so that what follows is not what its cipher makes of it.
#[test]
fn newkeys_left_out() {
    let seen = Case::new(Plan::new().with(Point::Before(Moment::NewKeys, 1), Act::Drop)).run();
    assert!(seen.error.is_some() || seen.stdout.is_empty());
    assert!(!seen.logged_in());
}

/// Line 10: secrets that begin with zeros come once in 256 exchanges, so 1,000 of each kind see some.
#[test]
fn secrets_with_leading_zeros() {
    for kex in ["curve25519-sha256", "ecdh-sha2-nistp256"] {
        for _ in 0..1000 {
            Case::good().kex(kex).run().assert_worked();
        }
    }
}

/// Every kind of key exchange, cipher and host key.
#[test]
fn everything_that_is_offered_works() {
    for kex in mux_ssh::algorithms::Kex::ALL {
        Case::good().kex(kex.name()).run().assert_worked();
    }
    for cipher in mux_ssh::algorithms::Cipher::ALL {
        let case = Case::good().client(|client| client.algorithms.set_ciphers(cipher.name()).unwrap());
        case.run().assert_worked();
    }
    let ecdsa = HostKey::generate_ecdsa_nistp256().unwrap();
    Case::good()
        .server(|server| server.host_keys = [ecdsa].into())
        .run()
        .assert_worked();
}

/// A reply with this host key and public value; the signature is noise.
fn reply(host_key: &[u8], public: &[u8]) -> Plan {
    let signature = payload(|w| drop_ref(w.string("ssh-ed25519").string([7; 64])));
    instead(
        Moment::KexReply,
        payload(|w| {
            drop_ref(
                w.byte(message::KEX_ECDH_REPLY)
                    .string(host_key)
                    .string(public)
                    .string(&signature),
            )
        }),
    )
}

fn blob(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    payload(write)
}

/// Line 11.
#[test]
fn host_keys_that_can_not_be_used() {
    let check =
        |blob: Bytes, error: KeyBlobError| violates(reply(&blob, &[9; 32]), Violation::HostKey(error));
    for len in [0, 31, 33, 64] {
        let key = blob(|w| drop_ref(w.string("ssh-ed25519").string(vec![1; len])));
        check(key, KeyBlobError::WrongLength);
    }
    let rsa = |e: &[u8], n: &[u8]| blob(|w| drop_ref(w.string("ssh-rsa").mpint(e).mpint(n)));
    check(rsa(&[3], &[0xff; 64]), KeyBlobError::RsaModulus { bits: 512 });
    check(rsa(&[3], &[0xff; 1025]), KeyBlobError::RsaModulus { bits: 8200 });
    check(rsa(&[3], &[0xff; 2056]), KeyBlobError::WrongLength);
    check(rsa(&[0x7f; 64], &[0xff; 256]), KeyBlobError::RsaExponent);
    check(rsa(&[2], &[0xff; 256]), KeyBlobError::RsaExponent);
    check(rsa(&[1], &[0xff; 256]), KeyBlobError::RsaExponent);
    check(
        blob(|w| drop_ref(w.string("ssh-dss").string("x"))),
        KeyBlobError::UnknownType,
    );
    check(Bytes::new(), KeyBlobError::Malformed);
}

/// Line 11.
#[test]
fn a_host_key_of_another_type_than_agreed() {
    let ecdsa = HostKey::generate_ecdsa_nistp256().unwrap();
    violates(reply(ecdsa.public().blob(), &[9; 32]), Violation::HostKeyType);
}

/// Line 11. The name of the algorithm stands 68 bytes from the end, behind it 64 bytes of signature.
#[test]
fn a_signature_by_another_algorithm_than_agreed() {
    let rename = Act::Patch {
        from_end: 68,
        mask: 1,
    };
    violates(
        Plan::new().with(Point::Before(Moment::KexReply, 1), rename),
        Violation::SignatureAlgorithm,
    );
}

/// Lines 11 and 12: no key is asked about before it is proven.
#[test]
fn a_wrong_signature() {
    for from_end in [0, 1, 31, 32, 63] {
        let forge = Act::Patch { from_end, mask: 0x10 };
        let seen = fails(
            Case::new(Plan::new().with(Point::Before(Moment::KexReply, 1), forge)),
            Violation::Signature,
        );
        assert!(
            !seen
                .events
                .iter()
                .any(|event| matches!(event, Event::HostKey { .. }))
        );
    }
}

/// Line 11: public values that are none.
#[test]
fn public_values_that_can_not_be() {
    let host = crate::harness::HOST.host_key().unwrap();
    for public in [&[][..], &[9; 31], &[9; 33], &[0; 32]] {
        let case = Case::new(reply(host.public().blob(), public)).kex("curve25519-sha256");
        fails(case, Violation::KexValue);
    }
    for kex in [
        "mlkem768x25519-sha256",
        "sntrup761x25519-sha512",
        "ecdh-sha2-nistp256",
    ] {
        let case = Case::new(reply(host.public().blob(), &[4; 65])).kex(kex);
        fails(case, Violation::KexValue);
    }
}

/// Line 12: nothing about the user leaves before the host key was accepted.
#[test]
fn a_host_key_that_is_not_accepted() {
    let mut case = Case::good();
    case.trust = false;
    let seen = fails(case, Error::HostKeyRejected);
    assert!(
        !seen
            .events
            .iter()
            .any(|event| matches!(event, Event::Sign { .. }))
    );
    assert!(
        seen.server_events
            .iter()
            .all(|event| !matches!(event, mux_ssh::server::Event::Exec { .. }))
    );
    assert!(!seen.logged_in());
}

fn memory(ident: &str, first_kex: &str) -> ServerMemory {
    ServerMemory {
        ident: ident.to_owned(),
        first_kex: first_kex.to_owned(),
        first_host_key: "ssh-ed25519".to_owned(),
        post_quantum: true,
        ..ServerMemory::default()
    }
}

const FIRST_KEX: &str = "mlkem768x25519-sha256";

fn remembered(ident: &str, rule: GuessRule, first_kex: &str) -> Case {
    Case::good()
        .server(|server| {
            server.ident = ident.to_owned();
            server.guess_rule = rule;
        })
        .client(|client| {
            client.memory = Some(memory(ident, first_kex));
            client.known_host_key_types = vec![mux_ssh::algorithms::KeyType::Ed25519];
        })
}

/// Line 8 and the table of guesses: what was learned saves exactly one round trip, on every kind of server.
#[test]
fn a_right_guess_saves_a_round_trip() {
    let servers = [
        ("SSH-2.0-OpenSSH_9.2", GuessRule::Rfc, 2),
        ("SSH-2.0-dropbear_2022.83", GuessRule::Rfc, 2),
        ("SSH-2.0-AsyncSSH_2.24.1", GuessRule::Negotiated, 3),
        ("SSH-2.0-tinyssh_20230101", GuessRule::Negotiated, 3),
        ("SSH-2.0-paramiko_5.1.0", GuessRule::Ignored, 2),
    ];
    for (ident, rule, rounds) in servers {
        let seen = remembered(ident, rule, FIRST_KEX).run();
        seen.assert_worked();
        assert_eq!(seen.rounds_to_output, Some(rounds), "{ident}, remembered");
        let seen = remembered(ident, rule, FIRST_KEX)
            .client(|client| client.memory = None)
            .run();
        seen.assert_worked();
        assert_eq!(seen.rounds_to_output, Some(rounds + 1), "{ident}, first contact");
    }
}

/// Line 8: the server is no longer what was remembered. It works, or one connection without the memory does.
#[test]
fn a_wrong_guess_is_dropped_or_ends_in_one_new_connection() {
    let servers = [
        ("SSH-2.0-OpenSSH_9.2", GuessRule::Rfc),
        ("SSH-2.0-dropbear_2022.83", GuessRule::Rfc),
        ("SSH-2.0-AsyncSSH_2.24.1", GuessRule::Negotiated),
        ("SSH-2.0-tinyssh_20230101", GuessRule::Negotiated),
        ("SSH-2.0-paramiko_5.1.0", GuessRule::Ignored),
        ("SSH-2.0-Unheard_1", GuessRule::Rfc),
    ];
    for (ident, rule) in servers {
        let seen = remembered(ident, rule, "sntrup761x25519-sha512").run();
        match seen.error {
            Some(Error::GuessRejected) => {}
            _ => seen.assert_worked(),
        }
    }
}

/// A guess on a server that follows another rule than its kind ends in one new connection, not in a hang.
#[test]
fn a_guess_under_the_wrong_rule() {
    let case = remembered(
        "SSH-2.0-OpenSSH_9.2",
        GuessRule::Ignored,
        "sntrup761x25519-sha512",
    );
    fails(case, Error::GuessRejected);
}

#[test]
fn a_key_of_the_wrong_owner_in_the_reply() {
    let other = Seed::generate().unwrap().host_key().unwrap();
    let seen = Case::new(reply(other.public().blob(), &[9; 32]))
        .kex("curve25519-sha256")
        .run();
    assert_eq!(seen.error, Some(Violation::Signature.into()));
    assert!(
        !seen
            .events
            .iter()
            .any(|event| matches!(event, Event::HostKey { .. }))
    );
}
