//! The key exchange methods: what each side sends and how both come to one secret. It decides lengths and encodings;
//! it never decides which method is used or whom the peer is.

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::{digest, kem};
use sntrup::sntrup761;
use zeroize::Zeroizing;

use super::derive::SharedSecret;
use super::random::Random;
use crate::algorithms::Kex;
use crate::{Error, Violation};

const MLKEM768_PUBLIC: usize = 1184;
const MLKEM768_CIPHERTEXT: usize = 1088;

/// A curve on which both sides draw a key.
pub(super) struct Curve {
    agreement: &'static agreement::Algorithm,
    /// The length of a public value.
    public: usize,
    /// What each public value begins with.
    form: &'static [u8],
}

/// An uncompressed point: 4, x, y (SEC 1 §2.3.3). RFC 5656 §4 allows compressed ones too; nobody sends them.
const UNCOMPRESSED: &[u8] = &[4];

impl Curve {
    #[cfg(test)]
    pub(super) fn agreement(&self) -> &'static agreement::Algorithm {
        self.agreement
    }
}

pub(super) static CURVE25519: Curve = Curve {
    agreement: &X25519,
    public: 32,
    form: &[],
};
pub(super) static NISTP256: Curve = Curve {
    agreement: &ECDH_P256,
    public: 1 + 2 * 32,
    form: UNCOMPRESSED,
};
pub(super) static NISTP384: Curve = Curve {
    agreement: &ECDH_P384,
    public: 1 + 2 * 48,
    form: UNCOMPRESSED,
};
pub(super) static NISTP521: Curve = Curve {
    agreement: &ECDH_P521,
    public: 1 + 2 * 66,
    form: UNCOMPRESSED,
};

/// What a method is made of.
enum Parts {
    /// The secret is the number that both sides find on the curve.
    Curve(&'static Curve),
    /// ML-KEM-768 beside X25519.
    Mlkem,
    /// Streamlined NTRU Prime beside X25519.
    Sntrup,
}

/// The client's secrets between its half and the server's.
pub(super) enum Offer {
    Curve(&'static Curve, PrivateKey),
    Mlkem(kem::DecapsulationKey, PrivateKey),
    Sntrup(Box<sntrup761::DecapsulationKey>, PrivateKey),
}

/// The hash that a method goes with (RFC 5656 §6.2.1, RFC 8731 §3, the drafts of the hybrids).
pub(super) fn hash(kex: Kex) -> &'static digest::Algorithm {
    match kex {
        Kex::Mlkem768X25519 | Kex::Curve25519 | Kex::Curve25519LibSsh | Kex::EcdhNistp256 => &digest::SHA256,
        Kex::EcdhNistp384 => &digest::SHA384,
        Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh | Kex::EcdhNistp521 => &digest::SHA512,
    }
}

fn parts(kex: Kex) -> Parts {
    match kex {
        Kex::Mlkem768X25519 => Parts::Mlkem,
        Kex::Sntrup761X25519 | Kex::Sntrup761X25519OpenSsh => Parts::Sntrup,
        Kex::Curve25519 | Kex::Curve25519LibSsh => Parts::Curve(&CURVE25519),
        Kex::EcdhNistp256 => Parts::Curve(&NISTP256),
        Kex::EcdhNistp384 => Parts::Curve(&NISTP384),
        Kex::EcdhNistp521 => Parts::Curve(&NISTP521),
    }
}

impl Offer {
    /// Draws new secrets; returns them with the public value that the client sends.
    pub(super) fn new(kex: Kex) -> Result<(Self, Vec<u8>), Error> {
        match parts(kex) {
            Parts::Curve(curve) => {
                let (private, public) = ephemeral(curve)?;
                Ok((Self::Curve(curve, private), public))
            }
            Parts::Mlkem => {
                let (private, public) = ephemeral(&CURVE25519)?;
                let decapsulation = kem::DecapsulationKey::generate(&kem::ML_KEM_768)?;
                let mut value = decapsulation.encapsulation_key()?.key_bytes()?.as_ref().to_vec();
                value.extend_from_slice(&public);
                Ok((Self::Mlkem(decapsulation, private), value))
            }
            Parts::Sntrup => {
                let (private, public) = ephemeral(&CURVE25519)?;
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
            Self::Curve(curve, private) => agree(&private, curve, reply, SharedSecret::mpint),
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
    match parts(kex) {
        Parts::Curve(curve) => {
            let (private, public) = ephemeral(curve)?;
            Ok((public, agree(&private, curve, offer, SharedSecret::mpint)?))
        }
        Parts::Mlkem => {
            let (key, theirs) = split(offer, MLKEM768_PUBLIC)?;
            let key = kem::EncapsulationKey::new(&kem::ML_KEM_768, key).map_err(|_| Violation::KexValue)?;
            let (ciphertext, secret) = key.encapsulate().map_err(|_| Violation::KexValue)?;
            respond_hybrid(&digest::SHA256, ciphertext.as_ref(), secret.as_ref(), theirs)
        }
        Parts::Sntrup => {
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
    let (private, public) = ephemeral(&CURVE25519)?;
    let shared = hybrid(hash, secret, &private, theirs)?;
    Ok(([ciphertext, &public].concat(), shared))
}

/// Both drafts: the hash of the post-quantum secret and the classical one, as bytes.
pub(super) fn hybrid(
    hash: &'static digest::Algorithm,
    post_quantum: &[u8],
    private: &PrivateKey,
    public: &[u8],
) -> Result<SharedSecret, Error> {
    agree(private, &CURVE25519, public, |classical| {
        let both = Zeroizing::new([post_quantum, classical].concat());
        SharedSecret::string(digest::digest(hash, &both).as_ref())
    })
}

fn ephemeral(curve: &Curve) -> Result<(PrivateKey, Vec<u8>), Error> {
    let private = PrivateKey::generate(curve.agreement)?;
    let public = private.compute_public_key()?.as_ref().to_vec();
    Ok((private, public))
}

/// Length and form are checked here because the library would take other encodings of a point as well. It refuses
/// points off the curve and an all-zero result.
pub(super) fn agree(
    private: &PrivateKey,
    curve: &Curve,
    public: &[u8],
    encode: impl FnOnce(&[u8]) -> SharedSecret,
) -> Result<SharedSecret, Error> {
    if public.len() != curve.public || !public.starts_with(curve.form) {
        return Err(Violation::KexValue.into());
    }
    let public = UnparsedPublicKey::new(curve.agreement, public);
    agreement::agree(private, public, Violation::KexValue.into(), |secret| {
        Ok(encode(secret))
    })
}

fn split(value: &[u8], first: usize) -> Result<(&[u8], &[u8]), Violation> {
    value.split_at_checked(first).ok_or(Violation::KexValue)
}
