//! The protocols that the links of a run can speak: one closed enum, so that one loop drives them all. Decides
//! nothing: every call goes to the protocol inside.

use std::time::Instant;

use bytes::BytesMut;
use mux_proto::{Close, Connection, Protocol, SendQueue, connection};
use mux_ssh::Client;
use mux_ssh::agent::{AgentClient, AgentError, AgentEvent, AgentTunnel, AgentViolation, TunnelEvent};

use super::pipe::{Pipe, PipeEvent};

/// What a link of a run speaks.
#[derive(Debug)]
pub(crate) enum Wire {
    /// SSH with a target.
    Ssh(Box<Client>),
    /// The agent protocol over a unix socket.
    Agent(Box<AgentClient>),
    /// The pipes of a local command.
    Pipe(Pipe),
    /// Somebody else's talk with the user's agent.
    Tunnel(Box<AgentTunnel>),
    /// The daemon, or a client of it.
    Node(Box<Connection>),
}

/// What happened on a [`Wire`].
#[derive(Debug)]
pub(crate) enum WireEvent {
    Ssh(mux_ssh::client::Event),
    Agent(AgentEvent),
    Pipe(PipeEvent),
    Tunnel(TunnelEvent),
    Node(connection::Event),
}

/// Why a [`Wire`] failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WireError {
    Ssh(mux_ssh::Error),
    Agent(AgentError),
    Tunnel(AgentViolation),
    Node(mux_proto::error::Error),
}

/// `$act` on whatever protocol is inside.
macro_rules! on_each {
    ($wire:expr, $inner:ident => $act:expr) => {
        match $wire {
            Wire::Ssh($inner) => $act,
            Wire::Agent($inner) => $act,
            Wire::Pipe($inner) => $act,
            Wire::Tunnel($inner) => $act,
            Wire::Node($inner) => $act,
        }
    };
}

/// The same for calls that may fail; plain bytes never do.
macro_rules! try_each {
    ($wire:expr, $inner:ident => $act:expr) => {
        match $wire {
            Wire::Ssh($inner) => $act.map_err(WireError::Ssh),
            Wire::Agent($inner) => $act.map_err(WireError::Agent),
            Wire::Pipe($inner) => $act.map_err(|never| match never {}),
            Wire::Tunnel($inner) => $act.map_err(WireError::Tunnel),
            Wire::Node($inner) => $act.map_err(WireError::Node),
        }
    };
}

impl Protocol for Wire {
    type Event = WireEvent;
    type Error = WireError;

    fn wants_input(&self) -> bool {
        on_each!(self, inner => inner.wants_input())
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), WireError> {
        try_each!(self, inner => inner.handle_input(now, input))
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), WireError> {
        try_each!(self, inner => inner.handle_eof(now))
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), WireError> {
        try_each!(self, inner => inner.handle_timeout(now))
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        on_each!(self, inner => inner.poll_transmit(now, out));
    }

    fn poll_close(&self) -> Option<Close> {
        on_each!(self, inner => inner.poll_close())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        on_each!(self, inner => inner.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<WireEvent> {
        match self {
            Self::Ssh(inner) => inner.poll_event().map(WireEvent::Ssh),
            Self::Agent(inner) => inner.poll_event().map(WireEvent::Agent),
            Self::Pipe(inner) => inner.poll_event().map(WireEvent::Pipe),
            Self::Tunnel(inner) => inner.poll_event().map(WireEvent::Tunnel),
            Self::Node(inner) => inner.poll_event().map(WireEvent::Node),
        }
    }
}
