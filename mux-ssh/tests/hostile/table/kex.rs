//! The first key exchange: order, lists, keys, proofs, guesses.

use bytes::Bytes;
use mux_ssh::algorithms::KeyType;
use mux_ssh::client::Event;
use mux_ssh::keys::KeyBlobError;
use mux_ssh::message;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::{GuessRule, HostKey, ServerMemory};
use mux_ssh::wire::Writer;
use mux_ssh::{Error, Incompatible, Violation};

use super::Run::Servers;
use super::harness::{Case, End, HOST, Pair, drop_ref, payload};
use super::packets::ciphers;
use super::table_rows;

fn before(moment: Moment, payload: impl Into<Bytes>) -> Case {
    Case::new(Plan::new().with(Point::Before(moment, 1), Act::Packet(payload.into())))
}

fn after(moment: Moment, payload: impl Into<Bytes>) -> Case {
    Case::new(Plan::new().with(Point::After(moment, 1), Act::Packet(payload.into())))
}

fn instead(moment: Moment, payload: impl Into<Bytes>) -> Case {
    act(moment, Act::Replace(payload.into()))
}

fn act(moment: Moment, act: Act) -> Case {
    Case::new(Plan::new().with(Point::Before(moment, 1), act))
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

fn offers(kexinit: Bytes) -> Case {
    instead(Moment::KexInit, kexinit)
}

const KEX: &str = "curve25519-sha256,kex-strict-s-v00@openssh.com";
const CURVE: &str = "curve25519-sha256";
const AES: &str = "aes128-gcm@openssh.com";
const PLAIN: &[u8] = b"\0\0\0\0";

/// The server's offer with one bit of one byte changed. The cookie, the lists, the guess: all of it is signed.
fn tampered_offers() -> Vec<Case> {
    // Shorter than any offer of ours: every byte that is counted from the end is there.
    (0..400)
        .map(|from_end| {
            let case = act(Moment::KexInit, Act::Patch { from_end, mask: 1 }).kex(CURVE);
            match from_end {
                // The announcement of a guess: the reply is taken for it and dropped.
                4 => case.violates(Violation::UnexpectedMessage(message::NEWKEYS)),
                _ => case.end(End::FailsLike(|error| {
                    matches!(error, Error::Violation(_) | Error::Incompatible(_))
                })),
            }
            .also(|pair| assert!(!pair.seen.logged_in() && pair.seen.stdout.is_empty()))
        })
        .collect()
}

/// A reply with this host key, public value and signature blob.
fn reply_with(host_key: &[u8], public: &[u8], signature: &[u8]) -> Case {
    let reply = payload(|w| {
        drop_ref(
            w.byte(message::KEX_ECDH_REPLY)
                .string(host_key)
                .string(public)
                .string(signature),
        )
    });
    instead(Moment::KexReply, reply)
}

/// A reply with this host key and public value; the signature is noise.
fn reply(host_key: &[u8], public: &[u8]) -> Case {
    let signature = payload(|w| drop_ref(w.string("ssh-ed25519").string([7; 64])));
    reply_with(host_key, public, &signature)
}

fn host_blob() -> Vec<u8> {
    HOST.host_key().unwrap().public().blob().to_vec()
}

fn blob(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    payload(write)
}

fn bad_host_keys() -> Vec<(Bytes, KeyBlobError)> {
    let ed25519 = |len: usize| blob(|w| drop_ref(w.string("ssh-ed25519").string(vec![1; len])));
    let rsa = |e: &[u8], n: &[u8]| blob(|w| drop_ref(w.string("ssh-rsa").mpint(e).mpint(n)));
    vec![
        (ed25519(0), KeyBlobError::WrongLength),
        (ed25519(31), KeyBlobError::WrongLength),
        (ed25519(33), KeyBlobError::WrongLength),
        (ed25519(64), KeyBlobError::WrongLength),
        (rsa(&[3], &[0xff; 64]), KeyBlobError::RsaModulus { bits: 512 }),
        (rsa(&[3], &[0xff; 1025]), KeyBlobError::RsaModulus { bits: 8200 }),
        (rsa(&[3], &[0xff; 2056]), KeyBlobError::WrongLength),
        (rsa(&[0x7f; 64], &[0xff; 256]), KeyBlobError::RsaExponent),
        (rsa(&[2], &[0xff; 256]), KeyBlobError::RsaExponent),
        (rsa(&[1], &[0xff; 256]), KeyBlobError::RsaExponent),
        (
            blob(|w| drop_ref(w.string("ssh-dss").string("x"))),
            KeyBlobError::UnknownType,
        ),
        (Bytes::new(), KeyBlobError::Malformed),
    ]
}

fn not_asked(pair: &mut Pair) {
    let asked = pair.seen.count(|event| matches!(event, Event::HostKey { .. }));
    assert_eq!(asked, 0, "a key is asked about that is not proven");
}

/// Points of small order on curve25519: whoever sends one knows the secret.
fn small_orders() -> Vec<[u8; 32]> {
    let mut minus_one = [0xff; 32];
    (minus_one[0], minus_one[31]) = (0xec, 0x7f);
    let mut zero_again = minus_one;
    zero_again[0] = 0xed;
    let mut one = [0; 32];
    one[0] = 1;
    let eight = [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ];
    vec![[0; 32], one, minus_one, zero_again, eight]
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

/// Servers, and how each of them judges a guess.
const GUESSED_AT: [(&str, GuessRule); 6] = [
    ("SSH-2.0-OpenSSH_9.2", GuessRule::Rfc),
    ("SSH-2.0-dropbear_2022.83", GuessRule::Rfc),
    ("SSH-2.0-AsyncSSH_2.24.1", GuessRule::Negotiated),
    ("SSH-2.0-tinyssh_20230101", GuessRule::Negotiated),
    ("SSH-2.0-paramiko_5.1.0", GuessRule::Ignored),
    ("SSH-2.0-Unheard_1", GuessRule::Rfc),
];

fn remembered(ident: &str, rule: GuessRule, first_kex: &str) -> Case {
    Case::good()
        .server(|server| {
            server.ident = ident.to_owned();
            server.guess_rule = rule;
        })
        .client(|client| {
            client.memory = Some(memory(ident, first_kex));
            client.known_host_key_types = vec![KeyType::Ed25519];
        })
}

fn in_2_rounds(pair: &mut Pair) {
    assert_eq!(pair.seen.rounds_to_output, Some(2));
}

fn in_3_rounds(pair: &mut Pair) {
    assert_eq!(pair.seen.rounds_to_output, Some(3));
}

fn in_4_rounds(pair: &mut Pair) {
    assert_eq!(pair.seen.rounds_to_output, Some(4));
}

table_rows! { Kex:

terrapin_insert_before_newkeys, Forgery, "somebody on the way inserts a packet between the offers and NEWKEYS" =>
    Servers(|| [message::IGNORE, message::DEBUG, message::UNIMPLEMENTED].map(|number| {
        let packet = payload(|w| drop_ref(w.byte(number).uint32(0).uint32(0).uint32(0)));
        before(Moment::NewKeys, packet).violates(Violation::UnexpectedMessage(number))
    }).into());
terrapin_insert_before_kexinit, Forgery, "somebody on the way inserts a packet before the server's offer" =>
    Servers(|| vec![
        before(Moment::KexInit, &b"\x02\0\0\0\0"[..]).violates(Violation::StrictFirstPacket),
    ]);
terrapin_cut_behind_newkeys, Forgery, "somebody on the way cuts out the first packet under the new keys" =>
    Servers(|| vec![act(Moment::ExtInfo, Act::Lose).violates(Violation::Tag)]);
an_offer_that_is_tampered_with_breaks_the_signature, Forgery, "any byte of the server's offer changed, the marker of strict key exchange included" =>
    Servers(tampered_offers);

a_second_kexinit_during_the_exchange, Order, "KEXINIT twice, another one and bit by bit the same" =>
    Servers(|| vec![
        before(Moment::KexReply, kexinit(KEX, "ssh-ed25519", AES, "none"))
            .violates(Violation::UnexpectedMessage(message::KEXINIT)),
        act(Moment::KexInit, Act::Replay)
            .violates(Violation::UnexpectedMessage(message::KEXINIT)),
    ]);
kexinit_without_end, Flood, "100,000 KEXINIT before the reply, and behind the login" =>
    Servers(|| {
        let flood = |at| {
            let payload = kexinit(KEX, "ssh-ed25519", AES, "none");
            Case::new(Plan::new().with(at, Act::Flood { payload, times: 100_000 }))
                .violates(Violation::UnexpectedMessage(message::KEXINIT))
        };
        vec![
            flood(Point::After(Moment::KexInit, 1)),
            flood(Point::After(Moment::AuthSuccess, 1)),
        ]
    });
a_kexinit_with_too_many_names, Flood, "257, 1,000 and 6,000 names in each of the lists" =>
    Servers(|| [257, 1000, 6000].into_iter().flat_map(|count| {
        let names = vec!["a"; count].join(",");
        (0..3).map(|at| {
            let mut lists = [KEX, "ssh-ed25519", AES];
            lists[at] = &names;
            offers(kexinit(lists[0], lists[1], lists[2], "none")).violates(Violation::TooManyNames)
        }).collect::<Vec<_>>()
    }).collect());
a_kexinit_larger_than_its_packet_may_be, Length, "10,000 names of nine letters" =>
    Servers(|| vec![
        offers(kexinit(&vec!["aaaaaaaaa"; 10_000].join(","), "ssh-ed25519", AES, "none"))
            .end(End::FailsLike(|error| matches!(error, Error::Violation(Violation::PacketLength(_))))),
    ]);
names_that_are_none, Id, "empty names, zero bytes, blanks, letters that are not ASCII" =>
    Servers(|| {
        ["curve25519-sha256,,a", ",", "a\0b", "k\u{e4}se", "a b", "curve25519-sha256,", "a\u{1b}[31m"]
            .map(|bad| offers(kexinit(bad, "ssh-ed25519", AES, "none")).violates(Violation::NameList))
            .into()
    });
lists_without_overlap, Type, "old algorithms only, or nothing; compression that is insisted on" =>
    Servers(|| {
        let old = "diffie-hellman-group1-sha1";
        let zlib = "zlib,zlib@openssh.com";
        vec![
            offers(kexinit(old, "ssh-ed25519", AES, "none")).fails(Incompatible::Kex(old.to_owned())),
            offers(kexinit("", "", "", "none")).fails(Incompatible::Kex("nothing".to_owned())),
            offers(kexinit(KEX, "ssh-dss", AES, "none")).fails(Incompatible::HostKey("ssh-dss".to_owned())),
            offers(kexinit(KEX, "", AES, "none")).fails(Incompatible::HostKey("nothing".to_owned())),
            offers(kexinit(KEX, "ssh-ed25519", "3des-cbc", "none"))
                .fails(Incompatible::Cipher("3des-cbc".to_owned())),
            offers(kexinit(KEX, "ssh-ed25519", AES, zlib))
                .fails(Incompatible::Compression(zlib.to_owned())),
        ]
    });
a_list_too_long_to_be_shown, Length, "256 unknown names of a hundred letters: the error names the first of them" =>
    Servers(|| vec![
        offers(kexinit(&vec!["x".repeat(100); 256].join(","), "ssh-ed25519", AES, "none"))
            .end(End::FailsLike(|error| {
                matches!(error, Error::Incompatible(Incompatible::Kex(shown)) if shown.len() <= 600)
            })),
    ]);
compression_is_not_offered, Harmless, "nothing: the client's own offer is looked at" =>
    Servers(|| vec![Case::good().also(|pair| {
        assert!(!pair.seen.client_says.windows(4).any(|window| window == b"zlib"));
    })]);
names_twice, Order, "every name twice, on an offer that was exchanged on its way: no reason to trust it" =>
    Servers(|| {
        let twice = format!("{KEX},{KEX}");
        vec![offers(kexinit(&twice, "ssh-ed25519,ssh-ed25519", AES, "none")).kex(CURVE)
            .violates(Violation::Signature)]
    });
a_kexinit_that_is_cut_or_too_long, Length, "an offer that ends anywhere, and one with a byte behind it" =>
    Servers(|| {
        let whole = kexinit(KEX, "ssh-ed25519", AES, "none");
        let longer = [&whole[..], b"x"].concat();
        let cut = (1..whole.len()).map(|len| offers(whole.slice(..len)).violates(Violation::Truncated));
        cut.chain([offers(longer.into()).violates(Violation::TrailingBytes)]).collect()
    });
a_name_list_longer_than_its_packet, Length, "a list of 2^32 - 1 bytes in an offer" =>
    Servers(|| vec![offers(payload(|w| {
        w.byte(message::KEXINIT).raw(&[7; 16]).uint32(u32::MAX).raw(b"curve25519-sha256");
    })).violates(Violation::Truncated)]);

messages_between_kexinit_and_newkeys, Time, "messages of services and of other key exchanges before the reply" =>
    Servers(|| {
        let services = [message::SERVICE_ACCEPT, message::EXT_INFO, message::USERAUTH_SUCCESS];
        let others = [80, 94, 127, 32, 33, 34, 40, 49];
        services.into_iter().chain(others)
            .map(|number| before(Moment::KexReply, vec![number, 0, 0, 0, 0])
                .violates(Violation::UnexpectedMessage(number)))
            .collect()
    });
messages_of_a_key_exchange_without_one, Time, "each message from 30 to 49 after the login" =>
    Servers(|| (30..=49).map(|number| after(Moment::AuthSuccess, vec![number, 0, 0, 0, 0])
        .violates(Violation::UnexpectedMessage(number))).collect());
the_client_s_own_half, Type, "KEX_INIT from the server" =>
    Servers(|| vec![before(Moment::KexReply, vec![message::KEX_ECDH_INIT, 0, 0, 0, 0])
        .violates(Violation::UnexpectedMessage(message::KEX_ECDH_INIT))]);
two_replies, Order, "a second reply behind the first, and behind NEWKEYS" =>
    Servers(|| vec![
        after(Moment::KexReply, &[31, 0, 0][..])
            .violates(Violation::UnexpectedMessage(message::KEX_ECDH_REPLY)),
        act(Moment::KexReply, Act::Replay)
            .violates(Violation::UnexpectedMessage(message::KEX_ECDH_REPLY)),
        after(Moment::ExtInfo, &[31, 0, 0][..])
            .violates(Violation::UnexpectedMessage(message::KEX_ECDH_REPLY)),
    ]);
newkeys_before_the_reply_twice_and_with_something_in_it, Order, "NEWKEYS out of turn, repeated and too long" =>
    Servers(|| {
        let newkeys = Violation::UnexpectedMessage(message::NEWKEYS);
        vec![
            before(Moment::KexReply, &b"\x15"[..]).violates(newkeys),
            after(Moment::ExtInfo, &b"\x15"[..]).violates(newkeys),
            instead(Moment::NewKeys, &b"\x15x"[..]).violates(Violation::TrailingBytes),
        ]
    });
newkeys_left_out, Order, "no NEWKEYS at all: what follows is not what its cipher makes of it" =>
    Servers(|| vec![act(Moment::NewKeys, Act::Drop).end(End::MayFail(|_| true))
        .also(|pair| assert!(pair.seen.stdout.is_empty() && !pair.seen.logged_in()))]);
no_reply, Stall, "silence where the reply should be, and half a reply" =>
    Servers(|| vec![
        act(Moment::KexReply, Act::Stall).end(End::Waits),
        act(Moment::KexReply, Act::Cut(50)).end(End::Waits),
        act(Moment::NewKeys, Act::Stall).end(End::Waits),
    ]);
a_reply_that_is_cut_or_too_long, Length, "a reply that ends in each of its fields, and one with a byte behind it" =>
    Servers(|| {
        let whole = payload(|w| drop_ref(
            w.byte(message::KEX_ECDH_REPLY).string(host_blob()).string([9; 32]).string([7; 83]),
        ));
        let cut = (1..whole.len()).step_by(3)
            .map(|len| instead(Moment::KexReply, whole.slice(..len)).kex(CURVE).violates(Violation::Truncated));
        let longer = instead(Moment::KexReply, [&whole[..], b"x"].concat()).kex(CURVE);
        cut.chain([longer.violates(Violation::TrailingBytes)]).collect()
    });
secrets_with_leading_zeros, Harmless, "1,000 exchanges of each kind: one in 256 has a secret that begins with zeros" =>
    Servers(|| ["curve25519-sha256", "ecdh-sha2-nistp256"].into_iter()
        .flat_map(|kex| (0..1000).map(move |_| Case::good().kex(kex))).collect());
everything_that_is_offered_works, Harmless, "every kind of key exchange, cipher and host key" =>
    Servers(|| {
        let ecdsa = HostKey::generate_ecdsa_nistp256().unwrap();
        let kex = mux_ssh::algorithms::Kex::ALL.iter().map(|kex| Case::good().kex(kex.name()));
        kex.chain(ciphers().map(|cipher| Case::good().cipher(cipher)))
            .chain([Case::good().server(|server| server.host_keys = [ecdsa].into())])
            .collect()
    });

host_keys_that_can_not_be_used, Type, "host keys of the wrong length, weak, huge, slow to verify, unknown or none" =>
    Servers(|| bad_host_keys().into_iter()
        .map(|(blob, error)| reply(&blob, &[9; 32]).violates(Violation::HostKey(error)))
        .collect());
a_host_key_of_another_type_than_agreed, Type, "an ECDSA key where Ed25519 was agreed on" =>
    Servers(|| {
        let ecdsa = HostKey::generate_ecdsa_nistp256().unwrap();
        vec![reply(ecdsa.public().blob(), &[9; 32]).violates(Violation::HostKeyType)]
    });
a_signature_by_another_algorithm_than_agreed, Type, "another name in the signature, which is right otherwise" =>
    // The name stands 68 bytes from the end, behind it 64 bytes of signature.
    Servers(|| vec![
        act(Moment::KexReply, Act::Patch { from_end: 68, mask: 1 }).violates(Violation::SignatureAlgorithm),
        reply_with(&host_blob(), &[9; 32], &payload(|w| drop_ref(w.string("ssh-rsa").string([7; 64]))))
            .kex(CURVE).violates(Violation::SignatureAlgorithm),
        reply_with(&host_blob(), &[9; 32], &payload(|w| drop_ref(w.string("ssh-ed25519\0").string([7; 64]))))
            .kex(CURVE).violates(Violation::SignatureAlgorithm),
    ]);
signatures_of_the_wrong_length, Length, "an Ed25519 signature of 0, 63, 65 and 1,000 bytes, and one that says 2^32 - 1" =>
    Servers(|| {
        let sized = |len: usize| payload(|w| drop_ref(w.string("ssh-ed25519").string(vec![7; len])));
        let lies = payload(|w| drop_ref(w.string("ssh-ed25519").uint32(u32::MAX)));
        let longer = payload(|w| drop_ref(w.string("ssh-ed25519").string([7; 64]).raw(b"x")));
        let with = |signature: &[u8]| reply_with(&host_blob(), &[9; 32], signature).kex(CURVE);
        let mut cases: Vec<Case> = [0, 63, 65, 1000].map(|len| with(&sized(len)).violates(Violation::Signature)).into();
        cases.push(with(&lies).violates(Violation::Truncated));
        cases.push(with(&longer).violates(Violation::TrailingBytes));
        cases.push(with(PLAIN).end(End::FailsLike(|error| matches!(error, Error::Violation(_)))));
        cases
    });
a_wrong_signature, Forgery, "one bit of the signature changed: no key is asked about before it is proven" =>
    Servers(|| [0, 1, 31, 32, 63].map(|from_end| {
        act(Moment::KexReply, Act::Patch { from_end, mask: 0x10 })
            .violates(Violation::Signature).also(not_asked)
    }).into());
a_key_of_the_wrong_owner_in_the_reply, Forgery, "somebody else's host key with a signature that is not its own" =>
    Servers(|| {
        let other = Seed::generate().unwrap().host_key().unwrap();
        vec![reply(other.public().blob(), &[9; 32]).kex(CURVE)
            .violates(Violation::Signature).also(not_asked)]
    });
public_values_that_can_not_be, Length, "public values of the wrong length in each kind of key exchange" =>
    Servers(|| mux_ssh::algorithms::Kex::ALL.iter().flat_map(|kex| {
        [&[][..], &[4], &[9; 31], &[9; 33], &[4; 64], &[4; 66], &[4; 5000]].map(|public| {
            reply(&host_blob(), public).kex(kex.name()).violates(Violation::KexValue)
        })
    }).collect());
public_values_that_give_the_secret_away, Id, "points of small order, the point at infinity, points that are on no curve" =>
    Servers(|| {
        let small = small_orders().into_iter()
            .map(|point| reply(&host_blob(), &point).kex(CURVE).violates(Violation::KexValue));
        let curves = [("ecdh-sha2-nistp256", 65), ("ecdh-sha2-nistp384", 97), ("ecdh-sha2-nistp521", 133)];
        let points = curves.into_iter().flat_map(|(kex, len)| {
            let none = |public: Vec<u8>| reply(&host_blob(), &public).kex(kex).violates(Violation::KexValue);
            let off = |form| [&[form][..], &vec![7; len - 1]].concat();
            [none(off(2)), none(off(3)), none(off(4)), none(off(6)), none(vec![0]), none(vec![0; len])]
        });
        small.chain(points).collect()
    });
a_host_key_that_is_not_accepted, Id, "a host key that is proven and unknown: nothing about the user leaves" =>
    Servers(|| {
        let mut case = Case::good().fails(Error::HostKeyRejected).also(|pair| {
            assert_eq!(pair.seen.count(|event| matches!(event, Event::Sign { .. })), 0);
            assert_eq!(pair.seen.execs(), 0);
            assert!(!pair.seen.logged_in());
        });
        case.trust = false;
        vec![case]
    });

a_server_that_guesses, Order, "the announcement of a guess that does not follow: the reply is taken for it and dropped" =>
    Servers(|| vec![act(Moment::KexInit, Act::Patch { from_end: 4, mask: 1 })
        .end(End::MayFail(|error| *error == Violation::Signature.into()))
        .also(|pair| assert!(pair.seen.stdout.is_empty()))]);
a_right_guess_saves_a_round_trip, Harmless, "servers as remembered, and the same ones at first contact" =>
    Servers(|| GUESSED_AT.into_iter().take(5).flat_map(|(ident, rule)| {
        let right = remembered(ident, rule, FIRST_KEX);
        let first = right.clone().client(|client| client.memory = None);
        // Two of them bear less behind the login.
        let early = !matches!(rule, GuessRule::Negotiated);
        let with = if early { in_2_rounds } else { in_3_rounds };
        let without = if early { in_3_rounds } else { in_4_rounds };
        [right.also(with), first.also(without)]
    }).collect());
a_wrong_guess_is_dropped_or_ends_in_one_new_connection, Harmless, "servers that are no longer as remembered" =>
    Servers(|| GUESSED_AT.map(|(ident, rule)| {
        remembered(ident, rule, "sntrup761x25519-sha512")
            .end(End::MayFail(|error| *error == Error::GuessRejected))
            .also(|pair| if pair.seen.error.is_none() { pair.seen.assert_worked() })
    }).into());
a_guess_under_the_wrong_rule, Id, "a server that judges a guess otherwise than its name promises: no hang" =>
    Servers(|| vec![
        remembered("SSH-2.0-OpenSSH_9.2", GuessRule::Ignored, "sntrup761x25519-sha512")
            .fails(Error::GuessRejected),
    ]);
}
