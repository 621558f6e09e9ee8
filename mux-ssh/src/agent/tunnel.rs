//! Somebody else's conversation with the user's agent: the socket is bound to the connection that it comes from, and
//! then bytes pass both ways. It decides what is said before them; it looks at none of them.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, Raw, RawEvent, SendQueue};

use super::codec;
use super::error::AgentViolation;
use crate::client::SessionBinding;

/// What may wait for the agent: as much as one channel may have in flight.
const MAX_UNSENT: usize = 128 * 1024;

/// What comes out of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEvent {
    /// The agent says this; give it back with [`AgentTunnel::consume`].
    Data(Bytes),
    /// The agent says no more.
    Eof,
    /// Half of the room for what the agent is told is free again.
    Room,
}

/// A socket of the user's agent on behalf of a server.
#[derive(Debug, Default)]
pub struct AgentTunnel {
    raw: Raw,
    /// What binds the socket, until it was sent.
    bind: Option<Bytes>,
    /// The agent has still to answer that. Until then it is told nothing else: not every agent reads ahead.
    is_bound_later: bool,
    crowded: bool,
}

impl AgentTunnel {
    /// A tunnel from the connection of this binding: the agent is told that the session is one that forwards, so that
    /// keys that are bound to hosts are kept to their ways (OpenSSH PROTOCOL.agent §1).
    #[must_use]
    pub fn new(binding: Option<&SessionBinding>) -> Self {
        let bind = binding.map(|binding| {
            codec::session_bind(&binding.host_key, &binding.session_id, &binding.signature, true)
        });
        Self {
            is_bound_later: bind.is_some(),
            bind,
            ..Self::default()
        }
    }

    /// How many bytes [`send`](Self::send) should be given at most.
    #[must_use]
    pub fn room(&self) -> usize {
        MAX_UNSENT.saturating_sub(self.raw.unsent())
    }

    /// Bytes for the agent.
    pub fn send(&mut self, data: Bytes) {
        self.raw.send(data);
        self.crowded |= self.raw.unsent() > MAX_UNSENT / 2;
    }

    /// The server says no more.
    pub fn finish(&mut self) {
        self.raw.finish();
    }

    /// Hangs up.
    pub fn close(&mut self) {
        self.raw.close();
    }

    /// `count` bytes of the agent's have found their place.
    pub fn consume(&mut self, count: usize) {
        self.raw.consume(count);
    }
}

impl Protocol for AgentTunnel {
    type Event = TunnelEvent;
    type Error = AgentViolation;

    fn wants_input(&self) -> bool {
        self.raw.wants_input()
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), AgentViolation> {
        if self.is_bound_later {
            // An agent that does not know the request refuses it, which is no reason to refuse the server.
            self.is_bound_later = codec::take_frame(input)?.is_none();
            return Ok(());
        }
        match self.raw.handle_input(now, input) {
            Ok(()) => Ok(()),
            Err(never) => match never {},
        }
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), AgentViolation> {
        match self.raw.handle_eof(now) {
            Ok(()) => Ok(()),
            Err(never) => match never {},
        }
    }

    fn handle_timeout(&mut self, _now: Instant) -> Result<(), AgentViolation> {
        Ok(())
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        if let Some(bind) = self.bind.take() {
            out.push(bind);
        }
        if !self.is_bound_later {
            self.raw.poll_transmit(now, out);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        // What is to be said first has been said, or nobody listens.
        self.raw
            .poll_close()
            .filter(|close| *close == Close::Both || !self.is_bound_later)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<TunnelEvent> {
        if let Some(event) = self.raw.poll_event() {
            return Some(match event {
                RawEvent::Data(data) => TunnelEvent::Data(data),
                RawEvent::Eof => TunnelEvent::Eof,
            });
        }
        let is_news = self.crowded && self.raw.unsent() <= MAX_UNSENT / 2;
        self.crowded &= !is_news;
        is_news.then_some(TunnelEvent::Room)
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
mod tests {
    use super::*;

    fn tunnel() -> AgentTunnel {
        AgentTunnel::new(Some(&SessionBinding {
            session_id: Bytes::from_static(b"id"),
            host_key: Bytes::from_static(b"key"),
            signature: Bytes::from_static(b"proof"),
        }))
    }

    fn sent(tunnel: &mut AgentTunnel) -> Bytes {
        let mut out = SendQueue::new();
        tunnel.poll_transmit(Instant::now(), &mut out);
        out.take(usize::MAX)
    }

    #[test]
    fn the_socket_is_bound_as_a_forwarding_one_before_anything_is_said() {
        let mut tunnel = tunnel();
        tunnel.send(Bytes::from_static(b"question"));
        let bind = sent(&mut tunnel);
        let expected = b"\x1b\0\0\0\x18session-bind@openssh.com\0\0\0\x03key\0\0\0\x02id\0\0\0\x05proof\x01";
        assert_eq!(bind[4..], expected[..]);
        assert_eq!(sent(&mut tunnel), "");
        tunnel.finish();
        assert_eq!(tunnel.poll_close(), None);
        let mut answer = BytesMut::from(&b"\0\0\0\x01\x06"[..3]);
        tunnel.handle_input(Instant::now(), &mut answer).unwrap();
        assert_eq!(sent(&mut tunnel), "");
        answer.extend_from_slice(b"\x01\x06");
        tunnel.handle_input(Instant::now(), &mut answer).unwrap();
        assert_eq!((answer.len(), tunnel.poll_event()), (0, None));
        assert_eq!(sent(&mut tunnel), "question");
        assert_eq!(tunnel.poll_close(), Some(Close::Write));
    }

    #[test]
    fn what_an_agent_says_then_passes_untouched() {
        let mut tunnel = tunnel();
        sent(&mut tunnel);
        let mut input = BytesMut::from(&b"\0\0\0\x01\x05\0\0\0\x01"[..]);
        for _ in 0..2 {
            tunnel.handle_input(Instant::now(), &mut input).unwrap();
        }
        let expected = TunnelEvent::Data(Bytes::from_static(b"\0\0\0\x01"));
        assert_eq!(tunnel.poll_event(), Some(expected));
    }

    #[test]
    fn an_agent_that_announces_too_much_is_left() {
        let mut tunnel = tunnel();
        let mut input = BytesMut::from(&b"\xff\xff\xff\xff"[..]);
        let error = tunnel.handle_input(Instant::now(), &mut input);
        assert_eq!(error, Err(AgentViolation::FrameLength(u32::MAX)));
    }

    #[test]
    fn room_is_told_once_half_of_it_is_free_again() {
        let mut tunnel = AgentTunnel::new(None);
        tunnel.send(Bytes::from(vec![0; MAX_UNSENT]));
        assert_eq!((tunnel.room(), tunnel.poll_event()), (0, None));
        while !sent(&mut tunnel).is_empty() {}
        assert_eq!(tunnel.poll_event(), Some(TunnelEvent::Room));
        assert_eq!(tunnel.poll_event(), None);
    }
}
