//! A private key as an agent wants it (draft-ietf-sshm-ssh-agent §3.2). Decides which numbers go in which order; never
//! whether an agent gets it.

use aws_lc_rs::encoding::{AsBigEndian, AsDer, Curve25519SeedBin, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::signature::KeyPair as _;
use bytes::BytesMut;
use zeroize::Zeroizing;

use super::der::Der;
use super::file_error::KeyFileError;
use super::private::{PrivateKey, SignError};
use super::signer::Signer;
use crate::algorithms::KeyType;
use crate::wire::Writer;

impl PrivateKey {
    /// Appends type and numbers, public and private, to a message.
    pub(crate) fn write_secret(&self, out: &mut BytesMut) -> Result<(), SignError> {
        let mut writer = Writer::new(out);
        match self.signer() {
            Signer::Ed25519(pair) => {
                let seed = pair.seed()?;
                let seed: Curve25519SeedBin<'_> = seed.as_be_bytes()?;
                let public = pair.public_key().as_ref();
                // Seed and public key side by side, as in a file.
                let both = Zeroizing::new([seed.as_ref(), public].concat());
                writer
                    .string(KeyType::Ed25519.name())
                    .string(public)
                    .string(&*both);
            }
            Signer::Ecdsa(curve, pair) => {
                let scalar: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes()?;
                writer
                    .string(curve.key_type.name())
                    .string(curve.name)
                    .string(pair.public_key())
                    .mpint(scalar.as_ref());
            }
            Signer::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der()?;
                write_rsa(&mut writer, der.as_ref()).map_err(|_| SignError::Crypto)?;
            }
        }
        Ok(())
    }
}

/// RFC 5958 and RFC 8017 §A.1.2: what the library writes has all its numbers.
fn write_rsa(writer: &mut Writer<'_>, der: &[u8]) -> Result<(), KeyFileError> {
    let mut outer = Der::document(der)?;
    outer.small()?;
    outer.sequence()?;
    let mut fields = Der::document(outer.octets()?)?;
    fields.small()?;
    let (n, e, d) = (fields.number()?, fields.number()?, fields.number()?);
    let (p, q) = (fields.number()?, fields.number()?);
    let (_d_p, _d_q) = (fields.number()?, fields.number()?);
    let q_inverse = fields.number()?;
    writer.string(KeyType::Rsa.name()).mpint(n).mpint(e).mpint(d);
    writer.mpint(q_inverse).mpint(p).mpint(q);
    Ok(())
}
