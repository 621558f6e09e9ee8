//! The data types of RFC 4251 §5, read from and written to bytes. It decides what a well-formed field is; it never
//! decides what a field means and never allocates by a length that a peer declared.

use bytes::{BufMut, BytesMut};

use crate::Violation;

mod name_list;

pub use name_list::NameList;

/// Reads fields from the front of a message. Borrows; copies nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `message`.
    #[must_use]
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// The message must end here.
    ///
    /// # Errors
    /// [`Violation::TrailingBytes`] if it does not.
    pub fn finish(self) -> Result<(), Violation> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Violation::TrailingBytes)
        }
    }

    /// Exactly `count` bytes.
    ///
    /// # Errors
    /// [`Violation::Truncated`] if fewer are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Violation> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Violation::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// One `byte`.
    ///
    /// # Errors
    /// [`Violation::Truncated`]
    pub fn byte(&mut self) -> Result<u8, Violation> {
        let (&first, rest) = self.rest.split_first().ok_or(Violation::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// One `boolean`: every value but zero is true (RFC 4251 §5).
    ///
    /// # Errors
    /// [`Violation::Truncated`]
    pub fn boolean(&mut self) -> Result<bool, Violation> {
        Ok(self.byte()? != 0)
    }

    /// One `uint32`.
    ///
    /// # Errors
    /// [`Violation::Truncated`]
    pub fn uint32(&mut self) -> Result<u32, Violation> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Violation::Truncated)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*taken))
    }

    /// One `uint64`.
    ///
    /// # Errors
    /// [`Violation::Truncated`]
    pub fn uint64(&mut self) -> Result<u64, Violation> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Violation::Truncated)?;
        self.rest = rest;
        Ok(u64::from_be_bytes(*taken))
    }

    /// One `string`: arbitrary bytes behind a length.
    ///
    /// # Errors
    /// [`Violation::Truncated`] if the length is more than what is there.
    pub fn string(&mut self) -> Result<&'a [u8], Violation> {
        let length = usize::try_from(self.uint32()?).map_err(|_| Violation::Truncated)?;
        self.bytes(length)
    }

    /// One `string` that must be UTF-8.
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::NotText`]
    pub fn text(&mut self) -> Result<&'a str, Violation> {
        std::str::from_utf8(self.string()?).map_err(|_| Violation::NotText)
    }

    /// One `mpint` that must not be negative: its magnitude without leading zeros.
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::NegativeMpint`]
    pub fn mpint(&mut self) -> Result<&'a [u8], Violation> {
        let field = self.string()?;
        if field.first().is_some_and(|first| first & 0x80 != 0) {
            return Err(Violation::NegativeMpint);
        }
        Ok(without_leading_zeros(field))
    }

    /// One `name-list`.
    ///
    /// # Errors
    /// [`Violation::Truncated`], [`Violation::NameList`] if it is not printable ASCII or has an empty name.
    pub fn name_list(&mut self) -> Result<NameList<'a>, Violation> {
        let field = self.string()?;
        NameList::parse(field)
    }
}

/// Appends fields to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut BytesMut,
}

impl<'a> Writer<'a> {
    /// Appends to `out`, whose bytes stay as they are.
    pub fn new(out: &'a mut BytesMut) -> Self {
        Self { out }
    }

    /// Makes room for so many bytes at once: what is written into them is not moved again.
    pub(crate) fn reserve(&mut self, bytes: usize) -> &mut Self {
        self.out.reserve(bytes);
        self
    }

    /// Bytes as they are, without a length.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// One `byte`.
    pub fn byte(&mut self, value: u8) -> &mut Self {
        self.out.put_u8(value);
        self
    }

    /// One `boolean`.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.byte(u8::from(value))
    }

    /// One `uint32`.
    pub fn uint32(&mut self, value: u32) -> &mut Self {
        self.out.put_u32(value);
        self
    }

    /// One `uint64`.
    pub fn uint64(&mut self, value: u64) -> &mut Self {
        self.out.put_u64(value);
        self
    }

    /// One `string`.
    pub fn string(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.uint32(length(bytes.len())).raw(bytes)
    }

    /// One `string` whose content is written field by field.
    pub fn string_of(&mut self, fill: impl FnOnce(&mut Writer<'_>)) -> &mut Self {
        let start = self.out.len();
        self.uint32(0);
        fill(self);
        let filled = length(self.out.len() - start - 4);
        if let Some(place) = self.out.get_mut(start..start + 4) {
            place.copy_from_slice(&filled.to_be_bytes());
        }
        self
    }

    /// One `mpint` of an unsigned big-endian number: leading zeros go, and one comes back where the top bit is set
    /// (RFC 4251 §5).
    pub fn mpint(&mut self, magnitude: &[u8]) -> &mut Self {
        let magnitude = without_leading_zeros(magnitude);
        let sign = magnitude.first().is_some_and(|first| first & 0x80 != 0);
        self.uint32(length(magnitude.len() + usize::from(sign)));
        if sign {
            self.byte(0);
        }
        self.raw(magnitude)
    }

    /// One `name-list`.
    pub fn name_list<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> &mut Self {
        self.string_of(|list| {
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    list.byte(b',');
                }
                list.raw(name.as_bytes());
            }
        })
    }
}

/// A length as it goes on the wire. Callers bound what they send far below 4 GiB: a packet has at most 256 KiB.
fn length(length: usize) -> u32 {
    u32::try_from(length).expect("no field of ours comes near 4 GiB")
}

fn without_leading_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|&&byte| byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn written(fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = BytesMut::new();
        fill(&mut Writer::new(&mut out));
        out.to_vec()
    }

    #[test]
    fn mpints_of_rfc_4251_are_written_as_printed_there() {
        let check = |magnitude: &[u8], expected: &[u8]| {
            assert_eq!(
                written(|w| {
                    w.mpint(magnitude);
                }),
                expected
            );
        };
        check(&[], &[0, 0, 0, 0]);
        check(&[0, 0], &[0, 0, 0, 0]);
        check(
            &[0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
            &[0, 0, 0, 8, 0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
        );
        check(&[0x80], &[0, 0, 0, 2, 0, 0x80]);
        check(&[0, 0, 0x80], &[0, 0, 0, 2, 0, 0x80]);
    }

    #[test]
    fn a_negative_mpint_is_refused_and_zeros_are_stripped() {
        assert_eq!(
            Reader::new(&[0, 0, 0, 1, 0x80]).mpint(),
            Err(Violation::NegativeMpint)
        );
        assert_eq!(Reader::new(&[0, 0, 0, 3, 0, 0, 7]).mpint(), Ok(&[7][..]));
    }

    #[test]
    fn a_length_beyond_the_message_is_refused_at_every_size() {
        for declared in [1, 4, 0x7fff_ffff, u32::MAX] {
            assert_eq!(
                Reader::new(&declared.to_be_bytes()).string(),
                Err(Violation::Truncated)
            );
        }
    }

    #[test]
    fn every_field_comes_back_as_it_was_written() {
        let bytes = written(|w| {
            w.byte(7)
                .boolean(true)
                .uint32(1)
                .uint64(2)
                .string("text")
                .name_list(["a", "b"])
                .string_of(|inner| {
                    inner.uint32(9);
                });
        });
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.byte(), Ok(7));
        assert_eq!(reader.boolean(), Ok(true));
        assert_eq!(reader.uint32(), Ok(1));
        assert_eq!(reader.uint64(), Ok(2));
        assert_eq!(reader.text(), Ok("text"));
        assert_eq!(reader.name_list().unwrap().iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(reader.string(), Ok(&[0, 0, 0, 9][..]));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn name_lists_with_empty_names_blanks_or_foreign_letters_are_refused() {
        for list in [",", "a,", ",a", "a,,b", "a b", "ä", "a\0", "a\n"] {
            let field = written(|w| {
                w.string(list);
            });
            assert_eq!(
                Reader::new(&field).name_list(),
                Err(Violation::NameList),
                "{list:?}"
            );
        }
        assert_eq!(Reader::new(&[0, 0, 0, 0]).name_list().unwrap().first(), None);
    }

    #[test]
    fn name_lists_are_counted_as_they_are_read() {
        for names in [vec![], vec!["a"], vec!["a", "bc", "d"]] {
            let field = written(|w| {
                w.name_list(names.iter().copied());
            });
            let list = Reader::new(&field).name_list().unwrap();
            assert_eq!(list.iter().collect::<Vec<_>>(), names);
            assert_eq!((list.len(), list.is_empty()), (names.len(), names.is_empty()));
        }
    }

    #[test]
    fn a_text_that_is_not_utf8_is_refused() {
        assert_eq!(Reader::new(&[0, 0, 0, 1, 0xff]).text(), Err(Violation::NotText));
    }

    #[test]
    fn bytes_after_the_last_field_are_refused() {
        assert_eq!(Reader::new(&[1]).finish(), Err(Violation::TrailingBytes));
    }
}
