//! Answers of the owner that take their time, are wrong, or come from elsewhere, while the server goes on.

use bytes::Bytes;
use mux_ssh::Error;
use mux_ssh::client::{Event, Identity};
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::harness::{Case, OTHER, Reply, USER, fails, payload};

/// A person looks at the host key for a minute: nothing is said, nothing more is read, and then all goes on.
#[test]
fn the_host_key_is_accepted_late() {
    let mut case = Case::good();
    case.prompt = false;
    let mut pair = case.start();
    pair.settle();
    assert!(!pair.seen.logged_in() && pair.seen.stdout.is_empty());
    assert!(!mux_proto::Protocol::wants_input(&pair.client));
    while pair.answer() {
        pair.settle();
    }
    pair.check_invariants();
    pair.seen.assert_worked();
}

/// Line 14: the server wants new keys while an agent is asked for a signature.
#[test]
fn the_server_rekeys_while_a_signature_is_made() {
    let mut case = Case::good();
    case.prompt = false;
    let mut pair = case.start();
    pair.settle();
    assert!(pair.answer(), "the host key is asked about first");
    pair.settle();
    for _ in 0..3 {
        pair.server.start_rekey(pair.now);
        pair.settle();
    }
    assert!(pair.answer(), "the signature is still wanted");
    pair.settle();
    pair.check_invariants();
    pair.seen.assert_worked();
}

/// Line 22: a signature that was made for another connection.
#[test]
fn a_replayed_signature_is_worth_nothing() {
    let replayed = Case::good().run().signature;
    assert!(replayed.is_some());
    let mut case = Case::good();
    case.replayed = replayed;
    let expected = Error::AuthFailed {
        methods: vec!["publickey".to_owned()],
        partial: false,
    };
    let seen = fails(case, expected);
    assert!(!seen.logged_in());
}

/// An agent that answers with something else than a signature.
#[test]
fn a_signature_that_is_none() {
    for nonsense in [
        &b""[..],
        b"x",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x07ssh-rsa\0\0\0\x01x",
    ] {
        let mut case = Case::good();
        case.replayed = Some(Bytes::from_static(nonsense));
        let seen = case.run();
        assert!(
            matches!(seen.error, Some(Error::AuthFailed { .. })),
            "{:?}",
            seen.error
        );
        assert!(!seen.logged_in());
    }
}

/// The second key opens the door of the same connection on a server that survives a refusal, and the command, which
/// had been sent ahead, is sent again.
#[test]
fn the_second_key_is_accepted() {
    for proven in [false, true] {
        let case = Case::good().client(|client| {
            let identity = |key: &mux_ssh::keys::PrivateKey, proven| Identity {
                key: key.public().clone(),
                proven,
                hardware: false,
            };
            client.identities = vec![identity(&OTHER, proven), identity(&USER, false)];
        });
        let seen = case.run();
        seen.assert_worked();
        assert!(seen.events.contains(&Event::KeyRefused { identity: 0 }));
        let execs = seen
            .server_events
            .iter()
            .filter(|event| matches!(event, mux_ssh::server::Event::Exec { .. }));
        assert_eq!(execs.count(), 1);
    }
}

/// Answers of UNIMPLEMENTED to sequence numbers that were never sent, before and after the login.
#[test]
fn unimplemented_for_anything() {
    for sequence in [0, 1, 5, 1000, u32::MAX] {
        let packet = payload(|w| {
            w.byte(message::UNIMPLEMENTED).uint32(sequence);
        });
        for moment in [
            Moment::ServiceAccept,
            Moment::AuthSuccess,
            Moment::ChannelSuccess,
            Moment::Output,
        ] {
            let plan = Plan::new().with(Point::After(moment, 1), Act::Packet(packet.clone()));
            let seen = Case::new(plan).run();
            let execs = seen
                .server_events
                .iter()
                .filter(|event| matches!(event, mux_ssh::server::Event::Exec { .. }));
            assert!(execs.count() <= 1, "a command ran twice");
            // It may be told as not run only if it did not run.
            let not_run = seen.events.iter().any(|event| {
                matches!(
                    event,
                    Event::ChannelFailed {
                        may_have_run: false,
                        ..
                    }
                )
            });
            assert!(!not_run || seen.stdout.is_empty(), "{sequence} after {moment:?}");
        }
    }
}

/// New keys over and over while nothing else happens.
#[test]
fn rekeys_without_end() {
    let mut pair = Case::good()
        .kex("curve25519-sha256")
        .reply(Reply::Nothing)
        .start();
    pair.settle();
    for _ in 0..300 {
        pair.server.start_rekey(pair.now);
        pair.settle();
    }
    pair.check_invariants();
    assert_eq!(
        (pair.seen.error.clone(), pair.seen.server_error.clone()),
        (None, None)
    );
}
