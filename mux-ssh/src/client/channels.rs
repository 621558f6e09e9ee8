//! All channels of a connection: what becomes of each command, and whose turn it is to send. When a channel may be
//! opened is decided in `opening`; what the server says about channels is read in `incoming`.

use std::collections::VecDeque;
use std::time::Instant;

use super::channel::{Channel, Command, State};
use super::events::Events;
use super::opening::{Opening, Permit, Refused};
use super::packet::Packet;
use super::replies::{Replies, Reply};
use super::table::Table;
use super::window::MAX_WINDOW;
use super::{ChannelFailure, ChannelId, DirectTcpip, Event, Exec};

/// Commands at a time on one connection: far over any MaxSessions, so that a mistake of the owner fails by name.
const MAX_CHANNELS: usize = 1024;

/// Connections at a time that a server is asked to make: what OpenSSH has room for on one connection is 10,000 channels,
/// and a host waits in vain for one that does not fit.
const MAX_DIRECT: usize = 8192;

/// Channels to the user's agent at a time: a command that fetches from many places at once opens a few, and each is a
/// socket of the agent.
const MAX_AGENT_CHANNELS: usize = 16;

/// The longest name of a host to connect to: no name that can be looked up has more than 253 bytes (RFC 1035 §2.3.4).
const MAX_HOST: usize = 255;

/// The largest command or variable: Linux passes no longer argument to a shell (MAX_ARG_STRLEN), and OpenSSH takes
/// packets of twice that.
const MAX_REQUEST: usize = 128 * 1024;

/// How often a server may close a channel under a command that was not sent yet.
const MAX_REOPENED: u8 = 2;

/// Replies that are remembered beyond the life of their channel. Only Paramiko's servers send them, within the same
/// moment.
const MAX_LATE_REPLIES: usize = 16;

#[derive(Debug)]
pub(crate) struct Channels {
    table: Table,
    pub(crate) opening: Opening,
    /// Whose turn it is.
    cursor: usize,
    max_window: u32,
    /// The server may open channels to the user's agent.
    agent_allowed: bool,
    /// Channels that were closed with a request unanswered, oldest first: the answer may come after CLOSE.
    late_replies: VecDeque<u32>,
}

impl Channels {
    pub(crate) fn new(opening: Opening) -> Self {
        Self {
            table: Table::default(),
            opening,
            cursor: 0,
            max_window: MAX_WINDOW,
            agent_allowed: false,
            late_replies: VecDeque::new(),
        }
    }

    pub(crate) fn limit_windows(&mut self, bytes: u32) {
        self.max_window = bytes.min(MAX_WINDOW);
    }

    pub(crate) fn max_window(&self) -> u32 {
        self.max_window
    }

    pub(crate) fn window_growth(&self) -> usize {
        self.table.iter().map(|channel| channel.window.growth()).sum()
    }

    /// Commands without their final event.
    pub(crate) fn owed(&self) -> usize {
        self.table.iter().filter(|channel| channel.is_owed()).count()
    }

    /// The channel that we told the server to call by this number.
    pub(crate) fn slot(&mut self, slot: u32) -> Option<&mut Channel> {
        self.table.slot(slot)
    }

    /// The channel of a command that has not had its final event.
    pub(crate) fn owned(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.table.owned(id)
    }

    pub(crate) fn owned_ref(&self, id: ChannelId) -> Option<&Channel> {
        self.table.owned_ref(id)
    }

    pub(crate) fn exec(&mut self, exec: Exec, events: &mut Events) -> ChannelId {
        let variables = exec.env.iter().map(|(name, value)| name.len() + value.len());
        if variables.max().unwrap_or(0).max(exec.command.len()) > MAX_REQUEST {
            return self.fail_at_once(ChannelFailure::TooLarge, events);
        }
        if self.opening.is_spent() || self.table.len() >= MAX_CHANNELS {
            return self.fail_at_once(ChannelFailure::NoSession, events);
        }
        // The spare with a confirmed channel first; one that is still being opened is nearer than a new one.
        let spares = self.table.iter_mut().filter(|channel| channel.is_spare());
        let nearest = spares.max_by_key(|channel| matches!(channel.state, State::Open { .. }));
        if let Some(spare) = nearest {
            spare.give(exec);
            return spare.id;
        }
        self.table.insert(Some(exec))
    }

    pub(crate) fn direct_tcpip(&mut self, to: DirectTcpip, events: &mut Events) -> ChannelId {
        if to.host.len() > MAX_HOST {
            return self.fail_at_once(ChannelFailure::TooLarge, events);
        }
        if self.opening.is_spent() || self.table.len() >= MAX_DIRECT {
            return self.fail_at_once(ChannelFailure::NoSession, events);
        }
        self.table.insert_direct(to)
    }

    /// The command of this channel may reach the user's agent.
    pub(crate) fn forward_agent(&mut self, id: ChannelId) {
        if let Some(channel) = self.table.owned(id).filter(|channel| channel.is_session()) {
            channel.wants_agent = true;
            self.agent_allowed = true;
        }
    }

    /// The server wants to talk to the user's agent. Our number for the channel, unless it may not.
    pub(crate) fn open_agent(
        &mut self,
        (number, window, max_packet): (u32, u32, u32),
        events: &mut Events,
    ) -> Option<u32> {
        let open = self.table.iter().filter(|channel| channel.is_agent).count();
        if !self.agent_allowed || open >= MAX_AGENT_CHANNELS || max_packet == 0 {
            return None;
        }
        let channel = self.table.insert_agent(number, window, max_packet);
        events.push(Event::AgentOpened { channel });
        Some(channel.slot)
    }

    fn fail_at_once(&mut self, reason: ChannelFailure, events: &mut Events) -> ChannelId {
        let channel = self.table.new_id(u32::MAX);
        events.push(Event::ChannelFailed {
            channel,
            reason,
            may_have_run: false,
        });
        channel
    }

    pub(crate) fn close(&mut self, id: ChannelId, events: &mut Events) {
        let spare_id = self.table.new_id(id.slot);
        let keep = self.opening.keeps_spare() && !self.table.iter().any(Channel::is_spare);
        let Some(channel) = self.table.owned(id) else {
            return;
        };
        if channel.may_have_run() {
            channel.close_wanted = true;
            return;
        }
        if channel.command == Command::Running {
            // A connection that stood: its owner wants to hear no more of it.
            channel.command = Command::Over;
            events.push(Event::ChannelClosed { channel: id });
            return;
        }
        events.push(Event::ChannelFailed {
            channel: id,
            reason: ChannelFailure::Cancelled,
            may_have_run: false,
        });
        if channel.state == State::Wanted {
            self.table.free(id.slot);
        } else if channel.is_touched() || !channel.is_session() {
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
        if self.opening.is_spent() {
            self.refuse_surplus(events);
        }
        let count = self.table.len();
        for step in 0..count {
            let slot = u32::try_from((self.cursor + step) % count).ok()?;
            let packet = self.next_of_slot(slot, sequence, permit);
            if packet.is_none() {
                continue;
            }
            // Data takes turns; the steps of one command stay together, so that they share a write.
            if matches!(packet, Some(Packet::Data { .. })) {
                self.cursor = (self.cursor + step) % count + 1;
                self.tell_room(slot, events);
            }
            return packet;
        }
        if permit == Permit::Everything && self.opening.spare_due(&self.table) {
            let id = self.table.insert(None);
            return self.next_of_slot(id.slot, sequence, permit);
        }
        None
    }

    /// This server gave its one channel: commands that wait for another wait in vain.
    fn refuse_surplus(&mut self, events: &mut Events) {
        for slot in self.table.numbers() {
            if self
                .slot(slot)
                .is_some_and(|channel| channel.state == State::Wanted)
            {
                self.fail(slot, ChannelFailure::NoSession, events);
                self.table.free(slot);
            }
        }
    }

    fn next_of_slot(&mut self, slot: u32, sequence: u32, permit: Permit) -> Option<Packet> {
        let channel = self.table.slot(slot)?;
        if channel.state != State::Wanted {
            return channel.next_packet(sequence);
        }
        if !self.opening.may_open(permit, channel.is_session()) {
            return None;
        }
        let direct = channel.direct.clone();
        let number = self.opening.open(&self.table, slot);
        let channel = self.table.slot(slot)?;
        Some(match direct {
            None => {
                channel.opening(number, sequence);
                Packet::Open { ours: slot }
            }
            // Nothing is sent on it before it is confirmed: OpenSSH drops data for a connection that does not stand yet.
            Some(to) => {
                channel.opening(None, sequence);
                Packet::OpenDirect { ours: slot, to: *to }
            }
        })
    }

    fn tell_room(&mut self, slot: u32, events: &mut Events) {
        if let Some(channel) = self.table.slot(slot)
            && channel.stdin.take_room_news()
        {
            events.push(Event::StdinRoom { channel: channel.id });
        }
    }

    /// Whether the message with this sequence number was one that a channel depends on.
    pub(crate) fn has_sent(&self, sequence: u32) -> bool {
        self.table.iter().any(|channel| channel.has_sent(sequence))
    }

    /// Whether the server may have run a command that has had no last word.
    pub(crate) fn in_doubt(&self) -> bool {
        self.table.iter().any(Channel::may_have_run)
    }

    /// The login was refused, and with it what was sent ahead: nothing of it ran.
    pub(crate) fn revert(&mut self, events: &mut Events) {
        self.opening.revert();
        for slot in self.table.numbers() {
            let Some(channel) = self
                .table
                .slot(slot)
                .filter(|channel| channel.state != State::Wanted)
            else {
                continue;
            };
            channel.revert();
            if channel.close_wanted || !channel.is_owed() {
                self.fail(slot, ChannelFailure::Cancelled, events);
                self.table.free(slot);
            }
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
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        slot: u32,
        reason: ChannelFailure,
        events: &mut Events,
    ) -> bool {
        let refused = self.opening.refuse(now, slot, &mut self.table);
        if refused != Refused::Again {
            self.fail(slot, reason, events);
            self.table.free(slot);
        }
        refused == Refused::OneSession
    }

    /// The server closed the channel.
    pub(crate) fn closed(&mut self, slot: u32, events: &mut Events, replies: &mut Replies) {
        let Some(channel) = self.slot(slot) else { return };
        let by_itself = !channel.close_sent();
        if let (Some(number), true) = (channel.number(), by_itself) {
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
            Command::None if by_itself => self.opening.spare_closed(),
            Command::None | Command::Over => {}
        }
        self.table.free(slot);
    }

    /// Whether a closed channel of this number waits for a reply; it no longer does after that.
    pub(crate) fn take_late_reply(&mut self, slot: u32) -> bool {
        let place = self.late_replies.iter().position(|&late| late == slot);
        place.is_some_and(|place| self.late_replies.remove(place).is_some())
    }

    /// The server did not know the message with this sequence number.
    pub(crate) fn unimplemented(&mut self, sequence: u32, events: &mut Events) {
        let sender = self.table.iter().find(|channel| channel.has_sent(sequence));
        let Some(slot) = sender.map(|channel| channel.id.slot) else {
            return;
        };
        self.fail(slot, ChannelFailure::ExecRefused, events);
        if self
            .slot(slot)
            .is_some_and(|channel| matches!(channel.state, State::Opening { .. }))
        {
            self.table.free(slot);
        }
    }

    /// The connection is over: everyone gets a final event.
    pub(crate) fn connection_lost(&mut self, events: &mut Events) {
        for slot in self.table.numbers() {
            self.fail(slot, ChannelFailure::ConnectionLost, events);
        }
        self.table.clear();
    }
}
