//! Standard input: what is sent when, and never more than the server takes.

use bytes::Bytes;

use super::pair::*;
use crate::Misuse;
use crate::client::{ChannelId, Event};
use crate::message::*;

/// Bytes of input in the packets that the server has read.
fn input(pair: &mut Pair) -> usize {
    let data = pair.received.iter().filter(|payload| payload[0] == CHANNEL_DATA);
    let bytes = data.map(|payload| payload.len() - 9).sum();
    pair.take_kinds();
    bytes
}

fn write(pair: &mut Pair, id: ChannelId, count: usize) {
    pair.client
        .write_stdin(id, Bytes::from(vec![b'x'; count]))
        .unwrap();
    pair.run();
}

#[test]
fn at_most_16_kib_go_ahead_of_the_confirmation() {
    let mut pair = Pair::simple(DROPBEAR);
    let id = pair.client.exec(pair.now, open_exec("cat"));
    pair.client
        .write_stdin(id, Bytes::from(vec![b'x'; 100_000]))
        .unwrap();
    pair.until_auth();
    assert_eq!(input(&mut pair), 16 * 1024);
    pair.accept_service();
    pair.success();
    assert_eq!(input(&mut pair), 0);
    // What went ahead counts: 24,576 − 16,384 are left.
    pair.confirm_with(0, 0, 24_576, 32_768);
    assert_eq!(input(&mut pair), 8_192);
    pair.adjust(0, 1_000);
    assert_eq!(input(&mut pair), 1_000);
}

#[test]
fn a_window_of_zero_at_the_confirmation_is_made_up_for_later() {
    let mut pair = Pair::simple(OPENSSH);
    let id = pair.client.exec(pair.now, open_exec("cat"));
    pair.client
        .write_stdin(id, Bytes::from(vec![b'x'; 50_000]))
        .unwrap();
    pair.until_auth();
    pair.accept_service();
    pair.success();
    assert_eq!(input(&mut pair), 16 * 1024);
    pair.confirm_with(0, 0, 0, 32_768);
    assert_eq!(input(&mut pair), 0);
    pair.adjust(0, 20_000);
    assert_eq!(input(&mut pair), 20_000 - 16 * 1024);
}

#[test]
fn packets_are_no_larger_than_the_server_takes() {
    let mut pair = Pair::logged_in(UNKNOWN);
    let id = pair.exec(open_exec("cat"));
    pair.confirm_with(0, 0, 1 << 20, 1_000);
    pair.take_kinds();
    write(&mut pair, id, 10_500);
    assert!(pair.received.iter().all(|payload| payload.len() <= 1_000 + 9));
    assert_eq!(input(&mut pair), 10_500);
}

#[test]
fn the_end_of_input_follows_the_last_byte() {
    let (mut pair, id) = Pair::running(open_exec("cat"));
    pair.client.write_stdin(id, Bytes::from_static(b"abc")).unwrap();
    pair.client.finish_stdin(id);
    pair.run();
    assert_eq!(pair.take_kinds(), [CHANNEL_DATA, CHANNEL_EOF]);
    pair.client.finish_stdin(id);
    pair.run();
    assert_eq!(pair.take_kinds(), []);
    assert_eq!(
        pair.client.write_stdin(id, Bytes::from_static(b"x")),
        Err(Misuse::StdinFinished)
    );
}

#[test]
fn more_than_there_is_room_for_is_refused_and_room_is_told_of() {
    let mut pair = Pair::logged_in(UNKNOWN);
    let id = pair.exec(open_exec("cat"));
    pair.confirm_with(0, 0, 0, 32_768);
    let room = pair.client.stdin_room(id);
    write(&mut pair, id, room);
    assert_eq!(pair.client.stdin_room(id), 0);
    assert_eq!(
        pair.client.write_stdin(id, Bytes::from_static(b"x")),
        Err(Misuse::NoStdinRoom)
    );
    pair.adjust(0, 1_000);
    assert!(!pair.told(&Event::StdinRoom { channel: id }));
    pair.adjust(0, u32::try_from(room / 2).unwrap());
    assert!(pair.told(&Event::StdinRoom { channel: id }));
}

#[test]
fn channels_take_turns() {
    let mut pair = Pair::logged_in(UNKNOWN);
    let ids = [pair.exec(open_exec("a")), pair.exec(open_exec("b"))];
    for number in 0..2 {
        pair.confirm_with(number, number, 1 << 20, 32_768);
    }
    pair.take_kinds();
    for id in ids {
        pair.client
            .write_stdin(id, Bytes::from(vec![b'x'; 128 * 1024]))
            .unwrap();
    }
    pair.run();
    let order: Vec<u8> = pair.received.iter().map(|payload| payload[4]).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn a_server_that_never_reads_gets_no_more_than_one_queue_full() {
    use mux_proto::Protocol as _;
    let (mut pair, id) = Pair::running(open_exec("cat"));
    let mut out = mux_proto::SendQueue::new();
    for _ in 0..100 {
        let room = pair.client.stdin_room(id);
        pair.client
            .write_stdin(id, Bytes::from(vec![b'x'; room]))
            .unwrap();
        pair.client.poll_transmit(pair.now, &mut out);
    }
    assert!(out.len() <= mux_proto::LOW_WATER + 40_000, "{}", out.len());
}

#[test]
fn input_after_the_channel_closed_is_dropped_quietly() {
    let (mut pair, id) = Pair::running(open_exec("cat"));
    pair.tell(CHANNEL_CLOSE, 0);
    assert_eq!(
        pair.client.write_stdin(id, Bytes::from_static(b"x")),
        Err(Misuse::NoSuchChannel)
    );
    pair.client.finish_stdin(id);
    pair.run();
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
}
