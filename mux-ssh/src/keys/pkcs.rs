//! The formats that OpenSSL writes: PKCS #1 (RFC 8017 §A.1.2), SEC 1 (RFC 5915) and PKCS #8 (RFC 5958). Decides which kind
//! of key is inside; the key itself is read by the library.

use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::signature::{EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use bytes::BytesMut;

use super::armour::Label;
use super::curve::{CURVES, Curve};
use super::der::{self, Der};
use super::file_error::{KeyFileError, Unsupported};
use super::private::PrivateKey;
use super::public::PublicKey;
use super::signer::Signer;
use crate::algorithms::KeyType;
use crate::wire::Writer;

/// rsaEncryption, 1.2.840.113549.1.1.1 (RFC 8017 §A.1).
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// id-ecPublicKey, 1.2.840.10045.2.1 (RFC 5480 §2.1.1).
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// id-Ed25519, 1.3.101.112 (RFC 8410 §3).
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// id-dsa, 1.2.840.10040.4.1 (RFC 3279 §2.3.2).
const DSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01];

/// What is inside, before the library has read it.
enum Kind {
    Ed25519,
    Ecdsa(&'static Curve),
    /// Its public half, which costs nothing to read and tells whether the key may be used.
    Rsa(PublicKey),
}

/// The public half of an unencrypted key.
pub(super) fn public(label: Label, der: &[u8]) -> Result<PublicKey, KeyFileError> {
    match kind(label, der)? {
        Kind::Rsa(public) => Ok(public),
        kind @ (Kind::Ed25519 | Kind::Ecdsa(_)) => {
            let key = private_of(&kind, label, der)?;
            Ok(key.public().clone())
        }
    }
}

/// The key.
pub(super) fn private(label: Label, der: &[u8]) -> Result<PrivateKey, KeyFileError> {
    private_of(&kind(label, der)?, label, der)
}

/// The library checks that the numbers belong together.
fn private_of(kind: &Kind, label: Label, der: &[u8]) -> Result<PrivateKey, KeyFileError> {
    let damaged = |_: KeyRejected| KeyFileError::Malformed;
    let signer = match kind {
        Kind::Ed25519 => Signer::Ed25519(Ed25519KeyPair::from_pkcs8(der).map_err(damaged)?),
        // SEC 1 and PKCS #8 alike.
        Kind::Ecdsa(curve) => {
            let pair = EcdsaKeyPair::from_private_key_der(curve.signer, der).map_err(damaged)?;
            Signer::Ecdsa(curve, pair)
        }
        Kind::Rsa(_) => {
            let read = match label {
                Label::Pkcs1 => RsaKeyPair::from_der,
                Label::OpenSsh | Label::Sec1 | Label::Pkcs8 | Label::EncryptedPkcs8 => RsaKeyPair::from_pkcs8,
            };
            Signer::Rsa(read(der).map_err(damaged)?)
        }
    };
    PrivateKey::from_signer(signer, String::new())
}

fn kind(label: Label, der: &[u8]) -> Result<Kind, KeyFileError> {
    match label {
        Label::Pkcs1 => rsa(der),
        Label::Sec1 => sec1(der),
        Label::Pkcs8 | Label::EncryptedPkcs8 => pkcs8(der),
        Label::OpenSsh => Err(KeyFileError::Malformed),
    }
}

/// `RSAPrivateKey`: version, modulus, public exponent, ….
fn rsa(der: &[u8]) -> Result<Kind, KeyFileError> {
    let mut fields = Der::document(der)?;
    // 1 is a key of more than two primes.
    if fields.small()? != 0 {
        return Err(Unsupported::KeyType("RSA with more than two primes".to_owned()).into());
    }
    let (n, e) = (fields.number()?, fields.number()?);
    let mut blob = BytesMut::new();
    Writer::new(&mut blob)
        .string(KeyType::Rsa.name())
        .mpint(e)
        .mpint(n);
    PublicKey::parse(&blob)
        .map(Kind::Rsa)
        .map_err(KeyFileError::Unusable)
}

/// `ECPrivateKey`: version, private key, the curve, ….
fn sec1(der: &[u8]) -> Result<Kind, KeyFileError> {
    let mut fields = Der::document(der)?;
    if fields.small()? != 1 {
        return Err(KeyFileError::Malformed);
    }
    fields.octets()?;
    curve(&mut fields.tagged(0)?)
}

/// `OneAsymmetricKey`: version, algorithm, private key, ….
fn pkcs8(der: &[u8]) -> Result<Kind, KeyFileError> {
    let mut fields = Der::document(der)?;
    // 1 comes with a public key behind the private one.
    if fields.small()? > 1 {
        return Err(KeyFileError::Malformed);
    }
    let mut algorithm = fields.sequence()?;
    match algorithm.object()? {
        RSA => rsa(fields.octets()?),
        EC => curve(&mut algorithm),
        ED25519 => Ok(Kind::Ed25519),
        DSA => Err(Unsupported::Dsa.into()),
        other => Err(Unsupported::KeyType(der::dotted(other)).into()),
    }
}

/// A named curve; others can't be written in SSH.
fn curve(parameters: &mut Der<'_>) -> Result<Kind, KeyFileError> {
    let object = parameters.object()?;
    CURVES
        .iter()
        .find(|curve| curve.object == object)
        .map(Kind::Ecdsa)
        .ok_or_else(|| Unsupported::KeyType(format!("ECDSA on curve {}", der::dotted(object))).into())
}
