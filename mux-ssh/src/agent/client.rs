//! The conversation with one agent: questions go out one at a time, answers come back in order. Decides which
//! answer fits; never holds a deadline (an agent may be asking a person).

use std::collections::VecDeque;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};

use super::codec::{self, AgentIdentity, Answer, Keep};
use super::error::{AgentError, AgentViolation};
use crate::algorithms::SignatureAlgorithm;
use crate::keys::{PrivateKey, SignError};

/// The level above which the trait wants a protocol to stop reading.
const MAX_UNDELIVERED: usize = 256 * 1024;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// [`AgentClient::request_identities`]
    Identities,
    /// [`AgentClient::sign`]
    Sign(SignatureAlgorithm),
    /// [`AgentClient::bind_session`]
    BindSession,
    /// [`AgentClient::add`]
    Add,
}

/// An answer. Every request gets exactly one, in the order of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// The keys that the agent holds.
    Identities {
        /// Those that can be used, in the agent's order.
        identities: Vec<AgentIdentity>,
        /// How many more there are, of types that cannot be used.
        skipped: usize,
    },
    /// A signature blob, `string` name and `string` value, made with the algorithm that was asked for.
    Signature(Bytes),
    /// The session is bound.
    Bound,
    /// The agent has the key.
    Added,
    /// The agent will not. An old agent refuses `BindSession`, which is no reason not to ask for signatures.
    Refused(AgentRequest),
}

/// A connection to an agent. For a login: bind the session, then sign.
#[derive(Debug, Default)]
pub struct AgentClient {
    /// Asked by the owner, not yet sent.
    waiting: VecDeque<(AgentRequest, Bytes)>,
    /// Sent, not yet answered. One at a time: not every agent reads ahead.
    asked: Option<AgentRequest>,
    events: VecDeque<AgentEvent>,
    /// Bytes of answers that `events` holds.
    undelivered: VecDeque<usize>,
    failed: Option<AgentError>,
    closing: bool,
}

impl AgentClient {
    /// A conversation in which nothing has been asked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the keys.
    pub fn request_identities(&mut self) {
        self.waiting
            .push_back((AgentRequest::Identities, codec::request_identities()));
    }

    /// Asks for a signature over `data` by a key or a certificate, as the agent lists it.
    pub fn sign(&mut self, key: &[u8], algorithm: SignatureAlgorithm, data: &[u8]) {
        self.waiting
            .push_back((AgentRequest::Sign(algorithm), codec::sign(key, algorithm, data)));
    }

    /// Tells the agent which session it will sign for. `signature` is the server's over the exchange hash of the
    /// first key exchange; `session_id` is that hash, `host_key` what the server showed: its key, or a certificate.
    pub fn bind_session(&mut self, host_key: &[u8], session_id: &[u8], signature: &[u8]) {
        let frame = codec::session_bind(host_key, session_id, signature, false);
        self.waiting.push_back((AgentRequest::BindSession, frame));
    }

    /// Gives the agent a key, which it shows under this comment.
    ///
    /// # Errors
    /// The library does not tell the numbers of the key.
    pub fn add(&mut self, key: &PrivateKey, comment: &str, keep: Keep) -> Result<(), SignError> {
        let frame = codec::add(key, comment, keep)?;
        self.waiting.push_back((AgentRequest::Add, frame));
        Ok(())
    }

    /// Hangs up. Questions that wait are never sent.
    pub fn close(&mut self) {
        self.closing = true;
        self.waiting.clear();
    }

    /// Whether every question has been answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.asked.is_none() && self.waiting.is_empty()
    }

    fn answer(&mut self, frame: &Bytes) -> Result<AgentEvent, AgentError> {
        let asked = self.asked.take().ok_or(AgentViolation::Unasked)?;
        let unexpected = |number| Err(AgentViolation::UnexpectedAnswer(number).into());
        match (codec::parse(frame)?, asked) {
            (Answer::Failure, asked) => Ok(AgentEvent::Refused(asked)),
            (Answer::Success, AgentRequest::BindSession) => Ok(AgentEvent::Bound),
            (Answer::Success, AgentRequest::Add) => Ok(AgentEvent::Added),
            (Answer::Identities { identities, skipped }, AgentRequest::Identities) => {
                Ok(AgentEvent::Identities { identities, skipped })
            }
            (Answer::Signature(signature), AgentRequest::Sign(algorithm)) => {
                // Old agents ignore the flags and sign with SHA-1: they cannot do what was asked.
                if codec::is_made_with(&signature, algorithm) {
                    Ok(AgentEvent::Signature(signature))
                } else {
                    Ok(AgentEvent::Refused(asked))
                }
            }
            (Answer::Other(number), _) => unexpected(number),
            (Answer::Success | Answer::Identities { .. } | Answer::Signature(_), _) => {
                unexpected(frame.first().copied().unwrap_or_default())
            }
        }
    }

    fn fail<T>(&mut self, error: AgentError) -> Result<T, AgentError> {
        self.failed = Some(error);
        Err(error)
    }

    fn check(&self) -> Result<(), AgentError> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl Protocol for AgentClient {
    type Event = AgentEvent;
    type Error = AgentError;

    fn wants_input(&self) -> bool {
        self.undelivered.iter().sum::<usize>() <= MAX_UNDELIVERED
    }

    fn handle_input(&mut self, _now: Instant, input: &mut BytesMut) -> Result<(), AgentError> {
        self.check()?;
        match codec::take_frame(input) {
            Ok(None) => Ok(()),
            Ok(Some(frame)) => match self.answer(&frame) {
                Ok(event) => {
                    self.undelivered.push_back(frame.len());
                    self.events.push_back(event);
                    Ok(())
                }
                Err(error) => self.fail(error),
            },
            Err(violation) => self.fail(violation.into()),
        }
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), AgentError> {
        self.check()?;
        if self.is_idle() {
            self.closing = true;
            return Ok(());
        }
        self.fail(AgentError::UnexpectedEof)
    }

    fn handle_timeout(&mut self, _now: Instant) -> Result<(), AgentError> {
        self.check()
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        if self.asked.is_some() || self.failed.is_some() {
            return;
        }
        if let Some((request, frame)) = self.waiting.pop_front() {
            out.push(frame);
            self.asked = Some(request);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        self.closing.then_some(Close::Both)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<AgentEvent> {
        self.undelivered.pop_front();
        self.events.pop_front()
    }
}
