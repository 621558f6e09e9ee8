//! The few forms of DER (X.690) that keys are written in. Decides where a field ends; never what it means. Nothing is
//! allocated: every field is a piece of the input.

use super::file_error::KeyFileError;

/// INTEGER.
const INTEGER: u8 = 0x02;
/// OCTET STRING.
const OCTETS: u8 = 0x04;
/// NULL.
const NULL: u8 = 0x05;
/// OBJECT IDENTIFIER.
const OBJECT: u8 = 0x06;
/// SEQUENCE.
const SEQUENCE: u8 = 0x30;
/// A field that its context gives a meaning, with fields inside.
const CONTEXT: u8 = 0xa0;

/// Bytes of an object identifier in an error message: those in use have a dozen.
const MAX_SHOWN: usize = 32;

/// Fields, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The only field of `bytes`, which is a SEQUENCE.
    pub(super) fn document(bytes: &'a [u8]) -> Result<Self, KeyFileError> {
        let mut outer = Self(bytes);
        let inner = outer.sequence()?;
        outer.finish()?;
        Ok(inner)
    }

    /// The fields of a SEQUENCE.
    pub(super) fn sequence(&mut self) -> Result<Self, KeyFileError> {
        self.field(SEQUENCE).map(Self)
    }

    pub(super) fn octets(&mut self) -> Result<&'a [u8], KeyFileError> {
        self.field(OCTETS)
    }

    /// The bytes of an OBJECT IDENTIFIER, as they stand.
    pub(super) fn object(&mut self) -> Result<&'a [u8], KeyFileError> {
        self.field(OBJECT)
    }

    /// A number that is not negative, without leading zeros.
    pub(super) fn number(&mut self) -> Result<&'a [u8], KeyFileError> {
        let bytes = self.field(INTEGER)?;
        match bytes {
            [] | [0x80..=0xff, ..] => Err(KeyFileError::Malformed),
            [0, rest @ ..] => Ok(rest),
            all => Ok(all),
        }
    }

    /// A number of at most 32 bits.
    pub(super) fn small(&mut self) -> Result<u32, KeyFileError> {
        let number = self.number()?;
        let mut bytes = [0; 4];
        let unused = bytes.len().checked_sub(number.len());
        let place = unused.and_then(|unused| bytes.get_mut(unused..));
        place.ok_or(KeyFileError::Malformed)?.copy_from_slice(number);
        Ok(u32::from_be_bytes(bytes))
    }

    /// The fields within an EXPLICIT tag of the field's own kind.
    pub(super) fn tagged(&mut self, number: u8) -> Result<Self, KeyFileError> {
        self.field(CONTEXT | number).map(Self)
    }

    /// A number, if the next field is one.
    pub(super) fn optional_small(&mut self) -> Result<Option<u32>, KeyFileError> {
        if self.0.first() == Some(&INTEGER) {
            self.small().map(Some)
        } else {
            Ok(None)
        }
    }

    /// A SEQUENCE, if there is a next field.
    pub(super) fn optional_sequence(&mut self) -> Result<Option<Self>, KeyFileError> {
        if self.0.is_empty() {
            Ok(None)
        } else {
            self.sequence().map(Some)
        }
    }

    /// NULL, or nothing: parameters that an algorithm does not have are written either way.
    pub(super) fn no_parameters(mut self) -> Result<(), KeyFileError> {
        if self.0.first() == Some(&NULL) && !self.field(NULL)?.is_empty() {
            return Err(KeyFileError::Malformed);
        }
        self.finish()
    }

    pub(super) fn finish(self) -> Result<(), KeyFileError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(KeyFileError::Malformed)
        }
    }

    /// The contents of the next field, which has this tag.
    fn field(&mut self, tag: u8) -> Result<&'a [u8], KeyFileError> {
        let (&found, rest) = self.0.split_first().ok_or(KeyFileError::Malformed)?;
        let (length, rest) = length(rest).ok_or(KeyFileError::Malformed)?;
        let (contents, rest) = rest.split_at_checked(length).ok_or(KeyFileError::Malformed)?;
        if found != tag {
            return Err(KeyFileError::Malformed);
        }
        self.0 = rest;
        Ok(contents)
    }
}

/// An OBJECT IDENTIFIER as people write and look it up; cut to what fits a message.
pub(super) fn dotted(object: &[u8]) -> String {
    let mut numbers = Vec::new();
    let mut number = 0_u64;
    for byte in object.iter().take(MAX_SHOWN) {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    // X.690 §8.19.4: the first two numbers are in one.
    let first = numbers.first().copied().unwrap_or_default();
    let (first, second) = match first {
        0..80 => (first / 40, first % 40),
        80.. => (2, first - 80),
    };
    let rest = numbers.iter().skip(1).map(|number| format!(".{number}"));
    format!("{first}.{second}{}", rest.collect::<String>())
}

/// A definite length in its shortest form (X.690 §10.1). Three bytes of it hold more than the largest file.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let count = usize::from(first).checked_sub(0x80);
    let Some(count) = count else {
        return Some((usize::from(first), rest));
    };
    if !(1..=3).contains(&count) {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(count)?;
    let length = digits
        .iter()
        .fold(0, |length, &digit| length << 8 | usize::from(digit));
    let shortest = length >= 0x80 && digits.first() != Some(&0);
    shortest.then_some((length, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_one_form_and_end_within_the_input() {
        let check = |bytes: &[u8], expected: Option<usize>| {
            assert_eq!(length(bytes).map(|(length, _)| length), expected, "{bytes:x?}");
        };
        check(&[0x05], Some(5));
        check(&[0x7f], Some(0x7f));
        check(&[0x81, 0x80], Some(0x80));
        check(&[0x82, 0x01, 0x00], Some(0x100));
        check(&[0x83, 0x01, 0x00, 0x00], Some(0x1_0000));
        // Indefinite, too long, not the shortest, cut short.
        for bytes in [
            &[0x80][..],
            &[0x84, 1, 0, 0, 0],
            &[0xff],
            &[0x81, 0x7f],
            &[0x82, 0x00, 0x80],
            &[0x82, 1],
            &[],
        ] {
            check(bytes, None);
        }
    }

    #[test]
    fn numbers_are_not_negative_and_lose_their_sign_byte() {
        let number = |bytes| Der(bytes).number().map(<[u8]>::to_vec);
        assert_eq!(number(&[2, 1, 0x7f]), Ok(vec![0x7f]));
        assert_eq!(number(&[2, 2, 0, 0x80]), Ok(vec![0x80]));
        assert_eq!(number(&[2, 1, 0]), Ok(vec![]));
        for bad in [&[2, 1, 0x80][..], &[2, 0], &[2, 2, 1], &[3, 1, 1], &[]] {
            assert_eq!(number(bad), Err(KeyFileError::Malformed), "{bad:x?}");
        }
        assert_eq!(Der(&[2, 3, 1, 0, 0]).small(), Ok(0x1_0000));
        assert_eq!(Der(&[2, 5, 0, 0xff, 0xff, 0xff, 0xff]).small(), Ok(u32::MAX));
        assert_eq!(Der(&[2, 5, 1, 0, 0, 0, 0]).small(), Err(KeyFileError::Malformed));
    }

    #[test]
    fn object_identifiers_are_shown_as_people_write_them() {
        assert_eq!(
            dotted(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]),
            "1.2.840.113549.1.1.1"
        );
        assert_eq!(dotted(&[0x2b, 0x65, 0x70]), "1.3.101.112");
        assert_eq!(dotted(&[0x60, 0x86, 0x48, 1]), "2.16.840.1");
        assert_eq!(dotted(&[]), "0.0");
        assert!(dotted(&[0xff; 1000]).len() < 100);
        assert!(dotted(&[0x7f; 1000]).len() < 200);
    }

    #[test]
    fn a_document_is_one_sequence_and_nothing_behind_it() {
        assert!(Der::document(&[0x30, 3, 2, 1, 5]).is_ok());
        for bad in [&[0x30, 3, 2, 1][..], &[0x30, 1, 2, 5], &[0x31, 0], &[]] {
            assert!(Der::document(bad).is_err(), "{bad:x?}");
        }
    }
}
