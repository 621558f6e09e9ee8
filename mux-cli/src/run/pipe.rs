//! The pipes of a local command: plain bytes, and word when there is room for more of its input. Bounds what waits;
//! knows nothing of processes.

use std::convert::Infallible;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, Raw, RawEvent, SendQueue};

/// Input of a command that may wait: as much as on a channel of SSH.
const MAX_UNSENT: usize = 128 * 1024;

/// One pipe, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    raw: Raw,
    /// Little room was left, and nobody was told yet that there is more.
    crowded: bool,
}

/// What happened on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PipeEvent {
    /// Bytes, to be given back by [`Pipe::consume`].
    Data(Bytes),
    /// Whoever has the other end will write no more.
    Eof,
    /// Half of the room for input is free again.
    Room,
}

impl Pipe {
    /// How many bytes may be written.
    pub(crate) fn room(&self) -> usize {
        MAX_UNSENT.saturating_sub(self.raw.unsent())
    }

    /// How many bytes were written and have not left.
    pub(crate) fn unsent(&self) -> usize {
        self.raw.unsent()
    }

    /// Bytes for the other end.
    pub(crate) fn write(&mut self, data: Bytes) {
        self.raw.send(data);
        self.crowded |= self.raw.unsent() > MAX_UNSENT / 2;
    }

    /// Writes no more.
    pub(crate) fn finish(&mut self) {
        self.raw.finish();
    }

    /// The other end is closed: what was not written stays unwritten.
    pub(crate) fn close(&mut self) {
        self.raw.close();
    }

    /// `count` bytes have found their place.
    pub(crate) fn consume(&mut self, count: usize) {
        self.raw.consume(count);
    }
}

impl Protocol for Pipe {
    type Event = PipeEvent;
    type Error = Infallible;

    fn wants_input(&self) -> bool {
        self.raw.wants_input()
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Infallible> {
        self.raw.handle_input(now, input)
    }

    fn handle_eof(&mut self, now: Instant) -> Result<(), Infallible> {
        self.raw.handle_eof(now)
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Infallible> {
        self.raw.handle_timeout(now)
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue) {
        self.raw.poll_transmit(now, out);
    }

    fn poll_close(&self) -> Option<Close> {
        self.raw.poll_close()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.raw.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<PipeEvent> {
        if let Some(event) = self.raw.poll_event() {
            return Some(match event {
                RawEvent::Data(data) => PipeEvent::Data(data),
                RawEvent::Eof => PipeEvent::Eof,
            });
        }
        let is_news = self.crowded && self.raw.unsent() <= MAX_UNSENT / 2;
        self.crowded &= !is_news;
        is_news.then_some(PipeEvent::Room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_told_once_half_of_it_is_free_again() {
        let (mut pipe, now) = (Pipe::default(), Instant::now());
        pipe.write(Bytes::from(vec![0; MAX_UNSENT / 2]));
        assert_eq!((pipe.room(), pipe.poll_event()), (MAX_UNSENT / 2, None));
        pipe.write(Bytes::from(vec![0; MAX_UNSENT / 2]));
        assert_eq!((pipe.room(), pipe.poll_event()), (0, None));
        let mut out = SendQueue::new();
        while pipe.unsent() > 0 {
            pipe.poll_transmit(now, &mut out);
            out = SendQueue::new();
        }
        assert_eq!(pipe.poll_event(), Some(PipeEvent::Room));
        assert_eq!(pipe.poll_event(), None);
    }
}
