//! What a host shows in a key exchange: its key, plain or inside a certificate. Decides which key has to have signed;
//! whether key or certificate are trusted is the owner's answer.

use std::sync::Arc;

use crate::algorithms::HostKeyAlgorithm;
use crate::keys::{Certificate, CertificateError, KeyBlobError, PublicKey};
use crate::{Error, Violation};

/// A host's key, proved to be the host's once its signature was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownKey {
    pub(crate) key: PublicKey,
    /// The certificate that it was shown in. One that can't be used is as good as none: the key counts as if it had
    /// been shown alone.
    pub(crate) certificate: Option<Result<Arc<Certificate>, CertificateError>>,
}

impl ShownKey {
    /// Reads what was shown where `negotiated` was agreed on.
    pub(super) fn parse(blob: &[u8], negotiated: HostKeyAlgorithm) -> Result<Self, Error> {
        let shown = if negotiated.is_certificate() {
            let key = Certificate::key_inside(blob).map_err(violation)?;
            let certificate = Some(Certificate::parse(blob).map(Arc::new));
            Self { key, certificate }
        } else if Certificate::is_one(blob) {
            return Err(Violation::HostKeyType.into());
        } else {
            Self {
                key: PublicKey::parse(blob)?,
                certificate: None,
            }
        };
        if shown.key.key_type() == negotiated.key_type() {
            Ok(shown)
        } else {
            Err(Violation::HostKeyType.into())
        }
    }
}

/// What it means that not even a key is inside.
fn violation(error: CertificateError) -> Violation {
    match error {
        // A plain key where a certificate was agreed on, among others.
        CertificateError::UnknownType => Violation::HostKeyType,
        CertificateError::Key(error) => Violation::HostKey(error),
        CertificateError::TooLarge
        | CertificateError::Malformed
        | CertificateError::Kind(_)
        | CertificateError::TooManyPrincipals
        | CertificateError::AuthorityIsCertificate
        | CertificateError::Authority(_)
        | CertificateError::SignatureAlgorithm(_)
        | CertificateError::Signature => Violation::HostKey(KeyBlobError::Malformed),
    }
}
