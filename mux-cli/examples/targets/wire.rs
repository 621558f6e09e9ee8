//! What a link of this process speaks: SSH with a client, near or far, or plain bytes with a child.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use mux_proto::{Close, Protocol, Raw, RawEvent, SendQueue};
use mux_ssh::server::{self, Server};

use crate::delay::Delay;

/// One of the protocols.
#[derive(Debug)]
pub(crate) enum Wire {
    /// A client at no distance.
    Near(Box<Server>),
    /// A client at a distance.
    Far(Box<Delay<Server>>),
    /// A child's stream, or a client that is never answered.
    Plain(Raw),
}

/// An event of one of them.
#[derive(Debug)]
pub(crate) enum WireEvent {
    /// Of a client.
    Ssh(server::Event),
    /// Of a child's stream.
    Plain(RawEvent),
}

impl Wire {
    /// A server at this distance.
    pub(crate) fn server(server: Server, round_trip: Duration, now: Instant) -> Self {
        if round_trip.is_zero() {
            Self::Near(Box::new(server))
        } else {
            Self::Far(Box::new(Delay::new(server, round_trip, now)))
        }
    }

    /// The server in it.
    pub(crate) fn as_server(&mut self) -> Option<&mut Server> {
        match self {
            Self::Near(server) => Some(server),
            Self::Far(far) => Some(far.inner()),
            Self::Plain(_) => None,
        }
    }

    /// The plain bytes in it.
    pub(crate) fn as_plain(&mut self) -> Option<&mut Raw> {
        match self {
            Self::Near(_) | Self::Far(_) => None,
            Self::Plain(raw) => Some(raw),
        }
    }
}

/// Hands a call on to whichever protocol it is; plain bytes can't fail.
macro_rules! each {
    ($wire:expr, $inner:ident => $call:expr, plain $raw:ident => $plain:expr) => {
        match $wire {
            Self::Near($inner) => $call,
            Self::Far($inner) => $call,
            Self::Plain($raw) => $plain,
        }
    };
}

impl Protocol for Wire {
    type Event = WireEvent;
    type Error = mux_ssh::Error;

    fn wants_input(&self) -> bool {
        each!(self, inner => inner.wants_input(), plain raw => raw.wants_input())
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), mux_ssh::Error> {
        each!(self, inner => inner.handle_input(now, input), plain raw => {
            raw.handle_input(now, input).unwrap_or_else(|never| match never {});
            Ok(())
        })
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), mux_ssh::Error> {
        each!(self, inner => inner.handle_eof(now), plain raw => {
            raw.handle_eof(now).unwrap_or_else(|never| match never {});
            Ok(())
        })
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), mux_ssh::Error> {
        each!(self, inner => inner.handle_timeout(now), plain _raw => Ok(()))
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        each!(self, inner => inner.poll_transmit(now, out), plain raw => raw.poll_transmit(now, out));
    }

    fn poll_close(&self) -> Option<Close> {
        each!(self, inner => inner.poll_close(), plain raw => raw.poll_close())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, inner => inner.poll_timeout(), plain raw => raw.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<WireEvent> {
        each!(self, inner => inner.poll_event().map(WireEvent::Ssh), plain raw => raw.poll_event().map(WireEvent::Plain))
    }
}
