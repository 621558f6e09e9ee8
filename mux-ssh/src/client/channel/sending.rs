//! What is sent on a channel, and in which order. Changes nothing but what was sent; what the server says is taken note of
//! beside this file.

use std::collections::VecDeque;

use super::{Channel, Command, Expected, State};
use crate::client::packet::Packet;

impl Channel {
    /// The next message of this channel, but for OPEN. `sequence` is the one that it will be sent with.
    pub(crate) fn next_packet(&mut self, sequence: u32) -> Option<Packet> {
        let number = self.number()?;
        let confirmed = matches!(self.state, State::Open { .. });
        if self.close_sent {
            return None;
        }
        if self.close_wanted && confirmed {
            return Some(self.close(number));
        }
        match self.command {
            Command::None => None,
            Command::Waiting => self.next_of_command(number, sequence),
            Command::Over if confirmed && !self.is_session() => self.next_of_goodbye(number),
            Command::Over => confirmed.then(|| self.close(number)),
            Command::Sent { .. } | Command::Running if confirmed => self.next_of_open(number),
            Command::Sent { .. } | Command::Running => self.next_of_unconfirmed(number),
        }
    }

    fn close(&mut self, number: u32) -> Packet {
        self.close_sent = true;
        self.stdin.discard();
        self.signals = VecDeque::new();
        self.exec = None;
        Packet::Close { number }
    }

    fn next_of_command(&mut self, number: u32, sequence: u32) -> Option<Packet> {
        let exec = self.exec.as_ref()?;
        if self.wants_agent && !std::mem::replace(&mut self.agent_sent, true) {
            return Some(Packet::AgentRequest { number });
        }
        if let Some((name, value)) = exec.env.get(self.env_sent).cloned() {
            self.env_sent += 1;
            self.expected.push_back(Expected::Env(name.clone()));
            return Some(Packet::Env { number, name, value });
        }
        let command = exec.command.clone();
        self.command = Command::Sent { sequence };
        self.expected.push_back(Expected::Exec);
        if matches!(self.state, State::Open { .. }) {
            self.exec = None;
        }
        Some(Packet::Exec { number, command })
    }

    fn next_of_open(&mut self, number: u32) -> Option<Packet> {
        if self.window.refill_due() {
            return Some(Packet::Adjust {
                number,
                bytes: self.window.refill(),
            });
        }
        if let Some(name) = self.signals.pop_front() {
            return Some(Packet::Signal { number, name });
        }
        let data = self.next_data(number);
        if data.is_some() {
            return data;
        }
        self.stdin.take_eof().then_some(Packet::Eof { number })
    }

    /// A connection that its owner is done with: what it said last leaves, as far as the server takes it.
    fn next_of_goodbye(&mut self, number: u32) -> Option<Packet> {
        let last = self.next_data(number);
        Some(last.unwrap_or_else(|| self.close(number)))
    }

    fn next_data(&mut self, number: u32) -> Option<Packet> {
        let room = usize::try_from(self.send_window).unwrap_or(0).min(self.max_data);
        let data = (room > 0).then(|| self.stdin.take(room)).flatten()?;
        self.send_window -= i64::try_from(data.len()).unwrap_or(i64::MAX);
        Some(Packet::Data { number, data })
    }

    fn next_of_unconfirmed(&mut self, number: u32) -> Option<Packet> {
        let room = self.stdin.unconfirmed_room();
        if room > 0
            && let Some(data) = self.stdin.take_unconfirmed(room)
        {
            return Some(Packet::Data { number, data });
        }
        self.stdin.take_eof().then_some(Packet::Eof { number })
    }
}
