//! All channels of a link: which numbers are taken, whose turn it is. Decides what is sent next; never what a frame
//! from outside means.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::channel::{Channel, Last, Step};
use super::event::{ChannelId, Stream};
use crate::codes::ResetCode;
use crate::error::Misuse;
use crate::frame::{FLAG_STDERR, HEADER_LEN, Kind, MAX_BODY, NodeId};

/// Openers whose numbers are remembered: the nodes above, of which a tree has as many as it has levels.
const MAX_OPENERS: usize = 64;

/// Bytes that a channel sends before the next one has its turn. Data can be cut anywhere, so nothing is left over from a
/// turn to be paid in the next, as deficit round robin has it for packets that can't.
const QUANTUM: usize = MAX_BODY;

/// A frame about a channel, without the numbers of the two ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub(super) channel: ChannelId,
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
    turns: VecDeque<ChannelId>,
    spent: usize,
    debts: VecDeque<ChannelId>,
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
            self.turns.push_back(id);
        }
        if channel.owes_credit() && !channel.is_in_debt {
            channel.is_in_debt = true;
            self.debts.push_back(id);
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
            return Err(ResetCode::TooMany);
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
            self.spent = if self.turns.front() == Some(&id) {
                0
            } else {
                self.spent
            };
            self.turns.retain(|other| *other != id);
        }
        if channel.is_in_debt {
            self.debts.retain(|other| *other != id);
        }
        true
    }

    pub(super) fn remove_all(&mut self) -> Vec<ChannelId> {
        self.turns.clear();
        self.debts.clear();
        self.spent = 0;
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

    /// The next frame of all channels, and the channel that has room again by it. Credit goes first: it is short, and
    /// whoever waits for it can't send.
    pub(super) fn next_frame(&mut self) -> Option<(Outgoing, Option<ChannelId>)> {
        if let Some(frame) = self.next_credit() {
            return Some((frame, None));
        }
        loop {
            let id = *self.turns.front()?;
            let channel = self
                .table
                .get_mut(&id)
                .expect("a removed channel leaves the line");
            let Some(step) = channel.step(QUANTUM - self.spent) else {
                channel.is_in_turn = false;
                self.turns.pop_front();
                self.spent = 0;
                continue;
            };
            let is_unblocked = channel.take_unblocked();
            let frame = outgoing(id, step);
            // Headers count: a channel of many small pieces is no cheaper than one of large ones.
            self.spent += HEADER_LEN + frame.body.len();
            if self.spent >= QUANTUM {
                self.spent = 0;
                self.turns.rotate_left(1);
            }
            if frame.kind == Kind::Result {
                self.remove(id);
            }
            return Some((frame, is_unblocked.then_some(id)));
        }
    }

    fn next_credit(&mut self) -> Option<Outgoing> {
        let id = self.debts.pop_front()?;
        let channel = self
            .table
            .get_mut(&id)
            .expect("a removed channel leaves the line");
        channel.is_in_debt = false;
        Some(Outgoing {
            channel: id,
            kind: Kind::Credit,
            flags: 0,
            body: Bytes::copy_from_slice(&channel.grant().to_be_bytes()),
        })
    }
}

fn outgoing(channel: ChannelId, step: Step) -> Outgoing {
    let (kind, flags, body) = match step {
        Step::Data(Stream::Out, data) => (Kind::Data, 0, data),
        Step::Data(Stream::Err, data) => (Kind::Data, FLAG_STDERR, data),
        Step::Last(Last::Finish) => (Kind::Finish, 0, Bytes::new()),
        Step::Last(Last::Result(body)) => (Kind::Result, 0, body),
    };
    Outgoing {
        channel,
        kind,
        flags,
        body,
    }
}
