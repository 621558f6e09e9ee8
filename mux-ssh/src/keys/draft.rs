//! Certificates, made and signed. Decides nothing about what is in them: a hostile test makes what no authority would.

#![cfg_attr(
    not(feature = "server"),
    expect(unreachable_pub, reason = "it is public with the feature `server` only")
)]

use bytes::{Bytes, BytesMut};

use crate::algorithms::SignatureAlgorithm;
use crate::keys::{PrivateKey, PublicKey, SignError};
use crate::wire::{Reader, Writer};

/// What a certificate is to say (OpenSSH PROTOCOL.certkeys).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// 1: a user's; 2: a host's.
    pub kind: u32,
    /// For whom it stands.
    pub principals: Vec<Bytes>,
    /// In seconds since 1970.
    pub valid_after: u64,
    /// In seconds since 1970; the first in which it does not hold.
    pub valid_before: u64,
    /// Names of critical options; their values are empty.
    pub critical: Vec<Bytes>,
    /// The authority's key as the certificate states it; `None`: the one that signs.
    pub authority: Option<Bytes>,
}

impl Draft {
    /// A host's, without an end.
    #[must_use]
    pub fn of_host(principals: &[&str]) -> Self {
        Self {
            kind: 2,
            principals: principals
                .iter()
                .map(|name| Bytes::copy_from_slice(name.as_bytes()))
                .collect(),
            valid_after: 0,
            valid_before: u64::MAX,
            critical: Vec::new(),
            authority: None,
        }
    }

    /// The certificate of `key`, signed by `authority`.
    ///
    /// # Errors
    /// The authority does not sign with that algorithm.
    pub fn sign(
        &self,
        key: &PublicKey,
        authority: &PrivateKey,
        algorithm: SignatureAlgorithm,
    ) -> Result<Bytes, SignError> {
        let mut numbers = Reader::new(key.blob());
        let _name = numbers.string();
        let mut blob = BytesMut::new();
        let mut writer = Writer::new(&mut blob);
        writer
            .string(key.key_type().certificate_name())
            .string([0; 32])
            .raw(numbers.rest())
            .uint64(1)
            .uint32(self.kind)
            .string("made for a test")
            .string_of(|names| {
                for name in &self.principals {
                    names.string(name);
                }
            })
            .uint64(self.valid_after)
            .uint64(self.valid_before)
            .string_of(|options| {
                for name in &self.critical {
                    options.string(name).string("");
                }
            })
            .string("")
            .string("")
            .string(self.authority.as_deref().unwrap_or(authority.public().blob()));
        let signature = authority.sign(algorithm, &blob)?;
        Writer::new(&mut blob).string(&signature);
        Ok(blob.freeze())
    }
}
