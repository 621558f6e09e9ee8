//! Two connections and a pipe: whatever one queues, the other is handed in pieces of any size, at a time that the test
//! makes up.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and asks for what it is about"
)]

mod channels;
mod hostile;
mod link;
mod random;
mod relaying;

use bytes::BytesMut;

use super::*;
use crate::body::ResetCode;
use crate::error::Violation;
use crate::{Close, Protocol, SendQueue};

/// Input and output of one end, and what it said.
struct Side {
    connection: Connection,
    out: SendQueue,
    input: BytesMut,
    events: Vec<Event>,
    result: Result<(), Error>,
    /// The owner takes no events.
    is_stalled: bool,
}

impl Side {
    fn new(now: Instant, config: Config) -> Self {
        Self {
            connection: Connection::new(now, config),
            out: SendQueue::new(),
            input: BytesMut::new(),
            events: Vec::new(),
            result: Ok(()),
            is_stalled: false,
        }
    }

    /// Hands in what waits, as the trait says: until nothing changes or input is not wanted.
    fn take_in(&mut self, now: Instant) {
        while self.connection.wants_input() && self.result.is_ok() {
            let before = self.input.len();
            self.result = self.connection.handle_input(now, &mut self.input);
            self.take_events();
            if self.input.len() == before {
                return;
            }
        }
    }

    fn take_events(&mut self) {
        while !self.is_stalled
            && let Some(event) = self.connection.poll_event()
        {
            self.events.push(event);
        }
    }

    /// Up to `max` bytes of what it wants to send.
    fn put_out(&mut self, now: Instant, max: usize) -> Bytes {
        if self.out.has_room() {
            self.connection.poll_transmit(now, &mut self.out);
        }
        self.out.take(max)
    }

    fn drain(&mut self) -> Vec<Event> {
        self.take_events();
        std::mem::take(&mut self.events)
    }
}

struct Pair {
    now: Instant,
    above: Side,
    below: Side,
    /// The pipe takes so many bytes at a time.
    piece: usize,
}

fn config(role: Role) -> Config {
    Config {
        software: "test 1".to_owned(),
        platform: "Linux x86_64".to_owned(),
        names: (role == Role::Above).then_some((NodeId(1), NodeId(2))),
        ..Config::new(role)
    }
}

impl Pair {
    /// Two ends that know nothing of each other yet.
    fn cold(above: Config, below: Config) -> Self {
        let now = Instant::now();
        Self {
            now,
            above: Side::new(now, above),
            below: Side::new(now, below),
            piece: 1,
        }
    }

    /// Two ends that have greeted each other, over a pipe of `piece` bytes.
    fn new(piece: usize) -> Self {
        let mut pair = Self::cold(config(Role::Above), config(Role::Below));
        pair.piece = piece;
        pair.settle();
        assert!(matches!(pair.above.drain()[..], [Event::Hello(_)]));
        assert!(matches!(pair.below.drain()[..], [Event::Hello(_)]));
        pair
    }

    /// One piece each way. `false` if nothing moved.
    fn step(&mut self) -> bool {
        let down = self.above.put_out(self.now, self.piece);
        let up = self.below.put_out(self.now, self.piece);
        self.below.input.extend_from_slice(&down);
        self.above.input.extend_from_slice(&up);
        self.below.take_in(self.now);
        self.above.take_in(self.now);
        !down.is_empty() || !up.is_empty()
    }

    /// Until nothing moves any more.
    fn settle(&mut self) {
        // What was handed in by the last step may be answered in the next.
        while self.step() || self.step() {}
    }

    /// A channel of kind `echo`, known to both.
    fn open(&mut self) -> ChannelId {
        let channel = self.above.connection.open(NodeId::NEIGHBOUR, "echo", empty_map());
        let channel = channel.expect("there is room for another");
        self.settle();
        let opened = Event::Opened {
            channel,
            kind: "echo".to_owned(),
            arguments: empty_map(),
        };
        assert_eq!(self.below.drain(), [opened]);
        channel
    }
}

fn empty_map() -> Bytes {
    Bytes::from_static(b"\xa0")
}

fn data(len: usize) -> Bytes {
    Bytes::from(vec![7; len])
}

fn bytes_of(events: &[Event]) -> usize {
    events
        .iter()
        .map(|event| match event {
            Event::Data { data, .. } => data.len(),
            _ => 0,
        })
        .sum()
}

fn reset_with(code: ResetCode, channel: ChannelId) -> Event {
    Event::Reset(channel, Reset::new(code))
}
