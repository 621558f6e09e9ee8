//! The login: who speaks when, what a banner may be, keys that are refused.

use bytes::Bytes;
use mux_ssh::client::{AuthViolation, Event};
use mux_ssh::message;
use mux_ssh::server::{self, Act, Authorized, Moment, Plan, Point};
use mux_ssh::{Error, Violation};

use crate::harness::{Case, Seen, USER, drop_ref, fails, payload, violates, works};

fn after(moment: Moment, payload: impl Into<Bytes>) -> Plan {
    Plan::new().with(Point::After(moment, 1), Act::Packet(payload.into()))
}

fn instead(moment: Moment, payload: impl Into<Bytes>) -> Plan {
    Plan::new().with(Point::Before(moment, 1), Act::Replace(payload.into()))
}

const SUCCESS: &[u8] = &[message::USERAUTH_SUCCESS];

fn banner(text: impl AsRef<[u8]>) -> Bytes {
    payload(|w| drop_ref(w.byte(message::USERAUTH_BANNER).string(text).string("")))
}

fn ext_info(count: u32, entries: &[(&str, &str)]) -> Bytes {
    payload(|w| {
        w.byte(message::EXT_INFO).uint32(count);
        for (name, value) in entries {
            w.string(name).string(value);
        }
    })
}

/// Line 13.
#[test]
fn ext_info_before_newkeys() {
    let plan = Plan::new().with(Point::Before(Moment::NewKeys, 1), Act::Packet(ext_info(0, &[])));
    violates(plan, Violation::UnexpectedMessage(message::EXT_INFO));
}

/// Line 13.
#[test]
fn ext_info_for_the_third_time() {
    let again = Act::Packet(ext_info(0, &[]));
    let second = Plan::new().with(Point::After(Moment::ExtInfo, 1), again.clone());
    works(second.clone());
    violates(
        second.with(Point::After(Moment::ExtInfo, 1), again),
        Violation::ExtInfoUnexpected,
    );
}

/// Line 13.
#[test]
fn ext_info_after_the_login() {
    violates(
        after(Moment::AuthSuccess, ext_info(0, &[])),
        Violation::ExtInfoUnexpected,
    );
}

/// Line 13.
#[test]
fn ext_info_with_too_many_entries_or_fewer_than_it_says() {
    violates(
        instead(Moment::ExtInfo, ext_info(1_000_000, &[])),
        Violation::TooManyExtensions,
    );
    violates(
        instead(Moment::ExtInfo, ext_info(u32::MAX, &[])),
        Violation::TooManyExtensions,
    );
    violates(
        instead(Moment::ExtInfo, ext_info(2, &[("a", "b")])),
        Violation::Truncated,
    );
    violates(
        instead(Moment::ExtInfo, ext_info(0, &[("a", "b")])),
        Violation::TrailingBytes,
    );
}

/// Line 13.
#[test]
fn ext_info_with_unknown_names_and_empty_lists() {
    works(instead(
        Moment::ExtInfo,
        ext_info(2, &[("delay-compression", "zlib"), ("\u{1b}[31m", "x")]),
    ));
    works(instead(Moment::ExtInfo, ext_info(1, &[("server-sig-algs", "")])));
    works(instead(
        Moment::ExtInfo,
        ext_info(1, &[("server-sig-algs", "unheard-of")]),
    ));
}

/// Line 18.
#[test]
fn success_before_any_request() {
    let case = Case::new(after(Moment::ExtInfo, SUCCESS)).unproven();
    fails(case, Violation::from(AuthViolation::Unasked));
}

/// Line 18: even with a signed request under way, nothing was accepted that the server can have seen.
#[test]
fn success_before_the_service_was_accepted() {
    fails(
        Case::new(after(Moment::ExtInfo, SUCCESS)),
        Violation::from(AuthViolation::Unasked),
    );
}

/// Line 18.
#[test]
fn success_during_the_key_exchange() {
    let plan = Plan::new().with(Point::Before(Moment::NewKeys, 1), Act::Packet(SUCCESS.into()));
    violates(plan, Violation::UnexpectedMessage(message::USERAUTH_SUCCESS));
}

/// Line 18.
#[test]
fn success_twice() {
    violates(
        after(Moment::AuthSuccess, SUCCESS),
        Violation::UnexpectedMessage(message::USERAUTH_SUCCESS),
    );
}

/// Line 18: a server that asks for no proof could show us a machine of its own choosing.
#[test]
fn success_without_proof() {
    let rogue = |case: Case| {
        let case = case.unproven();
        fails(case, Violation::from(AuthViolation::SuccessWithoutProof));
    };
    rogue(Case::new(instead(Moment::PkOk, SUCCESS)));
    rogue(Case::new(instead(Moment::AuthFailure, SUCCESS)).client(|client| client.cautious = true));
}

/// Line 19.
#[test]
fn banners_without_measure() {
    let flood = |payload: Bytes, times: u32| {
        let plan = Plan::new().with(Point::Before(Moment::PkOk, 1), Act::Flood { payload, times });
        let case = Case::new(plan.with(Point::Before(Moment::PkOk, 1), Act::Drop)).unproven();
        fails(case, Violation::from(AuthViolation::BannerFlood));
    };
    flood(banner(vec![b'x'; 200_000]), 1);
    flood(banner(vec![b'x'; 1000]), 1_000_000);
    flood(banner(""), 1_000_000);
}

/// Line 19.
#[test]
fn banners_with_anything_in_them() {
    let seen = works(after(
        Moment::ServiceAccept,
        banner(b"\x1b]0;pwned\x07\xff\xfe\0 hello"),
    ));
    let told = seen.events.iter().find_map(|event| match event {
        Event::Banner(text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(told.unwrap(), "\x1b]0;pwned\x07\u{fffd}\u{fffd}\0 hello");
}

/// Line 19.
#[test]
fn a_banner_after_the_login() {
    violates(
        after(Moment::AuthSuccess, banner("late")),
        Violation::UnexpectedMessage(message::USERAUTH_BANNER),
    );
}

fn pk_ok(algorithm: &str, blob: &[u8]) -> Bytes {
    payload(|w| drop_ref(w.byte(message::USERAUTH_PK_OK).string(algorithm).string(blob)))
}

/// Line 20.
#[test]
fn pk_ok_for_another_key_or_algorithm() {
    let check = |payload: Bytes| {
        let case = Case::new(instead(Moment::PkOk, payload)).unproven();
        fails(case, Violation::from(AuthViolation::OtherKey));
    };
    check(pk_ok("ssh-ed25519", b"another"));
    check(pk_ok("ssh-rsa", USER.public().blob()));
    check(pk_ok("", b""));
}

/// Line 20.
#[test]
fn pk_ok_that_was_not_asked_for() {
    let plan = after(Moment::ServiceAccept, pk_ok("ssh-ed25519", USER.public().blob()));
    violates(plan, AuthViolation::Unasked);
}

/// Line 21: nothing but public keys is asked for, so nothing else can be answered.
#[test]
fn messages_of_methods_that_were_not_asked_for() {
    for number in [61, 63, 66, 79] {
        let plan = after(Moment::ServiceAccept, vec![number, 0, 0, 0, 0]);
        violates(plan, Violation::UnexpectedMessage(number));
    }
}

/// Line 18.
#[test]
fn the_wrong_service_and_the_service_twice() {
    let accept = |name: &str| payload(|w| drop_ref(w.byte(message::SERVICE_ACCEPT).string(name)));
    violates(
        instead(Moment::ServiceAccept, accept("ssh-connection")),
        AuthViolation::Service,
    );
    violates(
        after(Moment::ServiceAccept, accept("ssh-userauth")),
        AuthViolation::Service,
    );
}

/// Channels before there is a login.
#[test]
fn messages_of_the_connection_before_the_login() {
    for number in [80, 90, 91, 92, 93, 94, 96, 97, 98, 99] {
        let plan = after(Moment::ServiceAccept, vec![number, 0, 0, 0, 0]);
        violates(plan, Violation::UnexpectedMessage(number));
    }
}

/// Line 12, in front of a server that then refuses everybody: the command never ran and is told so.
#[test]
fn a_refused_key() {
    for ident in [
        "SSH-2.0-mux_0",
        "SSH-2.0-OpenSSH_9.2",
        "SSH-2.0-dropbear_2022.83",
        "SSH-2.0-Unheard_1",
    ] {
        let case = Case::good().server(|server| {
            server.authorized = Authorized::Nobody;
            server.ident = ident.to_owned();
        });
        let seen = case.run();
        let expected = Error::AuthFailed {
            methods: vec!["publickey".to_owned()],
            partial: false,
        };
        assert_eq!(seen.error, Some(expected), "{ident}");
        assert_not_run(&seen);
    }
}

/// A server that ends the connection over a refused key: no lost connection, and nothing ran.
#[test]
fn a_refused_key_that_ends_the_connection() {
    let plan = Plan::new().with(Point::After(Moment::AuthFailure, 1), Act::Close);
    let case = Case::new(plan).server(|server| {
        server.authorized = Authorized::Nobody;
        server.ident = "SSH-2.0-dropbear_2022.83".to_owned();
    });
    let seen = case.run();
    let told = matches!(
        seen.error,
        Some(Error::EarlyAuthRefused { .. } | Error::AuthFailed { .. })
    );
    assert!(told, "{:?}", seen.error);
    assert_not_run(&seen);
}

fn assert_not_run(seen: &Seen) {
    assert!(
        !seen
            .server_events
            .iter()
            .any(|event| matches!(event, server::Event::Exec { .. }))
    );
    let failed = seen.events.iter().find_map(|event| match event {
        Event::ChannelFailed { may_have_run, .. } => Some(*may_have_run),
        _ => None,
    });
    assert_eq!(
        failed,
        Some(false),
        "the command can be given to another connection"
    );
}

#[test]
fn failure_without_end() {
    let failure = payload(|w| {
        drop_ref(
            w.byte(message::USERAUTH_FAILURE)
                .string("publickey")
                .boolean(false),
        )
    });
    let flood = Act::Flood {
        payload: failure,
        times: 1000,
    };
    let plan = Plan::new().with(Point::Before(Moment::AuthSuccess, 1), flood);
    let seen = Case::new(plan.with(Point::Before(Moment::AuthSuccess, 1), Act::Drop)).run();
    assert!(
        matches!(
            seen.error,
            Some(Error::AuthFailed { .. } | Error::EarlyAuthRefused { .. } | Error::Violation(_))
        ),
        "{:?}",
        seen.error
    );
}

#[test]
fn failure_with_too_many_methods() {
    let names = vec!["publickey"; 1000].join(",");
    let failure = payload(|w| drop_ref(w.byte(message::USERAUTH_FAILURE).string(&names).boolean(false)));
    violates(
        instead(Moment::AuthSuccess, failure),
        AuthViolation::TooManyMethods,
    );
}

/// Half a login.
#[test]
fn partial_success_is_told() {
    let failure = payload(|w| drop_ref(w.byte(message::USERAUTH_FAILURE).string("password").boolean(true)));
    let seen = Case::new(instead(Moment::AuthSuccess, failure)).run();
    let expected = Error::AuthFailed {
        methods: vec!["password".to_owned()],
        partial: true,
    };
    assert_eq!(seen.error, Some(expected));
}

/// Line 24: nobody reaches the agent.
#[test]
fn an_agent_channel_that_nobody_asked_for() {
    let open = payload(|w| {
        w.byte(message::CHANNEL_OPEN)
            .string("auth-agent@openssh.com")
            .uint32(9)
            .uint32(1 << 20)
            .uint32(1 << 15);
    });
    let seen = works(after(Moment::AuthSuccess, open));
    assert_eq!(seen.answers(message::CHANNEL_OPEN_FAILURE), 1);
}
