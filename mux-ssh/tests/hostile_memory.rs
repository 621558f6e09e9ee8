//! What a server can make a client hold. One test after the other in one function, for the allocator counts for the
//! whole process; what the cryptographic library allocates by itself is not seen.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    dead_code,
    reason = "a test fails by panicking; the harness has more than is used here"
)]

#[path = "hostile/harness.rs"]
mod harness;

use bytes::{Bytes, BytesMut};
use cap::Cap;
use mux_proto::{Protocol, SendQueue};
use mux_ssh::client::Client;
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::harness::{Case, Pair, Reply, drop_ref, payload};

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const KIB: usize = 1024;

#[test]
fn memory_is_bounded_by_us_and_not_by_the_server() {
    lengths_that_are_declared_and_not_sent();
    an_idle_connection_is_small();
    for flood in floods() {
        answers_that_nobody_reads(&flood);
    }
    events_that_nobody_takes();
}

/// Line 6 of the list of cases.
fn lengths_that_are_declared_and_not_sent() {
    // Before there are keys: the largest packet that is accepted, of which one byte comes.
    let declared = Bytes::from_static(&[0, 0, 0x88, 0xb4, 4]);
    let plan = Plan::new()
        .with(Point::Before(Moment::KexInit, 1), Act::Raw(declared))
        .with(Point::Before(Moment::KexInit, 1), Act::Stall);
    check_waiting(500, || Case::new(plan.clone()));
    // Under the cipher whose length is in the clear.
    let declared = Bytes::from_static(&[0, 3, 0xff, 0xf0, 4]);
    let plan = Plan::new()
        .with(Point::After(Moment::ChannelSuccess, 1), Act::Raw(declared))
        .with(Point::After(Moment::ChannelSuccess, 1), Act::Stall);
    check_waiting(50, || {
        Case::new(plan.clone())
            .kex("curve25519-sha256")
            .reply(Reply::Nothing)
    });
}

fn check_waiting(count: usize, case: impl Fn() -> Case) {
    let clients: Vec<Client> = (0..count).map(|_| settled(case()).client).collect();
    let held = held_by(clients) / count;
    assert!(
        held <= 8 * KIB,
        "{held} bytes held by a client that waits for a packet"
    );
}

/// What `ssh.md` of this project aims at for 10,000 connections.
fn an_idle_connection_is_small() {
    let count = 50;
    let clients: Vec<Client> = (0..count)
        .map(|_| settled(Case::good().client(|config| config.spare = true)).client)
        .collect();
    assert!(clients.iter().all(Client::is_idle));
    let held = held_by(clients) / count;
    assert!(held <= 8 * KIB, "{held} bytes held by an idle connection");
}

/// What a server can ask for at any rate.
fn floods() -> Vec<Bytes> {
    let open = payload(|w| {
        w.byte(message::CHANNEL_OPEN)
            .string("x11")
            .uint32(9)
            .uint32(1 << 20)
            .uint32(1 << 15);
    });
    let global = payload(|w| drop_ref(w.byte(message::GLOBAL_REQUEST).string("x").boolean(true)));
    let channel = payload(|w| {
        drop_ref(
            w.byte(message::CHANNEL_REQUEST)
                .uint32(0)
                .string("x")
                .boolean(true),
        )
    });
    let empty = payload(|w| drop_ref(w.byte(message::CHANNEL_DATA).uint32(0).string("")));
    vec![open, global, channel, empty]
}

/// Lines 17 and 26: the server asks and never reads. Nothing leaves the client here, whatever it owes.
fn answers_that_nobody_reads(flood: &Bytes) {
    let mut pair = settled(Case::good().reply(Reply::Nothing));
    let before = ALLOCATOR.allocated();
    let mut offered = 0;
    for _ in 0..100 {
        for _ in 0..1000 {
            pair.server.send_packet(flood);
        }
        let mut input = drained(&mut pair);
        offered += input.len();
        while pair.client.wants_input() {
            let len = input.len();
            pair.client.handle_input(pair.now, &mut input).unwrap();
            if input.len() == len {
                break;
            }
        }
        while pair.client.poll_event().is_some() {}
        if !pair.client.wants_input() {
            break;
        }
    }
    let grown = ALLOCATOR.allocated().saturating_sub(before);
    assert!(
        grown <= 1024 * KIB,
        "{grown} bytes after {offered} bytes of a flood that is never answered"
    );
}

/// Line 28: output and events that the owner does not take.
fn events_that_nobody_takes() {
    let mut pair = settled(Case::good().reply(Reply::Nothing));
    let before = ALLOCATOR.allocated();
    let data = payload(|w| drop_ref(w.byte(message::CHANNEL_DATA).uint32(0).string([7; 1])));
    let mut input = BytesMut::new();
    for _ in 0..60 {
        for _ in 0..1000 {
            pair.server.send_packet(&data);
        }
        input.extend_from_slice(&drained(&mut pair));
        while pair.client.wants_input() {
            let len = input.len();
            pair.client.handle_input(pair.now, &mut input).unwrap();
            if input.len() == len {
                break;
            }
        }
        if !pair.client.wants_input() {
            break;
        }
    }
    assert!(
        !pair.client.wants_input(),
        "the client reads on while its owner takes nothing"
    );
    drop(input);
    let grown = ALLOCATOR.allocated().saturating_sub(before);
    assert!(grown <= 1024 * KIB, "{grown} bytes of events that nobody takes");
}

fn settled(case: Case) -> Pair {
    let mut pair = case.start();
    pair.settle();
    assert_eq!(pair.seen.error, None);
    pair
}

fn drained(pair: &mut Pair) -> BytesMut {
    let mut all = BytesMut::new();
    let mut out = SendQueue::new();
    loop {
        pair.server.poll_transmit(pair.now, &mut out);
        if out.is_empty() {
            return all;
        }
        while !out.is_empty() {
            all.extend_from_slice(&out.take(usize::MAX));
        }
    }
}

fn held_by<T>(value: T) -> usize {
    let before = ALLOCATOR.allocated();
    drop(value);
    before - ALLOCATOR.allocated()
}
