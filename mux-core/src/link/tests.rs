//! What a link keeps: the part of its promise that its owner cannot see.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use mux_proto::{COPY_BELOW, Close, Protocol, Raw, SendQueue};

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

/// Takes whole packets of this size, and counts what is in them.
#[derive(Default)]
struct Packets {
    taken: usize,
    wrong: usize,
}

/// As much as SSH's largest common packets.
const PACKET: usize = 32_804;

impl Protocol for Packets {
    type Event = Infallible;
    type Error = Infallible;

    fn wants_input(&self) -> bool {
        true
    }

    fn handle_input(&mut self, _: Instant, input: &mut BytesMut) -> Result<(), Infallible> {
        while input.len() >= PACKET {
            let expected = (self.taken..).map(byte_at);
            let packet = input.iter().take(PACKET);
            self.wrong += packet
                .zip(expected)
                .filter(|(byte, expected)| *byte != expected)
                .count();
            self.taken += PACKET;
            input.advance(PACKET);
        }
        Ok(())
    }

    fn handle_eof(&mut self, _: Instant) -> Result<(), Infallible> {
        Ok(())
    }

    fn handle_timeout(&mut self, _: Instant) -> Result<(), Infallible> {
        Ok(())
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut SendQueue) {}

    fn poll_close(&self) -> Option<Close> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
}

fn byte_at(place: usize) -> u8 {
    u8::try_from(place % 251).expect("below 251")
}

#[test]
fn a_packet_that_lies_across_reads_is_put_together_and_the_shared_buffer_is_not_held() {
    let (ours, mut peer) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
    ours.set_nonblocking(true)
        .expect("a socket can be made non-blocking");
    let io = Io::Unix(mio::net::UnixStream::from_std(ours));
    let mut link = Link::new(Packets::default(), io, false);
    let (mut scratch, now) = (Scratch::default(), Instant::now());
    let mut sent = 0;
    // Pieces of all sizes, so that ends of packets fall everywhere.
    for len in (1..140_000).step_by(7_919) {
        let piece: Vec<u8> = (sent..sent + len).map(byte_at).collect();
        let mut left = piece.as_slice();
        while !left.is_empty() {
            let some = left
                .split_off(..left.len().min(140_000))
                .expect("not more than there is");
            peer.write_all(some).expect("the socket has room");
            link.notice(Readiness {
                readable: true,
                ..Readiness::default()
            });
            while link.receive(now, &mut scratch) == Pass::Again {}
            assert!(!link.rest_is_shared, "nobody knows when the rest comes");
        }
        sent += len;
        assert_eq!(link.protocol.taken + link.rest.len(), sent);
    }
    assert_eq!(
        (link.protocol.wrong, sent - link.protocol.taken < PACKET),
        (0, true)
    );
}
