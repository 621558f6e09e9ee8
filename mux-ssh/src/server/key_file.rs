//! Ed25519 keys for demos and benchmarks, made and written in OpenSSH's format. Decides nothing about real users'
//! keys, which are read by other code and never written.

use std::fmt;

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use ssh_key::private::{Ed25519Keypair, Ed25519PrivateKey, KeypairData};
use ssh_key::{LineEnding, PrivateKey};
use zeroize::Zeroizing;

use crate::Error;
use crate::keys::PublicKey;
use crate::transport::HostKey;

/// The private half of an Ed25519 key.
pub struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    /// A new one.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn generate() -> Result<Self, Error> {
        let seed = Ed25519KeyPair::generate()?.seed()?;
        let bytes: aws_lc_rs::encoding::Curve25519SeedBin<'_> = seed.as_be_bytes()?;
        let bytes = <[u8; 32]>::try_from(bytes.as_ref()).map_err(|_| Error::Crypto)?;
        Ok(Self(Zeroizing::new(bytes)))
    }

    /// The one in an unencrypted OpenSSH key file; `None` if the file holds something else.
    #[must_use]
    pub fn from_openssh(file: &str) -> Option<Self> {
        let key = PrivateKey::from_openssh(file).ok()?;
        let pair = key.key_data().ed25519()?;
        Some(Self(Zeroizing::new(pair.private.to_bytes())))
    }

    /// An unencrypted OpenSSH key file.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn to_openssh(&self) -> Result<Zeroizing<String>, Error> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&self.0[..]).map_err(|_| Error::Crypto)?;
        let public = <[u8; 32]>::try_from(pair.public_key().as_ref()).map_err(|_| Error::Crypto)?;
        let pair = Ed25519Keypair {
            public: ssh_key::public::Ed25519PublicKey(public),
            private: Ed25519PrivateKey::from_bytes(&self.0),
        };
        let key = PrivateKey::new(KeypairData::Ed25519(pair), "").map_err(|_| Error::Crypto)?;
        key.to_openssh(LineEnding::LF).map_err(|_| Error::Crypto)
    }

    /// The key as a host signs with it.
    ///
    /// # Errors
    /// [`Error::Crypto`]
    pub fn host_key(&self) -> Result<HostKey, Error> {
        HostKey::from_ed25519_seed(&self.0)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(..)")
    }
}

/// The key as it stands in `authorized_keys` and `known_hosts`: type and base64.
#[must_use]
pub fn public_line(key: &PublicKey) -> String {
    let parsed = ssh_key::PublicKey::from_bytes(key.blob());
    parsed
        .and_then(|key| key.to_openssh())
        .expect("a key that was parsed can be written")
}

/// The keys in a file in the format of `authorized_keys`. Lines with options, and keys that can't be used, are left
/// out: this is no door to a real machine.
#[must_use]
pub fn authorized_keys(file: &str) -> Vec<PublicKey> {
    let parsed = file
        .lines()
        .filter_map(|line| ssh_key::PublicKey::from_openssh(line.trim()).ok());
    parsed
        .filter_map(|key| PublicKey::parse(&key.to_bytes().ok()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_file() {
        let seed = Seed::generate().expect("there is randomness");
        let file = seed.to_openssh().expect("the key can be written");
        let again = Seed::from_openssh(&file).expect("the file is ours");
        assert_eq!(seed.0, again.0);
        let public = again.host_key().expect("the seed is one").public().clone();
        assert_eq!(authorized_keys(&public_line(&public)), [public]);
    }

    #[test]
    fn other_files_are_no_keys() {
        assert!(Seed::from_openssh("").is_none());
        assert_eq!(authorized_keys("# nothing\nssh-ed25519 AAAA\n"), []);
    }
}
