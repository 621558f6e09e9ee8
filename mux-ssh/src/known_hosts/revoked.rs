//! `RevokedHostKeys`: keys that no host may show, whatever known_hosts says. Decides whether a list can be read and what
//! it names; a list that can't be read all through is an error, because what it would have revoked is unknown.

use std::collections::HashSet;
use std::fmt;

use super::entry;

/// What a key revocation list of OpenSSH (PROTOCOL.krl) begins with.
const KRL_MAGIC: &[u8] = b"SSHKRL\n\0";

/// The keys of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevokedKeys(HashSet<Box<[u8]>>);

/// Why a list can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableList {
    /// A binary key revocation list.
    Krl,
    /// A line, counted from 1, that is no public key.
    Line(u32),
}

impl RevokedKeys {
    /// Reads a file with one public key a line.
    ///
    /// # Errors
    /// It is something else.
    pub fn parse(content: &[u8]) -> Result<Self, UnreadableList> {
        if content.starts_with(KRL_MAGIC) {
            return Err(UnreadableList::Krl);
        }
        let mut keys = HashSet::new();
        for (line, number) in content.split(|&byte| byte == b'\n').zip(1..) {
            let line = line.trim_ascii();
            if !line.is_empty() && !line.starts_with(b"#") {
                keys.insert(blob(line).ok_or(UnreadableList::Line(number))?);
            }
        }
        Ok(Self(keys))
    }

    /// Whether a key, or the authority of a certificate, is named.
    #[must_use]
    pub fn names(&self, blob: &[u8]) -> bool {
        self.0.contains(blob)
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
            Self::Krl => {
                f.write_str("a binary key revocation list is not supported; a list of public keys is")
            }
            Self::Line(line) => write!(f, "line {line} is no public key"),
        }
    }
}

impl std::error::Error for UnreadableList {}
