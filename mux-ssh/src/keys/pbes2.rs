//! Encrypted PKCS #8 (RFC 5958 §3, RFC 8018 §6.2): a key from a passphrase by PBKDF2, then AES in CBC mode. Decides which
//! of the many possible protections can be opened; every primitive is the library's.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    self, AES_128, AES_192, AES_256, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use zeroize::Zeroizing;

use super::der::{self, Der};
use super::file_error::{KeyFileError, Unsupported};

/// OpenSSL writes 2048, careful people a million; a file with more would keep a thread busy for minutes.
pub const MAX_PBKDF2_ITERATIONS: u32 = 10_000_000;

/// PBES2, 1.2.840.113549.1.5.13.
const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
/// PBKDF2, 1.2.840.113549.1.5.12.
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
/// scrypt, 1.3.6.1.4.1.11591.4.11 (RFC 7914 §7.1).
const SCRYPT: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x04, 0x0b];

/// hmacWithSHA1 and its siblings, 1.2.840.113549.2.7 to 11 (RFC 8018 §B.1).
const PRFS: [(&[u8], pbkdf2::Algorithm); 4] = [
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x07],
        pbkdf2::PBKDF2_HMAC_SHA1,
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x09],
        pbkdf2::PBKDF2_HMAC_SHA256,
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0a],
        pbkdf2::PBKDF2_HMAC_SHA384,
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02, 0x0b],
        pbkdf2::PBKDF2_HMAC_SHA512,
    ),
];

/// aes128-CBC-PAD and its siblings, 2.16.840.1.101.3.4.1.2, 22 and 42, with the length of their keys.
static CIPHERS: [(&[u8], &cipher::Algorithm, usize); 3] = [
    (
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x02],
        &AES_128,
        16,
    ),
    (
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x16],
        &AES_192,
        24,
    ),
    (
        &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01, 0x2a],
        &AES_256,
        32,
    ),
];

/// A key under a passphrase.
pub(super) struct Pbes2 {
    salt: Vec<u8>,
    iterations: NonZeroU32,
    prf: pbkdf2::Algorithm,
    cipher: &'static cipher::Algorithm,
    key_length: usize,
    iv: [u8; 16],
    ciphertext: Vec<u8>,
}

impl Pbes2 {
    /// `EncryptedPrivateKeyInfo`: how it is encrypted, and the result.
    pub(super) fn parse(der: &[u8]) -> Result<Self, KeyFileError> {
        let mut fields = Der::document(der)?;
        let mut algorithm = fields.sequence()?;
        let ciphertext = fields.octets()?.to_vec();
        fields.finish()?;
        match algorithm.object()? {
            PBES2 => {}
            other => return Err(Unsupported::Cipher(der::dotted(other)).into()),
        }
        let mut parameters = algorithm.sequence()?;
        let (mut derivation, mut scheme) = (parameters.sequence()?, parameters.sequence()?);
        let object = scheme.object()?;
        let &(_, cipher, key_length) = CIPHERS
            .iter()
            .find(|(known, ..)| *known == object)
            .ok_or_else(|| Unsupported::Cipher(der::dotted(object)))?;
        let iv = scheme.octets()?.try_into().map_err(|_| KeyFileError::Malformed)?;
        match derivation.object()? {
            PBKDF2 => {}
            SCRYPT => return Err(Unsupported::Kdf("scrypt".to_owned()).into()),
            other => return Err(Unsupported::Kdf(der::dotted(other)).into()),
        }
        let mut derivation = derivation.sequence()?;
        let salt = derivation.octets()?.to_vec();
        let iterations = derivation.small()?;
        if iterations > MAX_PBKDF2_ITERATIONS {
            return Err(Unsupported::KdfRounds(iterations).into());
        }
        let stated_length = derivation.optional_small()?;
        if stated_length.is_some_and(|length| usize::try_from(length) != Ok(key_length)) {
            return Err(KeyFileError::Malformed);
        }
        Ok(Self {
            salt,
            iterations: NonZeroU32::new(iterations).ok_or(KeyFileError::Malformed)?,
            prf: prf(derivation)?,
            cipher,
            key_length,
            iv,
            ciphertext,
        })
    }

    /// The `OneAsymmetricKey` inside. A wrong passphrase shows itself as padding that is none; one time in 256 it does
    /// not, and what comes out is no key.
    pub(super) fn decrypt(&self, passphrase: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        let wrong = |_| KeyFileError::WrongPassphrase;
        let mut key = Zeroizing::new(vec![0; self.key_length]);
        pbkdf2::derive(self.prf, self.iterations, &self.salt, passphrase, &mut key);
        let key = UnboundCipherKey::new(self.cipher, &key).map_err(wrong)?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).map_err(wrong)?;
        let context = DecryptionContext::Iv128(FixedLength::from(self.iv));
        let mut buffer = Zeroizing::new(self.ciphertext.clone());
        let length = key.decrypt(&mut buffer, context).map_err(wrong)?.len();
        buffer.truncate(length);
        match Der::document(&buffer) {
            Ok(_) => Ok(buffer),
            Err(_) => Err(KeyFileError::WrongPassphrase),
        }
    }
}

/// RFC 8018 §A.2: SHA-1 unless said otherwise.
fn prf(mut rest: Der<'_>) -> Result<pbkdf2::Algorithm, KeyFileError> {
    let Some(mut algorithm) = rest.optional_sequence()? else {
        return Ok(pbkdf2::PBKDF2_HMAC_SHA1);
    };
    let object = algorithm.object()?;
    algorithm.no_parameters()?;
    rest.finish()?;
    let known = PRFS.iter().find(|(known, _)| *known == object);
    known
        .map(|(_, prf)| *prf)
        .ok_or_else(|| Unsupported::Kdf(der::dotted(object)).into())
}
