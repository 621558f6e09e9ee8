//! Variables that servers did not take: gathered over the run and said once, with the hosts folded. A fleet of one
//! configuration refuses the same everywhere, and nobody wants to read that a thousand times.

use std::collections::{BTreeMap, HashSet};

use super::Output;
use crate::hub::RequestId;

/// Variables by name, and the hosts that refused each.
#[derive(Debug, Default)]
pub(super) struct Refused(BTreeMap<String, HashSet<usize>>);

impl Refused {
    pub(super) fn add(&mut self, request: RequestId, name: String) {
        self.0.entry(name).or_default().insert(super::index(request));
    }
}

impl Output {
    /// One line for all variables that the same hosts refused.
    pub(super) fn say_refused(&mut self) {
        let mut by_hosts: BTreeMap<Vec<usize>, (HashSet<usize>, Vec<String>)> = BTreeMap::new();
        for (name, hosts) in std::mem::take(&mut self.refused).0 {
            let mut order: Vec<usize> = hosts.iter().copied().collect();
            order.sort_unstable();
            by_hosts.entry(order).or_insert((hosts, Vec::new())).1.push(name);
        }
        for (hosts, names) in by_hosts.into_values() {
            let (hosts, names) = (self.names(&hosts), names.join(", "));
            self.complain(&format!(
                "{hosts}: {names} not set: the server does not take it; see AcceptEnv in its sshd_config"
            ));
        }
    }
}
