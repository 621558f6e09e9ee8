//! Private keys, ready to sign. Decides which numbers of a file make one; how signatures are made is `signer.rs`'s.
//! Nothing here prints a secret.

use std::fmt;

use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rsa::{KeyPairComponents, PublicKeyComponents};
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use bytes::{Bytes, BytesMut};
use zeroize::Zeroizing;

use super::curve::Curve;
use super::file_error::{KeyFileError, Unsupported};
use super::key_file::KeyFile;
use super::public::PublicKey;
use super::rsa_crt;
use super::signer::Signer;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::wire::{Reader, Writer};

/// A private key. Signing costs the signature and nothing else: the library's form of the key is kept.
pub struct PrivateKey {
    public: PublicKey,
    comment: String,
    signer: Signer,
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
        curve: &'static Curve,
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
    /// A new key, without a comment.
    ///
    /// # Errors
    /// The library failed, or the type is one of security keys.
    pub fn generate(key_type: KeyType) -> Result<Self, SignError> {
        let made = Self::from_signer(Signer::generate(key_type)?, String::new());
        made.map_err(|_| SignError::Crypto)
    }

    /// The Ed25519 key of a seed.
    pub(crate) fn from_ed25519_seed(seed: &[u8; 32]) -> Result<Self, SignError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| SignError::Crypto)?;
        Self::from_signer(Signer::Ed25519(pair), String::new()).map_err(|_| SignError::Crypto)
    }

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
        let signer = secret.signer()?;
        Ok(Self {
            public,
            comment,
            signer,
        })
    }

    /// `public` is what the signer states.
    pub(super) fn from_signer(signer: Signer, comment: String) -> Result<Self, KeyFileError> {
        Ok(Self {
            public: signer.public().map_err(KeyFileError::Unusable)?,
            comment,
            signer,
        })
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn signer(&self) -> &Signer {
        &self.signer
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
        self.signer.sign(algorithm, data)
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
                let curve = Curve::of(key_type).ok_or(KeyFileError::Malformed)?;
                let _name = reader.string()?;
                Ok(Self::Ecdsa {
                    curve,
                    point: reader.string()?,
                    scalar: reader.mpint()?,
                })
            }
            KeyType::SkEd25519 | KeyType::SkEcdsaNistp256 => Err(Unsupported::SecurityKey.into()),
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
            Self::Ecdsa { curve, point, .. } => writer
                .string(curve.key_type.name())
                .string(curve.name)
                .string(point),
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
            Self::Ecdsa { curve, point, scalar } => {
                let scalar = left_padded(scalar, curve.scalar);
                let pair = EcdsaKeyPair::from_private_key_and_public_key(curve.signer, &scalar, point)?;
                Ok(Signer::Ecdsa(curve, pair))
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

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongAlgorithm => "the key does not sign with this algorithm",
            Self::Crypto => "the cryptographic library failed",
        })
    }
}

impl std::error::Error for SignError {}
