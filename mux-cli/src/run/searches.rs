//! Hosts for which known_hosts has to be searched line by line, because their names are hashed and nothing is known of them:
//! a thread of the pool does it, for all that have come up meanwhile, so that the loop does not stand still. Decides
//! nothing about a key.

use std::time::Instant;

use mux_ssh::known_hosts::{KnownHosts, Scan, Scanned};

use super::host_keys::ShownKey;
use super::limits;
use super::outside::Outside;
use super::task::Task;
use crate::hub::Answer;

/// A search for a host that waits for it.
#[derive(Debug)]
pub(crate) struct Search {
    shown: ShownKey,
    /// What a command has said.
    told: Option<KnownHosts>,
    scan: Scan,
}

/// Searches that are done one after the other: of more at once nobody would have more.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    waiting: Vec<Search>,
    is_searching: bool,
}

/// Does all of these. Takes a millisecond or so for each.
pub(crate) fn run(searches: Vec<Search>) -> Vec<(Search, Scanned)> {
    let run = |search: Search| {
        let scanned = search.scan.run();
        (search, scanned)
    };
    searches.into_iter().map(run).collect()
}

impl Outside {
    /// Has known_hosts searched for a host that has shown this key.
    pub(super) fn search(&mut self, now: Instant, shown: ShownKey, told: Option<KnownHosts>, scan: Scan) {
        // From here on the host waits for us.
        self.answer(shown.ticket, Answer::Asking(true));
        self.searches.waiting.push(Search { shown, told, scan });
        self.search_next(now);
    }

    /// A search is over: those who waited for it are judged.
    pub(super) fn searched(&mut self, now: Instant, found: Vec<(Search, Scanned)>) {
        self.searches.is_searching = false;
        for (search, scanned) in found {
            let Search { shown, told, .. } = search;
            if let Some(known) = self.targets.get(&shown.ticket.request) {
                self.hosts.take(&known.profile, &scanned);
            }
            self.answer(shown.ticket, Answer::Asking(false));
            self.judge_with(now, shown, told, true);
        }
        self.search_next(now);
    }

    fn search_next(&mut self, now: Instant) {
        if self.searches.is_searching || self.searches.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.searches.waiting);
        let asked = waiting
            .iter()
            .map(|search| (search.shown.ticket, search.shown.question));
        let asked: Vec<_> = asked.collect();
        match self.pool.submit(now, Task::Search(waiting)) {
            Ok(()) => self.searches.is_searching = true,
            Err(error) => {
                for (ticket, question) in asked {
                    self.answer(ticket, Answer::Asking(false));
                    let reason = limits::missing("start a thread", &error);
                    self.refuse(
                        ticket,
                        question,
                        format!("known_hosts can't be searched: {reason}"),
                    );
                }
            }
        }
    }
}
