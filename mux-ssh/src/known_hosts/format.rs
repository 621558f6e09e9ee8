//! A new line for known_hosts. Decides its text; never where it goes.

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use base64ct::{Base64, Encoding};

use super::hashed::{SALT_LENGTH, Salt};
use super::{HostId, hashed};
use crate::keys::PublicKey;

/// The line, with its newline, that makes `key` known as `host`'s. `hash` hides the name as `HashKnownHosts` asks.
///
/// # Errors
/// The library has no randomness for a salt.
pub fn format_entry(host: &HostId, key: &PublicKey, hash: bool) -> Result<String, Unspecified> {
    let name = if hash {
        let mut salt = Salt([0; SALT_LENGTH]);
        rand::fill(&mut salt.0)?;
        hashed::format(&salt, host.name())
    } else {
        host.name().to_owned()
    };
    Ok(format!(
        "{name} {} {}\n",
        key.algorithm(),
        Base64::encode_string(key.blob())
    ))
}
