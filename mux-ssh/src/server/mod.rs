//! The server role: a small sans-IO SSH server for demos, benchmarks and hostile tests. It decides who may log in,
//! answers the requests of session channels, keeps their windows, and misbehaves where its [`Plan`] says so.
//!
//! It never runs a command: [`Event::Exec`] asks its owner, who answers with [`Server::stdout`], [`Server::stderr`],
//! [`Server::exit`] and [`Server::close`]. It never replaces a real server: it has no ptys, makes no connections by
//! itself and has one password for everybody.

mod auth;
mod config;
mod dispatch;
pub mod key_file;
mod plan;
mod requests;
mod session;
mod sessions;
pub(crate) mod tap;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};

pub use self::config::{Authorized, Proofs, Round, ServerConfig, SessionLimits};
pub use crate::keys::draft::Draft;

pub use self::plan::{Act, Moment, Plan, Point, Step};
pub use self::session::{Exit, Output, SessionId};

use self::auth::Auth;
use self::session::Item;
use self::sessions::Sessions;
use self::tap::{Silence, Tap};
use crate::Error;
use crate::message;
use crate::transport::{Counters, Transport};
use crate::wire::Writer;

/// Reading stops while this much stdin waits for its owner (see [`Protocol::wants_input`]).
const MAX_UNDELIVERED: usize = 256 * 1024;
/// Reading stops while this much in answers waits for the client to read it.
const MAX_OWED: usize = 256 * 1024;

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client is in.
    Authenticated {
        /// As whom.
        user: String,
    },
    /// A variable for the command to come.
    Env {
        /// On this channel.
        session: SessionId,
        /// Its name.
        name: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// Run this. It has been confirmed already.
    Exec {
        /// On this channel.
        session: SessionId,
        /// As the client wrote it.
        command: Bytes,
    },
    /// A TCP connection is wanted. Answer with [`Server::accept`] or [`Server::refuse`]; from then on its bytes are
    /// [`Stdin`](Event::Stdin) and [`Server::stdout`], and its end is [`StdinEof`](Event::StdinEof) and [`Server::eof`].
    DirectTcpip {
        /// On this channel.
        session: SessionId,
        /// Where to: a name or an address.
        host: String,
        /// Its port.
        port: u16,
    },
    /// Input for the command; give it back with [`Server::consume`].
    Stdin {
        /// On this channel.
        session: SessionId,
        /// The bytes.
        data: Bytes,
    },
    /// There is no more input.
    StdinEof {
        /// On this channel.
        session: SessionId,
    },
    /// Signal the command.
    Signal {
        /// On this channel.
        session: SessionId,
        /// Name without `SIG`.
        name: String,
    },
    /// The client takes more output than before; see [`Server::room`].
    Room {
        /// On this channel.
        session: SessionId,
    },
    /// The client wants no more of this channel: stop the command. The id is stale from here on.
    SessionClosed {
        /// This channel.
        session: SessionId,
    },
    /// The client answered something that only a [`Plan`] asks.
    Answer {
        /// The message number of the answer.
        message: u8,
    },
    /// The client said goodbye.
    Disconnected {
        /// Reason code of RFC 4253 §11.1.
        code: u32,
        /// Its words.
        description: String,
    },
}

/// One connection of a server.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    transport: Transport,
    auth: Auth,
    sessions: Sessions,
    events: VecDeque<Event>,
    undelivered: usize,
    /// A goodbye is queued; nothing follows it.
    leaving: bool,
    /// The client has sent its last byte.
    client_gone: bool,
    error: Option<Error>,
}

impl Server {
    /// A connection that behaves but where `plan` says otherwise.
    #[must_use]
    pub fn new(config: Arc<ServerConfig>, plan: Plan) -> Self {
        let mut transport = Transport::server(config.transport());
        transport.set_tap(Tap::new(plan));
        Self {
            transport,
            auth: Auth::default(),
            sessions: Sessions::default(),
            events: VecDeque::new(),
            undelivered: 0,
            leaving: false,
            client_gone: false,
            error: None,
            config,
        }
    }

    /// The connection of [`Event::DirectTcpip`] stands.
    pub fn accept(&mut self, session: SessionId) {
        let limits = self.config.sessions;
        if let Some(peer) = self.sessions.confirm(session) {
            let (number, window) = (session.number, limits.window);
            self.send(|out| requests::write_confirmation(out, peer, number, window, limits.max_packet));
        }
    }

    /// The connection of [`Event::DirectTcpip`] is not to be had; for the reason codes see RFC 4254 §5.1.
    pub fn refuse(&mut self, session: SessionId, code: u32, text: &str) {
        if let Some(peer) = self.sessions.refuse(session) {
            self.send(|out| requests::write_refusal(out, peer, code, text));
        }
    }

    /// Sends output of the command. What the client's window does not allow yet waits here: ask
    /// [`room`](Self::room) before.
    pub fn stdout(&mut self, session: SessionId, data: Bytes) {
        self.sessions.push(session, Item::Data(Output::Stdout, data));
    }

    /// Like [`stdout`](Self::stdout), on the second stream.
    pub fn stderr(&mut self, session: SessionId, data: Bytes) {
        self.sessions.push(session, Item::Data(Output::Stderr, data));
    }

    /// How many bytes of output would leave at once as far as the client's window goes.
    #[must_use]
    pub fn room(&self, session: SessionId) -> usize {
        self.sessions.room(session)
    }

    /// Gives back `bytes` of stdin, which makes room for more.
    pub fn consume(&mut self, session: SessionId, bytes: usize) {
        if let Some((peer, grown)) = self.sessions.consume(session, bytes, &self.config.sessions) {
            self.send(|out| {
                out.byte(message::CHANNEL_WINDOW_ADJUST)
                    .uint32(peer)
                    .uint32(grown);
            });
        }
    }

    /// Says how the command ended. Nothing keeps this from being said before the last output, as OpenSSH does.
    pub fn exit(&mut self, session: SessionId, exit: Exit) {
        self.sessions.push(session, Item::Exit(exit));
    }

    /// Says that no more output comes.
    pub fn eof(&mut self, session: SessionId) {
        self.sessions.push(session, Item::Eof);
    }

    /// Closes the channel behind everything that was said on it.
    pub fn close(&mut self, session: SessionId) {
        self.sessions.push(session, Item::Close);
    }

    /// Output, status, end and close of a command that is done at once.
    pub fn reply(&mut self, session: SessionId, stdout: Bytes, status: u32) {
        self.stdout(session, stdout);
        self.exit(session, Exit::Status(status));
        self.eof(session);
        self.close(session);
    }

    /// Starts a new key exchange.
    pub fn start_rekey(&mut self, now: Instant) {
        self.transport.start_rekey(now);
    }

    /// Sends a packet with any payload, whatever it means.
    pub fn send_packet(&mut self, payload: &[u8]) {
        self.send(|out| {
            out.raw(payload);
        });
    }

    /// Says goodbye and closes.
    pub fn disconnect(&mut self, code: u32, description: &str) {
        self.transport.disconnect(code, description);
        self.leaving = true;
    }

    /// Packets and bytes, both ways.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.transport.counters()
    }

    /// Channels in use.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.sessions.len()
    }

    fn silence(&self) -> Option<Silence> {
        self.transport.silence()
    }

    /// A goodbye is how a connection should end; anything else is an error for good.
    fn end(&mut self, error: Error) -> Result<(), Error> {
        self.leaving = true;
        if let Error::Disconnected { code, description } = error {
            self.events.push_back(Event::Disconnected { code, description });
            return Ok(());
        }
        self.error = Some(error.clone());
        Err(error)
    }

    fn send(&mut self, fill: impl FnOnce(&mut Writer<'_>)) {
        if !self.leaving {
            self.transport.send(fill);
        }
    }
}

impl Protocol for Server {
    type Event = Event;
    type Error = Error;

    fn wants_input(&self) -> bool {
        self.silence() != Some(Silence::NeverRead)
            && self.undelivered <= MAX_UNDELIVERED
            && self.transport.queued() <= MAX_OWED
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Error> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        while self.wants_input() && !self.leaving {
            let step = match self.transport.handle_input(now, input) {
                Ok(None) => break,
                Ok(Some(incoming)) => self.handle_incoming(incoming),
                Err(error) => Err(error),
            };
            step.or_else(|error| self.end(error))?;
        }
        if self.leaving {
            // What comes behind our goodbye is not read, but must not wait either.
            input.clear();
        }
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Error> {
        self.leaving = true;
        self.client_gone = true;
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.transport
            .handle_timeout(now)
            .or_else(|error| self.end(error))
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        self.transport.poll_transmit(now, out);
        self.transport.flush_flood(out);
        while !self.leaving
            && out.has_room()
            && self.transport.can_send_now()
            && !self.transport.is_flooding()
        {
            let Some((due, _)) = self.sessions.next_due() else {
                break;
            };
            self.transport
                .send_now(out, |packet| requests::write_due(packet, &due));
        }
        self.transport.flush_flood(out);
    }

    fn poll_close(&self) -> Option<Close> {
        match self.silence() {
            Some(Silence::Close) => Some(Close::Both),
            Some(Silence::HalfClose) => Some(Close::Write),
            // Whoever says nothing keeps the connection for as long as the client does.
            Some(Silence::Stall | Silence::NeverRead) => self.client_gone.then_some(Close::Both),
            None => self.leaving.then_some(Close::Both),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.transport.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        match &event {
            Some(Event::Stdin { data, .. }) => self.undelivered -= data.len(),
            None => self.events = VecDeque::new(),
            Some(
                Event::Authenticated { .. }
                | Event::Env { .. }
                | Event::Exec { .. }
                | Event::DirectTcpip { .. }
                | Event::StdinEof { .. }
                | Event::Signal { .. }
                | Event::Room { .. }
                | Event::SessionClosed { .. }
                | Event::Answer { .. }
                | Event::Disconnected { .. },
            ) => {}
        }
        event
    }
}
