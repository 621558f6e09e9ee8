//! Agents: answers of the wrong kind, length and number. A table of bytes that are answered to one question.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};
use mux_ssh::agent::{AgentClient, AgentError, AgentEvent, AgentIdentity, AgentRequest, AgentViolation};
use mux_ssh::algorithms::SignatureAlgorithm;
use mux_ssh::keys::Certificate;
use mux_ssh::server::Draft;
use mux_ssh::wire::Writer;

use super::Run::Alone;
use super::harness::{OTHER, USER, drop_ref, payload};
use super::table_rows;

/// What is asked before the agent answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Nothing,
    Identities,
    Sign,
    Bind,
}

const REQUEST: AgentRequest = AgentRequest::Sign(SignatureAlgorithm::Ed25519);

/// A frame with its length.
fn frame(fill: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let inside = payload(fill);
    payload(|w| drop_ref(w.string(inside)))
}

fn number(number: u8) -> Bytes {
    frame(|w| drop_ref(w.byte(number)))
}

fn asked(ask: Ask) -> AgentClient {
    let mut client = AgentClient::new();
    match ask {
        Ask::Nothing => {}
        Ask::Identities => client.request_identities(),
        Ask::Sign => client.sign(USER.public().blob(), SignatureAlgorithm::Ed25519, b"data"),
        Ask::Bind => client.bind_session(USER.public().blob(), b"session", b"signature"),
    }
    client.poll_transmit(Instant::now(), &mut SendQueue::new());
    client
}

fn hear(client: &mut AgentClient, answer: &[u8]) -> Result<(), AgentError> {
    let mut input = BytesMut::new();
    // In pieces, as a socket may give it.
    for piece in answer.chunks(1000) {
        input.extend_from_slice(piece);
        loop {
            let before = input.len();
            client.handle_input(Instant::now(), &mut input)?;
            if input.len() == before || !client.wants_input() {
                break;
            }
        }
    }
    Ok(())
}

/// The conversation is over with this, and stays so.
#[track_caller]
fn violates(ask: Ask, answer: &[u8], violation: AgentViolation) {
    let mut client = asked(ask);
    let error = AgentError::Violation(violation);
    assert_eq!(hear(&mut client, answer), Err(error));
    assert_eq!(hear(&mut client, &number(5)), Err(error), "errors are sticky");
    client.request_identities();
    let mut out = SendQueue::new();
    client.poll_transmit(Instant::now(), &mut out);
    assert!(out.is_empty(), "nothing more is asked");
}

#[track_caller]
fn answers(ask: Ask, answer: &[u8], event: &AgentEvent) {
    let mut client = asked(ask);
    assert_eq!(hear(&mut client, answer), Ok(()));
    assert_eq!(client.poll_event().as_ref(), Some(event));
    assert!(client.is_idle());
}

fn key_blob(len: usize) -> Bytes {
    payload(|w| drop_ref(w.string("ssh-ed25519").string(vec![7; len])))
}

table_rows! { Agent:

an_agent_s_frames_of_impossible_length, Length, "a frame of no byte, of 256 KiB and one, of 4 GiB" =>
    Alone(|| {
        for length in [0, 256 * 1024 + 1, u32::MAX] {
            violates(Ask::Sign, &length.to_be_bytes(), AgentViolation::FrameLength(length));
        }
    });
an_agent_s_frame_that_does_not_come, Stall, "a frame of 256 KiB of which one byte comes: nothing is kept ready for it" =>
    Alone(|| {
        let mut client = asked(Ask::Sign);
        let mut input = BytesMut::from(&[0, 4, 0, 0, 12][..]);
        assert_eq!(client.handle_input(Instant::now(), &mut input), Ok(()));
        assert!(input.capacity() < 1024, "{}", input.capacity());
        assert_eq!(client.poll_event(), None);
    });
an_agent_that_hangs_up, Stall, "the end of the conversation while an answer is owed" =>
    Alone(|| {
        let mut client = asked(Ask::Sign);
        assert_eq!(client.handle_eof(Instant::now()), Err(AgentError::UnexpectedEof));
        let mut client = asked(Ask::Nothing);
        assert_eq!(client.handle_eof(Instant::now()), Ok(()));
        assert_eq!(client.poll_close(), Some(Close::Both));
    });
an_agent_s_answer_to_another_question, Type, "SUCCESS, keys and signatures where something else was asked" =>
    Alone(|| {
        let signature = frame(|w| drop_ref(w.byte(14).string(payload(|w| drop_ref(w.string("ssh-ed25519").string([1; 64]))))));
        let identities = frame(|w| drop_ref(w.byte(12).uint32(0)));
        for (ask, answer, given) in [
            (Ask::Sign, number(6), 6),
            (Ask::Identities, number(6), 6),
            (Ask::Sign, identities.clone(), 12),
            (Ask::Bind, identities, 12),
            (Ask::Identities, signature.clone(), 14),
            (Ask::Bind, signature, 14),
            (Ask::Sign, number(0), 0),
            (Ask::Sign, number(11), 11),
            (Ask::Sign, number(255), 255),
        ] {
            violates(ask, &answer, AgentViolation::UnexpectedAnswer(given));
        }
    });
an_agent_s_answer_without_a_question, Order, "an answer to nothing, and a second one" =>
    Alone(|| {
        violates(Ask::Nothing, &number(6), AgentViolation::Unasked);
        violates(Ask::Sign, &[number(5), number(5)].concat(), AgentViolation::Unasked);
    });
an_agent_s_answers_without_end, Flood, "100,000 refusals behind the one that is owed" =>
    Alone(|| violates(Ask::Bind, &number(5).repeat(100_000), AgentViolation::Unasked));
an_agent_with_too_many_keys, Flood, "a million keys, 2^32 - 1, and one more than is accepted" =>
    Alone(|| {
        for count in [1_000_000, u32::MAX, 2049] {
            let answer = frame(|w| drop_ref(w.byte(12).uint32(count)));
            violates(Ask::Identities, &answer, AgentViolation::TooManyIdentities(count));
        }
    });
an_agent_s_answer_that_is_cut_or_too_long, Length, "fewer keys than it says, a key of 4 GiB, bytes left over, no field at all" =>
    Alone(|| {
        let cut: [fn(&mut Writer<'_>); 4] = [
            |w| drop_ref(w.byte(12)),
            |w| drop_ref(w.byte(12).uint32(2048)),
            |w| drop_ref(w.byte(12).uint32(1).uint32(u32::MAX)),
            |w| drop_ref(w.byte(12).uint32(1).string(b"x")),
        ];
        for fill in cut {
            violates(Ask::Identities, &frame(fill), AgentViolation::Truncated);
        }
        violates(Ask::Sign, &frame(|w| drop_ref(w.byte(14).uint32(5))), AgentViolation::Truncated);
        violates(Ask::Identities, &frame(|w| drop_ref(w.byte(12).uint32(0).byte(0))), AgentViolation::TrailingBytes);
    });
an_agent_s_keys_that_can_not_be_used, Id, "keys of 0, 31 and 33 bytes, of a token, of no type: they are counted and passed over" =>
    Alone(|| {
        let answer = frame(|w| {
            w.byte(12).uint32(5);
            w.string(key_blob(0)).string("");
            w.string(key_blob(31)).string("cut");
            w.string(key_blob(33)).string([0xff, 0x1b]);
            w.string(payload(|w| drop_ref(w.string("sk-ssh-ed25519@openssh.com")))).string("token");
            w.string("").string("");
        });
        let expected = AgentEvent::Identities { identities: Vec::new(), skipped: 5 };
        answers(Ask::Identities, &answer, &expected);
    });
an_agent_s_certificates_that_can_not_be_used, Id, "certificates cut, forged, of no kind among good ones: passed over" =>
    Alone(|| {
        let sign = |draft: &Draft| draft.sign(USER.public(), &OTHER, SignatureAlgorithm::Ed25519).unwrap();
        let of_user = Draft { kind: 1, ..Draft::of_host(&["me"]) };
        let good = sign(&of_user);
        let mut forged = good.to_vec();
        *forged.last_mut().unwrap() ^= 1;
        let answer = frame(|w| {
            w.byte(12).uint32(5);
            w.string(&good[..good.len() - 1]).string("cut");
            w.string(&forged).string("forged");
            w.string(sign(&Draft { kind: 7, ..of_user })).string("of no kind");
            w.string(&good).string("good");
            w.string(payload(|w| drop_ref(w.string("ssh-dss-cert-v01@openssh.com")))).string("old");
        });
        let good = AgentIdentity {
            key: USER.public().clone(),
            certificate: Some(Arc::new(Certificate::parse(&good).unwrap())),
            comment: "good".to_owned(),
        };
        let expected = AgentEvent::Identities { identities: vec![good], skipped: 4 };
        answers(Ask::Identities, &answer, &expected);
    });
a_security_key_s_signature_of_the_wrong_length, Length, "without flags and counter, with a byte less, with a byte more" =>
    Alone(|| {
        let algorithm = SignatureAlgorithm::SkEd25519;
        for added in [0, 4, 5, 6] {
            let blob = payload(|w| drop_ref(w.string(algorithm.name()).string([1; 64]).raw(&vec![1; added])));
            let mut client = AgentClient::new();
            client.sign(&key_blob(32), algorithm, b"data");
            client.poll_transmit(Instant::now(), &mut SendQueue::new());
            assert_eq!(hear(&mut client, &frame(|w| drop_ref(w.byte(14).string(&blob)))), Ok(()));
            let expected = match added {
                5 => AgentEvent::Signature(blob),
                _ => AgentEvent::Refused(AgentRequest::Sign(algorithm)),
            };
            assert_eq!(client.poll_event(), Some(expected), "{added}");
        }
    });
an_agent_s_signature_of_another_kind, Type, "a signature by SHA-1, by nothing, cut, with a byte behind it: as good as a refusal" =>
    Alone(|| {
        let named = |name: &str| payload(|w| drop_ref(w.string(name).string([1; 64])));
        let longer = Bytes::from([&named("ssh-ed25519")[..], &[0]].concat());
        for blob in [named("ssh-rsa"), named(""), Bytes::new(), Bytes::from_static(&[0; 3]), longer] {
            let answer = frame(|w| drop_ref(w.byte(14).string(&blob)));
            answers(Ask::Sign, &answer, &AgentEvent::Refused(REQUEST));
        }
    });
an_agent_that_refuses, Harmless, "FAILURE for any question" =>
    Alone(|| {
        for refusal in [5, 28] {
            answers(Ask::Sign, &number(refusal), &AgentEvent::Refused(REQUEST));
            answers(Ask::Bind, &number(refusal), &AgentEvent::Refused(AgentRequest::BindSession));
            answers(Ask::Identities, &number(refusal), &AgentEvent::Refused(AgentRequest::Identities));
        }
    });
}
