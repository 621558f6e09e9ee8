//! What was found out about hashed names. Decides what is kept and how much may be spent on finding out more; a hint,
//! never a proof: each use is verified, and a name whose salts lead nowhere is looked for again. It can therefore be
//! kept across runs and outlive the files that it was made from.

use std::collections::HashMap;

use super::{Salt, Scanned};

/// Hashes that a run may spend on looking for lines before anybody has asked for a verdict: a hundredth of a second.
/// A dozen hosts against nine thousand lines are within it, three thousand would take seconds.
pub(super) const MAX_AHEAD: usize = 100_000;

/// More salts of one name are not kept: a host has a handful of keys, one a line.
const MAX_SALTS: usize = 16;

/// Which salts belong to which name: found once, then checked with one hash each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memo {
    salts: HashMap<String, Vec<Salt>>,
    /// Names of which a scan has found all salts, or none, with the stamp of the hashed names that were scanned.
    complete: HashMap<String, u64>,
    /// The position of the line that was found last.
    last: u32,
    /// Hashes spent of [`MAX_AHEAD`].
    ahead: usize,
}

impl Memo {
    /// Remembers salts of a name, from an earlier run.
    pub fn remember(&mut self, name: &str, salts: impl IntoIterator<Item = Salt>) {
        let known = self.salts.entry(name.to_owned()).or_default();
        for salt in salts {
            if known.len() < MAX_SALTS && !known.contains(&salt) {
                known.push(salt);
            }
        }
    }

    /// All names that were found and their salts, to be kept.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Salt])> {
        self.salts
            .iter()
            .map(|(name, salts)| (name.as_str(), salts.as_slice()))
    }

    /// The salts of a name, as far as they are known.
    #[must_use]
    pub fn salts(&self, name: &str) -> Option<&[Salt]> {
        self.salts.get(name).map(Vec::as_slice)
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.salts.remove(name);
    }

    /// Everything is known about a name, as far as hashed names with this stamp go.
    pub(super) fn is_complete(&self, name: &str, stamp: u64) -> bool {
        self.complete.get(name) == Some(&stamp)
    }

    /// It is known that there is nothing.
    pub(super) fn is_absent(&self, name: &str, stamp: u64) -> bool {
        self.is_complete(name, stamp) && self.salts(name).is_none()
    }

    /// A scan of all hashed names with this stamp has found these salts.
    pub(super) fn scanned(&mut self, name: &str, salts: &[Salt], stamp: u64) {
        // What was remembered besides leads nowhere in these files.
        self.salts.remove(name);
        if !salts.is_empty() {
            self.remember(name, salts.iter().copied());
        }
        // Of a name with more lines than that, some are forgotten: it is looked for again.
        if salts.len() <= MAX_SALTS {
            self.complete.insert(name.to_owned(), stamp);
        }
    }

    /// What a search has found that somebody else has done.
    pub fn take(&mut self, scanned: &Scanned) {
        for (name, salts) in &scanned.salts {
            self.scanned(name, salts, scanned.stamp);
        }
    }

    pub(super) fn last(&self) -> u32 {
        self.last
    }

    pub(super) fn set_last(&mut self, position: u32) {
        self.last = position;
    }

    /// Whether so many hashes may be spent ahead of a verdict; if so, they are.
    pub(super) fn spend_ahead(&mut self, hashes: usize) -> bool {
        let spent = self.ahead.saturating_add(hashes);
        let may = spent <= MAX_AHEAD;
        if may {
            self.ahead = spent;
        }
        may
    }
}
