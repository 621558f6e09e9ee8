//! AES in counter mode with an HMAC beside it (RFC 4344 §4, RFC 6668, OpenSSH PROTOCOL §1.5). It decides which bytes are
//! encrypted and which are authenticated in both orders; cipher, HMAC and comparison are the library's.
//!
//! ```text
//!  encrypt-and-MAC:   encrypt(length, padding length, payload, padding), HMAC(sequence, plaintext)
//!  encrypt-then-MAC:  length, encrypt(padding length, payload, padding), HMAC(sequence, length, ciphertext)
//! ```
//!
//! Encrypt-and-MAC makes everyone decrypt a length before it can be authenticated, and a whole packet before its tag
//! can be compared: of such plaintext nothing but the length is looked at, and that within its limits.

use aws_lc_rs::cipher::{
    self, AES_128, AES_192, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use bytes::BytesMut;

use super::cipher::{Direction, LENGTH};
use super::derive::Secrets;
use crate::algorithms::Mac;
use crate::{Error, Violation};

/// AES's block, which is also the length of a counter.
pub(super) const BLOCK: usize = 16;

/// What a key of AES is made from: its length decides which AES it is.
#[derive(Clone, Copy)]
pub(super) enum KeySize {
    Aes128,
    Aes192,
    Aes256,
}

/// One direction's two keys and its counter. Packets are whole blocks, so that the counter is a number of blocks and
/// nothing is left over between packets.
pub(super) struct Ctr {
    key: EncryptingKey,
    counter: u128,
    mac: hmac::Key,
    order: Order,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    EncryptAndMac,
    EncryptThenMac,
}

impl Ctr {
    pub(super) fn new(
        size: KeySize,
        mac: Mac,
        secrets: &Secrets<'_>,
        direction: Direction,
    ) -> Result<Self, Error> {
        let key = match size {
            KeySize::Aes128 => aes(&AES_128, &*secrets.key::<16>(direction.key)?)?,
            KeySize::Aes192 => aes(&AES_192, &*secrets.key::<24>(direction.key)?)?,
            KeySize::Aes256 => aes(&AES_256, &*secrets.key::<32>(direction.key)?)?,
        };
        let order = match mac {
            Mac::HmacSha2_256 | Mac::HmacSha2_512 => Order::EncryptAndMac,
            Mac::HmacSha2_256Etm | Mac::HmacSha2_512Etm => Order::EncryptThenMac,
        };
        // RFC 6668 §2: the key of an HMAC is as long as its tag.
        let mac = match mac {
            Mac::HmacSha2_256 | Mac::HmacSha2_256Etm => {
                hmac::Key::new(hmac::HMAC_SHA256, &*secrets.key::<32>(direction.mac)?)
            }
            Mac::HmacSha2_512 | Mac::HmacSha2_512Etm => {
                hmac::Key::new(hmac::HMAC_SHA512, &*secrets.key::<64>(direction.mac)?)
            }
        };
        Ok(Self {
            key,
            counter: u128::from_be_bytes(*secrets.key::<BLOCK>(direction.iv)?),
            mac,
            order,
        })
    }

    /// How many bytes of `packet_length` are encrypted, and so count towards whole blocks.
    pub(super) fn encrypted_length(&self) -> usize {
        match self.order {
            Order::EncryptAndMac => LENGTH,
            Order::EncryptThenMac => 0,
        }
    }

    pub(super) fn tag_length(&self) -> usize {
        self.mac.algorithm().tag_len()
    }

    /// The length that a packet claims; not authenticated.
    pub(super) fn packet_length(&self, mut first: [u8; LENGTH]) -> Result<[u8; LENGTH], Violation> {
        if self.order == Order::EncryptAndMac {
            // The packet itself stays as it is until all of it is there.
            self.apply(&mut first).map_err(|_| Violation::Tag)?;
        }
        Ok(first)
    }

    /// Encrypts what stands in `out` from `start` on and appends the tag.
    pub(super) fn seal(&mut self, sequence: u32, out: &mut BytesMut, start: usize) {
        let packet = out.get_mut(start..).unwrap_or_default();
        let tag = match self.order {
            Order::EncryptAndMac => {
                let tag = self.tag(sequence, packet);
                self.advance(packet).expect("counter mode takes any length");
                tag
            }
            Order::EncryptThenMac => {
                let body = packet.get_mut(LENGTH..).unwrap_or_default();
                self.advance(body).expect("counter mode takes any length");
                self.tag(sequence, packet)
            }
        };
        out.extend_from_slice(tag.as_ref());
    }

    /// Verifies `packet` (length, body, tag) and decrypts its body in place; the length too where it is encrypted.
    pub(super) fn open(&mut self, sequence: u32, packet: &mut [u8]) -> Result<(), Violation> {
        let tagless = packet
            .len()
            .checked_sub(self.tag_length())
            .ok_or(Violation::Tag)?;
        let (packet, tag) = packet.split_at_mut(tagless);
        match self.order {
            Order::EncryptAndMac => {
                self.advance(packet).map_err(|_| Violation::Tag)?;
                self.verify(sequence, packet, tag)
            }
            Order::EncryptThenMac => {
                self.verify(sequence, packet, tag)?;
                let body = packet.get_mut(LENGTH..).unwrap_or_default();
                self.advance(body).map_err(|_| Violation::Tag)
            }
        }
    }

    /// In constant time.
    fn verify(&self, sequence: u32, packet: &[u8], tag: &[u8]) -> Result<(), Violation> {
        verify_slices_are_equal(self.tag(sequence, packet).as_ref(), tag).map_err(|_| Violation::Tag)
    }

    fn tag(&self, sequence: u32, packet: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.mac);
        context.update(&sequence.to_be_bytes());
        context.update(packet);
        context.sign()
    }

    /// Encrypts or decrypts, which is the same, and moves the counter on.
    fn advance(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.apply(bytes)?;
        let blocks = u128::try_from(bytes.len().div_ceil(BLOCK)).map_err(|_| Error::Crypto)?;
        // RFC 4344 §4: modulo 2^128.
        self.counter = self.counter.wrapping_add(blocks);
        Ok(())
    }

    fn apply(&self, bytes: &mut [u8]) -> Result<(), Error> {
        let counter = EncryptionContext::Iv128(FixedLength::from(self.counter.to_be_bytes()));
        self.key.less_safe_encrypt(bytes, counter)?;
        Ok(())
    }
}

fn aes(algorithm: &'static cipher::Algorithm, key: &[u8]) -> Result<EncryptingKey, Error> {
    Ok(EncryptingKey::ctr(UnboundCipherKey::new(algorithm, key)?)?)
}
