//! Logins that need a person: questions without measure, questions at the wrong time, a number that means three things,
//! success that nothing was asked for, passwords that nobody may see.

use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::client::{AuthMethod, AuthViolation, Event, Field, Prompt};
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point, Proofs, Round};
use mux_ssh::{Error, Violation};

use super::Run::Servers;
use super::harness::{Case, End, Pair, USER, drop_ref, payload};
use super::table_rows;

/// A server that goes by this method alone, and a client without a key that goes by all.
fn by(method: AuthMethod, plan: Plan) -> Case {
    Case::new(plan)
        .server(|server| server.proofs = Arc::new(Proofs::any_of(&[method])))
        .client(|client| {
            client.identities.clear();
            client.methods.order = AuthMethod::ALL.to_vec();
        })
}

fn questions(plan: Plan) -> Case {
    by(AuthMethod::KeyboardInteractive, plan)
}

fn password(plan: Plan) -> Case {
    by(AuthMethod::Password, plan)
}

/// In place of the first question, or of the acceptance of a key, or of the wish for a new password.
fn instead(payload: impl Into<Bytes>) -> Plan {
    Plan::new().with(Point::Before(Moment::PkOk, 1), Act::Replace(payload.into()))
}

fn at(point: Point, payload: impl Into<Bytes>) -> Plan {
    Plan::new().with(point, Act::Packet(payload.into()))
}

/// INFO_REQUEST that says it has so many questions.
fn info(name: &[u8], instruction: &[u8], count: u32, fields: &[(&[u8], bool)]) -> Bytes {
    payload(|w| {
        w.byte(message::USERAUTH_INFO_REQUEST)
            .string(name)
            .string(instruction)
            .string("")
            .uint32(count);
        for (text, echo) in fields {
            w.string(text).boolean(*echo);
        }
    })
}

fn many(count: usize, length: usize) -> Bytes {
    let text = vec![b'x'; length];
    info(b"", b"", count as u32, &vec![(&text[..], false); count])
}

fn pk_ok() -> Bytes {
    payload(|w| {
        drop_ref(
            w.byte(message::USERAUTH_PK_OK)
                .string("ssh-ed25519")
                .string(USER.public().blob()),
        )
    })
}

fn expired(words: &str) -> Bytes {
    payload(|w| {
        drop_ref(
            w.byte(message::USERAUTH_PASSWD_CHANGEREQ)
                .string(words)
                .string(""),
        )
    })
}

fn success() -> Bytes {
    Bytes::from_static(&[message::USERAUTH_SUCCESS])
}

fn refused(methods: &[AuthMethod], partial: bool) -> Error {
    let methods = methods.iter().map(|method| method.name().to_owned()).collect();
    Error::AuthFailed { methods, partial }
}

fn prompts(pair: &Pair) -> usize {
    pair.seen.count(|event| matches!(event, Event::Prompt { .. }))
}

/// Nobody was asked, and what somebody would have said never left.
fn nobody_was_asked(pair: &mut Pair) {
    assert_eq!(prompts(pair), 0);
    assert!(!pair.seen.logged_in());
}

fn nobody_is_in(pair: &mut Pair) {
    assert!(!pair.seen.logged_in() && pair.seen.stdout.is_empty());
}

table_rows! { Login:

questions_and_passwords_that_are_right, Harmless, "questions in two rounds, a password, and a key with each of them" =>
    Servers(|| {
        use AuthMethod::{KeyboardInteractive, Password, PublicKey};
        let round = |text: &str| Round {
            fields: vec![Field { text: text.to_owned(), echo: true }; 2],
            answers: vec!["secret".to_owned(); 2],
            ..Round::default()
        };
        let two = Proofs { rounds: vec![round("a"), Round::default(), round("b")], ..Proofs::any_of(&[KeyboardInteractive]) };
        let with_key = |ways: &[AuthMethod]| questions(Plan::new())
            .client(|client| client.identities = Case::good().client.identities)
            .server(|server| server.proofs = Arc::new(Proofs::all_of(ways)));
        vec![
            questions(Plan::new()).server(|server| server.proofs = Arc::new(two)),
            password(Plan::new()),
            with_key(&[PublicKey, Password]),
            with_key(&[PublicKey, KeyboardInteractive]),
            with_key(&[Password, PublicKey]),
            with_key(&[KeyboardInteractive, Password, PublicKey]).unproven(),
        ]
    });
questions_without_number, Flood, "2^32 - 1 questions, of which none comes, and 33, which all come" =>
    Servers(|| vec![
        questions(instead(info(b"", b"", u32::MAX, &[]))).violates(AuthViolation::TooManyPrompts).also(nobody_was_asked),
        questions(instead(many(33, 1))).violates(AuthViolation::TooManyPrompts).also(nobody_was_asked),
        questions(instead(many(32, 1))).fails(refused(&[AuthMethod::KeyboardInteractive], false))
            .also(|pair| assert_eq!(prompts(pair), 1)),
    ]);
questions_without_measure, Length, "200,000 letters as a question, as a title, as an instruction, and in 32 questions together" =>
    Servers(|| {
        let long = vec![b'x'; 200_000];
        [
            info(b"", b"", 1, &[(&long, false)]),
            info(&long, b"", 1, &[(b"?", false)]),
            info(b"", &long, 0, &[]),
            many(32, 6_000),
            many(1, 16 * 1024 + 1),
        ].map(|payload| questions(instead(payload)).violates(AuthViolation::TooManyPrompts).also(nobody_was_asked)).into()
    });
questions_that_are_cut_or_too_long, Length, "questions that end in each of their fields, one too few, and a byte behind them" =>
    Servers(|| {
        let whole = info(b"n", b"i", 2, &[(b"a", false), (b"b", true)]);
        let cut = (1..whole.len()).map(|len| whole.slice(..len)).chain([info(b"", b"", 3, &[(b"a", false), (b"b", true)])]);
        let cut = cut.map(|payload| questions(instead(payload)).violates(Violation::Truncated).also(nobody_was_asked));
        let longer = instead([&whole[..], b"x"].concat());
        cut.chain([questions(longer).violates(Violation::TrailingBytes).also(nobody_was_asked)]).collect()
    });
rounds_without_a_question_in_a_loop, Flood, "a million rounds with nothing to answer, in one write and one after the other" =>
    Servers(|| {
        let empty = info(b"", b"", 0, &[]);
        let flood = Plan::new().with(Point::Before(Moment::PkOk, 1), Act::Flood { payload: empty, times: 1_000_000 });
        let rounds = Proofs { rounds: vec![Round::default(); 1000], ..Proofs::any_of(&[AuthMethod::KeyboardInteractive]) };
        vec![
            // The second of them comes before the first was answered.
            questions(flood).end(End::FailsLike(|error| [
                Error::from(Violation::from(AuthViolation::PromptFlood)),
                Error::from(Violation::from(AuthViolation::Unasked)),
            ].contains(error))),
            questions(Plan::new()).server(|server| server.proofs = Arc::new(rounds)).violates(AuthViolation::PromptFlood)
                .also(nobody_was_asked),
        ]
    });
rounds_with_a_question_in_a_loop, Flood, "a thousand rounds with a question each" =>
    Servers(|| {
        let rounds = vec![Proofs::default().rounds.remove(0); 1000];
        let proofs = Proofs { rounds, ..Proofs::any_of(&[AuthMethod::KeyboardInteractive]) };
        vec![
            questions(Plan::new()).server(|server| server.proofs = Arc::new(proofs)).violates(AuthViolation::PromptFlood)
                .also(|pair| assert_eq!(prompts(pair), 32)),
        ]
    });
questions_with_anything_in_them, Harmless, "terminal escapes, zero bytes, bytes that are no text, answers that may be seen" =>
    Servers(|| vec![
        questions(instead(info(b"\x1b]0;t\x07", b"\xff\n\n\n", 1, &[(b"\x1b[2J\0Code: ", true)])))
            .also(|pair| {
                let expected = Prompt::Interactive {
                    name: "\x1b]0;t\x07".to_owned(),
                    instruction: "\u{fffd}\n\n\n".to_owned(),
                    fields: vec![Field { text: "\x1b[2J\0Code: ".to_owned(), echo: true }],
                };
                let told = pair.seen.events.iter().any(|event| matches!(event, Event::Prompt { prompt, .. } if *prompt == expected));
                assert!(told, "{:?}", pair.seen.events);
            }),
    ]);
a_number_that_means_what_its_method_says, Type, "questions for a key and for a password, a key for questions, an expired password for both" =>
    Servers(|| {
        let key = |payload: Bytes| Case::new(instead(payload)).unproven();
        let one = || info(b"", b"", 1, &[(b"?", false)]);
        let expiring = |plan| password(plan).server(|server| {
            server.proofs = Arc::new(Proofs { expired: true, ..Proofs::any_of(&[AuthMethod::Password]) });
        });
        vec![
            key(one()).violates(Violation::TrailingBytes).also(nobody_was_asked),
            key(expired("x")).violates(AuthViolation::OtherKey).also(nobody_was_asked),
            questions(instead(pk_ok())).violates(Violation::Truncated).also(nobody_was_asked),
            questions(instead(expired("x"))).violates(Violation::Truncated).also(nobody_was_asked),
            expiring(instead(one())).violates(Violation::TrailingBytes).also(nobody_is_in),
            expiring(instead(pk_ok())).fails(refused(&[AuthMethod::Password], false)).also(nobody_is_in),
        ]
    });
questions_that_were_not_asked_for, Time, "questions before a request, behind a signature, behind a question, behind a password, after the login" =>
    Servers(|| {
        let one = || info(b"", b"", 1, &[(b"?", false)]);
        vec![
            questions(at(Point::After(Moment::ServiceAccept, 1), one())).violates(AuthViolation::Unasked).also(nobody_was_asked),
            Case::new(at(Point::After(Moment::ServiceAccept, 1), one())).violates(AuthViolation::Unasked)
                .also(|pair| assert_eq!(prompts(pair), 0)),
            questions(at(Point::After(Moment::PkOk, 1), one())).violates(AuthViolation::Unasked).also(nobody_is_in),
            password(at(Point::Before(Moment::AuthSuccess, 1), one())).violates(Violation::TrailingBytes),
            questions(at(Point::After(Moment::AuthSuccess, 1), one()))
                .violates(Violation::UnexpectedMessage(message::USERAUTH_INFO_REQUEST)),
        ]
    });
success_while_somebody_is_asked, Time, "SUCCESS behind a question, before it was answered" =>
    Servers(|| vec![
        questions(at(Point::After(Moment::PkOk, 1), success())).violates(AuthViolation::Unasked).also(nobody_is_in),
        // FAILURE names the methods, a password is asked for, and nothing was sent that could have succeeded.
        password(at(Point::After(Moment::AuthFailure, 1), success())).violates(AuthViolation::Unasked).also(nobody_is_in),
    ]);
success_for_questions_that_were_never_asked, Forgery, "SUCCESS without a question, and behind rounds that had none" =>
    Servers(|| {
        let no_rounds = Proofs { rounds: vec![Round::default(); 2], ..Proofs::any_of(&[AuthMethod::KeyboardInteractive]) };
        vec![
            questions(instead(success())).violates(AuthViolation::SuccessWithoutProof).also(nobody_was_asked),
            questions(Plan::new()).server(|server| server.proofs = Arc::new(no_rounds))
                .violates(AuthViolation::SuccessWithoutProof),
        ]
    });
a_refusal_while_somebody_is_asked, Order, "FAILURE behind a question, before it was answered" =>
    Servers(|| {
        let failure = payload(|w| drop_ref(w.byte(message::USERAUTH_FAILURE).string("password").boolean(false)));
        vec![questions(at(Point::After(Moment::PkOk, 1), failure)).violates(AuthViolation::Unasked).also(nobody_is_in)]
    });
wrong_answers, Harmless, "refusals of what somebody said: questions come once, passwords as often as allowed, and then it is over" =>
    Servers(|| {
        let wrong = |mut case: Case| {
            case.answer = Some("wrong");
            case
        };
        let many = |tries| password(Plan::new()).client(move |client| client.methods.passwords = tries);
        vec![
            wrong(questions(Plan::new())).fails(refused(&[AuthMethod::KeyboardInteractive], false))
                .also(|pair| assert_eq!(prompts(pair), 1)),
            wrong(many(3)).fails(refused(&[AuthMethod::Password], false)).also(|pair| assert_eq!(prompts(pair), 3)),
            // MaxAuthTries of the server is six.
            wrong(many(1000)).fails(refused(&[AuthMethod::Password], false)).also(|pair| assert_eq!(prompts(pair), 6)),
        ]
    });
nobody_to_ask, Harmless, "nothing: the owner has no answers, and the login ends without them" =>
    Servers(|| [questions(Plan::new()), password(Plan::new())].map(|mut case| {
        case.answer = None;
        case.end(End::FailsLike(|error| matches!(error, Error::AuthFailed { partial: false, .. })))
            .also(|pair| {
                assert_eq!(prompts(pair), 1);
                nobody_is_in(pair);
            })
    }).into());
an_expired_password, Id, "the wish for a new password: it is said, and never answered" =>
    Servers(|| vec![
        password(Plan::new())
            .server(|server| server.proofs = Arc::new(Proofs { expired: true, ..Proofs::any_of(&[AuthMethod::Password]) }))
            .fails(refused(&[AuthMethod::Password], false))
            .also(|pair| {
                let words = "Your password has expired.".to_owned();
                assert!(pair.seen.events.contains(&Event::PasswordExpired { words }));
                assert_eq!(prompts(pair), 1);
            }),
    ]);
halves_of_a_login_without_end, Flood, "twenty passwords in a row, each of them right and none of them enough" =>
    Servers(|| vec![
        password(Plan::new())
            .server(|server| server.proofs = Arc::new(Proofs::all_of(&[AuthMethod::Password; 20])))
            .violates(AuthViolation::EndlessLogin),
    ]);
nothing_is_asked_of_anybody_before_the_host_key_was_accepted, Forgery, "nothing: a host whose key nobody accepts gets no password" =>
    Servers(|| [questions(Plan::new()), password(Plan::new())].map(|mut case| {
        case.trust = false;
        case.fails(Error::HostKeyRejected).also(|pair| {
            nobody_was_asked(pair);
            let events = &pair.seen.server_events;
            assert!(events.iter().all(|event| matches!(event, mux_ssh::server::Event::Disconnected { .. })), "{events:?}");
        })
    }).into());
no_question_and_no_answer_to_one, Stall, "silence where a question should come, and where an answer or a password should be judged" =>
    Servers(|| {
        let stall = |moment| Plan::new().with(Point::Before(moment, 1), Act::Stall);
        vec![
            questions(stall(Moment::PkOk)).end(End::Waits).also(nobody_was_asked),
            questions(stall(Moment::AuthSuccess)).end(End::Waits),
            password(stall(Moment::AuthSuccess)).end(End::Waits),
        ]
    });
the_end_of_the_connection_behind_an_answer, Time, "the end of the connection in place of a judgement: the login failed, and nothing ran" =>
    Servers(|| [questions, password].map(|by| {
        by(Plan::new().with(Point::Before(Moment::AuthSuccess, 1), Act::Close))
            .end(End::FailsLike(|error| matches!(error, Error::AuthFailed { .. })))
            .also(|pair| {
                assert_eq!(prompts(pair), 1);
                assert_eq!(pair.seen.failure().map(|(_, may_have_run)| may_have_run), Some(false));
            })
    }).into());
}
