//! Why a key file cannot be used. Decides the words; a caller that wants to ask for a passphrase looks for
//! [`KeyFileError::Encrypted`].

use std::fmt;

use super::public::KeyBlobError;
use crate::printable::Printable;

/// Why a key file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFileError {
    /// A passphrase is needed.
    Encrypted,
    /// The passphrase is wrong.
    WrongPassphrase,
    /// The file is sound, but of a kind that cannot be used yet.
    Unsupported(Unsupported),
    /// No key file, or a damaged one.
    Malformed,
    /// Larger than any key file.
    TooLarge,
    /// The public half in the file is not the private half's.
    PublicMismatch,
    /// The key itself cannot be used.
    Unusable(KeyBlobError),
}

/// A kind of key file that cannot be used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// PEM encrypted with what MD5 makes of a passphrase (`Proc-Type: 4,ENCRYPTED`).
    LegacyEncryption,
    /// DSA.
    Dsa,
    /// Of PuTTY.
    Putty,
    /// A cipher that encrypts the file.
    Cipher(String),
    /// A function that turns the passphrase into a key.
    Kdf(String),
    /// More rounds of that function than anyone would wait for.
    KdfRounds(u32),
    /// The private half is inside a security key, and the file only says which one.
    SecurityKey,
    /// A type of key: DSA, XMSS, ….
    KeyType(String),
    /// More than one key in a file.
    SeveralKeys,
}

/// It writes OpenSSH's own format, whatever it has read.
const CONVERT: &str = "`ssh-keygen -p -f FILE` converts it";

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encrypted => f.write_str("needs a passphrase"),
            Self::WrongPassphrase => f.write_str("wrong passphrase"),
            Self::Unsupported(what) => write!(f, "{what}: not supported yet"),
            Self::Malformed => f.write_str("not a valid key file"),
            Self::TooLarge => f.write_str("too large for a key file"),
            Self::PublicMismatch => f.write_str("its public half belongs to another key"),
            Self::Unusable(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LegacyEncryption => write!(f, "old PEM encryption ({CONVERT})"),
            Self::Dsa => f.write_str("DSA key"),
            Self::Putty => f.write_str("PuTTY key file"),
            Self::Cipher(name) => write!(f, "key file encrypted with {} ({CONVERT})", Printable::new(name)),
            Self::Kdf(name) => write!(
                f,
                "key file with key derivation {} ({CONVERT})",
                Printable::new(name)
            ),
            Self::KdfRounds(rounds) => write!(f, "key file with {rounds} rounds of key derivation"),
            Self::SecurityKey => f.write_str("private half inside a security key"),
            Self::KeyType(name) => write!(f, "key type {}", Printable::new(name)),
            Self::SeveralKeys => f.write_str("several keys in one file"),
        }
    }
}

impl std::error::Error for KeyFileError {}

impl From<Unsupported> for KeyFileError {
    fn from(what: Unsupported) -> Self {
        Self::Unsupported(what)
    }
}
