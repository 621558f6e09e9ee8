//! What a frame of the peer means. What is wrong with the link ends it; what is wrong with a channel, or with a frame
//! that should have reached somebody else, is answered with a `Reset` and counted, and costs nobody else anything.

use std::time::Instant;

use bytes::Bytes;

use super::event::{ChannelId, Event, Stream};
use super::{Connection, MAX_ROUTES, Phase, Role};
use crate::body::{self, BodyError, Goodbye, Hello, Log, Open, Reset, Route};
use crate::codes::ResetCode;
use crate::error::{Error, Incompatible, Violation};
use crate::frame::{FLAG_STDERR, Frame, Header, Kind, NodeId};

impl Connection {
    pub(super) fn receive(&mut self, now: Instant, frame: Frame) -> Result<(), Error> {
        let Frame { header, body } = frame;
        let kind = header.kind;
        let is_greeted = self.phase == Phase::Open;
        match kind {
            Kind::Hello if is_greeted => Err(Violation::SecondHello.into()),
            Kind::Hello => self.receive_hello(&body),
            _ if !is_greeted => Err(Violation::BeforeHello(kind).into()),
            Kind::Ping => {
                self.owe(Frame::new(Header::link(Kind::Pong, 0), body));
                Ok(())
            }
            Kind::Pong if self.keepalive.pong(now, &body) => Ok(()),
            Kind::Pong => Err(Violation::Pong.into()),
            Kind::Route | Kind::Log if self.config.role == Role::Below => {
                Err(Violation::FromAbove(kind).into())
            }
            Kind::Route => self.receive_route(&body),
            Kind::Log => {
                let log = read(kind, Log::decode(&body))?;
                self.tell(Event::Log(log));
                Ok(())
            }
            Kind::Goodbye => self.receive_goodbye(&body),
            Kind::Open | Kind::Data | Kind::Credit | Kind::Finish | Kind::Result | Kind::Reset => {
                self.receive_on_channel(header, body);
                Ok(())
            }
        }
    }

    fn receive_hello(&mut self, body: &Bytes) -> Result<(), Error> {
        let hello = read(Kind::Hello, Hello::decode(body))?;
        if hello.is_above == (self.config.role == Role::Above) {
            return Err(Incompatible::Role.into());
        }
        let agrees = |ours: Option<NodeId>, theirs: Option<NodeId>| theirs.is_none() || theirs == ours;
        if self.config.names.is_none() {
            (self.own, self.peer) = (hello.peer, hello.node);
        }
        let are_named = self.own.is_some() && self.peer.is_some() && self.own != self.peer;
        if !are_named || !agrees(self.own, hello.peer) || !agrees(self.peer, hello.node) {
            return Err(Incompatible::Names.into());
        }
        if !hello.is_above {
            self.peer_channels = hello.channels;
        }
        self.phase = Phase::Open;
        self.keepalive.greeted();
        self.tell(Event::Hello(hello));
        Ok(())
    }

    fn receive_route(&mut self, body: &Bytes) -> Result<(), Error> {
        let route = read(Kind::Route, Route::decode(body))?;
        for &node in &route.added {
            let is_end = node == NodeId::NEIGHBOUR || Some(node) == self.own || Some(node) == self.peer;
            if is_end || self.routes.len() >= MAX_ROUTES || !self.routes.insert(node) {
                return Err(Violation::Route(node).into());
            }
        }
        for &node in &route.lost {
            if !self.routes.remove(&node) {
                return Err(Violation::Route(node).into());
            }
            for channel in self.channels.of_node(node) {
                self.channels.remove(channel);
                let (code, text) = (ResetCode::Gone, route.reason.clone());
                self.tell(Event::Reset(channel, Reset { code, text }));
            }
        }
        self.tell(Event::Route(route));
        Ok(())
    }

    fn receive_goodbye(&mut self, body: &Bytes) -> Result<(), Error> {
        let goodbye = read(Kind::Goodbye, Goodbye::decode(body))?;
        self.lose_channels(&format!("the peer said goodbye: {}", goodbye.code));
        self.tell(Event::Goodbye(goodbye));
        self.phase = Phase::Parted;
        Ok(())
    }

    fn receive_on_channel(&mut self, header: Header, body: Bytes) {
        if header.destination != NodeId::NEIGHBOUR && Some(header.destination) != self.own {
            return if self.config.relays {
                self.tell(Event::Transit(Frame { header, body }));
            } else {
                self.refuse(header, ResetCode::NoRoute);
            };
        }
        let Some(node) = self.origin(header.source) else {
            return self.refuse(header, ResetCode::Forged);
        };
        let number = header.channel;
        let channel = ChannelId { node, number };
        if header.kind == Kind::Open {
            return self.receive_open(header, channel, &body);
        }
        if self.channels.get(channel).is_none() {
            if !self.channels.was_open(channel, self.config.role == Role::Above) {
                self.refuse(header, ResetCode::UnknownChannel);
            }
            return;
        }
        let outcome = match header.kind {
            Kind::Data => self.receive_data(channel, header.flags, body),
            Kind::Credit => self.receive_credit(channel, &body),
            Kind::Finish => self.receive_finish(channel),
            Kind::Result => self.receive_result(channel, body),
            Kind::Reset => {
                self.receive_reset(channel, &body);
                Ok(())
            }
            Kind::Open | Kind::Hello | Kind::Ping | Kind::Pong | Kind::Route | Kind::Log | Kind::Goodbye => {
                Ok(())
            }
        };
        if let Err(code) = outcome {
            self.channels.remove(channel);
            self.refuse(header, code);
            self.tell(Event::Reset(channel, Reset::new(code)));
        }
    }

    fn receive_open(&mut self, header: Header, channel: ChannelId, body: &Bytes) {
        if self.config.role == Role::Above {
            return self.refuse(header, ResetCode::NotAllowed);
        }
        if let Err(code) = self.channels.admit(channel, self.config.max_channels as usize) {
            return self.refuse(header, code);
        }
        let Ok(Open { kind, arguments }) = Open::decode(body) else {
            return self.refuse(header, ResetCode::Malformed);
        };
        self.channels.insert(channel);
        self.tell(Event::Opened {
            channel,
            kind,
            arguments,
        });
    }

    fn receive_data(&mut self, channel: ChannelId, flags: u8, data: Bytes) -> Result<(), ResetCode> {
        self.change(channel, |channel| channel.receive(data.len()))?;
        let stream = if flags & FLAG_STDERR == 0 {
            Stream::Out
        } else {
            Stream::Err
        };
        self.tell(Event::Data {
            channel,
            stream,
            data,
        });
        Ok(())
    }

    fn receive_credit(&mut self, channel: ChannelId, body: &Bytes) -> Result<(), ResetCode> {
        let more = body.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let more = more.ok_or(ResetCode::BadCredit)?;
        self.change(channel, |channel| channel.add_credit(more))
    }

    fn receive_finish(&mut self, channel: ChannelId) -> Result<(), ResetCode> {
        self.change(channel, super::channel::Channel::receive_finish)?;
        self.tell(Event::Finished(channel));
        Ok(())
    }

    fn receive_result(&mut self, channel: ChannelId, body: Bytes) -> Result<(), ResetCode> {
        if self.config.role == Role::Below {
            return Err(ResetCode::NotAllowed);
        }
        body::check_item(&body).map_err(|_| ResetCode::Malformed)?;
        self.channels.remove(channel);
        self.tell(Event::Result(channel, body));
        Ok(())
    }

    fn receive_reset(&mut self, channel: ChannelId, body: &Bytes) {
        let reset = Reset::decode(body).unwrap_or(Reset::new(ResetCode::Malformed));
        self.channels.remove(channel);
        self.tell(Event::Reset(channel, reset));
    }

    /// The name of a channel's other end, if it may be one: nodes above vouch for each other, those below must have been
    /// announced.
    pub(super) fn origin(&self, source: NodeId) -> Option<NodeId> {
        if source == NodeId::NEIGHBOUR || Some(source) == self.peer {
            return Some(NodeId::NEIGHBOUR);
        }
        let may_be = match self.config.role {
            Role::Above => self.routes.contains(&source),
            Role::Below => Some(source) != self.own,
        };
        may_be.then_some(source)
    }

    fn change(
        &mut self,
        channel: ChannelId,
        act: impl FnOnce(&mut super::channel::Channel) -> Result<(), ResetCode>,
    ) -> Result<(), ResetCode> {
        self.channels.with(channel, act).unwrap_or(Ok(()))
    }

    pub(super) fn owe(&mut self, frame: Frame) {
        self.owed += 1;
        self.outbox.push_back((frame, true));
    }
}

fn read<T>(kind: Kind, body: Result<T, BodyError>) -> Result<T, Error> {
    body.map_err(|error| Violation::Body { kind, error }.into())
}
