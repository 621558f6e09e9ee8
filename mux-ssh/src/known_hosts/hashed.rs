//! Hashed names, `|1|salt|hash`. Decides how a name is hashed, and which of thousands of lines need not be hashed for;
//! the hash is HMAC-SHA1, fixed by OpenSSH.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use aws_lc_rs::hmac;
use base64ct::{Base64, Encoding};

use super::entry::{Entry, Marker};
use crate::algorithms::KeyType;

/// OpenSSH uses salts as long as its hash.
pub(super) const SALT_LENGTH: usize = 20;

/// How far from each other the keys of one host stand: servers have three or four, and scans of several hosts at once
/// mix them a little.
const NEIGHBOURS: usize = 8;

/// What a name is hashed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Salt(pub [u8; SALT_LENGTH]);

impl Salt {
    /// From the form in which it stands in known_hosts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        decode(text).map(Self)
    }
}

impl fmt::Display for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(&self.0))
    }
}

/// A hashed name and the entry that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct HashedName {
    pub(super) salt: Salt,
    pub(super) hash: [u8; SALT_LENGTH],
    pub(super) entry: u32,
}

impl HashedName {
    /// Reads `|1|salt|hash`.
    pub(super) fn parse(text: &[u8], entry: u32) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?.strip_prefix("|1|")?;
        let (salt, hash) = text.split_once('|')?;
        Some(Self {
            salt: Salt::parse(salt)?,
            hash: decode(hash)?,
            entry,
        })
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        hash(&self.salt, name) == self.hash
    }
}

/// The end of a key's blob: random bytes, whatever the type, so that different keys hardly ever share it.
pub(super) type KeyTail = [u8; 8];

pub(super) fn tail(blob: &[u8]) -> KeyTail {
    blob.last_chunk().copied().unwrap_or_default()
}

/// The hashed names of all files, in their order. A position is a place in that order.
#[derive(Debug, Default)]
pub(super) struct HashedNames {
    names: Arc<Vec<HashedName>>,
    by_salt: HashMap<Salt, Vec<u32>>,
    /// Of lines without a marker.
    by_key: HashMap<KeyTail, Vec<u32>>,
    /// Of `@revoked` lines.
    revoked: Vec<u32>,
    /// How many lines without a marker have a key of this type.
    types: HashMap<KeyType, usize>,
    /// Tells one set of hashed names from another.
    stamp: u64,
}

impl HashedNames {
    pub(super) fn push(&mut self, name: HashedName, entry: &Entry) {
        let position = u32::try_from(self.names.len()).expect("fewer than 4 G lines");
        match entry.marker {
            Marker::None => {
                self.by_key.entry(tail(&entry.blob)).or_default().push(position);
                if let Some(key_type) = entry.key_type {
                    *self.types.entry(key_type).or_default() += 1;
                }
            }
            Marker::Revoked => self.revoked.push(position),
            Marker::CertAuthority => {}
        }
        self.by_salt.entry(name.salt).or_default().push(position);
        let mut stamp = DefaultHasher::new();
        (self.stamp, name.salt, name.hash).hash(&mut stamp);
        self.stamp = stamp.finish();
        // Nobody else has them while a file is read.
        Arc::make_mut(&mut self.names).push(name);
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    pub(super) fn all(&self) -> &[HashedName] {
        &self.names
    }

    /// As [`all`](Self::all), for somebody who keeps them.
    pub(super) fn shared(&self) -> Arc<Vec<HashedName>> {
        Arc::clone(&self.names)
    }

    /// The type of most keys; of several, the one that is preferred.
    pub(super) fn most_common_type(&self) -> Option<KeyType> {
        let count = |key_type: &&KeyType| self.types.get(key_type).copied();
        let present = KeyType::ALL
            .iter()
            .rev()
            .filter(|key_type| count(key_type).is_some());
        present.max_by_key(count).copied()
    }

    pub(super) fn with_salt(&self, salt: &Salt) -> impl Iterator<Item = &HashedName> {
        let positions = self.by_salt.get(salt).map_or(&[][..], Vec::as_slice);
        self.at(positions).map(|(_, name)| name)
    }

    pub(super) fn revoked(&self) -> impl Iterator<Item = &HashedName> {
        self.at(&self.revoked).map(|(_, name)| name)
    }

    /// Names on lines whose key may be this one, with their positions: first those behind `last`, then the others.
    /// Hosts are mostly asked for in the order in which they were learned, so that where all have one key the line of
    /// the next host follows that of the last.
    pub(super) fn with_key(&self, blob: &[u8], last: u32) -> impl Iterator<Item = (u32, &HashedName)> {
        let positions = self.by_key.get(&tail(blob)).map_or(&[][..], Vec::as_slice);
        let (before, behind) = positions.split_at(positions.partition_point(|position| *position <= last));
        self.at(behind).chain(self.at(before))
    }

    /// The names around a position. Whatever writes down a host's keys writes them one after the other.
    pub(super) fn near(&self, position: u32) -> &[HashedName] {
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        let first = position.saturating_sub(NEIGHBOURS).min(self.names.len());
        let end = position.saturating_add(NEIGHBOURS + 1).min(self.names.len());
        self.names.get(first..end).unwrap_or_default()
    }

    fn at<'a>(&'a self, positions: &'a [u32]) -> impl Iterator<Item = (u32, &'a HashedName)> {
        let name = |&position: &u32| Some((position, self.names.get(usize::try_from(position).ok()?)?));
        positions.iter().filter_map(name)
    }
}

/// Hashed with one salt, as it stands in a file.
pub(super) fn format(salt: &Salt, name: &str) -> String {
    format!(
        "|1|{}|{}",
        Base64::encode_string(&salt.0),
        Base64::encode_string(&hash(salt, name))
    )
}

fn hash(salt: &Salt, name: &str) -> [u8; SALT_LENGTH] {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt.0);
    let tag = hmac::sign(&key, name.as_bytes());
    tag.as_ref().try_into().expect("HMAC-SHA1 has 20 bytes")
}

fn decode(text: &str) -> Option<[u8; SALT_LENGTH]> {
    let mut bytes = [0; SALT_LENGTH];
    let decoded = Base64::decode(text, &mut bytes).ok()?;
    (decoded.len() == SALT_LENGTH).then_some(bytes)
}
