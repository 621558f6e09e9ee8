//! What a server must not do before the login is complete.

use super::pair::*;
use crate::client::{AuthViolation, ClientConfig, Event};
use crate::message::*;
use crate::{Error, Violation};

/// A login whose query (`proven` false) or signed request is out.
fn asked(proven: bool) -> Pair {
    let user = keys(1);
    let mut config = config(&user);
    config.identities = vec![user[0].identity(proven)];
    let mut pair = Pair::new(UNKNOWN, config, user);
    pair.until_auth();
    pair
}

fn check(mut pair: Pair, violation: impl Into<Violation>, write: impl FnOnce(&mut crate::wire::Writer<'_>)) {
    pair.say(write);
    pair.assert_violation(violation);
    assert!(!pair.told(&Event::Authenticated { identity: Some(0) }));
}

#[test]
fn success_before_any_request() {
    let mut pair = Pair::simple(UNKNOWN);
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    // The service was asked for; the signature is not there yet.
    check(pair, AuthViolation::Unasked, |to| {
        to.byte(USERAUTH_SUCCESS);
    });
}

#[test]
fn success_for_a_mere_question() {
    check(asked(false), AuthViolation::SuccessWithoutProof, |to| {
        to.byte(USERAUTH_SUCCESS);
    });
}

#[test]
fn success_for_none_unless_it_is_accepted() {
    let none = |accept_none| {
        let config = ClientConfig {
            accept_none,
            ..config(&[])
        };
        let mut pair = Pair::new(UNKNOWN, config, Vec::new());
        pair.until_auth();
        pair
    };
    check(none(false), AuthViolation::SuccessWithoutProof, |to| {
        to.byte(USERAUTH_SUCCESS);
    });
    let mut pair = none(true);
    pair.success();
    assert!(pair.told(&Event::Authenticated { identity: None }));
}

#[test]
fn success_twice() {
    let mut pair = asked(true);
    pair.success();
    pair.assert_healthy();
    pair.success();
    pair.assert_violation(Violation::UnexpectedMessage(USERAUTH_SUCCESS));
}

#[test]
fn failure_without_a_request_and_twice() {
    let mut pair = Pair::simple(UNKNOWN);
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, true);
    check(pair, AuthViolation::Unasked, |to| {
        to.byte(USERAUTH_FAILURE).string("publickey").boolean(false);
    });
}

#[test]
fn acceptance_of_another_key_or_algorithm() {
    let own = UserKey::new(1).public;
    let other = UserKey::new(9).public;
    check(asked(false), AuthViolation::OtherKey, |to| {
        to.byte(USERAUTH_PK_OK).string("ssh-ed25519").string(other.blob());
    });
    check(asked(false), AuthViolation::OtherKey, |to| {
        to.byte(USERAUTH_PK_OK).string("rsa-sha2-512").string(own.blob());
    });
}

#[test]
fn acceptance_of_a_key_that_was_not_asked_about() {
    let own = UserKey::new(1).public;
    check(asked(true), AuthViolation::Unasked, |to| {
        to.byte(USERAUTH_PK_OK).string("ssh-ed25519").string(own.blob());
    });
}

#[test]
fn message_60_as_a_prompt_of_another_method() {
    // keyboard-interactive's INFO_REQUEST with 2^32 − 1 prompts: not a question about our key.
    check(asked(false), Violation::TrailingBytes, |to| {
        to.byte(USERAUTH_PK_OK)
            .string("name")
            .string("instruction")
            .string("")
            .uint32(u32::MAX);
    });
    check(asked(false), Violation::Truncated, |to| {
        to.byte(USERAUTH_PK_OK).uint32(u32::MAX);
    });
}

#[test]
fn the_service_unasked_twice_or_another() {
    let mut pair = asked(true);
    pair.accept_service();
    pair.assert_healthy();
    pair.accept_service();
    pair.assert_violation(AuthViolation::Service);
    check(asked(true), AuthViolation::Service, |to| {
        to.byte(SERVICE_ACCEPT).string("ssh-connection");
    });
}

#[test]
fn everything_of_the_connection_before_the_login() {
    for number in [
        GLOBAL_REQUEST,
        REQUEST_SUCCESS,
        CHANNEL_OPEN,
        CHANNEL_OPEN_CONFIRMATION,
        CHANNEL_DATA,
        CHANNEL_CLOSE,
        CHANNEL_REQUEST,
        CHANNEL_SUCCESS,
    ] {
        check(asked(true), Violation::UnexpectedMessage(number), |to| {
            to.byte(number).uint32(0);
        });
    }
}

#[test]
fn requests_that_only_a_client_makes() {
    for number in [SERVICE_REQUEST, USERAUTH_REQUEST, 61, 79] {
        check(asked(true), Violation::UnexpectedMessage(number), |to| {
            to.byte(number).string("x");
        });
    }
}

#[test]
fn banners_are_told_and_bounded() {
    let mut pair = asked(true);
    pair.say(|to| {
        to.byte(USERAUTH_BANNER).string(b"\x1b[2J\xff").string("");
    });
    assert!(pair.told(&Event::Banner("\u{1b}[2J\u{fffd}".to_owned())));
    for _ in 0..63 {
        pair.say(|to| {
            to.byte(USERAUTH_BANNER).string("").string("");
        });
    }
    pair.assert_healthy();
    pair.say(|to| {
        to.byte(USERAUTH_BANNER).string("").string("");
    });
    pair.assert_violation(AuthViolation::BannerFlood);
    let large = vec![b'x'; 64 * 1024 + 1];
    check(asked(true), AuthViolation::BannerFlood, |to| {
        to.byte(USERAUTH_BANNER).string(&large).string("");
    });
}

#[test]
fn a_banner_after_the_login() {
    let mut pair = asked(true);
    pair.success();
    pair.say(|to| {
        to.byte(USERAUTH_BANNER).string("x").string("");
    });
    pair.assert_violation(Violation::UnexpectedMessage(USERAUTH_BANNER));
}

#[test]
fn more_methods_than_there_are() {
    let many = vec!["publickey"; 33].join(",");
    check(asked(true), AuthViolation::TooManyMethods, |to| {
        to.byte(USERAUTH_FAILURE).string(&many).boolean(false);
    });
    check(asked(true), Violation::NameList, |to| {
        to.byte(USERAUTH_FAILURE).string("publickey,,x").boolean(false);
    });
}

#[test]
fn messages_that_end_early_or_late() {
    check(asked(true), Violation::Truncated, |to| {
        to.byte(USERAUTH_FAILURE).uint32(u32::MAX);
    });
    check(asked(true), Violation::TrailingBytes, |to| {
        to.byte(USERAUTH_SUCCESS).byte(0);
    });
}

#[test]
fn the_first_error_is_the_last_and_nothing_more_is_read() {
    use mux_proto::Protocol as _;
    let mut pair = asked(false);
    pair.success();
    let error = pair.error.clone().unwrap();
    let mut input = bytes::BytesMut::from(&b"anything"[..]);
    assert_eq!(pair.client.handle_input(pair.now, &mut input), Err(error.clone()));
    assert_eq!(input.len(), 8);
    assert_eq!(pair.client.handle_eof(pair.now), Err(error.clone()));
    assert_eq!(pair.client.handle_timeout(pair.now), Err(error));
    assert_eq!(pair.client.poll_close(), Some(mux_proto::Close::Both));
}

#[test]
fn an_error_that_an_answer_caused_is_told_before_the_link_may_close() {
    use mux_proto::Protocol as _;
    let mut pair = Pair::simple(UNKNOWN);
    pair.answers = false;
    pair.run();
    let question = pair.question();
    pair.client.answer_host_key(question, false);
    assert_eq!(pair.client.poll_close(), None);
    assert_eq!(pair.client.poll_timeout(), Some(pair.now));
    assert_eq!(pair.client.handle_timeout(pair.now), Err(Error::HostKeyRejected));
    assert_eq!(pair.client.poll_close(), Some(mux_proto::Close::Both));
    assert_eq!(pair.client.poll_timeout(), None);
}
