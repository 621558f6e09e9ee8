//! All channels of a link, its own and those that pass through: which numbers are taken, whose turn it is. Decides what
//! is sent next; never what a frame from outside means. `passing.rs` has what concerns those that pass through alone.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::channel::{Channel, Last, Step};
use super::event::{ChannelId, Stream};
use super::flow::FlowId;
use super::passing::Passing;
use crate::codes::ResetCode;
use crate::error::Misuse;
use crate::frame::{FLAG_STDERR, HEADER_LEN, Kind, MAX_BODY, NodeId};

/// Openers with channels at a time: the nodes above, of which a tree has as many as it has levels, and clients of the hub.
/// Of others the numbers are remembered for as long as there is room.
const MAX_OPENERS: usize = 64;

/// Bytes that a channel sends before the next one has its turn. Data can be cut anywhere, so nothing is left over from a
/// turn to be paid in the next, as deficit round robin has it for packets that can't.
const QUANTUM: usize = MAX_BODY;

/// Why what stands in a line is found in its table.
pub(super) const LEAVES_LINES: &str = "whatever is removed leaves the lines";

/// Who stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Party {
    /// A channel of which this is an end.
    Own(ChannelId),
    /// One direction of a channel between two other nodes.
    Other(FlowId),
}

/// A frame about a channel, without the numbers of the two ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) party: Party,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) body: Bytes,
}

#[derive(Debug)]
pub(super) struct Channels {
    window: u32,
    table: BTreeMap<ChannelId, Channel>,
    /// The next number to open with.
    next: Option<u32>,
    /// The last number that each node above has opened with.
    last: BTreeMap<NodeId, u32>,
    /// Those that have something to send; the front one has sent `spent` bytes in its turn.
    pub(super) turns: VecDeque<Party>,
    spent: usize,
    pub(super) debts: VecDeque<Party>,
    pub(super) passing: Passing,
}

impl Channels {
    pub(super) fn new(window: u32) -> Self {
        Self {
            window,
            table: BTreeMap::new(),
            next: Some(1),
            last: BTreeMap::new(),
            turns: VecDeque::new(),
            spent: 0,
            debts: VecDeque::new(),
            passing: Passing::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<&Channel> {
        self.table.get(&id)
    }

    /// Runs `change` on a channel, then puts it in the lines that it belongs in.
    pub(super) fn with<T>(&mut self, id: ChannelId, change: impl FnOnce(&mut Channel) -> T) -> Option<T> {
        let channel = self.table.get_mut(&id)?;
        let result = change(channel);
        if channel.has_step() && !channel.is_in_turn {
            channel.is_in_turn = true;
            self.turns.push_back(Party::Own(id));
        }
        if channel.owes_credit() && !channel.is_in_debt {
            channel.is_in_debt = true;
            self.debts.push_back(Party::Own(id));
        }
        Some(result)
    }

    /// A new channel to `node`. Numbers are never used twice, so that late frames of an old channel meet no new one.
    pub(super) fn open(&mut self, node: NodeId) -> Result<ChannelId, Misuse> {
        let number = self.next.ok_or(Misuse::NumbersUsedUp)?;
        self.next = number.checked_add(1);
        let id = ChannelId { node, number };
        self.insert(id);
        Ok(id)
    }

    /// Whether a node above may open `id`. The number counts as used from now on, whatever becomes of it.
    pub(super) fn admit(&mut self, id: ChannelId, max: usize) -> Result<(), ResetCode> {
        if !self.last.contains_key(&id.node) && self.last.len() >= MAX_OPENERS {
            self.forget_an_opener().ok_or(ResetCode::TooMany)?;
        }
        let last = self.last.entry(id.node).or_default();
        if id.number <= *last {
            return Err(ResetCode::BadNumber);
        }
        *last = id.number;
        if self.table.len() >= max {
            return Err(ResetCode::TooMany);
        }
        Ok(())
    }

    /// Makes room for another opener: clients of the hub come and go, each with a number of its own.
    fn forget_an_opener(&mut self) -> Option<u32> {
        let is_idle = |node: &&NodeId| self.of_node(**node).is_empty();
        let node = *self.last.keys().find(is_idle)?;
        self.last.remove(&node)
    }

    pub(super) fn insert(&mut self, id: ChannelId) {
        self.table.insert(id, Channel::new(self.window));
        self.with(id, |_| ());
    }

    /// Whether the channel existed once: then a frame about it is only late.
    pub(super) fn was_open(&self, id: ChannelId, is_above: bool) -> bool {
        if is_above {
            id.number > 0 && self.next.is_none_or(|next| id.number < next)
        } else {
            self.last
                .get(&id.node)
                .is_some_and(|last| (1..=*last).contains(&id.number))
        }
    }

    pub(super) fn remove(&mut self, id: ChannelId) -> bool {
        let Some(channel) = self.table.remove(&id) else {
            return false;
        };
        if channel.is_in_turn {
            self.leave_turn(Party::Own(id));
        }
        if channel.is_in_debt {
            self.debts.retain(|other| *other != Party::Own(id));
        }
        true
    }

    pub(super) fn leave_turn(&mut self, party: Party) {
        if self.turns.front() == Some(&party) {
            self.spent = 0;
        }
        self.turns.retain(|other| *other != party);
    }

    pub(super) fn remove_all(&mut self) -> Vec<ChannelId> {
        self.turns.clear();
        self.debts.clear();
        self.spent = 0;
        self.passing = Passing::default();
        std::mem::take(&mut self.table).into_keys().collect()
    }

    /// Entries in both lines.
    #[cfg(test)]
    pub(super) fn lines(&self) -> usize {
        self.turns.len() + self.debts.len()
    }

    pub(super) fn of_node(&self, node: NodeId) -> Vec<ChannelId> {
        let id = |number| ChannelId { node, number };
        self.table
            .range(id(0)..=id(u32::MAX))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The next frame of all channels, and the channel that has room again by it. Openings and resets of others go first,
    /// as those of our own do, then credit: it is short, and whoever waits for it can't send.
    pub(super) fn next_frame(&mut self) -> Option<(Outgoing, Option<ChannelId>)> {
        if let Some(frame) = self.next_urgent().or_else(|| self.next_credit()) {
            return Some((frame, None));
        }
        loop {
            let party = *self.turns.front()?;
            let max = QUANTUM - self.spent;
            let (step, unblocked) = match party {
                Party::Own(id) => {
                    let channel = self.table.get_mut(&id).expect(LEAVES_LINES);
                    let step = channel.step(max);
                    channel.is_in_turn = step.is_some();
                    let is_unblocked = step.is_some() && channel.take_unblocked();
                    (step, is_unblocked.then_some(id))
                }
                Party::Other(id) => (self.passing.step(id, max), None),
            };
            let Some(step) = step else {
                self.turns.pop_front();
                self.spent = 0;
                continue;
            };
            let frame = outgoing(party, step);
            // Headers count: a channel of many small pieces is no cheaper than one of large ones.
            self.spent += HEADER_LEN + frame.body.len();
            if self.spent >= QUANTUM {
                self.spent = 0;
                self.turns.rotate_left(1);
            }
            match party {
                Party::Own(id) if frame.kind == Kind::Result => drop(self.remove(id)),
                Party::Own(_) => {}
                Party::Other(id) => self.drop_if_over(id),
            }
            return Some((frame, unblocked));
        }
    }

    fn next_credit(&mut self) -> Option<Outgoing> {
        let party = self.debts.pop_front()?;
        let credit = match party {
            Party::Own(id) => {
                let channel = self.table.get_mut(&id).expect(LEAVES_LINES);
                channel.is_in_debt = false;
                channel.grant()
            }
            Party::Other(id) => self.passing.take_credit(id),
        };
        Some(Outgoing {
            party,
            kind: Kind::Credit,
            flags: 0,
            body: Bytes::copy_from_slice(&credit.to_be_bytes()),
        })
    }
}

fn outgoing(party: Party, step: Step) -> Outgoing {
    let (kind, flags, body) = match step {
        Step::Data(Stream::Out, data) => (Kind::Data, 0, data),
        Step::Data(Stream::Err, data) => (Kind::Data, FLAG_STDERR, data),
        Step::Last(Last::Finish) => (Kind::Finish, 0, Bytes::new()),
        Step::Last(Last::Result(body)) => (Kind::Result, 0, body),
        Step::Last(Last::Reset(body)) => (Kind::Reset, 0, body),
    };
    Outgoing {
        party,
        kind,
        flags,
        body,
    }
}
