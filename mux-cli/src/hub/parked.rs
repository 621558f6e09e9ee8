//! Requests whose host key a person looks at. That may take longer than any server waits for a login, and there may be
//! thousands of them: they hold no connection, no place and no part of the fanout meanwhile, and no deadline runs. Decides
//! nothing about the key.

use std::collections::VecDeque;
use std::hash::Hash;

use super::countdown::Countdown;
use super::job::Job;
use super::pace::Door;
use super::phase::{Phase, Session};
use super::shared::{Context, Shared};
use super::{Hub, Judgement, Links, RequestId, Route, Stage};

/// A request that waits for a judgement.
#[derive(Debug)]
pub(super) struct Parked {
    door: Door,
}

/// How many wait, and who goes on.
#[derive(Debug, Default)]
pub(super) struct Parking {
    waiting: usize,
    /// Judged well: they connect again as soon as there is room.
    returning: VecDeque<RequestId>,
}

impl Parking {
    /// Whether somebody waits for a judgement, and nobody for room to go on.
    pub(super) fn waits(&self) -> bool {
        self.waiting > 0 && self.returning.is_empty()
    }

    /// Somebody waits for room to go on.
    pub(super) fn has_returning(&self) -> bool {
        !self.returning.is_empty()
    }

    /// The next one that goes on.
    pub(super) fn next(&mut self) -> Option<RequestId> {
        let next = self.returning.pop_front()?;
        self.waiting -= 1;
        Some(next)
    }

    /// One that waited has ended.
    pub(super) fn end(&mut self, request: RequestId) {
        self.waiting -= 1;
        self.returning.retain(|returning| *returning != request);
    }
}

impl<K: Copy + Eq + Hash> Hub<K> {
    /// Nothing goes on before somebody has judged the host keys that were asked about; false if none was.
    #[must_use]
    pub fn waits_for_judgements(&self) -> bool {
        let nobody_starts = self.queue.is_empty() || !self.shared.fanout.has_room();
        let mut jobs = self.jobs.values();
        nobody_starts && self.shared.parking.waits() && jobs.all(|job| job.waits_for_judgement(&self.shared))
    }
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// Lets the connection go until there is another judgement.
    pub(super) fn park<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Session(Session { door, .. }) = self.phase else {
            return;
        };
        self.close_stdin(cx);
        self.release(cx);
        self.connect = Countdown::Stopped(self.request.connect_timeout);
        match cx.shared.hops.get_mut(&self.request.id) {
            Some(hop) => hop.is_parked = true,
            None => cx.shared.fanout.leave(std::mem::take(&mut self.silent)),
        }
        cx.shared.parking.waiting += 1;
        self.phase = Phase::Parked(Parked { door });
    }

    /// The judgement on which a parked request waited.
    pub(super) fn judged_parked<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, judgement: Judgement) {
        match judgement {
            Judgement::Accept | Judgement::Distrust => self.return_to(cx),
            Judgement::AskForOthers(types) => {
                self.prepared.known_host_key_types = types;
                self.return_to(cx);
            }
            Judgement::Later => {}
            Judgement::Enough | Judgement::Refuse(_) => self.judged_finally(cx, judgement),
        }
    }

    /// Goes on as soon as there is room; a jump host takes none, and those that have it wait for it.
    pub(super) fn return_to<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        match cx.shared.hops.get_mut(&self.request.id) {
            Some(hop) => {
                hop.is_parked = false;
                cx.shared.parking.waiting -= 1;
                self.come_back(cx);
            }
            None => cx.shared.parking.returning.push_back(self.request.id),
        }
    }

    /// Whether nothing happens to this job before a host key is judged: its own, or that of a jump host before it.
    pub(super) fn waits_for_judgement(&self, shared: &Shared<K>) -> bool {
        let mut route = match &self.phase {
            Phase::Parked(_) => return true,
            Phase::Connecting(race) if race.boarding.is_some() => &self.request.route,
            // Those that ride on a jump host, or wait to, speak for themselves.
            Phase::Session(_) => return shared.hops.get(&self.request.id).is_some_and(|hop| hop.is_ready),
            Phase::Connecting(_) | Phase::Preparing | Phase::Resolving => return false,
            Phase::Local(_) | Phase::Pausing(_) | Phase::Over => return false,
        };
        while let Route::Jump(id) = route {
            let Some(hop) = shared.hops.get(id) else {
                return false;
            };
            if hop.is_parked {
                return true;
            }
            if hop.is_ready || hop.stage != Stage::Tcp {
                return false;
            }
            route = hop.route();
        }
        false
    }

    /// There is room: connects again. The key is known by now, and is judged once more.
    pub(super) fn come_back<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Parked(Parked { door }) = self.phase else {
            return;
        };
        self.attempt += 1;
        self.timings.kex = None;
        self.heard(cx);
        self.race(cx, VecDeque::from([door]));
    }
}
