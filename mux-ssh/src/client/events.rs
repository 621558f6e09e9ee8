//! Events that wait for the owner, and what they weigh. It decides when the client has too much undelivered to read on.

use std::collections::VecDeque;

use super::{ChannelFailure, Event, Prompt};

/// The link stops reading while more than this waits (`Protocol::wants_input`). Replies that we owe count too.
pub(crate) const MAX_UNDELIVERED: usize = 256 * 1024;

/// What an event weighs beside its text and data, so that a flood of empty ones stops the reading as well.
const EVENT_OVERHEAD: usize = 128;

/// A drained queue keeps room for this many events: more only after a burst, and a burst is not kept.
const KEPT_CAPACITY: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    weight: usize,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        self.weight += weight(&event);
        self.queue.push_back(event);
    }

    pub(crate) fn extend(&mut self, events: impl Iterator<Item = Event>) {
        events.for_each(|event| self.push(event));
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front();
        match &event {
            Some(event) => self.weight -= weight(event),
            None if self.queue.capacity() > KEPT_CAPACITY => self.queue = VecDeque::new(),
            None => {}
        }
        event
    }

    /// Bytes that wait.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

/// What the peer can make large.
fn weight(event: &Event) -> usize {
    let text = match event {
        Event::Output { data, .. } => data.len(),
        Event::Banner(text) | Event::Greeting(text) => text.len(),
        Event::PasswordExpired { words } => words.len(),
        Event::Prompt { prompt, .. } => match prompt {
            Prompt::Password { .. } => 0,
            Prompt::Interactive {
                name,
                instruction,
                fields,
            } => {
                let fields = fields.iter().map(|field| field.text.len());
                name.len() + instruction.len() + fields.sum::<usize>()
            }
        },
        Event::Disconnected { description, .. } => description.len(),
        Event::HostKeys(keys) | Event::HostKeysProven(keys) => keys.iter().map(|key| key.blob().len()).sum(),
        Event::ExitSignal { signal, message, .. } => signal.len() + message.len(),
        Event::ChannelFailed {
            reason: ChannelFailure::Refused { text, .. },
            ..
        } => text.len(),
        Event::ChannelFailed {
            reason:
                ChannelFailure::ExecRefused
                | ChannelFailure::ClosedUnanswered
                | ChannelFailure::ConnectionLost
                | ChannelFailure::Cancelled
                | ChannelFailure::TooLarge
                | ChannelFailure::NoSession,
            ..
        }
        | Event::Stage(_)
        | Event::HostKey { .. }
        | Event::Sign { .. }
        | Event::KeyRefused { .. }
        | Event::MethodRefused { .. }
        | Event::PartialSuccess { .. }
        | Event::LoginUnanswered { .. }
        | Event::Authenticated { .. }
        | Event::Learned(_)
        | Event::Opened { .. }
        | Event::AgentOpened { .. }
        | Event::Eof { .. }
        | Event::ExitStatus { .. }
        | Event::StdinRoom { .. }
        | Event::EnvRefused { .. }
        | Event::ChannelClosed { .. } => 0,
    };
    EVENT_OVERHEAD + text
}
