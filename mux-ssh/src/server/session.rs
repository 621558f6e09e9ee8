//! One channel of a server, a session or a connection that its owner makes: what waits to leave on it, and what its windows allow. Decides which item leaves
//! next on this channel; knows no other channel and no number but its own.

use std::collections::VecDeque;

use bytes::Bytes;

use super::SessionLimits;

/// A channel of a server. Goes stale when the channel is gone: its number may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    pub(super) number: u32,
    pub(super) generation: u32,
}

/// Which of the two output streams of a command (RFC 4254 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// `SSH_MSG_CHANNEL_DATA`.
    Stdout,
    /// `SSH_MSG_CHANNEL_EXTENDED_DATA` of type `SSH_EXTENDED_DATA_STDERR`.
    Stderr,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned this status.
    Status(u32),
    /// A signal ended it.
    Signal {
        /// Name without `SIG`.
        name: String,
        /// Whether it left a core.
        core_dumped: bool,
        /// Text for people.
        message: String,
    },
}

/// What leaves on a channel, in the order in which the owner said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Data(Output, Bytes),
    Exit(Exit),
    Eof,
    Close,
}

/// One packet's worth of a channel, addressed by the peer's number.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) peer: u32,
    pub(super) item: Item,
}

/// What the client asks for when it opens a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) peer: u32,
    pub(super) window: u32,
    pub(super) max_packet: u32,
}

/// The state of one channel.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) peer: u32,
    /// A command, or a connection that the owner makes.
    pub(super) is_session: bool,
    /// The client was not told yet that it is open.
    pub(super) is_pending: bool,
    pub(super) running: bool,
    /// How much the client still takes.
    pub(super) send_window: u32,
    pub(super) max_packet: u32,
    pub(super) waiting: VecDeque<Item>,
    pub(super) waiting_bytes: usize,
    /// How much we still take.
    pub(super) receive_window: u32,
    pub(super) consumed: u32,
    pub(super) close_queued: bool,
    pub(super) close_sent: bool,
    pub(super) close_received: bool,
}

impl Session {
    /// A channel that was just opened.
    pub(super) fn new(id: SessionId, open: Open, limits: &SessionLimits) -> Self {
        Self {
            id,
            peer: open.peer,
            is_session: true,
            is_pending: false,
            running: false,
            send_window: open.window,
            // A peer that allows packets of zero bytes would never get any output.
            max_packet: open.max_packet.clamp(1, limits.max_packet),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            receive_window: if limits.window_after_exec {
                0
            } else {
                limits.window
            },
            consumed: 0,
            close_queued: false,
            close_sent: false,
            close_received: false,
        }
    }

    /// A connection that the owner has still to make.
    pub(super) fn pending(id: SessionId, open: Open, limits: &SessionLimits) -> Self {
        Self {
            is_session: false,
            is_pending: true,
            receive_window: limits.window,
            ..Self::new(id, open, limits)
        }
    }

    /// The next packet's worth that the windows allow.
    pub(super) fn next_item(&mut self) -> Option<Item> {
        if self.is_pending {
            return None;
        }
        if let Some(Item::Data(output, data)) = self.waiting.front_mut() {
            let len = data
                .len()
                .min(self.send_window as usize)
                .min(self.max_packet as usize);
            if len == 0 {
                return None;
            }
            let item = Item::Data(*output, data.split_to(len));
            if data.is_empty() {
                self.waiting.pop_front();
            }
            self.waiting_bytes -= len;
            self.send_window -= u32::try_from(len).expect("at most the window");
            return Some(item);
        }
        let item = self.waiting.pop_front();
        if self.waiting.is_empty() {
            // Thousands of servers in one process each keep what they hold now, not what they once held.
            self.waiting = VecDeque::new();
        }
        self.close_sent |= item == Some(Item::Close);
        item
    }
}
