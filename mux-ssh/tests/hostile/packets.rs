//! Packets that can't be, and connections that end anywhere.

use bytes::Bytes;
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::{MAX_BANNER_LINES, MAX_PACKET, MAX_PLAIN_PACKET};
use mux_ssh::{Error, Incompatible, Violation};

use crate::harness::{Case, Reply, drop_ref, fails, payload, plain_packet, violates, works};

const CIPHERS: [&str; 3] = [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
];

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
    for cipher in &CIPHERS[..2] {
        for length in [0, 1, 5, 17, MAX_PACKET as u32 + 1, u32::MAX] {
            let plan = raw_before(
                Moment::ServiceAccept,
                Bytes::copy_from_slice(&length.to_be_bytes()),
            );
            let case = Case::new(plan).client(|client| client.algorithms.set_ciphers(cipher).unwrap());
            fails(case, Violation::PacketLength(length));
        }
    }
}

/// Line 3, under the cipher that encrypts its length: what stands there is noise, and noise is out of bounds but for
/// one time in 100,000.
#[test]
fn noise_where_an_encrypted_length_should_be() {
    let plan = raw_before(Moment::ServiceAccept, Bytes::from_static(&[0x55; 64]));
    let case = Case::new(plan).client(|client| client.algorithms.set_ciphers(CIPHERS[2]).unwrap());
    let seen = case.run();
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
    for cipher in CIPHERS {
        let empty = Plan::new().with(Point::Before(Moment::ServiceAccept, 1), Act::Packet(Bytes::new()));
        let case = Case::new(empty).client(|client| client.algorithms.set_ciphers(cipher).unwrap());
        let seen = case.run();
        assert!(
            matches!(seen.error, Some(Error::Violation(Violation::PaddingLength(_)))),
            "{:?}",
            seen.error
        );
    }
}

/// Line 5: one bit in every byte behind the length, up to the last one of the tag. The shortest of the three packets
/// has 44 bytes: that of the cipher whose length is no part of the first block.
#[test]
fn one_flipped_bit_anywhere_is_noticed() {
    for cipher in CIPHERS {
        for byte in 4..44 {
            let flip = Act::FlipBit(byte * 8 + byte % 8);
            let plan = Plan::new().with(Point::Before(Moment::ServiceAccept, 1), flip);
            let case = Case::new(plan)
                .kex("curve25519-sha256")
                .client(|client| client.algorithms.set_ciphers(cipher).unwrap());
            fails(case, Violation::Tag);
        }
    }
}

/// Line 5: in the length. What follows is never taken for a packet, whatever the length says now.
#[test]
fn one_flipped_bit_in_the_length_is_noticed() {
    for cipher in CIPHERS {
        for bit in 0..32 {
            let plan = Plan::new().with(Point::Before(Moment::ServiceAccept, 1), Act::FlipBit(bit));
            let case = Case::new(plan)
                .kex("curve25519-sha256")
                .client(|client| client.algorithms.set_ciphers(cipher).unwrap());
            let seen = case.run();
            let noticed = matches!(
                seen.error,
                Some(Error::Violation(Violation::PacketLength(_) | Violation::Tag))
            );
            // A longer packet is waited for until the login's time is up.
            assert!(
                noticed || seen.error.is_none(),
                "{cipher} {bit}: {:?}",
                seen.error
            );
            assert!(seen.stdout.is_empty(), "{cipher} {bit}");
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
        payload: Bytes::from_static(&[192]),
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
