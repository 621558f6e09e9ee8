//! Running out of descriptors. Lowers the limit of the process, so that this file has one test and a process of its
//! own.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, also on an event that it does not expect"
)]

mod common;

use std::io::Read;
use std::net::TcpStream;

use bytes::Bytes;
use common::{idle, run};
use mux_core::{Driver, Event, Listener, Stream};
use mux_proto::Raw;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_listener_without_descriptors_does_not_go_deaf() {
    let mut driver = Driver::new().unwrap();
    let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    driver.listen(Listener::Tcp(listener)).unwrap();
    idle(&mut driver, 1, |_, event| panic!("{event:?}"));
    // Clients of another thread, connected by the system whether we accept or not. All of their events are one edge.
    let mut clients: Vec<_> = (0..8).map(|_| TcpStream::connect(to).unwrap()).collect();
    let mut taken = everything();
    taken.truncate(taken.len() - 3);

    let mut held = Vec::new();
    idle(&mut driver, 5, |_, event| match event {
        Event::Accepted(_, stream) => held.push(stream),
        event => panic!("{event:?}"),
    });
    assert_eq!(held.len(), 3, "as many as there were descriptors");
    assert!(
        driver.connect(to, Raw::new()).is_err(),
        "a shortage of our own is told at once"
    );

    // A link that closes makes room for the next at once.
    let mut accepted = held.len();
    held.into_iter().for_each(|stream| greet(&mut driver, stream));
    let turns_before_the_retry = 4;
    idle(&mut driver, turns_before_the_retry, |driver, event| {
        if let Event::Accepted(_, stream) = event {
            accepted += 1;
            greet(driver, stream);
        }
    });
    assert!(accepted > 3, "it did not wait for a timer");
    while accepted < clients.len() {
        run(&mut driver, |driver, _, event| {
            if let Event::Accepted(_, stream) = event {
                accepted += 1;
                greet(driver, stream);
            }
            true
        });
    }
    idle(&mut driver, 3, |_, _| ());
    for client in &mut clients {
        let mut heard = String::new();
        client.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
    }

    // So does somebody else in the process, of which the loop is not told.
    taken.pop();
    let late = TcpStream::connect(to).unwrap();
    taken.extend(everything());
    idle(&mut driver, 3, |_, event| panic!("{event:?}"));
    drop(taken);
    run(&mut driver, |_, _, event| matches!(event, Event::Accepted(..)));
    drop(late);
}

/// Says hello and closes.
fn greet(driver: &mut Driver<Raw>, stream: Stream) {
    let mut greeter = Raw::new();
    greeter.send(Bytes::from_static(b"hello"));
    greeter.close();
    driver.add(stream, greeter).unwrap();
}

/// Every descriptor that this process can still have.
fn everything() -> Vec<std::fs::File> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(100),
            maximum,
        },
    )
    .unwrap();
    std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect()
}
