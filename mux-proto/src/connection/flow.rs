//! One direction of a channel between two other nodes, as the link has it on which it leaves. Decides in which order its
//! frames go and what of them is still of use; whether they may be here at all is judged by whoever hands them in.
//!
//! Frames are not kept as such. Credit that waits is a sum, bytes are a stretch of their stream, so that what waits is
//! bounded by the credit that the receiver gave, whatever the sender cuts it into.

use std::collections::VecDeque;

use bytes::Bytes;

use super::channel::{Last, Step};
use super::event::Stream;
use super::unsent::Unsent;
use crate::frame::{FLAG_STDERR, Frame, Header, Kind, NodeId};

/// Whose frames: one direction of a channel, named as in their headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    /// Where they go.
    pub destination: NodeId,
    /// Where they come from.
    pub source: NodeId,
    /// The number of the channel.
    pub number: u32,
}

impl FlowId {
    /// The one that a frame belongs to.
    #[must_use]
    pub fn of(header: &Header) -> Self {
        Self {
            destination: header.destination,
            source: header.source,
            number: header.channel,
        }
    }

    /// The other direction of the channel.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            destination: self.source,
            source: self.destination,
            number: self.number,
        }
    }

    /// A frame of it.
    #[must_use]
    pub fn frame(self, kind: Kind, flags: u8, body: Bytes) -> Frame {
        let header = Header {
            flags,
            destination: self.destination,
            source: self.source,
            channel: self.number,
            ..Header::link(kind, 0)
        };
        Frame::new(header, body)
    }
}

#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The opening, until it has left.
    open: Option<Bytes>,
    /// Ends the channel at once.
    reset: Option<Bytes>,
    credit: u32,
    unsent: Unsent,
    /// What goes out behind the bytes.
    last: VecDeque<Last>,
    /// The channel has ended: what still waits is all that will leave.
    is_ended: bool,
    /// Stands in the line of those with an opening or a reset.
    pub(super) is_urgent: bool,
    /// Stands in the line of those that have bytes, or an end behind them.
    pub(super) is_in_turn: bool,
    /// Stands in the line of those that pass credit on.
    pub(super) is_in_debt: bool,
}

impl Flow {
    pub(super) fn push(&mut self, frame: Frame) {
        let Frame { header, body } = frame;
        if self.is_ended && header.kind != Kind::Reset {
            return;
        }
        match header.kind {
            Kind::Open => self.open = Some(body),
            Kind::Data if header.flags & FLAG_STDERR == 0 => self.unsent.push(Stream::Out, body),
            Kind::Data => self.unsent.push(Stream::Err, body),
            Kind::Credit => {
                let more = body.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                self.credit = self.credit.saturating_add(more);
            }
            Kind::Finish => self.last.push_back(Last::Finish),
            Kind::Result => self.end_with(Last::Result(body)),
            Kind::Reset => self.reset(body),
            Kind::Hello | Kind::Ping | Kind::Pong | Kind::Route | Kind::Log | Kind::Goodbye => {}
        }
    }

    /// Nothing follows this, which goes out behind all that waits.
    pub(super) fn end_with(&mut self, last: Last) {
        self.is_ended = true;
        self.last.push_back(last);
    }

    /// What waits is dropped. Nobody needs to hear of a channel whose opening has not left.
    fn reset(&mut self, body: Bytes) {
        let is_known = self.open.take().is_none();
        self.reset = is_known.then_some(body);
        self.is_ended = true;
        self.credit = 0;
        self.unsent = Unsent::default();
        self.last.clear();
    }

    pub(super) fn has_urgent(&self) -> bool {
        self.open.is_some() || self.reset.is_some()
    }

    pub(super) fn has_credit(&self) -> bool {
        self.credit > 0
    }

    pub(super) fn has_step(&self) -> bool {
        !self.unsent.is_empty() || !self.last.is_empty()
    }

    /// Whether anything is still to leave.
    pub(super) fn is_waiting(&self) -> bool {
        self.has_urgent() || self.has_credit() || self.has_step()
    }

    /// Whether it can be forgotten.
    pub(super) fn is_over(&self) -> bool {
        self.is_ended && !self.is_waiting()
    }

    pub(super) fn take_urgent(&mut self) -> Option<(Kind, Bytes)> {
        let open = self.open.take().map(|body| (Kind::Open, body));
        open.or_else(|| self.reset.take().map(|body| (Kind::Reset, body)))
    }

    pub(super) fn take_credit(&mut self) -> u32 {
        std::mem::take(&mut self.credit)
    }

    /// What goes next, with at most `max` bytes of data: they have their credit already.
    pub(super) fn step(&mut self, max: usize) -> Option<Step> {
        match self.unsent.take(max) {
            Some((stream, data)) => Some(Step::Data(stream, data)),
            None => self.last.pop_front().map(Step::Last),
        }
    }
}
