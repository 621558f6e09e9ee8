//! When a channel may be opened, what number the server will give it, whether one is kept in advance, and what a
//! refusal teaches. It sends nothing and holds no channel.

use std::time::{Duration, Instant};

use super::channel::Command;
use super::habits::{FirstChannel, Habits, Numbering};
use super::table::Table;
use crate::transport::Family;

/// How often OPEN is repeated for a command when the server refuses it although no more sessions are open than it
/// allowed before: OpenSSH counts a session until it has cleaned up behind it.
const MAX_REFUSALS: u8 = 4;

/// How long to wait before the first repetition; it doubles each time. Refused in the same write as the CLOSE before
/// it, OPEN was granted after 200 ms.
const REOPEN_DELAY: Duration = Duration::from_millis(50);

/// Spares that a server closes before it has them replaced no more. OpenSSH's `ChannelTimeout` closes one after minutes; a
/// server that closes each at once would have us open the next for ever, as fast as the link is.
const MAX_SPARES_CLOSED: u32 = 3;

/// What the login allows channels to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// A signed request was sent and not answered: one channel may be gambled on.
    Gamble,
    /// Logged in.
    Everything,
}

/// What a refusal to open a channel means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is asked for again after a while.
    Again,
    /// The channel is not to be had.
    Final,
    /// Nor is any other beside the one that is open.
    OneSession,
}

#[derive(Debug)]
pub(crate) struct Opening {
    habits: Habits,
    spare_wanted: bool,
    /// How many spares the server has closed that nobody had used.
    spares_closed: u32,
    /// A channel was opened, or is being opened: the number of the next one is not sure to be 0.
    started: bool,
    /// A channel was confirmed: sessions are allowed here.
    confirmed: bool,
    /// Sessions at once that the server allows, once it refused one more.
    limit: Option<usize>,
    /// Nothing is opened before: the server has not yet freed what was closed.
    held_until: Option<Instant>,
}

impl Opening {
    pub(crate) fn new(spare_wanted: bool, one_session: bool) -> Self {
        Self {
            habits: Habits::of(Family::Unknown),
            spare_wanted,
            spares_closed: 0,
            started: false,
            confirmed: false,
            limit: one_session.then_some(1),
            held_until: None,
        }
    }

    /// The server is of this kind.
    pub(crate) fn meet(&mut self, habits: Habits) {
        self.habits = habits;
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Whether an OPEN was sent that no refused login took back.
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    /// Whether this server gives no other channel on this connection.
    pub(crate) fn is_spent(&self) -> bool {
        self.habits.one_channel && self.started
    }

    /// Whether a channel that serves no command is kept for the next one.
    pub(crate) fn keeps_spare(&self) -> bool {
        self.spare_wanted && self.habits.spare
    }

    /// Whether a channel may be opened now: a session, or a connection that the server makes.
    pub(crate) fn may_open(&self, permit: Permit, session: bool) -> bool {
        match permit {
            Permit::Everything => !session || self.held_until.is_none(),
            Permit::Gamble if self.started => false,
            Permit::Gamble => match self.habits.first_channel {
                FirstChannel::Gambled | FirstChannel::OpenAhead => true,
                FirstChannel::PairLater | FirstChannel::StepByStep => false,
            },
        }
    }

    /// OPEN is sent for our number `ours`. What the server will call the channel, where that is certain: a request on
    /// a wrong number ends the whole connection on every server tried.
    pub(crate) fn open(&mut self, table: &Table, ours: u32) -> Option<u32> {
        let is_free = |&number: &u32| table.iter().all(|channel| channel.number() != Some(number));
        let first = !std::mem::replace(&mut self.started, true);
        if table
            .iter()
            .any(|channel| !channel.is_session() && channel.number().is_none())
        {
            // It takes a number that nobody knows yet, and may give it back at once.
            return None;
        }
        match self.habits.numbering {
            Numbering::FirstIsZero => first.then_some(0),
            Numbering::LowestFree => (0..).find(is_free),
            Numbering::CopiesOurs => Some(ours),
            Numbering::Unknown => None,
        }
    }

    pub(crate) fn spare_due(&self, table: &Table) -> bool {
        let spares = table
            .iter()
            .filter(|channel| channel.command == Command::None)
            .count();
        let sessions = table.iter().filter(|channel| channel.is_session()).count() - spares;
        // One below the limit stays free for a command: a spare must never be the reason why one is refused.
        self.keeps_spare() && spares == 0 && self.limit.is_none_or(|limit| sessions + 1 < limit)
    }

    /// The server closed a spare.
    pub(crate) fn spare_closed(&mut self) {
        self.spares_closed += 1;
        self.spare_wanted &= self.spares_closed < MAX_SPARES_CLOSED;
    }

    /// What was sent ahead of the login was refused with it.
    pub(crate) fn revert(&mut self) {
        self.started = false;
    }

    /// The server opened a channel.
    pub(crate) fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// The server refused the channel of this number.
    pub(crate) fn refuse(&mut self, now: Instant, slot: u32, table: &mut Table) -> Refused {
        let open = table.open();
        let Some(channel) = table.slot(slot) else {
            return Refused::Final;
        };
        if !channel.is_session() {
            // What lies behind the server says nothing about its sessions.
            return Refused::Final;
        }
        let waits = channel.command == Command::Waiting && channel.refusals < MAX_REFUSALS;
        if self.confirmed && open < self.limit.unwrap_or(1) && waits {
            let delay = REOPEN_DELAY * (1 << channel.refusals);
            channel.refusals += 1;
            channel.revert();
            self.held_until = now.checked_add(delay);
            return Refused::Again;
        }
        if open == 0 {
            // No session at all is open, and yet a spare is refused: this server wants none.
            self.spare_wanted &= channel.command != Command::None;
            return Refused::Final;
        }
        let known = self.limit.replace(open) == Some(open);
        if open == 1 && !known {
            Refused::OneSession
        } else {
            Refused::Final
        }
    }

    /// When a channel may be opened that waits for the server to be ready.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.held_until
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.held_until = self.held_until.filter(|&until| now < until);
    }
}
