//! Lines of `.pub` files: type, base64, comment. Decides whether the line holds a usable key; lets an identity be
//! offered before its private half is opened.

use base64ct::{Base64, Encoding};

use super::file_error::{KeyFileError, Unsupported};
use super::public::{KeyBlobError, PublicKey};

/// A public key as it stands in a `.pub` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKeyLine {
    /// The key.
    pub key: PublicKey,
    /// What follows it; may be empty.
    pub comment: String,
}

/// More than the longest RSA key and a long comment; what is longer is no `.pub` file.
const MAX_LINE: usize = 32 * 1024;

impl PublicKey {
    /// Reads the first key of a `.pub` file; empty lines and comments may precede it.
    ///
    /// # Errors
    /// No key, or one that cannot be used.
    pub fn parse_line(text: &str) -> Result<PublicKeyLine, KeyFileError> {
        let mut lines = text.lines().map(str::trim);
        let line = lines
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default();
        if line.len() > MAX_LINE {
            return Err(KeyFileError::TooLarge);
        }
        let (name, rest) = line.split_once([' ', '\t']).ok_or(KeyFileError::Malformed)?;
        let rest = rest.trim_start();
        let (base64, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let blob = Base64::decode_vec(base64).map_err(|_| KeyFileError::Malformed)?;
        let key = PublicKey::parse(&blob).map_err(|error| match error {
            KeyBlobError::UnknownType => Unsupported::KeyType(name.to_owned()).into(),
            KeyBlobError::Malformed
            | KeyBlobError::WrongLength
            | KeyBlobError::WrongCurve
            | KeyBlobError::RsaModulus { .. }
            | KeyBlobError::RsaExponent => KeyFileError::Unusable(error),
        })?;
        if key.algorithm() != name {
            return Err(KeyFileError::Malformed);
        }
        Ok(PublicKeyLine {
            key,
            comment: comment.trim().to_owned(),
        })
    }
}
