//! Channels: numbers, windows, results, floods.

use std::time::Duration;

use bytes::Bytes;
use mux_ssh::client::{ChannelFailure, ChannelViolation, Event, Stdin};
use mux_ssh::message;
use mux_ssh::server::{self, Act, Moment, Plan, Point};
use mux_ssh::{Error, Violation};

use super::Run::Servers;
use super::harness::{Case, End, Pair, Reply, Turn, drop_ref, payload};
use super::table_rows;

fn at(point: Point, act: Act) -> Case {
    Case::new(Plan::new().with(point, act))
}

fn after(moment: Moment, payload: impl Into<Bytes>) -> Case {
    at(Point::After(moment, 1), Act::Packet(payload.into()))
}

fn instead(moment: Moment, payload: impl Into<Bytes>) -> Case {
    at(Point::Before(moment, 1), Act::Replace(payload.into()))
}

fn behind_exec(payload: impl Into<Bytes>) -> Case {
    after(Moment::ChannelSuccess, payload)
}

fn flood_behind_exec(payload: Bytes, times: u32) -> Case {
    at(
        Point::After(Moment::ChannelSuccess, 1),
        Act::Flood { payload, times },
    )
}

/// The number that the client gave to the channel of its first command.
const CHANNEL: u32 = 0;
/// What floods consist of.
const MANY: u32 = 100_000;

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

fn adjust(channel: u32, bytes: u32) -> Bytes {
    payload(|w| {
        drop_ref(
            w.byte(message::CHANNEL_WINDOW_ADJUST)
                .uint32(channel)
                .uint32(bytes),
        )
    })
}

fn confirm(number: u32, window: u32, max_packet: u32) -> Bytes {
    payload(|w| {
        w.byte(message::CHANNEL_OPEN_CONFIRMATION)
            .uint32(CHANNEL)
            .uint32(number)
            .uint32(window)
            .uint32(max_packet);
    })
}

fn refuse(channel: u32, code: u32, text: &str) -> Bytes {
    payload(|w| {
        w.byte(message::CHANNEL_OPEN_FAILURE)
            .uint32(channel)
            .uint32(code)
            .string(text)
            .string("");
    })
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

fn global(want_reply: bool) -> Bytes {
    payload(|w| {
        drop_ref(
            w.byte(message::GLOBAL_REQUEST)
                .string("unheard-of")
                .boolean(want_reply)
                .raw(b"xyz"),
        )
    })
}

fn with_input(mut case: Case) -> Case {
    case.stdin = Stdin::Open;
    case
}

fn one_result(pair: &mut Pair) {
    let results = pair
        .seen
        .count(|event| matches!(event, Event::ExitStatus { .. } | Event::ExitSignal { .. }));
    assert_eq!(results, 1);
}

fn may_have_run(pair: &mut Pair) {
    assert_eq!(pair.seen.failure(), Some((ChannelFailure::ConnectionLost, true)));
}

/// The largest window and packet of a server that is told of them in a signal, cut to what a terminal bears.
fn signal_is_cut(pair: &mut Pair) {
    let told = pair.seen.events.iter().find_map(|event| match event {
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

table_rows! { Connection:

channels_of_every_type_that_nobody_asked_for, Type, "channels of every type, and of none" =>
    Servers(|| {
        let kinds = [
            "session", "x11", "forwarded-tcpip", "direct-tcpip", "forwarded-streamlocal@openssh.com",
            "direct-streamlocal@openssh.com", "auth-agent", "tun@openssh.com", "", "\u{1b}[31m",
        ];
        let plan = kinds.into_iter().fold(Plan::new(), |plan, kind| {
            plan.with(Point::After(Moment::AuthSuccess, 1), Act::Packet(open(kind)))
        });
        vec![Case::new(plan).also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_OPEN_FAILURE), 10))]
    });
channels_without_end, Flood, "100,000 channels: all are refused, and nothing piles up" =>
    Servers(|| vec![flood_behind_exec(open("x11"), MANY)
        .also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_OPEN_FAILURE), 100_000))]);
a_channel_that_is_opened_and_not_described, Length, "an opening that ends in each of its fields" =>
    Servers(|| {
        let whole = open("session");
        (1..whole.len()).map(|len| after(Moment::AuthSuccess, whole.slice(..len))
            .violates(Violation::Truncated)).collect()
    });

output_beyond_the_window, Length, "96 KiB on either stream where the window is 64" =>
    Servers(|| [data(CHANNEL, 32 * 1024), extended(1, 32 * 1024)].map(|payload| {
        let mut case = flood_behind_exec(payload, 3).reply(Reply::Nothing)
            .violates(ChannelViolation::Window);
        case.consume = false;
        case
    }).into());
output_beyond_the_size_of_a_packet, Length, "a packet one byte larger than was announced" =>
    Servers(|| vec![
        behind_exec(data(CHANNEL, 32 * 1024 + 1)).violates(ChannelViolation::PacketSize),
        behind_exec(extended(1, 32 * 1024 + 1)).violates(ChannelViolation::PacketSize),
    ]);
output_that_says_to_be_longer, Length, "output whose length goes beyond its packet, and output with bytes behind it" =>
    Servers(|| {
        let lies = payload(|w| drop_ref(w.byte(message::CHANNEL_DATA).uint32(CHANNEL).uint32(u32::MAX).raw(b"x")));
        let longer = [&data(CHANNEL, 3)[..], b"x"].concat();
        vec![
            behind_exec(lies).violates(Violation::Truncated),
            behind_exec(longer).violates(Violation::TrailingBytes),
        ]
    });
empty_output_without_end, Flood, "100,000 packets of no byte on either stream" =>
    Servers(|| vec![
        flood_behind_exec(data(CHANNEL, 0), MANY),
        flood_behind_exec(extended(1, 0), MANY),
    ]);
output_of_one_byte_without_end, Flood, "100,000 packets of one byte" =>
    Servers(|| vec![flood_behind_exec(data(CHANNEL, 1), MANY).reply(Reply::Nothing).end(End::Waits)
        .also(|pair| assert_eq!(pair.seen.stdout.len(), 100_000))]);
output_of_an_unknown_stream, Type, "extended data of types 0, 2, 7 and 2^32 - 1" =>
    Servers(|| [0, 2, 7, u32::MAX].map(|kind| {
        behind_exec(extended(kind, 1)).violates(ChannelViolation::DataType(kind))
    }).into());
output_after_its_end, Order, "output behind EOF, on either stream" =>
    Servers(|| vec![
        after(Moment::Eof, data(CHANNEL, 1)).violates(ChannelViolation::DataAfterEof),
        after(Moment::Eof, extended(1, 1)).violates(ChannelViolation::DataAfterEof),
    ]);
output_before_the_command, Time, "output and results on a channel before a command was sent on it" =>
    // Such a server has a channel opened for it and nothing more, until it confirms.
    Servers(|| [data(CHANNEL, 1), status(0)].map(|packet| {
        after(Moment::OpenConfirmation, packet).ident("SSH-2.0-Unheard_1")
            .violates(ChannelViolation::BeforeCommand)
    }).into());
output_before_the_channel, Time, "output on a channel that was asked for and is not there yet" =>
    Servers(|| vec![
        at(Point::Before(Moment::OpenConfirmation, 1), Act::Packet(data(CHANNEL, 1)))
            .violates(ChannelViolation::UnknownChannel),
    ]);
the_end_of_output_twice_or_never, Harmless, "EOF twice, EOF never, 100,000 times EOF" =>
    Servers(|| vec![
        after(Moment::Eof, about(message::CHANNEL_EOF, CHANNEL))
            .also(|pair| assert_eq!(pair.seen.count(|event| matches!(event, Event::Eof { .. })), 1)),
        at(Point::Before(Moment::Eof, 1), Act::Drop),
        at(Point::After(Moment::Eof, 1), Act::Flood { payload: about(message::CHANNEL_EOF, CHANNEL), times: MANY }),
    ]);

messages_about_channels_that_are_not_there, Id, "channels 1, 77, 2^31 - 1 and 2^32 - 1, in every message that names one" =>
    Servers(|| [1, 77, 0x7fff_ffff, u32::MAX].into_iter().flat_map(|channel| {
        let mut messages = vec![data(channel, 1), adjust(channel, 1), refuse(channel, 1, "no")];
        messages.extend([message::CHANNEL_EOF, message::CHANNEL_CLOSE, message::CHANNEL_SUCCESS, message::CHANNEL_FAILURE]
            .map(|number| about(number, channel)));
        messages.into_iter().map(|message| behind_exec(message).violates(ChannelViolation::UnknownChannel))
            .collect::<Vec<_>>()
    }).collect());
a_channel_that_is_confirmed_or_refused_twice, Order, "a second confirmation, and a refusal behind one" =>
    Servers(|| [confirm(0, 1 << 20, 1 << 15), refuse(CHANNEL, 1, "no")]
        .map(|packet| behind_exec(packet).violates(ChannelViolation::NotOpening)).into());
a_channel_with_an_unusual_number, Id, "channel 5 to a client that has sent its command to channel 0: what is on another number is not ours" =>
    Servers(|| vec![
        instead(Moment::OpenConfirmation, confirm(5, 1 << 20, 1 << 15))
            .violates(ChannelViolation::Number).also(may_have_run),
        instead(Moment::OpenConfirmation, confirm(u32::MAX, 1 << 20, 1 << 15))
            .violates(ChannelViolation::Number).also(may_have_run),
    ]);
a_confirmation_that_is_cut, Length, "a confirmation that ends in each of its fields" =>
    Servers(|| {
        let whole = confirm(0, 1 << 20, 1 << 15);
        (1..whole.len()).map(|len| instead(Moment::OpenConfirmation, whole.slice(..len))
            .violates(Violation::Truncated)).collect()
    });
a_confirmation_without_room_for_a_packet, Length, "packets of at most no byte" =>
    Servers(|| vec![
        instead(Moment::OpenConfirmation, confirm(0, 1 << 20, 0)).violates(ChannelViolation::PacketSize),
    ]);
a_confirmation_with_room_for_one_byte, Harmless, "packets of at most one byte, in a window of 2^32 - 1" =>
    Servers(|| vec![
        with_input(instead(Moment::OpenConfirmation, confirm(0, u32::MAX - (1 << 20), 1)))
            .reply(Reply::Cat)
            .script([Turn::Input(1000), Turn::InputEnds])
            .end(End::Lives)
            .also(|pair| assert_eq!(pair.seen.stdout.len(), 1000)),
    ]);
a_refusal_with_huge_words, Length, "a refused channel with 200,000 letters about it and a reason that nobody knows" =>
    Servers(|| vec![
        instead(Moment::OpenConfirmation, refuse(CHANNEL, u32::MAX, &"\u{1b}[31m".repeat(40_000)))
            .reply(Reply::Nothing).end(End::MayFail(|_| true))
            .also(|pair| {
                let Some((ChannelFailure::Refused { code: u32::MAX, text }, false)) = pair.seen.failure() else {
                    panic!("{:?}", pair.seen.failure())
                };
                assert!(text.len() <= 1024);
            }),
    ]);
a_window_beyond_its_maximum, Length, "twice 2^32 - 1 bytes of window" =>
    Servers(|| vec![Case::new(
        Plan::new()
            .with(Point::After(Moment::WindowAdjust, 1), Act::Packet(adjust(CHANNEL, u32::MAX)))
            .with(Point::After(Moment::WindowAdjust, 1), Act::Packet(adjust(CHANNEL, u32::MAX))),
    ).violates(ChannelViolation::WindowOverflow)]);
a_window_that_grows_by_nothing, Flood, "100,000 times no byte more" =>
    Servers(|| vec![flood_behind_exec(adjust(CHANNEL, 0), MANY)]);

a_slow_consumer_holds_one_window, Stall, "10 MiB of output that nobody takes: no more than the first window comes" =>
    Servers(|| {
        let mut case = Case::good().reply(Reply::Bulk(10 << 20));
        case.consume = false;
        vec![
            case.clone().end(End::Waits).also(|pair| {
                assert_eq!((pair.seen.stdout.len(), pair.client.window_growth()), (64 * 1024, 0));
            }),
            case.script([Turn::Consume]).end(End::Lives)
                .also(|pair| assert_eq!(pair.seen.stdout.len(), 10 << 20)),
        ]
    });
a_quick_consumer_gets_a_larger_window, Harmless, "32 MiB of output: the window grows, and never beyond its limit" =>
    Servers(|| vec![Case::good().reply(Reply::Bulk(32 << 20)).end(End::Lives).also(|pair| {
        assert_eq!(pair.seen.stdout.len(), 32 << 20);
        assert!(pair.client.window_growth() <= 2 << 20);
    })]);

requests_with_lengths_that_are_not_there, Length, "requests whose names or results go beyond their packet" =>
    Servers(|| {
        let long = payload(|w| drop_ref(w.byte(message::CHANNEL_REQUEST).uint32(CHANNEL).uint32(u32::MAX).raw(b"x")));
        [
            long,
            request("exit-status", false, b"\0"),
            request("exit-signal", false, &u32::MAX.to_be_bytes()),
            request("exit-signal", false, b"\0\0\0\x04TERM\0\xff\xff\xff\xff"),
        ].map(|payload| behind_exec(payload).violates(Violation::Truncated)).into()
    });
a_signal_with_huge_words, Length, "a signal of 50,000 letters with a message of 100,000" =>
    Servers(|| {
        let rest = payload(|w| {
            w.string("S".repeat(50_000)).boolean(true).string("m\u{1b}".repeat(50_000)).string("");
        });
        vec![instead(Moment::ExitReport, request("exit-signal", false, &rest))
            .end(End::Lives).also(signal_is_cut)]
    });
the_first_result_counts, Order, "a second result, another one, 100,000 of them" =>
    Servers(|| vec![
        after(Moment::ExitReport, status(7)).also(one_result),
        after(Moment::ExitReport, request("exit-signal", false, b"\0\0\0\x04KILL\0\0\0\0\0\0\0\0\0")).also(one_result),
        at(Point::After(Moment::ExitReport, 1), Act::Flood { payload: status(7), times: MANY }).also(one_result),
    ]);
a_result_that_wants_an_answer, Harmless, "exit-status with the wish for an answer" =>
    Servers(|| vec![
        instead(Moment::ExitReport, request("exit-status", true, &0_u32.to_be_bytes()))
            .also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_FAILURE), 1)),
    ]);
a_result_after_the_channel_is_closed, Time, "a result behind CLOSE" =>
    Servers(|| vec![after(Moment::ChannelClose, status(7)).violates(ChannelViolation::UnknownChannel)]);
no_result_at_all, Stall, "the end of the channel without a result" =>
    Servers(|| vec![at(Point::Before(Moment::ExitReport, 1), Act::Drop).end(End::Lives).also(|pair| {
        assert_eq!(pair.seen.count(|event| matches!(event, Event::ExitStatus { .. })), 0);
        assert_eq!(pair.seen.count(|event| matches!(event, Event::ChannelClosed { .. })), 1);
    })]);
the_result_before_the_output, Order, "exit-status ahead of the output, as OpenSSH does it: nothing of it is lost" =>
    Servers(|| vec![Case::good().reply(Reply::StatusFirst).also(|pair| {
        let at = |wanted: fn(&Event) -> bool| pair.seen.events.iter().position(wanted).unwrap();
        let status = at(|event| matches!(event, Event::ExitStatus { .. }));
        assert!(status < at(|event| matches!(event, Event::Eof { .. })));
    })]);
unknown_requests_are_refused_when_they_want_an_answer, Type, "keepalives on a channel, with and without the wish for an answer" =>
    Servers(|| {
        let ask = |want_reply| Act::Packet(request("keepalive@openssh.com", want_reply, b""));
        let point = Point::After(Moment::ChannelSuccess, 1);
        vec![Case::new(Plan::new().with(point, ask(true)).with(point, ask(false)).with(point, ask(true)))
            .also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_FAILURE), 2))]
    });
requests_without_end, Flood, "100,000 requests on a channel that want an answer" =>
    Servers(|| vec![flood_behind_exec(request("keepalive@openssh.com", true, b""), MANY)
        .also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_FAILURE), 100_000))]);
requests_that_only_a_server_grants, Type, "exec, shell and subsystem asked of the client" =>
    Servers(|| ["exec", "shell", "subsystem", "pty-req"].map(|name| {
        behind_exec(request(name, true, b"\0\0\0\x02id"))
            .also(|pair| assert_eq!(pair.seen.answers(message::CHANNEL_FAILURE), 1))
    }).into());
answers_that_nobody_waits_for, Time, "SUCCESS and FAILURE on a channel without a request" =>
    Servers(|| [message::CHANNEL_SUCCESS, message::CHANNEL_FAILURE]
        .map(|number| behind_exec(about(number, CHANNEL)).violates(ChannelViolation::UnaskedReply))
        .into());
answers_of_the_connection_that_nobody_waits_for, Flood, "100,000 answers to global requests that were not made" =>
    Servers(|| [message::REQUEST_SUCCESS, message::REQUEST_FAILURE].map(|number| {
        at(Point::After(Moment::ChannelSuccess, 1), Act::Flood { payload: vec![number].into(), times: MANY })
            .end(End::MayFail(|error| matches!(error, Error::Violation(_))))
    }).into());
no_answer_to_the_command, Harmless, "output and a result without the confirmation that the command runs" =>
    Servers(|| vec![at(Point::Before(Moment::ChannelSuccess, 1), Act::Drop)]);
the_channel_is_closed_without_an_answer, Order, "CLOSE instead of an answer to the command: it may have run" =>
    Servers(|| vec![
        instead(Moment::ChannelSuccess, about(message::CHANNEL_CLOSE, CHANNEL))
            .reply(Reply::Nothing).end(End::MayFail(|_| true))
            .also(|pair| assert_eq!(pair.seen.failure(), Some((ChannelFailure::ClosedUnanswered, true)))),
    ]);
the_channel_is_closed_twice, Order, "CLOSE behind CLOSE" =>
    Servers(|| vec![
        after(Moment::ChannelClose, about(message::CHANNEL_CLOSE, CHANNEL))
            .violates(ChannelViolation::UnknownChannel),
    ]);
the_channel_is_closed_in_the_middle_of_input, Time, "CLOSE while input is on its way" =>
    Servers(|| vec![
        with_input(Case::good().reply(Reply::Nothing))
            .script([Turn::Input(50_000), Turn::Send(about(message::CHANNEL_CLOSE, CHANNEL), 1), Turn::InputEnds])
            .end(End::MayFail(|_| true))
            .also(|pair| assert!(pair.client.write_stdin(pair.channel, Bytes::from_static(b"x")).is_err())),
    ]);
a_close_that_is_never_answered, Stall, "nothing any more behind the client's CLOSE: the keepalive ends it" =>
    Servers(|| vec![
        at(Point::After(Moment::ChannelSuccess, 1), Act::Stall)
            .reply(Reply::Nothing)
            .script([Turn::CloseChannel].into_iter().chain(vec![Turn::Pass(Duration::from_secs(60)); 10]))
            .fails(Error::Silent),
    ]);

a_command_that_fits_no_packet, Length, "nothing: the client's owner gives a command of 1 MiB" =>
    Servers(|| vec![Case::good().script([Turn::Exec(vec![b'x'; 1 << 20].into())]).also(|pair| {
        assert_eq!(pair.seen.failure(), Some((ChannelFailure::TooLarge, false)));
    })]);
input_for_a_server_that_does_not_read_is_bounded, Stall, "no reading any more behind the confirmation: the owner is told to wait" =>
    Servers(|| vec![
        with_input(at(Point::After(Moment::ChannelSuccess, 1), Act::NeverRead).reply(Reply::Nothing))
            .script([Turn::InputUntilFull])
            .end(End::Waits)
            .also(|pair| {
                assert!(pair.taken_input() <= 1 << 20, "{} bytes", pair.taken_input());
                assert!(pair.client.write_stdin(pair.channel, Bytes::from_static(b"x")).is_err());
            }),
    ]);
input_that_the_server_takes_in_and_gives_no_room_for, Stall, "input is read up to the window of 128 KiB, and nothing of it is given back: not a byte more is sent" =>
    Servers(|| {
        let mut case = with_input(Case::good().reply(Reply::Nothing))
            .script([Turn::InputUntilFull])
            .end(End::Waits)
            .also(|pair| {
                let arrived: usize = pair.seen.server_events.iter().map(|event| match event {
                    server::Event::Stdin { data, .. } => data.len(),
                    _ => 0,
                }).sum();
                assert_eq!(arrived, 128 * 1024);
            });
        case.hoards = true;
        vec![case]
    });
input_and_output_at_once, Harmless, "3 MiB of input, all of which comes back" =>
    Servers(|| vec![
        with_input(Case::good().reply(Reply::Cat))
            .script([Turn::Input(3 << 20), Turn::InputEnds])
            .end(End::Lives)
            .also(|pair| assert_eq!(pair.seen.stdout.len(), 3 << 20)),
    ]);

host_keys_without_end_are_passed_over, Flood, "100,000 host keys for known_hosts" =>
    Servers(|| {
        let keys = payload(|w| {
            w.byte(message::GLOBAL_REQUEST).string("hostkeys-00@openssh.com").boolean(false);
            for _ in 0..4000 {
                w.string(b"\0\0\0\x0bssh-ed25519\0\0\0\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
            }
        });
        vec![at(Point::After(Moment::AuthSuccess, 1), Act::Flood { payload: keys, times: 25 })
            .also(|pair| assert!(!pair.seen.events.iter().any(|event| matches!(event, Event::HostKeys(_)))))]
    });
host_keys_that_come_again_are_told_once, Flood, "the same few host keys 100,000 times" =>
    Servers(|| {
        let keys = payload(|w| {
            drop_ref(w.byte(message::GLOBAL_REQUEST).string("hostkeys-00@openssh.com").boolean(false)
                .string(b"\0\0\0\x0bssh-ed25519\0\0\0\x20xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
        });
        vec![at(Point::After(Moment::AuthSuccess, 1), Act::Flood { payload: keys, times: 100_000 })
            .also(|pair| {
                let told = pair.seen.events.iter().filter(|event| matches!(event, Event::HostKeys(_)));
                assert_eq!(told.count(), 1);
            })]
    });
unknown_global_requests_are_refused, Flood, "100,000 global requests that want an answer" =>
    Servers(|| vec![flood_behind_exec(global(true), MANY)
        .also(|pair| assert_eq!(pair.seen.answers(message::REQUEST_FAILURE), 100_000))]);
unknown_global_requests_without_an_answer, Flood, "100,000 global requests that want none" =>
    Servers(|| vec![flood_behind_exec(global(false), MANY)
        .also(|pair| assert_eq!(pair.seen.answers(message::REQUEST_FAILURE), 0))]);

a_command_that_is_refused, Harmless, "FAILURE for the command: it did not run" =>
    Servers(|| vec![
        instead(Moment::ChannelSuccess, about(message::CHANNEL_FAILURE, CHANNEL))
            .reply(Reply::Nothing).end(End::Lives)
            .also(|pair| assert_eq!(pair.seen.failure(), Some((ChannelFailure::ExecRefused, false)))),
    ]);
a_server_without_sessions, Harmless, "every channel refused" =>
    Servers(|| vec![
        Case::good().server(|server| server.sessions.max_sessions = 0).end(End::MayFail(|_| true))
            .also(|pair| {
                assert!(pair.seen.failure().is_some(), "{:?}", pair.seen.events);
                assert_eq!(pair.seen.execs(), 0);
            }),
    ]);
a_lost_connection_may_have_run_the_command, Time, "the end of the connection at any time after the command was sent" =>
    Servers(|| vec![
        at(Point::Before(Moment::ChannelSuccess, 1), Act::Close).fails(Error::UnexpectedEof).also(may_have_run),
        at(Point::After(Moment::ChannelSuccess, 1), Act::Close).fails(Error::UnexpectedEof).also(may_have_run),
    ]);
}
