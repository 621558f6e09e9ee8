//! One channel and what it is for, a command or a TCP connection that the server makes: what may be sent on it next,
//! and what the server may say on it now.
//!
//! ```text
//! State:    Wanted ──OPEN──▶ Opening ──CONFIRMATION──▶ Open ──CLOSE──▶ the slot is free
//!             ▲                 │
//!             └─ login refused ─┘
//!
//! Command:  None ──exec()──▶ Waiting ──exec sent──▶ Sent ──SUCCESS──▶ Running
//!                               ▲                    │ └──FAILURE──▶ Over
//!                               └── login refused ───┘
//! ```
//!
//! Output or a result is as good as SUCCESS. A direct-tcpip channel has no request on it: it is `Waiting` until it is
//! confirmed, and `Running` from then on.
//!
//! It never chooses a number and never decides whether another channel goes first.

mod sending;

use std::collections::VecDeque;

use bytes::Bytes;

use super::stdin::StdinQueue;
use super::window::{MAX_PACKET, ReceiveWindow};
use super::{ChannelId, ChannelViolation, DirectTcpip, Exec, Stdin};

/// Signals that may wait for the confirmation of a channel.
const MAX_SIGNALS: usize = 8;

/// The largest data packet that we send, whatever a server takes: a larger one gains nothing and delays its neighbours.
const MAX_DATA: usize = 32 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// OPEN was not sent.
    Wanted,
    /// OPEN was sent.
    Opening {
        /// What the server will call the channel, where that is sure enough to send a command to it.
        number: Option<u32>,
        /// The sequence number of OPEN.
        sequence: u32,
    },
    /// Confirmed.
    Open {
        /// The server's number.
        number: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// A spare: no command yet.
    None,
    /// A command that was not sent.
    Waiting,
    /// Handed to the link; the server may run it from now on.
    Sent {
        /// The sequence number of the request.
        sequence: u32,
    },
    /// The server said that it runs it.
    Running,
    /// The owner had its final event; the channel only waits to be closed.
    Over,
}

/// A request of ours that waits for SUCCESS or FAILURE. Replies on a channel come in order (RFC 4254 §4).
#[derive(Debug)]
enum Expected {
    Env(Bytes),
    Exec,
}

/// What a reply of the server meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Replied {
    Nothing,
    EnvRefused(Bytes),
    ExecRefused,
}

#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) state: State,
    pub(crate) command: Command,
    /// Where the server is to connect to; none: a session, or a way to the agent.
    pub(crate) direct: Option<Box<DirectTcpip>>,
    /// The server opened it, to talk to the user's agent.
    pub(crate) is_agent: bool,
    /// Commands on it are to reach the user's agent.
    pub(crate) wants_agent: bool,
    agent_sent: bool,
    /// The command, until it can't have to be sent again.
    exec: Option<Box<Exec>>,
    env_sent: usize,
    expected: VecDeque<Expected>,
    pub(crate) stdin: StdinQueue,
    signals: VecDeque<Box<str>>,
    /// Bytes that the server takes. Negative while it has not granted what was sent before the confirmation: OpenSSH
    /// confirms with 0 and grants after exec.
    send_window: i64,
    /// What the server takes in one packet.
    max_data: usize,
    pub(crate) window: ReceiveWindow,
    pub(crate) eof_received: bool,
    pub(crate) result_known: bool,
    pub(crate) close_wanted: bool,
    close_sent: bool,
    /// How often the server closed the channel before the command was sent.
    pub(crate) reopened: u8,
    /// How often the server refused to open the channel and was asked again.
    pub(crate) refusals: u8,
}

impl Channel {
    pub(crate) fn new(id: ChannelId, exec: Option<Exec>) -> Self {
        let mut channel = Self {
            id,
            state: State::Wanted,
            command: Command::None,
            direct: None,
            is_agent: false,
            wants_agent: false,
            agent_sent: false,
            exec: None,
            env_sent: 0,
            expected: VecDeque::new(),
            stdin: StdinQueue::default(),
            signals: VecDeque::new(),
            send_window: 0,
            max_data: 0,
            window: ReceiveWindow::new(),
            eof_received: false,
            result_known: false,
            close_wanted: false,
            close_sent: false,
            reopened: 0,
            refusals: 0,
        };
        if let Some(exec) = exec {
            channel.give(exec);
        }
        channel
    }

    /// A channel for a TCP connection that the server is to make.
    pub(crate) fn direct(id: ChannelId, to: DirectTcpip) -> Self {
        let mut channel = Self::new(id, None);
        channel.direct = Some(Box::new(to));
        channel.command = Command::Waiting;
        channel
    }

    /// A channel that the server has opened to the user's agent, under this number.
    pub(crate) fn agent(id: ChannelId, number: u32, window: u32, max_packet: u32) -> Self {
        let mut channel = Self::new(id, None);
        channel.is_agent = true;
        channel.state = State::Open { number };
        channel.command = Command::Running;
        channel.send_window = i64::from(window);
        channel.max_data = usize::try_from(max_packet).unwrap_or(MAX_DATA).min(MAX_DATA);
        channel
    }

    /// Gives a command to a spare.
    pub(crate) fn give(&mut self, exec: Exec) {
        if exec.stdin == Stdin::Closed {
            self.stdin.finish();
        }
        self.exec = Some(Box::new(exec));
        self.command = Command::Waiting;
    }

    /// Whether a command may be given to it.
    pub(crate) fn is_spare(&self) -> bool {
        self.command == Command::None && !self.close_wanted
    }

    /// Whether its owner waits for a final event.
    pub(crate) fn is_owed(&self) -> bool {
        match self.command {
            Command::Waiting | Command::Sent { .. } | Command::Running => true,
            Command::None | Command::Over => false,
        }
    }

    pub(crate) fn is_session(&self) -> bool {
        self.direct.is_none() && !self.is_agent
    }

    /// Whether the server may have run the command.
    pub(crate) fn may_have_run(&self) -> bool {
        match self.command {
            Command::Sent { .. } | Command::Running => self.is_session(),
            Command::None | Command::Waiting | Command::Over => false,
        }
    }

    /// Whether anything of a command was sent on the channel, so that it can't serve another.
    pub(crate) fn is_touched(&self) -> bool {
        self.env_sent > 0 || self.agent_sent || self.may_have_run() || self.command == Command::Over
    }

    /// Whether this is the sequence number of its OPEN or of its command.
    pub(crate) fn has_sent(&self, sequence: u32) -> bool {
        let opened = matches!(self.state, State::Opening { sequence: open, .. } if open == sequence);
        opened || self.command == Command::Sent { sequence }
    }

    pub(crate) fn close_sent(&self) -> bool {
        self.close_sent
    }

    /// The number that the server knows the channel by, as far as it may be used.
    pub(crate) fn number(&self) -> Option<u32> {
        match self.state {
            State::Wanted => None,
            State::Opening { number, .. } => number,
            State::Open { number } => Some(number),
        }
    }

    pub(crate) fn push_signal(&mut self, name: &str) {
        if self.signals.len() < MAX_SIGNALS {
            self.signals.push_back(name.into());
        }
    }

    /// OPEN leaves with this sequence number.
    pub(crate) fn opening(&mut self, number: Option<u32>, sequence: u32) {
        self.state = State::Opening { number, sequence };
    }

    /// The server opened the channel.
    pub(crate) fn confirm(
        &mut self,
        number: u32,
        window: u32,
        max_packet: u32,
    ) -> Result<(), ChannelViolation> {
        let State::Opening { number: expected, .. } = self.state else {
            return Err(ChannelViolation::NotOpening);
        };
        if self.is_session() && self.is_touched() && expected != Some(number) {
            return Err(ChannelViolation::Number);
        }
        if max_packet == 0 {
            return Err(ChannelViolation::PacketSize);
        }
        let sent = i64::try_from(self.stdin.confirm()).unwrap_or(i64::MAX);
        self.send_window = i64::from(window) - sent;
        self.max_data = usize::try_from(max_packet).unwrap_or(MAX_DATA).min(MAX_DATA);
        self.state = State::Open { number };
        if self.may_have_run() {
            self.exec = None;
        }
        if !self.is_session() && self.command == Command::Waiting {
            self.command = Command::Running;
        }
        Ok(())
    }

    /// The server did not look at anything that was sent on the channel: all of it waits again.
    pub(crate) fn revert(&mut self) {
        self.state = State::Wanted;
        self.env_sent = 0;
        self.agent_sent = false;
        self.expected = VecDeque::new();
        self.stdin.revert();
        if self.may_have_run() {
            self.command = Command::Waiting;
        }
    }

    /// The server closed the channel before the command was sent on it. It starts anew on another.
    pub(crate) fn restart(&mut self) {
        self.revert();
        self.reopened += 1;
        self.window = ReceiveWindow::new();
        self.eof_received = false;
    }

    /// The server takes `bytes` more.
    pub(crate) fn adjust(&mut self, bytes: u32) -> Result<(), ChannelViolation> {
        let window = self.send_window + i64::from(bytes);
        if window > i64::from(u32::MAX) {
            return Err(ChannelViolation::WindowOverflow);
        }
        self.send_window = window;
        Ok(())
    }

    /// `count` bytes of output arrived. Returns whether the owner still wants them.
    pub(crate) fn receive(&mut self, count: usize, max_window: u32) -> Result<bool, ChannelViolation> {
        if matches!(self.command, Command::None | Command::Waiting) {
            return Err(ChannelViolation::BeforeCommand);
        }
        if self.eof_received {
            return Err(ChannelViolation::DataAfterEof);
        }
        if u32::try_from(count).map_or(true, |count| count > MAX_PACKET) {
            return Err(ChannelViolation::PacketSize);
        }
        self.window.receive(count).map_err(|_| ChannelViolation::Window)?;
        if self.command == Command::Over {
            self.window.consume(count, max_window);
            return Ok(false);
        }
        self.prove_running();
        Ok(count > 0)
    }

    /// Output or a result came: the command runs. Paramiko's servers may say so after all else, even after CLOSE.
    pub(crate) fn prove_running(&mut self) {
        if matches!(self.command, Command::Sent { .. }) {
            self.command = Command::Running;
        }
    }

    /// Requests that the server has not answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.expected.len()
    }

    /// SUCCESS or FAILURE arrived.
    pub(crate) fn reply(&mut self, success: bool) -> Result<Replied, ChannelViolation> {
        match self.expected.pop_front().ok_or(ChannelViolation::UnaskedReply)? {
            Expected::Env(_) if success => Ok(Replied::Nothing),
            Expected::Env(name) => Ok(Replied::EnvRefused(name)),
            Expected::Exec if !matches!(self.command, Command::Sent { .. }) => Ok(Replied::Nothing),
            Expected::Exec if success => {
                self.command = Command::Running;
                self.expected = VecDeque::new();
                Ok(Replied::Nothing)
            }
            Expected::Exec => {
                self.command = Command::Over;
                self.stdin.discard();
                Ok(Replied::ExecRefused)
            }
        }
    }
}
