//! Time that is nobody's fault: while this process stood still, and while something of ours was lacking for the next
//! link. Decides by how much deadlines move for it; knows neither clock nor limits.

use std::hash::Hash;
use std::time::{Duration, Instant};

use super::job::Job;
use super::shared::{Context, Shared};
use super::{Hub, Links, NoLink};

/// After a standstill every host has at least this long to say what it has to: what it said meanwhile may need further
/// turns and round trips.
const AFTER_STANDSTILL: Duration = Duration::from_secs(1);

/// How long nothing is started after something of ours was lacking: connections end about this often in a run that is
/// large enough to have none left.
const SHORTAGE: Duration = Duration::from_millis(20);

impl<K: Copy + Eq + Hash> Hub<K> {
    /// The loop came round so much later than it was due: it had been stopped (SIGSTOP, a debugger, a machine without
    /// time for it). Deadlines measure the hosts, so that they move by it. To be called before what was heard since is
    /// handed in.
    pub fn stood_still<L: Links<Key = K>>(&mut self, now: Instant, links: &mut L, late: Duration) {
        let running: Vec<_> = self.jobs.keys().copied().collect();
        for request in running {
            self.with_job(now, links, request, |job, cx| job.stood_still(cx, late));
        }
    }
}

impl<K: Copy + Eq + Hash> Job<K> {
    fn stood_still<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, late: Duration) {
        let least = cx.now + AFTER_STANDSTILL;
        let moved = |at: Instant| (at + late).max(least);
        self.connect.postpone(moved);
        self.login.postpone(moved);
        self.command_deadline = self.command_deadline.map(moved);
        if let Some(killing) = &mut self.killing {
            killing.next_at = moved(killing.next_at);
        }
        // Nobody falls silent for what nobody could hear.
        self.last_heard = (self.last_heard + late).min(cx.now);
    }

    /// No link could be started for want of something of ours.
    pub(super) fn lacks<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, what: NoLink) {
        let (what, at) = *cx.shared.short.insert((what, cx.now + SHORTAGE));
        self.lacking = Some((what, at));
    }
}

impl<K> Shared<K> {
    /// What was lacking just now, and until when nothing is started for that.
    pub(super) fn short(&self, now: Instant) -> Option<(NoLink, Instant)> {
        self.short.filter(|(_, until)| *until > now)
    }
}
