//! The curves of ECDSA keys, one line each. Decides names, lengths and hashes (RFC 5656 §6.2.1); the arithmetic is the
//! library's.

use aws_lc_rs::signature::{self, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm};

use crate::algorithms::KeyType;

pub(super) struct Curve {
    pub(super) key_type: KeyType,
    /// RFC 5656 §10.1.
    pub(super) name: &'static str,
    /// Its object identifier in DER (RFC 5480 §2.1.1.1).
    pub(super) object: &'static [u8],
    /// Length of one coordinate and of the order.
    pub(super) scalar: usize,
    pub(super) verifier: &'static EcdsaVerificationAlgorithm,
    pub(super) signer: &'static EcdsaSigningAlgorithm,
}

pub(super) static CURVES: [Curve; 3] = [
    Curve {
        key_type: KeyType::EcdsaNistp256,
        name: "nistp256",
        object: &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        scalar: 32,
        verifier: &signature::ECDSA_P256_SHA256_FIXED,
        signer: &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
    },
    Curve {
        key_type: KeyType::EcdsaNistp384,
        name: "nistp384",
        object: &[0x2b, 0x81, 0x04, 0x00, 0x22],
        scalar: 48,
        verifier: &signature::ECDSA_P384_SHA384_FIXED,
        signer: &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
    },
    Curve {
        key_type: KeyType::EcdsaNistp521,
        name: "nistp521",
        object: &[0x2b, 0x81, 0x04, 0x00, 0x23],
        scalar: 66,
        verifier: &signature::ECDSA_P521_SHA512_FIXED,
        signer: &signature::ECDSA_P521_SHA512_FIXED_SIGNING,
    },
];

impl Curve {
    /// The curve of a type; `None` if its keys are not on one of these.
    pub(super) fn of(key_type: KeyType) -> Option<&'static Self> {
        CURVES.iter().find(|curve| curve.key_type == key_type)
    }
}
