//! The key exchange methods: what each side sends and how both come to one secret. It decides lengths and encodings;
//! it never decides which method is used or whom the peer is.

use aws_lc_rs::agreement::{self, ECDH_P256, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::{digest, kem};
use sntrup::sntrup761;
use zeroize::Zeroizing;

use super::derive::SharedSecret;
use super::random::Random;
use crate::algorithms::Kex;
use crate::{Error, Violation};

const X25519_PUBLIC: usize = 32;
const P256_PUBLIC: usize = 65;
const MLKEM768_PUBLIC: usize = 1184;
const MLKEM768_CIPHERTEXT: usize = 1088;

/// The client's secrets between its half and the server's.
pub(super) enum Offer {
    X25519(PrivateKey),
    P256(PrivateKey),
    Mlkem(kem::DecapsulationKey, PrivateKey),
    Sntrup(Box<sntrup761::DecapsulationKey>, PrivateKey),
}

/// The hash that a method goes with.
pub(super) fn hash(kex: Kex) -> &'static digest::Algorithm {
    match kex {
        Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh => &digest::SHA512,
        Kex::Mlkem768X25519 | Kex::Curve25519 | Kex::Curve25519LibSsh | Kex::EcdhNistp256 => &digest::SHA256,
    }
}

impl Offer {
    /// Draws new secrets; returns them with the public value that the client sends.
    pub(super) fn new(kex: Kex) -> Result<(Self, Vec<u8>), Error> {
        match kex {
            Kex::Curve25519 | Kex::Curve25519LibSsh => {
                let (private, public) = ephemeral(&X25519)?;
                Ok((Self::X25519(private), public))
            }
            Kex::EcdhNistp256 => {
                let (private, public) = ephemeral(&ECDH_P256)?;
                Ok((Self::P256(private), public))
            }
            Kex::Mlkem768X25519 => {
                let (private, public) = ephemeral(&X25519)?;
                let decapsulation = kem::DecapsulationKey::generate(&kem::ML_KEM_768)?;
                let mut value = decapsulation.encapsulation_key()?.key_bytes()?.as_ref().to_vec();
                value.extend_from_slice(&public);
                Ok((Self::Mlkem(decapsulation, private), value))
            }
            Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh => {
                let (private, public) = ephemeral(&X25519)?;
                let (encapsulation, decapsulation) = sntrup761::generate_key(&mut Random);
                let mut value = encapsulation.as_ref().to_vec();
                value.extend_from_slice(&public);
                Ok((Self::Sntrup(Box::new(decapsulation), private), value))
            }
        }
    }

    /// The secret, from the public value that the server sent.
    pub(super) fn finish(self, reply: &[u8]) -> Result<SharedSecret, Error> {
        match self {
            Self::X25519(private) => agree(&private, &X25519, X25519_PUBLIC, reply, SharedSecret::mpint),
            Self::P256(private) => agree(&private, &ECDH_P256, P256_PUBLIC, reply, SharedSecret::mpint),
            Self::Mlkem(decapsulation, private) => {
                let (ciphertext, public) = split(reply, MLKEM768_CIPHERTEXT)?;
                let secret = decapsulation
                    .decapsulate(ciphertext.into())
                    .map_err(|_| Violation::KexValue)?;
                hybrid(&digest::SHA256, secret.as_ref(), &private, public)
            }
            Self::Sntrup(decapsulation, private) => {
                let (ciphertext, public) = split(reply, sntrup761::CIPHERTEXT_SIZE)?;
                let ciphertext = ciphertext.try_into().map_err(|_| Violation::KexValue)?;
                let secret = decapsulation.decapsulate(&ciphertext);
                hybrid(&digest::SHA512, secret.as_ref(), &private, public)
            }
        }
    }
}

/// The server's half: the public value that it sends, and the secret.
pub(super) fn respond(kex: Kex, offer: &[u8]) -> Result<(Vec<u8>, SharedSecret), Error> {
    match kex {
        Kex::Curve25519 | Kex::Curve25519LibSsh => {
            let (private, public) = ephemeral(&X25519)?;
            Ok((
                public,
                agree(&private, &X25519, X25519_PUBLIC, offer, SharedSecret::mpint)?,
            ))
        }
        Kex::EcdhNistp256 => {
            let (private, public) = ephemeral(&ECDH_P256)?;
            Ok((
                public,
                agree(&private, &ECDH_P256, P256_PUBLIC, offer, SharedSecret::mpint)?,
            ))
        }
        Kex::Mlkem768X25519 => {
            let (key, theirs) = split(offer, MLKEM768_PUBLIC)?;
            let key = kem::EncapsulationKey::new(&kem::ML_KEM_768, key).map_err(|_| Violation::KexValue)?;
            let (ciphertext, secret) = key.encapsulate().map_err(|_| Violation::KexValue)?;
            respond_hybrid(&digest::SHA256, ciphertext.as_ref(), secret.as_ref(), theirs)
        }
        Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh => {
            let (key, theirs) = split(offer, sntrup761::PUBLIC_KEY_SIZE)?;
            let key = sntrup761::EncapsulationKey::try_from(key).map_err(|_| Violation::KexValue)?;
            let (ciphertext, secret) = key.encapsulate(&mut Random);
            respond_hybrid(&digest::SHA512, ciphertext.as_ref(), secret.as_ref(), theirs)
        }
    }
}

fn respond_hybrid(
    hash: &'static digest::Algorithm,
    ciphertext: &[u8],
    secret: &[u8],
    theirs: &[u8],
) -> Result<(Vec<u8>, SharedSecret), Error> {
    let (private, public) = ephemeral(&X25519)?;
    let shared = hybrid(hash, secret, &private, theirs)?;
    Ok(([ciphertext, &public].concat(), shared))
}

/// Both drafts: the hash of the post-quantum secret and the classical one, as bytes.
fn hybrid(
    hash: &'static digest::Algorithm,
    post_quantum: &[u8],
    private: &PrivateKey,
    public: &[u8],
) -> Result<SharedSecret, Error> {
    agree(private, &X25519, X25519_PUBLIC, public, |classical| {
        let both = Zeroizing::new([post_quantum, classical].concat());
        SharedSecret::string(digest::digest(hash, &both).as_ref())
    })
}

fn ephemeral(algorithm: &'static agreement::Algorithm) -> Result<(PrivateKey, Vec<u8>), Error> {
    let private = PrivateKey::generate(algorithm)?;
    let public = private.compute_public_key()?.as_ref().to_vec();
    Ok((private, public))
}

/// The length is checked here because the library would take other encodings of a point as well. It refuses points
/// off the curve and an all-zero result.
fn agree(
    private: &PrivateKey,
    algorithm: &'static agreement::Algorithm,
    length: usize,
    public: &[u8],
    encode: impl FnOnce(&[u8]) -> SharedSecret,
) -> Result<SharedSecret, Error> {
    if public.len() != length {
        return Err(Violation::KexValue.into());
    }
    let public = UnparsedPublicKey::new(algorithm, public);
    agreement::agree(private, public, Violation::KexValue.into(), |secret| {
        Ok(encode(secret))
    })
}

fn split(value: &[u8], first: usize) -> Result<(&[u8], &[u8]), Violation> {
    value.split_at_checked(first).ok_or(Violation::KexValue)
}
