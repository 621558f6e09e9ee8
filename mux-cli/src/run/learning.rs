//! `mux hosts learn`: which keys the hosts of a set have, without a login. Decides what is said about each; whether a key
//! is good is `expected`'s and the judge's to say, and `lessons` writes.

use std::collections::HashMap;
use std::path::PathBuf;

use mux_ssh::Printable;
use mux_ssh::algorithms::KeyType;
use mux_ssh::keys::PublicKey;

use super::expected::{Expected, Objection};
use super::hosts::MAX_FILE;
use super::known::Known;
use super::{report, select};
use crate::files;
use crate::hub::RequestId;
use crate::plan::Learn;
use crate::targets::Target;

/// What is being learned, and what was.
#[derive(Debug, Default)]
pub(crate) struct Learning {
    expected: Option<Expected>,
    /// What is said about keys, with those who have them.
    seen: HashMap<String, Vec<RequestId>>,
}

/// How a key came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It stood in a file.
    Known,
    /// It does now.
    Learned,
}

impl Learning {
    /// # Errors
    /// The file of expected keys can't be read or understood.
    pub(crate) fn new(learn: &Learn) -> Result<Self, String> {
        let read = |path: &PathBuf| {
            let (label, content) = match path.as_os_str() == "-" {
                true => (
                    "standard input".into(),
                    select::read_stdin(MAX_FILE, "name a file, as in --from FILE"),
                ),
                false => (
                    path.to_string_lossy(),
                    files::read_named(path, MAX_FILE).map_err(|error| error.to_string()),
                ),
            };
            let content = content.map_err(|error| format!("{}: {error}", Printable::new(&label)))?;
            Expected::parse(&label, &content)
        };
        Ok(Self {
            expected: learn.from.as_ref().map(read).transpose()?,
            seen: HashMap::new(),
        })
    }

    /// Why `key` is not to be written down as that of `host`.
    pub(crate) fn objection(&mut self, host: &Known, key: &PublicKey) -> Option<Objection> {
        self.expected.as_mut()?.objection(&host.names(), &host.host, key)
    }

    /// The types of key that the host is to be asked for first.
    pub(crate) fn key_types(&mut self, host: &Known) -> Vec<KeyType> {
        let expected = self.expected.as_mut();
        expected
            .map(|expected| expected.key_types(&host.names(), &host.host))
            .unwrap_or_default()
    }

    /// The key of this target is known now.
    pub(crate) fn found(&mut self, target: RequestId, key: &PublicKey, found: Found) {
        let how = match found {
            Found::Known => "known",
            Found::Learned => "learned",
        };
        let text = format!("{} {} {how}", key.algorithm(), key.fingerprint_sha256());
        self.seen.entry(text).or_default().push(target);
    }

    /// A line for each key, with the folded names of those who have it.
    pub(crate) fn lines(&mut self, hosts: &[Target]) -> Vec<String> {
        let mut seen: Vec<(String, Vec<RequestId>)> = std::mem::take(&mut self.seen).into_iter().collect();
        seen.iter_mut().for_each(|(_, targets)| targets.sort_unstable());
        seen.sort_unstable_by(|(one, its), (other, others)| (its.first(), one).cmp(&(others.first(), other)));
        seen.iter()
            .map(|(text, targets)| format!("{}: {text}", report::names(targets, hosts)))
            .collect()
    }
}

/// Why keys are not written down that nobody has looked at.
pub(crate) fn not_confirmed(keys: &[PublicKey]) -> String {
    format!(
        "host key not written ({}): no terminal to ask on; --from FILE says which keys are right, --yes takes them as \
         they are",
        list(keys)
    )
}

/// Keys as people compare them.
pub(crate) fn list(keys: &[PublicKey]) -> String {
    let keys = keys.iter();
    let keys: Vec<String> = keys
        .map(|key| format!("{} {}", key.algorithm(), key.fingerprint_sha256()))
        .collect();
    keys.join(", ")
}
