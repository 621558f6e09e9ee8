//! Whether the peer is still there: the time it has for its hello, pings and their answers. Decides when it is given up;
//! never what is told to whom.

use std::time::{Duration, Instant};

use bytes::Bytes;

/// What has come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    NoHello,
    Silent,
    /// It is time to ask with these bytes.
    Ping([u8; 8]),
}

#[derive(Debug)]
pub(super) struct Keepalive {
    idle: Option<Duration>,
    answer: Duration,
    /// Until when the hello must have come; `None` once it has.
    hello_by: Option<Instant>,
    heard: Instant,
    /// The number in the ping under way, and when it left.
    asked: Option<(u64, Instant)>,
    pings: u64,
    rtt: Option<Duration>,
}

impl Keepalive {
    pub(super) fn new(now: Instant, idle: Option<Duration>, answer: Duration) -> Self {
        Self {
            idle,
            answer,
            hello_by: Some(now + answer),
            heard: now,
            asked: None,
            pings: 0,
            rtt: None,
        }
    }

    /// Something came, or nothing could because we did not read.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn greeted(&mut self) {
        self.hello_by = None;
    }

    /// The bytes of a new ping, unless one is under way.
    pub(super) fn ping(&mut self, now: Instant) -> Option<[u8; 8]> {
        if self.asked.is_some() {
            return None;
        }
        self.pings += 1;
        self.asked = Some((self.pings, now));
        Some(self.pings.to_be_bytes())
    }

    /// Whether these are the bytes that were waited for.
    pub(super) fn pong(&mut self, now: Instant, body: &Bytes) -> bool {
        let Some((number, asked)) = self.asked.take() else {
            return false;
        };
        self.rtt = Some(now.saturating_duration_since(asked));
        body[..] == number.to_be_bytes()
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match (self.hello_by, self.asked, self.idle) {
            (Some(by), _, _) => Some(by),
            // Whatever comes shows that the peer lives: the answer stands behind it.
            (None, Some((_, asked)), _) => Some(asked.max(self.heard) + self.answer),
            (None, None, Some(idle)) => Some(self.heard + idle),
            (None, None, None) => None,
        }
    }

    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        if self.hello_by.is_some() {
            Some(Due::NoHello)
        } else if let Some(bytes) = self.ping(now) {
            Some(Due::Ping(bytes))
        } else {
            Some(Due::Silent)
        }
    }
}
