//! One line's key and marker. Decides whether a key is well formed; never whom it belongs to.

use base64ct::{Base64, Encoding};

use super::Place;
use super::parse::BadLine;
use crate::algorithms::KeyType;
use crate::wire::Reader;

/// What stands in front of the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    None,
    /// `@revoked`: never accept this key.
    Revoked,
    /// `@cert-authority`: the key signs host certificates.
    CertAuthority,
}

/// One line.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) marker: Marker,
    /// `None` for a type that this build cannot verify; such a key is known all the same.
    pub(super) key_type: Option<KeyType>,
    pub(super) blob: Box<[u8]>,
    /// One name and nothing else stands before the key, as programs write it.
    pub(super) is_plain: bool,
    /// Patterns stand before the key.
    pub(super) is_pattern: bool,
}

/// Reads `type base64`, of which the type must be the one inside the blob.
pub(super) fn key(type_name: &[u8], base64: &[u8]) -> Result<(Option<KeyType>, Box<[u8]>), BadLine> {
    let base64 = std::str::from_utf8(base64).map_err(|_| BadLine::Base64)?;
    let blob = Base64::decode_vec(base64).map_err(|_| BadLine::Base64)?;
    let inside = Reader::new(&blob).string().map_err(|_| BadLine::KeyBlob)?;
    if inside != type_name {
        return Err(BadLine::KeyType);
    }
    let key_type = std::str::from_utf8(type_name).ok().and_then(KeyType::from_name);
    Ok((key_type, blob.into_boxed_slice()))
}
