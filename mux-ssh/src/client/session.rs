//! Everything above the transport as one state machine over payloads: which messages may come in which phase, and what
//! is sent next. It knows nothing of keys, packets on the wire or links.
//!
//! | phase | may come | is answered by |
//! | --- | --- | --- |
//! | key exchange | nothing | – |
//! | login | SERVICE_ACCEPT, USERAUTH_FAILURE, _SUCCESS, _BANNER, and 60 as the method has it | [`Auth`] |
//! | connection | GLOBAL_REQUEST, REQUEST_SUCCESS, REQUEST_FAILURE, all of CHANNEL_* | [`Connection`] |
//!
//! Anything else is a violation; message numbers that nobody knows are answered with UNIMPLEMENTED after the login.

use std::time::Instant;

use bytes::Bytes;

use super::auth::{Auth, AuthConfig, Progress};
use super::channels::Channels;
use super::events::{Events, MAX_UNDELIVERED};
use super::habits::Habits;
use super::host_keys::{self, HostKeys};
use super::incoming::{Connection, Effect};
use super::keepalive::KeepaliveTimer;
use super::opening::{Opening, Permit};
use super::packet::Packet;
use super::replies::Replies;
use super::{ChannelViolation, ClientConfig, Event, SessionBinding, Stage};
use crate::message::disconnect;
use crate::transport::Family;
use crate::{Error, Violation};

#[derive(Debug)]
enum Phase {
    Kex(Box<AuthConfig>),
    Login(Box<Auth>),
    Connection,
}

/// What the transport has to do after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Nothing,
    /// The login is complete.
    LoggedIn,
    /// Answer UNIMPLEMENTED.
    Reject,
    /// The server allows one session: worth remembering.
    OneSession,
}

#[derive(Debug)]
pub(crate) struct Session {
    phase: Phase,
    habits: Habits,
    cautious: bool,
    /// The server did not know what was sent ahead of its answer: nothing is sent ahead any more.
    gamble_over: bool,
    /// What was sent ahead of an answer was refused with it.
    gamble_lost: bool,
    pub(crate) channels: Channels,
    pub(crate) events: Events,
    replies: Replies,
    pub(crate) keepalive: KeepaliveTimer,
    /// Keepalives that the server owes an answer to.
    probes: u32,
    pub(crate) host_keys: HostKeys,
    /// The first exchange hash, once there is one.
    session_id: Bytes,
}

impl Session {
    pub(crate) fn new(config: ClientConfig) -> Self {
        let memory = config.memory.as_ref();
        let auth = AuthConfig {
            user: config.user,
            identities: config.identities,
            methods: config.methods,
            cautious: config.cautious,
            doubted: config.doubted,
            none_first: config.cautious || memory.is_some_and(|memory| memory.none_first),
            accept_none: config.accept_none,
            distrusted: false,
        };
        let one_session = memory.is_some_and(|memory| memory.one_session);
        Self {
            phase: Phase::Kex(Box::new(auth)),
            habits: Habits::of(Family::Unknown),
            cautious: config.cautious,
            gamble_over: config.cautious,
            gamble_lost: false,
            channels: Channels::new(Opening::new(config.spare, one_session)),
            events: Events::default(),
            replies: Replies::default(),
            keepalive: KeepaliveTimer::new(config.keepalive),
            probes: 0,
            host_keys: HostKeys::new(config.host_keys),
            session_id: Bytes::new(),
        }
    }

    /// The server is of this kind.
    pub(crate) fn meet(&mut self, family: Family) {
        self.habits = Habits::of(family);
        self.channels.opening.meet(self.habits);
        self.events.push(Event::Stage(Stage::Banner));
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Connection)
    }

    pub(crate) fn auth(&mut self) -> Option<&mut Auth> {
        match &mut self.phase {
            Phase::Login(auth) => Some(auth),
            Phase::Kex(_) | Phase::Connection => None,
        }
    }

    /// Bytes that the peer made us hold.
    pub(crate) fn has_room(&self) -> bool {
        self.events.weight() + self.replies.weight() <= MAX_UNDELIVERED
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.channels.owed() > 0
    }

    /// Only proofs that are of no use to anybody else.
    pub(crate) fn distrust_server(&mut self) {
        if let Phase::Kex(config) = &mut self.phase {
            config.distrusted = true;
        }
        self.host_keys.ignore();
    }

    /// The host key was accepted and the keys are in use.
    pub(crate) fn begin_login(&mut self, binding: SessionBinding) -> Result<(), Error> {
        match std::mem::replace(&mut self.phase, Phase::Connection) {
            Phase::Kex(config) => {
                self.events.push(Event::Stage(Stage::Auth));
                self.session_id = binding.session_id.clone();
                self.phase = Phase::Login(Box::new(Auth::new(*config, binding)));
                self.advance()
            }
            other @ (Phase::Login(_) | Phase::Connection) => {
                self.phase = other;
                Ok(())
            }
        }
    }

    /// Chooses the next step of the login.
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        match &mut self.phase {
            Phase::Login(auth) => auth.advance(&mut self.events),
            Phase::Kex(_) | Phase::Connection => Ok(()),
        }
    }

    /// Handles one payload.
    pub(crate) fn handle(&mut self, now: Instant, payload: &Bytes) -> Result<Next, Error> {
        let progress = match &mut self.phase {
            Phase::Kex(_) => {
                let number = payload.first().copied().unwrap_or_default();
                return Err(Violation::UnexpectedMessage(number).into());
            }
            Phase::Login(auth) => auth.handle(payload, &mut self.events)?,
            Phase::Connection => return self.handle_connection(now, payload),
        };
        match progress {
            Progress::Waits => Ok(Next::Nothing),
            Progress::Refused => self.handle_refusal().map(|()| Next::Nothing),
            Progress::Success(identity) => {
                self.phase = Phase::Connection;
                self.keepalive.touch(now, self.is_busy());
                self.events.push(Event::Authenticated { identity });
                self.events.push(Event::Stage(Stage::Ready));
                Ok(Next::LoggedIn)
            }
        }
    }

    fn handle_connection(&mut self, now: Instant, payload: &Bytes) -> Result<Next, Error> {
        let Self {
            channels,
            events,
            replies,
            host_keys,
            ..
        } = self;
        match (Connection {
            now,
            channels,
            events,
            replies,
            host_keys,
        })
        .handle(payload)?
        {
            Effect::None => Ok(Next::Nothing),
            Effect::Unknown => Ok(Next::Reject),
            Effect::OneSession => Ok(Next::OneSession),
            Effect::GlobalReply => {
                if let Some(keys) = self.host_keys.answered() {
                    let keys = host_keys::proven(&self.session_id, keys, payload);
                    self.events.push(Event::HostKeysProven(keys));
                    return Ok(Next::Nothing);
                }
                self.probes = self
                    .probes
                    .checked_sub(1)
                    .ok_or(Violation::from(ChannelViolation::UnaskedReply))?;
                Ok(Next::Nothing)
            }
        }
    }

    /// The login was refused, and whatever was sent ahead of the refusal with it: it may be sent again.
    fn handle_refusal(&mut self) -> Result<(), Error> {
        let gambled = self.channels.opening.is_started();
        if gambled {
            self.gamble_lost = true;
            self.channels.revert(&mut self.events);
        }
        match &mut self.phase {
            Phase::Login(auth) if gambled && !self.habits.survives_refusal => Err(auth.refused_early()),
            Phase::Login(auth) => auth.advance(&mut self.events),
            Phase::Kex(_) | Phase::Connection => Ok(()),
        }
    }

    /// The server did not know the message with this sequence number.
    pub(crate) fn unimplemented(&mut self, sequence: u32) {
        // After a refusal that came first, the message waits again under a new number, and this one matches nothing.
        if !self.channels.has_sent(sequence) {
            return;
        }
        if self.is_ready() {
            self.channels.unimplemented(sequence, &mut self.events);
        } else {
            self.gamble_over = true;
            self.channels.revert(&mut self.events);
        }
    }

    /// The server goes away with this reason. That is its answer to the key that was one too many for it.
    pub(crate) fn said_goodbye(&mut self, code: u32) {
        let refuses = [
            disconnect::PROTOCOL_ERROR,
            disconnect::NO_MORE_AUTH_METHODS_AVAILABLE,
        ];
        if let Phase::Login(auth) = &self.phase
            && refuses.contains(&code)
            && auth.was_refused()
            && let Some(identity) = auth.asked_about()
        {
            self.events.push(Event::KeyRefused { identity });
        }
    }

    /// What to tell the owner, when the connection ends with `error`.
    pub(crate) fn end(&self, error: Error) -> Error {
        let Phase::Login(auth) = &self.phase else {
            return error;
        };
        let is_end = match error {
            Error::UnexpectedEof | Error::Disconnected { .. } => true,
            // Some answer what was sent ahead of the refusal as if they had let us in, and then go away.
            Error::Violation(Violation::UnexpectedMessage(_)) => self.gamble_lost,
            Error::Violation(_)
            | Error::Incompatible(_)
            | Error::Misuse(_)
            | Error::HostKeyRejected
            | Error::GuessRejected
            | Error::RekeyTimeout
            | Error::AuthFailed { .. }
            | Error::EarlyAuthRefused { .. }
            | Error::MayHaveRun
            | Error::Silent
            | Error::Crypto => false,
        };
        // Whoever is asked takes longer than some servers wait: that refuses nothing.
        if is_end && auth.was_refused() && !auth.is_prompting() {
            // Whoever connects again sends the command again: only if it can't have run.
            return if self.gamble_lost && !self.channels.in_doubt() {
                auth.refused_early()
            } else {
                auth.failure()
            };
        }
        // Some gateways hang up on a client that does not begin with `none`. One more attempt, step by step; nothing
        // that runs anything was sent.
        let hung_up = error == Error::UnexpectedEof && auth.is_unanswered();
        if hung_up && !self.cautious && !self.channels.opening.is_started() {
            return Error::EarlyAuthRefused { identity: None };
        }
        error
    }

    /// The other side is gone.
    pub(crate) fn cut_off(&mut self) {
        // Said with the last words of commands, hence once.
        let gambled = self.channels.opening.is_started() && self.channels.owed() > 0;
        if gambled
            && !self.habits.survives_refusal
            && let Phase::Login(auth) = &self.phase
            && let Some(identity) = auth.signed_by()
        {
            self.events.push(Event::LoginUnanswered { identity });
        }
        self.connection_lost();
    }

    /// The connection is over.
    pub(crate) fn connection_lost(&mut self) {
        self.channels.connection_lost(&mut self.events);
    }

    /// The next message, which will be sent with this sequence number.
    pub(crate) fn next_packet(&mut self, sequence: u32) -> Option<Packet> {
        if let Some(reply) = self.replies.next_packet() {
            return Some(reply);
        }
        let permit = match &mut self.phase {
            Phase::Kex(_) => return None,
            Phase::Login(auth) => {
                if let Some(packet) = auth.next_packet() {
                    return Some(packet);
                }
                if self.gamble_over || !auth.may_gamble() {
                    return None;
                }
                Permit::Gamble
            }
            Phase::Connection => {
                if self.keepalive.take_probe() {
                    self.probes += 1;
                    return Some(Packet::Keepalive);
                }
                if let Some(keys) = self.host_keys.next(self.probes) {
                    return Some(Packet::ProveHostKeys { keys });
                }
                Permit::Everything
            }
        };
        self.channels.next_packet(sequence, permit, &mut self.events)
    }
}
