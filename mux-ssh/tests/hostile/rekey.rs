//! New keys at any time, from either side.

use std::time::Duration;

use mux_ssh::client::Stdin;
use mux_ssh::message;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{Act, Moment, Plan, Point};
use mux_ssh::transport::RekeyLimits;
use mux_ssh::{Error, Violation};

use crate::harness::{Case, Reply};

/// New keys after this many bytes, in either direction.
fn every(bytes: u64) -> RekeyLimits {
    RekeyLimits {
        bytes,
        ..RekeyLimits::default()
    }
}

fn bulk(server: RekeyLimits, client: RekeyLimits) {
    let len = 600_000;
    let case = Case::good().reply(Reply::Bulk(len)).kex("curve25519-sha256");
    let seen = case
        .server(|config| config.rekey = server)
        .client(|config| config.rekey = client)
        .run();
    assert_eq!((seen.error, seen.server_error), (None, None));
    assert_eq!(seen.stdout.len() as u64, len);
}

/// Lines 2 and 14: the marker of strict key exchange is absent in all but the first, and that is right.
#[test]
fn the_server_rekeys_during_output() {
    for bytes in [1024, 10_000, 100_000] {
        bulk(every(bytes), RekeyLimits::default());
    }
}

/// Lines 14 and 15.
#[test]
fn the_client_rekeys_during_output() {
    for bytes in [1024, 10_000, 100_000] {
        bulk(RekeyLimits::default(), every(bytes));
    }
}

/// Line 14.
#[test]
fn both_rekey_at_once() {
    for bytes in [1024, 10_000] {
        bulk(every(bytes), every(bytes));
    }
}

/// Line 14: after every few packets, so in the login, in front of the channel and behind the command.
#[test]
fn the_server_rekeys_at_every_point_of_the_session() {
    for packets in 1..20 {
        let case = Case::good().kex("curve25519-sha256");
        let seen = case.server(|config| config.rekey.packets = packets).run();
        seen.assert_worked();
    }
}

/// Line 14.
#[test]
fn the_client_rekeys_at_every_point_of_the_session() {
    for packets in 1..20 {
        let case = Case::good().kex("curve25519-sha256");
        let seen = case.client(|config| config.rekey.packets = packets).run();
        seen.assert_worked();
    }
}

/// Lines 14 and 15: a large write is cut in two by the key exchange, and the server, which is strict about it, has
/// nothing to complain of.
#[test]
fn input_is_held_back_during_a_key_exchange() {
    let mut case = Case::good()
        .reply(Reply::Cat)
        .kex("curve25519-sha256")
        .client(|config| config.rekey = every(20_000))
        .server(|config| config.rekey = every(30_000));
    case.stdin = Stdin::Open;
    let mut pair = case.start();
    let mut left = 500_000;
    while left > 0 {
        let len = pair.client.stdin_room(pair.channel).min(left);
        assert!(len > 0);
        pair.client
            .write_stdin(pair.channel, vec![b'x'; len].into())
            .unwrap();
        left -= len;
        pair.settle();
    }
    pair.client.finish_stdin(pair.channel);
    pair.settle();
    pair.check_invariants();
    assert_eq!(
        (pair.seen.error.clone(), pair.seen.server_error.clone()),
        (None, None)
    );
    assert_eq!(pair.seen.stdout.len(), 500_000);
}

/// Line 12.
#[test]
fn another_host_key_on_rekey() {
    let other = Seed::generate().unwrap().host_key().unwrap();
    let mut pair = Case::good()
        .reply(Reply::Nothing)
        .server(|config| config.rekey_host_keys = Some([other].into()))
        .start();
    pair.settle();
    assert_eq!(pair.seen.error, None);
    pair.server.start_rekey(pair.now);
    pair.settle();
    pair.check_invariants();
    assert_eq!(pair.seen.error, Some(Violation::HostKeyChanged.into()));
}

fn during_rekey(plan: Plan) -> Option<Error> {
    let mut pair = Case::new(plan).reply(Reply::Nothing).start();
    pair.settle();
    pair.server.start_rekey(pair.now);
    pair.settle();
    pair.check_invariants();
    pair.seen.error.clone()
}

/// Line 15, from the other side.
#[test]
fn packets_of_services_between_kexinit_and_newkeys_of_a_rekey() {
    for number in [
        message::SERVICE_ACCEPT,
        message::EXT_INFO,
        message::GLOBAL_REQUEST,
        message::CHANNEL_DATA,
    ] {
        let packet = Act::Packet(vec![number, 0, 0, 0, 0].into());
        let error = during_rekey(Plan::new().with(Point::After(Moment::KexInit, 2), packet));
        assert_eq!(error, Some(Violation::UnexpectedMessage(number).into()));
    }
}

#[test]
fn a_forged_proof_on_rekey() {
    let forge = Act::Patch { from_end: 3, mask: 1 };
    let error = during_rekey(Plan::new().with(Point::Before(Moment::KexReply, 2), forge));
    assert_eq!(error, Some(Violation::Signature.into()));
}

/// Line 1, at the second key exchange: the sequence starts again at every NEWKEYS, and what is cut out is missed.
#[test]
fn a_lost_packet_behind_the_newkeys_of_a_rekey() {
    let plan = Plan::new().with(Point::Before(Moment::Other, 1), Act::Lose);
    let mut pair = Case::new(plan).reply(Reply::Nothing).start();
    pair.settle();
    pair.server.start_rekey(pair.now);
    pair.settle();
    assert_eq!(pair.seen.error, None);
    for _ in 0..2 {
        pair.server.send_packet(&[message::IGNORE, 0, 0, 0, 0]);
    }
    pair.settle();
    pair.check_invariants();
    assert_eq!(pair.seen.error, Some(Violation::Tag.into()));
}

/// A server that begins a key exchange and does not finish it leaves the client mute: that has an end too.
#[test]
fn a_rekey_without_end() {
    let plan = Plan::new().with(Point::After(Moment::KexInit, 2), Act::Stall);
    let mut pair = Case::new(plan).reply(Reply::Nothing).start();
    pair.settle();
    pair.server.start_rekey(pair.now);
    pair.settle();
    assert_eq!(pair.seen.error, None);
    pair.pass(Duration::from_secs(600));
    pair.check_invariants();
    assert!(
        matches!(pair.seen.error, Some(Error::RekeyTimeout | Error::Silent)),
        "{:?}",
        pair.seen.error
    );
}

/// A server that goes silent in the middle of a command is noticed by the keepalive.
#[test]
fn silence_in_the_middle_of_a_command() {
    let plan = Plan::new().with(Point::After(Moment::ChannelSuccess, 1), Act::Stall);
    let mut pair = Case::new(plan).reply(Reply::Nothing).start();
    pair.settle();
    assert_eq!(pair.seen.error, None);
    for _ in 0..20 {
        pair.pass(Duration::from_secs(15));
    }
    pair.check_invariants();
    assert_eq!(pair.seen.error, Some(Error::Silent));
}
