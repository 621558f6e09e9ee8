//! Links without a descriptor: the application carries their bytes. Decides when a carrier is told; never where the
//! bytes go.

use bytes::Bytes;
use mux_proto::Protocol;

use super::Driver;
use crate::Key;

impl<P: Protocol> Driver<P> {
    /// Input of a [`Stream::Memory`](crate::Stream::Memory) link. Its protocol sees it before `poll_event` returns
    /// `None`, unless it is paused; [`Event::Consumed`](crate::Event::Consumed) tells how much it has seen, and a
    /// carrier that refills its window by that much never has more than a window waiting here.
    pub fn deliver(&mut self, key: Key, data: Bytes) {
        self.mark_dirty(key);
        if let Some(link) = self.link(key).filter(|link| link.io.is_memory()) {
            link.deliver(data);
        }
    }

    /// The end of a memory link's input.
    pub fn deliver_eof(&mut self, key: Key) {
        self.mark_dirty(key);
        if let Some(link) = self.link(key).filter(|link| link.io.is_memory()) {
            link.deliver_eof();
        }
    }

    /// Takes at most `max` bytes of a memory link's output. Fewer than `max`: there is no more for now, and
    /// [`Event::Outgoing`](crate::Event::Outgoing) will tell of what comes next. Otherwise there may be more, which
    /// waits until the carrier has room and asks again.
    pub fn take_outgoing(&mut self, key: Key, max: usize) -> Bytes {
        let Some(now) = self.now else { return Bytes::new() };
        let Some(link) = self.link(key).filter(|link| link.io.is_memory()) else {
            return Bytes::new();
        };
        let taken = link.take_outgoing(now, max);
        // Taking makes room: the protocol may have more to send, or may now be done.
        self.mark_dirty(key);
        taken
    }
}
