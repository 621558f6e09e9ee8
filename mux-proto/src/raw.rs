//! Plain bytes as a protocol: pipes of a child, sockets whose owner decodes for itself. Counts what its owner has
//! not consumed; never looks at a byte.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use crate::{COPY_BELOW, Close, Protocol, SendQueue};

/// Input stops while more than this is unconsumed: what every protocol may hold for a slow owner.
const UNCONSUMED_MAX: usize = 256 * 1024;

/// What arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawEvent {
    /// Bytes, in order. Call [`Raw::consume`] with their number once they have found their place.
    Data(Bytes),
    /// The peer has sent its last byte.
    Eof,
}

/// A [`Protocol`] without a protocol: bytes in, the same bytes out.
///
/// It asks for no input while more than 256 KiB of what it delivered is unconsumed, which is how a slow owner slows
/// its peer.
#[derive(Debug, Default)]
pub struct Raw {
    events: VecDeque<RawEvent>,
    unconsumed: usize,
    unsent: VecDeque<Bytes>,
    unsent_len: usize,
    close: Option<Close>,
}

impl Raw {
    /// Nothing received, nothing to send.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues `data`. Ignored after [`finish`](Self::finish) or [`close`](Self::close).
    pub fn send(&mut self, data: Bytes) {
        if self.close.is_none() && !data.is_empty() {
            self.unsent_len += data.len();
            self.unsent.push_back(data);
        }
    }

    /// Bytes queued by [`send`](Self::send) that the link has not asked for yet: what a sender that wants to stay
    /// bounded looks at.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.unsent_len
    }

    /// Sends no more; the peer sees the end once everything queued was sent. Receiving goes on.
    pub fn finish(&mut self) {
        self.close.get_or_insert(Close::Write);
    }

    /// Ends both directions once everything queued was sent.
    pub fn close(&mut self) {
        self.close = Some(Close::Both);
    }

    /// `count` more of the delivered bytes have found their place: as many may arrive again.
    pub fn consume(&mut self, count: usize) {
        self.unconsumed = self.unconsumed.saturating_sub(count);
    }

    /// Delivered bytes that wait for [`consume`](Self::consume).
    #[must_use]
    pub fn unconsumed(&self) -> usize {
        self.unconsumed
    }
}

impl Protocol for Raw {
    type Event = RawEvent;
    type Error = Infallible;

    fn wants_input(&self) -> bool {
        self.unconsumed <= UNCONSUMED_MAX
    }

    fn handle_input(&mut self, _now: Instant, input: &mut BytesMut) -> Result<(), Infallible> {
        if !input.is_empty() {
            self.unconsumed += input.len();
            self.events.push_back(RawEvent::Data(take(input)));
        }
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Infallible> {
        self.events.push_back(RawEvent::Eof);
        Ok(())
    }

    fn handle_timeout(&mut self, _now: Instant) -> Result<(), Infallible> {
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        while out.has_room() {
            let Some(data) = self.unsent.pop_front() else {
                return;
            };
            self.unsent_len -= data.len();
            out.push(data);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        self.close
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<RawEvent> {
        self.events.pop_front()
    }
}

/// Small pieces are copied: a slice of the loop's shared read buffer would keep all of it alive.
fn take(input: &mut BytesMut) -> Bytes {
    if input.len() >= COPY_BELOW {
        return input.split().freeze();
    }
    let data = Bytes::copy_from_slice(input);
    input.clear();
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(raw: &mut Raw, data: &[u8]) {
        raw.handle_input(Instant::now(), &mut BytesMut::from(data))
            .expect("raw input cannot fail");
    }

    fn transmit(raw: &mut Raw) -> Vec<u8> {
        let mut out = SendQueue::new();
        raw.poll_transmit(Instant::now(), &mut out);
        let mut sent = Vec::new();
        while !out.is_empty() {
            sent.extend_from_slice(&out.take(usize::MAX));
        }
        sent
    }

    #[test]
    fn delivers_bytes_in_order_and_the_end_last() {
        let mut raw = Raw::new();
        feed(&mut raw, b"one");
        feed(&mut raw, b"two");
        raw.handle_eof(Instant::now()).expect("raw end cannot fail");
        assert_eq!(raw.poll_event(), Some(RawEvent::Data(Bytes::from_static(b"one"))));
        assert_eq!(raw.poll_event(), Some(RawEvent::Data(Bytes::from_static(b"two"))));
        assert_eq!(raw.poll_event(), Some(RawEvent::Eof));
        assert_eq!(raw.poll_event(), None);
    }

    #[test]
    fn pauses_above_the_limit_until_consumed() {
        let mut raw = Raw::new();
        feed(&mut raw, &vec![0; UNCONSUMED_MAX]);
        assert!(raw.wants_input(), "the limit itself is still allowed");
        feed(&mut raw, b"x");
        assert!(!raw.wants_input());
        raw.consume(1);
        assert!(raw.wants_input());
    }

    #[test]
    fn a_small_payload_does_not_keep_the_read_buffer_alive() {
        let mut raw = Raw::new();
        let mut scratch = BytesMut::zeroed(64 * 1024);
        let mut input = scratch.split_to(10);
        raw.handle_input(Instant::now(), &mut input)
            .expect("raw input cannot fail");
        drop(input);
        scratch.clear();
        assert!(
            scratch.try_reclaim(64 * 1024),
            "the event holds a copy, not a slice"
        );
    }

    #[test]
    fn sends_in_order_and_stops_at_the_low_water_mark() {
        let mut raw = Raw::new();
        let big = Bytes::from(vec![7; crate::LOW_WATER]);
        raw.send(big.clone());
        raw.send(Bytes::from_static(b"after"));
        assert_eq!(transmit(&mut raw), big);
        assert_eq!(raw.unsent(), 5);
        assert_eq!(transmit(&mut raw), b"after");
        assert_eq!(raw.unsent(), 0);
    }

    #[test]
    fn finish_half_closes_and_close_closes() {
        let mut raw = Raw::new();
        assert_eq!(raw.poll_close(), None);
        raw.send(Bytes::from_static(b"last"));
        raw.finish();
        assert_eq!(raw.poll_close(), Some(Close::Write));
        raw.send(Bytes::from_static(b"too late"));
        raw.close();
        assert_eq!(raw.poll_close(), Some(Close::Both));
        raw.finish();
        assert_eq!(
            raw.poll_close(),
            Some(Close::Both),
            "a close is not weakened to a half-close"
        );
        assert_eq!(transmit(&mut raw), b"last");
    }
}
