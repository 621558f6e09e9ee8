//! The client as a [`Protocol`]: what the transport read goes to the session, what the session wants sent goes to the
//! transport, and the first error of either ends both.

use std::time::Instant;

use bytes::BytesMut;
use mux_proto::{Close, Protocol, SendQueue};

use super::session::Next;
use super::{Client, Event, QuestionId, Stage};
use crate::Error;
use crate::message::disconnect;
use crate::transport::{Incoming, ShownKey};

impl Protocol for Client {
    type Event = Event;
    type Error = Error;

    fn wants_input(&self) -> bool {
        self.session.has_room() && !self.transport.waits_for_answer() && !self.transport.owes_much()
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Error> {
        self.start(now)?;
        if self.ended {
            // Nothing that comes after our goodbye changes anything.
            input.clear();
            return Ok(());
        }
        // What is offered again, such as the first half of a packet whose second half never comes, is no sign of life.
        if self.session.is_ready() && input.len() > self.unread {
            self.session.keepalive.touch(now, self.session.is_busy());
        }
        let result = self.read(now, input);
        self.unread = input.len();
        self.greet(result.is_err());
        self.settle(result)
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), Error> {
        self.start(now)?;
        if self.ended {
            return Ok(());
        }
        self.greet(true);
        let error = self.transport.handle_eof();
        self.settle(Err(error))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        self.start(now)?;
        if self.ended {
            return Ok(());
        }
        self.session.channels.opening.handle_timeout(now);
        let result = self.transport.handle_timeout(now).and_then(|()| {
            let (busy, reading) = (self.session.is_busy(), self.wants_input());
            self.session.keepalive.handle_timeout(now, busy, reading)
        });
        self.settle(result)
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        self.now = Some(now);
        self.transport.poll_transmit(now, out);
        while out.has_room() && self.transport.can_send_now() && !self.is_over() {
            let sequence = self.transport.next_send_sequence();
            let Some(packet) = self.session.next_packet(sequence) else {
                break;
            };
            self.transport.send_now(out, |to| packet.write(to));
            // New keys may have become due by what was just sent.
            self.transport.poll_transmit(now, out);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        (self.ended || self.told).then_some(Close::Both)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.failed.is_some() || self.ended {
            // An error that a command of the owner caused is told as soon as someone asks.
            return self.now.filter(|_| self.failed.is_some() && !self.told);
        }
        let timers = [
            self.transport.poll_timeout(),
            self.session.keepalive.deadline(),
            self.session.channels.opening.deadline(),
        ];
        timers.into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.session.events.pop()
    }
}

impl Client {
    fn start(&mut self, now: Instant) -> Result<(), Error> {
        self.now = Some(now);
        match &self.failed {
            Some(error) => {
                self.told = true;
                Err(error.clone())
            }
            None => Ok(()),
        }
    }

    fn read(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Error> {
        while self.wants_input() {
            let Some(incoming) = self.transport.handle_input(now, input)? else {
                return Ok(());
            };
            self.take(now, incoming)?;
        }
        Ok(())
    }

    fn take(&mut self, now: Instant, incoming: Incoming) -> Result<(), Error> {
        match incoming {
            Incoming::Ident => {
                if let Some(ident) = self.transport.peer_ident() {
                    self.session.meet(ident.family());
                }
            }
            Incoming::KexInit | Incoming::NewKeys { .. } => {}
            Incoming::HostKey(ShownKey { key, certificate }) => {
                self.question += 1;
                self.session.events.push(Event::Stage(Stage::Kex));
                self.session.events.push(Event::HostKey {
                    id: QuestionId(self.question),
                    key,
                    certificate,
                    types: self.transport.host_key_types().to_vec(),
                });
            }
            Incoming::ExtInfo(info) => {
                if let Some(auth) = self.session.auth() {
                    auth.set_algorithms(info.server_sig_algs);
                }
            }
            Incoming::Unimplemented(sequence) => self.session.unimplemented(sequence),
            Incoming::Packet(payload) => match self.session.handle(now, &payload)? {
                Next::Nothing => {}
                Next::LoggedIn => self.transport.login_done(),
                Next::Reject => self.transport.reject_packet()?,
                Next::OneSession => self.learn(true),
            },
        }
        Ok(())
    }

    /// Passes on what the server says before its identification, `all` of it if nothing more will come.
    pub(super) fn greet(&mut self, all: bool) {
        if let Some(text) = self.transport.take_greeting(all) {
            self.session.events.push(Event::Greeting(text));
        }
    }

    fn settle(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        let Err(error) = result else { return Ok(()) };
        if let Error::Disconnected { code, description } = &error {
            let (code, description) = (*code, description.clone());
            self.session.said_goodbye(code);
            self.session
                .events
                .push(Event::Disconnected { code, description });
        }
        let error = self.session.end(error);
        self.fail(error.clone());
        self.told = true;
        Err(error)
    }

    /// The connection ends with this error.
    pub(super) fn fail(&mut self, error: Error) {
        if let Some((code, text)) = goodbye(&error) {
            self.transport.disconnect(code, text);
        }
        self.session.cut_off();
        self.failed = Some(error);
    }
}

/// What the server is told about an error; `None`: it knows, or is gone.
fn goodbye(error: &Error) -> Option<(u32, &'static str)> {
    match error {
        Error::Violation(_) => Some((disconnect::PROTOCOL_ERROR, "protocol error")),
        Error::AuthFailed { .. } | Error::EarlyAuthRefused { .. } => Some((
            disconnect::NO_MORE_AUTH_METHODS_AVAILABLE,
            "no more authentication methods",
        )),
        Error::Silent => Some((disconnect::BY_APPLICATION, "no answer")),
        Error::MayHaveRun => Some((disconnect::BY_APPLICATION, "")),
        // The transport has said what there is to say about its own errors.
        Error::Incompatible(_)
        | Error::Misuse(_)
        | Error::Disconnected { .. }
        | Error::UnexpectedEof
        | Error::HostKeyRejected
        | Error::GuessRejected
        | Error::RekeyTimeout
        | Error::Crypto => None,
    }
}
