//! Channels: numbers, windows, results, floods.

use bytes::Bytes;
use mux_ssh::client::{ChannelFailure, ChannelViolation, Event, Exec, Stdin, StreamKind};
use mux_ssh::message;
use mux_ssh::server::{self, Act, Moment, Plan, Point};
use mux_ssh::{Error, Violation};

use crate::harness::{Case, Reply, drop_ref, fails, payload, violates, works};

fn behind_exec(payload: Bytes) -> Plan {
    Plan::new().with(Point::After(Moment::ChannelSuccess, 1), Act::Packet(payload))
}

fn flood_behind_exec(payload: Bytes, times: u32) -> Plan {
    Plan::new().with(
        Point::After(Moment::ChannelSuccess, 1),
        Act::Flood { payload, times },
    )
}

/// The number that the client gave to the channel of its first command.
const CHANNEL: u32 = 0;

fn data(channel: u32, len: usize) -> Bytes {
    payload(|w| {
        drop_ref(
            w.byte(message::CHANNEL_DATA)
                .uint32(channel)
                .string(vec![b'x'; len]),
        )
    })
}

fn extended(kind: u32, len: usize) -> Bytes {
    payload(|w| {
        w.byte(message::CHANNEL_EXTENDED_DATA)
            .uint32(CHANNEL)
            .uint32(kind)
            .string(vec![b'x'; len]);
    })
}

fn about(number: u8, channel: u32) -> Bytes {
    payload(|w| drop_ref(w.byte(number).uint32(channel)))
}

fn open(kind: &str) -> Bytes {
    payload(|w| {
        drop_ref(
            w.byte(message::CHANNEL_OPEN)
                .string(kind)
                .uint32(9)
                .uint32(1 << 20)
                .uint32(1 << 15),
        )
    })
}

fn request(name: &str, want_reply: bool, rest: &[u8]) -> Bytes {
    payload(|w| {
        w.byte(message::CHANNEL_REQUEST)
            .uint32(CHANNEL)
            .string(name)
            .boolean(want_reply)
            .raw(rest);
    })
}

fn status(status: u32) -> Bytes {
    request("exit-status", false, &status.to_be_bytes())
}

/// Line 26.
#[test]
fn channels_of_every_type_that_nobody_asked_for() {
    let kinds = [
        "session",
        "x11",
        "forwarded-tcpip",
        "direct-tcpip",
        "auth-agent",
        "tun@openssh.com",
        "",
        "\u{1b}[31m",
    ];
    let plan = kinds.into_iter().fold(Plan::new(), |plan, kind| {
        plan.with(Point::After(Moment::AuthSuccess, 1), Act::Packet(open(kind)))
    });
    let seen = works(plan);
    assert_eq!(seen.answers(message::CHANNEL_OPEN_FAILURE), kinds.len());
}

/// Line 26: 100,000 of them are all refused, and nothing piles up.
#[test]
fn channels_without_end() {
    let seen = works(flood_behind_exec(open("x11"), 100_000));
    assert_eq!(seen.answers(message::CHANNEL_OPEN_FAILURE), 100_000);
}

/// Line 27: the first window is 64 KiB.
#[test]
fn output_beyond_the_window() {
    for payload in [data(CHANNEL, 32 * 1024), extended(1, 32 * 1024)] {
        let mut case = Case::new(flood_behind_exec(payload, 3)).reply(Reply::Nothing);
        case.consume = false;
        fails(case, Violation::from(ChannelViolation::Window));
    }
}

/// Line 27.
#[test]
fn output_beyond_the_size_of_a_packet() {
    violates(
        behind_exec(data(CHANNEL, 32 * 1024 + 1)),
        ChannelViolation::PacketSize,
    );
}

/// Line 27.
#[test]
fn empty_output_without_end() {
    works(flood_behind_exec(data(CHANNEL, 0), 100_000));
}

/// Line 27.
#[test]
fn output_of_an_unknown_stream() {
    for kind in [0, 2, 7, u32::MAX] {
        violates(behind_exec(extended(kind, 1)), ChannelViolation::DataType(kind));
    }
}

/// Line 27.
#[test]
fn output_after_its_end() {
    let plan = Plan::new().with(Point::After(Moment::Eof, 1), Act::Packet(data(CHANNEL, 1)));
    violates(plan, ChannelViolation::DataAfterEof);
}

/// Line 27.
#[test]
fn the_end_of_output_twice_or_never() {
    let twice = Plan::new().with(
        Point::After(Moment::Eof, 1),
        Act::Packet(about(message::CHANNEL_EOF, CHANNEL)),
    );
    let seen = works(twice);
    assert_eq!(
        seen.events
            .iter()
            .filter(|event| matches!(event, Event::Eof { .. }))
            .count(),
        1
    );
    works(Plan::new().with(Point::Before(Moment::Eof, 1), Act::Drop));
}

/// Wrong numbers.
#[test]
fn messages_about_channels_that_are_not_there() {
    let unknown = ChannelViolation::UnknownChannel;
    for channel in [77, 0x7fff_ffff, u32::MAX] {
        violates(behind_exec(data(channel, 1)), unknown);
        for number in [
            message::CHANNEL_EOF,
            message::CHANNEL_CLOSE,
            message::CHANNEL_SUCCESS,
        ] {
            violates(behind_exec(about(number, channel)), unknown);
        }
        let adjust = payload(|w| drop_ref(w.byte(message::CHANNEL_WINDOW_ADJUST).uint32(channel).uint32(1)));
        violates(behind_exec(adjust), unknown);
    }
}

#[test]
fn a_channel_that_is_confirmed_or_refused_twice() {
    let confirm = payload(|w| {
        w.byte(message::CHANNEL_OPEN_CONFIRMATION)
            .uint32(CHANNEL)
            .uint32(0)
            .uint32(1 << 20)
            .uint32(1 << 15);
    });
    violates(behind_exec(confirm), ChannelViolation::NotOpening);
    let refuse = payload(|w| {
        w.byte(message::CHANNEL_OPEN_FAILURE)
            .uint32(CHANNEL)
            .uint32(1)
            .string("no")
            .string("");
    });
    violates(behind_exec(refuse), ChannelViolation::NotOpening);
}

/// The command went to number 0 before the server had named it. What is on another number is not ours.
#[test]
fn a_channel_with_an_unusual_number() {
    let confirm = payload(|w| {
        w.byte(message::CHANNEL_OPEN_CONFIRMATION)
            .uint32(CHANNEL)
            .uint32(5)
            .uint32(1 << 20)
            .uint32(1 << 15);
    });
    let plan = Plan::new().with(Point::Before(Moment::OpenConfirmation, 1), Act::Replace(confirm));
    let seen = fails(Case::new(plan), Violation::from(ChannelViolation::Number));
    let may_have_run = seen.events.iter().any(|event| {
        matches!(
            event,
            Event::ChannelFailed {
                may_have_run: true,
                ..
            }
        )
    });
    assert!(may_have_run);
}

#[test]
fn a_confirmation_without_room_for_a_packet() {
    let confirm = payload(|w| {
        w.byte(message::CHANNEL_OPEN_CONFIRMATION)
            .uint32(CHANNEL)
            .uint32(0)
            .uint32(1 << 20)
            .uint32(0);
    });
    let plan = Plan::new().with(Point::Before(Moment::OpenConfirmation, 1), Act::Replace(confirm));
    violates(plan, ChannelViolation::PacketSize);
}

#[test]
fn a_window_beyond_its_maximum() {
    let adjust = payload(|w| {
        drop_ref(
            w.byte(message::CHANNEL_WINDOW_ADJUST)
                .uint32(CHANNEL)
                .uint32(u32::MAX),
        )
    });
    let plan = Plan::new()
        .with(Point::After(Moment::WindowAdjust, 1), Act::Packet(adjust.clone()))
        .with(Point::After(Moment::WindowAdjust, 1), Act::Packet(adjust));
    violates(plan, ChannelViolation::WindowOverflow);
}

/// Line 28: who takes nothing is sent no more than the first window; who starts taking gets all of it.
#[test]
fn a_slow_consumer_holds_one_window() {
    let mut case = Case::good().reply(Reply::Bulk(10 << 20));
    case.consume = false;
    let mut pair = case.start();
    pair.settle();
    assert_eq!(pair.seen.stdout.len(), 64 * 1024);
    assert_eq!(pair.client.window_growth(), 0);
    pair.set_consume(true);
    pair.client.consume(pair.channel, StreamKind::Stdout, 64 * 1024);
    pair.settle();
    pair.check_invariants();
    assert_eq!(
        (pair.seen.error.clone(), pair.seen.stdout.len()),
        (None, 10 << 20)
    );
}

/// Line 28: a consumer that keeps up is given more than the first window, and never more than the limit.
#[test]
fn a_quick_consumer_gets_a_larger_window() {
    let mut pair = Case::good().reply(Reply::Bulk(32 << 20)).start();
    pair.settle();
    assert_eq!(pair.seen.stdout.len(), 32 << 20);
    assert!(pair.client.window_growth() <= 2 << 20);
}

/// Line 29.
#[test]
fn requests_with_lengths_that_are_not_there() {
    let long = payload(|w| {
        drop_ref(
            w.byte(message::CHANNEL_REQUEST)
                .uint32(CHANNEL)
                .uint32(u32::MAX)
                .raw(b"x"),
        )
    });
    violates(behind_exec(long), Violation::Truncated);
    violates(
        behind_exec(request("exit-status", false, b"\0")),
        Violation::Truncated,
    );
    violates(
        behind_exec(request("exit-signal", false, &u32::MAX.to_be_bytes())),
        Violation::Truncated,
    );
}

/// Line 29.
#[test]
fn a_signal_with_huge_words() {
    let rest = payload(|w| {
        w.string("S".repeat(50_000))
            .boolean(true)
            .string("m\u{1b}".repeat(50_000))
            .string("");
    });
    let plan = Plan::new().with(
        Point::Before(Moment::ExitReport, 1),
        Act::Replace(request("exit-signal", false, &rest)),
    );
    let seen = Case::new(plan).run();
    assert_eq!(seen.error, None);
    let told = seen.events.iter().find_map(|event| match event {
        Event::ExitSignal {
            signal,
            core_dumped: true,
            message,
            ..
        } => Some((signal.len(), message.len())),
        _ => None,
    });
    let (signal, message) = told.unwrap();
    assert!(signal <= 64 && message <= 1024, "{signal} {message}");
}

/// Line 29.
#[test]
fn the_first_result_counts() {
    let plan = Plan::new().with(Point::After(Moment::ExitReport, 1), Act::Packet(status(7)));
    let seen = works(plan);
    assert_eq!(
        seen.events
            .iter()
            .filter(|event| matches!(event, Event::ExitStatus { .. }))
            .count(),
        1
    );
}

/// Line 29.
#[test]
fn a_result_after_the_channel_is_closed() {
    let plan = Plan::new().with(Point::After(Moment::ChannelClose, 1), Act::Packet(status(7)));
    violates(plan, ChannelViolation::UnknownChannel);
}

/// Line 29.
#[test]
fn no_result_at_all() {
    let seen = Case::new(Plan::new().with(Point::Before(Moment::ExitReport, 1), Act::Drop)).run();
    assert_eq!(seen.error, None);
    assert!(
        !seen
            .events
            .iter()
            .any(|event| matches!(event, Event::ExitStatus { .. }))
    );
    assert!(
        seen.events
            .iter()
            .any(|event| matches!(event, Event::ChannelClosed { .. }))
    );
}

/// Line 29.
#[test]
fn unknown_requests_are_refused_when_they_want_an_answer() {
    let ask = |want_reply| request("keepalive@openssh.com", want_reply, b"");
    let plan = Plan::new()
        .with(Point::After(Moment::ChannelSuccess, 1), Act::Packet(ask(true)))
        .with(Point::After(Moment::ChannelSuccess, 1), Act::Packet(ask(false)))
        .with(Point::After(Moment::ChannelSuccess, 1), Act::Packet(ask(true)));
    assert_eq!(works(plan).answers(message::CHANNEL_FAILURE), 2);
}

#[test]
fn answers_that_nobody_waits_for() {
    for number in [message::CHANNEL_SUCCESS, message::CHANNEL_FAILURE] {
        violates(
            behind_exec(about(number, CHANNEL)),
            ChannelViolation::UnaskedReply,
        );
    }
}

/// Line 30.
#[test]
fn the_result_before_the_output() {
    let seen = Case::good().reply(Reply::StatusFirst).run();
    seen.assert_worked();
    let at = |wanted: fn(&Event) -> bool| seen.events.iter().position(wanted).unwrap();
    assert!(
        at(|event| matches!(event, Event::ExitStatus { .. }))
            < at(|event| matches!(event, Event::Eof { .. }))
    );
}

/// Line 31.
#[test]
fn a_command_that_fits_no_packet() {
    let mut pair = Case::good().start();
    let huge = Exec {
        command: vec![b'x'; 1 << 20].into(),
        ..Exec::default()
    };
    let channel = pair.client.exec(pair.now, huge);
    pair.settle();
    let told = pair.seen.events.iter().find_map(|event| match event {
        Event::ChannelFailed {
            channel: failed,
            reason,
            may_have_run,
        } if *failed == channel => Some((reason.clone(), *may_have_run)),
        _ => None,
    });
    assert_eq!(told, Some((ChannelFailure::TooLarge, false)));
    pair.seen.assert_worked();
}

/// Line 31: a server that reads nothing gets no more than its window, and the owner is told to wait.
#[test]
fn input_for_a_server_that_does_not_read_is_bounded() {
    let plan = Plan::new().with(Point::After(Moment::ChannelSuccess, 1), Act::NeverRead);
    let mut case = Case::new(plan).reply(Reply::Nothing);
    case.stdin = Stdin::Open;
    let mut pair = case.start();
    pair.settle();
    let mut written = 0;
    loop {
        let room = pair.client.stdin_room(pair.channel);
        if room == 0 {
            break;
        }
        pair.client
            .write_stdin(pair.channel, vec![b'x'; room].into())
            .unwrap();
        written += room;
        pair.settle();
        assert!(
            written <= 1 << 20,
            "{written} bytes taken for a server that reads nothing"
        );
    }
    let too_much = pair.client.write_stdin(pair.channel, Bytes::from_static(b"x"));
    assert!(too_much.is_err());
}

#[test]
fn input_and_output_at_once() {
    let mut case = Case::good().reply(Reply::Cat);
    case.stdin = Stdin::Open;
    let mut pair = case.start();
    let mut left = 3 << 20;
    while left > 0 {
        let len = pair.client.stdin_room(pair.channel).min(left);
        assert!(len > 0, "no room after everything was delivered");
        pair.client
            .write_stdin(pair.channel, vec![b'x'; len].into())
            .unwrap();
        left -= len;
        pair.settle();
    }
    pair.client.finish_stdin(pair.channel);
    pair.settle();
    pair.check_invariants();
    assert_eq!((pair.seen.error.clone(), pair.seen.stdout.len()), (None, 3 << 20));
}

/// Line 32.
#[test]
fn host_keys_without_end_are_passed_over() {
    let keys = payload(|w| {
        w.byte(message::GLOBAL_REQUEST)
            .string("hostkeys-00@openssh.com")
            .boolean(false);
        for _ in 0..4000 {
            w.string(b"\0\0\0\x0bssh-ed25519\0\0\0\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        }
    });
    works(Plan::new().with(
        Point::After(Moment::AuthSuccess, 1),
        Act::Flood {
            payload: keys,
            times: 25,
        },
    ));
}

/// Line 32.
#[test]
fn unknown_global_requests_are_refused() {
    let ask = payload(|w| {
        drop_ref(
            w.byte(message::GLOBAL_REQUEST)
                .string("unheard-of")
                .boolean(true)
                .raw(b"xyz"),
        )
    });
    let seen = works(flood_behind_exec(ask, 100_000));
    assert_eq!(seen.answers(message::REQUEST_FAILURE), 100_000);
}

#[test]
fn a_command_that_is_refused() {
    let plan = Plan::new().with(
        Point::Before(Moment::ChannelSuccess, 1),
        Act::Replace(about(message::CHANNEL_FAILURE, CHANNEL)),
    );
    let seen = Case::new(plan).reply(Reply::Nothing).run();
    let told = seen.events.iter().find_map(|event| match event {
        Event::ChannelFailed {
            reason, may_have_run, ..
        } => Some((reason.clone(), *may_have_run)),
        _ => None,
    });
    assert_eq!(told, Some((ChannelFailure::ExecRefused, false)));
}

#[test]
fn a_server_without_sessions() {
    let seen = Case::good()
        .server(|server| server.sessions.max_sessions = 0)
        .run();
    let told = seen.events.iter().find_map(|event| match event {
        Event::ChannelFailed { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    assert!(told.is_some(), "{:?}", seen.events);
    assert!(
        !seen
            .server_events
            .iter()
            .any(|event| matches!(event, server::Event::Exec { .. }))
    );
}

/// Whatever ends a connection after the command was sent leaves it open whether the command ran.
#[test]
fn a_lost_connection_may_have_run_the_command() {
    let plan = Plan::new().with(Point::Before(Moment::ChannelSuccess, 1), Act::Close);
    let seen = fails(Case::new(plan), Error::UnexpectedEof);
    let told = seen.events.iter().find_map(|event| match event {
        Event::ChannelFailed {
            reason, may_have_run, ..
        } => Some((reason.clone(), *may_have_run)),
        _ => None,
    });
    assert_eq!(told, Some((ChannelFailure::ConnectionLost, true)));
}
