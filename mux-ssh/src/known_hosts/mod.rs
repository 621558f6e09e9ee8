//! known_hosts: which key a host is known by.
//!
//! Decides whether the key that a host shows is the known one, a changed one, a revoked one or new, and what a new
//! line looks like. Never reads or writes a file, and never decides what to do about a verdict.
//!
//! ```
//! use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Verdict};
//! use mux_ssh::keys::PublicKey;
//!
//! let line = "web1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti\n";
//! let hosts = KnownHosts::parse([("known_hosts", line.as_bytes())]);
//! let key = PublicKey::parse_line(line.split_once(' ').unwrap().1).unwrap().key;
//! let verdict = hosts.lookup(&mut Memo::default(), &HostId::new("web1", 22), &key);
//! assert!(matches!(verdict, Verdict::Known(at) if at.line == 1));
//! ```

mod authority;
mod entry;
mod format;
mod further;
mod hashed;
mod krl;
mod lookup;
mod memo;
mod parse;
mod remove;
mod revoked;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::printable::Printable;

pub use authority::Authority;
pub use format::format_entry;
pub use further::{Further, Gone};
pub use hashed::Salt;
pub use krl::{KrlError, NamedBy};
pub use lookup::{KeyTypes, Mismatch, Verdict};
pub use memo::Memo;
pub use parse::{BadLine, MAX_BAD_LINES, Warning};
pub use remove::without_key;
pub use revoked::{RevokedKeys, UnreadableList};

use entry::Entry;
use hashed::{HashedNames, KeyTail};

/// Which line of which file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// Counted from 1; 0: it was just added.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Printable::new(&self.file);
        match self.line {
            0 => file.fmt(f),
            line => write!(f, "{file}:{line}"),
        }
    }
}

/// The name under which a host's key is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostId {
    name: String,
    /// Also looked at when `name` is unknown: lines without a port hold for every port.
    without_port: Option<String>,
}

impl HostId {
    /// A host by its name or address and port.
    #[must_use]
    pub fn new(host: &str, port: u16) -> Self {
        let host = host.to_ascii_lowercase();
        if port == 22 {
            return Self {
                name: host,
                without_port: None,
            };
        }
        Self {
            name: format!("[{host}]:{port}"),
            without_port: Some(host),
        }
    }

    /// A `HostKeyAlias`, which stands for itself whatever the port.
    #[must_use]
    pub fn alias(alias: &str) -> Self {
        Self {
            name: alias.to_ascii_lowercase(),
            without_port: None,
        }
    }

    /// What a certificate has to name: the name without the port.
    #[must_use]
    pub fn principal(&self) -> &str {
        self.without_port.as_deref().unwrap_or(&self.name)
    }

    /// As it stands in known_hosts.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All names under which keys of the host may be found.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.name.as_str()).chain(self.without_port.as_deref())
    }
}

/// The lines of all known_hosts files, indexed.
#[derive(Debug, Default)]
pub struct KnownHosts {
    entries: Vec<Entry>,
    /// By name in lower case: lines whose list of names has it literally.
    literal: HashMap<Box<str>, Vec<u32>>,
    /// Lines with wildcards or negation, with their lists.
    patterns: Vec<(Box<[u8]>, u32)>,
    hashed: HashedNames,
    /// Unhashed lines by the end of their key, once somebody has asked for it.
    by_key: Option<HashMap<KeyTail, Vec<u32>>>,
    warnings: Vec<Warning>,
    bad_lines: usize,
}
