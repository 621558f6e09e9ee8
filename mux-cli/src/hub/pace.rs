//! Who may start, and when: the sliding window of hosts and the unauthenticated handshakes of each endpoint.
//! Never starts anything itself.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use super::RequestId;

/// Unauthenticated handshakes at once per address and port: sshd begins to drop connections at random above ten
/// (`MaxStartups 10:30:100`).
pub(super) const HANDSHAKES_PER_ENDPOINT: usize = 10;

/// Hosts that stopped answering and no longer count against the fanout, at most: each still holds a descriptor and
/// a handshake's memory.
pub(super) const MAX_SILENT: usize = 1024;

/// A host that waited for its endpoint starts up to this much later than it could, so that those who waited
/// together don't arrive together.
const JITTER: Duration = Duration::from_millis(8);

/// The sliding window.
#[derive(Debug)]
pub(super) struct Fanout {
    limit: usize,
    most: usize,
    active: usize,
    silent: usize,
}

impl Fanout {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            most: usize::MAX,
            active: 0,
            silent: 0,
        }
    }

    /// Silent ones included: as many as there are descriptors for.
    pub(super) fn limit_at_once(&mut self, most: usize) {
        self.most = most.max(1);
    }

    pub(super) fn has_room(&self) -> bool {
        self.active < self.most && self.active - self.silent.min(MAX_SILENT) < self.limit
    }

    pub(super) fn enter(&mut self) {
        self.active += 1;
    }

    pub(super) fn leave(&mut self, silent: bool) {
        self.active -= 1;
        self.silent -= usize::from(silent);
    }

    pub(super) fn fall_silent(&mut self) {
        self.silent += 1;
    }

    pub(super) fn speak_again(&mut self) {
        self.silent -= 1;
    }
}

/// The handshakes under way at each address and port that we connect to.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    by_address: HashMap<SocketAddr, Endpoint>,
    granted: Vec<(RequestId, SocketAddr)>,
}

#[derive(Debug, Default)]
struct Endpoint {
    busy: usize,
    waiting: VecDeque<RequestId>,
}

impl Endpoints {
    /// Takes a place at `address`, or queues for it; a queued request is named by [`granted`](Self::granted) once
    /// it has its place.
    pub(super) fn enter(&mut self, address: SocketAddr, request: RequestId) -> bool {
        let endpoint = self.by_address.entry(address).or_default();
        if endpoint.busy < HANDSHAKES_PER_ENDPOINT {
            endpoint.busy += 1;
            return true;
        }
        endpoint.waiting.push_back(request);
        false
    }

    /// Gives a place back: to the next in the queue, if there is one.
    pub(super) fn leave(&mut self, address: SocketAddr) {
        let Some(endpoint) = self.by_address.get_mut(&address) else {
            return;
        };
        if let Some(next) = endpoint.waiting.pop_front() {
            self.granted.push((next, address));
            return;
        }
        endpoint.busy = endpoint.busy.saturating_sub(1);
        if endpoint.busy == 0 {
            self.by_address.remove(&address);
        }
    }

    /// Leaves the queue of `address` without having had a place. A place that was granted and not yet taken is
    /// given back.
    pub(super) fn give_up(&mut self, address: SocketAddr, request: RequestId) {
        if let Some(at) = self.granted.iter().position(|grant| *grant == (request, address)) {
            self.granted.swap_remove(at);
            self.leave(address);
        } else if let Some(endpoint) = self.by_address.get_mut(&address) {
            endpoint.waiting.retain(|waiting| *waiting != request);
        }
    }

    /// Those whose turn has come since the last call.
    pub(super) fn granted(&mut self) -> Vec<(RequestId, SocketAddr)> {
        std::mem::take(&mut self.granted)
    }
}

/// How much later a request that had to wait starts.
pub(super) fn jitter(request: RequestId, attempt: u32) -> Duration {
    spread(JITTER, request, attempt)
}

/// A part of `range`: spread evenly by the number of the request, which needs no randomness that an attacker could
/// care about.
pub(super) fn spread(range: Duration, request: RequestId, attempt: u32) -> Duration {
    // Knuth's multiplicative hash; its upper bits are well mixed.
    let mixed = (request.0 ^ attempt.rotate_left(16)).wrapping_mul(2_654_435_761) >> 16;
    range * mixed / 0x1_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 22))
    }

    #[test]
    fn an_endpoint_admits_ten_and_hands_places_on_in_order() {
        let mut endpoints = Endpoints::default();
        let admitted = (0..12)
            .filter(|id| endpoints.enter(address(), RequestId(*id)))
            .count();
        assert_eq!(admitted, 10);
        endpoints.leave(address());
        endpoints.leave(address());
        assert_eq!(
            endpoints.granted(),
            [(RequestId(10), address()), (RequestId(11), address())]
        );
        assert!(!endpoints.enter(address(), RequestId(12)));
    }

    #[test]
    fn a_grant_that_nobody_takes_goes_to_the_next() {
        let mut endpoints = Endpoints::default();
        for id in 0..12 {
            endpoints.enter(address(), RequestId(id));
        }
        endpoints.leave(address());
        endpoints.give_up(address(), RequestId(10));
        assert_eq!(endpoints.granted(), [(RequestId(11), address())]);
    }

    #[test]
    fn silent_hosts_make_room_up_to_a_limit() {
        let mut fanout = Fanout::new(2);
        fanout.enter();
        fanout.enter();
        assert!(!fanout.has_room());
        fanout.fall_silent();
        assert!(fanout.has_room());
        fanout.enter();
        assert!(!fanout.has_room());
        fanout.leave(true);
        assert!(!fanout.has_room());
    }

    #[test]
    fn silent_hosts_make_no_room_where_nothing_is_left_for_them() {
        let mut fanout = Fanout::new(8);
        fanout.limit_at_once(2);
        fanout.enter();
        fanout.enter();
        fanout.fall_silent();
        assert!(!fanout.has_room());
        fanout.leave(true);
        assert!(fanout.has_room());
    }

    #[test]
    fn jitter_stays_in_its_range() {
        assert!((0..1000).all(|id| jitter(RequestId(id), 1) < JITTER));
        assert_ne!(jitter(RequestId(1), 1), jitter(RequestId(2), 1));
    }
}
