//! What each packet of a client does to a server: the answer, the change of state, the event. It decides like OpenSSH
//! wherever a client could tell the difference; it never looks at the plan of misbehaviour.

use std::sync::Arc;

use bytes::Bytes;

use super::auth::{self, Answer};
use super::requests::{self, ChannelRequest, Kind, Message, OpenRequest};
use super::{Event, Server, SessionId};
use crate::Error;
use crate::message::{self, disconnect, open_failure};
use crate::transport::Incoming;
use crate::wire::{Reader, Writer};

impl Server {
    pub(super) fn handle_incoming(&mut self, incoming: Incoming) -> Result<(), Error> {
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
            Some(message::USERAUTH_INFO_RESPONSE) if self.auth.is_asking() => {
                let answer = self.auth.response(payload, &self.config)?;
                self.answer_auth(answer);
                Ok(())
            }
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
            self.send(|out| {
                out.byte(message::SERVICE_ACCEPT).string(&service);
            });
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
        let first = !self.auth.has_answered();
        let answer = self.auth.request(payload, session, &self.config)?;
        if first && let Some(banner) = &self.config.banner {
            self.transport.send(|out| auth::write_banner(out, banner));
        }
        self.answer_auth(answer);
        Ok(())
    }

    fn answer_auth(&mut self, answer: Answer) {
        let proofs = Arc::clone(&self.config.proofs);
        match answer {
            Answer::Success { user } => {
                self.send(|out| {
                    out.byte(message::USERAUTH_SUCCESS);
                });
                self.transport.login_done();
                self.events.push_back(Event::Authenticated { user });
            }
            Answer::PkOk { algorithm, key } => self.send(|out| auth::write_pk_ok(out, &algorithm, &key)),
            Answer::Ask(at) => {
                if let Some(round) = proofs.rounds.get(at) {
                    self.send(|out| auth::write_round(out, round));
                }
            }
            Answer::Expired => self.send(auth::write_expired),
            Answer::Failure { partial } => {
                let methods = self.auth.methods(&proofs);
                self.send(|out| auth::write_failure(out, &methods, partial));
            }
            Answer::TooMany => {
                self.disconnect(disconnect::PROTOCOL_ERROR, "Too many authentication failures")
            }
            Answer::Silence => {}
        }
    }

    fn handle_connection(&mut self, payload: &Bytes) -> Result<(), Error> {
        match Message::parse(payload)? {
            Message::Open { kind, open } => self.handle_open(kind, open),
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
                    self.send(|out| {
                        out.byte(message::REQUEST_FAILURE);
                    });
                }
            }
            Message::Answer { message } => self.events.push_back(Event::Answer { message }),
            Message::Unknown => self.transport.reject_packet()?,
        }
        Ok(())
    }

    fn handle_open(&mut self, kind: Kind, open: OpenRequest) {
        let refuse = |code: u32, text: &'static str| {
            move |out: &mut Writer<'_>| requests::write_refusal(out, open.peer, code, text)
        };
        let limits = self.config.sessions;
        match kind {
            Kind::Session => {}
            Kind::DirectTcpip { host, port } if self.config.forwards => {
                let session = self.sessions.open_pending(open.into(), &limits);
                self.events
                    .extend(session.map(|session| Event::DirectTcpip { session, host, port }));
                return;
            }
            // What OpenSSH says without AllowTcpForwarding.
            Kind::DirectTcpip { .. } => {
                return self.send(refuse(open_failure::ADMINISTRATIVELY_PROHIBITED, "open failed"));
            }
            Kind::Other => {
                return self.send(refuse(open_failure::UNKNOWN_CHANNEL_TYPE, "unknown channel type"));
            }
        }
        let Some(id) = self.sessions.open(open.into(), &limits) else {
            // What OpenSSH says beyond MaxSessions.
            return self.send(refuse(open_failure::CONNECT_FAILED, "open failed"));
        };
        let window = if limits.window_after_exec {
            0
        } else {
            limits.window
        };
        self.send(|out| requests::write_confirmation(out, open.peer, id.number, window, limits.max_packet));
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
            self.send(|out| {
                out.byte(reply).uint32(peer);
            });
        }
        if exec && event.is_some() && self.config.sessions.window_after_exec {
            let window = self.config.sessions.window;
            self.sessions.grant(session, window);
            self.send(|out| {
                out.byte(message::CHANNEL_WINDOW_ADJUST)
                    .uint32(peer)
                    .uint32(window);
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
}
