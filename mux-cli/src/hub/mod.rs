//! The one owner of connections: what was asked for goes in, what happened comes out.
//!
//! A [`Hub`] is a state machine without IO: it starts connections through [`Links`], asks the outside through
//! [`Action`]s and learns the time from its caller. It decides who may start when, which deadline is over, what is
//! tried again and how a request ended; it never reads a file, a clock or a socket.

mod agent;
mod carrying;
mod caution;
mod children;
mod client;
mod connect;
mod countdown;
mod drain;
mod ending;
mod event;
mod flight;
mod happening;
mod hop;
mod host_certificate;
mod host_key;
pub(crate) mod ids;
mod job;
mod keeping;
mod kill;
mod linger;
mod links;
mod local;
mod openssh;
mod outcome;
mod pace;
mod parked;
mod phase;
mod prompts;
mod proxy;
mod race;
mod request;
mod retry;
mod riding;
mod session;
mod shared;
mod source;
mod stall;
mod stdin;
mod window;

use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;
use std::time::Instant;

pub use event::{Event, Failure, Level, Outcome, RequestId, Stage, Status, StreamKind, Timings};

pub use flight::Flight;
pub use host_certificate::{Shown, Vouching, vouching};
pub use host_key::{Decision, KeptIn, judge};
pub use kill::KILL_LINE;
pub use links::{Kept, Kill, LinkEvent, Links, NoLink};
pub use openssh::LOG_VERBOSE;
pub use pace::MAX_PROXIES;
pub use request::{
    Action, Answer, Family, Judgement, KeyId, Likeness, MissingStatus, Offer, OpenSsh, Prepared, Reason,
    Request, Route, SshOptions, Ticket, Transport, Wish,
};
pub use source::Source;

use children::Children;
use happening::{Happening, Kind};
use hop::{Note, Role};
use ids::IdMap;
use job::Job;
use pace::{Endpoints, Fanout};
use parked::Parking;
use phase::Phase;
pub(crate) use phase::say_goodbye;
use shared::{Context, Shared};

/// Requests that may be under way above the fanout: those whose hosts have fallen silent.
pub const MAX_AT_ONCE_ABOVE_FANOUT: usize = pace::MAX_SILENT;

/// Runs requests, so many at a time, each on a connection of its own.
///
/// After every call take out what it has to say: [`poll_action`](Self::poll_action) and
/// [`poll_event`](Self::poll_event) until both are empty, then wait until [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Hub<K> {
    queue: VecDeque<Request>,
    jobs: IdMap<RequestId, Job<K>>,
    shared: Shared<K>,
}

impl<K: Copy + Eq + Hash> Hub<K> {
    /// A hub that has at most `fanout` requests under way, of `expected` in all.
    #[must_use]
    pub fn new(fanout: usize, expected: usize) -> Self {
        Self {
            queue: VecDeque::with_capacity(expected),
            jobs: IdMap::with_capacity_and_hasher(fanout.min(expected), Default::default()),
            shared: Shared {
                fanout: Fanout::new(fanout),
                endpoints: Endpoints::default(),
                children: Children::default(),
                by_link: IdMap::default(),
                timers: BTreeSet::new(),
                short: None,
                actions: VecDeque::new(),
                events: VecDeque::new(),
                left_running: Vec::new(),
                hops: IdMap::default(),
                notes: VecDeque::new(),
                parking: Parking::default(),
                lingering: linger::Lingering::default(),
                max_window: window::fair(fanout.min(expected)),
                held: false,
                flights: None,
            },
        }
    }

    /// Has at most this many requests under way, those that have fallen silent included: each takes descriptors.
    pub fn limit_at_once(&mut self, most: usize) {
        self.shared.fanout.limit_at_once(most);
    }

    /// Queues a request; it starts as soon as there is room.
    pub fn submit<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L, request: Request) {
        self.use_route(&request.route);
        self.queue.push_back(request);
        self.settle(now, links);
    }

    /// What the outside says to an [`Action`].
    pub fn answer<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L, ticket: Ticket, answer: Answer) {
        self.with_job(now, links, ticket.request, |job, cx| {
            if job.ticket() != ticket {
                return;
            }
            job.flight.note(cx.now, Happening::from(&answer));
            match answer {
                Answer::Prepared(prepared) => job.prepared(cx, prepared),
                Answer::Resolved(result) => job.resolved(cx, result),
                Answer::HostKey { question, judgement } => job.judged(cx, question, judgement),
                Answer::ProveHostKeys(keys) => job.prove_host_keys(cx, keys),
                Answer::Signed { question, signature } => job.signed(cx, question, signature),
                Answer::Prompted { question, answers } => job.prompted(cx, question, answers),
                Answer::Asking(asking) => job.asking(cx, asking),
                Answer::Fed(data) => job.fed(cx, data),
                Answer::OtherWay(ssh) => job.other_way(cx, ssh),
            }
        });
        self.settle(now, links);
    }

    /// Something happened on a link.
    pub fn handle_link<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L, key: K, event: LinkEvent) {
        let Some(&request) = self.shared.by_link.get(&key) else {
            return self.handle_lingering(links, key, event);
        };
        if matches!(event, LinkEvent::Closed(_) | LinkEvent::Exited { .. }) {
            self.shared.by_link.remove(&key);
        }
        self.with_job(now, links, request, |job, cx| {
            job.flight.note(cx.now, Happening::from(&event));
            if matches!(event, LinkEvent::Closed(Err(_))) {
                job.show_flight(cx);
            }
            match event {
                LinkEvent::Connected => job.connected(cx, key),
                LinkEvent::Client(said) => job.said(cx, key, said),
                LinkEvent::Closed(result) => job.closed(cx, key, result),
                LinkEvent::ProxySaid(line) => job.proxy_says(cx, &line),
                LinkEvent::Output(stream, data) => job.local_output(cx, stream, data),
                LinkEvent::Room => job.want_stdin(cx),
                LinkEvent::Log { pid, data } => job.openssh_log(cx, pid, &data),
                LinkEvent::KillerOver => job.openssh_killer_over(cx),
                LinkEvent::Exited { rc, signal, unsent } => job.local_exit(cx, (rc, signal), unsent),
            }
        });
        self.settle(now, links);
    }

    /// `count` bytes of a request's output were written, stored or dropped: as many may follow.
    pub fn consume<L: Links<Key = K>>(
        &mut self,
        now: Instant,
        links: &mut L,
        request: RequestId,
        stream: StreamKind,
        count: usize,
    ) {
        if let Some(job) = self.jobs.get_mut(&request) {
            job.flight.note(now, Kind::Consumed.of(count));
            job.consume(
                &mut Context {
                    now,
                    links,
                    shared: &mut self.shared,
                },
                stream,
                count,
            );
        }
    }

    /// Stops one request, whatever it is doing. The only way to stop anything.
    pub fn cancel<L: Links<Key = K>>(
        &mut self,
        now: Instant,
        links: &mut L,
        request: RequestId,
        reason: Reason,
    ) {
        let at = self.queue.iter().position(|queued| queued.id == request);
        if let Some(queued) = at.and_then(|at| self.queue.remove(at)) {
            self.skip(&queued);
        }
        self.with_job(now, links, request, |job, cx| job.cancel(cx, reason));
        self.settle(now, links);
    }

    /// Stops everything: what is queued never starts.
    pub fn cancel_all<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L, reason: Reason) {
        self.hold(now, links);
        // Jump hosts end with the last that rides on them: until then they are the way to what is to be stopped.
        let commands = self.jobs.values().filter(|job| !job.is_hop());
        let mut running: Vec<RequestId> = commands.map(|job| job.request.id).collect();
        running.sort_unstable();
        for request in running {
            self.with_job(now, links, request, |job, cx| job.cancel(cx, reason));
        }
        self.settle(now, links);
    }

    /// Starts nothing more, not even once more; what runs goes on.
    pub fn hold<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L) {
        self.shared.held = true;
        self.stop_lingering(links, None);
        for request in std::mem::take(&mut self.queue) {
            self.skip(&request);
        }
        let mut all: Vec<RequestId> = self.jobs.keys().copied().collect();
        all.sort_unstable();
        for request in all {
            self.with_job(now, links, request, Job::end_pause);
        }
        self.settle(now, links);
    }

    fn skip(&mut self, request: &Request) {
        let outcome = Outcome::untried(Status::Skipped, None);
        if let Route::Jump(hop) = request.route {
            self.shared.notes.push_back((hop, Note::Done(request.id)));
        }
        let request = request.id;
        self.shared.events.push_back(Event::Finished { request, outcome });
    }

    /// The time named by [`poll_timeout`](Self::poll_timeout) has come. May be called early.
    pub fn handle_timeout<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L) {
        self.shared.short.take_if(|(_, until)| *until <= now);
        self.stop_lingering(links, Some(now));
        while let Some(&(at, request)) = self.shared.timers.first() {
            if at > now {
                break;
            }
            self.shared.timers.pop_first();
            self.with_job(now, links, request, |job, cx| {
                job.wake = None;
                job.on_timer(cx);
            });
        }
        self.settle(now, links);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let short = self.shared.short;
        let short = short.filter(|_| !self.queue.is_empty() || self.shared.parking.has_returning());
        let job = self.shared.timers.first().map(|(at, _)| *at);
        let lingering = self.linger_timeout();
        let due = [job, short.map(|(_, until)| until), lingering];
        due.into_iter().flatten().min()
    }

    /// The next thing that the outside has to do.
    pub fn poll_action(&mut self) -> Option<(Ticket, Action)> {
        self.shared.actions.pop_front()
    }

    /// The next thing that happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// The request of an attempt that is under way.
    #[must_use]
    pub fn request(&self, ticket: Ticket) -> Option<&Request> {
        self.jobs
            .get(&ticket.request)
            .filter(|job| job.ticket() == ticket)
            .map(|job| &job.request)
    }

    /// Everything has finished.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.jobs.is_empty() && self.shared.lingering.is_empty()
    }

    /// Requests that have not left the queue.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// What is under way: which request, in which stage, since when. In the order of the requests.
    #[must_use]
    pub fn running(&self) -> Vec<(RequestId, Stage, Instant)> {
        let mut running: Vec<_> = self
            .jobs
            .values()
            .filter(|job| !job.is_hop())
            .map(|job| (job.request.id, job.stage, job.stage_since))
            .collect();
        running.sort_unstable();
        running
    }

    /// Which link each request has, of those that have one.
    pub fn links(&self) -> impl Iterator<Item = (RequestId, K)> {
        self.shared.by_link.iter().map(|(key, request)| (*request, *key))
    }

    /// Requests whose command was stopped and not seen to end.
    #[must_use]
    pub fn left_running(&self) -> &[RequestId] {
        &self.shared.left_running
    }

    fn with_job<L: Links<Key = K>>(
        &mut self,
        now: Instant,
        links: &mut L,
        request: RequestId,
        act: impl FnOnce(&mut Job<K>, &mut Context<'_, L>),
    ) {
        let Some(job) = self.jobs.get_mut(&request) else {
            return;
        };
        let mut cx = Context {
            now,
            links,
            shared: &mut self.shared,
        };
        act(job, &mut cx);
        job.tell_clock(&mut cx);
        job.schedule(&mut cx);
        if matches!(job.phase, Phase::Over) {
            self.jobs.remove(&request);
        }
    }

    /// Lets those go whose turn has come.
    fn settle<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L) {
        loop {
            self.pass_notes(now, links);
            let granted = self.shared.endpoints.granted();
            let none = granted.is_empty();
            for (request, door) in granted {
                if self.jobs.contains_key(&request) {
                    self.with_job(now, links, request, |job, cx| job.granted(cx, door));
                } else {
                    self.shared.endpoints.leave(door);
                }
            }
            while let Some(request) = self.shared.children.granted() {
                self.with_job(now, links, request, Job::granted_child);
            }
            let idle = none && self.shared.notes.is_empty();
            if idle && !self.start_next(now, links) {
                return;
            }
        }
    }

    fn start_next<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L) -> bool {
        // While there is not enough for those who have left the queue, nobody follows them.
        if !self.shared.fanout.has_room() || self.shared.short(now).is_some() {
            return false;
        }
        if let Some(id) = self.shared.parking.next() {
            self.shared.fanout.enter();
            self.with_job(now, links, id, Job::come_back);
            return true;
        }
        let Some(request) = self.queue.pop_front() else {
            return false;
        };
        let id = request.id;
        self.shared.fanout.enter();
        self.jobs.insert(id, Job::new(request, Role::Command, now));
        self.with_job(now, links, id, Job::begin);
        true
    }
}
