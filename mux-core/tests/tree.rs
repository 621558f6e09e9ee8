//! Trees of real processes: calls through relays, nodes that crash, stop and are killed in the middle of a transfer.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and asks for what it is about"
)]

#[path = "../examples/router_bench/root.rs"]
mod root;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_proto::body::{Reset, ResetCode};
use mux_proto::connection::{INITIAL_CREDIT, MAX_UNSENT};
use mux_proto::frame::NodeId;
use root::{Call, Happened, Root};
use rustix::process::{Pid, Signal, kill_process};

/// What is told at once comes within this, on a machine that does other things, too.
const PROMPT: Duration = Duration::from_secs(5);

const MIB: usize = 1024 * 1024;

/// The example `node`, which cargo builds with the tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/node");
    assert!(
        path.exists(),
        "{} is missing; run: cargo build -p mux-core --example node",
        path.display()
    );
    path
}

fn root() -> Root {
    Root::new(program(), INITIAL_CREDIT).unwrap()
}

fn number(value: usize) -> Bytes {
    let mut item = vec![0x1b];
    item.extend_from_slice(&(value as u64).to_be_bytes());
    item.into()
}

fn text(words: &str) -> Bytes {
    let mut item = vec![0x60 | u8::try_from(words.len()).unwrap()];
    item.extend_from_slice(words.as_bytes());
    item.into()
}

/// A call is answered with what it was given.
fn check_answers(root: &mut Root, node: NodeId) {
    let call = root.open(node, "call", text("anybody?")).unwrap();
    assert_eq!(
        root.ending(call).unwrap(),
        Happened::Result(text("anybody?")),
        "{node}"
    );
}

/// Sends all of it and the end; gives what came of it.
fn transfer(root: &mut Root, node: NodeId, len: usize) -> Happened {
    let call = root.open(node, "count", number(0)).unwrap();
    let mut left = len;
    loop {
        left -= root.send(call, left);
        if left == 0 {
            root.connection(call).unwrap().finish(call.1).unwrap();
            return root.ending(call).unwrap();
        }
        while let Some((of, happened)) = root.happened.pop_front() {
            if of == call && happened != Happened::Writable {
                return happened;
            }
        }
        root.turn(Some(PROMPT)).unwrap();
    }
}

/// Until the channel has ended; gives the reset.
fn reset_of(root: &mut Root, call: Call) -> Reset {
    match root.ending(call).unwrap() {
        Happened::Reset(reset) => reset,
        other => panic!("{other:?}"),
    }
}

/// The processes that this one has started.
fn children_of(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// Whether a process is there and no zombie.
fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

#[test]
fn nodes_at_any_depth_answer_and_every_byte_arrives() {
    let mut root = root();
    for node in root.chain(3).unwrap() {
        check_answers(&mut root, node);
        assert_eq!(
            transfer(&mut root, node, 3 * MIB),
            Happened::Result(number(3 * MIB))
        );
        let pour = root.open(node, "pour", number(3 * MIB)).unwrap();
        let mut came = 0;
        while came < 3 * MIB {
            root.turn(None).unwrap();
            while let Some((of, happened)) = root.happened.pop_front() {
                match happened {
                    Happened::Data(len) if of == pour => came += len,
                    Happened::Result(_) if of == pour => assert_eq!(came, 3 * MIB),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

#[test]
fn a_crash_is_told_with_its_reason_and_takes_along_what_lies_beneath() {
    let mut root = root();
    let chain = root.chain(3).unwrap();
    let waiting: Vec<Call> = chain[1..]
        .iter()
        .map(|node| root.open(*node, "count", number(0)).unwrap())
        .collect();
    check_answers(&mut root, chain[2]);
    let start = Instant::now();
    let crash = root.open(chain[1], "crash", number(0)).unwrap();
    let mut resets = Vec::new();
    while resets.len() < 3 {
        root.turn(Some(PROMPT)).unwrap();
        while let Some((call, happened)) = root.happened.pop_front() {
            let Happened::Reset(reset) = happened else {
                panic!("{happened:?}");
            };
            resets.push((call, reset));
        }
    }
    assert!(start.elapsed() < PROMPT, "{:?}", start.elapsed());
    for (call, reset) in resets {
        assert!(waiting.contains(&call) || call == crash);
        assert_eq!(reset.code, ResetCode::Gone);
        assert!(reset.text.contains("exit status 3"), "{}", reset.text);
    }
    root.until(|root| root.relay.router().way(chain[2]).is_none())
        .unwrap();
    assert!(root.relay.router().way(chain[1]).is_none());
    check_answers(&mut root, chain[0]);
    let another = root.start_beneath(chain[0]).unwrap();
    check_answers(&mut root, another);
}

#[test]
fn a_receiver_that_is_killed_in_mid_transfer_frees_what_it_held() {
    let mut root = root();
    let relay = root.start().unwrap();
    let other = root.start_beneath(relay).unwrap();
    let relay_pid = root.pid(relay).unwrap();
    let known = children_of(relay_pid);
    for _ in 0..3 {
        let victim = root.start_beneath(relay).unwrap();
        let victim_pid = *children_of(relay_pid)
            .iter()
            .find(|pid| !known.contains(pid))
            .unwrap();
        // It stands still, so that the transfer is in its middle.
        signal(victim_pid, Signal::STOP);
        let calls: Vec<Call> = (0..20)
            .map(|_| root.open(victim, "count", number(0)).unwrap())
            .collect();
        for call in &calls {
            assert_eq!(root.send(*call, MAX_UNSENT), MAX_UNSENT);
        }
        check_answers(&mut root, other);
        signal(victim_pid, Signal::KILL);
        for call in calls {
            let reset = reset_of(&mut root, call);
            assert_eq!(reset.code, ResetCode::Gone);
            assert!(reset.text.contains("signal 9"), "{}", reset.text);
        }
        assert_eq!(
            transfer(&mut root, other, 2 * MIB),
            Happened::Result(number(2 * MIB))
        );
    }
    let link = root.relay.router().way(relay).unwrap();
    assert_eq!(root.driver.protocol(link).unwrap().channels(), 0);
}

#[test]
fn a_receiver_that_stops_costs_the_relay_its_windows_and_nobody_else_anything() {
    const CHANNELS: usize = 32;
    let mut root = root();
    let relay = root.start().unwrap();
    let stopped = root.start_beneath(relay).unwrap();
    let relay_pid = root.pid(relay).unwrap();
    let stopped_pid = children_of(relay_pid)[0];
    let other = root.start_beneath(relay).unwrap();
    assert_eq!(
        transfer(&mut root, other, 8 * MIB),
        Happened::Result(number(8 * MIB))
    );
    let before = resident(relay_pid);
    signal(stopped_pid, Signal::STOP);
    let calls: Vec<Call> = (0..CHANNELS)
        .map(|_| root.open(stopped, "count", number(0)).unwrap())
        .collect();
    // 400 MiB are to be sent, as fast as they are taken.
    let mut left = vec![400 * MIB / CHANNELS; CHANNELS];
    for _ in 0..30 {
        for (call, left) in calls.iter().zip(&mut left) {
            *left -= root.send(*call, *left);
        }
        check_answers(&mut root, other);
    }
    let taken = 400 * MIB - left.iter().sum::<usize>();
    assert!(
        taken <= CHANNELS * (MAX_UNSENT + INITIAL_CREDIT as usize),
        "{taken} bytes were taken"
    );
    let grown = resident(relay_pid).saturating_sub(before);
    assert!(
        grown <= 2 * CHANNELS * INITIAL_CREDIT as usize + 4 * MIB,
        "{grown} bytes more"
    );
    signal(stopped_pid, Signal::CONT);
    assert_eq!(transfer(&mut root, stopped, MIB), Happened::Result(number(MIB)));
}

#[test]
fn a_call_is_answered_while_a_bulk_transfer_goes_on() {
    let mut root = root();
    let node = root.chain(2).unwrap()[1];
    let bulk = root.open(node, "pour", number(64 * MIB)).unwrap();
    let mut came = 0;
    for _ in 0..20 {
        let call = root.open(node, "call", text("anybody?")).unwrap();
        let mut is_answered = false;
        while !is_answered {
            root.turn(None).unwrap();
            while let Some((of, happened)) = root.happened.pop_front() {
                match happened {
                    Happened::Data(len) if of == bulk => came += len,
                    Happened::Result(_) if of == call => is_answered = true,
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    assert!(came > 0 && came < 64 * MIB, "{came} bytes came meanwhile");
}

#[test]
fn who_loses_its_parent_ends_and_takes_its_children_along() {
    let mut root = root();
    let node = root.chain(3).unwrap()[0];
    let child = root.pid(node).unwrap();
    let grandchild = children_of(child)[0];
    let last = children_of(grandchild)[0];
    drop(root);
    let start = Instant::now();
    while [child, grandchild, last].into_iter().any(runs) {
        assert!(start.elapsed() < PROMPT, "some are still there");
        std::thread::yield_now();
    }
}
