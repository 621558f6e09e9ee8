//! The text around a key file's bytes. Decides which format a file is in; decodes OpenSSH's own only.

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use super::file_error::{KeyFileError, Unsupported};

/// As OpenSSH's `MAX_KEY_FILE_SIZE`.
const MAX_FILE: usize = 1024 * 1024;

const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// The bytes of an OpenSSH key file.
pub(super) fn decode(file: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
    if file.len() > MAX_FILE {
        return Err(KeyFileError::TooLarge);
    }
    let text = std::str::from_utf8(file)
        .map_err(|_| KeyFileError::Malformed)?
        .trim_start();
    let Some(body) = text.strip_prefix(BEGIN) else {
        return Err(other_format(text));
    };
    let (body, _) = body.split_once(END).ok_or(KeyFileError::Malformed)?;
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

/// Names the format of a file that is not OpenSSH's.
fn other_format(text: &str) -> KeyFileError {
    let first = text.lines().next().unwrap_or_default().trim_end();
    let unsupported = match first {
        "-----BEGIN RSA PRIVATE KEY-----" => Unsupported::Pkcs1,
        "-----BEGIN EC PRIVATE KEY-----" => Unsupported::Sec1,
        "-----BEGIN PRIVATE KEY-----" | "-----BEGIN ENCRYPTED PRIVATE KEY-----" => Unsupported::Pkcs8,
        "-----BEGIN DSA PRIVATE KEY-----" => Unsupported::Dsa,
        _ if first.starts_with("PuTTY-User-Key-File-") => Unsupported::Putty,
        _ => return KeyFileError::Malformed,
    };
    KeyFileError::Unsupported(unsupported)
}
