//! Hosts that were reached through the system's `ssh`, and why: gathered over the run and said in the summary, with the
//! hosts folded.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;

use super::Output;
use super::write::Destination;
use crate::hub::RequestId;
use crate::words;

/// The reason of each host.
#[derive(Debug, Default)]
pub(super) struct Via(BTreeMap<usize, String>);

impl Via {
    pub(super) fn add(&mut self, request: RequestId, reason: String) {
        self.0.insert(super::index(request), reason);
    }

    pub(super) fn of(&self, request: RequestId) -> Option<&str> {
        self.0.get(&super::index(request)).map(String::as_str)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

impl Output {
    /// A line for each reason.
    pub(super) fn say_via(&mut self) {
        let mut by_reason: BTreeMap<&str, HashSet<usize>> = BTreeMap::new();
        for (host, reason) in &self.via.0 {
            by_reason.entry(reason).or_default().insert(*host);
        }
        let lines = by_reason.into_iter().map(|(reason, hosts)| {
            let (names, reason) = (self.names(&hosts), words::printable(reason));
            format!("via-openssh={} ({reason}): {names}\n", hosts.len())
        });
        let lines: String = lines.collect();
        self.queue
            .push_bytes(&Destination::Stderr, Bytes::from(lines), None);
    }
}
