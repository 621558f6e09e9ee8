//! The server role: a small sans-IO SSH server for demos, benchmarks and hostile tests. It decides who may log in,
//! answers the requests of session channels, keeps their windows, and misbehaves where its [`Plan`] says so.
//!
//! It never runs a command: [`Event::Exec`] asks its owner, who answers with [`Server::stdout`], [`Server::stderr`],
//! [`Server::exit`] and [`Server::close`]. It never replaces a real server: it has no ptys, no forwarding, no
//! passwords.

mod auth;
mod config;
pub mod key_file;
pub(crate) mod plan;
mod requests;
mod sessions;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};

pub use self::config::{Authorized, ServerConfig, SessionLimits};
pub use self::plan::{Act, Moment, Plan, Point, Step};
pub use self::sessions::{Exit, Output, SessionId};

use self::auth::{Answer, Auth};
use self::plan::{Silence, Tap};
use self::requests::{ChannelRequest, Message, OpenRequest};
use self::sessions::{Item, Sessions};
use crate::Error;
use crate::message::{self, disconnect, open_failure};
use crate::transport::{Counters, Incoming, Transport};
use crate::wire::{Reader, Writer};

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
            error: None,
            config,
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
                drop(
                    out.byte(message::CHANNEL_WINDOW_ADJUST)
                        .uint32(peer)
                        .uint32(grown),
                )
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
        self.send(|out| drop(out.raw(payload)));
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

    fn send(&mut self, fill: impl FnOnce(&mut Writer<'_>)) {
        if !self.leaving {
            self.transport.send(fill);
        }
    }
}

// What the client says.
impl Server {
    fn handle_incoming(&mut self, incoming: Incoming) -> Result<(), Error> {
        match incoming {
            Incoming::Packet(payload) => self.handle_packet(&payload),
            Incoming::NewKeys { first } => {
                self.change_host_key(first);
                Ok(())
            }
            Incoming::Ident
            | Incoming::KexInit
            | Incoming::HostKey(_)
            | Incoming::ExtInfo(_)
            | Incoming::Unimplemented(_) => Ok(()),
        }
    }

    fn handle_packet(&mut self, payload: &Bytes) -> Result<(), Error> {
        match payload.first().copied() {
            Some(message::SERVICE_REQUEST) => self.handle_service_request(payload),
            Some(message::USERAUTH_REQUEST) => self.handle_auth_request(payload),
            // Early packets behind a refused login end here, as in OpenSSH: the connection stays usable.
            Some(_) if self.auth.is_authenticated() => self.handle_connection(payload),
            _ => self.transport.reject_packet(),
        }
    }

    fn handle_service_request(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let service = reader.text()?.to_owned();
        reader.finish()?;
        if service == "ssh-userauth" {
            self.send(|out| drop(out.byte(message::SERVICE_ACCEPT).string(&service)));
        } else {
            self.disconnect(disconnect::SERVICE_NOT_AVAILABLE, "no such service");
        }
        Ok(())
    }

    fn handle_auth_request(&mut self, payload: &[u8]) -> Result<(), Error> {
        let session = self
            .transport
            .session_id()
            .expect("packets of services come after the first key exchange");
        let config = &self.config;
        let first = !self.auth.has_answered();
        let answer = self
            .auth
            .request(payload, session, &config.authorized, config.max_auth_tries)?;
        if first && let Some(banner) = &self.config.banner {
            self.transport.send(|out| auth::write_banner(out, banner));
        }
        match answer {
            Answer::Success { user } => {
                self.send(|out| drop(out.byte(message::USERAUTH_SUCCESS)));
                self.transport.forbid_ext_info();
                self.events.push_back(Event::Authenticated { user });
            }
            Answer::PkOk { algorithm, key } => self.send(|out| auth::write_pk_ok(out, &algorithm, &key)),
            Answer::Failure => self.send(auth::write_failure),
            Answer::TooMany => {
                self.disconnect(disconnect::PROTOCOL_ERROR, "Too many authentication failures")
            }
            Answer::Silence => {}
        }
        Ok(())
    }

    fn handle_connection(&mut self, payload: &Bytes) -> Result<(), Error> {
        match Message::parse(payload)? {
            Message::Open { session, open } => self.handle_open(session, open),
            Message::Adjust { channel, bytes } => self.handle_adjust(channel, bytes),
            Message::Data { channel, data } => self.handle_data(channel, data),
            Message::Eof { channel } => {
                if let Some(session) = self.known(channel) {
                    self.events.push_back(Event::StdinEof { session });
                }
            }
            Message::Close { channel } => self.handle_close(channel),
            Message::Request {
                channel,
                want_reply,
                request,
            } => self.handle_request(channel, want_reply, request),
            Message::Global { want_reply } => {
                if want_reply {
                    self.send(|out| drop(out.byte(message::REQUEST_FAILURE)));
                }
            }
            Message::Unknown => self.transport.reject_packet()?,
        }
        Ok(())
    }

    fn handle_open(&mut self, session: bool, open: OpenRequest) {
        let refuse = |code: u32, text: &'static str| {
            move |out: &mut Writer<'_>| {
                out.byte(message::CHANNEL_OPEN_FAILURE)
                    .uint32(open.peer)
                    .uint32(code)
                    .string(text)
                    .string("");
            }
        };
        if !session {
            return self.send(refuse(open_failure::UNKNOWN_CHANNEL_TYPE, "unknown channel type"));
        }
        let limits = self.config.sessions;
        let Some(id) = self.sessions.open(open.into(), &limits) else {
            // What OpenSSH says beyond MaxSessions.
            return self.send(refuse(open_failure::CONNECT_FAILED, "open failed"));
        };
        let window = if limits.window_after_exec {
            0
        } else {
            limits.window
        };
        self.send(|out| {
            out.byte(message::CHANNEL_OPEN_CONFIRMATION)
                .uint32(open.peer)
                .uint32(id.number);
            out.uint32(window).uint32(limits.max_packet);
        });
    }

    fn handle_adjust(&mut self, channel: u32, bytes: u32) {
        let Some(session) = self.known(channel) else {
            return;
        };
        if self.sessions.adjust(session, bytes) {
            self.events.push_back(Event::Room { session });
        } else {
            self.disconnect(disconnect::PROTOCOL_ERROR, "window overflow");
        }
    }

    fn handle_data(&mut self, channel: u32, data: Bytes) {
        let Some(session) = self.known(channel) else {
            return;
        };
        if self.sessions.received(session, data.len()) {
            self.undelivered += data.len();
            self.events.push_back(Event::Stdin { session, data });
        } else {
            self.disconnect(disconnect::PROTOCOL_ERROR, "data beyond the window");
        }
    }

    fn handle_close(&mut self, channel: u32) {
        let Some(session) = self.known(channel) else {
            return;
        };
        self.sessions.peer_closed(session);
        self.events.push_back(Event::SessionClosed { session });
    }

    fn handle_request(&mut self, channel: u32, want_reply: bool, request: ChannelRequest) {
        let Some(session) = self.known(channel) else {
            return;
        };
        let Some(peer) = self.sessions.peer(session) else {
            return;
        };
        let exec = matches!(request, ChannelRequest::Exec { .. });
        let event = match request {
            ChannelRequest::Exec { command } => self
                .sessions
                .run(session)
                .then_some(Event::Exec { session, command }),
            ChannelRequest::Env { name, value } => Some(Event::Env { session, name, value }),
            ChannelRequest::Signal { name } => Some(Event::Signal { session, name }),
            ChannelRequest::Other => None,
        };
        if want_reply {
            let reply = if event.is_some() {
                message::CHANNEL_SUCCESS
            } else {
                message::CHANNEL_FAILURE
            };
            self.send(|out| drop(out.byte(reply).uint32(peer)));
        }
        if exec && event.is_some() && self.config.sessions.window_after_exec {
            let window = self.config.sessions.window;
            self.sessions.grant(session, window);
            self.send(|out| {
                drop(
                    out.byte(message::CHANNEL_WINDOW_ADJUST)
                        .uint32(peer)
                        .uint32(window),
                )
            });
        }
        self.events.extend(event);
    }

    /// The channel of this number. A number that was never given out ends the connection, as everywhere.
    fn known(&mut self, channel: u32) -> Option<SessionId> {
        let session = self.sessions.by_number(channel);
        if session.is_none() {
            self.disconnect(disconnect::PROTOCOL_ERROR, "unknown channel");
        }
        session
    }

    fn change_host_key(&mut self, first: bool) {
        if let Some(keys) = self.config.rekey_host_keys.as_ref().filter(|_| first) {
            self.transport.replace_host_keys(Arc::clone(keys));
        }
    }

    fn silence(&self) -> Option<Silence> {
        self.transport.silence()
    }

    fn fail(&mut self, error: Error) -> Error {
        if let Error::Disconnected { code, description } = &error {
            self.events.push_back(Event::Disconnected {
                code: *code,
                description: description.clone(),
            });
        }
        self.leaving = true;
        self.error = Some(error.clone());
        error
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
            step.map_err(|error| self.fail(error))?;
        }
        if self.leaving {
            // What comes behind our goodbye is not read, but must not wait either.
            input.clear();
        }
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Error> {
        self.leaving = true;
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.transport
            .handle_timeout(now)
            .map_err(|error| self.fail(error))
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        self.transport.poll_transmit(now, out);
        self.transport.flush_flood(out);
        while !self.leaving && out.has_room() && self.transport.can_send_now() {
            let Some((due, _)) = self.sessions.next_due() else {
                break;
            };
            self.transport
                .send_now(out, |packet| requests::write_due(packet, &due));
        }
    }

    fn poll_close(&self) -> Option<Close> {
        match self.silence() {
            Some(Silence::Close) => Some(Close::Both),
            Some(Silence::HalfClose) => Some(Close::Write),
            Some(Silence::Stall | Silence::NeverRead) => None,
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
                | Event::StdinEof { .. }
                | Event::Signal { .. }
                | Event::Room { .. }
                | Event::SessionClosed { .. }
                | Event::Disconnected { .. },
            ) => {}
        }
        event
    }
}
