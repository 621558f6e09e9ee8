//! What a server must not do on a connection, and what it may do without effect.

use super::pair::*;
use crate::client::{ChannelFailure, ChannelViolation, ClientConfig, Event};
use crate::message::*;
use crate::wire::Writer;
use crate::{Violation, client::events::MAX_UNDELIVERED};

/// A command runs on channel 0; then the server says this.
fn check(violation: impl Into<Violation>, write: impl FnOnce(&mut Writer<'_>)) {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.say(write);
    pair.assert_violation(violation);
    pair.assert_failed(id, ChannelFailure::ConnectionLost, true);
}

/// A channel is being opened on an unknown server; then the server says this.
fn check_opening(violation: impl Into<Violation>, write: impl FnOnce(&mut Writer<'_>)) {
    let mut pair = Pair::logged_in(UNKNOWN);
    let id = pair.exec(exec("x"));
    pair.say(write);
    pair.assert_violation(violation);
    pair.assert_failed(id, ChannelFailure::ConnectionLost, false);
}

#[test]
fn messages_about_channels_that_are_not_open() {
    for number in [
        CHANNEL_OPEN_CONFIRMATION,
        CHANNEL_OPEN_FAILURE,
        CHANNEL_WINDOW_ADJUST,
        CHANNEL_DATA,
        CHANNEL_EXTENDED_DATA,
        CHANNEL_EOF,
        CHANNEL_CLOSE,
        CHANNEL_REQUEST,
        CHANNEL_SUCCESS,
        CHANNEL_FAILURE,
    ] {
        for slot in [1, 0x7fff_ffff, u32::MAX] {
            check(ChannelViolation::UnknownChannel, |to| {
                to.byte(number).uint32(slot);
            });
        }
    }
}

#[test]
fn messages_about_a_channel_that_was_not_confirmed() {
    for number in [
        CHANNEL_DATA,
        CHANNEL_EOF,
        CHANNEL_CLOSE,
        CHANNEL_REQUEST,
        CHANNEL_SUCCESS,
    ] {
        check_opening(ChannelViolation::UnknownChannel, |to| {
            to.byte(number).uint32(0);
        });
    }
}

#[test]
fn a_second_answer_to_open() {
    for number in [CHANNEL_OPEN_CONFIRMATION, CHANNEL_OPEN_FAILURE] {
        check(ChannelViolation::NotOpening, |to| {
            to.byte(number).uint32(0);
        });
    }
}

#[test]
fn success_before_a_request_and_twice() {
    check(ChannelViolation::UnaskedReply, |to| {
        to.byte(CHANNEL_SUCCESS).uint32(0);
    });
    check(ChannelViolation::UnaskedReply, |to| {
        to.byte(CHANNEL_FAILURE).uint32(0);
    });
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    pair.confirm(0, 0);
    pair.reply(0, true);
    pair.assert_violation(ChannelViolation::UnaskedReply);
}

#[test]
fn an_answer_to_a_global_request_that_was_not_made() {
    check(ChannelViolation::UnaskedReply, |to| {
        to.byte(REQUEST_SUCCESS);
    });
    check(ChannelViolation::UnaskedReply, |to| {
        to.byte(REQUEST_FAILURE);
    });
}

#[test]
fn output_or_a_result_before_the_command() {
    let spare = || {
        let config = ClientConfig {
            spare: true,
            ..config(&keys(1))
        };
        let mut pair = Pair::log_in(OPENSSH, config);
        pair.confirm(0, 0);
        pair
    };
    let mut pair = spare();
    pair.data(0, b"x");
    pair.assert_violation(ChannelViolation::BeforeCommand);
    let mut pair = spare();
    pair.exit_status(0, 0);
    pair.assert_violation(ChannelViolation::BeforeCommand);
}

#[test]
fn output_after_its_end() {
    let (mut pair, _) = Pair::running(exec("x"));
    pair.tell(CHANNEL_EOF, 0);
    pair.data(0, b"x");
    pair.assert_violation(ChannelViolation::DataAfterEof);
}

#[test]
fn extended_data_of_another_type() {
    check(ChannelViolation::DataType(7), |to| {
        to.byte(CHANNEL_EXTENDED_DATA).uint32(0).uint32(7).string("x");
    });
}

#[test]
fn a_packet_larger_than_announced() {
    let data = vec![b'x'; 32 * 1024 + 1];
    check(ChannelViolation::PacketSize, |to| {
        to.byte(CHANNEL_DATA).uint32(0).string(&data);
    });
}

#[test]
fn packets_without_room_for_data() {
    check_opening(ChannelViolation::PacketSize, |to| {
        to.byte(CHANNEL_OPEN_CONFIRMATION)
            .uint32(0)
            .uint32(0)
            .uint32(0)
            .uint32(0);
    });
}

#[test]
fn a_window_beyond_its_maximum() {
    check(ChannelViolation::WindowOverflow, |to| {
        to.byte(CHANNEL_WINDOW_ADJUST).uint32(0).uint32(u32::MAX);
    });
}

#[test]
fn anything_after_close() {
    let (mut pair, _) = Pair::running(exec("x"));
    pair.tell(CHANNEL_CLOSE, 0);
    pair.exit_status(0, 0);
    pair.assert_violation(ChannelViolation::UnknownChannel);
}

#[test]
fn lengths_beyond_the_message() {
    for fields in [
        &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff][..],
        &[0, 0, 0, 0, 0, 0, 0, 200, 1],
    ] {
        check(Violation::Truncated, |to| {
            to.byte(CHANNEL_DATA).raw(fields);
        });
        check(Violation::Truncated, |to| {
            to.byte(CHANNEL_REQUEST).raw(fields);
        });
    }
    check(Violation::TrailingBytes, |to| {
        to.byte(CHANNEL_DATA).uint32(0).string("x").byte(0);
    });
    check(Violation::Truncated, |to| {
        to.byte(CHANNEL_CLOSE).byte(0);
    });
}

#[test]
fn an_exit_signal_with_huge_strings_is_cut() {
    let (mut pair, id) = Pair::running(exec("x"));
    let huge = vec![b'A'; 15_000];
    pair.say(|to| {
        to.byte(CHANNEL_REQUEST)
            .uint32(0)
            .string("exit-signal")
            .boolean(false);
        to.string(&huge).boolean(false).string(&huge).string("");
    });
    let (signal, message) = ("A".repeat(64), "A".repeat(1024));
    assert!(pair.told(&Event::ExitSignal {
        channel: id,
        signal,
        core_dumped: false,
        message
    }));
}

#[test]
fn empty_output_is_no_event() {
    let (mut pair, _) = Pair::running(exec("x"));
    for _ in 0..1000 {
        pair.data(0, b"");
        pair.stderr(0, 1, b"");
    }
    assert_eq!(pair.events, []);
    pair.assert_healthy();
}

#[test]
fn every_channel_that_a_server_opens_is_refused() {
    let (mut pair, _) = Pair::running(exec("x"));
    let kinds = [
        "session",
        "x11",
        "forwarded-tcpip",
        "direct-tcpip",
        "auth-agent@openssh.com",
        "tun@openssh.com",
        "",
    ];
    for (number, kind) in (100..).zip(kinds) {
        pair.say(|to| {
            to.byte(CHANNEL_OPEN)
                .string(kind)
                .uint32(number)
                .uint32(1 << 20)
                .uint32(1 << 15)
                .string("rest");
        });
        let mut failure = pair.last(CHANNEL_OPEN_FAILURE);
        assert_eq!(failure.uint32(), Ok(number));
        assert_eq!(failure.uint32(), Ok(1));
    }
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN_FAILURE; 7]);
    assert_eq!(pair.events, []);
    pair.assert_healthy();
}

#[test]
fn requests_of_a_server_are_refused_where_it_wants_an_answer() {
    let (mut pair, _) = Pair::running(exec("x"));
    pair.say(|to| {
        to.byte(CHANNEL_REQUEST)
            .uint32(0)
            .string("keepalive@openssh.com")
            .boolean(true);
    });
    assert_eq!(pair.take_kinds(), [CHANNEL_FAILURE]);
    pair.say(|to| {
        to.byte(CHANNEL_REQUEST)
            .uint32(0)
            .string("unknown")
            .boolean(false);
    });
    assert_eq!(pair.take_kinds(), []);
    pair.say(|to| {
        to.byte(GLOBAL_REQUEST)
            .string("keepalive@openssh.com")
            .boolean(true);
    });
    assert_eq!(pair.take_kinds(), [REQUEST_FAILURE]);
    let keys = vec![b'k'; 30_000];
    pair.say(|to| {
        to.byte(GLOBAL_REQUEST)
            .string("hostkeys-00@openssh.com")
            .boolean(false)
            .raw(&keys);
    });
    assert_eq!(pair.take_kinds(), []);
    assert_eq!(pair.events, []);
    pair.assert_healthy();
}

#[test]
fn a_keepalive_on_a_spare_is_answered() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    pair.confirm(0, 0);
    pair.take_kinds();
    pair.say(|to| {
        to.byte(CHANNEL_REQUEST)
            .uint32(0)
            .string("keepalive@openssh.com")
            .boolean(true);
    });
    assert_eq!(pair.take_kinds(), [CHANNEL_FAILURE]);
    pair.assert_healthy();
}

#[test]
fn a_number_that_means_nothing_is_answered_unimplemented() {
    let (mut pair, _) = Pair::running(exec("x"));
    for number in [83, 89, 101, 127] {
        pair.say(|to| {
            to.byte(number);
        });
    }
    pair.assert_healthy();
}

/// The server asks for `count` answers in one go, and the client is not allowed to send any.
fn flood(count: u32, write: impl Fn(u32, &mut Writer<'_>)) -> Pair {
    use mux_proto::{Protocol as _, SendQueue};
    let (mut pair, _) = Pair::running(exec("x"));
    for number in 0..count {
        pair.peer.send(|to| write(number, to));
    }
    let mut out = SendQueue::new();
    let mut sent = bytes::BytesMut::new();
    loop {
        pair.peer.poll_transmit(pair.now, &mut out);
        if out.is_empty() {
            break;
        }
        sent.extend_from_slice(&out.take(usize::MAX));
    }
    pair.deliver(&sent);
    assert!(!pair.client.wants_input());
    assert!(pair.unread() > 0);
    pair
}

#[test]
fn a_flood_of_openings_stops_the_reading_and_goes_on_when_answers_leave() {
    let mut pair = flood(100_000, |number, to| {
        to.byte(CHANNEL_OPEN)
            .string("x11")
            .uint32(number)
            .uint32(0)
            .uint32(0);
    });
    let mut answered = 0;
    while pair.flight() {
        answered += pair.take_kinds().len();
        pair.offer();
    }
    assert_eq!(answered, 100_000);
    assert_eq!(pair.unread(), 0);
    pair.assert_healthy();
}

#[test]
fn a_flood_of_requests_stops_the_reading() {
    let mut pair = flood(20_000, |_, to| {
        to.byte(GLOBAL_REQUEST).string("x").boolean(true);
    });
    while pair.flight() {
        pair.take_kinds();
        pair.offer();
    }
    assert_eq!(pair.unread(), 0);
    pair.assert_healthy();
}

#[test]
fn undelivered_output_stops_the_reading_and_resumes() {
    use mux_proto::Protocol as _;
    let (mut pair, id) = Pair::running(exec("x"));
    // The window grows, then the owner stops looking at events.
    for _ in 0..8 {
        for _ in 0..32 {
            pair.data(0, &[b'x'; 8 * 1024]);
        }
    }
    pair.events.clear();
    for _ in 0..60 {
        pair.peer.send(|to| {
            to.byte(CHANNEL_DATA).uint32(0).string([b'y'; 16 * 1024]);
        });
    }
    let mut out = mux_proto::SendQueue::new();
    let mut input = bytes::BytesMut::new();
    loop {
        pair.peer.poll_transmit(pair.now, &mut out);
        if out.is_empty() {
            break;
        }
        input.extend_from_slice(&out.take(usize::MAX));
    }
    pair.client.handle_input(pair.now, &mut input).unwrap();
    assert!(!pair.client.wants_input());
    assert!(
        input.len() > 60 * 16 * 1024 - MAX_UNDELIVERED - 64 * 1024,
        "{}",
        input.len()
    );
    pair.deliver(&input);
    pair.drain_events();
    pair.offer();
    assert_eq!(pair.output(id).len(), 60 * 16 * 1024);
}
