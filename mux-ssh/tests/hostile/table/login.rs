//! The login: who speaks when, what a banner may be, keys that are refused, signatures that are none.

use bytes::Bytes;
use mux_ssh::client::{AuthViolation, ChannelFailure, Event, Identity};
use mux_ssh::keys::PrivateKey;
use mux_ssh::message;
use mux_ssh::server::{Act, Authorized, Moment, Plan, Point};
use mux_ssh::{Error, Violation};

use super::Run::Servers;
use super::harness::{Case, End, OTHER, Pair, USER, drop_ref, payload};
use super::table_rows;

fn at(point: Point, act: Act) -> Case {
    Case::new(Plan::new().with(point, act))
}

fn after(moment: Moment, payload: impl Into<Bytes>) -> Case {
    at(Point::After(moment, 1), Act::Packet(payload.into()))
}

fn instead(moment: Moment, payload: impl Into<Bytes>) -> Case {
    at(Point::Before(moment, 1), Act::Replace(payload.into()))
}

/// This many of them instead of one.
fn flood(moment: Moment, payload: impl Into<Bytes>, times: u32) -> Case {
    let payload = payload.into();
    let flood = Act::Flood { payload, times };
    Case::new(
        Plan::new()
            .with(Point::Before(moment, 1), flood)
            .with(Point::Before(moment, 1), Act::Drop),
    )
}

const SUCCESS: &[u8] = &[message::USERAUTH_SUCCESS];

fn banner(text: impl AsRef<[u8]>) -> Bytes {
    payload(|w| drop_ref(w.byte(message::USERAUTH_BANNER).string(text).string("")))
}

fn failure(methods: &str, partial: bool) -> Bytes {
    payload(|w| drop_ref(w.byte(message::USERAUTH_FAILURE).string(methods).boolean(partial)))
}

fn pk_ok(algorithm: &str, blob: &[u8]) -> Bytes {
    payload(|w| drop_ref(w.byte(message::USERAUTH_PK_OK).string(algorithm).string(blob)))
}

fn accept(name: &str) -> Bytes {
    payload(|w| drop_ref(w.byte(message::SERVICE_ACCEPT).string(name)))
}

fn ext_info(count: u32, entries: &[(&str, &str)]) -> Bytes {
    payload(|w| {
        w.byte(message::EXT_INFO).uint32(count);
        for (name, value) in entries {
            w.string(name).string(value);
        }
    })
}

fn refused(methods: &[&str], partial: bool) -> Error {
    let methods = methods.iter().map(|&method| method.to_owned()).collect();
    Error::AuthFailed { methods, partial }
}

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::AuthFailed { .. } | Error::EarlyAuthRefused { .. })
}

/// The command never ran, and is told so.
fn not_run(pair: &mut Pair) {
    assert_eq!(pair.seen.execs(), 0);
    let failure = pair.seen.failure().map(|(_, may_have_run)| may_have_run);
    assert_eq!(
        failure,
        Some(false),
        "the command can be given to another connection"
    );
}

fn nobody_is_in(pair: &mut Pair) {
    assert!(!pair.seen.logged_in() && pair.seen.stdout.is_empty());
}

fn identity(key: &PrivateKey, proven: bool) -> Identity {
    Identity {
        key: key.public().clone(),
        certificate: None,
        proven,
        hardware: false,
    }
}

/// The owner answers with this instead of a signature.
fn signed_with(signature: Bytes) -> Case {
    let mut case = Case::good();
    case.replayed = Some(signature);
    case.also(nobody_is_in)
}

/// A message cut in every place.
fn cut_anywhere(moment: Moment, whole: &Bytes) -> impl Iterator<Item = Case> {
    (1..whole.len()).map(move |len| instead(moment, whole.slice(..len)).violates(Violation::Truncated))
}

table_rows! { Login:

ext_info_before_newkeys, Time, "extensions before there are keys" =>
    Servers(|| vec![
        at(Point::Before(Moment::NewKeys, 1), Act::Packet(ext_info(0, &[])))
            .violates(Violation::UnexpectedMessage(message::EXT_INFO)),
    ]);
ext_info_twice, Harmless, "extensions a second time before the login is complete" =>
    Servers(|| vec![after(Moment::ExtInfo, ext_info(0, &[]))]);
ext_info_for_the_third_time, Flood, "extensions three times, and 100,000 times" =>
    Servers(|| vec![
        at(Point::After(Moment::ExtInfo, 1), Act::Flood { payload: ext_info(0, &[]), times: 2 })
            .violates(Violation::ExtInfoUnexpected),
        at(Point::After(Moment::ExtInfo, 1), Act::Flood { payload: ext_info(0, &[]), times: 100_000 })
            .violates(Violation::ExtInfoUnexpected),
    ]);
ext_info_after_the_login, Time, "extensions after SUCCESS" =>
    Servers(|| vec![after(Moment::AuthSuccess, ext_info(0, &[])).violates(Violation::ExtInfoUnexpected)]);
ext_info_with_too_many_entries_or_fewer_than_it_says, Length, "a million extensions, 2^32 - 1, one too few, one too many" =>
    Servers(|| vec![
        instead(Moment::ExtInfo, ext_info(1_000_000, &[])).violates(Violation::TooManyExtensions),
        instead(Moment::ExtInfo, ext_info(u32::MAX, &[])).violates(Violation::TooManyExtensions),
        instead(Moment::ExtInfo, ext_info(2, &[("a", "b")])).violates(Violation::Truncated),
        instead(Moment::ExtInfo, ext_info(0, &[("a", "b")])).violates(Violation::TrailingBytes),
    ]);
ext_info_with_unknown_names_and_empty_lists, Harmless, "extensions that nobody knows, algorithms for signatures that nobody has" =>
    Servers(|| {
        let lists: [&[(&str, &str)]; 4] = [
            &[("delay-compression", "zlib"), ("\u{1b}[31m", "x")],
            &[("server-sig-algs", "")],
            &[("server-sig-algs", "unheard-of")],
            &[("server-sig-algs", "ssh-ed25519"), ("server-sig-algs", "")],
        ];
        lists.map(|list| instead(Moment::ExtInfo, ext_info(list.len() as u32, list))).into()
    });

success_before_any_request, Time, "SUCCESS before anything was asked, and before the service was accepted" =>
    // With a signed request under way as well: nothing was accepted that the server can have seen.
    Servers(|| vec![
        after(Moment::ExtInfo, SUCCESS).unproven().violates(AuthViolation::Unasked),
        after(Moment::ExtInfo, SUCCESS).violates(AuthViolation::Unasked),
    ]);
success_during_the_key_exchange, Time, "SUCCESS before there are keys" =>
    Servers(|| vec![
        at(Point::Before(Moment::NewKeys, 1), Act::Packet(SUCCESS.into()))
            .violates(Violation::UnexpectedMessage(message::USERAUTH_SUCCESS)),
    ]);
success_twice, Order, "SUCCESS a second time, and 100,000 times" =>
    Servers(|| {
        let again = Violation::UnexpectedMessage(message::USERAUTH_SUCCESS);
        vec![
            after(Moment::AuthSuccess, SUCCESS).violates(again),
            at(Point::After(Moment::AuthSuccess, 1), Act::Flood { payload: SUCCESS.into(), times: 100_000 })
                .violates(again),
        ]
    });
success_without_proof, Forgery, "SUCCESS for a mere question: a machine that asks for no proof may be anybody's" =>
    Servers(|| vec![
        instead(Moment::PkOk, SUCCESS).unproven().violates(AuthViolation::SuccessWithoutProof),
        instead(Moment::AuthFailure, SUCCESS).unproven().client(|client| client.cautious = true)
            .violates(AuthViolation::SuccessWithoutProof),
    ]);
success_after_a_refusal, Order, "FAILURE, and SUCCESS behind it without a new request" =>
    Servers(|| vec![
        Case::new(Plan::new()
            .with(Point::Before(Moment::AuthSuccess, 1), Act::Packet(failure("publickey", false))))
            .end(End::FailsLike(|error| is_refused(error) || *error == Violation::from(AuthViolation::Unasked).into()))
            .also(|pair| assert!(pair.seen.stdout.is_empty())),
    ]);
success_with_something_in_it, Length, "SUCCESS with a byte behind it" =>
    Servers(|| vec![
        instead(Moment::AuthSuccess, &[message::USERAUTH_SUCCESS, 0][..]).violates(Violation::TrailingBytes),
    ]);

banners_without_measure, Flood, "200,000 letters; a million banners of 1,000; a million empty ones" =>
    Servers(|| {
        let flood = |payload: Bytes, times| {
            flood(Moment::PkOk, payload, times).unproven().violates(AuthViolation::BannerFlood)
        };
        vec![
            flood(banner(vec![b'x'; 200_000]), 1),
            flood(banner(vec![b'x'; 1000]), 1_000_000),
            flood(banner(""), 1_000_000),
        ]
    });
banners_with_anything_in_them, Harmless, "terminal escapes, zero bytes, bytes that are no text" =>
    Servers(|| vec![
        after(Moment::ServiceAccept, banner(b"\x1b]0;pwned\x07\xff\xfe\0 hello")).also(|pair| {
            let told = pair.seen.events.iter().find_map(|event| match event {
                Event::Banner(text) => Some(text.clone()),
                _ => None,
            });
            assert_eq!(told.unwrap(), "\x1b]0;pwned\x07\u{fffd}\u{fffd}\0 hello");
        }),
        after(Moment::ServiceAccept, banner("x".repeat(60_000))),
    ]);
a_banner_after_the_login, Time, "a banner behind SUCCESS" =>
    Servers(|| vec![
        after(Moment::AuthSuccess, banner("late"))
            .violates(Violation::UnexpectedMessage(message::USERAUTH_BANNER)),
    ]);
a_banner_that_is_cut, Length, "a banner of 2^32 - 1 bytes of which none comes" =>
    Servers(|| vec![
        after(Moment::ServiceAccept, payload(|w| drop_ref(w.byte(message::USERAUTH_BANNER).uint32(u32::MAX))))
            .violates(Violation::Truncated),
    ]);

pk_ok_for_another_key_or_algorithm, Id, "acceptance of a key that was not asked about" =>
    Servers(|| {
        let blob = USER.public().blob();
        [pk_ok("ssh-ed25519", b"another"), pk_ok("ssh-ed25519", OTHER.public().blob()), pk_ok("ssh-rsa", blob), pk_ok("", b"")]
            .map(|payload| instead(Moment::PkOk, payload).unproven().violates(AuthViolation::OtherKey))
            .into()
    });
pk_ok_that_was_not_asked_for, Time, "acceptance of a key before, behind and long after it was signed with" =>
    Servers(|| {
        let ok = || pk_ok("ssh-ed25519", USER.public().blob());
        vec![
            after(Moment::ServiceAccept, ok()).violates(AuthViolation::Unasked),
            after(Moment::PkOk, ok()).unproven().violates(AuthViolation::Unasked),
            after(Moment::AuthSuccess, ok()).violates(Violation::UnexpectedMessage(message::USERAUTH_PK_OK)),
        ]
    });
pk_ok_that_is_cut_or_too_long, Length, "an acceptance that ends in each of its fields, and one with a byte behind it" =>
    Servers(|| {
        let whole = pk_ok("ssh-ed25519", USER.public().blob());
        let longer = instead(Moment::PkOk, [&whole[..], b"x"].concat()).unproven();
        cut_anywhere(Moment::PkOk, &whole).map(Case::unproven)
            .chain([longer.violates(Violation::TrailingBytes)])
            .collect()
    });
messages_of_methods_that_were_not_asked_for, Type, "prompts and requests of passwords: nothing but keys was offered, so nothing else is answered" =>
    Servers(|| {
        let prompts = payload(|w| {
            w.byte(60).string("title").string("Password:").string("").uint32(1);
            w.string("Password: ").boolean(false);
        });
        let others = [61, 62, 63, 66, 79].map(|number| after(Moment::ServiceAccept, vec![number, 0, 0, 0, 0])
            .violates(Violation::UnexpectedMessage(number)));
        let prompt = after(Moment::ServiceAccept, prompts).violates(AuthViolation::Unasked);
        others.into_iter().chain([prompt]).collect()
    });
what_only_a_client_says, Type, "SERVICE_REQUEST and USERAUTH_REQUEST during the login" =>
    Servers(|| [message::SERVICE_REQUEST, message::USERAUTH_REQUEST]
        .map(|number| after(Moment::ServiceAccept, vec![number, 0, 0, 0, 0])
            .violates(Violation::UnexpectedMessage(number)))
        .into());
the_wrong_service_and_the_service_twice, Id, "SERVICE_ACCEPT of another service, of none, and again" =>
    Servers(|| vec![
        instead(Moment::ServiceAccept, accept("ssh-connection")).violates(AuthViolation::Service),
        instead(Moment::ServiceAccept, accept("")).violates(AuthViolation::Service),
        after(Moment::ServiceAccept, accept("ssh-userauth")).violates(AuthViolation::Service),
    ]);
a_service_that_is_cut_or_too_long, Length, "SERVICE_ACCEPT that ends in each of its fields, and one with a byte behind it" =>
    Servers(|| {
        let whole = accept("ssh-userauth");
        let longer = instead(Moment::ServiceAccept, [&whole[..], b"x"].concat());
        cut_anywhere(Moment::ServiceAccept, &whole).chain([longer.violates(Violation::TrailingBytes)]).collect()
    });
messages_of_the_connection_before_the_login, Time, "everything about channels and the whole connection before SUCCESS" =>
    Servers(|| [80, 81, 82, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100]
        .map(|number| after(Moment::ServiceAccept, vec![number, 0, 0, 0, 0])
            .violates(Violation::UnexpectedMessage(number)))
        .into());

a_refused_key, Harmless, "a server that lets nobody in: the command never ran and is told so" =>
    Servers(|| ["SSH-2.0-mux_0", "SSH-2.0-OpenSSH_9.2", "SSH-2.0-dropbear_2022.83", "SSH-2.0-Unheard_1"]
        .map(|ident| Case::good().ident(ident)
            .server(|server| server.authorized = Authorized::Nobody)
            .fails(refused(&["publickey"], false))
            .also(not_run))
        .into());
a_refused_key_that_ends_the_connection, Time, "the end of the connection over a refused key: no lost connection, and nothing ran" =>
    Servers(|| vec![
        at(Point::After(Moment::AuthFailure, 1), Act::Close)
            .ident("SSH-2.0-dropbear_2022.83")
            .server(|server| server.authorized = Authorized::Nobody)
            .end(End::FailsLike(is_refused))
            .also(not_run),
    ]);
failure_without_end, Flood, "1,000 refusals for one request" =>
    Servers(|| vec![
        flood(Moment::AuthSuccess, failure("publickey", false), 1000)
            .end(End::FailsLike(|error| is_refused(error) || matches!(error, Error::Violation(_)))),
        flood(Moment::PkOk, failure("publickey", true), 1000).unproven()
            .end(End::FailsLike(|error| is_refused(error) || matches!(error, Error::Violation(_)))),
    ]);
failure_with_too_many_methods, Flood, "1,000 methods" =>
    Servers(|| vec![
        instead(Moment::AuthSuccess, failure(&vec!["publickey"; 1000].join(","), false))
            .violates(AuthViolation::TooManyMethods),
    ]);
failure_with_names_that_are_none, Id, "methods without a name, with zero bytes, of 10,000 letters" =>
    Servers(|| {
        let bad = |methods: &str| instead(Moment::AuthSuccess, failure(methods, false)).violates(Violation::NameList);
        let long = "m".repeat(10_000);
        vec![
            bad("a,,b"),
            bad("a\0b"),
            bad("\u{1b}[31m"),
            instead(Moment::AuthSuccess, failure(&long, false)).fails(refused(&[&long[..64]], false)),
            instead(Moment::AuthSuccess, failure("", false)).fails(refused(&[], false)),
        ]
    });
failure_before_any_request, Time, "a refusal before anything was asked" =>
    Servers(|| vec![
        after(Moment::ExtInfo, failure("publickey", false)).unproven().violates(AuthViolation::Unasked),
    ]);
failure_after_the_login, Time, "a refusal behind SUCCESS" =>
    Servers(|| vec![
        after(Moment::AuthSuccess, failure("publickey", false))
            .violates(Violation::UnexpectedMessage(message::USERAUTH_FAILURE)),
    ]);
failure_that_is_cut_or_too_long, Length, "a refusal that ends in each of its fields, and one with a byte behind it" =>
    Servers(|| {
        let whole = failure("publickey", false);
        let longer = instead(Moment::AuthSuccess, [&whole[..], b"x"].concat());
        cut_anywhere(Moment::AuthSuccess, &whole).chain([longer.violates(Violation::TrailingBytes)]).collect()
    });
partial_success_is_told, Harmless, "half a login: the key is right and a password is wanted as well" =>
    Servers(|| vec![
        instead(Moment::AuthSuccess, failure("password", true)).fails(refused(&["password"], true)),
    ]);
no_answer_to_the_login, Stall, "silence where the service, the key or the login should be accepted" =>
    Servers(|| vec![
        at(Point::Before(Moment::ServiceAccept, 1), Act::Stall).unproven().end(End::Waits),
        at(Point::Before(Moment::PkOk, 1), Act::Stall).unproven().end(End::Waits),
        at(Point::Before(Moment::AuthSuccess, 1), Act::Stall).end(End::Waits),
        at(Point::Before(Moment::AuthSuccess, 1), Act::NeverRead).end(End::Waits),
    ]);
the_second_key_is_accepted, Harmless, "a refusal of the first key; a command that was sent ahead with it is sent again, once" =>
    Servers(|| [false, true].map(|proven| {
        Case::good()
            .client(|client| client.identities = vec![identity(&OTHER, proven), identity(&USER, false)])
            .also(|pair| {
                assert!(pair.seen.events.contains(&Event::KeyRefused { identity: 0 }));
                assert_eq!(pair.seen.execs(), 1);
            })
    }).into());
a_replayed_signature_is_worth_nothing, Forgery, "nothing: the owner answers with a signature that was made for another connection" =>
    Servers(|| {
        let replayed = Case::good().play().seen.signature.unwrap();
        vec![signed_with(replayed).fails(refused(&["publickey"], false))]
    });
a_signature_that_is_none, Type, "nothing: an agent answers with noise, with less, with a signature of another key" =>
    Servers(|| {
        let nonsense: [&[u8]; 4] = [b"", b"x", b"\xff\xff\xff\xff", b"\0\0\0\x07ssh-rsa\0\0\0\x01x"];
        nonsense.map(|nonsense| signed_with(Bytes::from_static(nonsense))
            .end(End::FailsLike(|error| matches!(error, Error::AuthFailed { .. })))).into()
    });
the_connection_ends_during_the_login, Time, "the end of the connection at each step of a login that went out early" =>
    Servers(|| [Moment::ServiceAccept, Moment::AuthSuccess].map(|moment| {
        at(Point::Before(moment, 1), Act::Close)
            .end(End::FailsLike(|error| is_refused(error) || *error == Error::UnexpectedEof))
            .also(|pair| {
                // Whoever says nothing may have let us in.
                let told = pair.seen.failure();
                assert!(matches!(told, Some((ChannelFailure::ConnectionLost, _))), "{told:?}");
            })
    }).into());

an_agent_channel_that_nobody_asked_for, Type, "a channel to the user's agent" =>
    Servers(|| ["auth-agent@openssh.com", "auth-agent"].map(|kind| {
        let open = payload(|w| drop_ref(
            w.byte(message::CHANNEL_OPEN).string(kind).uint32(9).uint32(1 << 20).uint32(1 << 15),
        ));
        after(Moment::AuthSuccess, open)
            .also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_OPEN_FAILURE), 1))
    }).into());
}
