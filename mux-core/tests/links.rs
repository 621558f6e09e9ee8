//! Links: how they are read, paused, flushed and closed.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use bytes::Bytes;
use common::{Collected, Failed, Said, Script, idle, link_and_peer, pattern, run, stream_pair};
use mux_core::{Driver, Event, LinkError, Stream};
use mux_proto::{Close, Raw};

const MIB: usize = 1024 * 1024;

#[test]
fn bytes_arrive_whole_and_in_order_both_ways() {
    let mut driver = Driver::new().unwrap();
    let (one, other) = stream_pair();
    let (one, other) = (
        driver.add(one, Raw::new()).unwrap(),
        driver.add(other, Raw::new()).unwrap(),
    );
    let (to_one, to_other) = (pattern(3 * MIB, 1), pattern(2 * MIB, 2));
    for (key, data) in [(other, &to_one), (one, &to_other)] {
        let raw = driver.protocol(key).unwrap();
        raw.send(Bytes::copy_from_slice(data));
        raw.finish();
    }
    let (mut at_one, mut at_other, mut closed) = (Collected::default(), Collected::default(), 0);
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(key, event) => {
            let at = if key == one { &mut at_one } else { &mut at_other };
            at.take(driver.protocol(key).unwrap(), event);
            false
        }
        Event::Closed(_, _, result) => {
            assert_eq!(result, Ok(()), "both directions had ended");
            closed += 1;
            closed == 2
        }
        event => panic!("{event:?}"),
    });
    assert!(at_one.data == to_one && at_one.eof);
    assert!(at_other.data == to_other && at_other.eof);
}

#[test]
fn a_connection_starts_from_the_address_that_it_is_bound_to() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let from = "127.0.0.9:0".parse().unwrap();
    let connecting = driver.connect_from(from, to, Raw::new()).unwrap();
    run(
        &mut driver,
        |_, _, event| matches!(event, Event::Connected(key) if key == connecting),
    );
    let (_stream, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), from.ip());
    // Of the block that is set aside for documentation (RFC 5737): nobody has it.
    let foreign = "192.0.2.1:0".parse().unwrap();
    let refused = driver.connect_from(foreign, to, Raw::new()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AddrNotAvailable);
    // What the server says is told as ever.
    drop(listener);
    driver.connect_from(from, to, Raw::new()).unwrap();
    run(&mut driver, |_, _, event| {
        matches!(
            event,
            Event::Closed(_, _, Err(LinkError::Io(ErrorKind::ConnectionRefused)))
        )
    });
}

#[test]
fn a_protocol_that_consumes_a_packet_and_returns_no_event_is_called_again() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(
        &mut driver,
        Script {
            packet: 4,
            loud: b'!',
            ..Script::default()
        },
    );
    peer.write_all(b"one.two.!six").unwrap();
    run(&mut driver, |_, _, event| match event {
        Event::Protocol(from, said) => {
            assert_eq!((from, said), (key, Said::Packet(Bytes::from_static(b"!six"))));
            true
        }
        event => panic!("{event:?}"),
    });
    assert_eq!(
        driver.peek(key).unwrap().calls,
        3,
        "three packets came in one read, and nothing was left"
    );
}

#[test]
fn what_a_protocol_leaves_is_offered_again_with_what_follows() {
    let mut driver = Driver::new().unwrap();
    // Longer than what is put before a read, so that both ways of joining are taken.
    let (key, mut peer) = link_and_peer(
        &mut driver,
        Script {
            packet: 50_000,
            loud: b'x',
            ..Script::default()
        },
    );
    let sent = [vec![b'x'; 50_000], vec![b'x'; 50_000]].concat();
    let pieces = [3, 20_000, 25_000, 17, 30_000, 24_979, 1];
    assert_eq!(pieces.iter().sum::<usize>(), sent.len());
    let mut rest = &sent[..];
    let mut heard = Vec::new();
    for piece in pieces {
        let (now, later) = rest.split_at(piece);
        peer.write_all(now).unwrap();
        rest = later;
        // One turn for each piece at least: the socket holds no two.
        idle(&mut driver, 2, |_, event| heard.push(event));
    }
    let heard = heard.into_iter().map(|event| match event {
        Event::Protocol(from, Said::Packet(packet)) if from == key => packet.len(),
        event => panic!("{event:?}"),
    });
    assert_eq!(heard.collect::<Vec<_>>(), [50_000, 50_000]);
}

#[test]
fn a_paused_link_resumes_without_a_new_readiness_event() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(
        &mut driver,
        Script {
            paused: true,
            loud: b'x',
            ..Script::default()
        },
    );
    peer.write_all(b"x").unwrap();
    // The socket becomes readable once, and nobody reads.
    idle(&mut driver, 3, |_, event| panic!("{event:?}"));
    driver.protocol(key).unwrap().paused = false;
    run(&mut driver, |_, _, event| {
        assert!(
            matches!(event, Event::Protocol(from, Said::Packet(_)) if from == key),
            "{event:?}"
        );
        true
    });
}

#[test]
fn a_pause_between_two_packets_of_one_read_loses_neither() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(
        &mut driver,
        Script {
            pause_after_packet: true,
            packet: 2,
            loud: b'x',
            ..Script::default()
        },
    );
    peer.write_all(b"x1x2").unwrap();
    drop(peer);
    let mut heard = Vec::new();
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(_, said) => {
            heard.push(said);
            // The first packet pauses the link from within; the owner lets it go on.
            driver.protocol(key).unwrap().paused = false;
            heard.len() == 3
        }
        event => panic!("{event:?}"),
    });
    let packet = |data| Said::Packet(Bytes::from_static(data));
    assert_eq!(heard, [packet(b"x1"), packet(b"x2"), Said::Eof]);
}

#[test]
fn a_slow_owner_slows_its_peer_and_loses_nothing() {
    let mut driver = Driver::new().unwrap();
    let (one, other) = stream_pair();
    let (one, other) = (
        driver.add(one, Raw::new()).unwrap(),
        driver.add(other, Raw::new()).unwrap(),
    );
    let sent = pattern(4 * MIB, 3);
    driver.protocol(one).unwrap().send(Bytes::copy_from_slice(&sent));
    driver.protocol(one).unwrap().finish();
    let mut received = Vec::new();
    let mut take = |driver: &mut Driver<Raw>, event| match event {
        Event::Protocol(key, mux_proto::RawEvent::Data(data)) if key == other => {
            received.extend_from_slice(&data);
            assert!(driver.peek(other).unwrap().unconsumed() <= 256 * 1024 + 128 * 1024);
            false
        }
        Event::Protocol(key, mux_proto::RawEvent::Eof) => key == other,
        event => panic!("{event:?}"),
    };
    // Nothing is consumed: it stops by itself.
    idle(&mut driver, 100, |driver, event| {
        take(driver, event);
    });
    loop {
        let waiting = driver.peek(other).unwrap().unconsumed();
        driver.protocol(other).unwrap().consume(waiting);
        let mut done = false;
        idle(&mut driver, 10, |driver, event| done |= take(driver, event));
        if done {
            break;
        }
    }
    assert!(received == sent);
}

#[test]
fn one_busy_link_does_not_starve_999_others() {
    common::raise_descriptor_limit();
    let mut driver = Driver::new().unwrap();
    let open = |write: bool| {
        std::fs::OpenOptions::new()
            .read(!write)
            .write(write)
            .open("/dev/zero")
            .unwrap()
            .into()
    };
    // Endless, and always ready.
    let busy = driver
        .add(Stream::Duplex(open(false), open(true)), Raw::new())
        .unwrap();
    let others: Vec<_> = (0..999).map(|_| link_and_peer(&mut driver, Raw::new())).collect();
    // Everybody is known to the loop, and has been flushed, before it counts.
    idle(&mut driver, 3, |driver, event| match event {
        Event::Protocol(key, mux_proto::RawEvent::Data(data)) => {
            driver.protocol(key).unwrap().consume(data.len())
        }
        event => panic!("{event:?}"),
    });
    for (_, peer) in &others {
        (&mut &*peer).write_all(b"x").unwrap();
    }
    let (mut from_busy, mut from_others) = (0, 0);
    idle(&mut driver, 1, |driver, event| match event {
        Event::Protocol(key, mux_proto::RawEvent::Data(data)) => {
            driver.protocol(key).unwrap().consume(data.len());
            *(if key == busy {
                &mut from_busy
            } else {
                &mut from_others
            }) += data.len();
        }
        event => panic!("{event:?}"),
    });
    assert_eq!(from_others, 999, "all of them are heard in one turn");
    assert!(
        (1..=256 * 1024).contains(&from_busy),
        "{from_busy} bytes from the busy one"
    );
}

#[test]
fn finish_ends_one_direction_and_leaves_the_other_open() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(&mut driver, Raw::new());
    driver
        .protocol(key)
        .unwrap()
        .send(Bytes::from_static(b"question"));
    driver.protocol(key).unwrap().finish();
    let peer = std::thread::spawn(move || {
        let mut heard = String::new();
        peer.read_to_string(&mut heard).unwrap();
        peer.write_all(b"answer").unwrap();
        heard
    });
    let mut got = Collected::default();
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(_, event) => {
            got.take(driver.protocol(key).unwrap(), event);
            false
        }
        Event::Closed(_, _, result) => result == Ok(()),
        event => panic!("{event:?}"),
    });
    assert_eq!(peer.join().unwrap(), "question");
    assert_eq!((&got.data[..], got.eof), (&b"answer"[..], true));
}

#[test]
fn the_end_of_the_input_leaves_the_output_open() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(&mut driver, Raw::new());
    peer.shutdown(Shutdown::Write).unwrap();
    run(&mut driver, |_, _, event| {
        matches!(event, Event::Protocol(_, mux_proto::RawEvent::Eof))
    });
    driver.protocol(key).unwrap().send(Bytes::from_static(b"late"));
    driver.protocol(key).unwrap().close();
    run(&mut driver, |_, _, event| {
        matches!(event, Event::Closed(_, _, Ok(())))
    });
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "late");
}

#[test]
fn close_waits_for_the_flush() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(&mut driver, Raw::new());
    let sent = pattern(MIB, 4);
    driver.protocol(key).unwrap().send(Bytes::copy_from_slice(&sent));
    driver.protocol(key).unwrap().close();
    let peer = std::thread::spawn(move || {
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        heard
    });
    run(&mut driver, |_, _, event| match event {
        Event::Closed(_, protocol, result) => {
            assert_eq!((protocol.unsent(), result), (0, Ok(())));
            true
        }
        event => panic!("{event:?}"),
    });
    assert!(peer.join().unwrap() == sent);
}

#[test]
fn close_waits_for_more_flights_than_a_turn_has() {
    let mut driver = Driver::new().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let (input, _talker) = std::io::pipe().unwrap();
    // A file takes everything at once, so that only the budget ends a turn.
    let output = file.reopen().unwrap().into();
    let key = driver
        .add(Stream::Duplex(input.into(), output), Raw::new())
        .unwrap();
    let sent = pattern(2 * MIB, 6);
    let raw = driver.protocol(key).unwrap();
    sent.chunks(64 * 1024)
        .for_each(|chunk| raw.send(Bytes::copy_from_slice(chunk)));
    raw.close();
    run(&mut driver, |_, _, event| {
        matches!(event, Event::Closed(_, _, Ok(())))
    });
    assert!(std::fs::read(file.path()).unwrap() == sent);
}

#[test]
fn close_does_not_wait_forever_for_a_peer_that_does_not_read() {
    let mut driver = Driver::new().unwrap();
    let (key, _peer) = link_and_peer(&mut driver, Raw::new());
    driver.protocol(key).unwrap().send(Bytes::from(vec![0; 8 * MIB]));
    driver.protocol(key).unwrap().close();
    run(&mut driver, |_, _, event| match event {
        Event::Closed(_, protocol, result) => {
            assert_eq!(result, Err(LinkError::Io(ErrorKind::TimedOut)));
            assert!(
                protocol.unsent() == 0,
                "it is the link that could not get rid of it"
            );
            true
        }
        event => panic!("{event:?}"),
    });
}

#[test]
fn a_protocol_that_fails_says_goodbye() {
    let mut driver = Driver::new().unwrap();
    let script = Script {
        fail_on_input: true,
        goodbye: Bytes::from_static(b"bye"),
        ..Script::default()
    };
    let (_, mut peer) = link_and_peer(&mut driver, script);
    peer.write_all(b"nonsense").unwrap();
    run(&mut driver, |_, _, event| match event {
        Event::Closed(_, _, result) => {
            assert_eq!(result, Err(LinkError::Protocol(Failed::Input)));
            true
        }
        event => panic!("{event:?}"),
    });
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "bye");
}

#[test]
fn the_last_words_of_a_peer_that_is_gone_are_heard_although_writing_fails() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(&mut driver, Raw::new());
    idle(&mut driver, 1, |_, event| panic!("{event:?}"));
    peer.write_all(b"last words").unwrap();
    drop(peer);
    // Written before anything is read.
    driver
        .protocol(key)
        .unwrap()
        .send(Bytes::from_static(b"too late"));
    let mut got = Collected::default();
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(_, event) => {
            got.take(driver.protocol(key).unwrap(), event);
            false
        }
        Event::Closed(_, _, result) => {
            assert_eq!(result, Err(LinkError::Io(ErrorKind::BrokenPipe)));
            true
        }
        event => panic!("{event:?}"),
    });
    assert_eq!((&got.data[..], got.eof), (&b"last words"[..], true));
}

#[test]
fn a_pipe_that_nobody_reads_any_more_is_still_read_from() {
    let mut driver = Driver::new().unwrap();
    let ((input, mut talker), (listener, output)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    drop(listener);
    let key = driver
        .add(Stream::Duplex(input.into(), output.into()), Raw::new())
        .unwrap();
    driver
        .protocol(key)
        .unwrap()
        .send(Bytes::from_static(b"anybody?"));
    idle(&mut driver, 3, |_, event| panic!("{event:?}"));
    talker.write_all(b"still here").unwrap();
    drop(talker);
    let mut got = Collected::default();
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(_, event) => {
            got.take(driver.protocol(key).unwrap(), event);
            false
        }
        Event::Closed(_, _, result) => {
            assert_eq!(result, Err(LinkError::Io(ErrorKind::BrokenPipe)));
            true
        }
        event => panic!("{event:?}"),
    });
    assert_eq!((&got.data[..], got.eof), (&b"still here"[..], true));
}

#[test]
fn a_pair_of_pipes_is_half_closed_by_closing_one() {
    let mut driver = Driver::new().unwrap();
    let ((input, talker), (mut listener, output)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let key = driver
        .add(Stream::Duplex(input.into(), output.into()), Raw::new())
        .unwrap();
    driver.protocol(key).unwrap().send(Bytes::from_static(b"all"));
    driver.protocol(key).unwrap().finish();
    idle(&mut driver, 2, |_, event| panic!("{event:?}"));
    let mut heard = String::new();
    listener.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "all");
    drop(talker);
    run(&mut driver, |_, _, event| {
        matches!(event, Event::Closed(_, _, Ok(())))
    });
}

#[test]
fn regular_files_cannot_be_polled_and_are_always_ready() {
    let mut driver = Driver::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    let content = pattern(3 * MIB, 5);
    std::fs::write(&from, &content).unwrap();
    let input = std::fs::File::open(&from).unwrap().into();
    let output = std::fs::File::create(&to).unwrap().into();
    let key = driver.add(Stream::Duplex(input, output), Raw::new()).unwrap();
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(_, mux_proto::RawEvent::Data(data)) => {
            let raw = driver.protocol(key).unwrap();
            raw.consume(data.len());
            raw.send(data);
            false
        }
        Event::Protocol(_, mux_proto::RawEvent::Eof) => {
            driver.protocol(key).unwrap().finish();
            false
        }
        Event::Closed(_, _, result) => {
            assert_eq!(result, Ok(()));
            true
        }
        event => panic!("{event:?}"),
    });
    assert!(std::fs::read(&to).unwrap() == content);
}

#[test]
fn a_connection_is_reported_before_what_it_says() {
    let mut driver = Driver::new().unwrap();
    let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let listener = driver.listen(mux_core::Listener::Tcp(listener)).unwrap();
    let client = driver.connect(to, Raw::new()).unwrap();
    driver
        .protocol(client)
        .unwrap()
        .send(Bytes::from_static(b"first flight"));
    let mut seen = Vec::new();
    run(&mut driver, |driver, _, event| match event {
        Event::Accepted(from, stream) => {
            assert_eq!(from, listener);
            let mut greeter = Raw::new();
            greeter.send(Bytes::from_static(b"banner"));
            driver.add(stream, greeter).unwrap();
            false
        }
        Event::Connected(key) => {
            assert_eq!(key, client);
            seen.push("connected");
            false
        }
        Event::Protocol(key, mux_proto::RawEvent::Data(data)) => {
            let expected = if key == client {
                &b"banner"[..]
            } else {
                &b"first flight"[..]
            };
            assert_eq!(data, expected);
            seen.push(if key == client {
                "client heard"
            } else {
                "server heard"
            });
            seen.len() == 3
        }
        event => panic!("{event:?}"),
    });
    assert!(
        seen.iter().position(|&what| what == "connected")
            < seen.iter().position(|&what| what == "client heard")
    );
}

#[test]
fn a_refused_connection_is_an_event() {
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = driver.connect(free, Raw::new()).unwrap();
    let missing = driver
        .connect_unix("/nonexistent/socket".as_ref(), Raw::new())
        .unwrap();
    let mut results = Vec::new();
    run(&mut driver, |_, _, event| {
        let Event::Closed(key, _, result) = event else {
            panic!("{event:?}")
        };
        results.push((key, result));
        results.len() == 2
    });
    assert!(results.contains(&(refused, Err(LinkError::Io(ErrorKind::ConnectionRefused)))));
    assert!(results.contains(&(missing, Err(LinkError::Io(ErrorKind::NotFound)))));
}

#[test]
fn an_aborted_link_is_gone_without_an_event() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(&mut driver, Raw::new());
    driver.protocol(key).unwrap().send(Bytes::from_static(b"never"));
    assert_eq!(
        driver.abort(key).map(|raw| raw.unsent()),
        Some(5),
        "the protocol comes back as it was"
    );
    assert!(driver.protocol(key).is_none() && driver.abort(key).is_none());
    idle(&mut driver, 2, |_, event| panic!("{event:?}"));
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "");
}

#[test]
fn a_stalled_loop_kills_nobody_who_has_data_waiting() {
    let mut driver = Driver::new().unwrap();
    let script = || Script {
        loud: b'x',
        patience: Some(Duration::from_secs(600)),
        ..Script::default()
    };
    // More than the system reports at once, so that the deadlines of the later ones wait for the second report.
    common::raise_descriptor_limit();
    let speaking: Vec<_> = (0..1500).map(|_| link_and_peer(&mut driver, script())).collect();
    let (silent, _peer) = link_and_peer(&mut driver, script());
    idle(&mut driver, 2, |_, event| panic!("{event:?}"));
    let now = driver.turn(Some(Duration::ZERO)).unwrap();
    // The stall: everybody's time is over when the loop looks again.
    for (key, peer) in &speaking {
        driver.protocol(*key).unwrap().deadline = Some(now);
        (&mut &*peer).write_all(b"x").unwrap();
    }
    driver.protocol(silent).unwrap().deadline = Some(now);
    let (mut heard, mut died) = (0, Vec::new());
    run(&mut driver, |_, _, event| {
        match event {
            Event::Protocol(_, Said::Packet(_)) => heard += 1,
            Event::Closed(key, _, result) => {
                assert_eq!(result, Err(LinkError::Protocol(Failed::Deadline)));
                died.push(key);
            }
            event => panic!("{event:?}"),
        }
        heard == speaking.len() && !died.is_empty()
    });
    assert_eq!(
        died,
        [silent],
        "only the one from whom a read after its deadline found nothing"
    );
}

#[test]
fn output_that_a_protocol_gathers_leaves_as_one_flight() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(&mut driver, Raw::new());
    for piece in [&b"one "[..], b"two ", b"three"] {
        driver.protocol(key).unwrap().send(Bytes::from_static(piece));
    }
    idle(&mut driver, 1, |_, event| panic!("{event:?}"));
    let mut buffer = [0; 64];
    let read = peer.read(&mut buffer).unwrap();
    assert_eq!(&buffer[..read], b"one two three");
}

#[test]
fn a_close_that_was_asked_for_before_the_connection_stands_is_obeyed() {
    let mut driver = Driver::new().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let key = driver.connect(
        listener.local_addr().unwrap(),
        Script {
            close: Some(Close::Both),
            ..Script::default()
        },
    );
    let key = key.unwrap();
    run(&mut driver, |_, _, event| match event {
        Event::Closed(closed, _, result) => {
            assert_eq!((closed, result), (key, Ok(())));
            true
        }
        event => panic!("{event:?}"),
    });
}
