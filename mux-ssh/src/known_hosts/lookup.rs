//! What is known about a host's key. Decides the verdict; never what follows from it.

use super::entry::{Entry, Marker};
use super::hashed::HashedName;
use super::{HostId, KnownHosts, Memo, Place, Salt};
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
        /// A `@cert-authority` line for the host, if there is one: the host might have shown a certificate.
        authority: Option<Place>,
    },
}

/// By which types of key a host is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyTypes {
    /// In the order of the files and without repetition.
    pub types: Vec<KeyType>,
    /// Nobody has looked whether the host is known at all: `types` is what is likely.
    pub assumed: bool,
    /// A `@cert-authority` line is about the host: a certificate may do.
    pub authority: bool,
}

/// A key by which a host is known instead of the one that it showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where it stands.
    pub place: Place,
    /// Its type, if this build knows it.
    pub key_type: Option<KeyType>,
    /// It stands there for a pattern of names: a program that removes it removes it for others too.
    pub by_pattern: bool,
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

    /// By which types of key `host` is known.
    ///
    /// To find all hashed lines of a host takes a hash for each line of the files; for thousands of hosts that is too
    /// much for an answer that saves a round trip. Where the memo knows none, and this run has looked for enough others,
    /// the type of most hashed lines is assumed.
    #[must_use]
    pub fn key_types(&self, memo: &mut Memo, host: &HostId) -> KeyTypes {
        let mut assumed = false;
        let is_authority = |entry: &&Entry| entry.marker == Marker::CertAuthority;
        let mut authority = host
            .names()
            .any(|name| self.unhashed(name).iter().any(is_authority));
        for name in host.names() {
            let mut entries = self.unhashed(name);
            match self.remembered(memo, name) {
                Some(hashed) => entries.extend(hashed),
                None if self.is_scan_cheap(memo, name) => entries.extend(self.scan(memo, name)),
                None => assumed = true,
            }
            authority |= entries.iter().any(is_authority);
            let types = types_of(&entries);
            if !types.is_empty() {
                return KeyTypes {
                    types,
                    assumed: false,
                    authority,
                };
            }
        }
        KeyTypes {
            types: self
                .hashed
                .most_common_type()
                .filter(|_| assumed)
                .into_iter()
                .collect(),
            assumed,
            authority,
        }
    }

    /// Whether a [`Memo`] is of any use.
    #[must_use]
    pub fn has_hashed_names(&self) -> bool {
        self.hashed.len() > 0
    }

    /// Adds a key that was just written to a file, so that this run knows it too.
    pub fn add(&mut self, host: &HostId, key: &PublicKey, place: Place) {
        let entry = Entry {
            place,
            marker: Marker::None,
            key_type: Some(key.key_type()),
            blob: key.blob().into(),
            is_plain: true,
            is_pattern: false,
        };
        let index = u32::try_from(self.entries.len()).expect("fewer than 4 G lines");
        self.literal
            .entry(host.name.clone().into_boxed_str())
            .or_default()
            .push(index);
        self.index_key(index, &entry);
        self.entries.push(entry);
    }

    /// Lines with the very key decide whether it is revoked or known, and they are few. Only a key that is neither is
    /// worth a hash for every other line.
    fn lookup_name(&self, memo: &mut Memo, name: &str, key: &PublicKey) -> Verdict {
        if let Some(verdict) = self.by_key_alone(memo, name, key) {
            return verdict;
        }
        let unhashed = self.unhashed(name);
        let hashed = self.scan(memo, name);
        let marked = |marker| {
            let entries = unhashed.iter().chain(&hashed);
            entries.filter(move |entry| entry.marker == marker)
        };
        let others: Vec<Mismatch> = marked(Marker::None).map(|entry| entry.mismatch()).collect();
        if others.is_empty() {
            let authority = marked(Marker::CertAuthority).next();
            return Verdict::Unknown {
                authority: authority.map(|entry| entry.place.clone()),
            };
        }
        Verdict::Changed(others)
    }

    /// What lines with this very key say.
    pub(super) fn by_key_alone(&self, memo: &mut Memo, name: &str, key: &PublicKey) -> Option<Verdict> {
        let unhashed = self.unhashed(name);
        let revokes = |entry: &&&Entry| entry.marker == Marker::Revoked && *entry.blob == *key.blob();
        let hashed = self.revoked_hashed(name, key);
        if let Some(entry) = unhashed.iter().chain(&hashed).find(revokes) {
            return Some(Verdict::Revoked(entry.place.clone()));
        }
        let vouching = unhashed.iter().copied().find(|entry| entry.vouches_for(key));
        let vouching = vouching.or_else(|| self.hashed_with_key(memo, name, key));
        vouching.map(|entry| Verdict::Known(entry.place.clone()))
    }

    /// Entries that name the host literally or by a pattern, in the order of the files.
    pub(super) fn unhashed(&self, name: &str) -> Vec<&Entry> {
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

    /// A hashed line by which the host is known by this very key.
    pub(super) fn hashed_with_key(&self, memo: &mut Memo, name: &str, key: &PublicKey) -> Option<&Entry> {
        let remembered = self.remembered(memo, name).unwrap_or_default();
        if let Some(entry) = remembered.into_iter().find(|entry| entry.vouches_for(key)) {
            return Some(entry);
        }
        if memo.is_absent(name, self.hashed.stamp()) {
            return None;
        }
        let (position, hashed, entry) = self
            .hashed
            .with_key(key.blob(), memo.last())
            .filter_map(|(position, hashed)| Some((position, hashed, self.entry(hashed.entry)?)))
            .find(|(_, hashed, entry)| entry.vouches_for(key) && hashed.is_of(name))?;
        memo.set_last(position);
        let near = self.hashed.near(position).iter();
        let others = near.filter(|near| near.is_of(name)).map(|near| near.salt);
        memo.remember(name, std::iter::once(hashed.salt).chain(others));
        Some(entry)
    }

    /// Hashed entries that the memo knows of, each verified; `None` if it knows none that still holds. There may be
    /// more.
    pub(super) fn remembered(&self, memo: &mut Memo, name: &str) -> Option<Vec<&Entry>> {
        let salts = memo.salts(name)?;
        let names = salts.iter().flat_map(|salt| self.hashed.with_salt(salt));
        let names = names.filter(|hashed| hashed.is_of(name));
        let found = self.entries_of(names.map(|hashed| hashed.entry));
        if found.is_empty() {
            memo.forget(name);
            return None;
        }
        Some(found)
    }

    /// Whether every hashed name may be tried for an answer that is not needed yet.
    fn is_scan_cheap(&self, memo: &mut Memo, name: &str) -> bool {
        memo.is_complete(name, self.hashed.stamp()) || memo.spend_ahead(self.hashed.len())
    }

    /// Tries every hashed name. 9,000 of them take about a millisecond.
    pub(super) fn scan(&self, memo: &mut Memo, name: &str) -> Vec<&Entry> {
        if memo.is_complete(name, self.hashed.stamp()) {
            let mut found = self.remembered(memo, name).unwrap_or_default();
            found.sort_unstable_by_key(|entry| entry.place.line);
            return found;
        }
        let names = self.hashed.all().iter();
        let found: Vec<&HashedName> = names.filter(|hashed| hashed.is_of(name)).collect();
        let salts: Vec<Salt> = found.iter().map(|hashed| hashed.salt).collect();
        memo.scanned(name, &salts, self.hashed.stamp());
        self.entries_of(found.into_iter().map(|hashed| hashed.entry))
    }

    /// Hashed `@revoked` lines with this key are few: they are tried each time, so that no memo can hide one.
    pub(super) fn revoked_hashed(&self, name: &str, key: &PublicKey) -> Vec<&Entry> {
        let lines = self.hashed.revoked().filter_map(|hashed| {
            let entry = self.entry(hashed.entry)?;
            (*entry.blob == *key.blob() && hashed.is_of(name)).then_some(entry)
        });
        lines.collect()
    }

    pub(super) fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(index).ok()?)
    }

    fn entries_of(&self, indices: impl IntoIterator<Item = u32>) -> Vec<&Entry> {
        indices
            .into_iter()
            .filter_map(|index| self.entry(index))
            .collect()
    }
}

/// In the order of the entries and without repetition.
fn types_of(entries: &[&Entry]) -> Vec<KeyType> {
    let mut types = Vec::new();
    for entry in entries.iter().filter(|entry| entry.marker == Marker::None) {
        types.extend(entry.key_type.filter(|key_type| !types.contains(key_type)));
    }
    types
}

impl Entry {
    pub(super) fn vouches_for(&self, key: &PublicKey) -> bool {
        self.marker == Marker::None && *self.blob == *key.blob()
    }

    fn mismatch(&self) -> Mismatch {
        Mismatch {
            place: self.place.clone(),
            key_type: self.key_type,
            by_pattern: self.is_pattern,
            fingerprint: fingerprint_sha256(&self.blob),
        }
    }
}
