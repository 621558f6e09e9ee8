//! The channels of a server: numbers, windows, and what waits to leave on each. Decides what may be sent
//! next; never encodes a packet and never runs a command.
//!
//! ```text
//!            open                exec                    close()             peer's CLOSE
//!   (free) ───────▶ Open ───────────────▶ Running ───────────────▶ Closing ───────────────▶ (free)
//!                    └── peer's CLOSE: ours is queued behind what waits ──┘
//! ```

use super::SessionLimits;
use super::session::{Due, Item, Open, Session, SessionId};

/// All channels of one connection.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    slots: Vec<Option<Session>>,
    generation: u32,
    /// Where the next packet is looked for first, so that one busy channel does not starve the others.
    turn: usize,
}

impl Sessions {
    /// Takes the lowest free number, or refuses because all of `max_sessions` are in use.
    pub(super) fn open(&mut self, open: Open, limits: &SessionLimits) -> Option<SessionId> {
        let sessions = self.slots.iter().flatten().filter(|session| session.is_session);
        if sessions.count() >= limits.max_sessions {
            return None;
        }
        self.insert(|id| Session::new(id, open, limits))
    }

    /// A number for a connection that is still to be made.
    pub(super) fn open_pending(&mut self, open: Open, limits: &SessionLimits) -> Option<SessionId> {
        self.insert(|id| Session::pending(id, open, limits))
    }

    /// The connection stands: the peer's number of the channel, if it was waited for.
    pub(super) fn confirm(&mut self, id: SessionId) -> Option<u32> {
        let session = self.session_mut(id).filter(|session| session.is_pending)?;
        session.is_pending = false;
        Some(session.peer)
    }

    /// The connection is not to be had: the peer's number of what was the channel.
    pub(super) fn refuse(&mut self, id: SessionId) -> Option<u32> {
        let peer = self.session(id).filter(|session| session.is_pending)?.peer;
        self.free(id);
        Some(peer)
    }

    fn insert(&mut self, make: impl FnOnce(SessionId) -> Session) -> Option<SessionId> {
        let free = self
            .slots
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.slots.len());
        self.generation = self.generation.wrapping_add(1);
        let id = SessionId {
            number: u32::try_from(free).ok()?,
            generation: self.generation,
        };
        let session = make(id);
        match self.slots.get_mut(free) {
            Some(slot) => *slot = Some(session),
            None => self.slots.push(Some(session)),
        }
        Some(id)
    }

    /// Channels in use.
    pub(super) fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// The channel with this number of ours.
    pub(super) fn by_number(&self, number: u32) -> Option<SessionId> {
        let slot = self.slots.get(usize::try_from(number).ok()?)?;
        slot.as_ref()
            .filter(|session| !session.is_pending)
            .map(|session| session.id)
    }

    /// The peer's number of this channel.
    pub(super) fn peer(&self, id: SessionId) -> Option<u32> {
        self.session(id).map(|session| session.peer)
    }

    /// Marks the channel as running a command; `false` when it runs one already, or is about to close.
    pub(super) fn run(&mut self, id: SessionId) -> bool {
        let Some(session) = self.session_mut(id) else {
            return false;
        };
        let may_run = !session.running && !session.close_queued;
        session.running |= may_run;
        may_run
    }

    /// Opens our window, for a server that does so only behind the exec.
    pub(super) fn grant(&mut self, id: SessionId, bytes: u32) {
        if let Some(session) = self.session_mut(id) {
            session.receive_window = session.receive_window.saturating_add(bytes);
        }
    }

    /// How much output the owner may hand in without making us hold more than the client takes.
    pub(super) fn room(&self, id: SessionId) -> usize {
        let Some(session) = self.session(id) else { return 0 };
        if session.close_queued {
            return 0;
        }
        (session.send_window as usize).saturating_sub(session.waiting_bytes)
    }

    /// Queues `item` behind what waits. Nothing follows a close.
    pub(super) fn push(&mut self, id: SessionId, item: Item) {
        let Some(session) = self.session_mut(id) else {
            return;
        };
        if session.close_queued {
            return;
        }
        match &item {
            Item::Data(_, data) if data.is_empty() => return,
            Item::Data(_, data) => session.waiting_bytes += data.len(),
            Item::Exit(_) | Item::Eof => {}
            Item::Close => session.close_queued = true,
        }
        session.waiting.push_back(item);
    }

    /// The client takes `bytes` more; `false` when its window would pass 2^32 - 1 (RFC 4254 §5.2).
    pub(super) fn adjust(&mut self, id: SessionId, bytes: u32) -> bool {
        let Some(session) = self.session_mut(id) else {
            return true;
        };
        let Some(window) = session.send_window.checked_add(bytes) else {
            return false;
        };
        session.send_window = window;
        true
    }

    /// The client sent `len` bytes; `false` when our window did not allow them.
    pub(super) fn received(&mut self, id: SessionId, len: usize) -> bool {
        let Some(session) = self.session_mut(id) else {
            return true;
        };
        let left = u32::try_from(len)
            .ok()
            .and_then(|len| session.receive_window.checked_sub(len));
        session.receive_window = left.unwrap_or(session.receive_window);
        left.is_some()
    }

    /// The owner used `bytes` of stdin. Returns the peer's number and how much the window grows, once that is worth
    /// a packet.
    pub(super) fn consume(
        &mut self,
        id: SessionId,
        bytes: usize,
        limits: &SessionLimits,
    ) -> Option<(u32, u32)> {
        let session = self.session_mut(id)?;
        session.consumed = session
            .consumed
            .saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        if session.consumed < limits.window / 2 || session.close_queued || session.close_received {
            return None;
        }
        let grown = std::mem::take(&mut session.consumed);
        session.receive_window = session.receive_window.saturating_add(grown);
        Some((session.peer, grown))
    }

    /// The client closed the channel: what waits is dropped, our close is the answer.
    /// Returns whether the channel is gone by now.
    pub(super) fn peer_closed(&mut self, id: SessionId) -> bool {
        let Some(session) = self.session_mut(id) else {
            return false;
        };
        session.close_received = true;
        session.waiting.clear();
        session.waiting_bytes = 0;
        if session.close_sent {
            self.free(id);
            return true;
        }
        session.close_queued = true;
        session.waiting.push_back(Item::Close);
        false
    }

    /// The next packet that a window allows, dealt in turn. A channel whose closes have both passed is freed here:
    /// the second value is its id.
    pub(super) fn next_due(&mut self) -> Option<(Due, Option<SessionId>)> {
        let count = self.slots.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            let Some(session) = self.slots.get_mut(at).and_then(Option::as_mut) else {
                continue;
            };
            let Some(item) = session.next_item() else { continue };
            let due = Due {
                peer: session.peer,
                item,
            };
            let gone = (session.close_sent && session.close_received).then_some(session.id);
            if let Some(id) = gone {
                self.free(id);
            }
            self.turn = at + 1;
            return Some((due, gone));
        }
        None
    }

    fn free(&mut self, id: SessionId) {
        if let Some(slot) = self.slots.get_mut(id.number as usize) {
            *slot = None;
        }
    }

    fn session(&self, id: SessionId) -> Option<&Session> {
        self.slots
            .get(id.number as usize)?
            .as_ref()
            .filter(|session| session.id == id)
    }

    fn session_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.slots
            .get_mut(id.number as usize)?
            .as_mut()
            .filter(|session| session.id == id)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::session::Output;
    use super::*;

    fn opened(window: u32, max_sessions: usize) -> (Sessions, SessionLimits, SessionId) {
        let limits = SessionLimits {
            max_sessions,
            ..SessionLimits::default()
        };
        let mut sessions = Sessions::default();
        let id = sessions
            .open(
                Open {
                    peer: 7,
                    window,
                    max_packet: 4,
                },
                &limits,
            )
            .expect("the first channel is free");
        (sessions, limits, id)
    }

    fn drain(sessions: &mut Sessions) -> Vec<Item> {
        std::iter::from_fn(|| sessions.next_due())
            .map(|(due, _)| due.item)
            .collect()
    }

    fn stdout(text: &'static str) -> Item {
        Item::Data(Output::Stdout, Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn output_is_cut_by_the_packet_size_and_stops_at_the_window() {
        let (mut sessions, _, id) = opened(6, 1);
        sessions.push(id, stdout("abcdefgh"));
        sessions.push(id, Item::Eof);
        assert_eq!(sessions.room(id), 0);
        assert_eq!(drain(&mut sessions), [stdout("abcd"), stdout("ef")]);
        assert!(sessions.adjust(id, 5));
        assert_eq!(sessions.room(id), 3);
        assert_eq!(drain(&mut sessions), [stdout("gh"), Item::Eof]);
    }

    #[test]
    fn a_window_that_overflows_is_reported() {
        let (mut sessions, _, id) = opened(6, 1);
        assert!(!sessions.adjust(id, u32::MAX));
    }

    #[test]
    fn numbers_are_reused_lowest_first_and_old_ids_are_stale() {
        let (mut sessions, limits, first) = opened(6, 2);
        let open = Open {
            peer: 8,
            window: 1,
            max_packet: 1,
        };
        assert_eq!(sessions.open(open, &limits).map(|id| id.number), Some(1));
        assert_eq!(sessions.open(open, &limits), None);
        assert!(!sessions.peer_closed(first));
        assert_eq!(drain(&mut sessions), [Item::Close]);
        assert_eq!(sessions.len(), 1);
        let again = sessions.open(open, &limits).expect("one is free again");
        assert_eq!(again.number, first.number);
        sessions.push(first, Item::Eof);
        assert_eq!(drain(&mut sessions), []);
    }

    #[test]
    fn channels_take_turns() {
        let (mut sessions, limits, first) = opened(100, 2);
        let second = sessions
            .open(
                Open {
                    peer: 8,
                    window: 100,
                    max_packet: 4,
                },
                &limits,
            )
            .expect("one is free");
        sessions.push(first, stdout("abcdefgh"));
        sessions.push(second, stdout("ABCDEFGH"));
        assert_eq!(
            drain(&mut sessions),
            [stdout("abcd"), stdout("ABCD"), stdout("efgh"), stdout("EFGH")]
        );
    }

    #[test]
    fn stdin_beyond_the_window_is_reported_and_consumption_refills_it() {
        let (mut sessions, limits, id) = opened(6, 1);
        let window = limits.window as usize;
        assert!(!sessions.received(id, 1), "no window before the exec");
        sessions.grant(id, limits.window);
        assert!(sessions.received(id, window));
        assert!(!sessions.received(id, 1));
        assert_eq!(sessions.consume(id, 1, &limits), None);
        assert_eq!(
            sessions.consume(id, window - 1, &limits),
            Some((7, limits.window))
        );
        assert!(sessions.received(id, window));
    }

    #[test]
    fn one_command_a_channel_and_none_after_its_close() {
        let (mut sessions, _, id) = opened(6, 1);
        assert!(sessions.run(id));
        assert!(!sessions.run(id));
        sessions.push(id, Item::Close);
        sessions.push(id, stdout("late"));
        assert_eq!(drain(&mut sessions), [Item::Close]);
        assert!(sessions.peer_closed(id));
    }
}
