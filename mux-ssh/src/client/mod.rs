//! The SSH client above the transport: login, session channels, and which of their messages may share a round trip.
//!
//! It reads no clock, no file and no socket, and holds no private key. What it cannot decide by itself it asks its
//! owner as an [`Event`] with a [`QuestionId`].

mod config;
mod event;
mod violation;

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};

pub use config::{ClientConfig, Exec, Identity, Keepalive, Stdin};
pub use event::{ChannelFailure, ChannelId, Event, QuestionId, SessionBinding, Stage, Stats, StreamKind};
pub use violation::{AuthViolation, ChannelViolation};

use crate::{Error, Misuse};

/// One SSH connection, seen from the client.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
}

impl Client {
    /// A client that has said nothing yet. The first `poll_transmit` gives the first flight.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        Self { config }
    }

    /// Runs a command. Allowed at any time, also before login: it is sent as early as this server allows.
    pub fn exec(&mut self, _now: Instant, _exec: Exec) -> ChannelId {
        ChannelId {
            slot: 0,
            generation: 0,
        }
    }

    /// Queues bytes for a command's standard input.
    ///
    /// # Errors
    /// The channel is gone, its input is finished, or `data` is more than [`stdin_room`](Self::stdin_room).
    pub fn write_stdin(&mut self, _channel: ChannelId, _data: Bytes) -> Result<(), Misuse> {
        Ok(())
    }

    /// How many bytes [`write_stdin`](Self::write_stdin) takes now.
    #[must_use]
    pub fn stdin_room(&self, _channel: ChannelId) -> usize {
        0
    }

    /// Sends the end of standard input, once what is queued was sent.
    pub fn finish_stdin(&mut self, _channel: ChannelId) {}

    /// `count` bytes of output have reached their destination: the server may send as many more.
    pub fn consume(&mut self, _channel: ChannelId, _stream: StreamKind, _count: usize) {}

    /// Sends a signal, by its name without `SIG`, to a command that has been sent.
    pub fn signal(&mut self, _channel: ChannelId, _name: &str) {}

    /// Gives a channel up. Its final event follows.
    pub fn close_channel(&mut self, _channel: ChannelId) {}

    /// Answers [`Event::HostKey`].
    pub fn answer_host_key(&mut self, _question: QuestionId, _accept: bool) {}

    /// Answers [`Event::Sign`] with a signature blob (RFC 4253 §6.6); `None`: the identity cannot sign, try the next.
    pub fn answer_signature(&mut self, _question: QuestionId, _signature: Option<Bytes>) {}

    /// Says goodbye and ends the connection.
    pub fn disconnect(&mut self, _code: u32, _text: &str) {}

    /// The link is gone: gives every channel its final event. To be called by whoever holds the client after its
    /// link failed without a word; a link that ends by `handle_eof` or by an error does not need it.
    pub fn connection_lost(&mut self) {}

    /// How many commands have not had their final event.
    #[must_use]
    pub fn open_channels(&self) -> usize {
        0
    }

    /// Logged in and no command left.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        false
    }

    /// How many sessions this server is known to allow at once on this connection; `None` while no limit was met.
    #[must_use]
    pub fn session_limit(&self) -> Option<usize> {
        None
    }

    /// Sum of all windows beyond their first 64 KiB: what the server may make the owner hold.
    #[must_use]
    pub fn window_growth(&self) -> usize {
        0
    }

    /// The size to which a channel's window may grow from now on; windows shrink to it as they are refilled.
    pub fn limit_windows(&mut self, _bytes: u32) {}

    /// Counters, for benchmarks and summaries.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}

impl Protocol for Client {
    type Event = Event;
    type Error = Error;

    fn wants_input(&self) -> bool {
        true
    }

    fn handle_input(&mut self, _now: Instant, _input: &mut BytesMut) -> Result<(), Error> {
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Error> {
        Ok(())
    }

    fn handle_timeout(&mut self, _now: Instant) -> Result<(), Error> {
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Instant, _out: &mut SendQueue) {}

    fn poll_close(&self) -> Option<Close> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
