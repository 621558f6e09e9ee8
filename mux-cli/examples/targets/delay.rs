//! A distance between the network and a protocol: every byte takes half a round trip each way, and the connection
//! begins one round trip late, as if the TCP handshake had crossed the distance too. Decides when bytes pass; never
//! looks at them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};

/// Bytes on their way in before reading stops: more than a window of 2 MiB, so that it is the window that limits.
const MAX_UNDERWAY: usize = 4 * 1024 * 1024;

/// A protocol at a distance.
#[derive(Debug)]
pub(crate) struct Delay<P: Protocol> {
    inner: P,
    one_way: Duration,
    opens: Instant,
    inbound: VecDeque<(Instant, Bytes)>,
    underway: usize,
    /// Arrived, but not consumed.
    arrived: BytesMut,
    /// The inner protocol took no more; it is asked again as soon as it may.
    stalled: bool,
    eof_due: Option<Instant>,
    leaving: SendQueue,
    outbound: VecDeque<(Instant, Bytes)>,
    now: Instant,
    failed: Option<P::Error>,
}

impl<P: Protocol> Delay<P>
where
    P::Error: Clone,
{
    /// Puts `inner` at a distance of `round_trip`, on a connection that was accepted `now`.
    pub(crate) fn new(inner: P, round_trip: Duration, now: Instant) -> Self {
        Self {
            inner,
            one_way: round_trip / 2,
            opens: now + round_trip,
            inbound: VecDeque::new(),
            underway: 0,
            arrived: BytesMut::new(),
            stalled: false,
            eof_due: None,
            leaving: SendQueue::new(),
            outbound: VecDeque::new(),
            now,
            failed: None,
        }
    }

    /// The protocol itself.
    pub(crate) fn inner(&mut self) -> &mut P {
        &mut self.inner
    }

    /// When what arrives or leaves now has covered the distance. What a client sent before the handshake would
    /// have been over starts when it is.
    fn due(&self, now: Instant) -> Instant {
        now.max(self.opens) + self.one_way
    }

    fn feed(&mut self, now: Instant) -> Result<(), P::Error> {
        while let Some((due, _)) = self.inbound.front()
            && *due <= now
        {
            let (_, data) = self.inbound.pop_front().expect("there is a front");
            self.arrived.extend_from_slice(&data);
        }
        loop {
            self.stalled = !self.inner.wants_input();
            let before = self.arrived.len();
            if self.stalled || before == 0 {
                break;
            }
            self.inner.handle_input(now, &mut self.arrived)?;
            self.underway -= before - self.arrived.len();
            if self.arrived.len() == before {
                break;
            }
        }
        if self.arrived.is_empty() {
            self.arrived = BytesMut::new();
        }
        if self.inbound.is_empty() && self.eof_due.is_some_and(|due| due <= now) && !self.stalled {
            self.eof_due = None;
            self.inner.handle_eof(now)?;
        }
        Ok(())
    }

    fn remember<T>(&mut self, result: Result<T, P::Error>) -> Result<T, P::Error> {
        if let Err(error) = &result {
            self.failed = Some(error.clone());
        }
        result
    }

    fn check(&self) -> Result<(), P::Error> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl<P: Protocol> Protocol for Delay<P>
where
    P::Error: Clone,
{
    type Event = P::Event;
    type Error = P::Error;

    fn wants_input(&self) -> bool {
        self.underway < MAX_UNDERWAY
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), P::Error> {
        self.check()?;
        self.now = now;
        if !input.is_empty() {
            self.underway += input.len();
            // A copy of the right size: a slice would keep the loop's whole read buffer alive.
            let data = Bytes::copy_from_slice(input);
            input.clear();
            self.inbound.push_back((self.due(now), data));
        }
        Ok(())
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), P::Error> {
        self.check()?;
        self.now = now;
        self.eof_due = Some(self.due(now));
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), P::Error> {
        self.check()?;
        self.now = now;
        let fed = self.feed(now);
        self.remember(fed)?;
        if self.inner.poll_timeout().is_some_and(|due| due <= now) {
            let handled = self.inner.handle_timeout(now);
            self.remember(handled)?;
        }
        Ok(())
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        self.now = now;
        // The server's own first word also waits for the handshake: half a round trip after it, the client's
        // acknowledgement has arrived.
        if now >= self.opens + self.one_way || self.failed.is_some() {
            self.inner.poll_transmit(now, &mut self.leaving);
        }
        let due = if self.failed.is_some() {
            now
        } else {
            now + self.one_way
        };
        while !self.leaving.is_empty() {
            self.outbound.push_back((due, self.leaving.take(usize::MAX)));
        }
        while let Some((due, _)) = self.outbound.front()
            && (*due <= now || self.failed.is_some())
        {
            let (_, data) = self.outbound.pop_front().expect("there is a front");
            out.push(data);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        self.inner
            .poll_close()
            .filter(|_| self.outbound.is_empty() && self.leaving.is_empty())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let inbound = self.inbound.front().map(|(due, _)| *due);
        let outbound = self.outbound.front().map(|(due, _)| *due);
        let retry = (self.stalled && self.inner.wants_input()).then_some(self.now);
        let opening = self.opens + self.one_way;
        let opening = (self.now < opening).then_some(opening);
        let inner = self.inner.poll_timeout();
        [
            inbound,
            outbound,
            retry,
            opening,
            self.eof_due.filter(|_| inbound.is_none() && !self.stalled),
            inner,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn poll_event(&mut self) -> Option<P::Event> {
        self.inner.poll_event()
    }
}

#[cfg(test)]
mod tests {
    use mux_proto::{Raw, RawEvent};

    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A delayed connection that was accepted at the returned time.
    fn accepted() -> (Delay<mux_ssh::server::Server>, Instant) {
        let host = mux_ssh::transport::HostKey::generate_ed25519().expect("there is randomness");
        let config = mux_ssh::server::ServerConfig::new(host, mux_ssh::server::Authorized::AnyKey);
        let server = mux_ssh::server::Server::new(config.into(), mux_ssh::server::Plan::new());
        let now = Instant::now();
        (Delay::new(server, RTT, now), now)
    }

    fn sent(delay: &mut Delay<mux_ssh::server::Server>, at: Instant) -> usize {
        let mut out = SendQueue::new();
        delay.handle_timeout(at).expect("nothing is wrong");
        delay.poll_transmit(at, &mut out);
        out.len()
    }

    #[test]
    fn the_first_word_of_a_server_takes_two_round_trips() {
        let (mut delay, start) = accepted();
        assert_eq!(sent(&mut delay, start), 0);
        assert_eq!(delay.poll_timeout(), Some(start + RTT * 3 / 2));
        assert_eq!(sent(&mut delay, start + RTT * 3 / 2), 0);
        assert_eq!(delay.poll_timeout(), Some(start + RTT * 2));
        assert_eq!(sent(&mut delay, start + RTT * 2 - Duration::from_millis(1)), 0);
        assert!(sent(&mut delay, start + RTT * 2) > 0);
    }

    #[test]
    fn what_a_client_says_at_once_arrives_after_its_handshake_and_half_a_round_trip() {
        let start = Instant::now();
        let mut delay = Delay::new(Raw::new(), RTT, start);
        delay
            .handle_input(start, &mut BytesMut::from(&b"hi"[..]))
            .expect("raw bytes are never wrong");
        delay
            .handle_timeout(start + RTT)
            .expect("raw bytes are never wrong");
        assert_eq!(delay.poll_event(), None);
        delay
            .handle_timeout(start + RTT * 3 / 2)
            .expect("raw bytes are never wrong");
        assert_eq!(
            delay.poll_event(),
            Some(RawEvent::Data(Bytes::from_static(b"hi")))
        );
        let later = start + RTT * 10;
        delay
            .handle_input(later, &mut BytesMut::from(&b"ho"[..]))
            .expect("raw bytes are never wrong");
        delay
            .handle_timeout(later + RTT / 2)
            .expect("raw bytes are never wrong");
        assert_eq!(
            delay.poll_event(),
            Some(RawEvent::Data(Bytes::from_static(b"ho")))
        );
    }
}
