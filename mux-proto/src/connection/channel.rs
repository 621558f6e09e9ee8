//! One channel: what waits to be sent, credit both ways, which ends have come. Decides whether a step is allowed;
//! never when it is sent.
//!
//! Each direction ends on its own, and the channel as a whole with a `Result` from the side below or a `Reset` from
//! either:
//!
//! ```text
//!   above                                   below
//!          ── Open ────────────────────▶
//!   Open   ── Data* ── Finish? ────────▶    Open        each byte of Data takes a byte of credit, which
//!          ◀──────── Data* ── Finish? ──                only Credit gives back
//!          ◀───────────────────  Result ──
//!   gone                                    gone        or Reset, from either side, at any time
//! ```
//!
//! Credit in numbers: with a window of 65,536 the peer may send as much at once. Of 40,000 bytes that came, 35,000 were
//! consumed: 25,536 are still granted and 5,000 unconsumed, so 35,000 are owed. That is at least half of the window,
//! so one `Credit` of 35,000 goes out.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::Stream;
use super::unsent::Unsent;
use crate::codes::ResetCode;
use crate::error::Misuse;

/// What each side may send on a new channel before it has got any credit.
pub const INITIAL_CREDIT: u32 = 64 * 1024;

/// The most that may be granted and unused at a time: 16 MiB keep 1 Gbit/s busy over 130 ms.
pub const MAX_CREDIT: u32 = 16 * 1024 * 1024;

/// Bytes that may wait on a channel for credit and its turn.
pub const MAX_UNSENT: usize = 256 * 1024;

/// The last frame of a direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Finish,
    Result(Bytes),
    /// Of a channel that is relayed, from a node that is gone.
    Reset(Bytes),
}

/// A step that a channel can take when it is its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Data(Stream, Bytes),
    Last(Last),
}

#[derive(Debug)]
pub(super) struct Channel {
    unsent: Unsent,
    /// Bytes that may be sent.
    credit: u32,
    /// No data is taken from the owner any more.
    is_closed: bool,
    /// What goes out behind the data.
    last: VecDeque<Last>,
    /// The owner was told that there is no room, and waits to hear of some.
    is_blocked: bool,
    /// Bytes that the peer may still send.
    granted: u32,
    unconsumed: u32,
    window: u32,
    peer_finished: bool,
    /// Stands in the line of those that have something to send.
    pub(super) is_in_turn: bool,
    /// Stands in the line of those that owe credit.
    pub(super) is_in_debt: bool,
}

impl Channel {
    pub(super) fn new(window: u32) -> Self {
        Self {
            unsent: Unsent::default(),
            credit: INITIAL_CREDIT,
            is_closed: false,
            last: VecDeque::new(),
            is_blocked: false,
            granted: INITIAL_CREDIT,
            unconsumed: 0,
            window: window.clamp(INITIAL_CREDIT, MAX_CREDIT),
            peer_finished: false,
            is_in_turn: false,
            is_in_debt: false,
        }
    }

    /// Bytes that may be queued.
    pub(super) fn room(&self) -> usize {
        if self.is_closed {
            0
        } else {
            MAX_UNSENT.saturating_sub(self.unsent.len())
        }
    }

    pub(super) fn send(&mut self, stream: Stream, data: Bytes) -> Result<(), Misuse> {
        if self.is_closed {
            return Err(Misuse::Finished);
        }
        if data.len() > self.room() {
            self.is_blocked = true;
            return Err(Misuse::QueueFull);
        }
        self.unsent.push(stream, data);
        self.is_blocked |= self.unsent.len() == MAX_UNSENT;
        Ok(())
    }

    /// Nothing follows what was queued.
    pub(super) fn finish(&mut self) -> Result<(), Misuse> {
        if self.is_closed {
            return Err(Misuse::Finished);
        }
        self.is_closed = true;
        self.last.push_back(Last::Finish);
        Ok(())
    }

    /// The result follows what was queued. An end that was not said is said by it.
    pub(super) fn give_result(&mut self, body: Bytes) -> Result<(), Misuse> {
        if self.last.iter().any(|last| matches!(last, Last::Result(_))) {
            return Err(Misuse::Finished);
        }
        self.is_closed = true;
        self.last.push_back(Last::Result(body));
        Ok(())
    }

    /// Whether [`step`](Self::step) has one.
    pub(super) fn has_step(&self) -> bool {
        if self.unsent.is_empty() {
            !self.last.is_empty()
        } else {
            self.credit > 0
        }
    }

    /// What goes next, with at most `max` bytes of data.
    pub(super) fn step(&mut self, max: usize) -> Option<Step> {
        if self.unsent.is_empty() {
            return self.last.pop_front().map(Step::Last);
        }
        let (stream, data) = self.unsent.take(max.min(self.credit as usize))?;
        self.credit -= u32::try_from(data.len()).expect("no more than the credit was taken");
        Some(Step::Data(stream, data))
    }

    /// Whether the owner, who waits for room, is to be told now: half of it is free.
    pub(super) fn take_unblocked(&mut self) -> bool {
        let is_unblocked = self.is_blocked && !self.is_closed && self.unsent.len() <= MAX_UNSENT / 2;
        self.is_blocked &= !is_unblocked;
        is_unblocked
    }

    pub(super) fn add_credit(&mut self, more: u32) -> Result<(), ResetCode> {
        let credit = self.credit.checked_add(more);
        self.credit = credit
            .filter(|credit| more > 0 && *credit <= MAX_CREDIT)
            .ok_or(ResetCode::BadCredit)?;
        Ok(())
    }

    /// The peer has sent so much.
    pub(super) fn receive(&mut self, len: usize) -> Result<(), ResetCode> {
        if self.peer_finished {
            return Err(ResetCode::AfterFinish);
        }
        let len = u32::try_from(len).map_err(|_| ResetCode::CreditExceeded)?;
        self.granted = self.granted.checked_sub(len).ok_or(ResetCode::CreditExceeded)?;
        self.unconsumed += len;
        Ok(())
    }

    pub(super) fn receive_finish(&mut self) -> Result<(), ResetCode> {
        if self.peer_finished {
            return Err(ResetCode::AfterFinish);
        }
        self.peer_finished = true;
        Ok(())
    }

    pub(super) fn consume(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.unconsumed = self.unconsumed.saturating_sub(count);
    }

    pub(super) fn set_window(&mut self, window: u32) {
        self.window = window.clamp(INITIAL_CREDIT, MAX_CREDIT);
    }

    /// Whether credit is to be given: half of the window is neither granted nor in the owner's hands.
    pub(super) fn owes_credit(&self) -> bool {
        !self.peer_finished && self.debt() >= self.window / 2
    }

    /// Gives all that is owed.
    pub(super) fn grant(&mut self) -> u32 {
        let debt = self.debt();
        self.granted += debt;
        debt
    }

    fn debt(&self) -> u32 {
        self.window.saturating_sub(self.granted + self.unconsumed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(len: usize) -> Bytes {
        Bytes::from(vec![7; len])
    }

    #[test]
    fn credit_is_given_back_in_the_numbers_of_the_opening_paragraph() {
        let mut channel = Channel::new(65_536);
        assert_eq!(channel.receive(40_000), Ok(()));
        channel.consume(30_000);
        assert!(!channel.owes_credit(), "less than half of the window");
        channel.consume(5_000);
        assert!(channel.owes_credit());
        assert_eq!(channel.grant(), 35_000);
        assert!(!channel.owes_credit());
        assert_eq!(channel.receive(25_536 + 35_000), Ok(()), "all that was granted");
        assert_eq!(channel.receive(1), Err(ResetCode::CreditExceeded));
    }

    #[test]
    fn a_larger_window_is_owed_at_once() {
        let mut channel = Channel::new(4 * INITIAL_CREDIT);
        assert!(channel.owes_credit());
        assert_eq!(channel.grant(), 3 * INITIAL_CREDIT);
        channel.set_window(u32::MAX);
        assert_eq!(channel.grant(), MAX_CREDIT - 4 * INITIAL_CREDIT);
    }

    #[test]
    fn consuming_more_than_came_grants_no_more_than_the_window() {
        let mut channel = Channel::new(INITIAL_CREDIT);
        assert_eq!(channel.receive(50_000), Ok(()));
        channel.consume(usize::MAX);
        assert_eq!(channel.grant(), 50_000);
    }

    #[test]
    fn no_byte_leaves_without_credit_and_streams_keep_their_order() {
        let mut channel = Channel::new(0);
        channel.send(Stream::Out, data(60_000)).expect("there is room");
        channel.send(Stream::Err, data(10_000)).expect("there is room");
        channel.send(Stream::Out, data(1)).expect("there is room");
        channel.finish().expect("once");
        let mut sent = Vec::new();
        while let Some(Step::Data(stream, data)) = channel.step(32_768) {
            sent.push((stream, data.len()));
        }
        assert_eq!(
            sent,
            [(Stream::Out, 32_768), (Stream::Out, 27_232), (Stream::Err, 5_536)]
        );
        assert!(!channel.has_step(), "the end waits behind the data");
        channel.add_credit(4_465).expect("within the maximum");
        assert_eq!(channel.step(32_768), Some(Step::Data(Stream::Err, data(4_464))));
        assert_eq!(channel.step(32_768), Some(Step::Data(Stream::Out, data(1))));
        assert_eq!(channel.step(32_768), Some(Step::Last(Last::Finish)));
        assert_eq!(channel.step(32_768), None);
        assert_eq!(channel.send(Stream::Out, data(1)), Err(Misuse::Finished));
    }

    #[test]
    fn credit_beyond_the_maximum_and_of_nothing_is_refused() {
        let mut channel = Channel::new(0);
        assert_eq!(channel.add_credit(0), Err(ResetCode::BadCredit));
        assert_eq!(channel.add_credit(MAX_CREDIT), Err(ResetCode::BadCredit));
        assert_eq!(channel.add_credit(u32::MAX), Err(ResetCode::BadCredit));
        assert_eq!(channel.add_credit(MAX_CREDIT - INITIAL_CREDIT), Ok(()));
    }

    #[test]
    fn a_full_queue_takes_nothing_and_says_when_half_of_it_is_free() {
        let mut channel = Channel::new(0);
        assert_eq!(channel.send(Stream::Out, data(MAX_UNSENT)), Ok(()));
        assert_eq!(channel.send(Stream::Out, data(1)), Err(Misuse::QueueFull));
        assert!(!channel.take_unblocked());
        channel
            .add_credit(4 * INITIAL_CREDIT)
            .expect("within the maximum");
        while channel.room() < MAX_UNSENT / 2 {
            assert!(!channel.take_unblocked());
            channel.step(32_768).expect("there is credit");
        }
        assert!(channel.take_unblocked());
        assert!(!channel.take_unblocked(), "once");
    }
}
