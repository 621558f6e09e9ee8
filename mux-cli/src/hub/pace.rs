//! Who may start, and when: the sliding window of hosts, the unauthenticated handshakes of each endpoint, the processes
//! that are connections.
//! Never starts anything itself.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use super::RequestId;

/// Unauthenticated handshakes at once per address and port: sshd begins to drop connections at random where it counts ten
/// already (`MaxStartups 10:30:100`), and it still counts those for a moment that are through or gone for us.
pub(super) const HANDSHAKES_PER_ENDPOINT: usize = 8;

/// So often a server that has not answered anybody yet may hang up before its identification and be taken for one that has
/// enough logins, and not for one that is none.
const TIMES_WITHOUT_ANSWER: u32 = 3;

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

/// Processes at once that are connections (`ProxyCommand`): each costs far more memory than all of ours for a host, and a
/// run of that many at once is a fork bomb. As many as hosts at once by default.
pub const MAX_PROXIES: usize = 64;

/// Where an unauthenticated handshake goes, as far as anybody knows who counts them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Door {
    /// An address that we connect to.
    Address(SocketAddr),
    /// A host behind a jump host; the number stands for both. The jump host counts its own logins, not these.
    Behind(u32),
    /// A connection that stood before: it counts nowhere.
    Kept,
    /// Whatever a `ProxyCommand` reaches: mostly one bastion, so that they count as one.
    Proxy,
}

/// The handshakes under way at each door.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    by_door: HashMap<Door, Endpoint>,
    behind: HashMap<(RequestId, String, u16), u32>,
    granted: Vec<(RequestId, Door)>,
}

#[derive(Debug, Default)]
struct Endpoint {
    /// Handshakes.
    busy: usize,
    /// Those that are through and still count; only where the number of connections is bounded, too.
    held: usize,
    waiting: VecDeque<RequestId>,
    company: Company,
}

/// Whether others of ours come to the same door, and get in. Then one that is turned away there before a word was
/// exchanged is one too many, and no more than that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Company {
    first: Option<RequestId>,
    others: bool,
    answered: bool,
}

impl Company {
    /// Somebody comes to this door, perhaps once more.
    pub(super) fn visit(&mut self, request: RequestId) {
        self.others |= *self.first.get_or_insert(request) != request;
    }

    /// The server behind it has shown that it is one.
    pub(super) fn answered(&mut self) {
        self.answered = true;
    }

    /// Whether several came: what is known here is not forgotten when the last one leaves.
    pub(super) fn is_shared(self) -> bool {
        self.others
    }

    /// Whether one that was turned away for the `times`th time may be one too many. Of the first ones nobody has had an
    /// answer yet.
    pub(super) fn is_crowd(self, says_so: bool, times: u32) -> bool {
        self.others && (says_so || self.answered || times <= TIMES_WITHOUT_ANSWER)
    }
}

impl Endpoint {
    fn has_room(&self, door: Door) -> bool {
        let held = match door {
            Door::Address(_) | Door::Behind(_) | Door::Kept => 0,
            Door::Proxy => self.held,
        };
        self.busy < HANDSHAKES_PER_ENDPOINT && self.busy + held < MAX_PROXIES
    }
}

impl Endpoints {
    /// The door of a host that `hop` connects to.
    pub(super) fn behind(&mut self, hop: RequestId, host: &str, port: u16) -> Door {
        let next = u32::try_from(self.behind.len()).expect("no more than requests");
        let number = self.behind.entry((hop, host.to_owned(), port));
        Door::Behind(*number.or_insert(next))
    }

    /// Takes a place at `door`, or queues for it; a queued request is named by [`granted`](Self::granted) once
    /// it has its place.
    pub(super) fn enter(&mut self, door: Door, request: RequestId) -> bool {
        let endpoint = self.by_door.entry(door).or_default();
        endpoint.company.visit(request);
        if endpoint.waiting.is_empty() && endpoint.has_room(door) {
            endpoint.busy += 1;
            return true;
        }
        endpoint.waiting.push_back(request);
        false
    }

    /// A handshake is over, for good or for bad, and with it, if so, the connection: its place goes to the next in the
    /// queue, if there is one.
    pub(super) fn leave(&mut self, door: Door) {
        self.change(door, |endpoint| endpoint.busy = endpoint.busy.saturating_sub(1));
    }

    /// A handshake is over and the connection goes on.
    pub(super) fn pass(&mut self, door: Door) {
        self.change(door, |endpoint| {
            endpoint.busy = endpoint.busy.saturating_sub(1);
            endpoint.held += usize::from(door == Door::Proxy);
        });
    }

    /// A connection whose handshake was over has ended.
    pub(super) fn end(&mut self, door: Door) {
        if door == Door::Proxy {
            self.change(door, |endpoint| endpoint.held = endpoint.held.saturating_sub(1));
        }
    }

    fn change(&mut self, door: Door, act: impl FnOnce(&mut Endpoint)) {
        let Some(endpoint) = self.by_door.get_mut(&door) else {
            return;
        };
        act(endpoint);
        while endpoint.has_room(door)
            && let Some(next) = endpoint.waiting.pop_front()
        {
            endpoint.busy += 1;
            self.granted.push((next, door));
        }
        if endpoint.busy + endpoint.held == 0 && !endpoint.company.is_shared() {
            self.by_door.remove(&door);
        }
    }

    /// The server at `door` has sent its identification.
    pub(super) fn answered(&mut self, door: Door) {
        if let Some(endpoint) = self.by_door.get_mut(&door) {
            endpoint.company.answered();
        }
    }

    /// Whether one that is turned away at `door` may be one too many there. Where a process is the connection nobody knows
    /// who turned it away.
    pub(super) fn is_crowded(&self, door: Door, says_so: bool, times: u32) -> bool {
        let endpoint = self.by_door.get(&door).filter(|_| door != Door::Proxy);
        endpoint.is_some_and(|endpoint| endpoint.company.is_crowd(says_so, times))
    }

    /// Leaves the queue of `door` without having had a place. A place that was granted and not yet taken is
    /// given back.
    pub(super) fn give_up(&mut self, door: Door, request: RequestId) {
        if let Some(at) = self.granted.iter().position(|grant| *grant == (request, door)) {
            self.granted.swap_remove(at);
            self.leave(door);
        } else if let Some(endpoint) = self.by_door.get_mut(&door) {
            endpoint.waiting.retain(|waiting| *waiting != request);
        }
    }

    /// Those whose turn has come since the last call.
    pub(super) fn granted(&mut self) -> Vec<(RequestId, Door)> {
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

    fn address() -> Door {
        Door::Address(SocketAddr::from(([192, 0, 2, 1], 22)))
    }

    #[test]
    fn an_endpoint_admits_eight_and_hands_places_on_in_order() {
        let mut endpoints = Endpoints::default();
        let admitted = (0..10)
            .filter(|id| endpoints.enter(address(), RequestId(*id)))
            .count();
        assert_eq!(admitted, 8);
        endpoints.leave(address());
        endpoints.leave(address());
        assert_eq!(
            endpoints.granted(),
            [(RequestId(8), address()), (RequestId(9), address())]
        );
        assert!(!endpoints.enter(address(), RequestId(10)));
    }

    #[test]
    fn a_door_is_crowded_where_others_come_and_a_server_answers() {
        let mut endpoints = Endpoints::default();
        for door in [address(), Door::Behind(1), Door::Proxy] {
            endpoints.enter(door, RequestId(1));
            endpoints.leave(door);
            endpoints.enter(door, RequestId(1));
            endpoints.answered(door);
            assert!(!endpoints.is_crowded(door, true, 1));
            endpoints.enter(door, RequestId(2));
            assert_eq!(endpoints.is_crowded(door, false, 9), door != Door::Proxy);
            endpoints.leave(door);
            endpoints.pass(door);
            // The last one may be turned away while its server still counts those before it.
            assert_eq!(endpoints.is_crowded(door, false, 9), door != Door::Proxy);
        }
        let silent = Door::Behind(2);
        endpoints.enter(silent, RequestId(3));
        endpoints.enter(silent, RequestId(4));
        assert!(endpoints.is_crowded(silent, false, 3));
        assert!(!endpoints.is_crowded(silent, false, 4));
        assert!(endpoints.is_crowded(silent, true, 4));
    }

    #[test]
    fn a_grant_that_nobody_takes_goes_to_the_next() {
        let mut endpoints = Endpoints::default();
        for id in 0..10 {
            endpoints.enter(address(), RequestId(id));
        }
        endpoints.leave(address());
        endpoints.give_up(address(), RequestId(8));
        assert_eq!(endpoints.granted(), [(RequestId(9), address())]);
    }

    #[test]
    fn proxies_are_counted_for_as_long_as_they_live() {
        let mut endpoints = Endpoints::default();
        let mut places = 0;
        for id in 0..100 {
            let admitted = endpoints.enter(Door::Proxy, RequestId(id));
            places += usize::from(admitted);
            if admitted {
                endpoints.pass(Door::Proxy);
            }
        }
        assert_eq!((places, endpoints.granted()), (MAX_PROXIES, vec![]));
        endpoints.end(Door::Proxy);
        assert_eq!(endpoints.granted(), [(RequestId(64), Door::Proxy)]);
    }

    #[test]
    fn hosts_behind_a_jump_host_are_counted_one_by_one() {
        let mut endpoints = Endpoints::default();
        let gate = RequestId(100);
        let [one, other] = ["web01", "web02"].map(|host| endpoints.behind(gate, host, 22));
        assert_ne!(one, other);
        assert_eq!(one, endpoints.behind(gate, "web01", 22));
        let admitted = (0..12).filter(|id| endpoints.enter(one, RequestId(*id))).count();
        assert_eq!(admitted, HANDSHAKES_PER_ENDPOINT);
        assert!(endpoints.enter(other, RequestId(12)));
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
