//! Packets that can't be, and connections that end anywhere.

use bytes::Bytes;
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::{MAX_BANNER_LINES, MAX_PACKET, MAX_PLAIN_PACKET};
use mux_ssh::{Error, Incompatible, Violation};

use crate::harness::{Case, Reply, drop_ref, fails, payload, plain_packet, violates, works};

/// A cipher and, where it counts, a MAC.
type Protection = (&'static str, &'static str);

const WITH_CLEAR_LENGTH: [Protection; 4] = [
    ("aes128-gcm@openssh.com", "*"),
    ("aes256-gcm@openssh.com", "*"),
    ("aes128-ctr", "hmac-sha2-256-etm@openssh.com"),
    ("aes192-ctr", "hmac-sha2-512-etm@openssh.com"),
];

const WITH_HIDDEN_LENGTH: [Protection; 3] = [
    ("chacha20-poly1305@openssh.com", "*"),
    ("aes128-ctr", "hmac-sha2-256"),
    ("aes256-ctr", "hmac-sha2-512"),
];

fn protections() -> impl Iterator<Item = Protection> {
    WITH_CLEAR_LENGTH.into_iter().chain(WITH_HIDDEN_LENGTH)
}

/// A client that offers this only, and a key exchange that is quick.
fn case(plan: Plan, (cipher, mac): Protection) -> Case {
    Case::new(plan).kex("curve25519-sha256").client(|client| {
        client.algorithms.set_ciphers(cipher).unwrap();
        client.algorithms.set_macs(mac).unwrap();
    })
}

fn raw_before(moment: Moment, bytes: Bytes) -> Plan {
    Plan::new()
        .with(Point::Before(moment, 1), Act::Raw(bytes))
        .with(Point::Before(moment, 1), Act::Stall)
}

fn ident(line: &[u8]) -> Plan {
    raw_before(Moment::Ident, Bytes::copy_from_slice(line))
}

#[test]
fn identification_that_never_ends() {
    violates(
        ident(&[b"SSH-2.0-".as_slice(), &[b'a'; 400]].concat()),
        Violation::IdentTooLong,
    );
}

#[test]
fn identification_with_a_zero_byte() {
    violates(ident(b"SSH-2.0-a\0b\r\n"), Violation::IdentMalformed);
}

#[test]
fn identification_of_protocol_1() {
    fails(
        Case::new(ident(b"SSH-1.5-old\r\n")),
        Incompatible::ProtocolVersion,
    );
}

#[test]
fn text_before_the_identification_without_end() {
    violates(ident(&vec![b'a'; 64 * 1024]), Violation::BannerTooLong);
    let lines = b"hello\r\n".repeat(MAX_BANNER_LINES as usize + 1);
    violates(ident(&lines), Violation::BannerTooLong);
}

#[test]
fn text_before_the_identification_is_passed_over() {
    let text = Bytes::from_static(b"no ssh for you\r\n\x1b[31m\xff\n");
    works(Plan::new().with(Point::Before(Moment::Ident, 1), Act::Raw(text)));
}

/// Line 3 of the list of cases, before there are keys.
#[test]
fn plain_packet_lengths_that_can_not_be() {
    for length in [
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        13,
        MAX_PLAIN_PACKET as u32 + 1,
        256 * 1024,
        0x7fff_ffff,
        u32::MAX,
    ] {
        let packet = plain_packet(length, 4, &[0; 16]);
        violates(
            raw_before(Moment::KexInit, packet),
            Violation::PacketLength(length),
        );
    }
}

/// Line 3, under each cipher with its length in the clear.
#[test]
fn encrypted_packet_lengths_that_can_not_be() {
    for protection in WITH_CLEAR_LENGTH {
        for length in [0, 1, 5, 17, MAX_PACKET as u32 + 1, u32::MAX] {
            let plan = raw_before(
                Moment::ServiceAccept,
                Bytes::copy_from_slice(&length.to_be_bytes()),
            );
            fails(case(plan, protection), Violation::PacketLength(length));
        }
    }
}

/// Line 3, under each cipher that encrypts its length: what stands there is noise, and noise is out of bounds but for
/// one time in 100,000.
#[test]
fn noise_where_an_encrypted_length_should_be() {
    for protection in WITH_HIDDEN_LENGTH {
        let plan = raw_before(Moment::ServiceAccept, Bytes::from_static(&[0x55; 64]));
        let seen = case(plan, protection).run();
        assert!(matches!(
            seen.error,
            Some(Error::Violation(Violation::PacketLength(_) | Violation::Tag)) | None
        ));
        assert!(
            !seen
                .events
                .iter()
                .any(|event| matches!(event, mux_ssh::client::Event::Authenticated { .. }))
        );
    }
}

/// Line 4.
#[test]
fn padding_that_can_not_be() {
    for padding in [0, 1, 3, 12, 255] {
        let packet = plain_packet(12, padding, &[0; 11]);
        violates(
            raw_before(Moment::KexInit, packet),
            Violation::PaddingLength(padding),
        );
    }
}

/// Line 4: the padding leaves no payload.
#[test]
fn packets_without_a_payload() {
    violates(
        raw_before(Moment::KexInit, plain_packet(12, 11, &[0; 11])),
        Violation::PaddingLength(11),
    );
    for protection in protections() {
        let empty = Plan::new().with(Point::Before(Moment::ServiceAccept, 1), Act::Packet(Bytes::new()));
        let seen = case(empty, protection).run();
        assert!(
            matches!(seen.error, Some(Error::Violation(Violation::PaddingLength(_)))),
            "{:?}",
            seen.error
        );
    }
}

/// Line 5: one bit in every byte behind the length, up to the last one of the tag. The shortest of the packets
/// has 44 bytes: that of the cipher with blocks of 8.
#[test]
fn one_flipped_bit_anywhere_is_noticed() {
    for protection in protections() {
        for byte in 4..44 {
            let flip = Act::FlipBit(byte * 8 + byte % 8);
            let plan = Plan::new().with(Point::Before(Moment::ServiceAccept, 1), flip);
            fails(case(plan, protection), Violation::Tag);
        }
    }
}

/// Line 5: in the length. What follows is never taken for a packet, whatever the length says now.
#[test]
fn one_flipped_bit_in_the_length_is_noticed() {
    for protection in protections() {
        for bit in 0..32 {
            let plan = Plan::new().with(Point::Before(Moment::ServiceAccept, 1), Act::FlipBit(bit));
            let seen = case(plan, protection).run();
            let noticed = matches!(
                seen.error,
                Some(Error::Violation(Violation::PacketLength(_) | Violation::Tag))
            );
            // A longer packet is waited for until the login's time is up.
            assert!(
                noticed || seen.error.is_none(),
                "{protection:?} {bit}: {:?}",
                seen.error
            );
            assert!(seen.stdout.is_empty(), "{protection:?} {bit}");
        }
    }
}

/// Line 17: the connection ends after every byte of a session.
#[test]
fn the_end_of_the_connection_after_any_byte() {
    let whole = Case::good().kex("curve25519-sha256").run();
    whole.assert_worked();
    for cut in 0..whole.bytes_to_client {
        let mut case = Case::good().kex("curve25519-sha256");
        case.cut = Some(cut);
        let seen = case.run();
        // Whoever went away after a login that went out early may just as well have refused it.
        let expected = matches!(
            seen.error,
            Some(Error::UnexpectedEof | Error::EarlyAuthRefused { .. } | Error::AuthFailed { .. })
        );
        assert!(expected, "after {cut} bytes: {:?}", seen.error);
    }
}

/// Line 17: one byte at a time.
#[test]
fn one_byte_at_a_time() {
    let mut case = Case::good();
    case.chunk = 1;
    case.run().assert_worked();
    let mut case = Case::good().reply(Reply::Bulk(100_000));
    case.chunk = 1;
    let seen = case.run();
    assert_eq!((seen.error, seen.stdout.len()), (None, 100_000));
}

/// Line 17: half-closed after the output, before the channel was closed.
#[test]
fn half_closed_in_the_middle_of_a_command() {
    let plan = Plan::new().with(Point::After(Moment::Output, 1), Act::HalfClose);
    let seen = fails(Case::new(plan), Error::UnexpectedEof);
    assert_eq!(seen.stdout, b"hello\n");
}

#[test]
fn nothing_at_all() {
    for moment in [
        Moment::Ident,
        Moment::KexInit,
        Moment::KexReply,
        Moment::NewKeys,
        Moment::ServiceAccept,
    ] {
        let seen = Case::new(Plan::new().with(Point::Before(moment, 1), Act::Stall)).run();
        assert_eq!(seen.error, None, "the login's time is its owner's business");
        assert!(seen.stdout.is_empty());
    }
}

/// Messages without meaning are answered up to a point.
#[test]
fn unknown_messages_without_end() {
    let flood = Act::Flood {
        payload: Bytes::from_static(&[200]),
        times: 100_000,
    };
    violates(
        Plan::new().with(Point::After(Moment::AuthSuccess, 1), flood),
        Violation::UnknownMessageFlood,
    );
}

#[test]
fn ignore_and_debug_at_any_rate_after_the_login() {
    let debug = payload(|w| {
        drop_ref(
            w.byte(message::DEBUG)
                .boolean(true)
                .string(b"\x1b[31mhi\xff")
                .string(""),
        )
    });
    for payload in [Bytes::from_static(b"\x02\0\0\0\x01x"), debug] {
        let flood = Act::Flood {
            payload,
            times: 100_000,
        };
        works(Plan::new().with(Point::After(Moment::AuthSuccess, 1), flood));
    }
}

/// Each is answered, at the pace at which the server takes the answers.
#[test]
fn pings_at_any_rate_after_the_login() {
    for data in [vec![], vec![b'x'; 1000]] {
        let flood = Act::Flood {
            payload: payload(|w| drop_ref(w.byte(message::PING).string(&data))),
            times: 20_000,
        };
        works(Plan::new().with(Point::After(Moment::AuthSuccess, 1), flood));
    }
}

#[test]
fn a_goodbye_is_told_with_its_reason_and_without_its_excess() {
    let words = "x".repeat(100_000);
    let goodbye = payload(|w| drop_ref(w.byte(message::DISCONNECT).uint32(12).string(&words).string("")));
    let plan = Plan::new().with(Point::Before(Moment::Output, 1), Act::Packet(goodbye));
    let seen = Case::new(plan).run();
    let Some(Error::Disconnected {
        code: 12,
        description,
    }) = seen.error
    else {
        panic!("{:?}", seen.error)
    };
    assert_eq!(description.len(), 1024);
}
