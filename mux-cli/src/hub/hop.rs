//! Connections on which others ride: a jump host is connected to once, however many targets lie behind it, and each of
//! those is a channel on it (RFC 4254, section 7.2) with a link of its own inside. Decides when a jump host is connected
//! to and when it is left. It carries no byte: that is for whoever has the links.
//!
//! A job touches no other job: what one has to say to another is a [`Note`], passed on before anything else happens.

use std::collections::hash_map::Entry;
use std::hash::Hash;

use mux_ssh::client::{ChannelFailure, ChannelId, DirectTcpip};

use super::job::Job;
use super::{Failure, Hub, Links, Request, RequestId, Route, Stage, Status};

/// A jump host, connected to or not.
#[derive(Debug)]
pub(super) struct Hop {
    pub(super) request: Request,
    /// Requests that are not over, and other jump hosts with such, that go through it.
    users: usize,
    /// How far its connection has come.
    pub(super) stage: Stage,
    /// Its login is complete.
    pub(super) is_ready: bool,
    /// A person looks at its host key.
    pub(super) is_parked: bool,
    /// How its first connection failed: there will be no other in this run.
    pub(super) over: Option<(Status, Failure)>,
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
    pub(super) list: Vec<Rider>,
    /// What they were told last: whether the time that passes is the jump host's.
    pub(super) clock: bool,
}

#[derive(Debug)]
pub(super) struct Rider {
    pub(super) request: RequestId,
    pub(super) to: DirectTcpip,
    /// Asked for on the connection as it is now.
    pub(super) channel: Option<ChannelId>,
    /// Its channel is open, and a link of its own inside.
    pub(super) rides: bool,
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

impl Hop {
    /// By which way it is reached itself.
    pub(super) fn route(&self) -> &Route {
        &self.request.route
    }
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
            is_parked: false,
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
        if let Entry::Vacant(place) = self.jobs.entry(id) {
            hop.stage = Stage::Dns;
            hop.is_ready = false;
            hop.is_parked = false;
            let role = Role::Hop(Riders::default());
            place.insert(Job::new(hop.request.clone(), role, now));
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

impl Default for Role {
    fn default() -> Self {
        Self::Hop(Riders::default())
    }
}

impl Role {
    pub(super) fn into_riders(self) -> Vec<Rider> {
        match self {
            Self::Hop(riders) => riders.list,
            Self::Command => Vec::new(),
        }
    }
}
