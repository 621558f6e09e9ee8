//! The one trait between protocols and loops. It fixes who calls what and when; it holds no state of its own.

use std::time::Instant;

use bytes::BytesMut;

use crate::SendQueue;

/// How a protocol wants its link to end, once everything it has queued is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// Send no more, keep reading: `shutdown(SHUT_WR)` after the flush.
    Write,
    /// Close both ways after the flush, which may take at most one second.
    Both,
}

/// A connection as a value: bytes and time go in, bytes and events come out.
///
/// # How to drive one
///
/// 1. Something arrived, ended or came due: call [`handle_input`](Self::handle_input),
///    [`handle_eof`](Self::handle_eof) or [`handle_timeout`](Self::handle_timeout).
/// 2. Drain [`poll_event`](Self::poll_event) and act on each event, which may mean calling methods of the
///    implementing type.
/// 3. While the queue is below its low-water mark, call [`poll_transmit`](Self::poll_transmit); write what it queued.
/// 4. Look at [`poll_close`](Self::poll_close) and [`poll_timeout`](Self::poll_timeout) again: both may have changed.
///
/// # Errors are sticky
///
/// After the first `Err` every further `handle_*` call returns an equal error and consumes nothing.
/// `poll_transmit` may still emit a goodbye; the link flushes it and closes. Events queued before the error are
/// still delivered.
pub trait Protocol {
    /// What the protocol tells its owner. Owned; payloads are [`bytes::Bytes`].
    type Event;
    /// Why the protocol failed. Never an `io::Error`: the link that owns the descriptor wraps this type.
    type Error;

    /// `false` only while more than 256 KiB of the protocol's own events and owed replies are undelivered.
    /// The link stops reading until it is `true` again.
    fn wants_input(&self) -> bool;

    /// Consumes what it can from the front of `input`; what it leaves is offered again with what follows.
    /// Called until a call leaves `input` unchanged or [`wants_input`](Self::wants_input) is `false`.
    ///
    /// # Errors
    /// The peer broke the protocol, or both have nothing in common.
    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Self::Error>;

    /// The peer has sent its last byte.
    ///
    /// # Errors
    /// The protocol was not finished.
    fn handle_eof(&mut self, now: Instant) -> Result<(), Self::Error>;

    /// The time named by [`poll_timeout`](Self::poll_timeout) has come. May be called early or twice.
    ///
    /// # Errors
    /// The peer was given its time and did not use it.
    fn handle_timeout(&mut self, now: Instant) -> Result<(), Self::Error>;

    /// Appends to `out` what is to be sent, until nothing is left or `out` has no more room.
    /// Pulled only while the queue is below its low-water mark.
    fn poll_transmit(&mut self, now: Instant, out: &mut SendQueue);

    /// Whether the link should end once `poll_transmit` has nothing more to give and the queue is flushed.
    fn poll_close(&self) -> Option<Close>;

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next thing that happened, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
