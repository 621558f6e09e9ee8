//! The reactor, and what the driver passes on from it: keys, timers, wake-ups, sources of the application.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

mod common;

use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{Said, Script, idle, link_and_peer, run, unix_pair};
use mio::Interest;
use mio::net::UnixStream;
use mux_core::{Driver, Event, Reactor, Readiness, Ready};
use mux_proto::Raw;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[test]
fn stale_events_never_reach_a_reused_slot() {
    let mut reactor = Reactor::new().unwrap();
    let (mut one, one_peer) = UnixStream::pair().unwrap();
    let (mut other, other_peer) = UnixStream::pair().unwrap();
    let first = reactor.register(&mut one, Interest::READABLE).unwrap();
    let second = reactor.register(&mut other, Interest::READABLE).unwrap();
    for mut peer in [&one_peer, &other_peer] {
        peer.write_all(b"x").unwrap();
    }
    reactor.turn(None).unwrap();
    let Some(Ready::Io(served, _)) = reactor.poll_ready() else {
        panic!("both are readable")
    };
    // Serving one of them closes the other, and something new takes its slot before its event was looked at.
    let (closed, mut closed_source) = if served == first {
        (second, other)
    } else {
        (first, one)
    };
    reactor.deregister(closed, &mut closed_source);
    let (mut new, _new_peer) = UnixStream::pair().unwrap();
    let successor = reactor.register(&mut new, Interest::READABLE).unwrap();
    assert_eq!(
        slot(successor),
        slot(closed),
        "the slot is reused, or this shows nothing"
    );
    assert_ne!(successor, closed);
    assert_eq!(reactor.poll_ready(), None);
    // Nor do a timer and a requeue of the old key.
    reactor.set_timer(closed, Some(Instant::now()));
    reactor.requeue(closed);
    reactor.turn(Some(Duration::ZERO)).unwrap();
    assert_eq!(reactor.poll_ready(), None);
}

fn slot(key: mux_core::Key) -> String {
    let shown = format!("{key:?}");
    shown.split_once('.').expect("slot and generation").0.to_owned()
}

#[test]
fn an_event_for_a_link_that_was_dropped_does_not_reach_its_successor() {
    let mut driver = Driver::new().unwrap();
    let script = || Script {
        loud: b'x',
        ..Script::default()
    };
    let links: Vec<_> = (0..2).map(|_| link_and_peer(&mut driver, script())).collect();
    idle(&mut driver, 1, |_, event| panic!("{event:?}"));
    for (_, peer) in &links {
        (&mut &*peer).write_all(b"x").unwrap();
    }
    let mut replaced = None;
    run(&mut driver, |driver, _, event| match event {
        Event::Protocol(key, Said::Packet(_)) => {
            assert!(
                replaced.is_none(),
                "the event of the dropped link reached somebody"
            );
            for (other, _) in links.iter().filter(|(other, _)| *other != key) {
                driver.abort(*other);
                let (stream, peer) = unix_pair();
                replaced = Some((driver.add(stream, script()).unwrap(), peer));
            }
            true
        }
        event => panic!("{event:?}"),
    });
    idle(&mut driver, 3, |_, event| panic!("{event:?}"));
    let (successor, peer) = replaced.expect("one was replaced");
    (&mut &peer).write_all(b"x").unwrap();
    run(
        &mut driver,
        |_, _, event| matches!(event, Event::Protocol(key, _) if key == successor),
    );
}

#[test]
fn ten_thousand_timers_fire_once_each_and_in_order() {
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let now = driver.turn(Some(Duration::ZERO)).unwrap();
    // Due in an order that is not the one in which they were made, some at the same time.
    let mut expected: Vec<_> = (0..10_000_u64)
        .map(|n| {
            let at = now + Duration::from_micros(n * 7919 % 10_000 / 2);
            (at, driver.timer(at))
        })
        .collect();
    let cancelled: Vec<_> = expected.iter().step_by(10).map(|(_, key)| *key).collect();
    cancelled.iter().for_each(|key| driver.cancel_timer(*key));
    expected.retain(|(_, key)| !cancelled.contains(key));
    let mut fired = Vec::new();
    run(&mut driver, |driver, now, event| {
        let Event::Ready(Ready::Timer(key)) = event else {
            panic!("{event:?}")
        };
        fired.push((now, key));
        driver.cancel_timer(key);
        fired.len() == expected.len()
    });
    assert_eq!(driver.next_deadline(now), None, "none is left");
    let due: std::collections::HashMap<_, _> = expected.iter().map(|(at, key)| (*key, *at)).collect();
    assert_eq!(due.len(), fired.len());
    assert!(
        fired.iter().all(|(now, key)| due[key] <= *now),
        "none fires early"
    );
    assert!(
        fired.is_sorted_by_key(|(_, key)| due[key]),
        "the earlier is reported before the later"
    );
}

#[test]
fn timers_are_reported_after_everything_that_is_ready() {
    let mut reactor = Reactor::new().unwrap();
    let (mut source, mut peer) = UnixStream::pair().unwrap();
    let key = reactor.register(&mut source, Interest::READABLE).unwrap();
    let now = reactor.turn(Some(Duration::ZERO)).unwrap();
    reactor.set_timer(key, Some(now));
    peer.write_all(b"x").unwrap();
    reactor.turn(None).unwrap();
    let readable = Readiness {
        readable: true,
        ..Readiness::default()
    };
    assert_eq!(reactor.poll_ready(), Some(Ready::Io(key, readable)));
    assert_eq!(reactor.poll_ready(), Some(Ready::Timer(key)));
    assert_eq!(reactor.poll_ready(), None);
}

#[test]
fn a_timer_that_is_set_anew_before_it_is_reported_does_not_fire() {
    let mut reactor = Reactor::new().unwrap();
    let (one, other) = (reactor.reserve(), reactor.reserve());
    let now = Instant::now();
    reactor.set_timer(one, Some(now));
    reactor.set_timer(other, Some(now));
    reactor.turn(Some(Duration::ZERO)).unwrap();
    let Some(Ready::Timer(first)) = reactor.poll_ready() else {
        panic!("both are due")
    };
    reactor.set_timer(
        if first == one { other } else { one },
        Some(now + Duration::from_secs(600)),
    );
    assert_eq!(reactor.poll_ready(), None);
}

#[test]
fn a_requeued_key_is_reported_in_the_next_turn_which_does_not_wait() {
    let mut reactor = Reactor::new().unwrap();
    let key = reactor.reserve();
    reactor.requeue(key);
    reactor.requeue(key);
    assert_eq!(reactor.poll_ready(), None, "not in this turn");
    let now = Instant::now();
    assert_eq!(reactor.next_deadline(now), Some(now));
    reactor.turn(None).unwrap();
    assert_eq!(reactor.poll_ready(), Some(Ready::Again(key)));
    assert_eq!(reactor.poll_ready(), None, "once, however often it was requeued");
    assert_eq!(reactor.next_deadline(now), None);
}

#[test]
fn a_regular_file_is_reported_as_always_ready() {
    let mut reactor = Reactor::new().unwrap();
    let file = tempfile::tempfile().unwrap();
    let raw = std::os::fd::AsRawFd::as_raw_fd(&file);
    let key = reactor
        .register(&mut mio::unix::SourceFd(&raw), Interest::READABLE)
        .unwrap();
    reactor.turn(None).unwrap();
    assert_eq!(reactor.poll_ready(), Some(Ready::Again(key)));
}

#[test]
fn another_thread_wakes_the_loop_and_its_values_are_there() {
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let (sender, mut mailbox) = driver.mailbox();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let sender = sender.clone();
            std::thread::spawn(move || (0..1000).for_each(|n| sender.send(thread * 1000 + n).unwrap()))
        })
        .collect();
    let mut received = Vec::new();
    run(&mut driver, |_, _, event| {
        assert!(matches!(event, Event::Ready(Ready::Woken)), "{event:?}");
        received.extend(std::iter::from_fn(|| mailbox.take()));
        received.len() == 4000
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    received.sort_unstable();
    assert_eq!(received, (0..4000).collect::<Vec<_>>());
    drop(mailbox);
    assert_eq!(sender.send(1), Err(1), "who has no mailbox gets no mail");
}

#[test]
fn a_wake_up_before_the_wait_ends_it_at_once() {
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let waker = driver.waker();
    waker.wake().unwrap();
    waker.wake().unwrap();
    // Would wait forever otherwise.
    driver.turn(None).unwrap();
    assert!(matches!(driver.poll_event(), Some(Event::Ready(Ready::Woken))));
    assert!(
        driver.poll_event().is_none(),
        "two wake-ups before a turn are one"
    );
}

#[test]
fn the_descriptor_of_the_loop_is_readable_when_a_turn_would_find_something() {
    let mut driver = Driver::new().unwrap();
    let (key, mut peer) = link_and_peer(
        &mut driver,
        Script {
            loud: b'x',
            ..Script::default()
        },
    );
    idle(&mut driver, 2, |_, event| panic!("{event:?}"));
    let readable = |driver: &Driver<Script>, wait: Option<&Timespec>| {
        poll(&mut [PollFd::new(&driver.as_fd(), PollFlags::IN)], wait).unwrap() == 1
    };
    let now = Instant::now();
    assert!(!readable(&driver, Some(&Timespec::default())));
    assert_eq!(driver.next_deadline(now), None);
    driver
        .protocol(key)
        .unwrap()
        .output
        .push_back(Bytes::from_static(b"y"));
    assert_eq!(
        driver.next_deadline(now),
        Some(now),
        "a flight waits for the next turn"
    );
    idle(&mut driver, 1, |_, event| panic!("{event:?}"));
    peer.write_all(b"x").unwrap();
    assert!(readable(&driver, None));
    run(&mut driver, |_, _, event| matches!(event, Event::Protocol(..)));
}

#[test]
fn a_source_of_the_application_is_passed_on() {
    let mut driver: Driver<Raw> = Driver::new().unwrap();
    let (mut source, mut peer) = UnixStream::pair().unwrap();
    let key = driver.register(&mut source, Interest::READABLE).unwrap();
    peer.write_all(b"x").unwrap();
    run(&mut driver, |_, _, event| match event {
        Event::Ready(Ready::Io(ready, Readiness { readable, .. })) => {
            assert!(readable);
            ready == key
        }
        event => panic!("{event:?}"),
    });
    driver.deregister(key, &mut source);
    peer.write_all(b"x").unwrap();
    idle(&mut driver, 2, |_, event| panic!("{event:?}"));
}
