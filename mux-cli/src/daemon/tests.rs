//! Values survive the way to the other process and back, whatever way they are cut; anything else is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mux_ssh::Secret;
use mux_ssh::algorithms::{KeyType, SignatureAlgorithm};
use mux_ssh::client::{AuthMethod, Field, Identity, Prompt, QuestionId, SessionBinding};
use mux_ssh::keys::{CertificateError, KeyBlobError, PublicKey};
use mux_ssh::transport::ServerMemory;

use super::codec::{Malformed, Value, decode, encode};
use super::message::{Down, Messages, Order, Terms, Up};
use crate::hub::{
    Action, Answer, Event, Failure, Family, Judgement, KeyId, Level, Likeness, MissingStatus, Offer, Outcome,
    Prepared, Reason, Request, RequestId, Route, Source, SshOptions, Stage, Status, StreamKind, Ticket,
    Timings, Transport, Wish,
};

fn key() -> PublicKey {
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    PublicKey::parse_line(line).unwrap().key
}

const TICKET: Ticket = Ticket {
    request: RequestId(7),
    attempt: 3,
};

/// What has been written is what is read; and no part of it is anything.
fn check<T: Value + Debug>(value: &T) {
    let bytes = encode(value);
    let back: T = decode(&bytes).unwrap_or_else(|Malformed| unreadable(value));
    assert_eq!(format!("{back:?}"), format!("{value:?}"));
    for end in 0..bytes.len() {
        assert_eq!(
            decode::<T>(bytes.get(..end).unwrap()).err(),
            Some(Malformed),
            "{end} bytes of {value:?}"
        );
    }
    let more = [&*bytes, &[0]].concat();
    assert_eq!(
        decode::<T>(&more).err(),
        Some(Malformed),
        "a byte behind {value:?}"
    );
}

#[expect(clippy::panic, reason = "a test fails by panicking")]
fn unreadable<T: Debug>(value: &impl Debug) -> T {
    panic!("{value:?} can't be read back")
}

fn request() -> Request {
    Request {
        id: RequestId(9),
        host: "web1".to_owned(),
        address: "192.0.2.1".to_owned(),
        port: 2222,
        user: "ops".to_owned(),
        transport: Transport::Ssh(Arc::default()),
        route: Route::Direct,
        command: Bytes::from_static(b"\xff\0 x"),
        env: vec![(Bytes::from_static(b"A"), Bytes::from_static(b"1"))],
        env_by_habit: vec![(Bytes::from_static(b"LANG"), Bytes::new())],
        stdin: true,
        retries: 2,
        missing_status: MissingStatus::Ok,
        connect_timeout: Duration::from_millis(1500),
        login_timeout: Duration::from_secs(60),
        command_timeout: Some(Duration::MAX),
        like: Some(Likeness {
            digest: [5; 32],
            agent: Some("/run/agent".into()),
        }),
    }
}

#[test]
fn requests_arrive_whole() {
    let options = SshOptions {
        family: Family::V6,
        source: Some(Source {
            line: "line 3".to_owned(),
            addresses: vec!["[::1]:0".parse().unwrap(), "10.0.0.1:0".parse().unwrap()],
        }),
        left_out: vec![(AuthMethod::Password, "off".to_owned())],
        forward_agent: Some("/run/agent".into()),
        further_host_keys: true,
        ..SshOptions::default()
    };
    check(&Up::Common(options, Bytes::from_static(b"ls")));
    check(&Up::Submit(Order::of(&request())));
    let back: Order = decode(&encode(&Order::of(&request()))).unwrap();
    let back = back.into_request(Arc::default(), request().command);
    assert_eq!(format!("{back:?}"), format!("{:?}", request()));
    check(&Up::Consume(RequestId(1), StreamKind::Stderr, usize::MAX));
    check(&Up::Cancel(RequestId(1), Reason::TimedOut));
    check(&Up::CancelAll(Reason::Interrupted));
    check(&Up::Hold);
    check(&Terms {
        fanout: 64,
        expected: 10_000,
        fresh: true,
    });
}

#[test]
fn questions_arrive_whole() {
    let question = QuestionId::from_number(4);
    let binding = SessionBinding {
        session_id: Bytes::from_static(b"id"),
        host_key: Bytes::from_static(b"key"),
        signature: Bytes::from_static(b"signature"),
    };
    let judge = |certificate| Action::JudgeHostKey {
        question,
        key: key(),
        certificate,
        types: KeyType::ALL.to_vec(),
        local: true,
    };
    for action in [
        Action::Prepare,
        Action::Resolve {
            host: "web1".to_owned(),
            port: 22,
        },
        judge(None),
        judge(Some(Err(CertificateError::Authority(KeyBlobError::RsaModulus {
            bits: 512,
        })))),
        judge(Some(Err(CertificateError::SignatureAlgorithm(
            "ssh-rsa".to_owned(),
        )))),
        Action::LookAtHostKeys { keys: vec![key()] },
        Action::KeepHostKeys { keys: Vec::new() },
        Action::Sign {
            question,
            key: KeyId(2),
            algorithm: SignatureAlgorithm::RsaSha2_512,
            data: Bytes::from_static(b"data"),
            binding,
        },
        Action::Prompt {
            question,
            prompt: Prompt::Password { refused: 1 },
        },
        Action::Prompt {
            question,
            prompt: Prompt::Interactive {
                name: "n".to_owned(),
                instruction: String::new(),
                fields: vec![Field {
                    text: "code?".to_owned(),
                    echo: true,
                }],
            },
        },
        Action::SigningOver,
        Action::Remember(ServerMemory::default()),
        Action::RememberKey(KeyId(1)),
        Action::ForgetKey(KeyId(1)),
        Action::OtherWay,
        Action::Feed(Wish {
            position: u64::MAX,
            room: 5,
            may_restart: true,
        }),
        Action::FeedOver {
            taken: 5,
            whole: false,
        },
    ] {
        check(&Down::Action(TICKET, action));
    }
}

#[test]
fn answers_arrive_whole() {
    let question = QuestionId::from_number(4);
    let offer = Offer {
        identity: Identity {
            proven: true,
            ..Identity::of(key())
        },
        key: KeyId(3),
        label: "~/.ssh/id".into(),
    };
    for answer in [
        Answer::Prepared(Prepared {
            keys: vec![offer],
            known_host_key_types: vec![KeyType::Rsa],
            known_authority: true,
            memory: Some(ServerMemory::default()),
            skipped: vec!["id_rsa: encrypted".to_owned()],
        }),
        Answer::Resolved(Ok(vec!["192.0.2.1:22".parse().unwrap()])),
        Answer::Resolved(Err("no such name".to_owned())),
        Answer::HostKey {
            question,
            judgement: Judgement::AskForOthers(vec![KeyType::Ed25519]),
        },
        Answer::HostKey {
            question,
            judgement: Judgement::Refuse("changed".to_owned()),
        },
        Answer::ProveHostKeys(vec![key()]),
        Answer::Signed {
            question,
            signature: Ok(Bytes::from_static(b"s")),
        },
        Answer::Signed {
            question,
            signature: Err("no touch".to_owned()),
        },
        Answer::Prompted {
            question,
            answers: Ok(vec![Secret::from("hunter2".to_owned())]),
        },
        Answer::OtherWay(None),
        Answer::Fed(Bytes::new()),
        Answer::Asking(true),
    ] {
        check(&Up::Answer(TICKET, answer));
    }
}

#[test]
fn secrets_arrive_and_are_not_shown() {
    let answer = Up::Answer(
        TICKET,
        Answer::Prompted {
            question: QuestionId::default(),
            answers: Ok(vec![Secret::from("hunter2".to_owned())]),
        },
    );
    assert!(!format!("{answer:?}").contains("hunter2"));
    let secret: Secret = decode(&encode(&Secret::from("hunter2".to_owned()))).unwrap();
    assert_eq!(secret.expose(), b"hunter2");
}

#[test]
fn what_happened_arrives_whole() {
    let request = RequestId(3);
    let failure = Failure::new(Stage::Kex, "no common cipher")
        .at_hop("gate")
        .in_general("none");
    let outcome = Outcome {
        status: Status::Failed,
        rc: Some(-1),
        signal: Some("KILL".to_owned()),
        error: Some(failure),
        timings: Timings {
            dns: Some(Duration::from_nanos(1)),
            ..Timings::default()
        },
        attempts: 2,
        retries: 1,
    };
    for event in [
        Event::Stage {
            request,
            stage: Stage::Command,
        },
        Event::Output {
            request,
            stream: StreamKind::Stdout,
            data: Bytes::from_static(b"\0\xff"),
        },
        Event::ViaOpenSsh {
            request,
            reason: "why".to_owned(),
        },
        Event::EnvRefused {
            request,
            name: "A".to_owned(),
        },
        Event::Finished { request, outcome },
        Event::Notice {
            request: None,
            level: Level::Verbose,
            text: "word".to_owned(),
        },
    ] {
        check(&Down::Event(event));
    }
    check(&Down::Idle(5, vec![RequestId(1), RequestId(2)]));
    check(&Down::Waits(true));
}

#[test]
fn messages_come_out_whole_however_they_are_cut() {
    let said = [Down::Waits(true), Down::Idle(7, Vec::new()), Down::Waits(false)];
    let mut stream = Vec::new();
    for message in &said {
        let body = encode(message);
        stream.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        stream.extend(body);
    }
    for size in 1..=stream.len() {
        let mut messages = Messages::default();
        let mut heard = Vec::new();
        for piece in stream.chunks(size) {
            messages.take_in(&Bytes::copy_from_slice(piece));
            while let Some(message) = messages.next::<Down>().unwrap() {
                heard.push(message);
            }
        }
        assert_eq!(
            format!("{heard:?}"),
            format!("{said:?}"),
            "{size} bytes at a time"
        );
    }
}

#[test]
fn a_length_beyond_all_messages_is_refused_before_anything_is_waited_for() {
    let mut messages = Messages::default();
    messages.take_in(&Bytes::from_static(&[1, 0, 0, 1]));
    assert_eq!(messages.next::<Down>().err(), Some(Malformed));
}

#[test]
fn a_list_that_claims_to_be_long_reserves_nothing_for_it() {
    // An array of 2^60 items, and none of them.
    let claim = [0x9b, 0x10, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(decode::<Vec<String>>(&claim), Err(Malformed));
    // 10^9 nanoseconds.
    assert_eq!(
        decode::<Duration>(&[0x82, 0x00, 0x1a, 0x3b, 0x9a, 0xca, 0x00]),
        Err(Malformed)
    );
}
