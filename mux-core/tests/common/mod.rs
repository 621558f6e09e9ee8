//! What the tests of the loop share: a wait on conditions, socket pairs, and protocols made to misbehave in one way
//! each. Never waits for a time to pass, only for something to become true.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test file is a crate of its own and uses a part of this"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_core::{Driver, Event, Key, Stream};
use mux_proto::{Close, Protocol, Raw, RawEvent, SendQueue};

/// A loop that has not got there after this long never will. Long, because the machine may be busy.
const STUCK: Duration = Duration::from_secs(60);

/// Turns the loop and hands every event to `handle` until it has returned `true` and the turn is drained.
pub(crate) fn run<P: Protocol>(
    driver: &mut Driver<P>,
    mut handle: impl FnMut(&mut Driver<P>, Instant, Event<P>) -> bool,
) {
    let start = Instant::now();
    let mut done = false;
    while !done {
        let now = driver.turn(Some(Duration::from_secs(1))).expect("a turn");
        assert!(now - start < STUCK, "the condition never came true");
        while let Some(event) = driver.poll_event() {
            done |= handle(driver, now, event);
        }
    }
}

/// Turns the loop without waiting, `turns` times: for showing that something does not happen.
pub(crate) fn idle<P: Protocol>(
    driver: &mut Driver<P>,
    turns: usize,
    mut handle: impl FnMut(&mut Driver<P>, Event<P>),
) {
    for _ in 0..turns {
        driver.turn(Some(Duration::ZERO)).expect("a turn");
        while let Some(event) = driver.poll_event() {
            handle(driver, event);
        }
    }
}

/// A link, and the other end of its socket in plain blocking form.
pub(crate) fn link_and_peer<P: Protocol>(
    driver: &mut Driver<P>,
    protocol: P,
) -> (Key, std::os::unix::net::UnixStream) {
    let (stream, peer) = unix_pair();
    (
        driver.add(stream, protocol).expect("a socket can be watched"),
        peer,
    )
}

/// A stream for the loop, and its other end in plain blocking form.
pub(crate) fn unix_pair() -> (Stream, std::os::unix::net::UnixStream) {
    let (ours, peer) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
    ours.set_nonblocking(true)
        .expect("a socket can be made non-blocking");
    (Stream::Unix(mio::net::UnixStream::from_std(ours)), peer)
}

/// Two streams that are each other's peer.
pub(crate) fn stream_pair() -> (Stream, Stream) {
    let (one, other) = mio::net::UnixStream::pair().expect("descriptors are left");
    (Stream::Unix(one), Stream::Unix(other))
}

/// Some tests need a few thousand descriptors; the usual soft limit is 1024.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )
    .expect("up to the ceiling is allowed");
}

/// Descriptors that this process has open.
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("there is a proc file system")
        .count()
}

/// A `Raw` that collects what arrives.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) data: Vec<u8>,
    pub(crate) eof: bool,
}

impl Collected {
    pub(crate) fn take(&mut self, raw: &mut Raw, event: RawEvent) {
        match event {
            RawEvent::Data(data) => {
                raw.consume(data.len());
                self.data.extend_from_slice(&data);
            }
            RawEvent::Eof => self.eof = true,
        }
    }
}

/// Bytes that tell where in the sequence they are.
pub(crate) fn pattern(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect()
}

/// A protocol of its test's making: each method does what its field says.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Packets are this long; one call consumes one. Zero: everything at once.
    pub(crate) packet: usize,
    /// Events are reported only for packets that begin with this.
    pub(crate) loud: u8,
    pub(crate) paused: bool,
    /// Each packet pauses the link.
    pub(crate) pause_after_packet: bool,
    pub(crate) deadline: Option<Instant>,
    /// Where input moves the deadline to, from then on.
    pub(crate) patience: Option<Duration>,
    pub(crate) fail_on_input: bool,
    pub(crate) goodbye: Bytes,
    pub(crate) output: VecDeque<Bytes>,
    pub(crate) close: Option<Close>,
    pub(crate) events: VecDeque<Said>,
    pub(crate) calls: usize,
}

/// What a [`Script`] tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Packet(Bytes),
    Eof,
}

/// How a [`Script`] fails.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Input,
    Deadline,
}

impl Protocol for Script {
    type Event = Said;
    type Error = Failed;

    fn wants_input(&self) -> bool {
        !self.paused
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Failed> {
        self.calls += 1;
        if self.fail_on_input {
            self.output.extend([std::mem::take(&mut self.goodbye)]);
            return Err(Failed::Input);
        }
        if let Some(patience) = self.patience {
            self.deadline = Some(now + patience);
        }
        let packet = if self.packet == 0 {
            input.len()
        } else {
            self.packet
        };
        if input.len() >= packet {
            let packet = input.split_to(packet).freeze();
            self.paused |= self.pause_after_packet;
            if packet.first() == Some(&self.loud) {
                self.events.push_back(Said::Packet(packet));
            }
        }
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Failed> {
        self.events.push_back(Said::Eof);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failed> {
        match self.deadline {
            Some(deadline) if deadline <= now => Err(Failed::Deadline),
            Some(_) | None => Ok(()),
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        while out.has_room() {
            let Some(data) = self.output.pop_front() else {
                return;
            };
            out.push(data);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        self.close
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    fn poll_event(&mut self) -> Option<Said> {
        self.events.pop_front()
    }
}
