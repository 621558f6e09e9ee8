//! What becomes of a frame for another node. Decides in the order in which the specification has it: destination, source,
//! who may open, whether there is such a channel, what fits it.

use mux_proto::body::ResetCode;
use mux_proto::connection::FlowId;
use mux_proto::frame::{Frame, Kind, NodeId};

use super::passage::{Passage, Way};
use super::{MAX_OPENERS, Opened, Place, Router};

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<L> {
    /// It goes on over this link.
    Pass {
        /// The link.
        to: L,
        /// It ends the channel: what waits for the sender is of no use to it any more.
        is_last: bool,
    },
    /// It is answered with a reset.
    Refuse(ResetCode),
    /// It costs its channel: whoever sent it gets a reset, and the other end of the channel as well.
    Break {
        /// What is wrong.
        code: ResetCode,
        /// The link to the other end.
        other: L,
    },
    /// It is late: its channel has ended.
    Drop,
}

impl<L: Copy + Ord> Router<L> {
    /// Judges a frame that came in on `link` and is for another node, and takes it into account.
    pub fn judge(&mut self, link: L, frame: &Frame) -> Verdict<L> {
        match self.place(link) {
            Some(Place::Parent | Place::Client) => self.judge_down(link, frame),
            Some(Place::Child) => self.judge_up(link, frame),
            None => Verdict::Refuse(ResetCode::NoRoute),
        }
    }

    /// An opening could not be sent on: there is no such channel.
    pub fn withdraw(&mut self, flow: FlowId) {
        self.passages.remove(&Opened {
            opener: flow.source,
            number: flow.number,
        });
    }

    fn judge_down(&mut self, link: L, frame: &Frame) -> Verdict<L> {
        let header = frame.header;
        let Some(&to) = self.nodes.get(&header.destination) else {
            return Verdict::Refuse(self.missing(header.destination));
        };
        if !self.may_be_above(link, header.source) {
            return Verdict::Refuse(ResetCode::Forged);
        }
        let opened = Opened {
            opener: header.source,
            number: header.channel,
        };
        if header.kind == Kind::Open {
            return match self.count(opened) {
                Ok(()) => {
                    let passage = Passage::new(link, to, header.destination);
                    self.passages.insert(opened, passage);
                    Verdict::Pass { to, is_last: false }
                }
                Err(code) => Verdict::Refuse(code),
            };
        }
        let is_it = |passage: &Passage<L>| passage.above == link && passage.far == header.destination;
        self.within(opened, Way::Down, frame, is_it)
    }

    fn judge_up(&mut self, link: L, frame: &Frame) -> Verdict<L> {
        let header = frame.header;
        if self.nodes.contains_key(&header.destination) {
            return Verdict::Refuse(ResetCode::NotAllowed);
        }
        let is_above = |node| self.neighbours.values().any(|neighbour| neighbour.node == node);
        if !self.last.contains_key(&header.destination) && !is_above(header.destination) {
            return Verdict::Refuse(self.missing(header.destination));
        }
        if self.nodes.get(&header.source) != Some(&link) {
            return Verdict::Refuse(ResetCode::Forged);
        }
        if header.kind == Kind::Open {
            return Verdict::Refuse(ResetCode::NotAllowed);
        }
        let opened = Opened {
            opener: header.destination,
            number: header.channel,
        };
        let is_it = |passage: &Passage<L>| passage.below == link && passage.far == header.source;
        self.within(opened, Way::Up, frame, is_it)
    }

    /// On a channel that should exist.
    fn within(
        &mut self,
        opened: Opened,
        way: Way,
        frame: &Frame,
        is_it: impl FnOnce(&Passage<L>) -> bool,
    ) -> Verdict<L> {
        let Some(passage) = self.passages.get_mut(&opened).filter(|passage| is_it(passage)) else {
            let last = self.last.get(&opened.opener);
            return if last.is_some_and(|last| (1..=*last).contains(&opened.number)) {
                Verdict::Drop
            } else {
                Verdict::Refuse(ResetCode::UnknownChannel)
            };
        };
        let to = match way {
            Way::Down => passage.below,
            Way::Up => passage.above,
        };
        let taken = passage.take(way, frame);
        if taken != Ok(false) {
            self.passages.remove(&opened);
        }
        match taken {
            Ok(is_last) => Verdict::Pass { to, is_last },
            Err(code) => Verdict::Break { code, other: to },
        }
    }

    /// Whether `source` may be the sender of what comes in on a link from above. A client is itself alone; a parent vouches
    /// for those above it, who are neither this node nor beneath it.
    fn may_be_above(&self, link: L, source: NodeId) -> bool {
        let Some(neighbour) = self.neighbours.get(&link) else {
            return false;
        };
        let is_elsewhere =
            source != NodeId::NEIGHBOUR && source != self.own && !self.nodes.contains_key(&source);
        neighbour.node == source || (neighbour.place == Place::Parent && is_elsewhere)
    }

    fn missing(&self, node: NodeId) -> ResetCode {
        if self.retired.contains(&node) {
            ResetCode::Gone
        } else {
            ResetCode::NoRoute
        }
    }

    /// The number of an opening, which counts as used from now on.
    fn count(&mut self, opened: Opened) -> Result<(), ResetCode> {
        if !self.last.contains_key(&opened.opener) && self.last.len() >= MAX_OPENERS {
            let is_idle = |opener: &&NodeId| !self.has_channels(**opener);
            let idle = self.last.keys().find(is_idle).copied();
            self.last.remove(&idle.ok_or(ResetCode::TooMany)?);
        }
        let last = self.last.entry(opened.opener).or_default();
        if opened.number <= *last {
            return Err(ResetCode::BadNumber);
        }
        *last = opened.number;
        Ok(())
    }

    fn has_channels(&self, opener: NodeId) -> bool {
        let id = |number| Opened { opener, number };
        self.passages.range(id(0)..=id(u32::MAX)).next().is_some()
    }
}
