//! The window of output: what the server may send, and when it may send more.

use super::pair::*;
use crate::client::{ChannelId, ChannelViolation, StreamKind};
use crate::message::*;

const INITIAL: usize = 64 * 1024;

/// Sends `count` bytes of output in packets of at most 32 KiB.
fn output(pair: &mut Pair, mut count: usize) {
    while count > 0 {
        let piece = count.min(32 * 1024);
        pair.data(0, &vec![b'x'; piece]);
        count -= piece;
    }
}

/// How much the client has granted in the packets that the server has read.
fn granted(pair: &mut Pair) -> usize {
    let adjusts = pair
        .received
        .iter()
        .filter(|payload| payload[0] == CHANNEL_WINDOW_ADJUST);
    let sum = adjusts
        .map(|payload| u32::from_be_bytes(payload[5..9].try_into().unwrap()))
        .sum::<u32>();
    pair.take_kinds();
    usize::try_from(sum).unwrap()
}

fn held(consumes: bool) -> (Pair, ChannelId) {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.consumes = consumes;
    (pair, id)
}

#[test]
fn nothing_is_granted_for_what_nobody_consumed() {
    let (mut pair, id) = held(false);
    output(&mut pair, INITIAL);
    assert_eq!(granted(&mut pair), 0);
    pair.client.consume(id, StreamKind::Stdout, INITIAL);
    pair.run();
    assert!(granted(&mut pair) >= INITIAL);
}

#[test]
fn one_byte_beyond_the_window_is_a_violation() {
    let (mut pair, _) = held(false);
    output(&mut pair, INITIAL);
    pair.assert_healthy();
    output(&mut pair, 1);
    pair.assert_violation(ChannelViolation::Window);
}

#[test]
fn both_streams_share_the_window() {
    let (mut pair, _) = held(false);
    output(&mut pair, INITIAL / 2);
    pair.stderr(0, 1, &vec![b'x'; INITIAL / 2]);
    pair.assert_healthy();
    pair.stderr(0, 1, b"x");
    pair.assert_violation(ChannelViolation::Window);
}

#[test]
fn the_window_grows_to_its_maximum_while_the_consumer_keeps_up() {
    let (mut pair, _) = held(true);
    let mut window = INITIAL;
    for _ in 0..10 {
        let used = window;
        output(&mut pair, used);
        window = window - used + granted(&mut pair);
    }
    assert!(window > (2 << 20) - (64 << 10), "{window}");
    assert!(window <= 2 << 20, "{window}");
    assert!(pair.client.window_growth() <= (2 << 20) - INITIAL);
    pair.assert_healthy();
}

#[test]
fn the_window_shrinks_while_the_consumer_does_not() {
    let (mut pair, id) = held(true);
    for _ in 0..6 {
        output(&mut pair, INITIAL);
    }
    let grown = pair.client.window_growth();
    assert!(grown > 0);
    pair.consumes = false;
    // The consumer takes a little at a time of what has piled up.
    output(&mut pair, grown + INITIAL);
    for _ in 0..200 {
        pair.client.consume(id, StreamKind::Stdout, 1024);
        pair.run();
    }
    assert!(
        pair.client.window_growth() < grown,
        "{} {grown}",
        pair.client.window_growth()
    );
}

#[test]
fn the_owner_limits_all_windows() {
    let (mut pair, _) = held(true);
    pair.client.limit_windows(64 * 1024);
    for _ in 0..20 {
        output(&mut pair, INITIAL / 2);
    }
    assert_eq!(pair.client.window_growth(), 0);
    pair.assert_healthy();
}

#[test]
fn consuming_more_than_there_was_grants_no_more_than_there_was() {
    let (mut pair, id) = held(false);
    pair.client.limit_windows(64 * 1024);
    output(&mut pair, INITIAL / 2);
    pair.client.consume(id, StreamKind::Stdout, usize::MAX);
    pair.run();
    assert_eq!(granted(&mut pair), INITIAL / 2);
}

#[test]
fn small_refills_wait_for_each_other() {
    let (mut pair, _) = held(true);
    for _ in 0..10 {
        output(&mut pair, 100);
    }
    assert_eq!(granted(&mut pair), 0);
}
