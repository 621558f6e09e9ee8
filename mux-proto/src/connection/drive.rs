//! How a connection is driven: input, time and output, and how it fails. Decides what leaves first; never what a frame
//! of the peer means.

use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::channels::{Outgoing, Party};
use super::event::Event;
use super::keepalive::Due;
use super::{Connection, Phase};
use crate::body::{Goodbye, GoodbyeCode, Reset, ResetCode};
use crate::error::{Error, Violation};
use crate::frame::{Frame, HEADER_LEN, Header, Kind};
use crate::{Close, Protocol, SendQueue};

/// Input stops while events of more bytes than this wait for the owner: what every protocol may hold for a slow one.
const MAX_UNDELIVERED: usize = 256 * 1024;

/// What an event costs beside its payload, so that a flood of empty ones is bounded too.
const EVENT_COST: usize = 64;

/// Input stops while more answers than this wait to be sent: a peer that only asks and never reads is not listened to.
const MAX_OWED: usize = 1024;

impl Connection {
    pub(super) fn tell(&mut self, event: Event) {
        self.undelivered += cost(&event);
        self.events.push_back(event);
    }

    /// Every channel ends for this reason.
    pub(super) fn lose_channels(&mut self, text: &str) {
        for channel in self.channels.remove_all() {
            let text = text.to_owned();
            let code = ResetCode::Gone;
            self.tell(Event::Reset(channel, Reset { code, text }));
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        let text = error.to_string();
        self.lose_channels(&text);
        self.outbox.clear();
        self.owed = 0;
        let code = match &error {
            // Whoever wrote that is no peer of ours and would not understand.
            Error::Violation(Violation::Magic(_)) | Error::UnexpectedEof => None,
            Error::Violation(_) => Some(GoodbyeCode::Violation),
            Error::Incompatible(_) => Some(GoodbyeCode::Incompatible),
            Error::NoHello | Error::Silent => Some(GoodbyeCode::Silent),
        };
        if let Some(code) = code {
            self.put(Header::link(Kind::Goodbye, 0), Goodbye { code, text }.encode());
        }
        self.phase = Phase::Failed(error.clone());
        error
    }
}

impl Protocol for Connection {
    type Event = Event;
    type Error = Error;

    fn wants_input(&self) -> bool {
        self.undelivered <= MAX_UNDELIVERED && self.owed <= MAX_OWED
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Error> {
        match &self.phase {
            Phase::Failed(error) => return Err(error.clone()),
            Phase::Parted => {
                input.clear();
                return Ok(());
            }
            Phase::Greeting | Phase::Open => {}
        }
        if !input.is_empty() {
            self.keepalive.heard(now);
        }
        let outcome = Frame::take(input).and_then(|frame| match frame {
            Some(frame) => self.receive(now, frame),
            None => Ok(()),
        });
        self.is_mid_frame = !input.is_empty();
        outcome.map_err(|error| self.fail(error))
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Error> {
        match &self.phase {
            Phase::Failed(error) => Err(error.clone()),
            Phase::Parted => Ok(()),
            Phase::Greeting | Phase::Open if self.is_mid_frame => Err(self.fail(Violation::Truncated.into())),
            Phase::Greeting | Phase::Open => Err(self.fail(Error::UnexpectedEof)),
        }
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        match &self.phase {
            Phase::Failed(error) => return Err(error.clone()),
            Phase::Parted => return Ok(()),
            Phase::Greeting | Phase::Open => {}
        }
        if !self.wants_input() {
            // Nothing can come while we don't read: the peer is not to blame for it.
            self.keepalive.heard(now);
        }
        match self.keepalive.due(now) {
            None => Ok(()),
            Some(Due::NoHello) => Err(self.fail(Error::NoHello)),
            Some(Due::Silent) => Err(self.fail(Error::Silent)),
            Some(Due::Ping(bytes)) => {
                self.put(Header::link(Kind::Ping, 0), Bytes::copy_from_slice(&bytes));
                Ok(())
            }
        }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        while out.has_room() {
            if let Some((frame, is_owed)) = self.outbox.pop_front() {
                self.owed -= usize::from(is_owed);
                put(out, frame);
            } else if let Some(route) = self.channels.take_released() {
                put(out, Frame::new(Header::link(Kind::Route, 0), route));
            } else if let Some((outgoing, unblocked)) = self.channels.next_frame() {
                let Outgoing {
                    party,
                    kind,
                    flags,
                    body,
                } = outgoing;
                let frame = match party {
                    Party::Own(channel) => self.channel_frame(channel, kind, flags, body),
                    Party::Other(flow) => flow.frame(kind, flags, body),
                };
                put(out, frame);
                if let Some(channel) = unblocked {
                    self.tell(Event::Writable(channel));
                }
            } else {
                return;
            }
        }
    }

    fn poll_close(&self) -> Option<Close> {
        matches!(self.phase, Phase::Parted | Phase::Failed(_)).then_some(Close::Both)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Greeting | Phase::Open => self.keepalive.deadline(),
            Phase::Parted | Phase::Failed(_) => None,
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.undelivered -= cost(&event);
        Some(event)
    }
}

fn put(out: &mut SendQueue, frame: Frame) {
    out.put_slice(&frame.header.encode());
    out.push(frame.body);
}

fn cost(event: &Event) -> usize {
    let payload = match event {
        Event::Opened { kind, arguments, .. } => kind.len() + arguments.len(),
        Event::Data { data, .. } => data.len(),
        Event::Transit(frame) => HEADER_LEN + frame.body.len(),
        Event::Result(_, body) => body.len(),
        Event::Reset(_, reset) => reset.text.len(),
        Event::Route(route) => size_of_val(&*route.added) + size_of_val(&*route.lost) + route.reason.len(),
        Event::Log(log) => log.text.len(),
        Event::Hello(_) | Event::Finished(_) | Event::Writable(_) | Event::Goodbye(_) => 0,
    };
    EVENT_COST + payload
}
