//! Key files of every format. Decides whether a file holds a key that can be used, and opens it with a passphrase; never
//! asks for one.

use std::fmt;

use zeroize::Zeroizing;

use super::armour::{self, Label};
use super::file_error::KeyFileError;
use super::openssh::OpenSsh;
use super::pbes2::Pbes2;
use super::pkcs;
use super::private::PrivateKey;
use super::public::PublicKey;

/// A key file whose outside has been read: the private half is perhaps locked.
pub struct KeyFile {
    public: Option<PublicKey>,
    content: Content,
}

enum Content {
    OpenSsh(OpenSsh),
    /// DER in the clear.
    Pkcs(Label, Zeroizing<Vec<u8>>),
    /// PKCS #8 under a passphrase.
    Pbes2(Pbes2),
}

impl KeyFile {
    /// Reads a file: OpenSSH's own format, or PEM with PKCS #8, PKCS #1 or SEC 1. An encrypted one needs no passphrase
    /// for that.
    ///
    /// # Errors
    /// The file, or the key in it, cannot be used.
    pub fn parse(file: &[u8]) -> Result<Self, KeyFileError> {
        let (label, bytes) = armour::decode(file)?;
        let (public, content) = match label {
            Label::OpenSsh => {
                let file = OpenSsh::parse(&bytes)?;
                (Some(file.public().clone()), Content::OpenSsh(file))
            }
            Label::EncryptedPkcs8 => (None, Content::Pbes2(Pbes2::parse(&bytes)?)),
            Label::Pkcs1 | Label::Sec1 | Label::Pkcs8 => {
                (Some(pkcs::public(label, &bytes)?), Content::Pkcs(label, bytes))
            }
        };
        Ok(Self { public, content })
    }

    /// The public half, as the file states it. `None`: it is encrypted with the rest, as in PKCS #8; a `.pub` file
    /// beside the key has it.
    #[must_use]
    pub fn public(&self) -> Option<&PublicKey> {
        self.public.as_ref()
    }

    /// The public half is known from elsewhere. [`Self::unlock`] fails if it turns out to be another key's.
    #[must_use]
    pub fn with_public(mut self, public: PublicKey) -> Self {
        self.public = Some(public);
        self
    }

    /// Whether a passphrase is needed.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        match &self.content {
            Content::OpenSsh(file) => file.is_encrypted(),
            Content::Pkcs(..) => false,
            Content::Pbes2(_) => true,
        }
    }

    /// Opens the private half. Takes a fraction of a second if it is encrypted.
    ///
    /// # Errors
    /// [`KeyFileError::Encrypted`] without a passphrase for an encrypted file, [`KeyFileError::WrongPassphrase`], or
    /// the key cannot be used.
    pub fn unlock(&self, passphrase: Option<&[u8]>) -> Result<PrivateKey, KeyFileError> {
        let key = match &self.content {
            Content::OpenSsh(file) => file.unlock(passphrase)?,
            Content::Pkcs(label, der) => pkcs::private(*label, der)?,
            Content::Pbes2(file) => {
                let der = file.decrypt(passphrase.ok_or(KeyFileError::Encrypted)?)?;
                pkcs::private(Label::Pkcs8, &der)?
            }
        };
        match &self.public {
            Some(public) if public != key.public() => Err(KeyFileError::PublicMismatch),
            Some(_) | None => Ok(key),
        }
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encrypted = self.is_encrypted();
        f.debug_struct("KeyFile")
            .field("public", &self.public)
            .field("encrypted", &encrypted)
            .finish_non_exhaustive()
    }
}
