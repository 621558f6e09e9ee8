//! Connections on which others ride: a jump host is connected to once, however many targets lie behind it, and each of
//! those is a channel on it (RFC 4254, section 7.2) with a link of its own inside. Decides when a jump host is connected
//! to, who rides on it, whose time it costs, and what its end means to them. It carries no byte: that is for whoever has
//! the links.
//!
//! A job touches no other job: what one has to say to another is a [`Note`], passed on before anything else happens.

use std::hash::Hash;

use mux_ssh::client::{ChannelFailure, ChannelId, DirectTcpip};

use super::countdown::Countdown;
use super::job::{Context, Job};
use super::pace::Door;
use super::phase::Phase;
use super::{Failure, Hub, Links, Request, RequestId, Route, Stage, Status, outcome};

/// A jump host, connected to or not.
#[derive(Debug)]
pub(super) struct Hop {
    request: Request,
    /// Requests that are not over, and other jump hosts with such, that go through it.
    users: usize,
    /// How far its connection has come.
    pub(super) stage: Stage,
    /// Its login is complete.
    pub(super) is_ready: bool,
    /// How its first connection failed: there will be no other in this run.
    over: Option<(Status, Failure)>,
}

/// What a job is for.
#[derive(Debug)]
pub(super) enum Role {
    /// A command.
    Command,
    /// Others, that ride on it.
    Hop(Riders),
}

/// Those that ride on a connection, or wait to.
#[derive(Debug, Default)]
pub(super) struct Riders {
    list: Vec<Rider>,
    /// What they were told last: whether the time that passes is the jump host's.
    clock: bool,
}

#[derive(Debug)]
struct Rider {
    request: RequestId,
    to: DirectTcpip,
    /// Asked for on the connection as it is now.
    channel: Option<ChannelId>,
    /// Its channel is open, and a link of its own inside.
    rides: bool,
}

/// What a job has to say to another.
#[derive(Debug)]
pub(super) enum Note<K> {
    /// To a jump host: this one wants to ride.
    Board(RequestId, DirectTcpip),
    /// To a jump host: this one no longer does.
    Leave(RequestId),
    /// To a jump host: this one is over.
    Done(RequestId),
    /// To a rider: whether the time that passes counts for it.
    Clock(bool),
    /// To a rider: its channel is open.
    Boarded { carrier: K, channel: ChannelId },
    /// To a rider: the jump host opens no channel for it.
    Refused(ChannelFailure),
    /// To one that waits: the jump host has failed, for good or not.
    HopFailed {
        status: Status,
        failure: Failure,
        is_final: bool,
    },
    /// To one that rides: why its connection is about to end.
    Lost(String),
}

impl<K: Copy + Eq + Hash> Hub<K> {
    /// Tells of a jump host that requests name as their [`Route::Jump`], before they are submitted. It is connected to
    /// when the first of them gets its turn, and left when the last is over. Its id is no other request's; no event
    /// bears it, but actions do.
    pub fn add_hop(&mut self, request: Request) {
        let id = request.id;
        let hop = Hop {
            request,
            users: 0,
            stage: Stage::Dns,
            is_ready: false,
            over: None,
        };
        self.shared.hops.insert(id, hop);
    }

    /// A request that goes this way is there, or another jump host with such.
    pub(super) fn use_route(&mut self, route: &Route) {
        let mut route = route.clone();
        while let Route::Jump(id) = route {
            let Some(hop) = self.shared.hops.get_mut(&id) else {
                return;
            };
            hop.users += 1;
            if hop.users > 1 {
                return;
            }
            route = hop.request.route.clone();
        }
    }

    /// Passes on what jobs have to say to each other.
    pub(super) fn pass_notes<L: Links<Key = K>>(&mut self, now: std::time::Instant, links: &mut L) {
        while let Some((to, note)) = self.shared.notes.pop_front() {
            match note {
                Note::Board(rider, target) => self.board(now, links, to, (rider, target)),
                Note::Leave(rider) => self.with_job(now, links, to, |job, cx| job.forget(cx, rider)),
                Note::Done(rider) => {
                    self.with_job(now, links, to, |job, cx| job.forget(cx, rider));
                    self.leave_hop(now, links, to);
                }
                Note::Clock(on) => self.with_job(now, links, to, |job, cx| job.clock(cx, on)),
                Note::Boarded { carrier, channel } => {
                    self.with_job(now, links, to, |job, cx| job.boarded(cx, carrier, channel));
                }
                Note::Refused(reason) => self.with_job(now, links, to, |job, cx| job.not_boarded(cx, reason)),
                Note::HopFailed {
                    status,
                    failure,
                    is_final,
                } => self.with_job(now, links, to, |job, cx| {
                    job.hop_failed(cx, status, failure, is_final);
                }),
                Note::Lost(why) => self.with_job(now, links, to, |job, _| job.carrier_lost = Some(why)),
            }
        }
    }

    fn board<L: Links<Key = K>>(
        &mut self,
        now: std::time::Instant,
        links: &mut L,
        id: RequestId,
        (rider, target): (RequestId, DirectTcpip),
    ) {
        let Some(hop) = self.shared.hops.get_mut(&id) else {
            return;
        };
        if let Some((status, failure)) = hop.over.clone() {
            return self.with_job(now, links, rider, |job, cx| {
                job.hop_failed(cx, status, failure, true);
            });
        }
        if !self.jobs.contains_key(&id) {
            hop.stage = Stage::Dns;
            hop.is_ready = false;
            let role = Role::Hop(Riders::default());
            self.jobs.insert(id, Job::new(hop.request.clone(), role, now));
            self.with_job(now, links, id, Job::begin);
        }
        self.with_job(now, links, id, |job, cx| job.take_along(cx, rider, target));
    }

    /// One less goes through a jump host: with the last, its connection ends.
    fn leave_hop<L: Links<Key = K>>(&mut self, now: std::time::Instant, links: &mut L, id: RequestId) {
        let Some(hop) = self.shared.hops.get_mut(&id) else {
            return;
        };
        hop.users = hop.users.saturating_sub(1);
        if hop.users > 0 {
            return;
        }
        if let Route::Jump(next) = hop.request.route {
            self.shared.notes.push_back((next, Note::Done(id)));
        }
        self.with_job(now, links, id, Job::retire);
    }
}

/// A job that is a jump host.
impl<K: Copy + Eq + Hash> Job<K> {
    pub(super) fn is_hop(&self) -> bool {
        matches!(self.role, Role::Hop(_))
    }

    fn riders(&mut self) -> &mut [Rider] {
        match &mut self.role {
            Role::Hop(riders) => &mut riders.list,
            Role::Command => &mut [],
        }
    }

    fn take_along<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, request: RequestId, to: DirectTcpip) {
        let Role::Hop(riders) = &mut self.role else {
            return;
        };
        cx.shared.notes.push_back((request, Note::Clock(riders.clock)));
        riders.list.push(Rider {
            request,
            to,
            channel: None,
            rides: false,
        });
        self.ask_for_channels(cx);
    }

    /// Asks for the channels of those that have none, as soon as there is a connection: the client knows when such a
    /// request may leave.
    pub(super) fn ask_for_channels<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let (Role::Hop(riders), Phase::Session(session)) = (&mut self.role, &self.phase) else {
            return;
        };
        let Some(client) = cx.links.client(session.key) else {
            return;
        };
        for rider in riders.list.iter_mut().filter(|rider| rider.channel.is_none()) {
            rider.channel = Some(client.direct_tcpip(cx.now, rider.to.clone()));
        }
    }

    /// The server has made the connection that a rider waits for.
    pub(super) fn channel_open<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, channel: ChannelId) {
        let Phase::Session(session) = &self.phase else {
            return;
        };
        let carrier = session.key;
        if let Some(rider) = self.rider_on(channel) {
            rider.rides = true;
            let note = Note::Boarded { carrier, channel };
            cx.shared.notes.push_back((rider.request, note));
        }
    }

    /// The server has not made it.
    pub(super) fn channel_refused<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        channel: ChannelId,
        reason: ChannelFailure,
    ) {
        if reason == ChannelFailure::ConnectionLost {
            // The end of the link follows and says why.
            return;
        }
        if let Some(rider) = self.rider_on(channel) {
            let request = rider.request;
            cx.shared.notes.push_back((request, Note::Refused(reason)));
            self.channel_over(channel);
        }
    }

    /// A channel is gone; what was inside knows.
    pub(super) fn channel_over(&mut self, channel: ChannelId) {
        if let Role::Hop(riders) = &mut self.role {
            riders.list.retain(|rider| rider.channel != Some(channel));
        }
    }

    fn rider_on(&mut self, channel: ChannelId) -> Option<&mut Rider> {
        self.riders()
            .iter_mut()
            .find(|rider| rider.channel == Some(channel))
    }

    /// A rider has left, or never got on.
    fn forget<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, request: RequestId) {
        let Role::Hop(riders) = &mut self.role else {
            return;
        };
        let mut channels = Vec::new();
        riders.list.retain(|rider| {
            let leaves = rider.request == request;
            // A link inside ends its channel by itself.
            channels.extend(rider.channel.filter(|_| leaves && !rider.rides));
            !leaves
        });
        self.with_client(cx, |client| {
            channels.into_iter().for_each(|channel| client.close_channel(channel));
        });
    }

    /// Tells those that wait whether the time that passes is theirs: not while this host asks a person, logs in, or
    /// waits for something of ours.
    pub(super) fn tell_clock<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let runs = matches!(self.connect, Countdown::Running(_));
        let is_ready = cx
            .shared
            .hops
            .get(&self.request.id)
            .is_some_and(|hop| hop.is_ready);
        let Role::Hop(riders) = &mut self.role else {
            return;
        };
        let clock = runs || is_ready;
        if std::mem::replace(&mut riders.clock, clock) != clock {
            let waiting = riders.list.iter().filter(|rider| !rider.rides);
            let notes = waiting.map(|rider| (rider.request, Note::Clock(clock)));
            cx.shared.notes.extend(notes);
        }
    }

    /// The login is complete: channels are opened from now on.
    pub(super) fn hop_ready<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.login.stop(cx.now);
        if let Some(hop) = cx.shared.hops.get_mut(&self.request.id) {
            hop.is_ready = true;
        }
    }

    /// The connection is gone or is about to be: whoever waits, waits for the next one.
    pub(super) fn disembark<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Some(hop) = cx.shared.hops.get_mut(&self.request.id) {
            hop.is_ready = false;
        }
        for rider in self.riders().iter_mut().filter(|rider| !rider.rides) {
            rider.channel = None;
        }
    }

    /// A jump host has come to its end by itself: what that means to its riders.
    pub(super) fn strand<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        failure: Failure,
        was_ready: bool,
    ) {
        let name = self.request.host.clone();
        let failure = failure.at_hop(&name);
        let lost = failure.words();
        for rider in std::mem::take(&mut self.role).into_riders() {
            let note = match rider.rides {
                true => Note::Lost(lost.clone()),
                false => Note::HopFailed {
                    status,
                    failure: failure.clone(),
                    is_final: !was_ready,
                },
            };
            cx.shared.notes.push_back((rider.request, note));
        }
        if let Some(hop) = cx.shared.hops.get_mut(&self.request.id)
            && !was_ready
        {
            hop.over = Some((status, failure));
        }
    }

    /// Nobody needs this jump host any more.
    fn retire<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.release(cx);
        self.ask(cx, super::Action::SigningOver);
    }
}

/// A job that rides.
impl<K: Copy + Eq + Hash> Job<K> {
    /// Asks the jump host for a channel.
    pub(super) fn ask_for_ride<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, door: Door) {
        let (Phase::Connecting(race), Route::Jump(hop)) = (&mut self.phase, &self.request.route) else {
            return;
        };
        race.boarding = Some((door, cx.now));
        let to = DirectTcpip {
            host: self.request.address.clone(),
            port: self.request.port,
        };
        let note = Note::Board(self.request.id, to);
        cx.shared.notes.push_back((*hop, note));
    }

    fn clock<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, on: bool) {
        if matches!(&self.phase, Phase::Connecting(race) if race.boarding.is_some()) {
            match on {
                true => self.connect.start(cx.now),
                false => self.connect.stop(cx.now),
            }
        }
    }

    /// The channel is open: the connection begins.
    fn boarded<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, carrier: K, channel: ChannelId) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let Some((door, since)) = race.boarding.take() else {
            return;
        };
        let (client, command) = self.client(cx);
        self.tries += 1;
        match cx.links.ride(carrier, channel, client) {
            Ok(key) => {
                cx.shared.by_link.insert(key, self.request.id);
                self.connect.start(cx.now);
                self.establish(cx, key, door, command, since);
            }
            Err(why) => {
                cx.shared.endpoints.leave(door);
                let failure = Failure::new(Stage::Tcp, why.to_string());
                self.fail_or_retry(cx, Status::Unreachable, failure);
            }
        }
    }

    fn not_boarded<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, reason: ChannelFailure) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let Some((door, _)) = race.boarding.take() else {
            return;
        };
        cx.shared.endpoints.leave(door);
        self.tries += 1;
        let failure = outcome::not_forwarded(&self.request, &self.carrier(cx), reason);
        self.fail_or_retry(cx, Status::Unreachable, failure);
    }

    fn hop_failed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        failure: Failure,
        is_final: bool,
    ) {
        if !matches!(&self.phase, Phase::Connecting(race) if race.boarding.is_some()) {
            return;
        }
        match is_final {
            // The jump host has had its retries.
            true => self.finish(cx, status, Some(failure)),
            false => self.fail_or_retry(cx, status, failure),
        }
    }

    /// The name of the jump host right before this one.
    fn carrier<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> String {
        let hop = match self.request.route {
            Route::Jump(hop) => cx.shared.hops.get(&hop),
            Route::Direct | Route::Command(_) => None,
        };
        hop.map(|hop| hop.request.host.clone()).unwrap_or_default()
    }

    /// What it means that time is over while the jump host has not come as far as to open channels.
    pub(super) fn late_hop<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> Option<Failure> {
        let (Phase::Connecting(race), Route::Jump(hop)) = (&self.phase, self.request.route.clone()) else {
            return None;
        };
        let mut hop = cx.shared.hops.get(&hop).filter(|_| race.boarding.is_some())?;
        if hop.is_ready {
            return None;
        }
        // It may be waiting for another one itself.
        while hop.stage == Stage::Tcp
            && let Route::Jump(next) = hop.request.route
            && let Some(next) = cx.shared.hops.get(&next).filter(|next| !next.is_ready)
        {
            hop = next;
        }
        let failure = outcome::hop_too_late(hop.stage, self.request.connect_timeout);
        Some(failure.at_hop(&hop.request.host))
    }
}

impl Default for Role {
    fn default() -> Self {
        Self::Hop(Riders::default())
    }
}

impl Role {
    fn into_riders(self) -> Vec<Rider> {
        match self {
            Self::Hop(riders) => riders.list,
            Self::Command => Vec::new(),
        }
    }
}
