//! The private keys of a host, for the server role. It decides which algorithms a key can sign with; it reads no files.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use bytes::BytesMut;

use crate::Error;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::keys::PublicKey;
use crate::wire::Writer;

/// A private key of a host.
pub struct HostKey {
    signer: Signer,
    public: PublicKey,
}

enum Signer {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl HostKey {
    /// A new Ed25519 key.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate_ed25519() -> Result<Self, Error> {
        Self::ed25519(Ed25519KeyPair::generate()?)
    }

    /// The Ed25519 key of a 32-byte seed.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn from_ed25519_seed(seed: &[u8; 32]) -> Result<Self, Error> {
        Self::ed25519(Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| Error::Crypto)?)
    }

    /// A new ECDSA key on P-256.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate_ecdsa_nistp256() -> Result<Self, Error> {
        let pair = EcdsaKeyPair::generate(&signature::ECDSA_P256_SHA256_FIXED_SIGNING)?;
        let name = KeyType::EcdsaNistp256.name();
        let public = public(|blob| {
            blob.string(name).string("nistp256").string(pair.public_key());
        })?;
        Ok(Self {
            signer: Signer::Ecdsa(pair),
            public,
        })
    }

    /// An RSA key from its PKCS #8 form and its public half, which must belong together.
    ///
    /// # Errors
    /// They do not, or the key can't be read.
    pub fn from_rsa_pkcs8(der: &[u8], public: PublicKey) -> Result<Self, Error> {
        let signer = Signer::Rsa(RsaKeyPair::from_pkcs8(der).map_err(|_| Error::Crypto)?);
        let key = Self { signer, public };
        let signature = key.sign(SignatureAlgorithm::RsaSha2_256, b"")?;
        key.public
            .verify(SignatureAlgorithm::RsaSha2_256, b"", &signature)?;
        Ok(key)
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// A signature blob over `data`.
    pub(super) fn sign(&self, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<BytesMut, Error> {
        let mut value = BytesMut::new();
        match &self.signer {
            Signer::Ed25519(pair) => value.extend_from_slice(pair.try_sign(data)?.as_ref()),
            Signer::Ecdsa(pair) => {
                let fixed = pair.sign(&SystemRandom::new(), data)?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                Writer::new(&mut value).mpint(r).mpint(s);
            }
            Signer::Rsa(pair) => {
                let encoding = if algorithm == SignatureAlgorithm::RsaSha2_512 {
                    &signature::RSA_PKCS1_SHA512
                } else {
                    &signature::RSA_PKCS1_SHA256
                };
                value.resize(pair.public_modulus_len(), 0);
                pair.sign(encoding, &SystemRandom::new(), data, &mut value)?;
            }
        }
        let mut blob = BytesMut::new();
        Writer::new(&mut blob).string(algorithm.name()).string(&value);
        Ok(blob)
    }

    fn ed25519(pair: Ed25519KeyPair) -> Result<Self, Error> {
        let name = KeyType::Ed25519.name();
        let public = public(|blob| {
            blob.string(name).string(pair.public_key());
        })?;
        Ok(Self {
            signer: Signer::Ed25519(pair),
            public,
        })
    }
}

fn public(write: impl FnOnce(&mut Writer<'_>)) -> Result<PublicKey, Error> {
    let mut blob = BytesMut::new();
    write(&mut Writer::new(&mut blob));
    Ok(PublicKey::parse(&blob)?)
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({:?})", self.public)
    }
}
