//! From a target's name to a TCP connection that stands: preparation, name, addresses in turn. Never looks at what
//! is said on the connection.

use std::collections::VecDeque;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_ssh::Client;
use mux_ssh::client::{ChannelId, ClientConfig, Exec, Stdin};

use super::job::{Context, Job};
use super::phase::{Phase, Session};
use super::{
    Action, Failure, Family, Links, NoLink, Prepared, RequestId, SshOptions, Stage, Status, Transport,
    outcome, pace,
};

/// How long an address has for itself before the next of the same name is tried beside it (RFC 8305, section 5).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Connections that race to be the first that stands.
#[derive(Debug)]
pub(super) struct Race<K> {
    /// Addresses not tried yet.
    pub(super) addresses: VecDeque<SocketAddr>,
    /// The address in whose queue we wait.
    pub(super) waiting: Option<SocketAddr>,
    /// The address at which we have a place, and when to use it.
    pub(super) starting: Option<(Instant, SocketAddr)>,
    /// On their way.
    pub(super) runners: Vec<Runner<K>>,
    /// When the next address gets its chance although the last has not failed.
    pub(super) next_at: Option<Instant>,
    /// What the last failed address said.
    pub(super) failure: Option<Failure>,
}

/// One connection with the command already on it.
#[derive(Debug)]
pub(super) struct Runner<K> {
    pub(super) key: K,
    pub(super) address: SocketAddr,
    pub(super) channel: ChannelId,
    pub(super) since: Instant,
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// The first step out of the queue.
    pub(super) fn begin<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
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
        if let Ok(ip) = self.request.address.parse::<IpAddr>() {
            return self.race(cx, VecDeque::from([SocketAddr::new(ip, self.request.port)]));
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
        self.race(cx, addresses);
    }

    /// Starts over with `addresses`.
    pub(super) fn race<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        addresses: VecDeque<SocketAddr>,
    ) {
        self.phase = Phase::Connecting(Race {
            addresses,
            waiting: None,
            starting: None,
            runners: Vec::new(),
            next_at: None,
            failure: None,
        });
        self.reach(cx, Stage::Tcp);
        self.next_address(cx);
    }

    /// Tries the next address, queues for a place at it, or fails if there is none and nothing is on its way.
    fn next_address<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let id = self.request.id;
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        race.next_at = None;
        if race.waiting.is_some() || race.starting.is_some() {
            return;
        }
        match race.addresses.pop_front() {
            Some(address) if cx.shared.endpoints.enter(address, id) => self.connect_to(cx, address),
            Some(address) => {
                race.waiting = Some(address);
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

    /// A place at `address` has become free for this job.
    pub(super) fn granted<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, address: SocketAddr) {
        match &mut self.phase {
            Phase::Connecting(race) if race.waiting == Some(address) => {
                race.waiting = None;
                race.starting = Some((cx.now + pace::jitter(self.request.id, self.attempt), address));
                self.heard(cx);
            }
            Phase::Connecting(_)
            | Phase::Preparing
            | Phase::Resolving
            | Phase::Session(_)
            | Phase::Local(_)
            | Phase::Parked(_)
            | Phase::Pausing(_)
            | Phase::Over => cx.shared.endpoints.leave(address),
        }
    }

    pub(super) fn continue_race<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let due = race.next_at.is_some_and(|at| at <= cx.now);
        if let Some((_, address)) = race.starting.take_if(|(at, _)| *at <= cx.now) {
            self.connect_to(cx, address);
        }
        if due {
            self.next_address(cx);
        }
    }

    /// Connects to `address`, where this job has a place, with the command already on board.
    fn connect_to<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, address: SocketAddr) {
        if let Some(short) = cx.shared.short(cx.now) {
            self.lacking = Some(short);
            return self.connect_later(cx, address);
        }
        let (client, channel) = self.client(cx);
        let result = match cx.links.connect(address, client) {
            Err(what) if what.is_shortage() => {
                self.lacks(cx, what);
                return self.connect_later(cx, address);
            }
            result => result,
        };
        self.lacking = None;
        self.tries += 1;
        self.connect.start(cx.now);
        let id = self.request.id;
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        match result {
            Ok(key) => {
                cx.shared.by_link.insert(key, id);
                race.runners.push(Runner {
                    key,
                    address,
                    channel,
                    since: cx.now,
                });
                race.next_at = (!race.addresses.is_empty()).then(|| cx.now + NEXT_ADDRESS);
            }
            Err(why) => {
                cx.shared.endpoints.leave(address);
                race.failure = Some(outcome::connect_failed(address, why));
                self.next_address(cx);
            }
        }
    }

    /// Keeps the place at `address` and tries again when what is lacking may be there.
    fn connect_later<L: Links<Key = K>>(&mut self, cx: &Context<'_, L>, address: SocketAddr) {
        let (Phase::Connecting(race), Some((_, at))) = (&mut self.phase, self.lacking) else {
            return;
        };
        race.starting = Some((at, address));
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

    fn client<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> (Client, ChannelId) {
        let SshOptions {
            algorithms,
            keepalive,
            rekey,
            ..
        } = match &self.request.transport {
            Transport::Ssh(options) => (**options).clone(),
            Transport::Local | Transport::OpenSsh(_) => SshOptions::default(),
        };
        let caution = self.caution;
        let identities = self.prepared.keys.iter().map(|offer| {
            let mut identity = offer.identity.clone();
            identity.proven &= !caution.step_by_step;
            identity
        });
        let mut client = Client::new(ClientConfig {
            user: self.request.user.clone(),
            algorithms,
            known_host_key_types: self.prepared.known_host_key_types.clone(),
            known_authority: self.prepared.known_authority,
            identities: identities.collect(),
            memory: if caution.no_guess {
                None
            } else {
                self.prepared.memory.clone()
            },
            keepalive,
            rekey,
            spare: false,
            cautious: caution.step_by_step,
            doubted: caution.doubted,
            accept_none: true,
        });
        client.limit_windows(cx.shared.max_window);
        let channel = client.exec(
            cx.now,
            Exec {
                command: self.request.command.clone(),
                env: [&*self.request.env, &*self.request.env_by_habit].concat(),
                stdin: match self.request.stdin {
                    true => Stdin::Open,
                    false => Stdin::Closed,
                },
            },
        );
        (client, channel)
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
        self.timings.tcp = Some(cx.now.saturating_duration_since(winner.since));
        self.phase = Phase::Session(Session {
            key,
            address: winner.address,
            channel: winner.channel,
            unauthenticated: true,
            lost: None,
            unanswered: None,
        });
        self.heard(cx);
        self.greeting.clear();
        self.reach(cx, Stage::Banner);
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
        race.failure = Some(outcome::connect_failed(loser.address, NoLink::Io(kind)));
        cx.shared.endpoints.leave(loser.address);
        self.heard(cx);
        self.next_address(cx);
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

impl<K: Copy + Eq + Hash> Race<K> {
    pub(super) fn release<L: Links<Key = K>>(self, cx: &mut Context<'_, L>, request: RequestId) {
        for runner in self.runners {
            runner.abort(cx);
        }
        if let Some(address) = self.waiting {
            cx.shared.endpoints.give_up(address, request);
        }
        if let Some((_, address)) = self.starting {
            cx.shared.endpoints.leave(address);
        }
    }
}

impl<K: Copy + Eq + Hash> Runner<K> {
    pub(super) fn abort<L: Links<Key = K>>(self, cx: &mut Context<'_, L>) {
        cx.shared.endpoints.leave(self.address);
        cx.shared.by_link.remove(&self.key);
        cx.links.abort(self.key);
    }
}
