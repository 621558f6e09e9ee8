//! What we owe the server: short answers that it can ask for at any rate. It decides what they weigh; while too many
//! are owed, the client stops reading.

use std::collections::VecDeque;

use super::packet::Packet;

/// An answer, with the server's number of the channel that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    GlobalRefused,
    RequestRefused {
        number: u32,
    },
    OpenRefused {
        number: u32,
    },
    /// Under our number `ours`.
    OpenConfirmed {
        number: u32,
        ours: u32,
    },
    /// CHANNEL_CLOSE, in answer to one.
    Close {
        number: u32,
    },
}

/// What one owed answer counts toward the limit of undelivered bytes: the size of the largest on the wire.
const REPLY_WEIGHT: usize = 64;

/// A sent-out queue keeps room for this many.
const KEPT_CAPACITY: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Replies {
    queue: VecDeque<Reply>,
}

impl Replies {
    pub(crate) fn push(&mut self, reply: Reply) {
        self.queue.push_back(reply);
    }

    pub(crate) fn extend(&mut self, reply: Option<Reply>) {
        self.queue.extend(reply);
    }

    pub(crate) fn weight(&self) -> usize {
        self.queue.len() * REPLY_WEIGHT
    }

    pub(crate) fn next_packet(&mut self) -> Option<Packet> {
        let Some(reply) = self.queue.pop_front() else {
            if self.queue.capacity() > KEPT_CAPACITY {
                self.queue = VecDeque::new();
            }
            return None;
        };
        Some(match reply {
            Reply::GlobalRefused => Packet::GlobalRefused,
            Reply::RequestRefused { number } => Packet::RequestRefused { number },
            Reply::OpenRefused { number } => Packet::OpenRefused { number },
            Reply::OpenConfirmed { number, ours } => Packet::OpenConfirmed { number, ours },
            Reply::Close { number } => Packet::Close { number },
        })
    }
}
