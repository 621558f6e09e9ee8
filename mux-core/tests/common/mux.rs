//! A small multiplexing protocol with flow control, and a router that stacks links on its channels. Only as much as
//! it takes to show what links without a descriptor can carry.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use mux_core::{Driver, Event, Key, Stream};
use mux_proto::{Close, Protocol, Raw, RawEvent, SendQueue};

/// What a channel may send before the other side has consumed any of it.
pub(crate) const WINDOW: usize = 16 * 1024;

/// Bytes of data in one frame.
const FRAME: usize = 4096;

const DATA: u8 = 0;
const REFILL: u8 = 1;
const EOF: u8 = 2;
const HEADER: usize = 9;

/// One side of a connection that carries channels. Both sides know their numbers; nothing is negotiated.
#[derive(Debug)]
pub(crate) struct Mux {
    channels: Vec<Channel>,
    /// Frames that are not data: few and small.
    control: VecDeque<(u32, u8, u32)>,
    events: VecDeque<MuxEvent>,
    next: usize,
}

#[derive(Debug)]
struct Channel {
    outgoing: BytesMut,
    may_send: usize,
    may_receive: usize,
    unconsumed: usize,
    finished: bool,
    eof_sent: bool,
}

#[derive(Debug)]
pub(crate) enum MuxEvent {
    Data(u32, Bytes),
    Room(u32),
    Eof(u32),
}

/// The peer sent more than it was allowed to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overrun(u32);

impl Mux {
    pub(crate) fn new(channels: usize) -> Self {
        let channel = || Channel {
            outgoing: BytesMut::new(),
            may_send: WINDOW,
            may_receive: WINDOW,
            unconsumed: 0,
            finished: false,
            eof_sent: false,
        };
        let channels = (0..channels).map(|_| channel()).collect();
        Self {
            channels,
            control: VecDeque::new(),
            events: VecDeque::new(),
            next: 0,
        }
    }

    /// How much may be given to [`send`](Self::send) now.
    pub(crate) fn room(&self, channel: u32) -> usize {
        let channel = &self.channels[channel as usize];
        channel.may_send - channel.outgoing.len()
    }

    pub(crate) fn send(&mut self, channel: u32, data: &[u8]) {
        assert!(
            data.len() <= self.room(channel),
            "the window is respected on this side"
        );
        self.channels[channel as usize].outgoing.extend_from_slice(data);
    }

    pub(crate) fn finish(&mut self, channel: u32) {
        self.channels[channel as usize].finished = true;
    }

    pub(crate) fn consume(&mut self, channel: u32, count: usize) {
        let state = &mut self.channels[channel as usize];
        state.unconsumed -= count;
        state.may_receive += count;
        self.control
            .push_back((channel, REFILL, u32::try_from(count).expect("a window is small")));
    }

    pub(crate) fn unconsumed(&self, channel: u32) -> usize {
        self.channels[channel as usize].unconsumed
    }

    fn frame(&mut self, channel: u32, kind: u8, input: &mut BytesMut, len: usize) -> Result<(), Overrun> {
        let state = &mut self.channels[channel as usize];
        match kind {
            DATA => {
                state.may_receive = state.may_receive.checked_sub(len).ok_or(Overrun(channel))?;
                state.unconsumed += len;
                let data = Bytes::copy_from_slice(&input[..len]);
                input.advance(len);
                self.events.push_back(MuxEvent::Data(channel, data));
            }
            REFILL => {
                state.may_send += len;
                self.events.push_back(MuxEvent::Room(channel));
            }
            _ => self.events.push_back(MuxEvent::Eof(channel)),
        }
        Ok(())
    }

    /// A frame of the next channel that has one, so that no channel waits for another.
    fn transmit_one(&mut self, out: &mut SendQueue) -> bool {
        if let Some((channel, kind, len)) = self.control.pop_front() {
            put_header(out, channel, kind, len);
            return true;
        }
        for _ in 0..self.channels.len() {
            let number = self.next;
            self.next = (self.next + 1) % self.channels.len();
            let id = u32::try_from(number).expect("few channels");
            let channel = &mut self.channels[number];
            let len = channel.outgoing.len().min(FRAME);
            if len > 0 {
                channel.may_send -= len;
                put_header(out, id, DATA, u32::try_from(len).expect("a frame is small"));
                out.put_slice(&channel.outgoing.split_to(len));
                return true;
            }
            if channel.finished && !std::mem::replace(&mut channel.eof_sent, true) {
                put_header(out, id, EOF, 0);
                return true;
            }
        }
        false
    }
}

fn put_header(out: &mut SendQueue, channel: u32, kind: u8, len: u32) {
    let tail = out.tail();
    tail.put_u32(channel);
    tail.put_u8(kind);
    tail.put_u32(len);
}

/// What a link of these tests speaks.
#[derive(Debug)]
pub(crate) enum Wire {
    Mux(Mux),
    Raw(Raw),
}

#[derive(Debug)]
pub(crate) enum WireEvent {
    Mux(MuxEvent),
    Raw(RawEvent),
}

impl Wire {
    pub(crate) fn mux(&mut self) -> &mut Mux {
        match self {
            Self::Mux(mux) => mux,
            Self::Raw(_) => panic!("a link that carries others speaks Mux"),
        }
    }

    pub(crate) fn raw(&mut self) -> &mut Raw {
        match self {
            Self::Raw(raw) => raw,
            Self::Mux(_) => panic!("a leaf speaks Raw"),
        }
    }
}

impl Protocol for Wire {
    type Event = WireEvent;
    type Error = Overrun;

    fn wants_input(&self) -> bool {
        match self {
            // Its windows bound what it holds.
            Self::Mux(_) => true,
            Self::Raw(raw) => raw.wants_input(),
        }
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Overrun> {
        match self {
            Self::Mux(mux) => {
                let Some(mut header) = input.get(..HEADER) else {
                    return Ok(());
                };
                let (channel, kind, len) = (header.get_u32(), header.get_u8(), header.get_u32() as usize);
                let body = if kind == DATA { len } else { 0 };
                if input.len() < HEADER + body {
                    return Ok(());
                }
                input.advance(HEADER);
                mux.frame(channel, kind, input, len)
            }
            Self::Raw(raw) => raw.handle_input(now, input).map_err(|never| match never {}),
        }
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), Overrun> {
        match self {
            Self::Mux(_) => Ok(()),
            Self::Raw(raw) => raw.handle_eof(now).map_err(|never| match never {}),
        }
    }

    fn handle_timeout(&mut self, _now: Instant) -> Result<(), Overrun> {
        Ok(())
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        match self {
            Self::Mux(mux) => while out.has_room() && mux.transmit_one(out) {},
            Self::Raw(raw) => raw.poll_transmit(now, out),
        }
    }

    fn poll_close(&self) -> Option<Close> {
        match self {
            Self::Mux(_) => None,
            Self::Raw(raw) => raw.poll_close(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<WireEvent> {
        match self {
            Self::Mux(mux) => mux.events.pop_front().map(WireEvent::Mux),
            Self::Raw(raw) => raw.poll_event().map(WireEvent::Raw),
        }
    }
}

/// Which link rides on which channel of which other link.
#[derive(Debug, Default)]
pub(crate) struct Router {
    carrier: HashMap<Key, (Key, u32)>,
    rider: HashMap<(Key, u32), Key>,
}

impl Router {
    /// Adds a link that rides on a channel of `carrier`.
    pub(crate) fn ride(&mut self, driver: &mut Driver<Wire>, carrier: Key, channel: u32, wire: Wire) -> Key {
        let key = driver
            .add(Stream::Memory, wire)
            .expect("a link without a descriptor needs none");
        self.carrier.insert(key, (carrier, channel));
        self.rider.insert((carrier, channel), key);
        key
    }

    /// Does the carrying; gives back what concerns a leaf.
    pub(crate) fn handle(
        &mut self,
        driver: &mut Driver<Wire>,
        event: Event<Wire>,
    ) -> Option<(Key, Option<RawEvent>)> {
        match event {
            Event::Protocol(key, WireEvent::Raw(event)) => return Some((key, Some(event))),
            Event::Protocol(key, WireEvent::Mux(event)) => self.carried(driver, key, event),
            Event::Consumed(key, count) => {
                let (carrier, channel) = self.carrier[&key];
                driver
                    .protocol(carrier)
                    .expect("it carries")
                    .mux()
                    .consume(channel, count);
            }
            Event::Outgoing(key) => self.pump(driver, key),
            Event::Finished(key) => {
                let (carrier, channel) = self.carrier[&key];
                driver
                    .protocol(carrier)
                    .expect("it carries")
                    .mux()
                    .finish(channel);
            }
            Event::Closed(key, _, result) => {
                assert_eq!(result, Ok(()));
                return Some((key, None));
            }
            event => panic!("{event:?}"),
        }
        None
    }

    fn carried(&mut self, driver: &mut Driver<Wire>, key: Key, event: MuxEvent) {
        match event {
            MuxEvent::Data(channel, data) => driver.deliver(self.rider[&(key, channel)], data),
            MuxEvent::Room(channel) => self.pump(driver, self.rider[&(key, channel)]),
            MuxEvent::Eof(channel) => driver.deliver_eof(self.rider[&(key, channel)]),
        }
    }

    /// Moves as much as the carrier's window allows.
    fn pump(&self, driver: &mut Driver<Wire>, key: Key) {
        let (carrier, channel) = self.carrier[&key];
        let Some(wire) = driver.protocol(carrier) else {
            return;
        };
        let room = wire.mux().room(channel);
        let data = driver.take_outgoing(key, room);
        assert!(data.len() <= room);
        driver
            .protocol(carrier)
            .expect("it was there")
            .mux()
            .send(channel, &data);
    }
}
