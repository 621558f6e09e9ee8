//! Key files built by hand, sound and damaged. What `ssh-keygen` writes is tested in `tests/key_files.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64ct::{Base64, Encoding};
use bytes::BytesMut;

mod pkcs;

use super::*;
use crate::algorithms::SignatureAlgorithm;
use crate::wire::Writer;

/// One scalar in 256 begins with a zero byte; this one does.
const SHORT_SCALAR: &str = "-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQQ/i+JWsigHUaorJEb5U1STa9/9UtE9
cVBQfSzwETjqz0BNjVy2+EQ/7g550gaq0yPqiqXgI3x71QajDMKJOg9wAAAAoPFcPrHxXD
6xAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBD+L4layKAdRqisk
RvlTVJNr3/1S0T1xUFB9LPAROOrPQE2NXLb4RD/uDnnSBqrTI+qKpeAjfHvVBqMMwok6D3
AAAAAgAJV5H3ibhdfiP6+5w3HYokLragHqFEiaTL2sCihFCCgAAAAFc2hvcnQBAgM=
-----END OPENSSH PRIVATE KEY-----
";

/// A key file, field by field, each of which a test may spoil.
struct Parts {
    cipher: &'static str,
    kdf: &'static str,
    kdf_options: Vec<u8>,
    keys: u32,
    public: Vec<u8>,
    checks: (u32, u32),
    private_type: &'static str,
    private_public: Vec<u8>,
    seed_and_public: Vec<u8>,
    padding: Vec<u8>,
    after: Vec<u8>,
}

fn written(fill: impl for<'b, 'w> FnOnce(&'b mut Writer<'w>) -> &'b mut Writer<'w>) -> Vec<u8> {
    let mut out = BytesMut::new();
    fill(&mut Writer::new(&mut out));
    out.to_vec()
}

impl Parts {
    fn sound() -> Self {
        let seed = [7; 32];
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let public = pair.public_key().as_ref().to_vec();
        Self {
            cipher: "none",
            kdf: "none",
            kdf_options: Vec::new(),
            keys: 1,
            public: written(|w| w.string("ssh-ed25519").string(&public)),
            checks: (5, 5),
            private_type: "ssh-ed25519",
            seed_and_public: [&seed[..], &public].concat(),
            private_public: public,
            padding: vec![1, 2, 3],
            after: Vec::new(),
        }
    }

    fn file(&self) -> Vec<u8> {
        let private = written(|w| {
            w.uint32(self.checks.0)
                .uint32(self.checks.1)
                .string(self.private_type);
            w.string(&self.private_public)
                .string(&self.seed_and_public)
                .string("comment")
                .raw(&self.padding)
        });
        let bytes = written(|w| {
            w.raw(b"openssh-key-v1\0")
                .string(self.cipher)
                .string(self.kdf)
                .string(&self.kdf_options);
            w.uint32(self.keys)
                .string(&self.public)
                .string(private)
                .raw(&self.after)
        });
        armoured(&bytes)
    }
}

fn armoured(bytes: &[u8]) -> Vec<u8> {
    let base64 = Base64::encode_string(bytes);
    format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{base64}\n-----END OPENSSH PRIVATE KEY-----\n").into_bytes()
}

#[track_caller]
fn check(spoil: impl FnOnce(&mut Parts), expected: KeyFileError) {
    let mut parts = Parts::sound();
    spoil(&mut parts);
    match PrivateKey::parse(&parts.file(), None) {
        Ok(_) => panic!("taken instead of {expected:?}"),
        Err(error) => assert_eq!(error, expected),
    }
}

#[test]
fn a_sound_file_signs_and_hides_its_secret() {
    let key = PrivateKey::parse(&Parts::sound().file(), None).unwrap();
    assert_eq!(key.comment(), "comment");
    let signature = key.sign(SignatureAlgorithm::Ed25519, b"data").unwrap();
    assert_eq!(
        key.public()
            .verify(SignatureAlgorithm::Ed25519, b"data", &signature),
        Ok(())
    );
    assert!(
        key.public()
            .verify(SignatureAlgorithm::Ed25519, b"other", &signature)
            .is_err()
    );
    assert_eq!(
        key.sign(SignatureAlgorithm::RsaSha2_256, b"data"),
        Err(SignError::WrongAlgorithm)
    );
    let shown = format!("{key:?} {:?}", KeyFile::parse(&Parts::sound().file()).unwrap());
    assert!(!shown.contains("7, 7"), "{shown}");
}

#[test]
fn a_scalar_that_begins_with_zero_is_a_key_like_any_other() {
    let key = PrivateKey::parse(SHORT_SCALAR.as_bytes(), None).unwrap();
    let signature = key.sign(SignatureAlgorithm::EcdsaNistp256, b"data").unwrap();
    assert_eq!(
        key.public()
            .verify(SignatureAlgorithm::EcdsaNistp256, b"data", &signature),
        Ok(())
    );
}

#[test]
fn each_damage_has_its_error() {
    check(|p| p.keys = 2, Unsupported::SeveralKeys.into());
    check(|p| p.keys = 0, Unsupported::SeveralKeys.into());
    check(|p| p.checks = (1, 2), KeyFileError::Malformed);
    check(|p| p.padding = vec![1, 2, 4], KeyFileError::Malformed);
    check(|p| p.after = vec![0], KeyFileError::Malformed);
    check(
        |p| p.public.push(0),
        KeyFileError::Unusable(KeyBlobError::Malformed),
    );
    check(
        |p| p.public = written(|w| w.string("ssh-dss")),
        Unsupported::KeyType("ssh-dss".to_owned()).into(),
    );
    check(
        |p| p.private_type = "ssh-dss",
        Unsupported::KeyType("ssh-dss".to_owned()).into(),
    );
    check(|p| p.private_public.truncate(31), KeyFileError::PublicMismatch);
    check(|p| p.seed_and_public.truncate(63), KeyFileError::PublicMismatch);
    check(|p| p.seed_and_public.truncate(31), KeyFileError::Malformed);
    // A seed of another key.
    check(
        |p| {
            p.seed_and_public
                .first_mut()
                .into_iter()
                .for_each(|byte| *byte = 8)
        },
        KeyFileError::PublicMismatch,
    );
    check(
        |p| p.private_type = "ecdsa-sha2-nistp256",
        KeyFileError::Malformed,
    );
}

#[test]
fn protection_that_is_unknown_or_endless_is_refused_before_any_work() {
    let options = |rounds| written(|w| w.string([0; 16]).uint32(rounds));
    check(|p| p.cipher = "rot13", Unsupported::Kdf("none".to_owned()).into());
    check(|p| p.kdf = "scrypt", Unsupported::Kdf("scrypt".to_owned()).into());
    let bcrypt = |p: &mut Parts, cipher, rounds| {
        (p.cipher, p.kdf, p.kdf_options) = (cipher, "bcrypt", options(rounds));
    };
    check(
        |p| bcrypt(p, "rot13", 16),
        Unsupported::Cipher("rot13".to_owned()).into(),
    );
    // A name that the format has and this build can't open: nobody is to be asked for its passphrase.
    check(
        |p| bcrypt(p, "3des-cbc", 16),
        Unsupported::Cipher("3des-cbc".to_owned()).into(),
    );
    check(
        |p| bcrypt(p, "none", 16),
        Unsupported::Cipher("none".to_owned()).into(),
    );
    check(
        |p| bcrypt(p, "aes256-ctr", u32::MAX),
        Unsupported::KdfRounds(u32::MAX).into(),
    );
    check(|p| bcrypt(p, "aes256-ctr", 16), KeyFileError::Encrypted);
    check(
        |p| bcrypt(p, "aes256-gcm@openssh.com", 16),
        KeyFileError::Malformed,
    );
}

#[test]
fn a_file_cut_anywhere_is_an_error_and_no_panic() {
    let file = Parts::sound().file();
    let text = String::from_utf8(file).unwrap();
    let body = text.lines().nth(1).unwrap();
    let bytes = Base64::decode_vec(body).unwrap();
    for length in 0..bytes.len() {
        let cut = armoured(bytes.get(..length).unwrap());
        assert!(PrivateKey::parse(&cut, None).is_err(), "{length} bytes");
    }
    for length in 0..text.trim_end().len() {
        assert!(
            PrivateKey::parse(text.get(..length).unwrap().as_bytes(), None).is_err(),
            "{length} characters"
        );
    }
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let text = String::from_utf8(Parts::sound().file()).unwrap();
    let bytes = Base64::decode_vec(text.lines().nth(1).unwrap()).unwrap();
    let sound = PrivateKey::parse(text.as_bytes(), None).unwrap();
    for position in 0..bytes.len() * 8 {
        let mut spoiled = bytes.clone();
        *spoiled.get_mut(position / 8).unwrap() ^= 1 << (position % 8);
        // Only the comment may change without making the key another one.
        if let Ok(key) = PrivateKey::parse(&armoured(&spoiled), None) {
            assert_eq!(key.public(), sound.public(), "bit {position}");
            let signature = key.sign(SignatureAlgorithm::Ed25519, b"x").unwrap();
            assert_eq!(
                sound
                    .public()
                    .verify(SignatureAlgorithm::Ed25519, b"x", &signature),
                Ok(())
            );
        }
    }
}

#[test]
fn what_cannot_be_read_is_named_with_what_to_do() {
    for (text, expected, words) in [
        (
            "-----BEGIN DSA PRIVATE KEY-----",
            Unsupported::Dsa,
            "DSA key: not supported yet",
        ),
        (
            "PuTTY-User-Key-File-3: ssh-ed25519",
            Unsupported::Putty,
            "PuTTY key file: not supported yet",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,00\r\n\r\n\
             AAAA\r\n-----END RSA PRIVATE KEY-----",
            Unsupported::LegacyEncryption,
            "old PEM encryption (`ssh-keygen -p -f FILE` converts it): not supported yet",
        ),
    ] {
        let error = KeyFile::parse(format!("{text}\r\nAAAA\n").as_bytes()).unwrap_err();
        assert_eq!(error, KeyFileError::Unsupported(expected), "{text}");
        assert_eq!(error.to_string(), words);
    }
    for nonsense in [
        "",
        "ssh-ed25519 AAAA",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "\u{0}",
    ] {
        assert_eq!(
            KeyFile::parse(nonsense.as_bytes()).unwrap_err(),
            KeyFileError::Malformed,
            "{nonsense:?}"
        );
    }
    assert_eq!(
        KeyFile::parse(&vec![b' '; 2 << 20]).unwrap_err(),
        KeyFileError::TooLarge
    );
}

#[test]
fn public_key_files_are_read_line_by_line() {
    let key = PrivateKey::parse(&Parts::sound().file(), None).unwrap();
    let base64 = Base64::encode_string(key.public().blob());
    for (text, comment) in [
        (format!("ssh-ed25519 {base64}"), ""),
        (
            format!("# note\n\n  ssh-ed25519\t{base64}  me at home \r\nrest"),
            "me at home",
        ),
    ] {
        let line = PublicKey::parse_line(&text).unwrap();
        assert_eq!((&line.key, line.comment.as_str()), (key.public(), comment));
    }
    for (text, expected) in [
        (String::new(), KeyFileError::Malformed),
        ("ssh-ed25519".to_owned(), KeyFileError::Malformed),
        (format!("ssh-rsa {base64}"), KeyFileError::Malformed),
        (format!("ssh-ed25519 {base64}A"), KeyFileError::Malformed),
        (
            "ssh-ed25519 AAAA".to_owned(),
            KeyFileError::Unusable(KeyBlobError::Malformed),
        ),
        (
            format!("ssh-dss {}", "AAAAB3NzaC1kc3M="),
            Unsupported::KeyType("ssh-dss".to_owned()).into(),
        ),
        (
            format!("ssh-ed25519 {}", "A".repeat(40_000)),
            KeyFileError::TooLarge,
        ),
    ] {
        assert_eq!(PublicKey::parse_line(&text), Err(expected), "{text:.40}");
    }
}
