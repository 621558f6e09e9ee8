//! What a link keeps: the part of its promise that its owner cannot see.

use std::io::{Read, Write};
use std::time::Instant;

use bytes::Bytes;
use mux_proto::{COPY_BELOW, Protocol, Raw, SendQueue};

use super::{Link, Pass};
use crate::Readiness;
use crate::scratch::Scratch;
use crate::stream::Io;

struct Pair {
    link: Link<Raw>,
    peer: std::os::unix::net::UnixStream,
    scratch: Scratch,
    flight: SendQueue,
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        let (ours, peer) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
        ours.set_nonblocking(true)
            .expect("a socket can be made non-blocking");
        Self {
            link: Link::new(Raw::new(), Io::Unix(mio::net::UnixStream::from_std(ours)), false),
            peer,
            scratch: Scratch::default(),
            flight: SendQueue::new(),
            now: Instant::now(),
        }
    }

    fn receive(&mut self, data: &[u8]) -> Pass {
        self.peer.write_all(data).expect("the socket has room");
        self.link.notice(Readiness {
            readable: true,
            writable: true,
            ..Readiness::default()
        });
        self.link.receive(self.now, &mut self.scratch)
    }
}

#[test]
fn an_idle_link_holds_no_buffer() {
    let mut pair = Pair::new();
    for len in [10, COPY_BELOW, 50_000] {
        assert_eq!(pair.receive(&vec![1; len]), Pass::Drained);
        while pair.link.protocol.poll_event().is_some() {}
        pair.link.protocol.consume(len);
        pair.link.protocol.send(Bytes::from(vec![2; len]));
        assert_eq!(pair.link.flush(pair.now, &mut pair.flight), Pass::Drained);
        pair.peer
            .read_exact(&mut vec![0; len])
            .expect("what was sent arrives");
        assert_eq!(
            (pair.link.rest.capacity(), pair.link.out.tail().capacity()),
            (0, 0),
            "{len} bytes"
        );
    }
}

#[test]
fn a_link_that_got_rid_of_what_waited_gives_the_buffer_back() {
    let mut pair = Pair::new();
    let mut sent = 0;
    while pair.link.out.is_empty() {
        for _ in 0..1000 {
            pair.link.protocol.send(Bytes::from_static(&[3; 64]));
        }
        sent += 64_000;
        pair.link.flush(pair.now, &mut pair.flight);
    }
    while pair.link.protocol.unsent() > 0 || !pair.link.out.is_empty() {
        let mut buffer = vec![0; 1024 * 1024];
        sent -= pair.peer.read(&mut buffer).expect("something waits");
        pair.link.notice(Readiness {
            writable: true,
            ..Readiness::default()
        });
        pair.link.flush(pair.now, &mut pair.flight);
    }
    pair.peer
        .read_exact(&mut vec![0; sent])
        .expect("all of it arrives");
    assert_eq!(pair.link.out.tail().capacity(), 0);
    assert!(pair.flight.is_empty());
}

#[test]
fn a_short_read_is_not_followed_by_another() {
    let mut pair = Pair::new();
    pair.receive(b"short");
    assert!(!pair.link.readable, "the socket is known to be empty");
    // An end that was announced with the data has no event of its own.
    pair.peer.write_all(b"last").expect("the socket has room");
    pair.peer.shutdown(std::net::Shutdown::Write).expect("it is open");
    pair.link.notice(Readiness {
        readable: true,
        read_closed: true,
        ..Readiness::default()
    });
    pair.link.receive(pair.now, &mut pair.scratch);
    assert!(pair.link.eof);
}
