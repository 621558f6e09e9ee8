//! From a shared secret to keys (RFC 4253 §7.2). It decides how the exchange hash and the keys are put together.

use aws_lc_rs::digest;
use bytes::{Bytes, BytesMut};
use zeroize::{Zeroize, Zeroizing};

use crate::Error;
use crate::wire::Writer;

/// A shared secret as it enters the hashes: already encoded as `mpint` or `string`, which depends on the key
/// exchange. Wiped when dropped.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct SharedSecret(Zeroizing<Vec<u8>>);

impl SharedSecret {
    /// RFC 8731 §3.1, RFC 5656 §4: a number.
    pub(super) fn mpint(number: &[u8]) -> Self {
        Self::encoded(|writer| {
            writer.mpint(number);
        })
    }

    /// The hybrids hash their two secrets and take the result as bytes.
    pub(super) fn string(bytes: &[u8]) -> Self {
        Self::encoded(|writer| {
            writer.string(bytes);
        })
    }

    #[cfg(test)]
    pub(super) fn encoded_bytes(&self) -> &[u8] {
        &self.0
    }

    fn encoded(write: impl FnOnce(&mut Writer<'_>)) -> Self {
        // Room for the longest secret with its length and sign: growing would leave copies behind.
        let mut out = BytesMut::with_capacity(4 + 1 + 66);
        write(&mut Writer::new(&mut out));
        let secret = Self(Zeroizing::new(out.to_vec()));
        out.as_mut().zeroize();
        secret
    }
}

/// What both sides said before the secret, in the order in which it is hashed (RFC 5656 §4).
pub(super) struct Transcript<'a> {
    pub(super) client_ident: &'a [u8],
    pub(super) server_ident: &'a [u8],
    pub(super) client_kexinit: &'a [u8],
    pub(super) server_kexinit: &'a [u8],
    pub(super) host_key: &'a [u8],
    pub(super) client_public: &'a [u8],
    pub(super) server_public: &'a [u8],
}

impl Transcript<'_> {
    /// The exchange hash.
    pub(super) fn hash(&self, algorithm: &'static digest::Algorithm, secret: &SharedSecret) -> Bytes {
        let fields = [
            self.client_ident,
            self.server_ident,
            self.client_kexinit,
            self.server_kexinit,
            self.host_key,
            self.client_public,
            self.server_public,
        ];
        let mut context = digest::Context::new(algorithm);
        for field in fields {
            let length = u32::try_from(field.len()).expect("every field came out of one packet");
            context.update(&length.to_be_bytes());
            context.update(field);
        }
        context.update(&secret.0);
        Bytes::copy_from_slice(context.finish().as_ref())
    }
}

/// Everything that keys are made of.
pub(super) struct Secrets<'a> {
    pub(super) hash: &'static digest::Algorithm,
    pub(super) secret: &'a SharedSecret,
    pub(super) exchange_hash: &'a [u8],
    pub(super) session_id: &'a [u8],
}

impl Secrets<'_> {
    /// `LENGTH` bytes for `letter`. One hash gives at most 64, a second one is chained behind it.
    pub(super) fn key<const LENGTH: usize>(&self, letter: u8) -> Result<Zeroizing<[u8; LENGTH]>, Error> {
        let mut context = self.context();
        context.update(&[letter]);
        context.update(self.session_id);
        let mut material = Zeroizing::new(Vec::with_capacity(2 * digest::MAX_OUTPUT_LEN));
        material.extend_from_slice(context.finish().as_ref());
        if material.len() < LENGTH {
            let mut context = self.context();
            context.update(&material);
            material.extend_from_slice(context.finish().as_ref());
        }
        let key = material.first_chunk().ok_or(Error::Crypto)?;
        Ok(Zeroizing::new(*key))
    }

    fn context(&self) -> digest::Context {
        let mut context = digest::Context::new(self.hash);
        context.update(&self.secret.0);
        context.update(self.exchange_hash);
        context
    }
}
