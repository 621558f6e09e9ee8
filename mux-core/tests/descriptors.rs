//! Descriptors are counted, so that this file has one test and a process of its own.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

mod common;

use std::io::Write;

use common::{idle, link_and_peer, open_descriptors, run, stream_pair};
use mux_core::{Driver, Event, Listener, Stream};
use mux_proto::Raw;

#[test]
fn no_way_to_end_leaves_a_descriptor_behind() {
    // Whatever the first use of anything opens for good is open after this.
    every_end();
    let before = open_descriptors();
    for _ in 0..3 {
        every_end();
    }
    assert_eq!(open_descriptors(), before);
}

fn every_end() {
    let mut driver = Driver::new().unwrap();
    closed_by_both(&mut driver);
    connected_and_refused(&mut driver);
    aborted_and_failed(&mut driver);
    let with_driver = open_descriptors();
    child(&mut driver);
    assert_eq!(open_descriptors(), with_driver, "a child leaves nothing");
    // What is still open goes with the driver.
    let (_, _peer) = link_and_peer(&mut driver, Raw::new());
    let signals = driver.signals(&[signal_hook::consts::SIGUSR1]).unwrap();
    driver.remove(signals);
}

fn closed_by_both(driver: &mut Driver<Raw>) {
    let before = open_descriptors();
    for _ in 0..10 {
        let (one, other) = stream_pair();
        for stream in [one, other] {
            let key = driver.add(stream, Raw::new()).unwrap();
            driver.protocol(key).unwrap().finish();
        }
    }
    let (input, output) = std::io::pipe().unwrap();
    let key = driver
        .add(Stream::Duplex(input.into(), output.into()), Raw::new())
        .unwrap();
    driver.protocol(key).unwrap().finish();
    let mut left = 21;
    run(driver, |_, _, event| {
        left -= usize::from(matches!(event, Event::Closed(_, _, Ok(()))));
        left == 0
    });
    assert_eq!(open_descriptors(), before);
}

fn connected_and_refused(driver: &mut Driver<Raw>) {
    let before = open_descriptors();
    let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let listener = driver.listen(Listener::Tcp(listener)).unwrap();
    driver.connect(to, Raw::new()).unwrap();
    run(driver, |driver, _, event| match event {
        Event::Accepted(_, stream) => {
            drop(stream);
            false
        }
        Event::Protocol(key, mux_proto::RawEvent::Eof) => {
            driver.protocol(key).unwrap().close();
            false
        }
        Event::Closed(..) => true,
        Event::Connected(_) => false,
        event => panic!("{event:?}"),
    });
    driver.remove(listener);
    driver.connect(to, Raw::new()).unwrap();
    run(driver, |_, _, event| matches!(event, Event::Closed(_, _, Err(_))));
    assert_eq!(open_descriptors(), before);
}

fn aborted_and_failed(driver: &mut Driver<Raw>) {
    let before = open_descriptors();
    let (key, peer) = link_and_peer(driver, Raw::new());
    driver.abort(key);
    drop(peer);
    let (key, mut peer) = link_and_peer(driver, Raw::new());
    peer.write_all(b"unread").unwrap();
    driver.protocol(key).unwrap().close();
    run(driver, |_, _, event| matches!(event, Event::Closed(..)));
    drop(peer);
    idle(driver, 1, |_, event| panic!("{event:?}"));
    assert_eq!(open_descriptors(), before);
}

fn child(driver: &mut Driver<Raw>) {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "echo out; echo err >&2"]);
    let child = driver.child(command, Raw::new(), Some(Raw::new())).unwrap();
    driver.protocol(child.stdio).unwrap().finish();
    driver.protocol(child.stderr.unwrap()).unwrap().finish();
    let mut left = 3;
    run(driver, |_, _, event| {
        left -= usize::from(matches!(event, Event::Closed(..) | Event::Exited(..)));
        left == 0
    });
    let missing = std::process::Command::new("/nonexistent/program");
    assert!(driver.child(missing, Raw::new(), Some(Raw::new())).is_err());
}
