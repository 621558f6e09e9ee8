//! The SSH client above the transport: login, session channels, connections through the server, and which of their messages may share a round trip.
//!
//! It reads no clock, no file and no socket, and holds no private key. What it cannot decide by itself it asks its
//! owner as an [`Event`] with a [`QuestionId`].

mod auth;
mod channel;
mod channels;
mod config;
mod event;
mod events;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod habits;
mod host_keys;
mod incoming;
mod keepalive;
mod methods;
mod opening;
mod packet;
mod protocol;
mod replies;
mod session;
mod stdin;
mod table;
#[cfg(test)]
mod tests;
mod userauth;
mod violation;
mod window;

use std::time::Instant;

use bytes::Bytes;

pub use config::{ClientConfig, DirectTcpip, Exec, Identity, Keepalive, Stdin};
pub use event::{ChannelFailure, ChannelId, Event, QuestionId, SessionBinding, Stage, StreamKind};
pub use host_keys::MAX_HOST_KEYS;
pub use methods::{AuthMethod, Field, Methods, Prompt};
pub use violation::{AuthViolation, ChannelViolation};

use crate::keys::PublicKey;
use crate::transport::{Counters, ServerMemory, Transport, TransportConfig};
use crate::{Error, Misuse, Secret};
use session::Session;

/// One SSH connection, seen from the client.
///
/// Drive it as any [`Protocol`](mux_proto::Protocol). Answer [`Event::HostKey`], [`Event::Sign`] and [`Event::Prompt`] when they come;
/// give back the room of [`Event::Output`] with [`consume`](Self::consume), or the server stops after 64 KiB.
#[derive(Debug)]
pub struct Client {
    transport: Transport,
    session: Session,
    /// What is remembered about the server, so that it can be told again when something is added.
    memory: Option<ServerMemory>,
    none_first: bool,
    question: u32,
    /// Bytes of input that were left at the last look.
    unread: usize,
    /// The first error is the last.
    failed: Option<Error>,
    /// The error was returned. Until then the link must not close, or it would close without one.
    told: bool,
    /// The owner ended the connection.
    ended: bool,
    /// The latest time that was told: an error that a command of the owner caused is reported then.
    now: Option<Instant>,
}

impl Client {
    /// A client that has said nothing yet. The first `poll_transmit` gives the first flight.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let transport = TransportConfig {
            algorithms: config.algorithms.clone(),
            known_host_key_types: config.known_host_key_types.clone(),
            known_authority: config.known_authority,
            memory: config.memory.clone(),
            rekey: config.rekey,
        };
        Self {
            transport: Transport::client(transport),
            none_first: config.memory.as_ref().is_some_and(|memory| memory.none_first),
            session: Session::new(config),
            memory: None,
            question: 0,
            unread: 0,
            failed: None,
            told: false,
            ended: false,
            now: None,
        }
    }

    /// Runs a command. Allowed at any time, also before login: it is sent as early as this server allows.
    pub fn exec(&mut self, now: Instant, exec: Exec) -> ChannelId {
        let id = self.session.channels.exec(exec, &mut self.session.events);
        if self.is_over() {
            self.session.connection_lost();
        }
        self.session.keepalive.become_busy(now);
        id
    }

    /// Asks the server to connect to a host that lies behind it, which is a channel like those of commands:
    /// [`Event::Opened`] when the connection stands, or [`Event::ChannelFailed`] if it never does;
    /// [`Event::Output`] (of [`StreamKind::Stdout`]) and [`Event::Eof`] are what that host says,
    /// [`write_stdin`](Self::write_stdin) and [`finish_stdin`](Self::finish_stdin) what it hears;
    /// [`close_channel`](Self::close_channel) sends what is queued, as far as the window goes, and ends it.
    ///
    /// Allowed at any time, also before login.
    pub fn direct_tcpip(&mut self, now: Instant, to: DirectTcpip) -> ChannelId {
        let id = self.session.channels.direct_tcpip(to, &mut self.session.events);
        if self.is_over() {
            self.session.connection_lost();
        }
        self.session.keepalive.become_busy(now);
        id
    }

    /// Lets the command of this channel, and with it whoever rules its server, use the user's agent while it runs. To be
    /// called before the command is sent, which is before [`Event::HostKey`] is answered, and never for a host whose key
    /// was not verified.
    pub fn forward_agent(&mut self, channel: ChannelId) {
        self.session.channels.forward_agent(channel);
    }

    /// What binds an agent's socket to this connection, once there are keys.
    #[must_use]
    pub fn session_binding(&self) -> Option<SessionBinding> {
        self.binding()
    }

    /// Queues bytes for a command's standard input.
    ///
    /// # Errors
    /// The channel is gone, its input is finished, or `data` is more than [`stdin_room`](Self::stdin_room).
    pub fn write_stdin(&mut self, channel: ChannelId, data: Bytes) -> Result<(), Misuse> {
        let channel = self
            .session
            .channels
            .owned(channel)
            .ok_or(Misuse::NoSuchChannel)?;
        if channel.stdin.is_finished() {
            return Err(Misuse::StdinFinished);
        }
        if data.len() > channel.stdin.room() {
            return Err(Misuse::NoStdinRoom);
        }
        channel.stdin.push(data);
        Ok(())
    }

    /// How many bytes [`write_stdin`](Self::write_stdin) takes now.
    #[must_use]
    pub fn stdin_room(&self, channel: ChannelId) -> usize {
        self.session
            .channels
            .owned_ref(channel)
            .map_or(0, |channel| channel.stdin.room())
    }

    /// How many bytes given to [`write_stdin`](Self::write_stdin) have not left; none once the command had its final
    /// event.
    #[must_use]
    pub fn stdin_unsent(&self, channel: ChannelId) -> usize {
        self.session
            .channels
            .owned_ref(channel)
            .map_or(0, |channel| channel.stdin.unsent())
    }

    /// Sends the end of standard input, once what is queued was sent.
    pub fn finish_stdin(&mut self, channel: ChannelId) {
        if let Some(channel) = self.session.channels.owned(channel) {
            channel.stdin.finish();
        }
    }

    /// `count` bytes of output have reached their destination: the server may send as many more.
    /// Both streams share one window (RFC 4254 §5.2).
    pub fn consume(&mut self, channel: ChannelId, _stream: StreamKind, count: usize) {
        let max_window = self.session.channels.max_window();
        if let Some(channel) = self.session.channels.owned(channel) {
            channel.window.consume(count, max_window);
        }
    }

    /// Sends a signal, by its name without `SIG`, to a command, once its channel is confirmed.
    pub fn signal(&mut self, channel: ChannelId, name: &str) {
        if let Some(channel) = self.session.channels.owned(channel) {
            channel.push_signal(name);
        }
    }

    /// Gives a channel up. Its final event follows: at once, if the command was not sent.
    pub fn close_channel(&mut self, channel: ChannelId) {
        self.session.channels.close(channel, &mut self.session.events);
    }

    /// Answers [`Event::HostKey`].
    pub fn answer_host_key(&mut self, question: QuestionId, accept: bool) {
        if question.0 != self.question || !self.transport.waits_for_answer() || self.is_over() {
            return;
        }
        self.transport.answer_host_key(accept);
        if !accept {
            self.fail(Error::HostKeyRejected);
            return;
        }
        self.learn(false);
        let begun = self.binding().map(|binding| self.session.begin_login(binding));
        if let Some(Err(error)) = begun {
            self.fail(error);
        }
    }

    /// The key that the server has is not the right one, and it is connected to for all that. To be called before the
    /// key is accepted: the server gets no password and no answer to its questions.
    pub fn distrust_server(&mut self) {
        self.session.distrust_server();
    }

    /// Asks the server for a proof that it holds these keys, of which it has [told](Event::HostKeys);
    /// [`Event::HostKeysProven`] answers.
    pub fn prove_host_keys(&mut self, keys: Vec<PublicKey>) {
        if !self.is_over() {
            self.session.host_keys.ask(keys);
        }
    }

    /// Answers [`Event::Sign`] with a signature blob (RFC 4253 §6.6); `None`: the identity cannot sign, try the next.
    pub fn answer_signature(&mut self, question: QuestionId, signature: Option<Bytes>) {
        if self.is_over() {
            return;
        }
        if let Some(auth) = self.session.auth() {
            auth.answer(question, signature.as_deref());
        }
        if let Err(error) = self.session.advance() {
            self.fail(error);
        }
    }

    /// Answers [`Event::Prompt`]: as many secrets as it has questions. `None`: nobody can or will say; the login goes on
    /// with what is left.
    pub fn answer_prompt(&mut self, question: QuestionId, answers: Option<&[Secret]>) {
        if self.is_over() {
            return;
        }
        if let Some(auth) = self.session.auth() {
            auth.answer_prompt(question, answers);
        }
        if let Err(error) = self.session.advance() {
            self.fail(error);
        }
    }

    /// Says goodbye and ends the connection.
    pub fn disconnect(&mut self, code: u32, text: &str) {
        if !self.is_over() {
            self.transport.disconnect(code, text);
            self.ended = true;
            self.session.connection_lost();
        }
    }

    /// The link is gone: tells what the server began to say, and gives every channel its final event. To be called by whoever holds the client after its
    /// link failed without a word; a link that ends by `handle_eof` or by an error does not need it.
    pub fn connection_lost(&mut self) {
        self.greet(true);
        self.ended |= self.failed.is_none();
        self.session.cut_off();
    }

    /// Whether the server may have run this command: it was handed to the link. `false` once it had its final event.
    #[must_use]
    pub fn may_have_run(&mut self, channel: ChannelId) -> bool {
        self.session
            .channels
            .owned(channel)
            .is_some_and(|channel| channel.may_have_run())
    }

    /// How many commands have not had their final event.
    #[must_use]
    pub fn open_channels(&self) -> usize {
        self.session.channels.owed()
    }

    /// Whether the channel stands: of a spare that was given a command this is so from the beginning, and no
    /// [`Event::Opened`] follows.
    #[must_use]
    pub fn is_open(&self, channel: ChannelId) -> bool {
        let channel = self.session.channels.owned_ref(channel);
        channel.is_some_and(|channel| matches!(channel.state, channel::State::Open { .. }))
    }

    /// Logged in and no command left.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.session.is_ready() && !self.session.is_busy()
    }

    /// How many sessions this server is known to allow at once on this connection; `None` while no limit was met.
    #[must_use]
    pub fn session_limit(&self) -> Option<usize> {
        self.session.channels.opening.limit()
    }

    /// Sum of all windows beyond their first 64 KiB: what the server may make the owner hold.
    #[must_use]
    pub fn window_growth(&self) -> usize {
        self.session.channels.window_growth()
    }

    /// The size to which a channel's window may grow from now on; windows shrink to it as they are refilled.
    pub fn limit_windows(&mut self, bytes: u32) {
        self.session.channels.limit_windows(bytes);
    }

    /// Counters, for benchmarks and summaries.
    #[must_use]
    pub fn stats(&self) -> Counters {
        self.transport.counters()
    }

    fn is_over(&self) -> bool {
        self.ended || self.failed.is_some()
    }

    /// Tells what is worth remembering, if anything is known.
    fn learn(&mut self, one_session: bool) {
        if self.memory.is_none() {
            self.memory = self.transport.learned().cloned();
        }
        let Some(memory) = &mut self.memory else { return };
        memory.one_session |= one_session || self.session.channels.opening.limit() == Some(1);
        memory.none_first |= self.none_first;
        self.session.events.push(Event::Learned(memory.clone()));
    }

    fn binding(&self) -> Option<SessionBinding> {
        Some(SessionBinding {
            session_id: self.transport.session_id()?.clone(),
            host_key: self.transport.host_key()?.clone(),
            signature: self.transport.host_signature()?.clone(),
        })
    }
}
