//! Public keys against OpenSSH's own, and every way in which a blob can be wrong.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aws_lc_rs::digest;
use bytes::BytesMut;

use super::samples::{SAMPLES, SECURITY_KEYS, SIGNED_BY_SECURITY_KEYS, Sample};
use super::{KeyBlobError, MAX_RSA_BITS, PublicKey};
use crate::Violation;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::wire::Writer;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// What `ssh-keygen -Y sign -n t` signs for a file that holds `data` (OpenSSH PROTOCOL.sshsig).
fn signed_data() -> BytesMut {
    signed_file("t", "data")
}

fn signed_file(namespace: &str, content: &str) -> BytesMut {
    let mut data = BytesMut::new();
    let hash = digest::digest(&digest::SHA512, content.as_bytes());
    Writer::new(&mut data)
        .raw(b"SSHSIG")
        .string(namespace)
        .string("")
        .string("sha512")
        .string(hash.as_ref());
    data
}

fn key(sample: &Sample) -> PublicKey {
    PublicKey::parse(&bytes(sample.blob)).unwrap()
}

fn blob(write: impl FnOnce(&mut Writer<'_>)) -> BytesMut {
    let mut out = BytesMut::new();
    write(&mut Writer::new(&mut out));
    out
}

fn rejects(write: impl FnOnce(&mut Writer<'_>), expected: KeyBlobError) {
    assert_eq!(PublicKey::parse(&blob(write)), Err(expected));
}

#[test]
fn fingerprints_are_those_of_openssh() {
    for sample in SAMPLES {
        assert_eq!(key(sample).fingerprint_sha256(), sample.fingerprint);
        assert_eq!(key(sample).blob(), bytes(sample.blob));
        assert_eq!(key(sample).key_type(), sample.algorithm.key_type());
    }
}

#[test]
fn signatures_by_openssh_are_good() {
    for sample in SAMPLES {
        let result = key(sample).verify(sample.algorithm, &signed_data(), &bytes(sample.signature));
        assert_eq!(result, Ok(()), "{:?}", sample.algorithm);
    }
}

#[test]
fn signatures_by_security_keys_are_good_and_any_changed_bit_makes_them_bad() {
    let (namespace, content) = SIGNED_BY_SECURITY_KEYS;
    let data = signed_file(namespace, content);
    for sample in SECURITY_KEYS {
        let (key, good) = (key(sample), bytes(sample.signature));
        assert_eq!(key.fingerprint_sha256(), sample.fingerprint);
        assert!(key.key_type().is_security_key());
        assert_eq!(key.verify(sample.algorithm, &data, &good), Ok(()), "{key:?}");
        for offset in 0..good.len() {
            let mut bad = good.clone();
            bad[offset] ^= 1;
            assert!(
                key.verify(sample.algorithm, &data, &bad).is_err(),
                "{key:?} {offset}"
            );
        }
        for length in 0..good.len() {
            assert!(key.verify(sample.algorithm, &data, &good[..length]).is_err());
        }
    }
}

#[test]
fn signatures_over_anything_else_are_not() {
    for sample in SAMPLES {
        let mut data = signed_data();
        data[0] ^= 1;
        let result = key(sample).verify(sample.algorithm, &data, &bytes(sample.signature));
        assert_eq!(result, Err(Violation::Signature), "{:?}", sample.algorithm);
    }
}

#[test]
fn a_changed_bit_anywhere_in_a_signature_is_never_accepted() {
    for sample in SAMPLES {
        let (key, data, good) = (key(sample), signed_data(), bytes(sample.signature));
        for offset in 0..good.len() {
            let mut bad = good.clone();
            bad[offset] ^= 1;
            assert!(
                key.verify(sample.algorithm, &data, &bad).is_err(),
                "{:?} {offset}",
                sample.algorithm
            );
        }
    }
}

#[test]
fn a_signature_cut_short_or_drawn_out_is_never_accepted() {
    for sample in SAMPLES {
        let (key, data, mut signature) = (key(sample), signed_data(), bytes(sample.signature));
        for length in 0..signature.len() {
            assert!(key.verify(sample.algorithm, &data, &signature[..length]).is_err());
        }
        signature.push(0);
        assert_eq!(
            key.verify(sample.algorithm, &data, &signature),
            Err(Violation::TrailingBytes)
        );
    }
}

#[test]
fn a_signature_by_another_algorithm_than_agreed_is_refused() {
    let rsa = SAMPLES.last().unwrap();
    let result = key(rsa).verify(
        SignatureAlgorithm::RsaSha2_256,
        &signed_data(),
        &bytes(rsa.signature),
    );
    assert_eq!(result, Err(Violation::SignatureAlgorithm));
    let ed25519 = &SAMPLES[0];
    let result = key(rsa).verify(
        SignatureAlgorithm::Ed25519,
        &signed_data(),
        &bytes(ed25519.signature),
    );
    assert_eq!(result, Err(Violation::SignatureAlgorithm));
}

#[test]
fn ed25519_keys_of_the_wrong_length_are_refused() {
    for length in [0, 31, 33, 64] {
        rejects(
            |blob| {
                blob.string("ssh-ed25519").string(vec![1; length]);
            },
            KeyBlobError::WrongLength,
        );
    }
}

#[test]
fn ecdsa_points_that_are_compressed_short_or_on_another_curve_are_refused() {
    let ecdsa = |curve: &'static str, point: Vec<u8>| {
        move |blob: &mut Writer<'_>| {
            blob.string("ecdsa-sha2-nistp256").string(curve).string(point);
        }
    };
    rejects(ecdsa("nistp256", vec![2; 33]), KeyBlobError::WrongLength);
    rejects(ecdsa("nistp256", vec![4; 64]), KeyBlobError::WrongLength);
    rejects(ecdsa("nistp256", vec![5; 65]), KeyBlobError::WrongLength);
    rejects(ecdsa("nistp384", vec![4; 65]), KeyBlobError::WrongCurve);
}

#[test]
fn a_point_off_the_curve_verifies_nothing() {
    let off = blob(|blob| {
        blob.string("ecdsa-sha2-nistp256")
            .string("nistp256")
            .string([4; 65]);
    });
    let key = PublicKey::parse(&off).unwrap();
    let result = key.verify(
        SignatureAlgorithm::EcdsaNistp256,
        &signed_data(),
        &bytes(SAMPLES[1].signature),
    );
    assert_eq!(result, Err(Violation::Signature));
}

#[test]
fn rsa_keys_that_are_weak_huge_or_slow_are_refused() {
    let rsa = |exponent: Vec<u8>, modulus: usize| {
        move |blob: &mut Writer<'_>| {
            blob.string("ssh-rsa")
                .mpint(&exponent)
                .mpint(&vec![0xff; modulus]);
        }
    };
    rejects(rsa(vec![3], 128), KeyBlobError::RsaModulus { bits: 1024 });
    rejects(
        rsa(vec![3], MAX_RSA_BITS / 8 + 1),
        KeyBlobError::RsaModulus {
            bits: MAX_RSA_BITS + 8,
        },
    );
    rejects(rsa(vec![3], 2049), KeyBlobError::WrongLength);
    for exponent in [vec![], vec![1], vec![2], vec![1, 0, 0, 0, 1]] {
        rejects(rsa(exponent, 256), KeyBlobError::RsaExponent);
    }
    assert!(PublicKey::parse(&blob(rsa(vec![1, 0, 1], 256))).is_ok());
    assert!(PublicKey::parse(&blob(rsa(vec![1, 0, 1], MAX_RSA_BITS / 8))).is_ok());
}

#[test]
fn unknown_types_and_broken_blobs_are_refused() {
    for name in ["ssh-dss", "", "ssh-ed25519-cert-v01@openssh.com", "rsa-sha2-512"] {
        rejects(
            |blob| {
                blob.string(name);
            },
            KeyBlobError::UnknownType,
        );
    }
    for sample in SAMPLES {
        let whole = bytes(sample.blob);
        for length in 0..whole.len() {
            assert_eq!(PublicKey::parse(&whole[..length]), Err(KeyBlobError::Malformed));
        }
        assert_eq!(
            PublicKey::parse(&[whole, vec![0]].concat()),
            Err(KeyBlobError::Malformed)
        );
    }
}

#[test]
fn every_type_signs_with_algorithms_of_its_own_only() {
    for &key_type in KeyType::ALL {
        for algorithm in key_type.signature_algorithms() {
            assert_eq!(algorithm.key_type(), key_type);
        }
    }
}
