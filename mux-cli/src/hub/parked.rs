//! Requests whose host key a person looks at. That may take longer than any server waits for a login, and there may be
//! thousands of them: they hold no connection, no place and no part of the fanout meanwhile, and no deadline runs. Decides
//! nothing about the key.

use std::collections::VecDeque;
use std::hash::Hash;
use std::net::SocketAddr;

use super::countdown::Countdown;
use super::job::{Context, Job};
use super::phase::{Phase, Session};
use super::{Judgement, Links, RequestId};

/// A request that waits for a judgement.
#[derive(Debug)]
pub(super) struct Parked {
    address: SocketAddr,
}

/// How many wait, and who goes on.
#[derive(Debug, Default)]
pub(super) struct Parking {
    waiting: usize,
    /// Judged well: they connect again as soon as there is room.
    returning: VecDeque<RequestId>,
}

impl Parking {
    /// Whether this many requests are all that wait for a judgement.
    pub(super) fn is_all(&self, jobs: usize) -> bool {
        self.waiting == jobs && self.returning.is_empty()
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

impl<K: Copy + Eq + Hash> Job<K> {
    /// Lets the connection go until there is another judgement.
    pub(super) fn park<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Session(Session { address, .. }) = self.phase else {
            return;
        };
        self.close_stdin(cx);
        self.release(cx);
        self.connect = Countdown::Stopped(self.request.connect_timeout);
        cx.shared.fanout.leave(std::mem::take(&mut self.silent));
        cx.shared.parking.waiting += 1;
        self.phase = Phase::Parked(Parked { address });
    }

    /// The judgement on which a parked request waited.
    pub(super) fn judged_parked<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, judgement: Judgement) {
        match judgement {
            Judgement::Accept | Judgement::Distrust => cx.shared.parking.returning.push_back(self.request.id),
            Judgement::AskForOthers(types) => {
                self.prepared.known_host_key_types = types;
                cx.shared.parking.returning.push_back(self.request.id);
            }
            Judgement::Later => {}
            Judgement::Enough | Judgement::Refuse(_) => self.judged_finally(cx, judgement),
        }
    }

    /// There is room: connects again. The key is known by now, and is judged once more.
    pub(super) fn come_back<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Parked(Parked { address }) = self.phase else {
            return;
        };
        self.attempt += 1;
        self.timings.kex = None;
        self.heard(cx);
        self.race(cx, VecDeque::from([address]));
    }
}
