//! Private keys, ready to sign. Decides how a signature is encoded; the mathematics is the library's. Nothing here
//! prints a secret.

use std::fmt;

use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPairComponents, PublicKeyComponents};
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use bytes::{Bytes, BytesMut};
use zeroize::Zeroizing;

use super::container::KeyFile;
use super::file_error::{KeyFileError, Unsupported};
use super::public::PublicKey;
use super::rsa_crt;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::wire::{Reader, Writer};

/// A private key. Signing costs the signature and nothing else: the library's form of the key is kept.
pub struct PrivateKey {
    public: PublicKey,
    comment: String,
    signer: Signer,
}

enum Signer {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// Why nothing was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignError {
    /// The key does not sign with that algorithm.
    WrongAlgorithm,
    /// The library failed: it had no memory or no randomness.
    Crypto,
}

/// The numbers of a private key as they stand in a file.
pub(super) enum Secret<'a> {
    Ed25519 {
        public: &'a [u8],
        seed: &'a [u8],
    },
    Ecdsa {
        key_type: KeyType,
        point: &'a [u8],
        scalar: &'a [u8],
    },
    Rsa {
        n: &'a [u8],
        e: &'a [u8],
        d: &'a [u8],
        q_inverse: &'a [u8],
        p: &'a [u8],
        q: &'a [u8],
    },
}

impl PrivateKey {
    /// Reads a key file and opens it.
    ///
    /// # Errors
    /// As [`KeyFile::parse`] and [`KeyFile::unlock`].
    pub fn parse(file: &[u8], passphrase: Option<&[u8]>) -> Result<Self, KeyFileError> {
        KeyFile::parse(file)?.unlock(passphrase)
    }

    /// `public` is what the file states; the secret must be its other half.
    pub(super) fn new(public: PublicKey, secret: Secret<'_>, comment: String) -> Result<Self, KeyFileError> {
        if secret.public_blob() != public.blob() {
            return Err(KeyFileError::PublicMismatch);
        }
        let signer = secret.signer().map_err(|_| KeyFileError::PublicMismatch)?;
        Ok(Self {
            public,
            comment,
            signer,
        })
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The comment in the file.
    #[must_use]
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// Signs `data`: a signature blob, `string` name and `string` value (RFC 4253 §6.6).
    ///
    /// # Errors
    /// The key does not sign with that algorithm, or the library failed.
    pub fn sign(&self, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<Bytes, SignError> {
        if algorithm.key_type() != self.public.key_type() {
            return Err(SignError::WrongAlgorithm);
        }
        let mut blob = BytesMut::new();
        let mut writer = Writer::new(&mut blob);
        writer.string(algorithm.name());
        match &self.signer {
            Signer::Ed25519(pair) => {
                writer.string(pair.try_sign(data)?);
            }
            Signer::Ecdsa(pair) => {
                let fixed = pair.sign(&SystemRandom::new(), data)?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                // RFC 5656 §3.1.2.
                writer.string_of(|numbers| {
                    numbers.mpint(r).mpint(s);
                });
            }
            Signer::Rsa(pair) => {
                let mut value = vec![0; pair.public_modulus_len()];
                pair.sign(rsa_padding(algorithm)?, &SystemRandom::new(), data, &mut value)?;
                writer.string(value);
            }
        }
        Ok(blob.freeze())
    }
}

fn rsa_padding(algorithm: SignatureAlgorithm) -> Result<&'static signature::RsaSignatureEncoding, SignError> {
    match algorithm {
        SignatureAlgorithm::RsaSha2_256 => Ok(&signature::RSA_PKCS1_SHA256),
        SignatureAlgorithm::RsaSha2_512 => Ok(&signature::RSA_PKCS1_SHA512),
        SignatureAlgorithm::Ed25519
        | SignatureAlgorithm::EcdsaNistp256
        | SignatureAlgorithm::EcdsaNistp384
        | SignatureAlgorithm::EcdsaNistp521 => Err(SignError::WrongAlgorithm),
    }
}

impl<'a> Secret<'a> {
    /// Reads the private section of a key file up to the comment.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, KeyFileError> {
        let name = reader.text()?;
        let key_type = KeyType::from_name(name).ok_or_else(|| Unsupported::KeyType(name.to_owned()))?;
        match key_type {
            KeyType::Ed25519 => {
                let public = reader.string()?;
                // Seed and public key side by side.
                let (seed, second) = reader
                    .string()?
                    .split_at_checked(32)
                    .ok_or(KeyFileError::Malformed)?;
                if second == public {
                    Ok(Self::Ed25519 { public, seed })
                } else {
                    Err(KeyFileError::PublicMismatch)
                }
            }
            KeyType::EcdsaNistp256 | KeyType::EcdsaNistp384 | KeyType::EcdsaNistp521 => {
                let _curve = reader.string()?;
                Ok(Self::Ecdsa {
                    key_type,
                    point: reader.string()?,
                    scalar: reader.mpint()?,
                })
            }
            KeyType::Rsa => Ok(Self::Rsa {
                n: reader.mpint()?,
                e: reader.mpint()?,
                d: reader.mpint()?,
                q_inverse: reader.mpint()?,
                p: reader.mpint()?,
                q: reader.mpint()?,
            }),
        }
    }

    fn public_blob(&self) -> BytesMut {
        let mut blob = BytesMut::new();
        let mut writer = Writer::new(&mut blob);
        match *self {
            Self::Ed25519 { public, .. } => writer.string(KeyType::Ed25519.name()).string(public),
            Self::Ecdsa { key_type, point, .. } => {
                let name = key_type.name();
                let curve = name.strip_prefix("ecdsa-sha2-").unwrap_or(name);
                writer.string(name).string(curve).string(point)
            }
            Self::Rsa { n, e, .. } => writer.string(KeyType::Rsa.name()).mpint(e).mpint(n),
        };
        blob
    }

    /// The library checks that both halves belong together.
    fn signer(&self) -> Result<Signer, KeyRejected> {
        match *self {
            Self::Ed25519 { public, seed } => {
                Ed25519KeyPair::from_seed_and_public_key(seed, public).map(Signer::Ed25519)
            }
            Self::Ecdsa {
                key_type,
                point,
                scalar,
            } => {
                let (algorithm, length) = match key_type {
                    KeyType::EcdsaNistp384 => (&signature::ECDSA_P384_SHA384_FIXED_SIGNING, 48),
                    KeyType::EcdsaNistp521 => (&signature::ECDSA_P521_SHA512_FIXED_SIGNING, 66),
                    KeyType::EcdsaNistp256 | KeyType::Ed25519 | KeyType::Rsa => {
                        (&signature::ECDSA_P256_SHA256_FIXED_SIGNING, 32)
                    }
                };
                let scalar = left_padded(scalar, length);
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, &scalar, point).map(Signer::Ecdsa)
            }
            Self::Rsa {
                n,
                e,
                d,
                q_inverse,
                p,
                q,
            } => {
                let (d_p, d_q) = (rsa_crt::exponent(d, p), rsa_crt::exponent(d, q));
                RsaKeyPair::from_components(&KeyPairComponents {
                    public_key: PublicKeyComponents { n, e },
                    d,
                    p,
                    q,
                    dP: &d_p,
                    dQ: &d_q,
                    qInv: q_inverse,
                })
                .map(Signer::Rsa)
            }
        }
    }
}

/// One scalar in 256 begins with a zero byte, which an `mpint` leaves out.
fn left_padded(scalar: &[u8], length: usize) -> Zeroizing<Vec<u8>> {
    let mut padded = Zeroizing::new(vec![0; length.saturating_sub(scalar.len())]);
    padded.reserve_exact(scalar.len());
    padded.extend_from_slice(scalar);
    padded
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl From<Unspecified> for SignError {
    fn from(_: Unspecified) -> Self {
        Self::Crypto
    }
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongAlgorithm => "the key does not sign with this algorithm",
            Self::Crypto => "the cryptographic library failed",
        })
    }
}

impl std::error::Error for SignError {}
