//! Links without a descriptor: carried by other links, in any depth and number, with the carrier's backpressure.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

#[path = "common/mod.rs"]
mod common;
#[path = "common/mux.rs"]
mod mux;

use std::collections::HashMap;
use std::io::ErrorKind;

use bytes::Bytes;
use common::{Failed, Said, Script, idle, pattern, run, stream_pair};
use mux::{Mux, Router, WINDOW, Wire};
use mux_core::{Driver, Event, Key, LinkError, Stream};
use mux_proto::{Close, Raw, RawEvent};

/// The two sides of one connection in one loop.
fn connection(driver: &mut Driver<Wire>, channels: usize) -> (Key, Key) {
    let (one, other) = stream_pair();
    let add = |driver: &mut Driver<Wire>, stream| driver.add(stream, Wire::Mux(Mux::new(channels))).unwrap();
    (add(driver, one), add(driver, other))
}

fn leaf() -> Wire {
    Wire::Raw(Raw::new())
}

#[test]
fn links_nest_three_deep() {
    let mut driver = Driver::new().unwrap();
    let mut router = Router::default();
    let (mut one, mut other) = connection(&mut driver, 1);
    for _ in 0..2 {
        one = router.ride(&mut driver, one, 0, Wire::Mux(Mux::new(1)));
        other = router.ride(&mut driver, other, 0, Wire::Mux(Mux::new(1)));
    }
    let (one, other) = (
        router.ride(&mut driver, one, 0, leaf()),
        router.ride(&mut driver, other, 0, leaf()),
    );
    let sent: HashMap<Key, Vec<u8>> = [(one, pattern(300_000, 1)), (other, pattern(200_000, 2))].into();
    for (key, data) in &sent {
        let raw = driver.protocol(*key).unwrap().raw();
        raw.send(Bytes::copy_from_slice(data));
        raw.finish();
    }
    let mut got: HashMap<Key, common::Collected> = HashMap::new();
    let mut closed = 0;
    run(&mut driver, |driver, _, event| {
        match router.handle(driver, event) {
            Some((key, Some(event))) => {
                got.entry(key)
                    .or_default()
                    .take(driver.protocol(key).unwrap().raw(), event);
            }
            Some((_, None)) => closed += 1,
            None => {}
        }
        closed == 2
    });
    assert!(got[&one].data == sent[&other] && got[&one].eof);
    assert!(got[&other].data == sent[&one] && got[&other].eof);
}

#[test]
fn two_hundred_links_ride_on_one_and_those_that_stand_still_hold_up_nobody() {
    const RIDERS: u32 = 200;
    // More than a rider may hold and its window together, so that those that stand still are really stopped.
    const EACH: usize = 256 * 1024 + 4 * WINDOW;
    let mut driver = Driver::new().unwrap();
    let mut router = Router::default();
    let (one, other) = connection(&mut driver, RIDERS as usize);
    let riders: Vec<(Key, Key)> = (0..RIDERS)
        .map(|n| {
            (
                router.ride(&mut driver, one, n, leaf()),
                router.ride(&mut driver, other, n, leaf()),
            )
        })
        .collect();
    for (n, (sender, _)) in (0..RIDERS).zip(&riders) {
        let raw = driver.protocol(*sender).unwrap().raw();
        raw.send(Bytes::from(pattern(EACH, n)));
        raw.finish();
    }
    // Every tenth owner does not consume what it gets.
    let receiver: HashMap<Key, u32> = riders
        .iter()
        .zip(0..)
        .map(|((_, receiver), n)| (*receiver, n))
        .collect();
    let stands_still = |n: u32| n.is_multiple_of(10);
    let mut got = vec![Vec::new(); RIDERS as usize];
    let (mut ended, mut held) = (0, Vec::new());
    run(&mut driver, |driver, _, event| {
        match router.handle(driver, event) {
            Some((key, Some(RawEvent::Data(data)))) => {
                let n = receiver[&key];
                got[n as usize].extend_from_slice(&data);
                if stands_still(n) {
                    held.push((key, data.len()));
                } else {
                    driver.protocol(key).unwrap().raw().consume(data.len());
                }
            }
            Some((_, Some(RawEvent::Eof))) => ended += 1,
            Some((_, None)) | None => {}
        }
        ended == RIDERS - RIDERS / 10
    });
    idle(&mut driver, 50, |driver, event| {
        assert!(router.handle(driver, event).is_none(), "those are stopped")
    });
    for (n, (_, key)) in (0..RIDERS).zip(&riders) {
        let unconsumed = driver.protocol(*key).unwrap().raw().unconsumed();
        assert_eq!(unconsumed > 0, stands_still(n));
        assert!(unconsumed <= 256 * 1024 + WINDOW, "{unconsumed} bytes are held");
        // What waits for a rider that is paused is counted on its carrier, whose window is shut by it.
        let waiting = driver.protocol(other).unwrap().mux().unconsumed(n);
        assert_eq!(waiting, if stands_still(n) { WINDOW } else { 0 });
    }

    for (key, len) in held {
        driver.protocol(key).unwrap().raw().consume(len);
    }
    run(&mut driver, |driver, _, event| {
        match router.handle(driver, event) {
            Some((key, Some(RawEvent::Data(data)))) => {
                got[receiver[&key] as usize].extend_from_slice(&data);
                driver.protocol(key).unwrap().raw().consume(data.len());
            }
            Some((_, Some(RawEvent::Eof))) => ended += 1,
            Some((_, None)) | None => {}
        }
        ended == RIDERS
    });
    for (n, got) in (0..RIDERS).zip(got) {
        assert!(got == pattern(EACH, n));
    }
}

fn memory(script: Script) -> (Driver<Script>, Key) {
    let mut driver = Driver::new().unwrap();
    let key = driver.add(Stream::Memory, script).unwrap();
    (driver, key)
}

#[test]
fn output_is_announced_once_until_there_was_less_than_was_asked_for() {
    let (mut driver, key) = memory(Script {
        output: [Bytes::from_static(b"abcdef")].into(),
        ..Script::default()
    });
    run(
        &mut driver,
        |_, _, event| matches!(event, Event::Outgoing(from) if from == key),
    );
    assert_eq!(driver.take_outgoing(key, 4), b"abcd"[..]);
    // A carrier without room knows that there may be more.
    assert_eq!(driver.take_outgoing(key, 0), b""[..]);
    idle(&mut driver, 3, |_, event| panic!("{event:?}"));
    assert_eq!(driver.take_outgoing(key, 4), b"ef"[..]);
    driver
        .protocol(key)
        .unwrap()
        .output
        .push_back(Bytes::from_static(b"g"));
    run(
        &mut driver,
        |_, _, event| matches!(event, Event::Outgoing(from) if from == key),
    );
    assert_eq!(driver.take_outgoing(key, 4), b"g"[..]);
}

#[test]
fn output_in_several_pieces_is_taken_as_one() {
    let pieces = [vec![b'a'; 5000], vec![b'b'; 10], vec![b'c'; 5000]];
    let output = pieces.iter().cloned().map(Bytes::from).collect();
    let (mut driver, key) = memory(Script {
        output,
        ..Script::default()
    });
    run(&mut driver, |_, _, event| matches!(event, Event::Outgoing(_)));
    assert!(driver.take_outgoing(key, 1_000_000) == pieces.concat());
}

#[test]
fn input_counts_as_consumed_when_the_protocol_has_seen_it() {
    let (mut driver, key) = memory(Script {
        packet: 4,
        loud: b'x',
        ..Script::default()
    });
    let mut heard = Vec::new();
    let mut consumed = 0;
    let mut step = |driver: &mut Driver<Script>, data: &'static [u8]| {
        driver.deliver(key, Bytes::from_static(data));
        idle(driver, 1, |_, event| match event {
            Event::Consumed(from, count) if from == key => consumed += count,
            Event::Protocol(_, said) => heard.push(said),
            event => panic!("{event:?}"),
        });
        (consumed, heard.len())
    };
    // An unfinished packet must not hold back the window that its end needs.
    assert_eq!(step(&mut driver, b"x1"), (2, 0));
    assert_eq!(step(&mut driver, b"23x"), (5, 1));
    driver.protocol(key).unwrap().paused = true;
    assert_eq!(step(&mut driver, b"456x789"), (5, 1));
    driver.protocol(key).unwrap().paused = false;
    assert_eq!(step(&mut driver, b""), (12, 3));
}

#[test]
fn a_memory_link_ends_like_any_other() {
    let (mut driver, key) = memory(Script {
        output: [Bytes::from_static(b"last")].into(),
        ..Script::default()
    });
    driver.protocol(key).unwrap().close = Some(Close::Write);
    driver.deliver_eof(key);
    let mut seen = Vec::new();
    run(&mut driver, |driver, _, event| {
        match event {
            Event::Protocol(_, Said::Eof) => seen.push("eof"),
            Event::Outgoing(_) => {
                seen.push("outgoing");
                assert_eq!(driver.take_outgoing(key, 100), b"last"[..]);
            }
            Event::Finished(_) => seen.push("finished"),
            Event::Closed(_, _, result) => {
                assert_eq!(result, Ok(()));
                seen.push("closed");
            }
            event => panic!("{event:?}"),
        }
        seen.contains(&"closed")
    });
    seen.sort_unstable();
    assert_eq!(seen, ["closed", "eof", "finished", "outgoing"]);
}

#[test]
fn a_memory_link_that_fails_says_goodbye_to_whoever_takes_it_in_time() {
    let failing = || Script {
        fail_on_input: true,
        goodbye: Bytes::from_static(b"bye"),
        ..Script::default()
    };
    let (mut driver, taken) = memory(failing());
    let ignored = driver.add(Stream::Memory, failing()).unwrap();
    for key in [taken, ignored] {
        driver.deliver(key, Bytes::from_static(b"nonsense"));
    }
    let mut results = HashMap::new();
    run(&mut driver, |driver, _, event| {
        match event {
            Event::Outgoing(key) if key == taken => assert_eq!(driver.take_outgoing(key, 100), b"bye"[..]),
            Event::Closed(key, _, result) => {
                results.insert(key, result);
            }
            _ => {}
        }
        results.len() == 2
    });
    assert_eq!(results[&taken], Err(LinkError::Protocol(Failed::Input)));
    assert_eq!(
        results[&ignored],
        Err(LinkError::Protocol(Failed::Input)),
        "why it ended matters more"
    );
}

#[test]
fn a_memory_link_whose_output_nobody_takes_is_closed_after_a_moment() {
    let script = Script {
        output: [Bytes::from_static(b"x")].into(),
        close: Some(Close::Both),
        ..Script::default()
    };
    let (mut driver, _) = memory(script);
    run(&mut driver, |_, _, event| match event {
        Event::Closed(_, _, result) => {
            assert_eq!(result, Err(LinkError::Io(ErrorKind::TimedOut)));
            true
        }
        _ => false,
    });
}
