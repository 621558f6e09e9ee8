//! What is known about a host's key. Decides the verdict; never what follows from it.

use super::entry::{Entry, Marker};
use super::hashed::{HashedName, Memo};
use super::{HostId, KnownHosts, Place};
use crate::algorithms::KeyType;
use crate::keys::{PublicKey, fingerprint_sha256};
use crate::pattern::{Case, ListMatch, matches_list};

/// What the files say about a key that a host has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the host's.
    Known(Place),
    /// The host is known, by other keys only.
    Changed(Vec<Mismatch>),
    /// It was declared void; this overrules everything else.
    Revoked(Place),
    /// Nothing is known about the host.
    Unknown {
        /// A `@cert-authority` line for the host, if there is one: it would decide if certificates were used.
        authority: Option<Place>,
    },
}

/// A key by which a host is known instead of the one that it showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where it stands.
    pub place: Place,
    /// The known key's fingerprint, as OpenSSH prints it.
    pub fingerprint: String,
}

impl KnownHosts {
    /// What is known about `key` as the key of `host`.
    #[must_use]
    pub fn lookup(&self, memo: &mut Memo, host: &HostId, key: &PublicKey) -> Verdict {
        let verdict = self.lookup_name(memo, &host.name, key);
        let (Verdict::Unknown { authority }, Some(plain)) = (&verdict, &host.without_port) else {
            return verdict;
        };
        // As OpenSSH: a line without a port vouches for (or revokes) a key on any port, but another key on another
        // port is no changed key.
        match self.lookup_name(memo, plain, key) {
            found @ (Verdict::Known(_) | Verdict::Revoked(_)) => found,
            Verdict::Unknown { authority: other } => Verdict::Unknown {
                authority: authority.clone().or(other),
            },
            Verdict::Changed(_) => verdict,
        }
    }

    /// The types of key by which `host` is known, in the order of the files and without repetition.
    #[must_use]
    pub fn key_types(&self, memo: &mut Memo, host: &HostId) -> Vec<KeyType> {
        let mut types = self.key_types_of(memo, &host.name);
        if let (true, Some(plain)) = (types.is_empty(), &host.without_port) {
            types = self.key_types_of(memo, plain);
        }
        types
    }

    /// Adds a key that was just written to a file, so that this run knows it too.
    pub fn add(&mut self, host: &HostId, key: &PublicKey, place: Place) {
        let entry = Entry {
            place,
            marker: Marker::None,
            key_type: Some(key.key_type()),
            blob: key.blob().into(),
        };
        let index = u32::try_from(self.entries.len()).expect("fewer than 4 G lines");
        self.literal
            .entry(host.name.clone().into_boxed_str())
            .or_default()
            .push(index);
        self.entries.push(entry);
    }

    fn lookup_name(&self, memo: &mut Memo, name: &str, key: &PublicKey) -> Verdict {
        let unhashed = self.unhashed(name);
        let hashed = self.remembered(memo, name);
        let known = |entries: &[&Entry]| entries.iter().any(|entry| entry.vouches_for(key));
        // The memo may be older than the files: what it does not know is not unknown. A revoked key is looked for
        // among all revoked lines in any case.
        let hashed = match hashed {
            Some(hashed) if known(&hashed) => hashed,
            _ if known(&unhashed) => Vec::new(),
            _ => self.scan(memo, name),
        };
        let revoked = self.revoked_hashed(name);
        let entries = || unhashed.iter().chain(&hashed).chain(&revoked).copied();
        self.judge(entries, key)
    }

    fn judge<'a, I: Iterator<Item = &'a Entry>>(&self, entries: impl Fn() -> I, key: &PublicKey) -> Verdict {
        let marked = |marker| entries().filter(move |entry| entry.marker == marker);
        if let Some(entry) = marked(Marker::Revoked).find(|entry| *entry.blob == *key.blob()) {
            return Verdict::Revoked(entry.place.clone());
        }
        if let Some(entry) = entries().find(|entry| entry.vouches_for(key)) {
            return Verdict::Known(entry.place.clone());
        }
        let mut others = marked(Marker::None).map(Entry::mismatch).peekable();
        if others.peek().is_some() {
            return Verdict::Changed(others.collect());
        }
        Verdict::Unknown {
            authority: marked(Marker::CertAuthority)
                .map(|entry| entry.place.clone())
                .next(),
        }
    }

    fn key_types_of(&self, memo: &mut Memo, name: &str) -> Vec<KeyType> {
        let hashed = self
            .remembered(memo, name)
            .unwrap_or_else(|| self.scan(memo, name));
        let mut entries: Vec<&Entry> = self.unhashed(name);
        entries.extend(hashed);
        let mut types = Vec::new();
        for entry in entries.into_iter().filter(|entry| entry.marker == Marker::None) {
            types.extend(entry.key_type.filter(|key_type| !types.contains(key_type)));
        }
        types
    }

    /// Entries that name the host literally or by a pattern, in the order of the files.
    fn unhashed(&self, name: &str) -> Vec<&Entry> {
        let mut found: Vec<u32> = self.literal.get(name).cloned().unwrap_or_default();
        let matching = self
            .patterns
            .iter()
            .filter(|(list, _)| matches_list(name.as_bytes(), list, Case::Insensitive) == ListMatch::Yes);
        found.extend(matching.map(|(_, index)| index));
        found.sort_unstable();
        // `a,a` names a host twice.
        found.dedup();
        self.entries_of(found)
    }

    /// Hashed entries that the memo knows of, each verified; `None` if it knows none that still holds.
    fn remembered(&self, memo: &mut Memo, name: &str) -> Option<Vec<&Entry>> {
        let salts = memo.salts(name)?;
        let positions = salts.iter().filter_map(|salt| self.by_salt.get(salt)).flatten();
        let names = positions.filter_map(|&position| self.hashed.get(usize::try_from(position).ok()?));
        let found = self.entries_of(
            names
                .filter(|hashed| hashed.is_of(name))
                .map(|hashed| hashed.entry),
        );
        if found.is_empty() {
            memo.forget(name);
            return None;
        }
        Some(found)
    }

    /// Tries every hashed name. 9,000 of them take about a millisecond.
    fn scan(&self, memo: &mut Memo, name: &str) -> Vec<&Entry> {
        if memo.is_absent(name, self.stamp) {
            return Vec::new();
        }
        let found: Vec<&HashedName> = self.hashed.iter().filter(|hashed| hashed.is_of(name)).collect();
        if found.is_empty() {
            memo.remember_absence(name, self.stamp);
        } else {
            memo.remember(name.to_owned(), found.iter().map(|hashed| hashed.salt).collect());
        }
        self.entries_of(found.into_iter().map(|hashed| hashed.entry))
    }

    /// Hashed `@revoked` lines are few: they are tried each time, so that no memo can hide one.
    fn revoked_hashed(&self, name: &str) -> Vec<&Entry> {
        let found = self
            .revoked
            .iter()
            .filter_map(|&position| self.hashed.get(usize::try_from(position).ok()?));
        self.entries_of(
            found
                .filter(|hashed| hashed.is_of(name))
                .map(|hashed| hashed.entry),
        )
    }

    fn entries_of(&self, indices: impl IntoIterator<Item = u32>) -> Vec<&Entry> {
        let entry = |index: u32| self.entries.get(usize::try_from(index).ok()?);
        indices.into_iter().filter_map(entry).collect()
    }
}

impl Entry {
    fn vouches_for(&self, key: &PublicKey) -> bool {
        self.marker == Marker::None && *self.blob == *key.blob()
    }

    fn mismatch(&self) -> Mismatch {
        Mismatch {
            place: self.place.clone(),
            fingerprint: fingerprint_sha256(&self.blob),
        }
    }
}
