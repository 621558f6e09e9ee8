//! `RevokedHostKeys`: keys that no host may show, whatever known_hosts says. Decides whether a list can be read and what
//! it names; a list that can't be read all through is an error, because what it would have revoked is unknown.

use std::collections::HashSet;
use std::fmt;

use super::entry;
use super::krl::{self, Krl, KrlError, NamedBy};
use crate::keys::Certificate;

/// What one file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedKeys(List);

#[derive(Clone, Debug, PartialEq, Eq)]
enum List {
    /// One key a line.
    Keys(HashSet<Box<[u8]>>),
    Krl(Krl),
}

/// Why a list can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableList {
    /// A binary key revocation list, and what is wrong with it.
    Krl(KrlError),
    /// A line, counted from 1, that is no public key.
    Line(u32),
}

impl RevokedKeys {
    /// Reads a file with one public key a line, or a key revocation list as `ssh-keygen -k` makes it.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(content: &[u8]) -> Result<Self, UnreadableList> {
        if content.starts_with(krl::MAGIC) {
            let krl = Krl::parse(content).map_err(UnreadableList::Krl)?;
            return Ok(Self(List::Krl(krl)));
        }
        let mut keys = HashSet::new();
        for (line, number) in content.split(|&byte| byte == b'\n').zip(1..) {
            let line = line.trim_ascii();
            if !line.is_empty() && !line.starts_with(b"#") {
                keys.insert(blob(line).ok_or(UnreadableList::Line(number))?);
            }
        }
        Ok(Self(List::Keys(keys)))
    }

    /// Whether a key, or the authority of a certificate, is named.
    #[must_use]
    pub fn names(&self, blob: &[u8]) -> bool {
        match &self.0 {
            List::Keys(keys) => keys.contains(blob),
            List::Krl(krl) => krl.names_key(blob),
        }
    }

    /// By what a certificate is named, besides its key and its authority, which are to be asked about by themselves.
    #[must_use]
    pub fn names_certificate(&self, certificate: &Certificate) -> Option<NamedBy> {
        match &self.0 {
            List::Keys(_) => None,
            List::Krl(krl) => krl.names_certificate(certificate),
        }
    }
}

/// The key of a line: its type and its base64, behind whatever options.
fn blob(line: &[u8]) -> Option<Box<[u8]>> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .peekable();
    while let Some(name) = fields.next() {
        if let Some(base64) = fields.peek()
            && let Ok((_, blob)) = entry::key(name, base64)
        {
            return Some(blob);
        }
    }
    None
}

impl fmt::Display for UnreadableList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Krl(KrlError::Version(version)) => {
                write!(f, "key revocation list of format {version}, not 1")
            }
            Self::Krl(KrlError::Section(kind)) => {
                write!(f, "key revocation list with a section of the unknown kind {kind}")
            }
            Self::Krl(KrlError::Extension) => f.write_str("key revocation list with a critical extension"),
            Self::Krl(KrlError::Range) => {
                f.write_str("key revocation list with a range of serial numbers that ends before it begins")
            }
            Self::Krl(KrlError::Malformed(_)) => f.write_str(
                "key revocation list that is cut short or damaged; ssh-keygen -Q -l -f shows what is in one",
            ),
            Self::Line(line) => write!(f, "line {line} is no public key"),
        }
    }
}

impl std::error::Error for UnreadableList {}
