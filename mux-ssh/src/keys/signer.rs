//! The library's forms of a private key. Decides how its public half and its signatures are encoded; the mathematics is
//! the library's.

use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use bytes::{Bytes, BytesMut};

use super::curve::Curve;
use super::der::Der;
use super::file_error::KeyFileError;
use super::private::SignError;
use super::public::{KeyBlobError, PublicKey};
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::wire::Writer;

/// What a signature of an elliptic key takes with its name; one of RSA moves once.
const ROOM: usize = 192;

pub(super) enum Signer {
    Ed25519(Ed25519KeyPair),
    Ecdsa(&'static Curve, EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    /// A new key, but none of a security key; of RSA the shortest that may be used, because the others take seconds to find.
    pub(super) fn generate(key_type: KeyType) -> Result<Self, SignError> {
        Ok(match Curve::of(key_type) {
            Some(curve) => Self::Ecdsa(curve, EcdsaKeyPair::generate(curve.signer)?),
            None if key_type.is_security_key() => return Err(SignError::WrongAlgorithm),
            None if key_type == KeyType::Rsa => Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048)?),
            None => Self::Ed25519(Ed25519KeyPair::generate()?),
        })
    }

    /// The public half, as the library knows it.
    pub(super) fn public(&self) -> Result<PublicKey, KeyBlobError> {
        let mut blob = BytesMut::new();
        let mut writer = Writer::new(&mut blob);
        match self {
            Self::Ed25519(pair) => {
                writer.string(KeyType::Ed25519.name()).string(pair.public_key());
            }
            Self::Ecdsa(curve, pair) => {
                writer
                    .string(curve.key_type.name())
                    .string(curve.name)
                    .string(pair.public_key());
            }
            Self::Rsa(pair) => {
                // RFC 8017 §A.1.1: modulus, exponent.
                let numbers = || {
                    let mut numbers = Der::document(pair.public_key().as_ref())?;
                    Ok::<_, KeyFileError>((numbers.number()?, numbers.number()?))
                };
                let (n, e) = numbers().map_err(|_| KeyBlobError::Malformed)?;
                writer.string(KeyType::Rsa.name()).mpint(e).mpint(n);
            }
        }
        PublicKey::parse(&blob)
    }

    /// A signature blob: `string` name and `string` value (RFC 4253 §6.6).
    pub(super) fn sign(&self, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<Bytes, SignError> {
        if algorithm.key_type() != self.key_type() {
            return Err(SignError::WrongAlgorithm);
        }
        let mut blob = BytesMut::with_capacity(ROOM);
        let mut writer = Writer::new(&mut blob);
        writer.string(algorithm.name());
        match self {
            Self::Ed25519(pair) => {
                writer.string(pair.try_sign(data)?);
            }
            Self::Ecdsa(_, pair) => {
                let fixed = pair.sign(&SystemRandom::new(), data)?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                // RFC 5656 §3.1.2.
                writer.string_of(|numbers| {
                    numbers.mpint(r).mpint(s);
                });
            }
            Self::Rsa(pair) => {
                let mut value = vec![0; pair.public_modulus_len()];
                pair.sign(rsa_padding(algorithm)?, &SystemRandom::new(), data, &mut value)?;
                writer.string(value);
            }
        }
        Ok(blob.freeze())
    }

    fn key_type(&self) -> KeyType {
        match self {
            Self::Ed25519(_) => KeyType::Ed25519,
            Self::Ecdsa(curve, _) => curve.key_type,
            Self::Rsa(_) => KeyType::Rsa,
        }
    }
}

fn rsa_padding(algorithm: SignatureAlgorithm) -> Result<&'static signature::RsaSignatureEncoding, SignError> {
    match algorithm {
        SignatureAlgorithm::RsaSha2_256 => Ok(&signature::RSA_PKCS1_SHA256),
        SignatureAlgorithm::RsaSha2_512 => Ok(&signature::RSA_PKCS1_SHA512),
        SignatureAlgorithm::Ed25519
        | SignatureAlgorithm::EcdsaNistp256
        | SignatureAlgorithm::EcdsaNistp384
        | SignatureAlgorithm::EcdsaNistp521
        | SignatureAlgorithm::SkEd25519
        | SignatureAlgorithm::SkEcdsaNistp256 => Err(SignError::WrongAlgorithm),
    }
}

impl From<Unspecified> for SignError {
    fn from(_: Unspecified) -> Self {
        Self::Crypto
    }
}

/// The library takes a key only if its halves belong together.
impl From<KeyRejected> for KeyFileError {
    fn from(_: KeyRejected) -> Self {
        Self::PublicMismatch
    }
}
