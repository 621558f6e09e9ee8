//! What we owe the server: short answers that it can ask for at any rate. It decides how they are written and what they
//! weigh; while too many are owed, the client stops reading.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::message::{self, open_failure};
use crate::wire::Writer;

/// An answer, with the server's number of the channel that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// REQUEST_FAILURE: no global request of a server is granted.
    GlobalRefused,
    /// CHANNEL_FAILURE: no request on a channel is granted.
    RequestRefused { number: u32 },
    /// CHANNEL_OPEN_FAILURE: a server may open nothing here.
    OpenRefused { number: u32 },
    /// CHANNEL_CLOSE, in answer to one.
    Close { number: u32 },
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

    pub(crate) fn weight(&self) -> usize {
        self.queue.len() * REPLY_WEIGHT
    }

    /// Writes the next one as a payload; `false` if none is owed.
    pub(crate) fn next_packet(&mut self, out: &mut BytesMut) -> bool {
        let Some(reply) = self.queue.pop_front() else {
            if self.queue.capacity() > KEPT_CAPACITY {
                self.queue = VecDeque::new();
            }
            return false;
        };
        let mut writer = Writer::new(out);
        match reply {
            Reply::GlobalRefused => writer.byte(message::REQUEST_FAILURE),
            Reply::RequestRefused { number } => writer.byte(message::CHANNEL_FAILURE).uint32(number),
            Reply::OpenRefused { number } => writer
                .byte(message::CHANNEL_OPEN_FAILURE)
                .uint32(number)
                .uint32(open_failure::ADMINISTRATIVELY_PROHIBITED)
                .string("")
                .string(""),
            Reply::Close { number } => writer.byte(message::CHANNEL_CLOSE).uint32(number),
        };
        true
    }
}
