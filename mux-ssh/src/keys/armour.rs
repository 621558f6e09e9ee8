//! The text around a key file's bytes (RFC 7468, and what PEM was before). Decides which format a file is in and undoes
//! the base64; never what the bytes mean.

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use super::file_error::{KeyFileError, Unsupported};

/// As OpenSSH's `MAX_KEY_FILE_SIZE`.
const MAX_FILE: usize = 1024 * 1024;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// What a file says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// OpenSSH's own format.
    OpenSsh,
    /// `RSAPrivateKey`.
    Pkcs1,
    /// `ECPrivateKey`.
    Sec1,
    /// `OneAsymmetricKey`.
    Pkcs8,
    /// `EncryptedPrivateKeyInfo`.
    EncryptedPkcs8,
}

/// The bytes of the first private key in a file. What stands before it is passed over: OpenSSL writes a curve there, or
/// where the key came from.
pub(super) fn decode(file: &[u8]) -> Result<(Label, Zeroizing<Vec<u8>>), KeyFileError> {
    if file.len() > MAX_FILE {
        return Err(KeyFileError::TooLarge);
    }
    let text = std::str::from_utf8(file).map_err(|_| KeyFileError::Malformed)?;
    if text.trim_start().starts_with("PuTTY-User-Key-File-") {
        return Err(Unsupported::Putty.into());
    }
    let (name, body) = private_key(text).ok_or(KeyFileError::Malformed)?;
    let label = match name {
        "OPENSSH PRIVATE KEY" => Label::OpenSsh,
        "RSA PRIVATE KEY" => Label::Pkcs1,
        "EC PRIVATE KEY" => Label::Sec1,
        "PRIVATE KEY" => Label::Pkcs8,
        "ENCRYPTED PRIVATE KEY" => Label::EncryptedPkcs8,
        "DSA PRIVATE KEY" => return Err(Unsupported::Dsa.into()),
        _ => return Err(KeyFileError::Malformed),
    };
    let (body, _) = body
        .split_once(&format!("-----END {name}-----"))
        .ok_or(KeyFileError::Malformed)?;
    // RFC 1421 §4.6.1.1: headers, of which one says that the key is encrypted by a method of its time.
    if body.contains("Proc-Type:") && body.contains("ENCRYPTED") {
        return Err(Unsupported::LegacyEncryption.into());
    }
    Ok((label, bytes(body)?))
}

/// The label of the first private key, and what follows its line.
fn private_key(text: &str) -> Option<(&str, &str)> {
    let begins = text.match_indices(BEGIN).filter(|&(at, _)| {
        let before = text.get(..at).unwrap_or_default();
        before.trim_end_matches([' ', '\t']).ends_with('\n') || before.trim_end().is_empty()
    });
    let mut blocks = begins.filter_map(|(at, _)| text.get(at + BEGIN.len()..)?.split_once(DASHES));
    blocks.find(|(label, _)| label.ends_with("PRIVATE KEY"))
}

fn bytes(body: &str) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    // Exactly as large as needed: growing would leave copies of the secret behind.
    let mut base64 = Zeroizing::new(Vec::with_capacity(body.len()));
    base64.extend(body.bytes().filter(|byte| !byte.is_ascii_whitespace()));
    let mut bytes = Zeroizing::new(vec![0; base64.len()]);
    let decoded = Base64::decode(base64.as_slice(), &mut bytes)
        .map_err(|_| KeyFileError::Malformed)?
        .len();
    bytes.truncate(decoded);
    Ok(bytes)
}
