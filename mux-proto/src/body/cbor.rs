//! CBOR (RFC 8949) within bounds: one item in a subset without indefinite lengths, tags and floats, and maps by name.
//! Decides what is well-formed; never what a field means.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;

use bytes::Bytes;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder, decode, encode};

/// Arrays and maps within each other. Deeper than any body of ours by half; no recursion depends on it.
pub const MAX_DEPTH: usize = 8;

/// Fields of one map. More than any body of ours has, with room for those of later versions.
pub const MAX_FIELDS: usize = 32;

/// Why a body can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It ends within an item, or isn't CBOR.
    Truncated,
    /// Something that the subset doesn't have: an indefinite length, a tag, a float, a number below -2^63.
    Unsupported,
    /// More than [`MAX_DEPTH`] arrays and maps within each other.
    TooDeep,
    /// Bytes after the item.
    Trailing,
    /// It is no map with different texts as keys, or has more than [`MAX_FIELDS`] of them.
    NotFields,
    /// This field is missing.
    Missing(&'static str),
    /// This field has another type, or a value that it can't have.
    Field(&'static str),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("no complete item of CBOR"),
            Self::Unsupported => f.write_str("a type of CBOR that is not used here"),
            Self::TooDeep => write!(f, "more than {MAX_DEPTH} levels"),
            Self::Trailing => f.write_str("bytes after the item"),
            Self::NotFields => f.write_str("no map with different texts as keys, or too large a one"),
            Self::Missing(key) => write!(f, "`{key}` is missing"),
            Self::Field(key) => write!(f, "`{key}` has a value that it can't have"),
        }
    }
}

/// Checks that `input` is one item of the subset and nothing else. Takes time in proportion to its length, and memory
/// for its depth alone, whatever lengths it claims.
///
/// # Errors
/// What is wrong with it.
pub fn check_item(input: &[u8]) -> Result<(), BodyError> {
    let mut decoder = Decoder::new(input);
    pass_item(&mut decoder)?;
    if decoder.position() == input.len() {
        Ok(())
    } else {
        Err(BodyError::Trailing)
    }
}

/// Moves `decoder` behind one item.
fn pass_item(decoder: &mut Decoder<'_>) -> Result<(), BodyError> {
    // How many items are still to come on each level; the first is the item itself.
    let mut levels = vec![1_u64];
    while let Some(left) = levels.last_mut() {
        if *left == 0 {
            levels.pop();
            continue;
        }
        *left -= 1;
        if let Some(inner) = pass_head(decoder)? {
            if levels.len() > MAX_DEPTH {
                return Err(BodyError::TooDeep);
            }
            levels.push(inner);
        }
    }
    Ok(())
}

/// Passes a value, or the head of an array or map: then says how many items belong to it.
fn pass_head(decoder: &mut Decoder<'_>) -> Result<Option<u64>, BodyError> {
    let truncated = |_: decode::Error| BodyError::Truncated;
    let inner = match decoder.datatype().map_err(truncated)? {
        Type::Bool => decoder.bool().map(|_| None),
        Type::Null => decoder.null().map(|()| None),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => decoder.u64().map(|_| None),
        Type::I8 | Type::I16 | Type::I32 | Type::I64 => decoder.i64().map(|_| None),
        Type::Bytes => decoder.bytes().map(|_| None),
        // A text that is no UTF-8 is not CBOR either (RFC 8949 §3.1).
        Type::String => decoder.str().map(|_| None),
        Type::Array => decoder.array(),
        Type::Map => decoder
            .map()
            .map(|pairs| pairs.map(|pairs| pairs.saturating_mul(2))),
        Type::Undefined
        | Type::Int
        | Type::F16
        | Type::F32
        | Type::F64
        | Type::Simple
        | Type::BytesIndef
        | Type::StringIndef
        | Type::ArrayIndef
        | Type::MapIndef
        | Type::Tag
        | Type::Break
        | Type::Unknown(_) => return Err(BodyError::Unsupported),
    };
    inner.map_err(truncated)
}

/// A map with texts as keys, read by name. Fields that nobody asks for are passed over: later versions add some.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> Fields<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, BodyError> {
        check_item(body)?;
        let not_fields = |_: decode::Error| BodyError::NotFields;
        let mut decoder = Decoder::new(body);
        let count = decoder.map().map_err(not_fields)?.ok_or(BodyError::NotFields)?;
        if count > MAX_FIELDS as u64 {
            return Err(BodyError::NotFields);
        }
        let (mut fields, mut seen) = (Vec::new(), BTreeSet::new());
        for _ in 0..count {
            let key = decoder.str().map_err(not_fields)?;
            let start = decoder.position();
            pass_item(&mut decoder)?;
            let value = body.get(start..decoder.position()).unwrap_or_default();
            if !seen.insert(key) {
                return Err(BodyError::NotFields);
            }
            fields.push((key, value));
        }
        Ok(Self(fields))
    }

    /// The encoded value.
    pub(crate) fn item(&self, key: &'static str) -> Option<&'a [u8]> {
        self.0
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }

    fn get<T>(&self, key: &'static str, read: Read<'a, T>) -> Result<Option<T>, BodyError> {
        self.item(key)
            .map(|item| read(&mut Decoder::new(item)).map_err(|_| BodyError::Field(key)))
            .transpose()
    }

    pub(crate) fn u32(&self, key: &'static str) -> Result<Option<u32>, BodyError> {
        self.get(key, |decoder| decoder.u32())
    }

    pub(crate) fn u16(&self, key: &'static str) -> Result<Option<u16>, BodyError> {
        self.get(key, |decoder| decoder.u16())
    }

    pub(crate) fn flag(&self, key: &'static str) -> Result<Option<bool>, BodyError> {
        self.get(key, |decoder| decoder.bool())
    }

    pub(crate) fn bytes(&self, key: &'static str) -> Result<Option<Bytes>, BodyError> {
        self.get(key, read_bytes)
    }

    pub(crate) fn text(&self, key: &'static str) -> Result<Option<String>, BodyError> {
        self.get(key, |decoder| decoder.str().map(str::to_owned))
    }

    /// An array of items that `read` understands.
    pub(crate) fn list<T>(&self, key: &'static str, read: Read<'a, T>) -> Result<Option<Vec<T>>, BodyError> {
        let Some(item) = self.item(key) else {
            return Ok(None);
        };
        let wrong = |_: decode::Error| BodyError::Field(key);
        let mut decoder = Decoder::new(item);
        // No longer than the body: each item has at least a byte, and all of them were passed once.
        let count = decoder.array().map_err(wrong)?.ok_or(BodyError::Field(key))?;
        (0..count)
            .map(|_| read(&mut decoder).map_err(wrong))
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// Reads one item of a known type.
pub(crate) type Read<'a, T> = fn(&mut Decoder<'a>) -> Result<T, decode::Error>;

pub(crate) fn read_u32(decoder: &mut Decoder<'_>) -> Result<u32, decode::Error> {
    decoder.u32()
}

pub(crate) fn read_bytes(decoder: &mut Decoder<'_>) -> Result<Bytes, decode::Error> {
    decoder.bytes().map(Bytes::copy_from_slice)
}

/// An array of exactly two byte strings.
pub(crate) fn read_pair(decoder: &mut Decoder<'_>) -> Result<(Bytes, Bytes), decode::Error> {
    if decoder.array()? == Some(2) {
        Ok((read_bytes(decoder)?, read_bytes(decoder)?))
    } else {
        Err(decode::Error::message("no pair"))
    }
}

/// Writes a map, field by field, in the order of the calls.
#[derive(Debug)]
pub(crate) struct MapWriter {
    fields: u64,
    items: Encoder<Vec<u8>>,
}

/// What an encoder gives that writes to memory.
pub(crate) type Written<'e> = Result<&'e mut Encoder<Vec<u8>>, encode::Error<Infallible>>;

impl MapWriter {
    pub(crate) fn new() -> Self {
        Self {
            fields: 0,
            items: Encoder::new(Vec::new()),
        }
    }

    /// A field whose value `write` makes: exactly one item.
    pub(crate) fn with(
        mut self,
        key: &str,
        write: impl FnOnce(&mut Encoder<Vec<u8>>) -> Written<'_>,
    ) -> Self {
        self.fields += 1;
        self.items
            .str(key)
            .and_then(write)
            .map(drop)
            .expect("memory takes every byte");
        self
    }

    pub(crate) fn uint(self, key: &str, value: impl Into<u64>) -> Self {
        let value = value.into();
        self.with(key, |items| items.u64(value))
    }

    pub(crate) fn maybe_uint(self, key: &str, value: Option<impl Into<u64>>) -> Self {
        match value {
            Some(value) => self.uint(key, value),
            None => self,
        }
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.with(key, |items| items.str(value))
    }

    /// A value that is encoded already.
    pub(crate) fn item(self, key: &str, item: &[u8]) -> Self {
        self.with(key, |items| {
            items.writer_mut().extend_from_slice(item);
            Ok(items)
        })
    }

    pub(crate) fn finish(self) -> Bytes {
        let mut whole = Encoder::new(Vec::new());
        whole.map(self.fields).map(drop).expect("memory takes every byte");
        let mut whole = whole.into_writer();
        whole.extend_from_slice(&self.items.into_writer());
        whole.into()
    }
}
