//! Packets that can't be, identifications that are none, and connections that end anywhere.

use std::sync::LazyLock;

use bytes::Bytes;
use mux_ssh::algorithms::{Cipher, Mac};
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::{MAX_BANNER_LINES, MAX_PACKET, MAX_PLAIN_PACKET};
use mux_ssh::{Error, Incompatible, Violation};

use super::Run::Servers;
use super::harness::{Case, End, HOST, Pair, Reply, Turn, drop_ref, payload, plain_packet};
use super::table_rows;

/// Every way to protect packets: a cipher, and behind a plus sign what authenticates where the cipher does not.
pub(crate) fn ciphers() -> impl Iterator<Item = &'static str> {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let with_macs = |cipher: &Cipher| match cipher.is_authenticated() {
            true => vec![cipher.name().to_owned()],
            false => Mac::ALL
                .iter()
                .map(|mac| format!("{}+{}", cipher.name(), mac.name()))
                .collect(),
        };
        Cipher::ALL.iter().flat_map(with_macs).collect()
    });
    NAMES.iter().map(String::as_str)
}

/// Under these the length of a packet is in the clear.
const CLEAR: [&str; 4] = [
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr+hmac-sha2-256-etm@openssh.com",
    "aes256-ctr+hmac-sha2-512-etm@openssh.com",
];
/// Under these it is encrypted.
const HIDDEN: [&str; 3] = [
    "chacha20-poly1305@openssh.com",
    "aes128-ctr+hmac-sha2-256",
    "aes256-ctr+hmac-sha2-512",
];

/// Lengths that no packet has, whatever the cipher.
const LENGTHS: [u32; 9] = [0, 1, 2, 3, 4, 5, MAX_PACKET as u32 + 16, 0x7fff_fff0, u32::MAX];

fn before(moment: Moment, act: Act) -> Case {
    Case::new(Plan::new().with(Point::Before(moment, 1), act))
}

fn after(moment: Moment, act: Act) -> Case {
    Case::new(Plan::new().with(Point::After(moment, 1), act))
}

fn raw(moment: Moment, bytes: impl Into<Bytes>) -> Case {
    let act = Act::Raw(bytes.into());
    Case::new(
        Plan::new()
            .with(Point::Before(moment, 1), act)
            .with(Point::Before(moment, 1), Act::Stall),
    )
}

fn ident(line: &[u8]) -> Case {
    raw(Moment::Ident, Bytes::copy_from_slice(line))
}

fn flood(payload: impl Into<Bytes>, times: u32) -> Act {
    let payload = payload.into();
    Act::Flood { payload, times }
}

/// A packet was not taken for what it was not.
pub(crate) fn is_noise(error: &Error) -> bool {
    matches!(
        error,
        Error::Violation(Violation::PacketLength(_) | Violation::Tag)
    )
}

fn is_lost(error: &Error) -> bool {
    // Whoever goes away after a login that went out early may just as well have refused it.
    matches!(
        error,
        Error::UnexpectedEof | Error::EarlyAuthRefused { .. } | Error::AuthFailed { .. }
    )
}

fn said_nothing(pair: &mut Pair) {
    assert!(pair.seen.stdout.is_empty());
}

fn cuts() -> Vec<Case> {
    let case = Case::good().kex("curve25519-sha256");
    let whole = case.clone().play().seen.bytes_to_client;
    (0..whole)
        .map(|cut| {
            let mut case = case.clone().end(End::FailsLike(is_lost));
            case.cut = Some(cut);
            case
        })
        .collect()
}

/// The first packet of a service under this cipher, with an act done to it.
fn first_packet(cipher: &str, act: Act) -> Case {
    before(Moment::ServiceAccept, act)
        .kex("curve25519-sha256")
        .cipher(cipher)
}

fn goodbye(words: &str) -> Act {
    Act::Packet(payload(|w| {
        drop_ref(w.byte(message::DISCONNECT).uint32(12).string(words).string(""))
    }))
}

fn told_goodbye() -> Error {
    Error::Disconnected {
        code: 12,
        description: "go away".to_owned(),
    }
}

fn ignore(len: usize) -> Bytes {
    payload(|w| drop_ref(w.byte(message::IGNORE).string(vec![b'x'; len])))
}

table_rows! { Transport:

identification_that_never_ends, Length, "an identification of 400 bytes without an end" =>
    Servers(|| vec![
        ident(&[b"SSH-2.0-".as_slice(), &[b'a'; 400]].concat()).violates(Violation::IdentTooLong),
    ]);
identification_with_a_zero_byte, Type, "a zero byte in the identification" =>
    Servers(|| vec![ident(b"SSH-2.0-a\0b\r\n").violates(Violation::IdentMalformed)]);
identification_of_protocol_1, Type, "version 1.5, none at all, or one of tomorrow" =>
    Servers(|| {
        let lines: [&[u8]; 4] = [b"SSH-1.5-old\r\n", b"SSH-\n", b"SSH-3.0-new\r\n", b"SSH-2.0\r\n"];
        lines.map(|line| ident(line).fails(Incompatible::ProtocolVersion)).into()
    });
identification_in_unusual_form, Harmless, "version 1.99; a bare line feed; a comment; no name" =>
    Servers(|| {
        // The line that is signed ends before the line feed, whatever stands in front of it.
        ["SSH-1.99-x", "SSH-2.0-x a comment", "SSH-2.0-", "SSH-2.0-\u{e4}"]
            .map(|line| Case::good().ident(line)).into()
    });
identification_twice, Order, "a second identification where KEXINIT should be" =>
    Servers(|| vec![
        raw(Moment::KexInit, &b"SSH-2.0-x\r\n"[..]).violates(Violation::PacketLength(0x5353_482d)),
    ]);
text_before_the_identification_without_end, Flood, "64 KiB in a line, and more lines than anyone needs" =>
    Servers(|| vec![
        ident(&vec![b'a'; 64 * 1024]).violates(Violation::BannerTooLong),
        ident(&b"hello\r\n".repeat(MAX_BANNER_LINES as usize + 1)).violates(Violation::BannerTooLong),
        ident(&b"\n".repeat(MAX_BANNER_LINES as usize + 1)).violates(Violation::BannerTooLong),
    ]);
text_before_the_identification_is_passed_over, Harmless, "two lines with escapes and bytes that are no text" =>
    Servers(|| vec![
        before(Moment::Ident, Act::Raw(Bytes::from_static(b"no ssh for you\r\n\x1b[31m\xff\n"))),
        before(Moment::Ident, Act::Raw(b"a\n".repeat(MAX_BANNER_LINES as usize).into())),
    ]);
another_protocol_answers, Type, "HTTP, SMTP, TLS or a telnet negotiation instead of SSH, then the end" =>
    Servers(|| {
        let answers: [&[u8]; 4] = [
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            b"220 mail.example.org ESMTP\r\n",
            b"\x15\x03\x01\x00\x02\x02\x46",
            b"\xff\xfd\x18\xff\xfd\x20",
        ];
        answers.map(|answer| Case::new(
            Plan::new()
                .with(Point::Before(Moment::Ident, 1), Act::Raw(Bytes::from_static(answer)))
                .with(Point::Before(Moment::Ident, 1), Act::Close),
        ).fails(Error::UnexpectedEof)).into()
    });

plain_packet_lengths_that_can_not_be, Length, "every impossible length before there are keys" =>
    Servers(|| {
        let max = MAX_PLAIN_PACKET as u32;
        [0, 1, 2, 3, 4, 5, 7, 13, max + 1, 256 * 1024, 0x7fff_ffff, u32::MAX]
            .map(|length| raw(Moment::KexInit, plain_packet(length, 4, &[0; 16]))
                .violates(Violation::PacketLength(length)))
            .into()
    });
encrypted_packet_lengths_that_can_not_be, Length, "impossible lengths in the clear, as somebody on the way makes them" =>
    Servers(|| CLEAR.into_iter().flat_map(|cipher| {
        [0_u32, 1, 5, 17, MAX_PACKET as u32 + 1, u32::MAX].map(|length| {
            raw(Moment::ServiceAccept, Bytes::copy_from_slice(&length.to_be_bytes()))
                .cipher(cipher)
                .violates(Violation::PacketLength(length))
        })
    }).collect());
lengths_that_can_not_be_in_packets_that_are_genuine, Length, "impossible lengths under every cipher, encrypted and authenticated by the server itself" =>
    Servers(|| ciphers().flat_map(|cipher| {
        LENGTHS.map(|length| first_packet(cipher, Act::Length(length))
            .violates(Violation::PacketLength(length)))
    }).collect());
a_length_that_takes_in_the_next_packet, Length, "a genuine packet that says to be one, two, ten blocks longer than it is" =>
    Servers(|| ciphers().flat_map(|cipher| {
        [60_u32, 64, 76, 80, 204, 208].map(|length| first_packet(cipher, Act::Length(length))
            .end(End::FailsLike(is_noise)).also(said_nothing))
    }).collect());
a_length_that_leaves_something_over, Length, "a genuine packet that says to be shorter than it is" =>
    Servers(|| ciphers().map(|cipher| first_packet(cipher, Act::Length(16))
        .end(End::FailsLike(is_noise)).also(said_nothing)).collect());
noise_where_an_encrypted_length_should_be, Forgery, "64 bytes of noise in place of a packet whose length is encrypted" =>
    Servers(|| HIDDEN.map(|cipher| raw(Moment::ServiceAccept, &[0x55; 64][..]).cipher(cipher)
        .end(End::MayFail(is_noise)).also(said_nothing)).into());

padding_that_can_not_be, Length, "padding of 0, 1, 3, 12 and 255 bytes in a packet of 12, before there are keys" =>
    Servers(|| [0, 1, 3, 12, 255].map(|padding| {
        raw(Moment::KexInit, plain_packet(12, padding, &[0; 11]))
            .violates(Violation::PaddingLength(padding))
    }).into());
padding_that_can_not_be_in_packets_that_are_genuine, Length, "the same under every cipher, encrypted and authenticated" =>
    Servers(|| ciphers().flat_map(|cipher| {
        [0, 1, 2, 3, 128, 255].map(|padding| first_packet(cipher, Act::Padding(padding))
            .violates(Violation::PaddingLength(padding)))
    }).collect());
packets_without_a_payload, Length, "padding up to the end of the packet" =>
    Servers(|| {
        let plain = raw(Moment::KexInit, plain_packet(12, 11, &[0; 11]))
            .violates(Violation::PaddingLength(11));
        let sealed = ciphers().map(|cipher| first_packet(cipher, Act::Packet(Bytes::new()))
            .end(End::FailsLike(|error| {
                matches!(error, Error::Violation(Violation::PaddingLength(_)))
            })));
        std::iter::once(plain).chain(sealed).collect()
    });
the_largest_packet_that_is_accepted, Harmless, "IGNORE of nearly 256 KiB, and of 35,000 bytes before the key exchange is over" =>
    Servers(|| ciphers().map(|cipher| after(Moment::AuthSuccess, Act::Packet(ignore(MAX_PACKET - 64)))
        .cipher(cipher)).collect());
a_packet_larger_than_is_accepted, Length, "a genuine packet of 256 KiB and more" =>
    Servers(|| ciphers().map(|cipher| after(Moment::AuthSuccess, Act::Packet(ignore(MAX_PACKET + 64)))
        .cipher(cipher)
        .end(End::FailsLike(|error| {
            matches!(error, Error::Violation(Violation::PacketLength(_)))
        }))).collect());

one_flipped_bit_anywhere_is_noticed, Forgery, "one bit in every byte behind the length, up to the last one of the tag" =>
    // The shortest of these packets has 44 bytes: that of the ciphers whose length is no part of the first block.
    Servers(|| ciphers().flat_map(|cipher| {
        (4..44).map(move |byte| first_packet(cipher, Act::FlipBit(byte * 8 + byte % 8))
            .violates(Violation::Tag))
    }).collect());
one_flipped_bit_in_the_length_is_noticed, Forgery, "every bit of the length; what follows is never taken for a packet" =>
    // A longer packet is waited for until the login's time is up.
    Servers(|| ciphers().flat_map(|cipher| {
        (0..32).map(move |bit| first_packet(cipher, Act::FlipBit(bit))
            .end(End::MayFail(is_noise)).also(said_nothing))
    }).collect());
a_packet_that_is_repeated, Forgery, "a genuine packet, bit by bit once more" =>
    Servers(|| ciphers().map(|cipher| first_packet(cipher, Act::Replay)
        .end(End::FailsLike(is_noise)).also(said_nothing)).collect());
a_packet_that_is_left_out, Forgery, "a genuine packet is lost on its way" =>
    Servers(|| ciphers().map(|cipher| first_packet(cipher, Act::Lose)
        .end(End::FailsLike(is_noise)).also(said_nothing)).collect());

the_end_of_the_connection_after_any_byte, Time, "the connection ends after every single byte of a session" =>
    Servers(cuts);
one_byte_at_a_time, Harmless, "everything, byte by byte" =>
    Servers(|| vec![
        Case::good().chunk(1),
        Case::good().chunk(1).reply(Reply::Bulk(100_000)).end(End::Lives)
            .also(|pair| assert_eq!(pair.seen.stdout.len(), 100_000)),
    ]);
half_closed_in_the_middle_of_a_command, Time, "no more to say behind the output, before the channel is closed" =>
    Servers(|| vec![
        after(Moment::Output, Act::HalfClose).fails(Error::UnexpectedEof)
            .also(|pair| assert_eq!(pair.seen.stdout, b"hello\n")),
    ]);
nothing_at_all, Stall, "silence before every step up to the login" =>
    Servers(|| {
        use Moment::{ExtInfo, Ident, KexInit, KexReply, NewKeys, ServiceAccept};
        [Ident, KexInit, KexReply, NewKeys, ExtInfo, ServiceAccept]
            .map(|moment| before(moment, Act::Stall).end(End::Waits).also(said_nothing))
            .into()
    });
a_packet_that_stops_in_its_middle, Stall, "the first 1 to 43 bytes of a packet and nothing more" =>
    Servers(|| ciphers().flat_map(|cipher| {
        [1, 3, 4, 5, 20, 43].map(|bytes| first_packet(cipher, Act::Cut(bytes)).end(End::Waits))
    }).collect());

unknown_messages_without_end, Flood, "100,000 messages of a number that nobody has" =>
    Servers(|| [0, 8, 19, 128, 191, 194, 255].map(|number| {
        after(Moment::AuthSuccess, flood(vec![number], 100_000)).violates(Violation::UnknownMessageFlood)
    }).into());
ignore_and_debug_at_any_rate_after_the_login, Flood, "100,000 IGNORE, and as many DEBUG with escapes" =>
    Servers(|| {
        let debug = payload(|w| {
            drop_ref(w.byte(message::DEBUG).boolean(true).string(b"\x1b[31mhi\xff").string(""))
        });
        [Bytes::from_static(b"\x02\0\0\0\x01x"), debug]
            .map(|payload| after(Moment::AuthSuccess, flood(payload, 100_000))).into()
    });
pings_without_end, Flood, "100,000 PING that are to be answered, with little and with much in them, and as many answers to none" =>
    Servers(|| {
        let ping = |len: usize| payload(|w| drop_ref(w.byte(message::PING).string(vec![b'p'; len])));
        let pong = payload(|w| drop_ref(w.byte(message::PONG).string("")));
        vec![
            after(Moment::AuthSuccess, flood(ping(8), 100_000)),
            after(Moment::AuthSuccess, flood(ping(30_000), 100)),
            after(Moment::AuthSuccess, flood(pong, 100_000)),
        ]
    });
pings_that_can_not_be, Length, "PING that is cut, PING with a byte behind it, PING larger than is sent back, PING before the login" =>
    Servers(|| {
        let huge = payload(|w| drop_ref(w.byte(message::PING).string(vec![b'p'; 33 * 1024])));
        let early = payload(|w| drop_ref(w.byte(message::PING).string("x")));
        vec![
            after(Moment::AuthSuccess, Act::Packet(vec![message::PING].into())).violates(Violation::Truncated),
            after(Moment::AuthSuccess, Act::Packet(vec![message::PING, 0, 0, 0, 0, 0].into()))
                .violates(Violation::TrailingBytes),
            after(Moment::AuthSuccess, Act::Packet(huge)),
            after(Moment::ServiceAccept, Act::Packet(early.clone())),
            before(Moment::NewKeys, Act::Packet(early)).end(End::FailsLike(|error| matches!(error, Error::Violation(_)))),
        ]
    });
unimplemented_for_what_was_never_sent, Flood, "100,000 UNIMPLEMENTED with the highest number" =>
    Servers(|| vec![
        after(Moment::AuthSuccess, flood(&b"\x03\xff\xff\xff\xff"[..], 100_000)),
    ]);
messages_of_no_more_than_their_number, Length, "IGNORE, DEBUG and UNIMPLEMENTED without their fields" =>
    Servers(|| vec![
        after(Moment::AuthSuccess, Act::Packet(vec![message::IGNORE].into())),
        after(Moment::AuthSuccess, Act::Packet(vec![message::DEBUG].into())),
        after(Moment::AuthSuccess, Act::Packet(vec![message::UNIMPLEMENTED].into()))
            .violates(Violation::Truncated),
    ]);

a_goodbye_at_every_moment, Time, "DISCONNECT before each kind of packet, from the first to the last" =>
    Servers(|| {
        use Moment::{AuthSuccess, ChannelSuccess, ExitReport, KexInit, KexReply, NewKeys, Output, ServiceAccept};
        [KexInit, KexReply, NewKeys, ServiceAccept, AuthSuccess, ChannelSuccess, Output, ExitReport]
            .map(|moment| before(moment, goodbye("go away")).end(End::FailsLike(|error| {
                // In answer to a login with a command behind it, a goodbye is a refusal.
                *error == told_goodbye() || is_lost(error)
            })))
            .into()
    });
a_goodbye_is_told_with_its_reason_and_without_its_excess, Length, "DISCONNECT with 100,000 letters, and with none of its fields" =>
    Servers(|| vec![
        before(Moment::Output, goodbye(&"x".repeat(100_000)))
            .fails(Error::Disconnected { code: 12, description: "x".repeat(1024) }),
        before(Moment::Output, Act::Packet(vec![message::DISCONNECT].into()))
            .fails(Error::Disconnected { code: 0, description: String::new() }),
    ]);
bytes_behind_a_goodbye, Order, "DISCONNECT, and 100,000 packets behind it" =>
    Servers(|| vec![Case::new(
        Plan::new()
            .with(Point::Before(Moment::Output, 1), goodbye("go away"))
            .with(Point::Before(Moment::Output, 1), flood(&b"\x02\0\0\0\0"[..], 100_000)),
    ).fails(told_goodbye())]);

messages_that_only_a_client_sends, Type, "SERVICE_REQUEST, USERAUTH_REQUEST and KEX_INIT of the server's own, after the login" =>
    Servers(|| [message::SERVICE_REQUEST, message::SERVICE_ACCEPT, message::USERAUTH_REQUEST, message::USERAUTH_BANNER]
        .map(|number| after(Moment::AuthSuccess, Act::Packet(vec![number, 0, 0, 0, 0].into()))
            .violates(Violation::UnexpectedMessage(number)))
        .into());
a_number_of_a_packet_that_nobody_sent, Id, "UNIMPLEMENTED for 0, 1, 5, 1,000 and 2^32 - 1 at every moment of a session" =>
    Servers(|| {
        use Moment::{AuthSuccess, ChannelSuccess, Output, ServiceAccept};
        [0, 1, 5, 1000, u32::MAX].into_iter().flat_map(|sequence| {
            let packet = payload(|w| drop_ref(w.byte(message::UNIMPLEMENTED).uint32(sequence)));
            [ServiceAccept, AuthSuccess, ChannelSuccess, Output].map(|moment| {
                after(moment, Act::Packet(packet.clone()))
                    .end(End::MayFail(|_| true))
                    .also(|pair| {
                        assert!(pair.seen.execs() <= 1, "a command ran twice");
                        // It may be told as not run only if it did not run.
                        let not_run = pair.seen.failure().is_some_and(|(_, may_have_run)| !may_have_run);
                        assert!(!not_run || pair.seen.stdout.is_empty());
                    })
            })
        }).collect()
    });
the_host_key_is_accepted_late, Harmless, "a person looks at the host key for a minute: nothing is said, nothing more is read, and then all goes on" =>
    Servers(|| {
        let mut waits = Case::good().end(End::Waits).also(|pair| {
            assert!(!pair.seen.logged_in() && pair.seen.stdout.is_empty());
            assert!(!mux_proto::Protocol::wants_input(&pair.client));
        });
        waits.prompt = false;
        let mut goes_on = Case::good().script([Turn::Answer, Turn::Answer]);
        goes_on.prompt = false;
        vec![waits, goes_on]
    });
a_host_key_of_somebody_else, Forgery, "the host's own key, proven by another" =>
    Servers(|| {
        let host = HOST.host_key().unwrap();
        let signature = payload(|w| drop_ref(w.string("ssh-ed25519").string([7; 64])));
        let reply = payload(|w| drop_ref(
            w.byte(message::KEX_ECDH_REPLY).string(host.public().blob()).string([9; 32]).string(&signature),
        ));
        vec![before(Moment::KexReply, Act::Replace(reply)).kex("curve25519-sha256").violates(Violation::Signature)]
    });

}
