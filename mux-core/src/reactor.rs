//! stub
use crate::{Key, Ready, Waker};
use std::io;
use std::time::{Duration, Instant};
/// Readiness, timers and wake-ups, without links.
#[derive(Debug)]
pub struct Reactor {}
#[expect(clippy::todo, unused, missing_docs, reason = "interface first")]
impl Reactor {
    pub fn new() -> io::Result<Self> {
        todo!()
    }
    pub fn register(
        &mut self,
        source: &mut impl mio::event::Source,
        interest: mio::Interest,
    ) -> io::Result<Key> {
        todo!()
    }
    pub fn deregister(&mut self, key: Key, source: &mut impl mio::event::Source) -> io::Result<()> {
        todo!()
    }
    pub fn timer(&mut self, at: Instant) -> Key {
        todo!()
    }
    pub fn set_timer(&mut self, key: Key, at: Option<Instant>) {
        todo!()
    }
    pub fn requeue(&mut self, key: Key) {
        todo!()
    }
    pub fn waker(&self) -> Waker {
        todo!()
    }
    pub fn next_deadline(&self, now: Instant) -> Option<Instant> {
        todo!()
    }
    pub fn turn(&mut self, max_wait: Option<Duration>) -> io::Result<Instant> {
        todo!()
    }
    pub fn poll_ready(&mut self) -> Option<Ready> {
        todo!()
    }
}
impl std::os::fd::AsFd for Reactor {
    #[expect(clippy::todo, reason = "interface first")]
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        todo!()
    }
}
