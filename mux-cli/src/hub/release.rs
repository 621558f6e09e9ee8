//! What a job gives back when it leaves a phase: links, places at endpoints, and a goodbye for those who are still
//! there. Decides nothing about why.

use std::hash::Hash;

use super::job::{Context, Job, Phase, Race, Runner, Session};
use super::{Links, RequestId};

/// `SSH_DISCONNECT_BY_APPLICATION` (RFC 4253, section 11.1).
const BY_APPLICATION: u32 = 11;

impl<K: Copy + Eq + Hash> Job<K> {
    /// Gives back links and places, and leaves the phase.
    pub(super) fn release<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Connecting(race) => race.release(cx, self.request.id),
            Phase::Session(session) => session.release(cx),
            Phase::Local(key) => {
                cx.shared.by_link.remove(&key);
            }
            Phase::Preparing | Phase::Resolving | Phase::Over => {}
        }
    }
}

impl<K: Copy + Eq + Hash> Race<K> {
    fn release<L: Links<Key = K>>(self, cx: &mut Context<'_, L>, request: RequestId) {
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

impl<K: Copy + Eq + Hash> Session<K> {
    /// Says goodbye if there still is somebody to say it to.
    fn release<L: Links<Key = K>>(self, cx: &mut Context<'_, L>) {
        if self.unauthenticated {
            cx.shared.endpoints.leave(self.address);
        }
        if cx.shared.by_link.remove(&self.key).is_some()
            && let Some(client) = cx.links.client(self.key)
        {
            client.disconnect(BY_APPLICATION, "");
        }
    }
}
