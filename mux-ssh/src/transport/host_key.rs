//! The private keys of a host, for the server role. It decides how they are made; it reads no files.

use bytes::Bytes;

use crate::Error;
use crate::algorithms::{HostKeyAlgorithm, KeyType, SignatureAlgorithm};
use crate::keys::{PrivateKey, PublicKey, SignError};

/// A private key of a host. Made from any [`PrivateKey`].
#[derive(Debug)]
pub struct HostKey {
    key: PrivateKey,
    /// Shown in place of the public half to a client that wants certificates.
    certificate: Option<Bytes>,
}

impl HostKey {
    /// A new key.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate(key_type: KeyType) -> Result<Self, Error> {
        Ok(PrivateKey::generate(key_type)?.into())
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
        Ok(PrivateKey::from_ed25519_seed(seed)?.into())
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        self.key.public()
    }

    /// The same key with a certificate, whose bytes are not looked at.
    #[must_use]
    pub fn with_certificate(mut self, certificate: &[u8]) -> Self {
        self.certificate = Some(Bytes::copy_from_slice(certificate));
        self
    }

    /// Whether it can be shown as `algorithm` wants it.
    pub(super) fn shows(&self, algorithm: HostKeyAlgorithm) -> bool {
        let fits = !algorithm.is_certificate() || self.certificate.is_some();
        fits && self.key.public().key_type() == algorithm.key_type()
    }

    /// What is shown.
    pub(super) fn shown(&self, algorithm: HostKeyAlgorithm) -> Bytes {
        match &self.certificate {
            Some(certificate) if algorithm.is_certificate() => certificate.clone(),
            Some(_) | None => Bytes::copy_from_slice(self.key.public().blob()),
        }
    }

    /// A signature blob over `data`.
    pub(super) fn sign(&self, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<Bytes, Error> {
        Ok(self.key.sign(algorithm, data)?)
    }
}

impl From<PrivateKey> for HostKey {
    fn from(key: PrivateKey) -> Self {
        Self {
            key,
            certificate: None,
        }
    }
}

impl From<SignError> for Error {
    fn from(_: SignError) -> Self {
        Self::Crypto
    }
}
