//! Frames of the agent protocol. Decides what a well-formed question and answer look like; never which answer fits
//! which question.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use zeroize::Zeroize as _;

use super::error::AgentViolation;
use crate::Violation;
use crate::algorithms::SignatureAlgorithm;
use crate::keys::{Certificate, PrivateKey, PublicKey, SignError};
use crate::wire::{Reader, Writer};

/// As OpenSSH's `AGENT_MAX_LEN`; a list of 2,048 Ed25519 keys with their comments fits.
pub const MAX_FRAME: usize = 256 * 1024;

/// As OpenSSH's `MAX_AGENT_IDENTITIES`.
pub const MAX_IDENTITIES: u32 = 2048;

/// A key that an agent holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentIdentity {
    /// Its public half.
    pub key: PublicKey,
    /// A certificate for it, which the agent holds in its place.
    pub certificate: Option<Arc<Certificate>>,
    /// What the agent calls it. Foreign text.
    pub comment: String,
}

impl AgentIdentity {
    /// What the agent lists; `None` if it can't be used.
    fn new(blob: &[u8], comment: String) -> Option<Self> {
        let (key, certificate) = if Certificate::is_one(blob) {
            let certificate = Certificate::parse(blob).ok()?;
            (certificate.key().clone(), Some(Arc::new(certificate)))
        } else {
            (PublicKey::parse(blob).ok()?, None)
        };
        Some(Self {
            key,
            certificate,
            comment,
        })
    }

    /// What the agent knows it by.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        match &self.certificate {
            Some(certificate) => certificate.blob(),
            None => self.key.blob(),
        }
    }
}

/// An answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Failure,
    Success,
    /// `skipped` keys are of types that this build cannot use, or damaged.
    Identities {
        identities: Vec<AgentIdentity>,
        skipped: usize,
    },
    /// A signature blob.
    Signature(Bytes),
    /// Any other number.
    Other(u8),
}

/// Numbers of messages.
mod number {
    pub(super) const FAILURE: u8 = 5;
    pub(super) const SUCCESS: u8 = 6;
    pub(super) const REQUEST_IDENTITIES: u8 = 11;
    pub(super) const IDENTITIES_ANSWER: u8 = 12;
    pub(super) const SIGN_REQUEST: u8 = 13;
    pub(super) const SIGN_RESPONSE: u8 = 14;
    pub(super) const ADD_IDENTITY: u8 = 17;
    pub(super) const ADD_ID_CONSTRAINED: u8 = 25;
    pub(super) const CONSTRAIN_LIFETIME: u8 = 1;
    pub(super) const CONSTRAIN_CONFIRM: u8 = 2;
    pub(super) const EXTENSION: u8 = 27;
    pub(super) const EXTENSION_FAILURE: u8 = 28;
}

pub(super) fn request_identities() -> Bytes {
    frame(|writer| {
        writer.byte(number::REQUEST_IDENTITIES);
    })
}

pub(super) fn sign(key: &[u8], algorithm: SignatureAlgorithm, data: &[u8]) -> Bytes {
    frame(|writer| {
        writer
            .byte(number::SIGN_REQUEST)
            .string(key)
            .string(data)
            .uint32(flags(algorithm));
    })
}

/// How long an agent keeps a key, and whether it asks before each use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// In seconds; `None`: until it ends or is told to forget.
    pub seconds: Option<u32>,
    /// Each use is to be confirmed.
    pub confirm: bool,
}

/// Gives the agent a key.
pub(super) fn add(key: &PrivateKey, comment: &str, keep: Keep) -> Result<Bytes, SignError> {
    let mut secret = BytesMut::new();
    key.write_secret(&mut secret)?;
    let number = match keep {
        Keep {
            seconds: None,
            confirm: false,
        } => number::ADD_IDENTITY,
        Keep { .. } => number::ADD_ID_CONSTRAINED,
    };
    let frame = frame(|writer| {
        writer.byte(number).raw(&secret).string(comment);
        if let Some(seconds) = keep.seconds {
            writer.byte(number::CONSTRAIN_LIFETIME).uint32(seconds);
        }
        if keep.confirm {
            writer.byte(number::CONSTRAIN_CONFIRM);
        }
    });
    secret.as_mut().zeroize();
    Ok(frame)
}

/// `session-bind@openssh.com`: tells the agent which server's login it signs for, so that it can refuse others
/// (OpenSSH PROTOCOL.agent §1).
pub(super) fn session_bind(host_key: &[u8], session_id: &[u8], signature: &[u8], forwarding: bool) -> Bytes {
    frame(|writer| {
        writer
            .byte(number::EXTENSION)
            .string("session-bind@openssh.com")
            .string(host_key)
            .string(session_id)
            .string(signature)
            .boolean(forwarding);
    })
}

fn frame(fill: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut frame = BytesMut::new();
    Writer::new(&mut frame).string_of(fill);
    frame.freeze()
}

/// Without a flag RSA keys sign with SHA-1 (RFC 8332 came after the protocol).
fn flags(algorithm: SignatureAlgorithm) -> u32 {
    match algorithm {
        SignatureAlgorithm::RsaSha2_256 => 2,
        SignatureAlgorithm::RsaSha2_512 => 4,
        SignatureAlgorithm::Ed25519
        | SignatureAlgorithm::EcdsaNistp256
        | SignatureAlgorithm::EcdsaNistp384
        | SignatureAlgorithm::EcdsaNistp521
        | SignatureAlgorithm::SkEd25519
        | SignatureAlgorithm::SkEcdsaNistp256 => 0,
    }
}

/// Takes one whole frame from the front of `input`, without its length. Nothing is reserved for a frame that has
/// been announced and not sent.
pub(super) fn take_frame(input: &mut BytesMut) -> Result<Option<Bytes>, AgentViolation> {
    let Some(&length) = input.first_chunk() else {
        return Ok(None);
    };
    let declared = u32::from_be_bytes(length);
    let length = usize::try_from(declared).unwrap_or(usize::MAX);
    if length == 0 || length > MAX_FRAME {
        return Err(AgentViolation::FrameLength(declared));
    }
    if input.len() < 4 + length {
        return Ok(None);
    }
    input.advance(4);
    Ok(Some(input.split_to(length).freeze()))
}

pub(super) fn parse(frame: &Bytes) -> Result<Answer, AgentViolation> {
    let mut reader = Reader::new(frame);
    let answer = match reader.byte()? {
        // Some agents put a reason behind it; nobody reads it.
        number::FAILURE | number::EXTENSION_FAILURE => return Ok(Answer::Failure),
        number::SUCCESS => return Ok(Answer::Success),
        number::IDENTITIES_ANSWER => identities(&mut reader)?,
        number::SIGN_RESPONSE => Answer::Signature(frame.slice_ref(reader.string()?)),
        other => return Ok(Answer::Other(other)),
    };
    reader.finish()?;
    Ok(answer)
}

fn identities(reader: &mut Reader<'_>) -> Result<Answer, AgentViolation> {
    let count = reader.uint32()?;
    if count > MAX_IDENTITIES {
        return Err(AgentViolation::TooManyIdentities(count));
    }
    // Not reserved by the count: an agent that announces many and sends few must not cost memory.
    let mut identities = Vec::new();
    let mut skipped = 0;
    for _ in 0..count {
        let blob = reader.string()?;
        let comment = String::from_utf8_lossy(reader.string()?).into_owned();
        match AgentIdentity::new(blob, comment) {
            Some(identity) => identities.push(identity),
            None => skipped += 1,
        }
    }
    Ok(Answer::Identities { identities, skipped })
}

/// Whether a signature blob names this algorithm and has two fields.
pub(super) fn is_made_with(signature: &[u8], algorithm: SignatureAlgorithm) -> bool {
    let mut reader = Reader::new(signature);
    let name = reader.string();
    let value = reader.string();
    // A security key's flags and counter.
    let behind = if algorithm.key_type().is_security_key() {
        5
    } else {
        0
    };
    let is_whole = value.is_ok_and(|value| !value.is_empty()) && reader.rest().len() == behind;
    name == Ok(algorithm.name().as_bytes()) && is_whole
}

impl From<Violation> for AgentViolation {
    fn from(violation: Violation) -> Self {
        // The reader's other violations belong to fields that no answer has.
        if violation == Violation::TrailingBytes {
            Self::TrailingBytes
        } else {
            Self::Truncated
        }
    }
}
