//! Sealing and opening of packets in place. It decides where length, nonce and tag of each cipher go
//! (PROTOCOL.chacha20poly1305, RFC 5647; `ctr.rs` has the rest); the ciphers themselves are the library's.

use std::fmt;

use aws_lc_rs::aead::chacha20_poly1305_openssh as chacha;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, Nonce, UnboundKey};
use bytes::BytesMut;

use super::ctr::{self, Ctr, KeySize};
use super::derive::Secrets;
use crate::algorithms::{Cipher, Mac};
use crate::{Error, Violation};

/// `packet_length`, which stands outside the encryption of most ciphers and inside the authentication of all.
pub(super) const LENGTH: usize = 4;
/// The tag of the ciphers that authenticate by themselves.
pub(super) const TAG: usize = 16;

/// What protects one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protection {
    pub(super) cipher: Cipher,
    /// Set for the ciphers that do not authenticate by themselves, and for no other.
    pub(super) mac: Option<Mac>,
}

impl Protection {
    /// Every combination.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn all() -> Vec<Self> {
        let macs = |cipher: Cipher| match cipher.is_authenticated() {
            true => vec![None],
            false => Mac::ALL.iter().copied().map(Some).collect(),
        };
        let with_macs = |&cipher| macs(cipher).into_iter().map(move |mac| Self { cipher, mac });
        Cipher::ALL.iter().flat_map(with_macs).collect()
    }
}

/// One direction under its present key. `C` is what only one cipher has: one kind of key to seal and another to open.
pub(super) enum Keyed<C> {
    /// Before the first NEWKEYS.
    Plain,
    Gcm(Gcm),
    ChaCha(C),
    /// Boxed because it is three times as large as the others and less often used.
    Ctr(Box<Ctr>),
}

/// Encrypts what we send.
pub(super) type Sealer = Keyed<chacha::SealingKey>;
/// Decrypts what we receive.
pub(super) type Opener = Keyed<chacha::OpeningKey>;

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
    pub(super) iv: u8,
    pub(super) key: u8,
    pub(super) mac: u8,
}

pub(super) const CLIENT_TO_SERVER: Direction = Direction {
    iv: b'A',
    key: b'C',
    mac: b'E',
};
pub(super) const SERVER_TO_CLIENT: Direction = Direction {
    iv: b'B',
    key: b'D',
    mac: b'F',
};

impl<C> Keyed<C> {
    fn derive(
        protection: Protection,
        secrets: &Secrets<'_>,
        direction: Direction,
        chacha: impl FnOnce(&[u8; chacha::KEY_LEN]) -> C,
    ) -> Result<Self, Error> {
        let ctr = |size| {
            let mac = protection.mac.ok_or(Error::Crypto)?;
            let ctr = Ctr::new(size, mac, secrets, direction)?;
            Ok(Self::Ctr(Box::new(ctr)))
        };
        match protection.cipher {
            Cipher::ChaCha20Poly1305 => Ok(Self::ChaCha(chacha(&*secrets.key(direction.key)?))),
            Cipher::Aes128Gcm => gcm_key::<16>(&AES_128_GCM, secrets, direction).map(Self::Gcm),
            Cipher::Aes256Gcm => gcm_key::<32>(&AES_256_GCM, secrets, direction).map(Self::Gcm),
            Cipher::Aes128Ctr => ctr(KeySize::Aes128),
            Cipher::Aes192Ctr => ctr(KeySize::Aes192),
            Cipher::Aes256Ctr => ctr(KeySize::Aes256),
        }
    }

    /// What a packet's length is a multiple of, and how many of its first bytes count towards that.
    pub(super) fn alignment(&self) -> Alignment {
        // RFC 4253 §6: the block of the cipher, at least 8.
        let (block, counted) = match self {
            Self::Plain => (8, LENGTH),
            Self::Gcm(_) => (ctr::BLOCK, 0),
            Self::ChaCha(_) => (8, 0),
            Self::Ctr(ctr) => (ctr::BLOCK, ctr.encrypted_length()),
        };
        Alignment { block, counted }
    }

    pub(super) fn tag_length(&self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Gcm(_) | Self::ChaCha(_) => TAG,
            Self::Ctr(ctr) => ctr.tag_length(),
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }
}

impl Sealer {
    pub(super) fn new(
        protection: Protection,
        secrets: &Secrets<'_>,
        direction: Direction,
    ) -> Result<Self, Error> {
        Self::derive(protection, secrets, direction, chacha::SealingKey::new)
    }

    /// Encrypts the packet that stands in `out` from `start` on (length, padding length, payload, padding) and appends
    /// its tag.
    pub(super) fn seal(&mut self, sequence: u32, out: &mut BytesMut, start: usize) {
        let packet = out.get_mut(start..).unwrap_or_default();
        match self {
            Self::Plain => {}
            Self::Gcm(gcm) => {
                let nonce = gcm.nonce();
                let (length, body) = packet.split_at_mut(LENGTH);
                let sealed = gcm
                    .key
                    .seal_in_place_separate_tag(nonce, Aad::from(&*length), body);
                let tag = sealed.expect("a packet is far below the limit of GCM");
                out.extend_from_slice(tag.as_ref());
            }
            Self::ChaCha(key) => {
                let mut tag = [0; TAG];
                key.seal_in_place(sequence, packet, &mut tag);
                out.extend_from_slice(&tag);
            }
            Self::Ctr(ctr) => ctr.seal(sequence, out, start),
        }
    }
}

impl Opener {
    pub(super) fn new(
        protection: Protection,
        secrets: &Secrets<'_>,
        direction: Direction,
    ) -> Result<Self, Error> {
        Self::derive(protection, secrets, direction, chacha::OpeningKey::new)
    }

    /// The length that a packet claims; not authenticated before [`Self::open`].
    pub(super) fn packet_length(&self, sequence: u32, first: [u8; LENGTH]) -> Result<u32, Violation> {
        let length = match self {
            Self::Plain | Self::Gcm(_) => first,
            Self::ChaCha(key) => key.decrypt_packet_length(sequence, first),
            Self::Ctr(ctr) => ctr.packet_length(first)?,
        };
        Ok(u32::from_be_bytes(length))
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
            Self::Ctr(ctr) => ctr.open(sequence, packet),
        }
    }
}

fn gcm_key<const KEY: usize>(
    algorithm: &'static Algorithm,
    secrets: &Secrets<'_>,
    direction: Direction,
) -> Result<Gcm, Error> {
    let key = secrets.key::<KEY>(direction.key)?;
    let iv = secrets.key::<12>(direction.iv)?;
    Gcm::new(algorithm, &*key, &*iv)
}

/// How the length of a packet must come out.
#[derive(Clone, Copy)]
pub(super) struct Alignment {
    pub(super) block: usize,
    /// How many bytes of `packet_length` count: those that are encrypted with the rest.
    pub(super) counted: usize,
}

/// Shows no key.
impl<C> fmt::Debug for Keyed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Gcm(_) => "Gcm",
            Self::ChaCha(_) => "ChaCha",
            Self::Ctr(_) => "Ctr",
        })
    }
}
