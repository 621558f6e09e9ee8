//! One protocol over one stream: the only read/write loop of the workspace. Decides when to read, when to write and
//! when it is over; never what the bytes mean.

mod memory;
mod receive;
mod send;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::time::Instant;

use bytes::BytesMut;
use mux_proto::{Protocol, SendQueue};

use crate::stream::Io;
use crate::{LinkError, Readiness};

/// What came of a pass over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Nothing more to do until something happens.
    Drained,
    /// The budget is spent: again in the next turn.
    Again,
}

/// The end of a link: how it went, as its owner will be told.
pub(crate) type Outcome<P> = Result<(), LinkError<<P as Protocol>::Error>>;

#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a stream, not a state in disguise"
)]
pub(crate) struct Link<P: Protocol> {
    pub(crate) protocol: P,
    pub(crate) io: Io,
    /// What the protocol has left of its input; of the size that it needs, nothing for most.
    rest: BytesMut,
    /// It is a part of the buffer that all links share; only while more can be read at once.
    rest_is_shared: bool,
    /// What could not be written yet; nothing for most.
    out: SendQueue,
    /// Delivered bytes of a memory link that its protocol has not seen.
    unseen: usize,
    seen: usize,
    connecting: bool,
    readable: bool,
    writable: bool,
    /// The peer's end has been announced: read until it is there.
    read_closed: bool,
    eof: bool,
    write_shut: bool,
    /// Writing failed. What the peer said before is still read; then this is why the link ended.
    write_error: Option<ErrorKind>,
    error: Option<LinkError<P::Error>>,
    linger: Option<Instant>,
    /// What the reactor's timer of this link is set to.
    armed: Option<Instant>,
    outcome: Option<Outcome<P>>,
    announced: bool,
    finish_announced: bool,
    pub(crate) dirty: bool,
}

impl<P: Protocol> Link<P> {
    pub(crate) fn new(protocol: P, io: Io, connecting: bool) -> Self {
        Self {
            rest: BytesMut::new(),
            rest_is_shared: false,
            out: SendQueue::new(),
            unseen: 0,
            seen: 0,
            connecting,
            // A regular file is never reported, so that pairs of descriptors are read without being asked to.
            readable: !io.is_socket() && !io.is_memory(),
            // Optimistic: the first flight leaves without waiting for the system to say that it may.
            writable: !connecting,
            read_closed: false,
            eof: false,
            write_shut: false,
            write_error: None,
            error: None,
            linger: None,
            armed: None,
            outcome: None,
            announced: false,
            finish_announced: false,
            dirty: false,
            protocol,
            io,
        }
    }

    /// A link that ended before it began.
    pub(crate) fn stillborn(protocol: P, error: ErrorKind) -> Self {
        let mut link = Self::new(protocol, Io::Memory, true);
        link.outcome = Some(Err(LinkError::Io(error)));
        link
    }

    pub(crate) fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    pub(crate) fn into_parts(self) -> (P, Outcome<P>) {
        (self.protocol, self.outcome.unwrap_or(Ok(())))
    }

    /// Takes note of what the system said. `true` if a connection attempt has just succeeded.
    pub(crate) fn notice(&mut self, ready: Readiness) -> bool {
        self.readable |= ready.readable;
        self.writable |= ready.writable;
        self.read_closed |= ready.read_closed;
        if !self.connecting || self.is_over() {
            return false;
        }
        if ready.failed
            && let Some(error) = self.io.take_error()
        {
            self.outcome = Some(Err(LinkError::Io(error)));
            return false;
        }
        self.connecting = !ready.writable;
        ready.writable
    }

    /// Calls the protocol if its time has come. Between the event and this call its deadline may have moved.
    pub(crate) fn time(&mut self, now: Instant) {
        // The timer that led here is spent.
        self.armed = None;
        if self.linger.is_some_and(|linger| linger <= now) {
            let error = self.error.take().unwrap_or(LinkError::Io(ErrorKind::TimedOut));
            self.outcome.get_or_insert(Err(error));
        } else if self.error.is_none()
            && self.protocol.poll_timeout().is_some_and(|at| at <= now)
            && let Err(error) = self.protocol.handle_timeout(now)
        {
            self.fail(error);
        }
    }

    /// When [`time`](Self::time) is to be called, if that has changed since this was last asked.
    pub(crate) fn rearm(&mut self) -> Option<Option<Instant>> {
        let deadline = self.deadline();
        (deadline != std::mem::replace(&mut self.armed, deadline)).then_some(deadline)
    }

    fn deadline(&self) -> Option<Instant> {
        let protocol = if self.error.is_none() {
            self.protocol.poll_timeout()
        } else {
            None
        };
        [protocol, self.linger].into_iter().flatten().min()
    }

    fn fail(&mut self, error: P::Error) {
        self.error.get_or_insert(LinkError::Protocol(error));
    }
}
