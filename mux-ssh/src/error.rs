//! Why a connection fails, sorted by whom to blame. Decides no consequence: who reconnects and what a person is told
//! belongs to the owner.

use std::fmt;

use crate::client::{AuthViolation, ChannelViolation};
use crate::keys::KeyBlobError;
use crate::printable::Printable;

/// Why a connection failed. The first error of a connection is its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The peer broke the protocol.
    Violation(Violation),
    /// Both sides keep the protocol and have nothing in common.
    Incompatible(Incompatible),
    /// The caller asked for something that can't be.
    Misuse(Misuse),
    /// The peer ended the connection and said why.
    Disconnected {
        /// The reason code of RFC 4253 §11.1.
        code: u32,
        /// The peer's words; foreign text, at most [`MAX_DESCRIPTION`](crate::transport::MAX_DESCRIPTION) bytes.
        description: String,
    },
    /// The peer's last byte came before the connection was over.
    UnexpectedEof,
    /// The owner did not accept the host key.
    HostKeyRejected,
    /// What was sent on the strength of memory did not suit this server. Connect again without memory; nothing
    /// else is wrong.
    GuessRejected,
    /// The peer did not finish a new key exchange in time, so nothing more could be sent.
    RekeyTimeout,
    /// Nothing is left to log in with.
    AuthFailed {
        /// What the server would still accept; foreign text, bounded. Empty if it never said.
        methods: Vec<String>,
        /// A key was accepted, but the server wants another proof as well.
        partial: bool,
    },
    /// The login was refused together with what was sent ahead of its answer, and this kind of server does not go on
    /// after that. Connect once more with `cautious`, without this identity: that is no retry.
    EarlyAuthRefused {
        /// The identity that was refused; `None` if the server went away without an answer.
        identity: Option<usize>,
    },
    /// The server lets in who an earlier connection tried to log in as, with the command behind it: it may have run
    /// then, and is not sent again.
    MayHaveRun,
    /// The peer answered no probe, and nothing else came from it either.
    Silent,
    /// The cryptographic library failed, which means that it had no memory or no randomness.
    Crypto,
}

/// What the peer did that the protocol forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    // Fields (RFC 4251 §5).
    /// A message ends before its last field does.
    Truncated,
    /// A message goes on after its last field.
    TrailingBytes,
    /// A text is not UTF-8.
    NotText,
    /// A negative number where none can be.
    NegativeMpint,
    /// A name-list with an empty name or with bytes that are not printable ASCII.
    NameList,

    // Identification (RFC 4253 §4.2).
    /// More lines, or longer ones, than allowed before the identification.
    BannerTooLong,
    /// The identification is longer than 255 bytes.
    IdentTooLong,
    /// The identification has a zero byte, or is not one where it must be.
    IdentMalformed,

    // Packets (RFC 4253 §6).
    /// The length of a packet is below the minimum, above the limit or not a multiple of the block.
    PacketLength(u32),
    /// The padding is shorter than 4 bytes or leaves no room for a payload.
    PaddingLength(u8),
    /// A tag does not match: the packet was changed on its way, or was never the peer's.
    Tag,
    /// More packets under one key than it can bear (RFC 4253 §9, RFC 4344 §3.1).
    KeyExhausted,

    // Order.
    /// A message that can't come now.
    UnexpectedMessage(u8),
    /// Under strict key exchange, KEXINIT was not the peer's first packet (OpenSSH PROTOCOL §1.9).
    StrictFirstPacket,
    /// More messages without meaning before the first NEWKEYS than any honest peer sends.
    IgnoreFlood,
    /// More unknown messages than any honest peer sends.
    UnknownMessageFlood,

    // Key exchange.
    /// More names in a KEXINIT than any honest peer sends.
    TooManyNames,
    /// The peer's public value has the wrong length or is no point or key of its algorithm.
    KexValue,
    /// The host key can't be read or used.
    HostKey(KeyBlobError),
    /// The host key is of another type than was negotiated.
    HostKeyType,
    /// The signature is made with another algorithm than was negotiated.
    SignatureAlgorithm,
    /// The signature over the exchange hash is wrong.
    Signature,
    /// A new key exchange came with another host key than the first.
    HostKeyChanged,

    // Extensions (RFC 8308).
    /// More extensions in one message than any honest peer sends.
    TooManyExtensions,
    /// EXT_INFO for the third time, or at a time when it can't come.
    ExtInfoUnexpected,

    /// During the login (RFC 4252).
    Auth(AuthViolation),
    /// On a channel (RFC 4254).
    Channel(ChannelViolation),
}

/// What both sides lack in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incompatible {
    /// The peer does not speak SSH 2.
    ProtocolVersion,
    /// No common key exchange. The peer's list, cut to what fits a message.
    Kex(String),
    /// No common host key algorithm.
    HostKey(String),
    /// No common cipher.
    Cipher(String),
    /// No common MAC, and the common cipher needs one.
    Mac(String),
    /// The peer insists on compression.
    Compression(String),
}

/// What the caller did that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// A list of algorithms leaves nothing that this build has.
    NoAlgorithmLeft,
    /// The channel has had its final event.
    NoSuchChannel,
    /// Standard input was finished before.
    StdinFinished,
    /// More bytes than [`Client::stdin_room`](crate::Client::stdin_room) allows.
    NoStdinRoom,
}

impl From<Violation> for Error {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<AuthViolation> for Violation {
    fn from(violation: AuthViolation) -> Self {
        Self::Auth(violation)
    }
}

impl From<ChannelViolation> for Violation {
    fn from(violation: ChannelViolation) -> Self {
        Self::Channel(violation)
    }
}

impl From<Incompatible> for Error {
    fn from(incompatible: Incompatible) -> Self {
        Self::Incompatible(incompatible)
    }
}

impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl From<aws_lc_rs::error::Unspecified> for Error {
    fn from(_: aws_lc_rs::error::Unspecified) -> Self {
        Self::Crypto
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(violation) => write!(f, "the server broke the SSH protocol: {violation}"),
            Self::Incompatible(incompatible) => incompatible.fmt(f),
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::Disconnected { code, description } => {
                write!(f, "disconnected (reason {code}): {}", Printable::new(description))
            }
            Self::UnexpectedEof => f.write_str("connection closed by the server"),
            Self::HostKeyRejected => f.write_str("host key not accepted"),
            Self::GuessRejected => f.write_str("the server is not as remembered"),
            Self::RekeyTimeout => f.write_str("the server did not finish the key exchange"),
            Self::AuthFailed { methods, partial } => fmt_auth_failed(f, methods, *partial),
            Self::EarlyAuthRefused { .. } => {
                f.write_str("the server ended the connection after a refused key")
            }
            Self::MayHaveRun => f.write_str("the key is accepted that had no answer before"),
            Self::Silent => f.write_str("the server no longer answers"),
            Self::Crypto => f.write_str("the cryptographic library failed"),
        }
    }
}

fn fmt_auth_failed(f: &mut fmt::Formatter<'_>, methods: &[String], partial: bool) -> fmt::Result {
    f.write_str(if partial {
        "the server wants a further proof"
    } else {
        "permission denied"
    })?;
    if methods.is_empty() {
        return Ok(());
    }
    write!(f, " (server offers {})", Printable::new(&methods.join(",")))
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::PacketLength(length) => return write!(f, "a packet of impossible length {length}"),
            Self::PaddingLength(length) => return write!(f, "a packet with impossible padding {length}"),
            Self::UnexpectedMessage(number) => return write!(f, "message {number} at the wrong time"),
            Self::HostKey(error) => return write!(f, "unusable host key: {error}"),
            Self::Auth(violation) => return violation.fmt(f),
            Self::Channel(violation) => return violation.fmt(f),
            Self::Truncated => "a message is cut short",
            Self::TrailingBytes => "a message has bytes left over",
            Self::NotText => "a text is not UTF-8",
            Self::NegativeMpint => "a negative number",
            Self::NameList => "a malformed list of names",
            Self::BannerTooLong => "too much text before the identification",
            Self::IdentTooLong => "the identification is too long",
            Self::IdentMalformed => "the identification is malformed",
            Self::Tag => "a packet was corrupted",
            Self::KeyExhausted => "too many packets under one key",
            Self::StrictFirstPacket => "a packet before KEXINIT under strict key exchange",
            Self::IgnoreFlood => "too many messages without meaning",
            Self::UnknownMessageFlood => "too many unknown messages",
            Self::TooManyNames => "too many names in KEXINIT",
            Self::KexValue => "an invalid public value in the key exchange",
            Self::HostKeyType => "a host key of another type than agreed",
            Self::SignatureAlgorithm => "a signature by another algorithm than agreed",
            Self::Signature => "a wrong signature by the host key",
            Self::HostKeyChanged => "the host key changed within the connection",
            Self::TooManyExtensions => "too many extensions",
            Self::ExtInfoUnexpected => "EXT_INFO at the wrong time",
        };
        f.write_str(text)
    }
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, theirs) = match self {
            Self::ProtocolVersion => return f.write_str("the server does not speak SSH 2"),
            Self::Kex(theirs) => ("key exchange", theirs),
            Self::HostKey(theirs) => ("host key algorithm", theirs),
            Self::Cipher(theirs) => ("cipher", theirs),
            Self::Mac(theirs) => ("MAC", theirs),
            Self::Compression(theirs) => ("compression", theirs),
        };
        write!(
            f,
            "no common {what}; the server offers {}",
            Printable::new(theirs)
        )
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAlgorithmLeft => f.write_str("the list leaves no algorithm that is supported"),
            Self::NoSuchChannel => f.write_str("the channel is over"),
            Self::StdinFinished => f.write_str("standard input was finished before"),
            Self::NoStdinRoom => f.write_str("more standard input than there is room for"),
        }
    }
}

impl std::error::Error for Error {}
impl std::error::Error for Violation {}
impl std::error::Error for Incompatible {}
impl std::error::Error for Misuse {}
