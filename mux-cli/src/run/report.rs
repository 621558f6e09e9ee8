//! What is said about a run while it is under way: what runs where, and what may still run. Words only.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::hub::{RequestId, Stage};
use crate::targets::{Target, fold};

/// What is under way, one line a stage: `command on web[01-04] (12s)`, with the longest time of each.
pub(super) fn running(
    now: Instant,
    running: &[(RequestId, Stage, Instant)],
    hosts: &[Target],
) -> Vec<String> {
    let mut stages: BTreeMap<Stage, (Vec<RequestId>, Duration)> = BTreeMap::new();
    for (request, stage, since) in running {
        let (requests, longest) = stages.entry(*stage).or_default();
        requests.push(*request);
        *longest = (*longest).max(now.saturating_duration_since(*since));
    }
    let lines = stages.into_iter().rev();
    lines
        .map(|(stage, (requests, longest))| {
            format!("{stage}: {} ({}s)", names(&requests, hosts), longest.as_secs())
        })
        .collect()
}

/// The folded names of some targets.
pub(super) fn names(requests: &[RequestId], hosts: &[Target]) -> String {
    fold(
        requests
            .iter()
            .filter_map(|request| hosts.get(usize::try_from(request.0).ok()?)),
    )
}
