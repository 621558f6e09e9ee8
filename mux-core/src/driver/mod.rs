//! stub
use crate::{Event, Key, Listener, Mailbox, Reactor, Sender, Stream, Waker};
use bytes::Bytes;
use mux_proto::Protocol;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A reactor and the links that it drives.
#[derive(Debug)]
pub struct Driver<P: Protocol> {
    reactor: Reactor,
    links: Vec<P>,
}

/// A child process and the links to its standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Names the process: [`Event::Exited`], [`Driver::kill`].
    pub process: Key,
    /// Standard input (what the link sends) and output (what it reads).
    pub stdio: Key,
    /// Standard error, if a protocol was given for it.
    pub stderr: Option<Key>,
    /// The process id.
    pub pid: u32,
}

#[expect(clippy::todo, unused, clippy::missing_errors_doc, reason = "interface first")]
impl<P: Protocol> Driver<P> {
    /// A driver without links.
    pub fn new() -> io::Result<Self> {
        todo!()
    }
    /// Adds a link over an open stream.
    pub fn add(&mut self, stream: Stream, protocol: P) -> io::Result<Key> {
        todo!()
    }
    /// Opens a TCP connection; [`Event::Connected`] or [`Event::Closed`] tells how it went.
    pub fn connect(&mut self, to: SocketAddr, protocol: P) -> io::Result<Key> {
        todo!()
    }
    /// Opens a unix socket connection; [`Event::Connected`] or [`Event::Closed`] tells how it went.
    pub fn connect_unix(&mut self, path: &Path, protocol: P) -> io::Result<Key> {
        todo!()
    }
    /// Accepts connections: [`Event::Accepted`].
    pub fn listen(&mut self, listener: Listener) -> io::Result<Key> {
        todo!()
    }
    /// Stops accepting, drops a timer, a signal registration…: whatever `key` names that is not a link.
    pub fn remove(&mut self, key: Key) {
        todo!()
    }
    /// An application timer: [`crate::Ready::Timer`] once, then the key is gone.
    pub fn timer(&mut self, at: Instant) -> Key {
        todo!()
    }
    /// Forgets an application timer; harmless when it has fired already.
    pub fn cancel_timer(&mut self, key: Key) {
        todo!()
    }
    /// Starts a child with a socketpair as standard input and output, and a second one as standard error if
    /// `stderr` is given (else it is as `command` says).
    pub fn child(&mut self, command: Command, stdio: P, stderr: Option<P>) -> io::Result<Child> {
        todo!()
    }
    /// Sends a signal to a child that was not collected yet, or to its process group.
    pub fn kill(&mut self, process: Key, signal: i32, group: bool) -> io::Result<()> {
        todo!()
    }
    /// Collects children that ended, where the system has no pidfd: call it on SIGCHLD.
    pub fn reap(&mut self) {
        todo!()
    }
    /// Asks for [`Event::Signal`] instead of the default action of these signals.
    pub fn signals(&mut self, signals: &[i32]) -> io::Result<Key> {
        todo!()
    }
    /// Wakes the loop from another thread.
    pub fn waker(&self) -> Waker {
        todo!()
    }
    /// A queue into the loop from other threads.
    pub fn mailbox<T>(&self) -> (Sender<T>, Mailbox<T>) {
        crate::mailbox::mailbox(self.waker())
    }
    /// The protocol of a link; the link is flushed afterwards.
    pub fn protocol(&mut self, key: Key) -> Option<&mut P> {
        todo!()
    }
    /// The protocol of a link, to look at only.
    pub fn peek(&self, key: Key) -> Option<&P> {
        todo!()
    }
    /// Input of a Memory link.
    pub fn deliver(&mut self, key: Key, data: Bytes) {
        todo!()
    }
    /// The end of a Memory link's input.
    pub fn deliver_eof(&mut self, key: Key) {
        todo!()
    }
    /// Output of a Memory link, at most `max` bytes.
    pub fn take_outgoing(&mut self, key: Key, max: usize) -> Bytes {
        todo!()
    }
    /// Drops a link now, without an event.
    pub fn abort(&mut self, key: Key) -> Option<P> {
        todo!()
    }
    /// Waits for at most `max_wait` for something to happen.
    pub fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Instant> {
        todo!()
    }
    /// The next thing that happened. `None`: everything was handled and flushed.
    pub fn poll_event(&mut self) -> Option<Event<P>> {
        todo!()
    }
    /// When the next turn is due if no descriptor becomes ready before.
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        todo!()
    }
}

impl<P: Protocol> AsFd for Driver<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reactor.as_fd()
    }
}
