//! Key revocation lists in OpenSSH's binary form (PROTOCOL.krl). Decides what a list names; never what follows from it. A
//! part that this build does not know is an error, because what it would have revoked is unknown.

use std::collections::HashSet;

use aws_lc_rs::digest;

use crate::error::Violation;
use crate::keys::Certificate;
use crate::wire::Reader;

/// What a list begins with.
pub(super) const MAGIC: &[u8] = b"SSHKRL\n\0";

/// The only version that there is.
const FORMAT: u32 = 1;

/// Why a list can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KrlError {
    /// It is of another version than 1.
    Version(u32),
    /// It has a part of this kind, which this build does not know.
    Section(u8),
    /// It has an extension that is critical; OpenSSH knows none either.
    Extension,
    /// A range of serial numbers ends before it begins.
    Range,
    /// It is cut short, or has more in a part than belongs there.
    Malformed(Violation),
}

impl From<Violation> for KrlError {
    fn from(violation: Violation) -> Self {
        Self::Malformed(violation)
    }
}

/// By what a list names a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// Its serial number.
    Serial,
    /// What the authority calls it.
    KeyId,
}

/// What a list names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Krl {
    keys: HashSet<Box<[u8]>>,
    /// SHA-1 and SHA-256 of keys; which of them is told by their length.
    hashes: HashSet<Box<[u8]>>,
    certificates: Vec<Certificates>,
}

/// Certificates of one authority, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Certificates {
    /// Empty: all.
    authority: Box<[u8]>,
    serials: HashSet<u64>,
    ranges: Vec<(u64, u64)>,
    bitmaps: Vec<Bitmap>,
    key_ids: HashSet<String>,
}

/// Serial numbers from the first on, a bit each. Kept as it stands in the file: written out, one of a few megabytes would
/// take hundreds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bitmap {
    first: u64,
    /// As a number, of which the lowest bit stands for the first.
    bits: Box<[u8]>,
}

impl Krl {
    /// Reads a whole file.
    pub(super) fn parse(content: &[u8]) -> Result<Self, KrlError> {
        let mut reader = Reader::new(content);
        let _magic = reader.bytes(MAGIC.len())?;
        let format = reader.uint32()?;
        if format != FORMAT {
            return Err(KrlError::Version(format));
        }
        let (_version, _date, _flags) = (reader.uint64()?, reader.uint64()?, reader.uint64()?);
        let (_reserved, _comment) = (reader.string()?, reader.string()?);
        let mut krl = Self::default();
        while !reader.is_empty() {
            let kind = reader.byte()?;
            let mut section = Reader::new(reader.string()?);
            match kind {
                1 => krl.certificates.push(Certificates::parse(&mut section)?),
                2 => krl.keys.extend(strings(&mut section, None)?),
                3 => krl.hashes.extend(strings(&mut section, Some(20))?),
                5 => krl.hashes.extend(strings(&mut section, Some(32))?),
                // A signature, behind the key that made it: the file is as trusted as any other of the user's.
                4 => {
                    let _signature = reader.string()?;
                    continue;
                }
                255 => extension(&mut section)?,
                other => return Err(KrlError::Section(other)),
            }
            section.finish()?;
        }
        Ok(krl)
    }

    pub(super) fn names_key(&self, blob: &[u8]) -> bool {
        let is_named = |algorithm| {
            let hash = digest::digest(algorithm, blob);
            self.hashes.contains(hash.as_ref())
        };
        self.keys.contains(blob)
            || !self.hashes.is_empty()
                && (is_named(&digest::SHA256) || is_named(&digest::SHA1_FOR_LEGACY_USE_ONLY))
    }

    pub(super) fn names_certificate(&self, certificate: &Certificate) -> Option<NamedBy> {
        let authority = certificate.authority().blob();
        let of_authority = |list: &&Certificates| list.authority.is_empty() || *list.authority == *authority;
        let mut lists = self.certificates.iter().filter(of_authority);
        lists.find_map(|list| list.names(certificate.serial(), certificate.key_id()))
    }
}

impl Certificates {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, KrlError> {
        let mut list = Self {
            authority: reader.string()?.into(),
            ..Self::default()
        };
        let _reserved = reader.string()?;
        while !reader.is_empty() {
            let kind = reader.byte()?;
            let mut section = Reader::new(reader.string()?);
            match kind {
                0x20 => {
                    while !section.is_empty() {
                        list.serials.insert(section.uint64()?);
                    }
                }
                0x21 => {
                    let range = (section.uint64()?, section.uint64()?);
                    if range.1 < range.0 {
                        return Err(KrlError::Range);
                    }
                    list.ranges.push(range);
                }
                0x22 => list.bitmaps.push(Bitmap {
                    first: section.uint64()?,
                    bits: section.mpint()?.into(),
                }),
                0x23 => {
                    let ids = strings(&mut section, None)?;
                    list.key_ids.extend(ids.iter().map(|id| lossy(id)));
                }
                0x39 => extension(&mut section)?,
                other => return Err(KrlError::Section(other)),
            }
            section.finish()?;
        }
        Ok(list)
    }

    /// Serial number 0 stands for certificates that were given none, and names nothing.
    fn names(&self, serial: u64, key_id: &str) -> Option<NamedBy> {
        if self.key_ids.contains(key_id) {
            return Some(NamedBy::KeyId);
        }
        let is_named = self.serials.contains(&serial)
            || self
                .ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&serial))
            || self.bitmaps.iter().any(|bitmap| bitmap.has(serial));
        (serial != 0 && is_named).then_some(NamedBy::Serial)
    }
}

impl Bitmap {
    fn has(&self, serial: u64) -> bool {
        let place = serial.checked_sub(self.first);
        let byte = place.and_then(|place| usize::try_from(place / 8).ok());
        let byte = byte.and_then(|byte| self.bits.iter().rev().nth(byte));
        byte.zip(place)
            .is_some_and(|(byte, place)| byte >> (place % 8) & 1 == 1)
    }
}

/// All strings of a section, of this length if they have one.
fn strings(section: &mut Reader<'_>, length: Option<usize>) -> Result<Vec<Box<[u8]>>, KrlError> {
    let mut strings = Vec::new();
    while !section.is_empty() {
        let string = section.string()?;
        if length.is_some_and(|length| length != string.len()) {
            return Err(KrlError::Malformed(Violation::Truncated));
        }
        strings.push(string.into());
    }
    Ok(strings)
}

fn extension(section: &mut Reader<'_>) -> Result<(), KrlError> {
    let _name = section.string()?;
    let is_critical = section.boolean()?;
    let _contents = section.string()?;
    if is_critical {
        Err(KrlError::Extension)
    } else {
        Ok(())
    }
}

/// As the name that a certificate has.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use bytes::BytesMut;

    use super::*;
    use crate::wire::Writer;

    /// A list with one section of this kind.
    fn list(version: u32, kind: u8, section: &[u8]) -> BytesMut {
        let mut list = BytesMut::from(MAGIC);
        let mut writer = Writer::new(&mut list);
        writer.uint32(version).uint64(7).uint64(0).uint64(0);
        writer.string("").string("a comment").byte(kind).string(section);
        list
    }

    fn check(version: u32, kind: u8, section: &[u8], expected: Result<(), KrlError>) {
        let parsed = Krl::parse(&list(version, kind, section));
        assert_eq!(parsed.map(|_| ()), expected, "{kind} {section:?}");
    }

    fn certificates(kind: u8, section: &[u8]) -> BytesMut {
        let mut body = BytesMut::new();
        let mut writer = Writer::new(&mut body);
        writer.string("").string("").byte(kind).string(section);
        body
    }

    #[test]
    fn a_part_that_is_not_known_or_not_whole_makes_a_list_unreadable() {
        check(1, 2, b"", Ok(()));
        check(2, 2, b"", Err(KrlError::Version(2)));
        check(1, 6, b"", Err(KrlError::Section(6)));
        check(1, 1, &certificates(0x24, b""), Err(KrlError::Section(0x24)));
        let cut = Err(KrlError::Malformed(Violation::Truncated));
        check(1, 2, b"\0\0\0\x02x", cut);
        check(1, 3, b"\0\0\0\x02xx", cut);
        check(1, 1, &certificates(0x20, b"\0\0\0\0\0\0\0"), cut);
        check(1, 1, &certificates(0x22, b"\0\0\0\0\0\0\0\0\0\0\0\x01\x80"), {
            Err(KrlError::Malformed(Violation::NegativeMpint))
        });
        let mut range = BytesMut::new();
        Writer::new(&mut range).uint64(8).uint64(7);
        check(1, 1, &certificates(0x21, &range), Err(KrlError::Range));
        let extension = |critical| {
            let mut extension = BytesMut::new();
            Writer::new(&mut extension)
                .string("x@y")
                .boolean(critical)
                .string("");
            extension
        };
        check(1, 255, &extension(false), Ok(()));
        check(1, 255, &extension(true), Err(KrlError::Extension));
        check(1, 1, &certificates(0x39, &extension(false)), Ok(()));
        check(
            1,
            1,
            &certificates(0x39, &extension(true)),
            Err(KrlError::Extension),
        );
        let whole = list(1, 2, b"\0\0\0\x01x");
        for length in MAGIC.len()..whole.len() {
            // Without any section it is a list of nothing.
            let parsed = Krl::parse(whole.get(..length).unwrap());
            assert_eq!(parsed.is_ok(), length == whole.len() - 10, "{length}");
        }
    }

    #[test]
    fn serial_numbers_are_found_in_every_form_and_zero_never() {
        let list = Certificates {
            serials: [0, 3].into(),
            ranges: vec![(0, 1), (u64::MAX - 1, u64::MAX)],
            bitmaps: vec![Bitmap {
                first: 100,
                bits: [0b1, 0b1000_0010].into(),
            }],
            ..Certificates::default()
        };
        let named = (0..1000).filter(|serial| list.names(*serial, "").is_some());
        assert_eq!(named.collect::<Vec<_>>(), [1, 3, 101, 107, 108]);
        assert_eq!(list.names(u64::MAX, ""), Some(NamedBy::Serial));
        assert_eq!(list.names(u64::MAX - 2, ""), None);
    }
}
