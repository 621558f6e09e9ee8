//! All channels of a connection: which may be opened now, under which number, which one is kept in advance, and whose
//! turn it is to send. What the server says about them is in `incoming`.

use std::collections::VecDeque;

use super::channel::{Channel, Command, State};
use super::events::Events;
use super::habits::{FirstChannel, Habits, Numbering};
use super::packet::Packet;
use super::replies::{Replies, Reply};
use super::window::MAX_WINDOW;
use super::{ChannelFailure, ChannelId, Event, Exec};
use crate::transport::Family;

/// Commands at a time on one connection: far over any MaxSessions, so that a mistake of the owner fails by name.
const MAX_CHANNELS: usize = 1024;

/// The largest command or variable: Linux passes no longer argument to a shell (MAX_ARG_STRLEN), and OpenSSH takes
/// packets of twice that.
const MAX_REQUEST: usize = 128 * 1024;

/// How often a server may close a channel under a command that was not sent yet.
const MAX_REOPENED: u8 = 2;

/// Replies that are remembered beyond the life of their channel. Only Paramiko's servers send them, within the same
/// moment.
const MAX_LATE_REPLIES: usize = 16;

/// What the login allows channels to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// A signed request was sent and not answered: one channel may be gambled on.
    Gamble,
    /// Logged in.
    Everything,
}

#[derive(Debug)]
pub(crate) struct Channels {
    slots: Vec<Option<Box<Channel>>>,
    generation: u32,
    habits: Habits,
    /// Whose turn it is.
    cursor: usize,
    /// Channels were opened, or are being opened, on this connection: the number of the next one is not sure to be 0.
    first_opened: bool,
    spare_wanted: bool,
    /// Sessions at once that the server allows, once it refused one more.
    limit: Option<usize>,
    max_window: u32,
    /// Channels that were closed with a request unanswered, oldest first: the answer may come after CLOSE.
    late_replies: VecDeque<u32>,
}

impl Channels {
    pub(crate) fn new(spare_wanted: bool, one_session: bool) -> Self {
        Self {
            slots: Vec::new(),
            generation: 0,
            habits: Habits::of(Family::Unknown),
            cursor: 0,
            first_opened: false,
            spare_wanted,
            limit: one_session.then_some(1),
            max_window: MAX_WINDOW,
            late_replies: VecDeque::new(),
        }
    }

    /// The server is of this kind.
    pub(crate) fn meet(&mut self, habits: Habits) {
        self.habits = habits;
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    pub(crate) fn limit_windows(&mut self, bytes: u32) {
        self.max_window = bytes.min(MAX_WINDOW);
    }

    pub(crate) fn max_window(&self) -> u32 {
        self.max_window
    }

    pub(crate) fn window_growth(&self) -> usize {
        self.iter().map(|channel| channel.window.growth()).sum()
    }

    /// Commands without their final event.
    pub(crate) fn owed(&self) -> usize {
        self.iter().filter(|channel| channel.is_owed()).count()
    }

    fn iter(&self) -> impl Iterator<Item = &Channel> {
        self.slots.iter().flatten().map(|channel| &**channel)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Channel> {
        self.slots.iter_mut().flatten().map(|channel| &mut **channel)
    }

    /// The channel in the slot of this number, which is the number that we gave to the server.
    pub(crate) fn slot(&mut self, slot: u32) -> Option<&mut Channel> {
        let slot = self.slots.get_mut(usize::try_from(slot).ok()?)?;
        slot.as_deref_mut()
    }

    /// The channel of a command that has not had its final event.
    pub(crate) fn owned(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.slot(id.slot)
            .filter(|channel| channel.id == id && channel.is_owed())
    }

    pub(crate) fn owned_ref(&self, id: ChannelId) -> Option<&Channel> {
        let slot = self.slots.get(usize::try_from(id.slot).ok()?)?;
        slot.as_deref()
            .filter(|channel| channel.id == id && channel.is_owed())
    }

    pub(crate) fn free(&mut self, slot: u32) -> Option<Box<Channel>> {
        let freed = self.slots.get_mut(usize::try_from(slot).ok()?)?.take();
        while self.slots.last().is_some_and(Option::is_none) {
            self.slots.pop();
        }
        if self.slots.is_empty() {
            self.slots = Vec::new();
        }
        freed
    }

    fn new_id(&mut self, slot: u32) -> ChannelId {
        self.generation = self.generation.wrapping_add(1);
        ChannelId {
            slot,
            generation: self.generation,
        }
    }

    /// Puts a channel into the lowest free slot; `None` for the command of a spare.
    fn insert(&mut self, exec: Option<Exec>) -> ChannelId {
        let free = self.slots.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let id = self.new_id(u32::try_from(index).expect("channels are bounded by MAX_CHANNELS"));
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Some(Box::new(Channel::new(id, exec)));
        }
        id
    }

    pub(crate) fn exec(&mut self, exec: Exec, events: &mut Events) -> ChannelId {
        let largest = exec
            .env
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .max()
            .unwrap_or(0);
        if largest.max(exec.command.len()) > MAX_REQUEST {
            return self.fail_at_once(ChannelFailure::TooLarge, events);
        }
        if self.habits.one_channel && self.first_opened || self.slots.len() >= MAX_CHANNELS {
            return self.fail_at_once(ChannelFailure::NoSession, events);
        }
        // The spare with a confirmed channel first; one that is still being opened is nearer than a new one.
        let spares = self.iter_mut().filter(|channel| channel.is_spare());
        let nearest = spares.max_by_key(|channel| matches!(channel.state, State::Open { .. }));
        if let Some(spare) = nearest {
            spare.give(exec);
            return spare.id;
        }
        self.insert(Some(exec))
    }

    fn fail_at_once(&mut self, reason: ChannelFailure, events: &mut Events) -> ChannelId {
        let channel = self.new_id(u32::MAX);
        events.push(Event::ChannelFailed {
            channel,
            reason,
            may_have_run: false,
        });
        channel
    }

    pub(crate) fn close(&mut self, id: ChannelId, events: &mut Events) {
        let spare_id = self.new_id(id.slot);
        let keep = self.spare_wanted && self.habits.spare;
        let Some(channel) = self.owned(id) else { return };
        if channel.may_have_run() {
            channel.close_wanted = true;
            return;
        }
        events.push(Event::ChannelFailed {
            channel: id,
            reason: ChannelFailure::Cancelled,
            may_have_run: false,
        });
        if channel.state == State::Wanted {
            self.free(id.slot);
        } else if channel.is_touched() {
            channel.command = Command::Over;
        } else {
            // Nothing was sent on it yet: it serves the next command.
            let (state, reopened) = (channel.state, channel.reopened);
            *channel = Channel::new(spare_id, None);
            (channel.state, channel.reopened, channel.close_wanted) = (state, reopened, !keep);
        }
    }

    /// The next message, if the login allows any.
    pub(crate) fn next_packet(
        &mut self,
        sequence: u32,
        permit: Permit,
        events: &mut Events,
    ) -> Option<Packet> {
        if self.habits.one_channel && self.first_opened {
            self.refuse_surplus(events);
        }
        let count = self.slots.len();
        for step in 0..count {
            let index = (self.cursor + step) % count;
            let packet = self.next_of_slot(index, sequence, permit);
            if packet.is_none() {
                continue;
            }
            // Data takes turns; the steps of one command stay together, so that they share a write.
            if matches!(packet, Some(Packet::Data { .. })) {
                self.cursor = index + 1;
                self.tell_room(index, events);
            }
            return packet;
        }
        if permit == Permit::Everything && self.spare_due() {
            let id = self.insert(None);
            return self.next_of_slot(usize::try_from(id.slot).ok()?, sequence, permit);
        }
        None
    }

    /// This server gave its one channel: commands that wait for another wait in vain.
    fn refuse_surplus(&mut self, events: &mut Events) {
        for slot in 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX) {
            if self
                .slot(slot)
                .is_some_and(|channel| channel.state == State::Wanted)
            {
                self.fail(slot, ChannelFailure::NoSession, events);
                self.free(slot);
            }
        }
    }

    fn next_of_slot(&mut self, index: usize, sequence: u32, permit: Permit) -> Option<Packet> {
        let state = self.slots.get(index)?.as_ref()?.state;
        if state != State::Wanted {
            return self.slots.get_mut(index)?.as_mut()?.next_packet(sequence);
        }
        if !self.may_open(permit) {
            return None;
        }
        let ours = u32::try_from(index).ok()?;
        let number = self.next_number(ours);
        self.first_opened = true;
        self.slots.get_mut(index)?.as_mut()?.opening(number, sequence);
        Some(Packet::Open { ours })
    }

    fn tell_room(&mut self, index: usize, events: &mut Events) {
        if let Some(Some(channel)) = self.slots.get_mut(index)
            && channel.stdin.take_room_news()
        {
            events.push(Event::StdinRoom { channel: channel.id });
        }
    }

    fn may_open(&self, permit: Permit) -> bool {
        match permit {
            Permit::Everything => true,
            Permit::Gamble if self.first_opened => false,
            Permit::Gamble => match self.habits.first_channel {
                FirstChannel::WithAuth | FirstChannel::OpenWithAuth => true,
                FirstChannel::PairAfterAuth | FirstChannel::AfterAuth => false,
            },
        }
    }

    /// What the server will call the next channel, where that is certain. A request on a wrong number ends the whole
    /// connection on every server tried.
    fn next_number(&self, ours: u32) -> Option<u32> {
        match self.habits.numbering {
            Numbering::FirstIsZero => (!self.first_opened).then_some(0),
            Numbering::LowestFree => (0..).find(|&number| self.iter().all(|c| c.number() != Some(number))),
            Numbering::CopiesOurs => Some(ours),
            Numbering::Unknown => None,
        }
    }

    fn spare_due(&self) -> bool {
        let (mut sessions, mut spares) = (0, 0);
        for channel in self.iter() {
            sessions += usize::from(channel.command != Command::None);
            spares += usize::from(channel.command == Command::None);
        }
        // One below the limit stays free for a command: a spare must never be the reason why one is refused.
        self.spare_wanted
            && self.habits.spare
            && spares == 0
            && self.limit.is_none_or(|limit| sessions + 1 < limit)
    }

    /// Whether the message with this sequence number was one that a channel depends on.
    pub(crate) fn has_sent(&self, sequence: u32) -> bool {
        self.iter().any(|channel| channel.has_sent(sequence))
    }

    /// Whether something was sent ahead of the answer to the login.
    pub(crate) fn has_gambled(&self) -> bool {
        self.first_opened
    }

    /// The login was refused, and with it what was sent ahead: nothing of it ran.
    pub(crate) fn revert(&mut self, events: &mut Events) {
        self.first_opened = false;
        let mut cancelled = None;
        for channel in self.iter_mut().filter(|channel| channel.state != State::Wanted) {
            channel.revert();
            if channel.close_wanted || !channel.is_owed() {
                cancelled = Some(channel.id);
            }
        }
        // Only one channel is ever gambled on.
        if let Some(id) = cancelled {
            if self.owned(id).is_some() {
                self.fail(id.slot, ChannelFailure::Cancelled, events);
            }
            self.free(id.slot);
        }
    }

    /// The channel's owner gets its final event, if it is still owed one.
    pub(crate) fn fail(&mut self, slot: u32, reason: ChannelFailure, events: &mut Events) {
        let Some(channel) = self.slot(slot).filter(|channel| channel.is_owed()) else {
            return;
        };
        let may_have_run = channel.may_have_run()
            && matches!(
                reason,
                ChannelFailure::ConnectionLost | ChannelFailure::ClosedUnanswered
            );
        channel.command = Command::Over;
        channel.stdin.discard();
        events.push(Event::ChannelFailed {
            channel: channel.id,
            reason,
            may_have_run,
        });
    }

    /// The server refused to open the channel. Returns whether this showed that it allows one session only.
    pub(crate) fn refuse(&mut self, slot: u32, code: u32, text: String, events: &mut Events) -> bool {
        let open = self
            .iter()
            .filter(|channel| matches!(channel.state, State::Open { .. }))
            .count();
        self.fail(slot, ChannelFailure::Refused { code, text }, events);
        let was_spare = self
            .free(slot)
            .is_some_and(|channel| channel.command == Command::None);
        if open > 0 {
            let first = self.limit != Some(open);
            self.limit = Some(open);
            return first && open == 1;
        }
        // No session at all is open, and yet a spare is refused: this server wants none.
        self.spare_wanted &= !was_spare;
        false
    }

    /// The server closed the channel.
    pub(crate) fn closed(&mut self, slot: u32, events: &mut Events, replies: &mut Replies) {
        let Some(channel) = self.slot(slot) else { return };
        if let (Some(number), false) = (channel.number(), channel.close_sent()) {
            replies.push(Reply::Close { number });
        }
        let id = channel.id;
        let unanswered = channel.unanswered();
        self.late_replies
            .extend(std::iter::repeat_n(slot, unanswered.min(MAX_LATE_REPLIES)));
        let surplus = self.late_replies.len().saturating_sub(MAX_LATE_REPLIES);
        self.late_replies.drain(..surplus);
        let Some(channel) = self.slot(slot) else { return };
        match channel.command {
            Command::Waiting if channel.reopened < MAX_REOPENED => return channel.restart(),
            Command::Waiting | Command::Sent { .. } => {
                self.fail(slot, ChannelFailure::ClosedUnanswered, events)
            }
            Command::Running => events.push(Event::ChannelClosed { channel: id }),
            Command::None | Command::Over => {}
        }
        self.free(slot);
    }

    /// Whether a closed channel of this number waits for a reply; it no longer does after that.
    pub(crate) fn take_late_reply(&mut self, slot: u32) -> bool {
        let place = self.late_replies.iter().position(|&late| late == slot);
        place.is_some_and(|place| self.late_replies.remove(place).is_some())
    }

    /// The server did not know the message with this sequence number.
    pub(crate) fn unimplemented(&mut self, sequence: u32, events: &mut Events) {
        let sender = self.iter().find(|channel| channel.has_sent(sequence));
        let Some(slot) = sender.map(|channel| channel.id.slot) else {
            return;
        };
        self.fail(slot, ChannelFailure::ExecRefused, events);
        if self
            .slot(slot)
            .is_some_and(|channel| matches!(channel.state, State::Opening { .. }))
        {
            self.free(slot);
        }
    }

    /// The connection is over: everyone gets a final event.
    pub(crate) fn connection_lost(&mut self, events: &mut Events) {
        for slot in 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX) {
            self.fail(slot, ChannelFailure::ConnectionLost, events);
        }
        self.slots = Vec::new();
    }
}
