//! Keys whose public half is locked up, and files that change.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;

use mux_ssh::keys::KeyFileError;

use super::*;

/// Ed25519 in PKCS #8 under the passphrase `secret`, as `openssl pkcs8 -topk8` writes it.
const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAihBpAxRtLtnwICCAAw\n\
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECH3NbMicIyIi+hI6j7BlVcEQLmm\n\
H6RHlcs+b/3hN4oniPd3NmozrbulXluoVrLAgIxYsOckFcDgVMpIuF8tdcsb1U/G\n\
nUmHhlFAgW47oFwyeeY=\n\
-----END ENCRYPTED PRIVATE KEY-----";
const ITS_PUBLIC: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM/obwTPJI4uf0e5HVQt9Q/Ix0JjXVhMlKJMSjRbDhIy";
const ANOTHERS_PUBLIC: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMBDTf5F9Yd0Eeh+LF/lCb/K9LEjAFTT9SPY+Kh+msxu";

/// What becomes of an encrypted key beside which this public half lies.
fn load_beside(public: Option<&str>) -> (String, Keyring, Result<KeyId, Unusable>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("id");
    fs::write(&path, ENCRYPTED).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    if let Some(public) = public {
        fs::write(path.with_extension("pub"), public).unwrap();
    }
    let path = path.to_str().unwrap().to_owned();
    let mut keyring = Keyring::default();
    let result = keyring.file(&path);
    (path, keyring, result)
}

fn unlock(keyring: &mut Keyring, key: KeyId) -> Result<PrivateKey, KeyFileError> {
    assert!(keyring.is_locked(key));
    match keyring.sign(key, SignatureAlgorithm::Ed25519, b"data") {
        Signing::Locked(file) => file.unlock(Some(b"secret")),
        other @ (Signing::Done(_) | Signing::Agent(_)) => panic!("{other:?}"),
    }
}

#[test]
fn a_key_that_hides_its_public_half_is_offered_by_the_pub_file_beside_it() {
    let (_, mut keyring, result) = load_beside(Some(ITS_PUBLIC));
    let key = result.unwrap();
    let private = unlock(&mut keyring, key).unwrap();
    assert_eq!(keyring.public(key), Some(private.public()));
}

#[test]
fn a_key_that_hides_its_public_half_and_has_no_pub_file_shows_it_once_it_is_open() {
    let (_, mut keyring, result) = load_beside(None);
    let key = result.unwrap();
    assert_eq!((keyring.public(key), keyring.blob(key)), (None, None));
    let private = unlock(&mut keyring, key).unwrap();
    let public = private.public().clone();
    keyring.unlocked(key, Ok(private));
    assert_eq!(keyring.public(key), Some(&public));
    assert!(keyring.signs_at_once(key));
}

#[test]
fn the_pub_file_of_another_key_is_noticed_when_the_key_is_opened() {
    let (_, mut keyring, result) = load_beside(Some(ANOTHERS_PUBLIC));
    assert_eq!(
        unlock(&mut keyring, result.unwrap()).unwrap_err(),
        KeyFileError::PublicMismatch
    );
}

#[test]
fn a_file_is_read_again_when_it_has_changed_and_not_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("id.pub");
    let name = path.to_str().unwrap();
    let mut keyring = Keyring::default();
    assert!(matches!(keyring.file(name), Err(Unusable::Missing(_))));
    assert!(!keyring.has_changed(name));
    fs::write(&path, ITS_PUBLIC).unwrap();
    assert!(keyring.has_changed(name));
    let first = keyring.file(name).unwrap();
    assert!(!keyring.has_changed(name));
    assert_eq!(keyring.file(name), Ok(first));
    // Renamed into its place, as those who renew keys do it.
    fs::write(directory.path().join("new"), ANOTHERS_PUBLIC).unwrap();
    fs::rename(directory.path().join("new"), &path).unwrap();
    assert!(keyring.has_changed(name));
    let second = keyring.file(name).unwrap();
    assert_ne!(keyring.public(first), keyring.public(second));
    assert!(!keyring.has_changed("never read"));
}
