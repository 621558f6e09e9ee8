//! What `ssh-keygen` writes: every type, with and without a passphrase, and what it says about our signatures'
//! keys. (`apt install openssh-client` provides it.)

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mux_ssh::keys::{KeyFile, KeyFileError, PrivateKey, PublicKey, Unsupported};

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("key-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Makes a key and returns its file.
    fn key(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let path = self.0.join(name);
        ssh_keygen(
            &[
                &["-q", "-C", "a comment", "-f", path.to_str().unwrap()],
                arguments,
            ]
            .concat(),
        );
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn ssh_keygen(arguments: &[&str]) -> String {
    let output = Command::new("ssh-keygen")
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("ssh-keygen cannot be run ({error}): apt install openssh-client"));
    assert!(
        output.status.success(),
        "ssh-keygen {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The key must be the one in the `.pub` file, have ssh-keygen's fingerprint, and sign with everything that its
/// type signs with.
fn check(path: &Path, passphrase: Option<&str>) {
    let private = fs::read(path).unwrap();
    let public = PublicKey::parse_line(&fs::read_to_string(path.with_extension("pub")).unwrap()).unwrap();
    assert_eq!(public.comment, "a comment");
    let file = KeyFile::parse(&private).unwrap();
    // Encrypted PKCS #8 hides the public half as well, and no PEM file has a comment.
    let openssh = private.starts_with(b"-----BEGIN OPENSSH");
    assert_eq!(file.public().is_some(), openssh || passphrase.is_none());
    assert!(file.public().is_none_or(|stated| stated == &public.key));
    assert_eq!(file.is_encrypted(), passphrase.is_some());
    let key = file.unlock(passphrase.map(str::as_bytes)).unwrap();
    assert_eq!(key.public(), &public.key);
    assert_eq!(key.comment(), if openssh { "a comment" } else { "" });
    let listed = ssh_keygen(&["-l", "-f", path.to_str().unwrap()]);
    assert!(listed.contains(&public.key.fingerprint_sha256()), "{listed}");
    for &algorithm in key.public().key_type().signature_algorithms() {
        let signature = key.sign(algorithm, b"some data").unwrap();
        assert_eq!(
            key.public().verify(algorithm, b"some data", &signature),
            Ok(()),
            "{algorithm:?}"
        );
    }
    if passphrase.is_some() {
        assert_eq!(
            PrivateKey::parse(&private, None).unwrap_err(),
            KeyFileError::Encrypted
        );
        for wrong in ["", "wrong", "secre"] {
            let error = PrivateKey::parse(&private, Some(wrong.as_bytes())).unwrap_err();
            assert_eq!(error, KeyFileError::WrongPassphrase, "{wrong:?}");
        }
    }
}

#[test]
fn plain_keys_of_every_type_are_read_and_sign() {
    let directory = Directory::new("plain");
    for (kind, bits) in [
        ("ed25519", ""),
        ("ecdsa", "256"),
        ("ecdsa", "384"),
        ("ecdsa", "521"),
        ("rsa", "2048"),
        ("rsa", "3072"),
    ] {
        let size: &[&str] = if bits.is_empty() { &[] } else { &["-b", bits] };
        let path = directory.key(
            &format!("{kind}{bits}"),
            &[&["-t", kind, "-N", ""], size].concat(),
        );
        check(&path, None);
    }
}

#[test]
fn encrypted_keys_open_with_their_passphrase_only_whatever_the_cipher() {
    let directory = Directory::new("encrypted");
    for cipher in [
        "aes256-ctr",
        "aes128-ctr",
        "aes256-cbc",
        "aes256-gcm@openssh.com",
        "aes128-gcm@openssh.com",
        "chacha20-poly1305@openssh.com",
    ] {
        let name = cipher.replace(['@', '.'], "-");
        let path = directory.key(&name, &["-t", "ed25519", "-N", "secret", "-Z", cipher, "-a", "1"]);
        check(&path, Some("secret"));
    }
    check(
        &directory.key("rsa", &["-t", "rsa", "-b", "2048", "-N", "secret", "-a", "1"]),
        Some("secret"),
    );
}

#[test]
fn keys_in_pem_are_read_and_sign() {
    let directory = Directory::new("pem");
    for (kind, bits) in [
        ("rsa", "2048"),
        ("ecdsa", "256"),
        ("ecdsa", "384"),
        ("ecdsa", "521"),
    ] {
        for format in ["PEM", "PKCS8"] {
            let path = directory.key(
                &format!("{kind}{bits}{format}"),
                &["-t", kind, "-b", bits, "-N", "", "-m", format],
            );
            check(&path, None);
        }
    }
}

#[test]
fn encrypted_pkcs8_opens_with_its_passphrase_only_and_knows_its_public_half_then() {
    let directory = Directory::new("pkcs8");
    for (kind, bits) in [("rsa", "2048"), ("ecdsa", "256"), ("ecdsa", "521")] {
        let path = directory.key(
            &format!("{kind}{bits}"),
            &["-t", kind, "-b", bits, "-N", "secret", "-m", "PKCS8"],
        );
        check(&path, Some("secret"));
    }
}

#[test]
fn old_pem_encryption_is_named_with_the_command_that_converts_it_and_that_command_does() {
    let directory = Directory::new("proc-type");
    for kind in ["rsa", "ecdsa"] {
        let path = directory.key(kind, &["-t", kind, "-N", "secret", "-m", "PEM"]);
        let error = KeyFile::parse(&fs::read(&path).unwrap()).unwrap_err();
        assert_eq!(error, KeyFileError::Unsupported(Unsupported::LegacyEncryption));
        assert!(error.to_string().contains("ssh-keygen -p -f"), "{error}");
        let file = path.to_str().unwrap();
        ssh_keygen(&["-q", "-p", "-P", "secret", "-N", "other", "-a", "1", "-f", file]);
        let public = PublicKey::parse_line(&fs::read_to_string(path.with_extension("pub")).unwrap()).unwrap();
        let key = PrivateKey::parse(&fs::read(&path).unwrap(), Some(b"other")).unwrap();
        assert_eq!(key.public(), &public.key);
    }
}

#[test]
fn keys_that_are_too_small_are_refused_with_their_size() {
    let directory = Directory::new("small");
    for format in ["RFC4716", "PEM", "PKCS8"] {
        let path = directory.key(format, &["-t", "rsa", "-b", "1024", "-N", "", "-m", format]);
        let error = KeyFile::parse(&fs::read(path).unwrap()).unwrap_err();
        assert!(error.to_string().contains("1024 bits"), "{format}: {error}");
    }
}
