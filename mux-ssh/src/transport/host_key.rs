//! The private keys of a host, for the server role. It decides how they are made; it reads no files.

use bytes::Bytes;

use crate::Error;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::keys::{PrivateKey, PublicKey, SignError};

/// A private key of a host. Made from any [`PrivateKey`].
#[derive(Debug)]
pub struct HostKey(PrivateKey);

impl HostKey {
    /// A new key.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate(key_type: KeyType) -> Result<Self, Error> {
        Ok(Self(PrivateKey::generate(key_type)?))
    }

    /// A new Ed25519 key.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate_ed25519() -> Result<Self, Error> {
        Self::generate(KeyType::Ed25519)
    }

    /// A new ECDSA key on P-256.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate_ecdsa_nistp256() -> Result<Self, Error> {
        Self::generate(KeyType::EcdsaNistp256)
    }

    /// The Ed25519 key of a 32-byte seed.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn from_ed25519_seed(seed: &[u8; 32]) -> Result<Self, Error> {
        Ok(Self(PrivateKey::from_ed25519_seed(seed)?))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        self.0.public()
    }

    /// A signature blob over `data`.
    pub(super) fn sign(&self, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<Bytes, Error> {
        Ok(self.0.sign(algorithm, data)?)
    }
}

impl From<PrivateKey> for HostKey {
    fn from(key: PrivateKey) -> Self {
        Self(key)
    }
}

impl From<SignError> for Error {
    fn from(_: SignError) -> Self {
        Self::Crypto
    }
}
