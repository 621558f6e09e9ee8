//! OpenSSH's key file format, `openssh-key-v1` (OpenSSH PROTOCOL.key). Decides which of its protections can be opened
//! and which of its numbers are a key.

use ssh_key::cipher::Tag;
use ssh_key::{Cipher, Kdf};
use zeroize::Zeroizing;

use super::file_error::{KeyFileError, Unsupported};
use super::private::{PrivateKey, Secret};
use super::public::{KeyBlobError, PublicKey};
use crate::Violation;
use crate::wire::Reader;

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// `ssh-keygen` writes 16 or 24 rounds, each a few milliseconds; a file with millions would keep a thread busy for
/// hours.
pub const MAX_KDF_ROUNDS: u32 = 4096;

/// A file whose outside has been read: the public half is known, the private half perhaps locked.
pub(super) struct OpenSsh {
    public: PublicKey,
    protection: Option<Protection>,
    private: Zeroizing<Vec<u8>>,
}

/// How the private half is locked.
struct Protection {
    cipher: Cipher,
    kdf: Kdf,
    tag: Option<Tag>,
}

impl OpenSsh {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let mut reader = Reader::new(bytes.strip_prefix(MAGIC).ok_or(KeyFileError::Malformed)?);
        let cipher_name = reader.text()?;
        let kdf_name = reader.text()?;
        let kdf_options = reader.string()?;
        if reader.uint32()? != 1 {
            return Err(Unsupported::SeveralKeys.into());
        }
        let public = public_key(reader.string()?)?;
        let private = Zeroizing::new(reader.string()?.to_vec());
        let protection = protection(cipher_name, kdf_name, kdf_options, reader.rest())?;
        Ok(Self {
            public,
            protection,
            private,
        })
    }

    pub(super) fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.protection.is_some()
    }

    pub(super) fn unlock(&self, passphrase: Option<&[u8]>) -> Result<PrivateKey, KeyFileError> {
        match (&self.protection, passphrase) {
            (None, _) => self.open(&self.private, KeyFileError::Malformed),
            (Some(_), None) => Err(KeyFileError::Encrypted),
            (Some(protection), Some(passphrase)) => {
                let opened = protection.decrypt(&self.private, passphrase)?;
                self.open(&opened, KeyFileError::WrongPassphrase)
            }
        }
    }

    /// Reads the opened private half. `unequal` is what differing check numbers mean.
    fn open(&self, opened: &[u8], unequal: KeyFileError) -> Result<PrivateKey, KeyFileError> {
        let mut reader = Reader::new(opened);
        if reader.uint32()? != reader.uint32()? {
            return Err(unequal);
        }
        let secret = Secret::read(&mut reader)?;
        let comment = String::from_utf8_lossy(reader.string()?).into_owned();
        // The padding counts 1, 2, 3, …; what else could follow would be another key.
        if !reader
            .rest()
            .iter()
            .zip(1..=u8::MAX)
            .all(|(&byte, count)| byte == count)
        {
            return Err(KeyFileError::Malformed);
        }
        PrivateKey::new(self.public.clone(), secret, comment)
    }
}

impl Protection {
    fn decrypt(&self, private: &[u8], passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        let (key, iv) = self
            .kdf
            .derive_key_and_iv(self.cipher, passphrase)
            // An empty passphrase is refused by the function itself.
            .map_err(|_| KeyFileError::WrongPassphrase)?;
        let mut buffer = Zeroizing::new(private.to_vec());
        let decrypted = self.cipher.decrypt(&key, &iv, &mut buffer, self.tag);
        decrypted.map_err(|_| KeyFileError::WrongPassphrase)?;
        Ok(buffer)
    }
}

fn public_key(blob: &[u8]) -> Result<PublicKey, KeyFileError> {
    PublicKey::parse(blob).map_err(|error| match error {
        KeyBlobError::UnknownType => {
            let name = Reader::new(blob).string().unwrap_or_default();
            Unsupported::KeyType(String::from_utf8_lossy(name).into_owned()).into()
        }
        KeyBlobError::Malformed
        | KeyBlobError::WrongLength
        | KeyBlobError::WrongCurve
        | KeyBlobError::RsaModulus { .. }
        | KeyBlobError::RsaExponent => KeyFileError::Unusable(error),
    })
}

fn protection(
    cipher: &str,
    kdf: &str,
    kdf_options: &[u8],
    rest: &[u8],
) -> Result<Option<Protection>, KeyFileError> {
    if (cipher, kdf) == ("none", "none") {
        return if rest.is_empty() {
            Ok(None)
        } else {
            Err(KeyFileError::Malformed)
        };
    }
    if kdf != "bcrypt" {
        return Err(Unsupported::Kdf(kdf.to_owned()).into());
    }
    let unsupported = || Unsupported::Cipher(cipher.to_owned());
    let cipher = Cipher::new(cipher)
        .ok()
        // 3DES has a name there, and no code in this build: what can't be opened is told from a wrong passphrase here.
        .filter(|cipher| !matches!(cipher, Cipher::None | Cipher::TdesCbc))
        .ok_or_else(unsupported)?;
    let mut options = Reader::new(kdf_options);
    let salt = options.string()?.to_vec();
    let rounds = options.uint32()?;
    options.finish()?;
    if rounds > MAX_KDF_ROUNDS {
        return Err(Unsupported::KdfRounds(rounds).into());
    }
    let tag = match (cipher.has_tag(), rest) {
        (false, []) => None,
        (true, rest) => Some(Tag::try_from(rest).map_err(|_| KeyFileError::Malformed)?),
        (false, _) => return Err(KeyFileError::Malformed),
    };
    Ok(Some(Protection {
        cipher,
        kdf: Kdf::Bcrypt { salt, rounds },
        tag,
    }))
}

impl From<Violation> for KeyFileError {
    fn from(_: Violation) -> Self {
        Self::Malformed
    }
}
