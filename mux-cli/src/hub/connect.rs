//! From a target's name to a TCP connection that stands: preparation, name, addresses in turn. Never looks at what
//! is said on the connection.

use std::collections::VecDeque;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_ssh::client::ChannelId;

use super::happening::Kind;
use super::job::Job;
use super::pace::{self, Door};
use super::phase::{Phase, Session};
use super::race::{Race, Runner};
use super::shared::Context;
use super::{
    Action, Failure, Family, Links, NoLink, Prepared, Route, Source, Stage, Status, Transport, outcome,
};

/// How long an address has for itself before the next of the same name is tried beside it (RFC 8305, section 5).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

impl<K: Copy + Eq + Hash> Job<K> {
    /// The first step out of the queue.
    pub(super) fn begin<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.flight.note(cx.now, Kind::Begin.alone());
        if self.begin_kept(cx) {
            return;
        }
        match &self.request.transport {
            Transport::Ssh(_) => self.ask(cx, Action::Prepare),
            Transport::Local => self.begin_local(cx),
            Transport::OpenSsh(options) => {
                let options = Arc::clone(options);
                self.begin_openssh(cx, &options);
            }
        }
    }

    pub(super) fn prepared<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, prepared: Prepared) {
        if !matches!(self.phase, Phase::Preparing) {
            return;
        }
        self.prepared = prepared;
        self.last_heard = cx.now;
        self.stage_since = cx.now;
        self.connect.start(cx.now);
        let door = match &self.request.route {
            Route::Jump(hop) => {
                let (address, port) = (&self.request.address, self.request.port);
                Some(cx.shared.endpoints.behind(*hop, address, port))
            }
            Route::Command(_) => Some(Door::Proxy),
            Route::Direct => {
                if let Ok(ip) = self.request.address.parse::<IpAddr>() {
                    let address = SocketAddr::new(ip, self.request.port);
                    return self.race_to(cx, VecDeque::from([address]));
                }
                None
            }
        };
        if let Some(door) = door {
            return self.race(cx, VecDeque::from([door]));
        }
        self.phase = Phase::Resolving;
        let action = Action::Resolve {
            host: self.request.address.clone(),
            port: self.request.port,
        };
        self.ask(cx, action);
    }

    pub(super) fn resolved<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        result: Result<Vec<SocketAddr>, String>,
    ) {
        if !matches!(self.phase, Phase::Resolving) {
            return;
        }
        let Transport::Ssh(options) = &self.request.transport else {
            return;
        };
        let family = options.family;
        self.timings.dns = Some(cx.now.saturating_duration_since(self.stage_since));
        self.heard(cx);
        let addresses = match result {
            Ok(addresses) => in_turn(addresses, family),
            Err(reason) => {
                let failure = outcome::not_resolved(&self.request.address, &reason);
                return self.fail_or_retry(cx, Status::Unreachable, failure);
            }
        };
        if addresses.is_empty() {
            let wanted = if family == Family::V6 { "IPv6" } else { "IPv4" };
            let message = format!("{} has no {wanted} address", self.request.address);
            let failure = Failure::new(Stage::Dns, message).in_general(format!("no {wanted} address"));
            return self.finish(cx, Status::Unreachable, Some(failure));
        }
        self.race_to(cx, addresses);
    }

    /// Starts over at what can be reached of these addresses.
    fn race_to<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, addresses: VecDeque<SocketAddr>) {
        let reachable = match self.source() {
            Some(source) => source.reachable(addresses),
            None => Ok(addresses),
        };
        match reachable {
            Ok(addresses) => self.race(cx, addresses.into_iter().map(Door::Address).collect()),
            Err(failure) => self.finish(cx, Status::Unreachable, Some(failure)),
        }
    }

    /// From where connections to the target start, if that is not for the system to choose.
    fn source(&self) -> Option<&Source> {
        match &self.request.transport {
            Transport::Ssh(options) => options.source.as_ref(),
            Transport::Local | Transport::OpenSsh(_) => None,
        }
    }

    /// Starts over at `doors`.
    pub(super) fn race<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, doors: VecDeque<Door>) {
        self.phase = Phase::Connecting(Race::new(doors));
        self.reach(cx, Stage::Tcp);
        self.next_door(cx);
    }

    /// Tries the next door, queues for a place at it, or fails if there is none and nothing is on its way.
    fn next_door<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let id = self.request.id;
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        race.next_at = None;
        if race.waiting.is_some() || race.starting.is_some() {
            return;
        }
        match race.doors.pop_front() {
            Some(door) if cx.shared.endpoints.enter(door, id) => self.connect_to(cx, door),
            Some(door) => {
                race.waiting = Some(door);
                if race.runners.is_empty() {
                    // In a queue of ours nobody else can be late.
                    self.connect.stop(cx.now);
                }
            }
            None if race.runners.is_empty() => {
                let failure = race.failure.take();
                let failure = failure.unwrap_or_else(|| Failure::new(Stage::Tcp, "no address to connect to"));
                self.fail_or_retry(cx, Status::Unreachable, failure);
            }
            None => {}
        }
    }

    /// A place at `door` has become free for this job.
    pub(super) fn granted<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, door: Door) {
        match &mut self.phase {
            Phase::Connecting(race) if race.waiting == Some(door) => {
                race.waiting = None;
                race.starting = Some((cx.now + pace::jitter(self.request.id, self.attempt), door));
                self.heard(cx);
            }
            Phase::Connecting(_)
            | Phase::Preparing
            | Phase::Resolving
            | Phase::Session(_)
            | Phase::Local(_)
            | Phase::Parked(_)
            | Phase::Pausing(_)
            | Phase::Over => cx.shared.endpoints.leave(door),
        }
    }

    pub(super) fn continue_race<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let due = race.next_at.is_some_and(|at| at <= cx.now);
        if let Some((_, door)) = race.starting.take_if(|(at, _)| *at <= cx.now) {
            self.connect_to(cx, door);
        }
        if due {
            self.next_door(cx);
        }
    }

    /// Connects at `door`, where this job has a place, with the command already on board.
    fn connect_to<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, door: Door) {
        if let Some(short) = cx
            .shared
            .short(cx.now)
            .filter(|_| !matches!(door, Door::Behind(_)))
        {
            self.lacking = Some(short);
            return self.connect_later(cx, door);
        }
        self.proxy_said.clear();
        let Some(result) = self.start_link(cx, door) else {
            return self.ask_for_ride(cx, door);
        };
        match result {
            Err(what) if what.is_shortage() => {
                self.lacks(cx, what);
                return self.connect_later(cx, door);
            }
            Ok(_) | Err(_) => {}
        }
        self.lacking = None;
        self.tries += 1;
        self.connect.start(cx.now);
        let id = self.request.id;
        let result = result.map_err(|why| self.not_started(door, why));
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        match result {
            Ok((key, channel)) => {
                self.flight.note(cx.now, Kind::Connect.alone());
                cx.shared.by_link.insert(key, id);
                race.runners.push(Runner {
                    key,
                    door,
                    channel,
                    since: cx.now,
                });
                race.next_at = (!race.doors.is_empty()).then(|| cx.now + NEXT_ADDRESS);
            }
            Err(failure) => {
                cx.shared.endpoints.leave(door);
                race.failure = Some(failure);
                self.next_door(cx);
            }
        }
    }

    /// A link at `door` with a client on it, and the channel of its command; none where another connection is to carry it.
    fn start_link<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        door: Door,
    ) -> Option<Result<(K, Option<ChannelId>), NoLink>> {
        match (door, &self.request.route) {
            (Door::Address(address), _) => {
                let from = self.source().and_then(|source| source.toward(address));
                let (client, channel) = self.client(cx);
                let key = cx.links.connect(address, from, client);
                Some(key.map(|key| (key, channel)))
            }
            (_, Route::Command(line)) => {
                let (client, channel) = self.client(cx);
                Some(cx.links.proxy(line, client).map(|key| (key, channel)))
            }
            (Door::Behind(_) | Door::Kept | Door::Proxy, _) => None,
        }
    }

    /// Whose fault it is that an attempt could not be started.
    fn not_started(&self, door: Door, why: NoLink) -> Failure {
        match (why, self.source()) {
            (NoLink::Source(_), Some(source)) => source.refused(why),
            _ => outcome::connect_failed(door, why),
        }
    }

    /// Keeps the place at `door` and tries again when what is lacking may be there.
    fn connect_later<L: Links<Key = K>>(&mut self, cx: &Context<'_, L>, door: Door) {
        let (Phase::Connecting(race), Some((_, at))) = (&mut self.phase, self.lacking) else {
            return;
        };
        race.starting = Some((at, door));
        if !race.runners.is_empty() {
            return;
        }
        if cx.shared.by_link.is_empty() {
            // Nobody who might give any back: the host has its time, and then it is said what was lacking.
            self.connect.start(cx.now);
        } else {
            self.connect.stop(cx.now);
        }
    }

    /// The TCP connection of `key` stands: it wins the race.
    pub(super) fn connected<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, key: K) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let Some(at) = race.runners.iter().position(|runner| runner.key == key) else {
            return;
        };
        let winner = race.runners.swap_remove(at);
        self.release(cx);
        self.establish(cx, key, winner.door, winner.channel, winner.since);
    }

    /// The connection of `key`, begun at `since`, stands.
    pub(super) fn establish<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        key: K,
        door: Door,
        channel: Option<ChannelId>,
        since: Instant,
    ) {
        self.timings.tcp = Some(cx.now.saturating_duration_since(since));
        self.carrier_lost = None;
        self.phase = Phase::Session(Session {
            key,
            door,
            channel,
            unauthenticated: true,
            lost: None,
            unanswered: None,
            proving: false,
        });
        self.heard(cx);
        self.greeting.clear();
        self.reach(cx, Stage::Banner);
        self.ask_for_channels(cx);
        self.want_stdin(cx);
    }

    /// A connection has failed before it stood.
    pub(super) fn connect_failed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        key: K,
        kind: std::io::ErrorKind,
    ) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let Some(at) = race.runners.iter().position(|runner| runner.key == key) else {
            return;
        };
        let loser = race.runners.swap_remove(at);
        race.failure = Some(outcome::connect_failed(loser.door, NoLink::Io(kind)));
        cx.shared.endpoints.leave(loser.door);
        self.heard(cx);
        self.next_door(cx);
    }
}

/// The addresses of the wanted family, families alternating (RFC 8305, section 4): one broken family costs one delay.
fn in_turn(addresses: Vec<SocketAddr>, family: Family) -> VecDeque<SocketAddr> {
    let wanted = addresses.into_iter().filter(|address| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    });
    let wanted: Vec<_> = wanted.collect();
    let first_is_v6 = wanted.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (VecDeque<_>, VecDeque<_>) = wanted
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut turns = VecDeque::new();
    while !first.is_empty() || !second.is_empty() {
        turns.extend(first.pop_front());
        turns.extend(second.pop_front());
    }
    turns
}
