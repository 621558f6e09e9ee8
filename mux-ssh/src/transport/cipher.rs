//! Sealing and opening of packets in place. It decides where length, nonce and tag of each cipher go
//! (PROTOCOL.chacha20poly1305, RFC 5647); the ciphers themselves are the library's.

use std::fmt;

use aws_lc_rs::aead::chacha20_poly1305_openssh as chacha;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey};

use super::derive::Secrets;
use crate::algorithms::Cipher;
use crate::{Error, Violation};

/// All ciphers here have tags of this length.
pub(super) const TAG: usize = 16;
/// `packet_length`, which stands outside the encryption of GCM and inside its authentication.
pub(super) const LENGTH: usize = 4;

/// Encrypts what we send.
pub(super) enum Sealer {
    /// Before the first NEWKEYS.
    Plain,
    Gcm(Gcm),
    ChaCha(chacha::SealingKey),
}

/// Decrypts what we receive.
pub(super) enum Opener {
    /// Before the first NEWKEYS.
    Plain,
    Gcm(Gcm),
    ChaCha(chacha::OpeningKey),
}

/// A key and its nonce, which counts packets by itself and never repeats under one key.
pub(super) struct Gcm {
    key: LessSafeKey,
    fixed: [u8; 4],
    counter: u64,
}

impl Gcm {
    fn new(algorithm: &'static Algorithm, key: &[u8], iv: &[u8]) -> Result<Self, Error> {
        let (fixed, counter) = iv.split_first_chunk().ok_or(Error::Crypto)?;
        let counter = counter.try_into().map_err(|_| Error::Crypto)?;
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key)?);
        Ok(Self {
            key,
            fixed: *fixed,
            counter: u64::from_be_bytes(counter),
        })
    }

    /// RFC 5647 §7.1: four fixed bytes and a counter that wraps within its eight.
    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; 12];
        let (fixed, counter) = nonce.split_at_mut(4);
        fixed.copy_from_slice(&self.fixed);
        counter.copy_from_slice(&self.counter.to_be_bytes());
        self.counter = self.counter.wrapping_add(1);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// One direction's letters of RFC 4253 §7.2.
#[derive(Clone, Copy)]
pub(super) struct Direction {
    iv: u8,
    key: u8,
}

pub(super) const CLIENT_TO_SERVER: Direction = Direction { iv: b'A', key: b'C' };
pub(super) const SERVER_TO_CLIENT: Direction = Direction { iv: b'B', key: b'D' };

impl Sealer {
    pub(super) fn new(cipher: Cipher, secrets: &Secrets, direction: Direction) -> Result<Self, Error> {
        Ok(match cipher {
            Cipher::ChaCha20Poly1305 => Self::ChaCha(chacha::SealingKey::new(&*secrets.key(direction.key)?)),
            Cipher::Aes128Gcm => Self::Gcm(gcm_key::<16>(&AES_128_GCM, secrets, direction)?),
            Cipher::Aes256Gcm => Self::Gcm(gcm_key::<32>(&AES_256_GCM, secrets, direction)?),
        })
    }

    /// What a packet's length is a multiple of, and how many of its first bytes count towards that.
    pub(super) fn alignment(&self) -> Alignment {
        match self {
            Self::Plain => Alignment::PLAIN,
            Self::Gcm(_) => Alignment::GCM,
            Self::ChaCha(_) => Alignment::CHACHA,
        }
    }

    /// Encrypts `packet` (length, padding length, payload, padding). `None`: no tag is due.
    pub(super) fn seal(&mut self, sequence: u32, packet: &mut [u8]) -> Option<[u8; TAG]> {
        match self {
            Self::Plain => None,
            Self::Gcm(gcm) => {
                let nonce = gcm.nonce();
                let (length, body) = packet.split_at_mut(LENGTH);
                let sealed = gcm
                    .key
                    .seal_in_place_separate_tag(nonce, Aad::from(&*length), body);
                let tag = sealed.expect("a packet is far below the limit of GCM");
                Some(tag.as_ref().try_into().expect("a tag of GCM has 16 bytes"))
            }
            Self::ChaCha(key) => {
                let mut tag = [0; TAG];
                key.seal_in_place(sequence, packet, &mut tag);
                Some(tag)
            }
        }
    }
}

impl Opener {
    pub(super) fn new(cipher: Cipher, secrets: &Secrets, direction: Direction) -> Result<Self, Error> {
        Ok(match cipher {
            Cipher::ChaCha20Poly1305 => Self::ChaCha(chacha::OpeningKey::new(&*secrets.key(direction.key)?)),
            Cipher::Aes128Gcm => Self::Gcm(gcm_key::<16>(&AES_128_GCM, secrets, direction)?),
            Cipher::Aes256Gcm => Self::Gcm(gcm_key::<32>(&AES_256_GCM, secrets, direction)?),
        })
    }

    pub(super) fn alignment(&self) -> Alignment {
        match self {
            Self::Plain => Alignment::PLAIN,
            Self::Gcm(_) => Alignment::GCM,
            Self::ChaCha(_) => Alignment::CHACHA,
        }
    }

    pub(super) fn tag_length(&self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Gcm(_) | Self::ChaCha(_) => TAG,
        }
    }

    /// The length that a packet claims; not authenticated before [`Self::open`].
    pub(super) fn packet_length(&self, sequence: u32, first: [u8; LENGTH]) -> u32 {
        u32::from_be_bytes(match self {
            Self::Plain | Self::Gcm(_) => first,
            Self::ChaCha(key) => key.decrypt_packet_length(sequence, first),
        })
    }

    /// Verifies `packet` (length, body, tag) and decrypts its body in place.
    pub(super) fn open(&mut self, sequence: u32, packet: &mut [u8]) -> Result<(), Violation> {
        match self {
            Self::Plain => Ok(()),
            Self::Gcm(gcm) => {
                let nonce = gcm.nonce();
                let (length, body) = packet.split_at_mut(LENGTH);
                gcm.key
                    .open_in_place(nonce, Aad::from(&*length), body)
                    .map_err(|_| Violation::Tag)?;
                Ok(())
            }
            Self::ChaCha(key) => {
                let (packet, tag) = packet.split_last_chunk_mut::<TAG>().ok_or(Violation::Tag)?;
                key.open_in_place(sequence, packet, tag)
                    .map_err(|_| Violation::Tag)?;
                Ok(())
            }
        }
    }
}

fn gcm_key<const KEY: usize>(
    algorithm: &'static Algorithm,
    secrets: &Secrets,
    direction: Direction,
) -> Result<Gcm, Error> {
    let key = secrets.key::<KEY>(direction.key)?;
    let iv = secrets.key::<12>(direction.iv)?;
    Gcm::new(algorithm, &*key, &*iv)
}

/// How the length of a packet must come out.
#[derive(Clone, Copy)]
pub(super) struct Alignment {
    /// RFC 4253 §6: the block of the cipher, at least 8.
    pub(super) block: usize,
    /// How many bytes of `packet_length` count: AEAD ciphers leave them out.
    pub(super) counted: usize,
}

impl Alignment {
    const PLAIN: Self = Self {
        block: 8,
        counted: LENGTH,
    };
    const GCM: Self = Self {
        block: 16,
        counted: 0,
    };
    const CHACHA: Self = Self { block: 8, counted: 0 };
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}
