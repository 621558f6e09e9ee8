//! Hashed names, `|1|salt|hash`. Decides how a name is hashed and how a scan over thousands of salts is avoided the
//! second time; the hash is HMAC-SHA1, fixed by OpenSSH.

use std::collections::HashMap;

use aws_lc_rs::hmac;
use base64ct::{Base64, Encoding};

/// OpenSSH uses salts as long as its hash.
pub(super) const SALT_LENGTH: usize = 20;

/// What a name is hashed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Salt(pub [u8; SALT_LENGTH]);

/// A hashed name and the entry that it belongs to.
#[derive(Debug)]
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
            salt: Salt(decode(salt)?),
            hash: decode(hash)?,
            entry,
        })
    }

    pub(super) fn is_of(&self, name: &str) -> bool {
        hash(&self.salt, name) == self.hash
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

/// Which salts belong to which name: found once by trying every line, then checked with one hash each.
///
/// A hint, never a proof: each use is verified, and a name whose salts lead nowhere is scanned for again. It can
/// therefore be kept across runs and outlive the files that it was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memo {
    salts: HashMap<String, Vec<Salt>>,
    /// Names that a scan did not find, with the stamp of the hashed names that were scanned.
    absent: HashMap<String, u64>,
}

impl Memo {
    /// Remembers the salts of a name, from an earlier run.
    pub fn remember(&mut self, name: String, salts: Vec<Salt>) {
        self.salts.insert(name, salts);
    }

    /// All names that were found and their salts, to be kept.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Salt])> {
        self.salts
            .iter()
            .map(|(name, salts)| (name.as_str(), salts.as_slice()))
    }

    pub(super) fn salts(&self, name: &str) -> Option<&[Salt]> {
        self.salts.get(name).map(Vec::as_slice)
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.salts.remove(name);
    }

    pub(super) fn is_absent(&self, name: &str, stamp: u64) -> bool {
        self.absent.get(name) == Some(&stamp)
    }

    pub(super) fn remember_absence(&mut self, name: &str, stamp: u64) {
        self.absent.insert(name.to_owned(), stamp);
    }
}
