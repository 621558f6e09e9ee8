//! An ordered set of targets and its algebra. The order is that of first mention: users read output in the order in
//! which they think of their hosts.

use std::collections::{HashMap, HashSet};

use super::{MAX_TARGETS, Target};

/// Targets without duplicates, in order of first mention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetSet {
    targets: Vec<Target>,
    seen: HashSet<Target>,
}

impl TargetSet {
    /// The targets in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Target] {
        &self.targets
    }

    /// The targets in order, owned.
    #[must_use]
    pub fn into_vec(self) -> Vec<Target> {
        self.targets
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Adds one, unless it is there already.
    pub(super) fn insert(&mut self, target: Target) {
        if self.seen.insert(target.clone()) {
            self.targets.push(target);
        }
    }

    /// Whether it is larger than a run may be.
    pub(super) fn is_too_large(&self) -> bool {
        self.targets.len() > MAX_TARGETS
    }

    /// `self , other`.
    pub(super) fn union(mut self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        other.targets.into_iter().for_each(|target| self.insert(target));
        self
    }

    /// `self ! other`: without those that `other` covers (see [`Target::covers`]).
    pub(super) fn minus(self, other: &Self) -> Self {
        let cover = Cover::of(other);
        self.targets
            .into_iter()
            .filter(|target| !cover.covers(target))
            .collect()
    }

    /// `self & other`: only those that `other` covers.
    pub(super) fn and(self, other: &Self) -> Self {
        let cover = Cover::of(other);
        self.targets
            .into_iter()
            .filter(|target| cover.covers(target))
            .collect()
    }

    /// `self ^ other`: those that only one side names.
    pub(super) fn xor(self, other: Self) -> Self {
        let rest = other.clone().minus(&self);
        self.minus(&other).union(rest)
    }
}

impl FromIterator<Target> for TargetSet {
    fn from_iter<I: IntoIterator<Item = Target>>(targets: I) -> Self {
        let mut set = Self::default();
        targets.into_iter().for_each(|target| set.insert(target));
        set
    }
}

/// What a set covers, found by host: a scan for each target would be quadratic in fleets.
#[derive(Debug)]
pub(super) struct Cover<'a>(HashMap<&'a str, Vec<&'a Target>>);

impl<'a> Cover<'a> {
    pub(super) fn of(set: &'a TargetSet) -> Self {
        let mut by_host: HashMap<&str, Vec<&Target>> = HashMap::new();
        for target in &set.targets {
            by_host.entry(&target.host).or_default().push(target);
        }
        Self(by_host)
    }

    pub(super) fn covers(&self, target: &Target) -> bool {
        self.0
            .get(target.host.as_str())
            .is_some_and(|known| known.iter().any(|pattern| pattern.covers(target)))
    }
}
