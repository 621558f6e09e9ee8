//! Values as CBOR (RFC 8949), for what clients and daemon say to each other: a struct is an array of its fields, a variant
//! an array that begins with its number. Decides the form; `values.rs` lists what has one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use minicbor::data::Type;
use minicbor::decode::Error as DecodeError;

/// Bytes that are not what was expected. Whoever sent them is another version, or no friend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<DecodeError> for Malformed {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

/// No list is made room for before so much of it has come: a number in a message is only a claim.
const MAX_FORESEEN: u64 = 1024;

/// Something that has a form.
pub(crate) trait Value: Sized {
    fn put(&self, to: &mut Writer);

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

/// Takes values.
#[derive(Debug)]
pub(crate) struct Writer(minicbor::Encoder<Vec<u8>>);

/// Gives them back.
#[derive(Debug)]
pub(crate) struct Reader<'a>(minicbor::Decoder<'a>);

type Written<'w> =
    Result<&'w mut minicbor::Encoder<Vec<u8>>, minicbor::encode::Error<std::convert::Infallible>>;

impl Writer {
    fn write(&mut self, write: impl FnOnce(&mut minicbor::Encoder<Vec<u8>>) -> Written<'_>) {
        write(&mut self.0).expect("a vector takes everything");
    }

    pub(super) fn array(&mut self, len: usize) {
        self.write(|to| to.array(len as u64));
    }
}

impl Reader<'_> {
    /// An array of exactly so many items follows.
    pub(super) fn array(&mut self, len: usize) -> Result<(), Malformed> {
        match self.0.array()? {
            Some(found) if found == len as u64 => Ok(()),
            Some(_) | None => Err(Malformed),
        }
    }

    /// A variant: how long its array is, and its number.
    pub(super) fn variant(&mut self) -> Result<(u64, u8), Malformed> {
        let len = self.0.array()?.ok_or(Malformed)?;
        Ok((len, self.0.u8()?))
    }
}

/// A value by itself.
pub(crate) fn encode(value: &impl Value) -> Vec<u8> {
    let mut writer = Writer(minicbor::Encoder::new(Vec::new()));
    value.put(&mut writer);
    writer.0.into_writer()
}

/// The value that these bytes are, all of them.
pub(crate) fn decode<T: Value>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut reader = Reader(minicbor::Decoder::new(bytes));
    let value = T::take(&mut reader)?;
    match reader.0.position() == bytes.len() {
        true => Ok(value),
        false => Err(Malformed),
    }
}

/// Structs, and the fields that are written of them, in this order.
macro_rules! structs {
    ($($type:path { $($field:ident),* $(,)? })*) => {$(
        impl $crate::daemon::codec::Value for $type {
            fn put(&self, to: &mut $crate::daemon::codec::Writer) {
                let Self { $($field),* } = self;
                to.array([$(stringify!($field)),*].len());
                $($field.put(to);)*
            }

            fn take(
                from: &mut $crate::daemon::codec::Reader<'_>,
            ) -> Result<Self, $crate::daemon::codec::Malformed> {
                from.array([$(stringify!($field)),*].len())?;
                Ok(Self { $($field: $crate::daemon::codec::Value::take(from)?),* })
            }
        }
    )*};
}

/// Enums: number, variant, and its fields, those of tuples by their place.
macro_rules! enums {
    ($($type:path { $($number:literal $variant:ident { $($field:tt: $name:ident),* })* })*) => {$(
        impl $crate::daemon::codec::Value for $type {
            fn put(&self, to: &mut $crate::daemon::codec::Writer) {
                match self {
                    $(Self::$variant { $($field: $name),* } => {
                        to.array(1 + <[&str]>::len(&[$(stringify!($name)),*]));
                        $crate::daemon::codec::Value::put(&($number as u8), to);
                        $($name.put(to);)*
                    })*
                }
            }

            fn take(
                from: &mut $crate::daemon::codec::Reader<'_>,
            ) -> Result<Self, $crate::daemon::codec::Malformed> {
                match from.variant()? {
                    $((_, $number) => Ok(Self::$variant {
                        $($field: $crate::daemon::codec::Value::take(from)?),*
                    }),)*
                    _ => Err($crate::daemon::codec::Malformed),
                }
            }
        }
    )*};
}

/// Closed lists that have names.
macro_rules! named {
    ($($type:path),* $(,)?) => {$(
        impl $crate::daemon::codec::Value for $type {
            fn put(&self, to: &mut $crate::daemon::codec::Writer) {
                self.name().to_owned().put(to);
            }

            fn take(
                from: &mut $crate::daemon::codec::Reader<'_>,
            ) -> Result<Self, $crate::daemon::codec::Malformed> {
                let name = String::take(from)?;
                Self::from_name(&name).ok_or($crate::daemon::codec::Malformed)
            }
        }
    )*};
}

pub(crate) use {enums, named, structs};

macro_rules! plain {
    ($($type:ty: $method:ident),*) => {$(
        impl Value for $type {
            fn put(&self, to: &mut Writer) {
                to.write(|to| to.$method(*self));
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(from.0.$method()?)
            }
        }
    )*};
}

plain!(bool: bool, u8: u8, u16: u16, u32: u32, u64: u64, i32: i32);

impl Value for usize {
    fn put(&self, to: &mut Writer) {
        (*self as u64).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::try_from(u64::take(from)?).map_err(|_| Malformed)
    }
}

impl Value for String {
    fn put(&self, to: &mut Writer) {
        to.write(|to| to.str(self));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(from.0.str()?.to_owned())
    }
}

impl Value for Arc<str> {
    fn put(&self, to: &mut Writer) {
        to.write(|to| to.str(self));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(from.0.str()?.into())
    }
}

impl Value for Bytes {
    fn put(&self, to: &mut Writer) {
        to.write(|to| to.bytes(self));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::copy_from_slice(from.0.bytes()?))
    }
}

impl<const N: usize> Value for [u8; N] {
    fn put(&self, to: &mut Writer) {
        to.write(|to| to.bytes(self));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.0.bytes()?.try_into().map_err(|_| Malformed)
    }
}

impl Value for Duration {
    fn put(&self, to: &mut Writer) {
        to.array(2);
        self.as_secs().put(to);
        self.subsec_nanos().put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.array(2)?;
        let (seconds, nanos) = (u64::take(from)?, u32::take(from)?);
        // More nanoseconds than a second has would be carried, and overflow at the end of time.
        match nanos < 1_000_000_000 {
            true => Ok(Self::new(seconds, nanos)),
            false => Err(Malformed),
        }
    }
}

impl Value for SocketAddr {
    fn put(&self, to: &mut Writer) {
        self.to_string().put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.0.str()?.parse().map_err(|_| Malformed)
    }
}

impl<T: Value> Value for Option<T> {
    fn put(&self, to: &mut Writer) {
        match self {
            Some(value) => value.put(to),
            None => to.write(|to| to.null()),
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        if from.0.datatype()? == Type::Null {
            from.0.null()?;
            return Ok(None);
        }
        T::take(from).map(Some)
    }
}

impl<T: Value> Value for Vec<T> {
    fn put(&self, to: &mut Writer) {
        to.array(self.len());
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = from.0.array()?.ok_or(Malformed)?;
        let mut items = Self::with_capacity(usize::try_from(len.min(MAX_FORESEEN)).unwrap_or_default());
        for _ in 0..len {
            items.push(T::take(from)?);
        }
        Ok(items)
    }
}

impl<T: Value, U: Value> Value for (T, U) {
    fn put(&self, to: &mut Writer) {
        to.array(2);
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.array(2)?;
        Ok((T::take(from)?, U::take(from)?))
    }
}

impl<T: Value, E: Value> Value for Result<T, E> {
    fn put(&self, to: &mut Writer) {
        to.array(2);
        self.is_ok().put(to);
        match self {
            Ok(value) => value.put(to),
            Err(error) => error.put(to),
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.array(2)?;
        match bool::take(from)? {
            true => T::take(from).map(Ok),
            false => E::take(from).map(Err),
        }
    }
}
