//! The life of a command on a channel: results, ends, refusals, spares and limits.

use std::time::Duration;

use bytes::Bytes;

use super::pair::*;
use crate::Misuse;
use crate::client::{ChannelFailure, ClientConfig, Event, Exec, StreamKind};
use crate::message::*;

fn close(pair: &mut Pair, ours: u32) {
    pair.tell(CHANNEL_CLOSE, ours);
}

#[test]
fn output_that_follows_the_exit_status_is_delivered() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.exit_status(0, 7);
    pair.data(0, b"late");
    pair.tell(CHANNEL_EOF, 0);
    close(&mut pair, 0);
    assert_eq!(pair.output(id), b"late");
    assert!(pair.told(&Event::ExitStatus {
        channel: id,
        status: 7
    }));
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
}

#[test]
fn both_streams_are_told_apart() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.data(0, b"o");
    pair.stderr(0, 1, b"e");
    let output = |stream, data: &'static [u8]| Event::Output {
        channel: id,
        stream,
        data: Bytes::from_static(data),
    };
    assert!(pair.told(&output(StreamKind::Stdout, b"o")));
    assert!(pair.told(&output(StreamKind::Stderr, b"e")));
}

#[test]
fn the_first_result_counts() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.exit_status(0, 0);
    pair.exit_status(0, 1);
    let results: Vec<_> = pair
        .events
        .iter()
        .filter(|event| matches!(event, Event::ExitStatus { .. }))
        .collect();
    assert_eq!(
        results,
        [&Event::ExitStatus {
            channel: id,
            status: 0
        }]
    );
    pair.assert_healthy();
}

#[test]
fn a_signal_that_ended_the_command_is_a_result_of_its_own() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.say(|to| {
        to.byte(CHANNEL_REQUEST)
            .uint32(0)
            .string("exit-signal")
            .boolean(false);
        to.string("KILL").boolean(true).string("killed").string("");
    });
    let (signal, message) = ("KILL".to_owned(), "killed".to_owned());
    assert!(pair.told(&Event::ExitSignal {
        channel: id,
        signal,
        core_dumped: true,
        message
    }));
}

#[test]
fn a_channel_may_close_without_result_and_without_eof() {
    let (mut pair, id) = Pair::running(exec("x"));
    close(&mut pair, 0);
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    assert!(
        !pair
            .events
            .iter()
            .any(|event| matches!(event, Event::ExitStatus { .. }))
    );
    pair.assert_healthy();
}

#[test]
fn eof_is_told_once() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.tell(CHANNEL_EOF, 0);
    pair.tell(CHANNEL_EOF, 0);
    assert_eq!(pair.events, [Event::Eof { channel: id }]);
    pair.assert_healthy();
}

#[test]
fn a_refused_command_did_not_run_and_its_channel_is_closed() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.exec(exec("x"));
    pair.confirm(0, 0);
    pair.take_kinds();
    pair.reply(0, false);
    pair.assert_failed(id, ChannelFailure::ExecRefused, false);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
    close(&mut pair, 0);
    assert_eq!(pair.take_kinds(), []);
    pair.assert_healthy();
}

#[test]
fn a_channel_that_closes_unanswered_leaves_the_command_in_doubt() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.exec(exec("x"));
    pair.confirm(0, 0);
    close(&mut pair, 0);
    pair.assert_failed(id, ChannelFailure::ClosedUnanswered, true);
}

#[test]
fn a_reply_may_come_after_close() {
    let mut pair = Pair::logged_in(PARAMIKO);
    let id = pair.exec(exec("x"));
    pair.confirm(0, 0);
    pair.data(0, b"done");
    pair.exit_status(0, 0);
    close(&mut pair, 0);
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    pair.reply(0, true);
    pair.assert_healthy();
}

#[test]
fn a_refused_variable_is_named_and_the_command_runs() {
    let mut pair = Pair::logged_in(OPENSSH);
    let variable = |name: &'static str| (Bytes::from_static(name.as_bytes()), Bytes::from_static(b"1"));
    let id = pair.exec(Exec {
        env: vec![variable("A"), variable("B")],
        ..exec("x")
    });
    pair.confirm(0, 0);
    let requests = pair
        .kinds()
        .iter()
        .filter(|&&kind| kind == CHANNEL_REQUEST)
        .count();
    assert_eq!(requests, 3);
    pair.reply(0, true);
    pair.reply(0, false);
    pair.reply(0, true);
    assert_eq!(
        pair.events,
        [
            Event::Opened { channel: id },
            Event::EnvRefused {
                channel: id,
                name: Bytes::from_static(b"B")
            }
        ]
    );
}

#[test]
fn a_signal_is_sent_by_name_and_wants_no_reply() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.client.signal(id, "TERM");
    pair.run();
    let mut request = pair.last(CHANNEL_REQUEST);
    assert_eq!(request.uint32(), Ok(0));
    assert_eq!(request.text(), Ok("signal"));
    assert_eq!(request.boolean(), Ok(false));
    assert_eq!(request.text(), Ok("TERM"));
}

#[test]
fn a_channel_that_is_given_up_closes_when_the_server_does() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.client.close_channel(id);
    pair.run();
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
    pair.data(0, b"still");
    close(&mut pair, 0);
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
    assert_eq!(pair.take_kinds(), []);
    pair.assert_healthy();
}

#[test]
fn a_command_given_up_before_it_is_sent_never_leaves() {
    let mut pair = Pair::simple(UNKNOWN);
    let id = pair.client.exec(pair.now, exec("x"));
    pair.client.close_channel(id);
    pair.until_auth();
    pair.accept_service();
    pair.success();
    pair.assert_failed(id, ChannelFailure::Cancelled, false);
    assert!(!pair.kinds().contains(&CHANNEL_OPEN));
}

#[test]
fn a_channel_that_opens_for_a_given_up_command_serves_the_next() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(UNKNOWN, config);
    // The spare is being opened; both commands find it in turn.
    let first = pair.client.exec(pair.now, exec("first"));
    pair.client.close_channel(first);
    let second = pair.exec(exec("second"));
    assert_ne!(first, second);
    pair.take_kinds();
    pair.confirm(0, 0);
    assert_eq!(pair.kinds()[..2], [CHANNEL_REQUEST, CHANNEL_EOF]);
    pair.assert_failed(first, ChannelFailure::Cancelled, false);
    assert_eq!(pair.client.open_channels(), 1);
}

#[test]
fn a_second_spare_is_not_kept() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(UNKNOWN, config);
    // It takes the spare that is being opened, and another is asked for.
    let id = pair.exec(exec("x"));
    pair.client.close_channel(id);
    pair.take_kinds();
    pair.confirm(0, 0);
    pair.confirm(1, 1);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
}

#[test]
fn a_channel_that_opens_for_a_given_up_command_is_closed_where_no_spare_is_kept() {
    let mut pair = Pair::logged_in(UNKNOWN);
    let id = pair.exec(exec("x"));
    pair.client.close_channel(id);
    pair.take_kinds();
    pair.confirm(0, 0);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
}

#[test]
fn a_stale_id_names_nothing() {
    let (mut pair, id) = Pair::running(exec("x"));
    close(&mut pair, 0);
    let next = pair.exec(open_exec("y"));
    assert_ne!(id, next);
    assert_eq!(
        pair.client.write_stdin(id, Bytes::from_static(b"x")),
        Err(Misuse::NoSuchChannel)
    );
    pair.client.close_channel(id);
    pair.client.signal(id, "KILL");
    assert_eq!(pair.client.open_channels(), 1);
}

#[test]
fn a_refused_channel_did_not_run_its_command() {
    let mut pair = Pair::logged_in(OPENSSH);
    let id = pair.exec(exec("x"));
    pair.refuse(0);
    let text = "open failed".to_owned();
    pair.assert_failed(id, ChannelFailure::Refused { code: 2, text }, false);
    pair.assert_healthy();
}

#[test]
fn no_session_at_all_refuses_the_gambled_command_and_then_ends() {
    let mut pair = Pair::simple(OPENSSH);
    let id = pair.exec(exec("x"));
    pair.until_auth();
    pair.accept_service();
    pair.success();
    pair.refuse(0);
    pair.say(|to| {
        to.byte(DISCONNECT)
            .uint32(2)
            .string("unknown channel 0")
            .string("");
    });
    let text = "open failed".to_owned();
    pair.assert_failed(id, ChannelFailure::Refused { code: 2, text }, false);
}

#[test]
fn a_refused_spare_is_no_error_and_shows_the_limit() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    pair.confirm(0, 0);
    pair.exec(exec("x"));
    pair.events.clear();
    pair.refuse(1);
    assert_eq!(pair.client.session_limit(), Some(1));
    let learned = matches!(&pair.events[..], [Event::Learned(memory)] if memory.one_session);
    assert!(learned, "{:?}", pair.events);
    pair.take_kinds();
    close(&mut pair, 0);
    // One session: no spare, not even when nothing runs.
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
    pair.assert_healthy();
}

#[test]
fn a_server_remembered_for_one_session_gets_no_spare() {
    let memory = crate::transport::ServerMemory {
        one_session: true,
        ..Default::default()
    };
    let config = ClientConfig {
        spare: true,
        memory: Some(memory),
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    assert_eq!(pair.take_kinds(), []);
    pair.exec(exec("x"));
    pair.confirm(0, 0);
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN, CHANNEL_REQUEST, CHANNEL_EOF]);
}

#[test]
fn near_a_higher_limit_no_spare_is_kept_and_below_it_is() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    for number in 0..3 {
        pair.confirm(number, number);
        pair.exec(exec("x"));
    }
    pair.refuse(3);
    assert_eq!(pair.client.session_limit(), Some(3));
    pair.take_kinds();
    close(&mut pair, 0);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE]);
    close(&mut pair, 1);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE, CHANNEL_OPEN]);
}

#[test]
fn a_spare_that_is_refused_with_nothing_open_is_not_asked_for_again() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    pair.refuse(0);
    pair.take_kinds();
    pair.pass(Duration::from_secs(5));
    assert_eq!(pair.take_kinds(), []);
    pair.assert_healthy();
}

#[test]
fn a_channel_refused_right_behind_the_end_of_another_is_asked_for_again() {
    let (mut pair, _) = Pair::running(exec("x"));
    close(&mut pair, 0);
    let id = pair.exec(exec("y"));
    pair.take_kinds();
    pair.refuse(0);
    assert_eq!(pair.take_kinds(), []);
    pair.pass(Duration::from_millis(50));
    assert_eq!(pair.take_kinds(), [CHANNEL_OPEN]);
    pair.confirm(0, 0);
    assert_eq!(pair.take_kinds(), [CHANNEL_REQUEST, CHANNEL_EOF]);
    assert_eq!(pair.client.open_channels(), 1);
    // Not for ever.
    close(&mut pair, 0);
    let id2 = pair.exec(exec("z"));
    assert_ne!(id, id2);
    for _ in 0..4 {
        pair.refuse(0);
        pair.pass(Duration::from_secs(1));
    }
    pair.refuse(0);
    let text = "open failed".to_owned();
    pair.assert_failed(id2, ChannelFailure::Refused { code: 2, text }, false);
}

#[test]
fn a_spare_that_the_server_closes_is_replaced_and_harms_nobody() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    pair.confirm(0, 0);
    pair.take_kinds();
    pair.tell(CHANNEL_EOF, 0);
    close(&mut pair, 0);
    assert_eq!(pair.take_kinds(), [CHANNEL_CLOSE, CHANNEL_OPEN]);
    assert_eq!(pair.events, []);
}

#[test]
fn a_server_that_closes_every_spare_is_soon_asked_for_none() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    for after in [
        &[CHANNEL_CLOSE, CHANNEL_OPEN][..],
        &[CHANNEL_CLOSE, CHANNEL_OPEN],
        &[CHANNEL_CLOSE],
    ] {
        pair.confirm(0, 0);
        pair.take_kinds();
        close(&mut pair, 0);
        assert_eq!(pair.take_kinds(), after);
    }
    let id = pair.exec(exec("x"));
    assert_eq!(pair.take_kinds()[0], CHANNEL_OPEN);
    pair.confirm(0, 0);
    pair.reply(0, true);
    close(&mut pair, 0);
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
}

#[test]
fn a_command_on_a_spare_that_closes_under_it_starts_anew_while_it_was_not_sent() {
    let config = ClientConfig {
        spare: true,
        ..config(&keys(1))
    };
    let mut pair = Pair::log_in(OPENSSH, config);
    pair.confirm(0, 0);
    pair.take_kinds();
    // The server's CLOSE arrives before the client's next write.
    let id = pair.client.exec(pair.now, exec("x"));
    pair.peer.send(|to| {
        to.byte(CHANNEL_CLOSE).uint32(0);
    });
    pair.answer();
    pair.run();
    assert_eq!(pair.take_kinds()[..2], [CHANNEL_CLOSE, CHANNEL_OPEN]);
    pair.confirm(0, 0);
    assert_eq!(pair.take_kinds()[..2], [CHANNEL_REQUEST, CHANNEL_EOF]);
    pair.reply(0, true);
    close(&mut pair, 0);
    assert_eq!(*pair.last_word(id), Event::ChannelClosed { channel: id });
}

#[test]
fn a_command_that_fits_no_packet_fails_at_once() {
    let mut pair = Pair::logged_in(OPENSSH);
    let command = Bytes::from(vec![b'x'; 128 * 1024 + 1]);
    let id = pair.exec(Exec {
        command,
        ..Exec::default()
    });
    pair.assert_failed(id, ChannelFailure::TooLarge, false);
    assert_eq!(pair.take_kinds(), []);
}

#[test]
fn goodbye_is_said_once_and_gives_everyone_a_last_word() {
    let (mut pair, id) = Pair::running(exec("x"));
    pair.client.disconnect(11, "done");
    assert_eq!(pair.client.poll_close(), Some(mux_proto::Close::Both));
    pair.drain_events();
    pair.assert_failed(id, ChannelFailure::ConnectionLost, true);
    let after = pair.client.exec(pair.now, exec("y"));
    pair.drain_events();
    pair.assert_failed(after, ChannelFailure::ConnectionLost, false);
    pair.eof();
    assert_eq!(pair.error, None);
}

use mux_proto::Protocol as _;
