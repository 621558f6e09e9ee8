//! Public and private keys. Decides which keys can be used; never where they come from.

mod armour;
mod certificate;
mod certificate_error;
mod curve;
mod der;
#[cfg(any(test, feature = "server"))]
pub(crate) mod draft;
mod file_error;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod key_file;
mod openssh;
mod pbes2;
mod pkcs;
mod private;
mod public;
mod public_file;
mod rsa_crt;
mod signer;
mod to_agent;

#[cfg(test)]
mod tests;

pub use certificate::{Certificate, CertificateKind, MAX_CERTIFICATE, MAX_PRINCIPALS};
pub use certificate_error::{CertificateError, CertificateRefusal};
pub use file_error::{KeyFileError, Unsupported};
pub use key_file::KeyFile;
pub use openssh::MAX_KDF_ROUNDS;
pub use pbes2::MAX_PBKDF2_ITERATIONS;
pub use private::{PrivateKey, SignError};
pub use public::{KeyBlobError, MAX_RSA_BITS, MIN_RSA_BITS, PublicKey};
pub use public_file::PublicKeyLine;

/// The fingerprint of a key blob as OpenSSH prints it, also of keys that this build cannot use.
#[must_use]
pub fn fingerprint_sha256(blob: &[u8]) -> String {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, blob);
    let bytes = <[u8; 32]>::try_from(hash.as_ref()).expect("SHA-256 has 32 bytes");
    ssh_key::Fingerprint::Sha256(bytes).to_string()
}
