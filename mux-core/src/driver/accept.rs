//! Listeners. Decides how many connections are taken at once and what happens when descriptors run out; never what
//! becomes of a connection.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use mux_proto::Protocol;

use super::{Driver, What};
use crate::{Event, Key};

/// Connections taken from one listener in one turn, so that a flood of them starves nobody.
const ACCEPTS_PER_TURN: usize = 64;

/// A listener without descriptors tries again after this long even if no link of this loop was closed: somebody else
/// in the process may have closed something. The system will not say so, readiness being edge-triggered.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

impl<P: Protocol> Driver<P> {
    pub(super) fn accept(&mut self, now: Instant, key: Key) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(What::Listener(listener)) = self.entry(key) else {
                return;
            };
            match listener.accept() {
                Ok(stream) => self.events.push_back(Event::Accepted(key, stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // That connection is gone; the next may be fine.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    if !self.deaf.contains(&key) {
                        log::warn!("accept on {key:?}: {error}; trying again");
                        self.deaf.push(key);
                    }
                    self.reactor.set_timer(key, Some(now + ACCEPT_RETRY));
                    return;
                }
            }
        }
        self.reactor.requeue(key);
    }
}
