//! Public keys: their blobs (RFC 4253 §6.6, RFC 5656 §3.1, RFC 8709 §4), fingerprints and signatures. It decides
//! whether a key may be used at all and whether a signature is good; it never decides whom a key belongs to.

use base64ct::{Base64, Encoding};
use std::fmt;

use aws_lc_rs::{digest, signature};
use bytes::{Bytes, BytesMut};

use super::curve::Curve;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::wire::{Reader, Writer};
use crate::{Error, Violation};

/// Fewer bits than this are no protection (NIST SP 800-131A).
pub const MIN_RSA_BITS: usize = 2048;
/// A verification takes time that grows with the cube of the modulus; more than this the library does not verify.
pub const MAX_RSA_BITS: usize = 8192;
/// Exponents in use are 3, 17 and 65537; a longer one only costs time.
const MAX_RSA_EXPONENT_BYTES: usize = 4;
/// A byte of flags and a counter of four.
const SK_ADDED: usize = 5;
/// The blob of an RSA key at the limit, with room for its names: nothing longer is looked at.
const MAX_BLOB: usize = MAX_RSA_BITS / 8 + 64;

/// A public key that can be used: its numbers are of the right size for its type.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    key_type: KeyType,
    blob: Bytes,
}

/// Why the blob of a public key can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyBlobError {
    /// It is not a key blob.
    Malformed,
    /// A type that this build does not know.
    UnknownType,
    /// Its numbers have not the length that its type demands.
    WrongLength,
    /// The curve inside is not that of the type.
    WrongCurve,
    /// An RSA modulus below [`MIN_RSA_BITS`] or above [`MAX_RSA_BITS`].
    RsaModulus {
        /// Its size.
        bits: usize,
    },
    /// An RSA exponent that is even, below 3 or longer than 4 bytes.
    RsaExponent,
}

impl PublicKey {
    /// Reads a key blob, all of it.
    ///
    /// # Errors
    /// The key can't be used.
    pub fn parse(blob: &[u8]) -> Result<Self, KeyBlobError> {
        if blob.len() > MAX_BLOB {
            return Err(KeyBlobError::WrongLength);
        }
        let key_type = match Parts::read(blob)? {
            Parts::Ed25519(_) => KeyType::Ed25519,
            Parts::Ecdsa(curve, _) => curve.key_type,
            Parts::SkEd25519(..) => KeyType::SkEd25519,
            Parts::SkEcdsa(..) => KeyType::SkEcdsaNistp256,
            Parts::Rsa { .. } => KeyType::Rsa,
        };
        Ok(Self {
            key_type,
            blob: Bytes::copy_from_slice(blob),
        })
    }

    /// The key as it goes on the wire and, in base64, into files.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// The type.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The name of the type, as it stands in files.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.key_type.name()
    }

    /// The size of the modulus, if it is an RSA key.
    #[must_use]
    pub fn rsa_bits(&self) -> Option<usize> {
        match Parts::read(&self.blob) {
            Ok(Parts::Rsa { n, .. }) => Some(bits(n)),
            Ok(Parts::Ed25519(_) | Parts::Ecdsa(..) | Parts::SkEd25519(..) | Parts::SkEcdsa(..)) | Err(_) => {
                None
            }
        }
    }

    /// The blob as it stands in files.
    #[must_use]
    pub fn to_base64(&self) -> String {
        Base64::encode_string(&self.blob)
    }

    /// The fingerprint as OpenSSH prints it: `SHA256:` and unpadded base64.
    #[must_use]
    pub fn fingerprint_sha256(&self) -> String {
        super::fingerprint_sha256(&self.blob)
    }

    /// Checks `signature`, a signature blob (`string` name, `string` value), over `data`.
    ///
    /// # Errors
    /// [`Violation::SignatureAlgorithm`] if it is made with another algorithm or the key can't make such a one,
    /// [`Violation::Signature`] if it is wrong in any way.
    pub fn verify(
        &self,
        algorithm: SignatureAlgorithm,
        data: &[u8],
        signature: &[u8],
    ) -> Result<(), Violation> {
        let mut reader = Reader::new(signature);
        let name = reader.string()?;
        let value = reader.string()?;
        // What a security key adds: its flags and its counter (OpenSSH PROTOCOL.u2f).
        let added = match self.key_type.is_security_key() {
            true => reader.bytes(SK_ADDED)?,
            false => &[],
        };
        reader.finish()?;
        if name != algorithm.name().as_bytes() || algorithm.key_type() != self.key_type {
            return Err(Violation::SignatureAlgorithm);
        }
        let parts = Parts::read(&self.blob).map_err(Violation::HostKey)?;
        parts
            .verify(algorithm, data, value, added)
            .ok_or(Violation::Signature)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} {})", self.algorithm(), self.fingerprint_sha256())
    }
}

/// The numbers in a blob.
enum Parts<'a> {
    Ed25519(&'a [u8]),
    Ecdsa(&'static Curve, &'a [u8]),
    /// With the application that it is bound to.
    SkEd25519(&'a [u8], &'a [u8]),
    /// With the application that it is bound to.
    SkEcdsa(&'static Curve, &'a [u8], &'a [u8]),
    Rsa {
        e: &'a [u8],
        n: &'a [u8],
    },
}

impl<'a> Parts<'a> {
    fn read(blob: &'a [u8]) -> Result<Self, KeyBlobError> {
        let mut reader = Reader::new(blob);
        let key_type = KeyType::from_name(reader.text()?).ok_or(KeyBlobError::UnknownType)?;
        let parts = match key_type {
            KeyType::Ed25519 => Self::Ed25519(read_ed25519(&mut reader)?),
            KeyType::SkEd25519 => Self::SkEd25519(read_ed25519(&mut reader)?, reader.string()?),
            KeyType::Rsa => Self::read_rsa(&mut reader)?,
            KeyType::EcdsaNistp256 | KeyType::EcdsaNistp384 | KeyType::EcdsaNistp521 => {
                let (curve, point) = read_ecdsa(key_type, &mut reader)?;
                Self::Ecdsa(curve, point)
            }
            KeyType::SkEcdsaNistp256 => {
                let (curve, point) = read_ecdsa(KeyType::EcdsaNistp256, &mut reader)?;
                Self::SkEcdsa(curve, point, reader.string()?)
            }
        };
        reader.finish()?;
        Ok(parts)
    }

    fn read_rsa(reader: &mut Reader<'a>) -> Result<Self, KeyBlobError> {
        let e = reader.mpint()?;
        let n = reader.mpint()?;
        let odd = e.last().is_some_and(|last| last & 1 == 1);
        if e.len() > MAX_RSA_EXPONENT_BYTES || !odd || e == [1] {
            return Err(KeyBlobError::RsaExponent);
        }
        let bits = bits(n);
        if !(MIN_RSA_BITS..=MAX_RSA_BITS).contains(&bits) {
            return Err(KeyBlobError::RsaModulus { bits });
        }
        Ok(Self::Rsa { e, n })
    }

    fn verify(&self, algorithm: SignatureAlgorithm, data: &[u8], value: &[u8], added: &[u8]) -> Option<()> {
        match *self {
            Self::Ed25519(key) => verify_ed25519(key, data, value),
            Self::Ecdsa(curve, point) => verify_ecdsa(curve, point, data, value),
            Self::SkEd25519(key, application) => {
                verify_ed25519(key, &signed_by_security_key(application, added, data), value)
            }
            Self::SkEcdsa(curve, point, application) => verify_ecdsa(
                curve,
                point,
                &signed_by_security_key(application, added, data),
                value,
            ),
            Self::Rsa { e, n } => {
                let parameters = match algorithm {
                    SignatureAlgorithm::RsaSha2_256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    SignatureAlgorithm::RsaSha2_512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    SignatureAlgorithm::Ed25519
                    | SignatureAlgorithm::EcdsaNistp256
                    | SignatureAlgorithm::EcdsaNistp384
                    | SignatureAlgorithm::EcdsaNistp521
                    | SignatureAlgorithm::SkEd25519
                    | SignatureAlgorithm::SkEcdsaNistp256 => return None,
                };
                signature::RsaPublicKeyComponents { n, e }
                    .verify(parameters, data, value)
                    .ok()
            }
        }
    }
}

fn read_ed25519<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], KeyBlobError> {
    let key = reader.string()?;
    if key.len() == 32 {
        Ok(key)
    } else {
        Err(KeyBlobError::WrongLength)
    }
}

fn read_ecdsa<'a>(
    key_type: KeyType,
    reader: &mut Reader<'a>,
) -> Result<(&'static Curve, &'a [u8]), KeyBlobError> {
    let curve = Curve::of(key_type).ok_or(KeyBlobError::UnknownType)?;
    if reader.string()? != curve.name.as_bytes() {
        return Err(KeyBlobError::WrongCurve);
    }
    // Uncompressed points only, as everyone sends them: 4, x, y (SEC 1 §2.3.3).
    let point = reader.string()?;
    if point.len() != 1 + 2 * curve.scalar || point.first() != Some(&4) {
        return Err(KeyBlobError::WrongLength);
    }
    Ok((curve, point))
}

fn verify_ed25519(key: &[u8], data: &[u8], value: &[u8]) -> Option<()> {
    signature::UnparsedPublicKey::new(&signature::ED25519, key)
        .verify(data, value)
        .ok()
}

fn verify_ecdsa(curve: &Curve, point: &[u8], data: &[u8], value: &[u8]) -> Option<()> {
    let fixed = fixed_length(value, curve.scalar)?;
    signature::UnparsedPublicKey::new(curve.verifier, point)
        .verify(data, &fixed)
        .ok()
}

/// What a security key signs in place of `data` (OpenSSH PROTOCOL.u2f).
fn signed_by_security_key(application: &[u8], added: &[u8], data: &[u8]) -> BytesMut {
    let hash = |bytes| digest::digest(&digest::SHA256, bytes);
    let mut signed = BytesMut::new();
    Writer::new(&mut signed)
        .raw(hash(application).as_ref())
        .raw(added)
        .raw(hash(data).as_ref());
    signed
}

/// The size of a number without leading zero bytes.
fn bits(number: &[u8]) -> usize {
    let unused = number.first().map_or(0, |first| first.leading_zeros() as usize);
    number.len() * 8 - unused
}

/// `mpint r, mpint s` (RFC 5656 §3.1.2) as the two numbers side by side, which is what the library takes.
fn fixed_length(value: &[u8], scalar: usize) -> Option<Vec<u8>> {
    let mut reader = Reader::new(value);
    let numbers = [reader.mpint().ok()?, reader.mpint().ok()?];
    reader.finish().ok()?;
    let mut fixed = Vec::with_capacity(2 * scalar);
    for number in numbers {
        let zeros = scalar.checked_sub(number.len())?;
        fixed.resize(fixed.len() + zeros, 0);
        fixed.extend_from_slice(number);
    }
    Some(fixed)
}

impl From<Violation> for KeyBlobError {
    fn from(_: Violation) -> Self {
        Self::Malformed
    }
}

impl From<KeyBlobError> for Error {
    fn from(error: KeyBlobError) -> Self {
        Self::Violation(Violation::HostKey(error))
    }
}

impl fmt::Display for KeyBlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("malformed key"),
            Self::UnknownType => f.write_str("unknown key type"),
            Self::WrongLength => f.write_str("key of the wrong length"),
            Self::WrongCurve => f.write_str("key on the wrong curve"),
            Self::RsaModulus { bits } => {
                write!(
                    f,
                    "RSA key of {bits} bits, outside {MIN_RSA_BITS} to {MAX_RSA_BITS}"
                )
            }
            Self::RsaExponent => f.write_str("RSA key with an unusable exponent"),
        }
    }
}

impl std::error::Error for KeyBlobError {}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
