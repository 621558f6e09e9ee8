//! What a server can make a client hold: in every row of the table of hostile cases, and where floods meet somebody who
//! takes nothing. One test after the other in one function, for the allocator counts for the whole process; what the
//! cryptographic library allocates by itself is not seen.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    dead_code,
    reason = "a test fails by panicking; the table has more than is used here"
)]

/// A row is no test by itself here.
macro_rules! named {
    ($name:ident) => {};
}

#[path = "hostile/table/mod.rs"]
mod table;

use bytes::{Bytes, BytesMut};
use cap::Cap;
use mux_proto::{Protocol, SendQueue};
use mux_ssh::client::Client;
use mux_ssh::message;
use mux_ssh::server::{Act, Moment, Plan, Point};

use crate::table::harness::{Case, Pair, Reply, drop_ref, payload};
use crate::table::rows;

#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const KIB: usize = 1024;
/// What a connection may hold at any time, whatever comes: one packet that is not whole, events that wait, answers that
/// are owed, each with a limit of 256 KiB of its own, and what is said of them in memory.
const MOST: usize = 1024 * KIB;
/// A row may have thousands of cases that differ in a number; so many of them are looked at here.
const SAMPLES: usize = 3;

#[test]
fn memory_is_bounded_by_us_and_not_by_the_server() {
    lengths_that_are_declared_and_not_sent();
    an_idle_connection_is_small();
    for flood in floods() {
        answers_that_nobody_reads(&flood);
    }
    events_that_nobody_takes();
    every_row_of_the_table();
}

/// After a few round trips, which is in the middle of every flood, and when nothing moves any more.
fn every_row_of_the_table() {
    let mut count = 0;
    for row in rows() {
        let cases = row.cases();
        let step = cases.len().div_ceil(SAMPLES).max(1);
        for case in cases.into_iter().step_by(step) {
            for rounds in [6, usize::MAX] {
                let mut pair = case.clone().start();
                pair.settle_within(rounds);
                let (client, unread) = pair.into_client();
                let held = unread.len() + held_by(client);
                assert!(
                    held <= MOST,
                    "{held} bytes held in {} after {rounds} rounds",
                    row.name
                );
                count += 1;
            }
        }
    }
    assert!(count > 500, "{count} measurements");
}

/// A thousand times what was promised, and nothing of it.
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

/// Ten thousand of them are to fit.
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

/// The server asks and never reads. Nothing leaves the client here, whatever it owes.
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
        grown <= MOST,
        "{grown} bytes after {offered} bytes of a flood that is never answered"
    );
}

/// Output and events that the owner does not take.
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
    assert!(grown <= MOST, "{grown} bytes of events that nobody takes");
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
