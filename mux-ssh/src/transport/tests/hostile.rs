//! Peers that break the protocol: each violation by its exact name, at the time at which it matters.

use bytes::{Bytes, BytesMut};

use super::pair::{End, Pair, ed25519_key, offer, server_config};
use crate::algorithms::{Algorithms, Kex};
use crate::keys::KeyBlobError;
use crate::message::{
    CHANNEL_DATA, DEBUG, DISCONNECT, EXT_INFO, IGNORE, KEX_ECDH_INIT, KEX_ECDH_REPLY, KEXINIT, NEWKEYS,
    SERVICE_ACCEPT, UNIMPLEMENTED,
};
use crate::transport::kexinit::{self, Side};
use crate::transport::packet::Outbound;
use crate::transport::{
    ExtInfo, Incoming, MAX_BANNER_LINE, MAX_BANNER_LINES, MAX_DESCRIPTION, MAX_EXTENSIONS,
    MAX_IGNORED_BEFORE_KEYS, MAX_NAMES, MAX_UNKNOWN_MESSAGES, Transport, TransportConfig,
};
use crate::wire::Writer;
use crate::{Error, Incompatible, Violation};

/// A server that says what it is told, before it has keys.
struct Script {
    outbound: Outbound,
    bytes: BytesMut,
}

impl Script {
    fn new(ident: &str) -> Self {
        Self {
            outbound: Outbound::new(),
            bytes: BytesMut::from(ident),
        }
    }

    fn openssh() -> Self {
        Self::new("SSH-2.0-OpenSSH_9.2p1\r\n")
    }

    fn packet(mut self, write: impl FnOnce(&mut Writer<'_>)) -> Self {
        self.outbound.seal(&mut self.bytes, write);
        self
    }

    fn message(self, number: u8) -> Self {
        self.packet(|packet| {
            packet.byte(number);
        })
    }

    /// A KEXINIT that an honest server could send, with the markers of strict key exchange or without.
    fn kexinit(self, strict: bool) -> Self {
        let payload = kexinit::build(Side::Server, &Algorithms::default(), strict, false).unwrap();
        self.packet(|packet| {
            packet.raw(&payload);
        })
    }

    /// A KEXINIT with these first two lists; everything else is in order.
    fn kexinit_with(self, kex: &[u8], host_keys: &[u8]) -> Self {
        self.packet(|packet| {
            packet.byte(KEXINIT).raw(&[0; 16]).string(kex).string(host_keys);
            for list in ["aes128-gcm@openssh.com", "hmac-sha2-256", "none", ""] {
                packet.string(list).string(list);
            }
            packet.boolean(false).uint32(0);
        })
    }

    /// Plays it to a client and tells how that ended.
    fn error(self) -> Option<Error> {
        self.client().error
    }

    fn client(self) -> End {
        let now = std::time::Instant::now();
        let mut client = End::new(Transport::client(TransportConfig::default()));
        client.transmit(now);
        client.receive(now, &self.bytes, Some(true));
        client
    }

    fn breaks(self, expected: Violation) {
        assert_eq!(self.error(), Some(Error::Violation(expected)));
    }
}

/// A connected server that sends one control message after another out of order.
fn after_login(message: impl Fn(&mut Writer<'_>), times: u32) -> Pair {
    let mut pair = Pair::connected();
    for _ in 0..times {
        pair.server.transport.control.push(&message);
    }
    pair.run();
    pair
}

fn violation(error: Option<&Error>) -> Violation {
    match error {
        Some(Error::Violation(violation)) => *violation,
        other => panic!("no violation: {other:?}"),
    }
}

// Identification.

#[test]
fn lines_before_the_identification_are_passed_over_up_to_a_limit() {
    let line = |count: u32| format!("{}SSH-2.0-x\r\n", "notice\r\n".repeat(count as usize));
    assert_eq!(Script::new(&line(MAX_BANNER_LINES)).error(), None);
    Script::new(&line(MAX_BANNER_LINES + 1)).breaks(Violation::BannerTooLong);
    Script::new(&"x".repeat(MAX_BANNER_LINE)).breaks(Violation::BannerTooLong);
    assert_eq!(Script::new(&"x".repeat(MAX_BANNER_LINE - 1)).error(), None);
}

#[test]
fn a_client_may_send_no_line_before_its_identification() {
    let mut server = End::new(Transport::server(server_config()));
    server.receive(std::time::Instant::now(), b"GET / HTTP/1.1\r\n", None);
    assert_eq!(violation(server.error.as_ref()), Violation::BannerTooLong);
}

#[test]
fn identifications_are_bounded_free_of_zeros_and_of_version_2() {
    let long = format!("SSH-2.0-{}", "x".repeat(255));
    Script::new(&long).breaks(Violation::IdentTooLong);
    Script::new("SSH-2.0-a\0b\r\n").breaks(Violation::IdentMalformed);
    for old in ["SSH-1.5-old\r\n", "SSH-3.0-new\r\n", "SSH-2.0\r\n"] {
        assert_eq!(
            Script::new(old).error(),
            Some(Incompatible::ProtocolVersion.into())
        );
    }
    for good in ["SSH-2.0-bare_line_feed\n", "SSH-1.99-both\r\n"] {
        let client = Script::new(good).client();
        assert_eq!(client.incoming, [Incoming::Ident]);
        assert_eq!(
            client.transport.peer_ident().unwrap().as_bytes(),
            good.trim_end().as_bytes()
        );
    }
}

// KEXINIT.

#[test]
fn a_second_kexinit_during_a_key_exchange_is_refused() {
    Script::openssh()
        .kexinit(true)
        .kexinit(true)
        .breaks(Violation::UnexpectedMessage(KEXINIT));
    Script::openssh()
        .kexinit(false)
        .kexinit(false)
        .breaks(Violation::UnexpectedMessage(KEXINIT));
}

#[test]
fn lists_with_too_many_empty_or_foreign_names_are_refused() {
    let names = |count: usize| vec!["x"; count].join(",").into_bytes();
    let script = |kex: &[u8]| Script::openssh().kexinit_with(kex, b"ssh-ed25519");
    script(&names(MAX_NAMES + 1)).breaks(Violation::TooManyNames);
    script(&names(17_000)).breaks(Violation::TooManyNames);
    script("kürbis".as_bytes()).breaks(Violation::NameList);
    script(b"a,,b").breaks(Violation::NameList);
    assert_eq!(
        script(b"").error(),
        Some(Incompatible::Kex("nothing".into()).into())
    );
    let repeated = script(b"curve25519-sha256,curve25519-sha256").client();
    assert_eq!((repeated.error, repeated.incoming.len()), (None, 2));
}

#[test]
fn a_hundred_thousand_names_do_not_even_fit_a_packet_before_there_are_keys() {
    let names = "x,".repeat(100_000);
    let error = Script::openssh().kexinit_with(names.as_bytes(), b"").error();
    assert!(matches!(violation(error.as_ref()), Violation::PacketLength(_)));
}

#[test]
fn a_long_list_is_cut_where_an_error_shows_it() {
    let names = vec!["long-unknown-name"; MAX_NAMES].join(",");
    let error = Script::openssh().kexinit_with(names.as_bytes(), b"").error();
    let Some(Error::Incompatible(Incompatible::Kex(shown))) = error else {
        panic!("{error:?}")
    };
    assert!(shown.len() < 600 && shown.ends_with(",..."));
}

#[test]
fn a_kexinit_cut_short_or_drawn_out_is_refused() {
    let whole = kexinit::build(Side::Server, &Algorithms::default(), true, false).unwrap();
    for length in 1..whole.len() {
        let cut = Script::openssh().packet(|packet| {
            packet.raw(&whole[..length]);
        });
        assert_eq!(violation(cut.error().as_ref()), Violation::Truncated, "{length}");
    }
    let longer = Script::openssh().packet(|packet| {
        packet.raw(&whole).byte(0);
    });
    longer.breaks(Violation::TrailingBytes);
}

#[test]
fn a_server_that_insists_on_compression_has_nothing_in_common() {
    let script = Script::openssh().packet(|packet| {
        packet
            .byte(KEXINIT)
            .raw(&[0; 16])
            .string("curve25519-sha256")
            .string("ssh-ed25519");
        for list in ["aes128-gcm@openssh.com", "hmac-sha2-256", "zlib", ""] {
            packet.string(list).string(list);
        }
        packet.boolean(false).uint32(0);
    });
    assert_eq!(
        script.error(),
        Some(Incompatible::Compression("zlib".into()).into())
    );
}

// Order before the first NEWKEYS.

#[test]
fn strict_key_exchange_allows_nothing_before_kexinit() {
    for number in [IGNORE, DEBUG, UNIMPLEMENTED] {
        let script = Script::openssh().packet(|packet| {
            packet.byte(number).uint32(0);
        });
        script.kexinit(true).breaks(Violation::StrictFirstPacket);
    }
}

#[test]
fn strict_key_exchange_allows_nothing_between_kexinit_and_newkeys() {
    for number in [IGNORE, DEBUG, UNIMPLEMENTED] {
        Script::openssh()
            .kexinit(true)
            .message(number)
            .breaks(Violation::UnexpectedMessage(number));
    }
}

#[test]
fn without_strict_key_exchange_messages_without_meaning_are_counted() {
    let mut script = Script::openssh();
    for _ in 0..MAX_IGNORED_BEFORE_KEYS {
        script = script.message(IGNORE);
    }
    script = script.kexinit(false);
    let tolerated = Script {
        outbound: Outbound::new(),
        bytes: script.bytes.clone(),
    };
    assert_eq!(tolerated.error(), None);
    script.message(DEBUG).breaks(Violation::IgnoreFlood);
}

#[test]
fn nothing_but_key_exchange_is_taken_before_the_first_newkeys() {
    for number in [
        0,
        SERVICE_ACCEPT,
        EXT_INFO,
        8,
        22,
        50,
        52,
        CHANNEL_DATA,
        127,
        128,
        255,
    ] {
        for strict in [false, true] {
            let expected = Violation::UnexpectedMessage(number);
            Script::openssh().message(number).breaks(expected);
            Script::openssh().kexinit(strict).message(number).breaks(expected);
        }
    }
}

#[test]
fn key_exchange_messages_out_of_order_are_refused() {
    let early = Script::openssh().message(KEX_ECDH_REPLY);
    early.breaks(Violation::UnexpectedMessage(KEX_ECDH_REPLY));
    for number in [KEX_ECDH_INIT, 32, 33, 34, 49] {
        Script::openssh()
            .kexinit(true)
            .message(number)
            .breaks(Violation::UnexpectedMessage(number));
    }
}

#[test]
fn newkeys_before_the_reply_is_refused() {
    Script::openssh()
        .message(NEWKEYS)
        .breaks(Violation::UnexpectedMessage(NEWKEYS));
    Script::openssh()
        .kexinit(true)
        .message(NEWKEYS)
        .breaks(Violation::UnexpectedMessage(NEWKEYS));
}

#[test]
fn disconnect_is_believed_at_any_time_and_its_text_is_cut() {
    let script = Script::openssh().packet(|packet| {
        packet
            .byte(DISCONNECT)
            .uint32(2)
            .string("too many authentication failures")
            .string("");
    });
    let description = "too many authentication failures".to_owned();
    assert_eq!(script.error(), Some(Error::Disconnected { code: 2, description }));
    let long = Script::openssh().kexinit(true).packet(|packet| {
        packet
            .byte(DISCONNECT)
            .uint32(11)
            .string("x".repeat(30_000))
            .string("");
    });
    let description = "x".repeat(MAX_DESCRIPTION);
    assert_eq!(
        long.error(),
        Some(Error::Disconnected {
            code: 11,
            description
        })
    );
    let bare = Script::openssh().message(DISCONNECT).error();
    assert_eq!(
        bare,
        Some(Error::Disconnected {
            code: 0,
            description: String::new()
        })
    );
}

// The reply.

/// Two ends whose server has its reply queued and not sent.
fn before_reply(kex: Kex) -> Pair {
    let mut pair = Pair::new(offer(|ours| ours.kex = vec![kex]), server_config());
    let now = pair.now;
    let hello = pair.client.transmit(now);
    pair.server.receive(now, &hello, None);
    let flight = pair.server.transmit(now);
    pair.client.receive(now, &flight, None);
    let half = pair.client.transmit(now);
    pair.server.receive(now, &half, None);
    pair
}

/// How a client takes a reply whose fields (host key, public value, signature) went through `tamper`.
fn reply(kex: Kex, tamper: impl FnOnce(&mut [BytesMut; 3])) -> Option<Error> {
    let mut pair = before_reply(kex);
    let now = pair.now;
    let mut frames = pair
        .server
        .transport
        .control
        .iter()
        .map(Bytes::copy_from_slice)
        .collect::<Vec<_>>();
    let mut reader = crate::wire::Reader::new(&frames[0]);
    reader.byte().unwrap();
    let mut fields = [(); 3].map(|()| BytesMut::from(reader.string().unwrap()));
    tamper(&mut fields);
    let mut forged = BytesMut::new();
    let mut writer = Writer::new(&mut forged);
    writer.byte(KEX_ECDH_REPLY);
    for field in &fields {
        writer.string(field);
    }
    frames[0] = forged.freeze();
    pair.server.transport.control.clear();
    for frame in frames {
        pair.server.transport.control.push(|packet| {
            packet.raw(&frame);
        });
    }
    let answer = pair.server.transmit(now);
    pair.client.receive(now, &answer, None);
    let asked = pair.client.transport.waits_for_answer();
    assert_eq!(asked, pair.client.error.is_none(), "asked about, or refused");
    pair.client.error
}

fn breaks_reply(expected: Violation, tamper: impl FnOnce(&mut [BytesMut; 3])) {
    assert_eq!(reply(Kex::Curve25519, tamper), Some(Error::Violation(expected)));
}

#[test]
fn an_honest_reply_is_asked_about() {
    assert_eq!(reply(Kex::Curve25519, |_| {}), None);
}

#[test]
fn host_keys_that_cannot_be_used_are_refused() {
    for length in [0, 31, 33] {
        breaks_reply(Violation::HostKey(KeyBlobError::WrongLength), |[key, _, _]| {
            key.clear();
            Writer::new(key).string("ssh-ed25519").string(vec![1; length]);
        });
    }
    breaks_reply(
        Violation::HostKey(KeyBlobError::RsaModulus { bits: 8200 }),
        |[key, _, _]| {
            key.clear();
            Writer::new(key).string("ssh-rsa").mpint(&[3]).mpint(&[255; 1025]);
        },
    );
    breaks_reply(Violation::HostKey(KeyBlobError::WrongLength), |[key, _, _]| {
        key.clear();
        Writer::new(key).string("ssh-rsa").mpint(&[3]).mpint(&[255; 2049]);
    });
    breaks_reply(Violation::HostKey(KeyBlobError::RsaExponent), |[key, _, _]| {
        key.clear();
        Writer::new(key)
            .string("ssh-rsa")
            .mpint(&[255; 256])
            .mpint(&[255; 256]);
    });
    breaks_reply(Violation::HostKey(KeyBlobError::Malformed), |[key, _, _]| {
        key.clear()
    });
}

#[test]
fn a_host_key_of_another_type_than_agreed_is_refused() {
    breaks_reply(Violation::HostKeyType, |[key, _, _]| {
        key.clear();
        Writer::new(key).string("ssh-rsa").mpint(&[3]).mpint(&[255; 256]);
    });
}

#[test]
fn a_signature_by_another_algorithm_than_agreed_is_refused() {
    breaks_reply(Violation::SignatureAlgorithm, |[_, _, signature]| {
        signature.clear();
        Writer::new(signature).string("rsa-sha2-512").string([0; 64]);
    });
}

#[test]
fn a_wrong_signature_is_refused_wherever_it_is_wrong() {
    breaks_reply(Violation::Signature, |[_, _, signature]| {
        *signature.last_mut().unwrap() ^= 1
    });
    breaks_reply(Violation::Truncated, |[_, _, signature]| signature.clear());
    breaks_reply(Violation::TrailingBytes, |[_, _, signature]| {
        signature.extend_from_slice(&[0])
    });
    breaks_reply(Violation::Signature, |[key, _, _]| {
        *key = BytesMut::from(ed25519_key(8).public().blob());
    });
}

#[test]
fn a_public_value_of_the_wrong_length_is_refused_in_every_method() {
    for &kex in Kex::ALL {
        let error = reply(kex, |[_, public, _]| public.extend_from_slice(&[0]));
        assert_eq!(error, Some(Violation::KexValue.into()));
        let error = reply(kex, |[_, public, _]| public.truncate(31));
        assert_eq!(error, Some(Violation::KexValue.into()));
    }
}

#[test]
fn another_public_value_breaks_the_signature() {
    breaks_reply(Violation::Signature, |[_, public, _]| public[0] ^= 1);
}

#[test]
fn a_listener_that_changes_either_kexinit_or_ident_breaks_the_signature() {
    for (from_client, offset) in [(true, 12), (false, 12), (true, 40), (false, 40)] {
        let mut pair = Pair::new(TransportConfig::default(), server_config());
        let mut hello = BytesMut::from(&pair.client.transmit(pair.now)[..]);
        let mut answer = BytesMut::from(&pair.server.transmit(pair.now)[..]);
        if from_client {
            hello[offset] ^= 1
        } else {
            answer[offset] ^= 1
        }
        pair.server.receive(pair.now, &hello, None);
        pair.client.receive(pair.now, &answer, None);
        pair.run();
        assert_eq!(
            violation(pair.client.error.as_ref()),
            Violation::Signature,
            "{from_client} {offset}"
        );
    }
}

#[test]
fn a_second_reply_is_refused() {
    let mut pair = before_reply(Kex::Curve25519);
    let reply = Bytes::copy_from_slice(pair.server.transport.control.front().unwrap());
    let mut twice = BytesMut::new();
    for _ in 0..2 {
        pair.server.transport.outbound.seal(&mut twice, |packet| {
            packet.raw(&reply);
        });
    }
    pair.client.receive(pair.now, &twice, pair.accept);
    assert_eq!(
        violation(pair.client.error.as_ref()),
        Violation::UnexpectedMessage(KEX_ECDH_REPLY)
    );
}

#[test]
fn newkeys_with_anything_behind_it_is_refused() {
    let script = Script::openssh().kexinit(true).packet(|packet| {
        packet.byte(NEWKEYS).byte(0);
    });
    script.breaks(Violation::TrailingBytes);
}

// After the first NEWKEYS.

#[test]
fn kex_messages_without_a_key_exchange_are_refused() {
    for number in [NEWKEYS, KEX_ECDH_INIT, KEX_ECDH_REPLY, 49] {
        let pair = after_login(
            |packet| {
                packet.byte(number);
            },
            1,
        );
        assert_eq!(
            violation(pair.client.error.as_ref()),
            Violation::UnexpectedMessage(number)
        );
    }
}

#[test]
fn messages_without_meaning_cost_nothing_once_there_are_keys() {
    let pair = after_login(
        |packet| {
            packet.byte(IGNORE).string("x".repeat(100));
        },
        10_000,
    );
    pair.assert_healthy();
    assert!(pair.client.incoming.is_empty());
}

#[test]
fn unknown_messages_are_answered_up_to_a_limit() {
    let unknown = |packet: &mut Writer<'_>| {
        packet.byte(200);
    };
    let pair = after_login(unknown, MAX_UNKNOWN_MESSAGES);
    pair.assert_healthy();
    assert_eq!(pair.server.incoming.len(), MAX_UNKNOWN_MESSAGES as usize);
    let pair = after_login(unknown, MAX_UNKNOWN_MESSAGES + 1);
    assert_eq!(
        violation(pair.client.error.as_ref()),
        Violation::UnknownMessageFlood
    );
}

#[test]
fn ext_info_comes_twice_at_most_and_never_after_login() {
    let info = |packet: &mut Writer<'_>| {
        packet
            .byte(EXT_INFO)
            .uint32(1)
            .string("server-sig-algs")
            .string("ssh-ed25519,unknown");
    };
    // The first came with NEWKEYS.
    let pair = after_login(info, 1);
    let known = Some(vec![crate::algorithms::SignatureAlgorithm::Ed25519]);
    assert_eq!(
        pair.client.incoming,
        [Incoming::ExtInfo(ExtInfo {
            server_sig_algs: known
        })]
    );
    let pair = after_login(info, 2);
    assert_eq!(
        violation(pair.client.error.as_ref()),
        Violation::ExtInfoUnexpected
    );
    let mut pair = Pair::connected();
    pair.client.transport.login_done();
    pair.server.transport.control.push(info);
    pair.run();
    assert_eq!(
        violation(pair.client.error.as_ref()),
        Violation::ExtInfoUnexpected
    );
}

#[test]
fn ext_info_is_bounded_and_reads_only_what_it_knows() {
    let parse = |write: &dyn Fn(&mut Writer<'_>)| {
        let mut payload = BytesMut::new();
        write(Writer::new(&mut payload).byte(EXT_INFO));
        ExtInfo::parse(&payload)
    };
    let many = |count: u32| {
        move |packet: &mut Writer<'_>| {
            packet.uint32(count);
            for _ in 0..count.min(1000) {
                packet.string("unknown@example.org").string([0xff; 3]);
            }
        }
    };
    assert_eq!(parse(&many(MAX_EXTENSIONS)), Ok(ExtInfo::default()));
    assert_eq!(
        parse(&many(MAX_EXTENSIONS + 1)),
        Err(Violation::TooManyExtensions)
    );
    assert_eq!(parse(&many(1_000_000)), Err(Violation::TooManyExtensions));
    let empty = parse(&|packet| {
        packet.uint32(1).string("server-sig-algs").string("");
    });
    assert_eq!(
        empty,
        Ok(ExtInfo {
            server_sig_algs: Some(Vec::new())
        })
    );
    let cut = parse(&|packet| {
        packet.uint32(2).string("a").string("b");
    });
    assert_eq!(cut, Err(Violation::Truncated));
    let drawn_out = parse(&|packet| {
        packet.uint32(0).byte(0);
    });
    assert_eq!(drawn_out, Err(Violation::TrailingBytes));
}

#[test]
fn an_end_at_any_byte_of_a_session_is_an_error_and_no_panic() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    let now = pair.now;
    let hello = pair.client.transmit(now);
    pair.server.receive(now, &hello, None);
    let flight = pair.server.transmit(now);
    for end in 0..=flight.len() {
        let mut client = End::new(Transport::client(TransportConfig::default()));
        client.transmit(now);
        client.receive(now, &flight[..end], None);
        assert_eq!(client.transport.handle_eof(), Error::UnexpectedEof);
        assert!(client.transport.poll_timeout().is_none());
    }
    let mut pair = Pair::connected();
    pair.server.send(b"last words");
    let words = pair.server.transmit(pair.now);
    pair.client.receive(pair.now, &words[..words.len() - 1], None);
    assert_eq!(pair.client.transport.handle_eof(), Error::UnexpectedEof);
    assert!(
        pair.client.transmit(pair.now).is_empty(),
        "nobody is there to be told"
    );
}

#[test]
fn bytes_changed_at_random_end_in_an_error_and_no_panic() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    let mut pair = before_reply(Kex::Curve25519);
    let mut flight = BytesMut::from(&b"notice\r\nSSH-2.0-mux_x\r\n"[..]);
    let kexinit = Script::openssh().kexinit(true).bytes;
    flight.extend_from_slice(&kexinit[b"SSH-2.0-OpenSSH_9.2p1\r\n".len()..]);
    flight.extend_from_slice(&pair.server.transmit(pair.now));
    for _ in 0..1000 {
        let mut changed = flight.clone();
        for _ in 0..=random(4) {
            let place = random(changed.len());
            changed[place] = random(256) as u8;
        }
        changed.truncate(1 + random(changed.len()));
        let config = offer(|ours| ours.kex = vec![Kex::Curve25519]);
        let mut client = End::new(Transport::client(config));
        client.transmit(pair.now);
        client.receive(pair.now, &changed, Some(true));
        assert_eq!(client.new_keys(), 0, "the signature is over another exchange");
    }
}

#[test]
fn a_name_that_no_algorithm_can_have_is_not_remembered() {
    let long = format!("{},curve25519-sha256", "x".repeat(65));
    let client = Script::openssh()
        .kexinit_with(long.as_bytes(), b"ssh-ed25519")
        .client();
    let learned = client.transport.learned().unwrap();
    assert_eq!(
        (learned.first_kex.as_str(), learned.first_host_key.as_str()),
        ("", "ssh-ed25519")
    );
}
