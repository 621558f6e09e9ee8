//! Certificates of OpenSSH (PROTOCOL.certkeys): a public key, for whom it stands, how long, and the authority's
//! signature over all of it. Decides whether a blob is a sound certificate and whether it vouches for a host at a given
//! time; never whether its authority is trusted, and never what time it is.

use std::fmt;

use base64ct::{Base64, Encoding};
use bytes::{Bytes, BytesMut};

use super::certificate_error::{CertificateError, CertificateRefusal};
use super::public::PublicKey;
use crate::Violation;
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::pattern::{Case, matches};
use crate::wire::{Reader, Writer};

/// Two RSA keys at their limit and [`MAX_PRINCIPALS`] names of 200 bytes fit; nothing longer is looked at.
pub const MAX_CERTIFICATE: usize = 64 * 1024;

/// As OpenSSH's `SSHKEY_CERT_MAX_PRINCIPALS`.
pub const MAX_PRINCIPALS: usize = 256;

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificateKind {
    /// A user logs in with it.
    User,
    /// A host shows it.
    Host,
}

/// A certificate whose authority has signed it. Everything in it but the key is what the authority says.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Certificate {
    blob: Bytes,
    key: PublicKey,
    kind: CertificateKind,
    serial: u64,
    key_id: String,
    principals: Vec<Bytes>,
    valid_after: u64,
    valid_before: u64,
    critical: Vec<String>,
    extensions: Vec<String>,
    authority: PublicKey,
    signed_with: SignatureAlgorithm,
}

impl Certificate {
    /// Reads a certificate, all of it, and checks its authority's signature.
    ///
    /// # Errors
    /// It can't be used by anybody.
    pub fn parse(blob: &[u8]) -> Result<Self, CertificateError> {
        let (key, mut reader) = key_and_rest(blob)?;
        let serial = reader.uint64()?;
        let kind = match reader.uint32()? {
            1 => CertificateKind::User,
            2 => CertificateKind::Host,
            other => return Err(CertificateError::Kind(other)),
        };
        let key_id = lossy(reader.string()?);
        let principals = principals(reader.string()?)?;
        let (valid_after, valid_before) = (reader.uint64()?, reader.uint64()?);
        let critical = options(reader.string()?)?;
        let extensions = options(reader.string()?)?;
        let _reserved = reader.string()?;
        let authority = reader.string()?;
        let signed = blob.get(..blob.len() - reader.rest().len()).unwrap_or_default();
        let signature = reader.string()?;
        reader.finish()?;
        let authority = authority_key(authority)?;
        Ok(Self {
            signed_with: verify(&authority, signed, signature)?,
            blob: Bytes::copy_from_slice(blob),
            key,
            kind,
            serial,
            key_id,
            principals,
            valid_after,
            valid_before,
            critical,
            extensions,
            authority,
        })
    }

    /// Reads the certificate of a `-cert.pub` file: type, base64, comment.
    ///
    /// # Errors
    /// As [`Self::parse`]; [`CertificateError::Malformed`] if it is no such line.
    pub fn parse_line(text: &str) -> Result<Self, CertificateError> {
        let mut lines = text.lines().map(str::trim);
        let line = lines
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(base64)) = (words.next(), words.next()) else {
            return Err(CertificateError::Malformed);
        };
        // Base64 is longer by a third.
        if base64.len() > MAX_CERTIFICATE / 3 * 4 + 4 {
            return Err(CertificateError::TooLarge);
        }
        let blob = Base64::decode_vec(base64).map_err(|_| CertificateError::Malformed)?;
        let certificate = Self::parse(&blob)?;
        if certificate.key.key_type().certificate_name() == name {
            Ok(certificate)
        } else {
            Err(CertificateError::Malformed)
        }
    }

    /// Whether a blob says that it is a certificate, of whatever type and however damaged.
    #[must_use]
    pub fn is_one(blob: &[u8]) -> bool {
        Reader::new(blob)
            .text()
            .is_ok_and(|name| name.contains("-cert-v0"))
    }

    /// The key in a certificate of which nothing else has to be sound.
    ///
    /// # Errors
    /// It is no certificate, or the key in it can't be used.
    pub fn key_inside(blob: &[u8]) -> Result<PublicKey, CertificateError> {
        key_and_rest(blob).map(|(key, _)| key)
    }

    /// The certificate as it goes on the wire and, in base64, into files.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// The key that it is about.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Whether it is a user's or a host's.
    #[must_use]
    pub fn kind(&self) -> CertificateKind {
        self.kind
    }

    /// The number that the authority gave it.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What the authority calls it. Foreign text.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// For which users or hosts it stands. Foreign text.
    pub fn principals(&self) -> impl Iterator<Item = &[u8]> {
        self.principals.iter().map(|principal| &**principal)
    }

    /// The names of its extensions. Foreign text.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The names of its critical options: who does not know one must not accept it. Foreign text.
    #[must_use]
    pub fn critical_options(&self) -> &[String] {
        &self.critical
    }

    /// Who signed it.
    #[must_use]
    pub fn authority(&self) -> &PublicKey {
        &self.authority
    }

    /// What it was signed with.
    #[must_use]
    pub fn signed_with(&self) -> SignatureAlgorithm {
        self.signed_with
    }

    /// Whether it holds at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// [`CertificateRefusal::NotYetValid`], [`CertificateRefusal::Expired`]
    pub fn check_time(&self, now: u64) -> Result<(), CertificateRefusal> {
        if now < self.valid_after {
            return Err(CertificateRefusal::NotYetValid {
                from: self.valid_after,
            });
        }
        // The end is the first second in which it does not hold; 2^64 - 1 stands for none.
        if now >= self.valid_before {
            return Err(CertificateRefusal::Expired {
                since: self.valid_before,
            });
        }
        Ok(())
    }

    /// Whether it vouches for `host`, a name without a port in lower case, at `now`, in seconds since 1970. `accepted`
    /// is what authorities may sign with. Whether this authority may sign for the host at all is not looked at.
    ///
    /// # Errors
    /// Why not.
    pub fn check_host(
        &self,
        host: &str,
        now: u64,
        accepted: &[SignatureAlgorithm],
    ) -> Result<(), CertificateRefusal> {
        if self.kind != CertificateKind::Host {
            return Err(CertificateRefusal::NotOfHost);
        }
        self.check_time(now)?;
        if self.principals.is_empty() {
            return Err(CertificateRefusal::NoPrincipals);
        }
        let is_named = |principal: &Bytes| matches(host.as_bytes(), principal, Case::Sensitive);
        if !self.principals.iter().any(is_named) {
            return Err(CertificateRefusal::OtherHost(host.to_owned()));
        }
        if let Some(option) = self.critical.first() {
            return Err(CertificateRefusal::CriticalOption(option.clone()));
        }
        if !accepted.contains(&self.signed_with) {
            return Err(CertificateRefusal::SignatureAlgorithm(self.signed_with));
        }
        Ok(())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind, key, serial, ..
        } = self;
        write!(f, "Certificate({kind:?} {serial} {key:?})")
    }
}

/// The key, as a blob of its own type would have it, and what follows it.
fn key_and_rest(blob: &[u8]) -> Result<(PublicKey, Reader<'_>), CertificateError> {
    if blob.len() > MAX_CERTIFICATE {
        return Err(CertificateError::TooLarge);
    }
    let mut reader = Reader::new(blob);
    let name = reader.text()?;
    let mut types = KeyType::ALL.iter();
    let key_type = *types
        .find(|key_type| key_type.certificate_name() == name)
        .ok_or(CertificateError::UnknownType)?;
    let _nonce = reader.string()?;
    let start = reader.rest();
    // Numbers are strings too, as far as their length is concerned.
    for _ in 0..fields(key_type) {
        reader.string()?;
    }
    let numbers = start.get(..start.len() - reader.rest().len()).unwrap_or_default();
    let mut plain = BytesMut::new();
    Writer::new(&mut plain).string(key_type.name()).raw(numbers);
    let key = PublicKey::parse(&plain).map_err(CertificateError::Key)?;
    Ok((key, reader))
}

/// How many fields a key of this type has behind its name.
fn fields(key_type: KeyType) -> usize {
    match key_type {
        KeyType::Ed25519 => 1,
        KeyType::EcdsaNistp256
        | KeyType::EcdsaNistp384
        | KeyType::EcdsaNistp521
        | KeyType::Rsa
        | KeyType::SkEd25519 => 2,
        KeyType::SkEcdsaNistp256 => 3,
    }
}

fn principals(list: &[u8]) -> Result<Vec<Bytes>, CertificateError> {
    let mut reader = Reader::new(list);
    let mut principals = Vec::new();
    while !reader.is_empty() {
        if principals.len() == MAX_PRINCIPALS {
            return Err(CertificateError::TooManyPrincipals);
        }
        principals.push(Bytes::copy_from_slice(reader.string()?));
    }
    Ok(principals)
}

/// The names of options, each followed by its value.
fn options(list: &[u8]) -> Result<Vec<String>, CertificateError> {
    let mut reader = Reader::new(list);
    let mut names = Vec::new();
    while !reader.is_empty() {
        names.push(lossy(reader.string()?));
        reader.string()?;
    }
    Ok(names)
}

/// The key that signed: a plain one, so that no chain of certificates can be made.
fn authority_key(blob: &[u8]) -> Result<PublicKey, CertificateError> {
    if Certificate::is_one(blob) {
        return Err(CertificateError::AuthorityIsCertificate);
    }
    PublicKey::parse(blob).map_err(CertificateError::Authority)
}

/// What a signature was made with, if it is good.
fn verify(
    authority: &PublicKey,
    signed: &[u8],
    signature: &[u8],
) -> Result<SignatureAlgorithm, CertificateError> {
    let name = Reader::new(signature).string()?;
    let known = std::str::from_utf8(name)
        .ok()
        .and_then(SignatureAlgorithm::from_name);
    let algorithm = known.ok_or_else(|| CertificateError::SignatureAlgorithm(lossy(name)))?;
    match authority.verify(algorithm, signed, signature) {
        Ok(()) => Ok(algorithm),
        Err(_) => Err(CertificateError::Signature),
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

impl From<Violation> for CertificateError {
    fn from(_: Violation) -> Self {
        Self::Malformed
    }
}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
