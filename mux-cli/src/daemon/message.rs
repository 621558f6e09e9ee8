//! What a client and the daemon say to each other on a channel of the kind [`HUB`]: the hub's own values, each a message
//! of CBOR behind its length. Decides the words and how they are cut out of a stream of bytes; not what they lead to.
//!
//! One channel a client, in order: output comes before the end of its command, and an answer after its question. What
//! a command may write ahead is bounded by the windows of its SSH channel, which only [`Up::Consume`] refills.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use mux_proto::connection::{ChannelId, Stream};
use mux_proto::{Connection, error::Misuse};

use super::codec::{self, Malformed, Value, enums, structs};
use crate::hub::{
    Action, Answer, Event, Likeness, MissingStatus, Reason, Request, RequestId, Route, SshOptions,
    StreamKind, Ticket, Transport,
};

/// The kind of the channel; the number changes with the form of the messages, so that two versions that do not understand
/// each other find out before anything runs.
pub(crate) const HUB: &str = "hub/1";

/// The kind of the channel that asks for a report: text for [`Report`](super::status::Report) follows.
pub(crate) const STATUS: &str = "status/1";

/// The kind of the channel that ends the daemon.
pub(crate) const STOP: &str = "stop/1";

/// The kind of the channel that ends connections; its argument is a list of their names.
pub(crate) const DROP: &str = "drop/1";

/// Longer ones are no message: a command is at most some megabytes (`ARG_MAX`), and so is everything else.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// Bytes of a length.
const PREFIX: usize = 4;

/// What is said about a client's run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Requests at once.
    pub(crate) fanout: usize,
    /// Of so many in all.
    pub(crate) expected: usize,
    /// No connection is good enough that stood before.
    pub(crate) fresh: bool,
}

/// A request, but for what it shares with those before it.
#[derive(Debug)]
pub(crate) struct Order {
    id: RequestId,
    host: String,
    address: String,
    port: u16,
    user: String,
    env: Vec<(Bytes, Bytes)>,
    env_by_habit: Vec<(Bytes, Bytes)>,
    stdin: bool,
    retries: u32,
    missing_status: MissingStatus,
    connect_timeout: Duration,
    login_timeout: Duration,
    command_timeout: Option<Duration>,
    like: Option<Likeness>,
}

impl Order {
    pub(crate) fn of(request: &Request) -> Self {
        let request = request.clone();
        Self {
            id: request.id,
            host: request.host,
            address: request.address,
            port: request.port,
            user: request.user,
            env: request.env,
            env_by_habit: request.env_by_habit,
            stdin: request.stdin,
            retries: request.retries,
            missing_status: request.missing_status,
            connect_timeout: request.connect_timeout,
            login_timeout: request.login_timeout,
            command_timeout: request.command_timeout,
            like: request.like,
        }
    }

    pub(crate) fn into_request(self, options: Arc<SshOptions>, command: Bytes) -> Request {
        Request {
            id: self.id,
            host: self.host,
            address: self.address,
            port: self.port,
            user: self.user,
            transport: Transport::Ssh(options),
            route: Route::Direct,
            command,
            env: self.env,
            env_by_habit: self.env_by_habit,
            stdin: self.stdin,
            retries: self.retries,
            missing_status: self.missing_status,
            connect_timeout: self.connect_timeout,
            login_timeout: self.login_timeout,
            command_timeout: self.command_timeout,
            like: self.like,
        }
    }
}

/// From the client.
#[derive(Debug)]
pub(crate) enum Up {
    /// What the requests that follow have in common: how their clients behave, and the command.
    Common(SshOptions, Bytes),
    /// Run this.
    Submit(Order),
    /// To an action.
    Answer(Ticket, Answer),
    /// So much output has found its place.
    Consume(RequestId, StreamKind, usize),
    /// Stop one.
    Cancel(RequestId, Reason),
    /// Stop all.
    CancelAll(Reason),
    /// Start no more.
    Hold,
}

/// From the daemon.
#[derive(Debug)]
pub(crate) enum Down {
    /// Something that only the client can do.
    Action(Ticket, Action),
    /// Something that happened.
    Event(Event),
    /// Of so many requests that were submitted nothing is left to do, and these may still be running.
    Idle(u32, Vec<RequestId>),
    /// Whether nothing goes on before host keys were judged.
    Waits(bool),
}

structs! {
    Terms { fanout, expected, fresh }
    Order {
        id, host, address, port, user, env, env_by_habit, stdin, retries, missing_status, connect_timeout,
        login_timeout, command_timeout, like,
    }
}

enums! {
    Up {
        0 Common { 0: options, 1: command }
        1 Submit { 0: order }
        2 Answer { 0: ticket, 1: answer }
        3 Consume { 0: request, 1: stream, 2: count }
        4 Cancel { 0: request, 1: reason }
        5 CancelAll { 0: reason }
        6 Hold {}
    }
    Down {
        0 Action { 0: ticket, 1: action }
        1 Event { 0: event }
        2 Idle { 0: submitted, 1: left_running }
        3 Waits { 0: waits }
    }
}

/// The messages of one channel, both ways.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// What came, as far as it is no whole message.
    input: BytesMut,
    /// What is to go, as far as the connection has no room for it. Bounded by the windows of the commands on one side,
    /// by what the other asked for on the other.
    output: VecDeque<Bytes>,
    /// Small ones on their way together: a frame costs more than a message.
    gathered: BytesMut,
}

impl Messages {
    /// Queues a message, which leaves with [`flush`](Self::flush).
    pub(crate) fn say(&mut self, message: &impl Value) {
        let body = codec::encode(message);
        let len = u32::try_from(body.len()).expect("a message is a few megabytes at most");
        self.gathered.extend_from_slice(&len.to_be_bytes());
        self.gathered.extend_from_slice(&body);
        if self.gathered.len() >= mux_proto::frame::MAX_BODY {
            self.output.push_back(self.gathered.split().freeze());
        }
    }

    /// Whether anything waits to be handed on.
    pub(crate) fn has_output(&self) -> bool {
        !self.gathered.is_empty() || !self.output.is_empty()
    }

    /// Hands on as much as there is room for.
    pub(crate) fn flush(&mut self, connection: &mut Connection, channel: ChannelId) -> Result<(), Misuse> {
        if !self.gathered.is_empty() {
            self.output.push_back(self.gathered.split().freeze());
        }
        while let Some(front) = self.output.front_mut() {
            let room = connection.room(channel).min(front.len());
            if room == 0 {
                // Told once there is room again.
                let refused = connection.send(channel, Stream::Out, front.clone());
                return match refused {
                    Err(Misuse::QueueFull) => Ok(()),
                    Ok(()) => {
                        self.output.pop_front();
                        Ok(())
                    }
                    Err(misuse) => Err(misuse),
                };
            }
            let piece = front.split_to(room);
            if front.is_empty() {
                self.output.pop_front();
            }
            connection.send(channel, Stream::Out, piece)?;
        }
        Ok(())
    }

    /// Bytes came.
    pub(crate) fn take_in(&mut self, data: &Bytes) {
        self.input.extend_from_slice(data);
    }

    /// The next message that is whole.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn next<T: Value>(&mut self) -> Result<Option<T>, Malformed> {
        let Some(prefix) = self.input.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let len = usize::try_from(u32::from_be_bytes(*prefix)).map_err(|_| Malformed)?;
        if len > MAX_MESSAGE {
            return Err(Malformed);
        }
        if self.input.len() < PREFIX + len {
            return Ok(None);
        }
        self.input.advance(PREFIX);
        codec::decode(&self.input.split_to(len)).map(Some)
    }
}
