//! Reads known_hosts files. Decides which lines can be used; a line that cannot is skipped and said, because one bad
//! line must not lock a user out of every host.

use std::fmt;
use std::sync::Arc;

use super::entry::{Entry, Marker, key};
use super::hashed::HashedName;
use super::{KnownHosts, Place};

/// Bad lines that are described; a file of nothing else is counted, not quoted.
pub const MAX_BAD_LINES: usize = 100;

/// A line that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Which.
    pub place: Place,
    /// Why.
    pub why: BadLine,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; line skipped", self.place, self.why)
    }
}

/// Why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadLine {
    /// Names, type and key are not all there.
    MissingField,
    /// A marker that is none of `@revoked` and `@cert-authority`.
    Marker,
    /// A hashed name that cannot be read.
    HashedName,
    /// A key of SSH 1.
    Protocol1,
    /// The key is not base64, or cut short.
    Base64,
    /// The key's bytes are no key.
    KeyBlob,
    /// The key is of another type than the line says.
    KeyType,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingField => "names, type and key expected",
            Self::Marker => "unknown marker",
            Self::HashedName => "malformed hashed name",
            Self::Protocol1 => "key of SSH protocol 1",
            Self::Base64 => "key is not valid base64",
            Self::KeyBlob => "malformed key",
            Self::KeyType => "key is of another type than the line says",
        })
    }
}

impl KnownHosts {
    /// Reads files in the order in which they are searched; each with the name to call it by.
    pub fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut hosts = Self::default();
        for (name, content) in files {
            let name: Arc<str> = Arc::from(name);
            for (text, line) in content.split(|&byte| byte == b'\n').zip(1..) {
                let place = || Place {
                    file: name.clone(),
                    line,
                };
                if let Err(why) = hosts.line(text.trim_ascii(), place) {
                    hosts.bad_lines += 1;
                    if hosts.warnings.len() < MAX_BAD_LINES {
                        hosts.warnings.push(Warning { place: place(), why });
                    }
                }
            }
        }
        hosts
    }

    /// The lines that were skipped, at most [`MAX_BAD_LINES`] of them.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// How many lines were skipped.
    #[must_use]
    pub fn bad_lines(&self) -> usize {
        self.bad_lines
    }

    fn line(&mut self, line: &[u8], place: impl Fn() -> Place) -> Result<(), BadLine> {
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        let mut fields = line
            .split(|&byte| byte == b' ' || byte == b'\t')
            .filter(|field| !field.is_empty());
        let mut next = || fields.next().ok_or(BadLine::MissingField);
        let first = next()?;
        let (marker, names) = match first.strip_prefix(b"@") {
            None => (Marker::None, first),
            Some(b"revoked") => (Marker::Revoked, next()?),
            Some(b"cert-authority") => (Marker::CertAuthority, next()?),
            Some(_) => return Err(BadLine::Marker),
        };
        let (type_name, base64) = (next()?, next()?);
        if type_name.iter().all(u8::is_ascii_digit) {
            return Err(BadLine::Protocol1);
        }
        let (key_type, blob) = key(type_name, base64)?;
        self.add_entry(
            names,
            Entry {
                place: place(),
                marker,
                key_type,
                blob,
                is_plain: false,
                is_pattern: false,
            },
        )
    }

    /// Indexes an entry under its names.
    pub(super) fn add_entry(&mut self, names: &[u8], mut entry: Entry) -> Result<(), BadLine> {
        let index = u32::try_from(self.entries.len()).expect("fewer than 4 G lines");
        entry.is_pattern = names.iter().any(|byte| b"*?!".contains(byte));
        entry.is_plain = !names.iter().any(|byte| b"*?!,".contains(byte));
        if names.starts_with(b"|") {
            let hashed = HashedName::parse(names, index).ok_or(BadLine::HashedName)?;
            self.hashed.push(hashed, &entry);
        } else if entry.is_pattern {
            self.patterns.push((names.into(), index));
        } else {
            // A name that is not UTF-8 is no host's.
            let names = names
                .split(|&byte| byte == b',')
                .filter_map(|name| std::str::from_utf8(name).ok());
            for name in names {
                let name = name.to_ascii_lowercase().into_boxed_str();
                self.literal.entry(name).or_default().push(index);
            }
        }
        self.entries.push(entry);
        Ok(())
    }
}
