//! The agent protocol against hostile agents.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};

use super::*;
use crate::algorithms::SignatureAlgorithm;
use crate::keys::PublicKey;
use crate::wire::{Reader, Writer};

fn written(fill: impl for<'b, 'w> FnOnce(&'b mut Writer<'w>) -> &'b mut Writer<'w>) -> Vec<u8> {
    let mut out = BytesMut::new();
    fill(&mut Writer::new(&mut out));
    out.to_vec()
}

/// A frame with its length.
fn frame(fill: impl for<'b, 'w> FnOnce(&'b mut Writer<'w>) -> &'b mut Writer<'w>) -> Vec<u8> {
    written(|writer| {
        writer.string_of(|inner| {
            fill(inner);
        })
    })
}

fn key() -> PublicKey {
    PublicKey::parse(&written(|w| w.string("ssh-ed25519").string([7; 32]))).unwrap()
}

fn signature(name: &str) -> Vec<u8> {
    written(|w| w.string(name).string([1; 64]))
}

/// A client and the bytes that it has sent.
struct Talk {
    client: AgentClient,
    now: Instant,
    input: BytesMut,
}

impl Talk {
    fn asking(ask: impl FnOnce(&mut AgentClient)) -> Self {
        let mut talk = Self {
            client: AgentClient::new(),
            now: Instant::now(),
            input: BytesMut::new(),
        };
        ask(&mut talk.client);
        talk
    }

    /// The next question: its number and what follows.
    fn sent(&mut self) -> Option<Vec<u8>> {
        let mut out = SendQueue::new();
        self.client.poll_transmit(self.now, &mut out);
        let bytes = out.take(usize::MAX);
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        assert_eq!(usize::try_from(u32::from_be_bytes(*length)).unwrap(), rest.len());
        Some(rest.to_vec())
    }

    fn answer(&mut self, bytes: &[u8]) -> Result<(), AgentError> {
        self.input.extend_from_slice(bytes);
        loop {
            let before = self.input.len();
            self.client.handle_input(self.now, &mut self.input)?;
            if self.input.len() == before || !self.client.wants_input() {
                return Ok(());
            }
        }
    }
}

fn sign(client: &mut AgentClient) {
    client.sign(key().blob(), SignatureAlgorithm::Ed25519, b"data");
}

/// What one answer to one question leads to.
fn check(ask: impl FnOnce(&mut AgentClient), answer: &[u8], expected: Result<AgentEvent, AgentError>) {
    let mut talk = Talk::asking(ask);
    assert!(talk.sent().is_some());
    let result = talk.answer(answer);
    match expected {
        Ok(event) => {
            assert_eq!(result, Ok(()));
            assert_eq!(talk.client.poll_event(), Some(event));
            assert!(talk.client.is_idle());
        }
        Err(error) => {
            assert_eq!(result, Err(error));
            // It stays that way, and nothing more is sent.
            assert_eq!(talk.answer(&frame(|w| w.byte(5))), Err(error));
            talk.client.request_identities();
            assert_eq!(talk.sent(), None);
        }
    }
    assert_eq!(talk.client.poll_event(), None);
}

fn violation(violation: AgentViolation) -> Result<AgentEvent, AgentError> {
    Err(AgentError::Violation(violation))
}

#[test]
fn questions_are_encoded_as_the_protocol_says_and_asked_one_at_a_time() {
    let rsa_flags = |algorithm| {
        let mut talk = Talk::asking(|client| client.sign(key().blob(), algorithm, b"data"));
        let sent = talk.sent().unwrap();
        let mut reader = Reader::new(&sent);
        assert_eq!(reader.byte(), Ok(13));
        assert_eq!(reader.string(), Ok(key().blob()));
        assert_eq!(reader.string(), Ok(&b"data"[..]));
        let flags = reader.uint32().unwrap();
        assert_eq!(reader.finish(), Ok(()));
        flags
    };
    assert_eq!(rsa_flags(SignatureAlgorithm::Ed25519), 0);
    assert_eq!(rsa_flags(SignatureAlgorithm::RsaSha2_256), 2);
    assert_eq!(rsa_flags(SignatureAlgorithm::RsaSha2_512), 4);

    let mut talk = Talk::asking(|client| {
        client.bind_session(key().blob(), b"session", b"signature");
        client.request_identities();
    });
    let expected = written(|w| {
        w.byte(27)
            .string("session-bind@openssh.com")
            .string(key().blob())
            .string("session");
        w.string("signature").boolean(false)
    });
    assert_eq!(talk.sent(), Some(expected));
    assert_eq!(talk.sent(), None);
    talk.answer(&frame(|w| w.byte(6))).unwrap();
    assert_eq!(talk.client.poll_event(), Some(AgentEvent::Bound));
    assert_eq!(talk.sent(), Some(vec![11]));
}

#[test]
fn identities_that_cannot_be_used_are_counted() {
    let answer = frame(|w| {
        w.byte(12).uint32(4);
        w.string(key().blob()).string("mine");
        w.string(written(|w| w.string("ssh-ed25519").string([7; 31])))
            .string("truncated");
        w.string(written(|w| w.string("sk-ssh-ed25519@openssh.com")))
            .string("token");
        w.string("").string([0xff])
    });
    let identities = vec![AgentIdentity {
        key: key(),
        certificate: None,
        comment: "mine".to_owned(),
    }];
    let expected = AgentEvent::Identities {
        identities,
        skipped: 3,
    };
    check(AgentClient::request_identities, &answer, Ok(expected));
    let none = AgentEvent::Identities {
        identities: Vec::new(),
        skipped: 0,
    };
    check(
        AgentClient::request_identities,
        &frame(|w| w.byte(12).uint32(0)),
        Ok(none),
    );
}

#[test]
fn signatures_must_be_of_the_algorithm_that_was_asked_for() {
    let answer = |blob: &[u8]| frame(|w| w.byte(14).string(blob));
    let good = signature("ssh-ed25519");
    check(
        sign,
        &answer(&good),
        Ok(AgentEvent::Signature(Bytes::from(good.clone()))),
    );
    let refused = Ok(AgentEvent::Refused(AgentRequest::Sign(
        SignatureAlgorithm::Ed25519,
    )));
    for bad in [
        signature("ssh-rsa"),
        Vec::new(),
        vec![0; 3],
        [good.as_slice(), &[0]].concat(),
    ] {
        check(sign, &answer(&bad), refused.clone());
    }
    // An old agent that ignores the flags.
    let rsa = |client: &mut AgentClient| client.sign(key().blob(), SignatureAlgorithm::RsaSha2_512, b"data");
    let refused = Ok(AgentEvent::Refused(AgentRequest::Sign(
        SignatureAlgorithm::RsaSha2_512,
    )));
    check(rsa, &answer(&signature("ssh-rsa")), refused);
}

#[test]
fn a_refusal_answers_any_question() {
    for number in [5, 28] {
        let failure = frame(|w| w.byte(number));
        check(
            AgentClient::request_identities,
            &failure,
            Ok(AgentEvent::Refused(AgentRequest::Identities)),
        );
        check(
            sign,
            &failure,
            Ok(AgentEvent::Refused(AgentRequest::Sign(
                SignatureAlgorithm::Ed25519,
            ))),
        );
        let bind = |client: &mut AgentClient| client.bind_session(key().blob(), b"", b"");
        check(bind, &failure, Ok(AgentEvent::Refused(AgentRequest::BindSession)));
    }
}

#[test]
fn an_answer_to_another_question_ends_the_conversation() {
    let success = frame(|w| w.byte(6));
    check(sign, &success, violation(AgentViolation::UnexpectedAnswer(6)));
    check(
        AgentClient::request_identities,
        &success,
        violation(AgentViolation::UnexpectedAnswer(6)),
    );
    let identities = frame(|w| w.byte(12).uint32(0));
    check(sign, &identities, violation(AgentViolation::UnexpectedAnswer(12)));
    let signature = frame(|w| w.byte(14).string(signature("ssh-ed25519")));
    check(
        AgentClient::request_identities,
        &signature,
        violation(AgentViolation::UnexpectedAnswer(14)),
    );
    check(
        sign,
        &frame(|w| w.byte(99)),
        violation(AgentViolation::UnexpectedAnswer(99)),
    );
}

#[test]
fn an_answer_without_a_question_is_refused() {
    let mut talk = Talk::asking(|_| {});
    let error = talk.answer(&frame(|w| w.byte(6))).unwrap_err();
    assert_eq!(error, AgentError::Violation(AgentViolation::Unasked));
    // A question that waits to be sent has no answer yet either.
    let mut talk = Talk::asking(sign);
    let error = talk.answer(&frame(|w| w.byte(5))).unwrap_err();
    assert_eq!(error, AgentError::Violation(AgentViolation::Unasked));
}

#[test]
fn frames_of_impossible_length_are_refused_before_they_are_awaited() {
    for length in [0, 256 * 1024 + 1, u32::MAX] {
        check(
            sign,
            &length.to_be_bytes(),
            violation(AgentViolation::FrameLength(length)),
        );
    }
}

#[test]
fn a_frame_that_was_announced_costs_nothing_until_it_comes() {
    let mut talk = Talk::asking(sign);
    talk.sent();
    talk.answer(&(256_u32 * 1024).to_be_bytes()).unwrap();
    talk.answer(&[12]).unwrap();
    assert!(talk.input.capacity() < 1024, "{}", talk.input.capacity());
    assert_eq!(talk.client.poll_event(), None);
}

#[test]
fn answers_that_lie_about_their_content_are_refused() {
    let ask = AgentClient::request_identities;
    check(ask, &frame(|w| w.byte(12)), violation(AgentViolation::Truncated));
    let many = frame(|w| w.byte(12).uint32(1_000_000));
    check(
        ask,
        &many,
        violation(AgentViolation::TooManyIdentities(1_000_000)),
    );
    check(
        ask,
        &frame(|w| w.byte(12).uint32(2048)),
        violation(AgentViolation::Truncated),
    );
    let long = frame(|w| w.byte(12).uint32(1).uint32(u32::MAX));
    check(ask, &long, violation(AgentViolation::Truncated));
    let more = frame(|w| w.byte(12).uint32(0).byte(0));
    check(ask, &more, violation(AgentViolation::TrailingBytes));
    check(
        sign,
        &frame(|w| w.byte(14).uint32(5)),
        violation(AgentViolation::Truncated),
    );
}

#[test]
fn an_answer_may_arrive_byte_by_byte() {
    let mut talk = Talk::asking(sign);
    talk.sent();
    let blob = signature("ssh-ed25519");
    for byte in frame(|w| w.byte(14).string(&blob)) {
        assert_eq!(talk.client.poll_event(), None);
        talk.answer(&[byte]).unwrap();
    }
    assert_eq!(
        talk.client.poll_event(),
        Some(AgentEvent::Signature(Bytes::from(blob)))
    );
}

#[test]
fn hanging_up_is_an_error_only_while_an_answer_is_owed() {
    let mut talk = Talk::asking(sign);
    assert_eq!(talk.client.handle_eof(talk.now), Err(AgentError::UnexpectedEof));
    let mut talk = Talk::asking(|_| {});
    assert_eq!(talk.client.handle_eof(talk.now), Ok(()));
    assert_eq!(talk.client.poll_close(), Some(Close::Both));
    let mut talk = Talk::asking(sign);
    talk.client.close();
    assert_eq!(talk.sent(), None);
    assert_eq!(talk.client.poll_close(), Some(Close::Both));
}
