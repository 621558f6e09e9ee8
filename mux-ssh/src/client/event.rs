//! What a client tells its owner, and the names by which the owner answers.
//!
//! Only values: an event is owned, holds no reference into the client and may be kept or sent elsewhere. Nothing here
//! decides anything.

use std::sync::Arc;

use bytes::Bytes;

use super::{AuthMethod, Prompt};
use crate::algorithms::{KeyType, SignatureAlgorithm};
use crate::keys::{Certificate, CertificateError, PublicKey};
use crate::transport::ServerMemory;

/// How far the login has come. Each stage is reached once, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The server's identification has been read.
    Banner,
    /// The key exchange is done; the host key is being asked about.
    Kex,
    /// The host key was accepted and the new keys are in use: authentication begins.
    Auth,
    /// Authenticated; commands run.
    Ready,
}

/// One command's channel. A number that is used again has another generation, so a stale id never names a newer
/// channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl ChannelId {
    /// Our number of the channel, as it stands in packets (RFC 4254 §5.1).
    #[must_use]
    pub fn number(self) -> u32 {
        self.slot
    }
}

/// A question to the owner that waits for its answer. Answers to a question that is no longer open change nothing. The
/// default is the first of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QuestionId(pub(crate) u32);

impl QuestionId {
    /// The number by which another process may name the question.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The question of this number. One that was never asked is no longer open.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Which of a command's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamKind {
    /// Standard output.
    Stdout,
    /// Standard error (extended data type 1, RFC 4254 §5.2).
    Stderr,
}

/// Why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelFailure {
    /// The server opened no channel for it (RFC 4254 §5.1); text is at most 1 KiB and not yet safe to print.
    Refused {
        /// The reason code: 1 prohibited, 2 connect failed, 3 unknown type, 4 resource shortage.
        code: u32,
        /// What the server says about it.
        text: String,
    },
    /// The channel was opened, but the server does not run the command on it.
    ExecRefused,
    /// The server closed the channel without having answered the command.
    ClosedUnanswered,
    /// The connection ended first.
    ConnectionLost,
    /// The owner closed the channel before the command was sent.
    Cancelled,
    /// The command or one of its variables is longer than 128 KiB, more than any shell could be given.
    TooLarge,
    /// This server gives no further session on this connection; the client did not ask it.
    NoSession,
}

/// What happened, oldest first.
///
/// Every channel that [`Client::exec`](super::Client::exec) returned ends with exactly one
/// [`ChannelFailed`](Event::ChannelFailed) or [`ChannelClosed`](Event::ChannelClosed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The login has come this far: for deadlines and timings.
    Stage(Stage),
    /// Lines that came where the identification should be (RFC 4253 §4.2): why a server that hangs up does so.
    /// Bounded, but not yet safe to print. Lines that come together with the identification are not told.
    Greeting(String),
    /// The server proved that it holds this key. Is it the right one?
    /// Answer with [`Client::answer_host_key`](super::Client::answer_host_key).
    HostKey {
        /// Names the question.
        id: QuestionId,
        /// The key.
        key: PublicKey,
        /// The certificate in which it was shown, if any, or what is wrong with that one. It may vouch for the key;
        /// if it doesn't, the key counts as if it had been shown alone.
        certificate: Option<Result<Arc<Certificate>, CertificateError>>,
        /// The types of key that the server has by its own word, of those that it was offered: it may be asked for another
        /// one in another connection.
        types: Vec<KeyType>,
    },
    /// `data` is to be signed by an identity.
    /// Answer with [`Client::answer_signature`](super::Client::answer_signature).
    Sign {
        /// Names the question.
        id: QuestionId,
        /// Index in the list of identities.
        identity: usize,
        /// With which algorithm.
        algorithm: SignatureAlgorithm,
        /// What RFC 4252 §7 wants signed; begins with the session id.
        data: Bytes,
        /// The session id and the server's proof of it, for an agent's `session-bind@openssh.com`.
        binding: SessionBinding,
    },
    /// The server does not accept this identity, or the identity has no algorithm that the server takes.
    KeyRefused {
        /// Index in the list of identities.
        identity: usize,
    },
    /// Somebody is to be asked: for a password, or what the server wants to know.
    /// Answer with [`Client::answer_prompt`](super::Client::answer_prompt).
    Prompt {
        /// Names the question.
        id: QuestionId,
        /// What is asked.
        prompt: Prompt,
    },
    /// The server did not take what it was answered; of keys [`KeyRefused`](Event::KeyRefused) tells.
    MethodRefused {
        /// By which method.
        method: AuthMethod,
    },
    /// The server took this, and wants something else as well (RFC 4252 §5.1).
    PartialSuccess {
        /// By which method.
        method: AuthMethod,
        /// With which identity, if it was a key.
        identity: Option<usize>,
    },
    /// The password has expired, and the server wants a new one before it lets anybody in (RFC 4252 §8). None is
    /// given: who changes a password wants to see what it is changed to, and on which host.
    PasswordExpired {
        /// The server's words; bounded, but not yet safe to print.
        words: String,
    },
    /// The connection is gone over a signed request that was never answered, with more sent behind it, to a kind of
    /// server that ends a connection over that when it refuses: the reset takes its refusal along, unless it was
    /// quick. Connect once more with `cautious`, and with this identity as `doubted` if the command may have run.
    LoginUnanswered {
        /// Index in the list of identities.
        identity: usize,
    },
    /// A message for the user before login. Bounded, but not yet safe to print.
    Banner(String),
    /// The server let us in.
    Authenticated {
        /// By which identity; `None` if by another method than a key.
        identity: Option<usize>,
    },
    /// What is worth remembering about this server, once its host key is accepted and again when something changes.
    Learned(ServerMemory),
    /// The host has these keys too, or says so: told once, after the login, if it was asked for
    /// (`ClientConfig::host_keys`). [`Client::prove_host_keys`](super::Client::prove_host_keys) asks for a proof.
    HostKeys(Vec<PublicKey>),
    /// The server proved that it holds these keys; none: it did not.
    HostKeysProven(Vec<PublicKey>),
    /// Output of a command. Give its room back with [`Client::consume`](super::Client::consume).
    Output {
        /// The command.
        channel: ChannelId,
        /// Which stream.
        stream: StreamKind,
        /// Never empty.
        data: Bytes,
    },
    /// The server has opened the command's session. What comes next is the command's own pace.
    Opened {
        /// The command.
        channel: ChannelId,
    },
    /// The server wants to talk to the user's agent, and may. The channel is one like those of commands: what is said to
    /// the agent is [`Output`](Event::Output), [`Client::write_stdin`](super::Client::write_stdin) says what the agent
    /// answers, and [`Client::close_channel`](super::Client::close_channel) ends it.
    AgentOpened {
        /// The channel.
        channel: ChannelId,
    },
    /// No more output of either stream.
    Eof {
        /// The command.
        channel: ChannelId,
    },
    /// The command ended by itself. Output may still follow: OpenSSH sends it before the last of it.
    ExitStatus {
        /// The command.
        channel: ChannelId,
        /// Its exit status.
        status: u32,
    },
    /// The command was ended by a signal.
    ExitSignal {
        /// The command.
        channel: ChannelId,
        /// Name without `SIG`, at most 64 bytes.
        signal: String,
        /// Whether it left a core file.
        core_dumped: bool,
        /// At most 1 KiB, not yet safe to print.
        message: String,
    },
    /// Half of the room for standard input is free again, after most of it was taken.
    StdinRoom {
        /// The command.
        channel: ChannelId,
    },
    /// The server does not take this environment variable; the command runs without it.
    EnvRefused {
        /// The command.
        channel: ChannelId,
        /// The variable.
        name: Bytes,
    },
    /// The command has no result. Final for this channel.
    ChannelFailed {
        /// The command.
        channel: ChannelId,
        /// Why.
        reason: ChannelFailure,
        /// Whether the server may have run it: only if `false` may it be sent again.
        may_have_run: bool,
    },
    /// Both sides are done with the channel and all output was delivered. Final for this channel.
    ChannelClosed {
        /// The command.
        channel: ChannelId,
    },
    /// The server said why it ends the connection.
    Disconnected {
        /// RFC 4253 §11.1.
        code: u32,
        /// Bounded, but not yet safe to print.
        description: String,
    },
}

impl Event {
    /// The channel that it is about, if it is about one.
    #[must_use]
    pub fn channel(&self) -> Option<ChannelId> {
        match self {
            Self::Output { channel, .. }
            | Self::Opened { channel }
            | Self::AgentOpened { channel }
            | Self::Eof { channel }
            | Self::ExitStatus { channel, .. }
            | Self::ExitSignal { channel, .. }
            | Self::StdinRoom { channel }
            | Self::EnvRefused { channel, .. }
            | Self::ChannelFailed { channel, .. }
            | Self::ChannelClosed { channel } => Some(*channel),
            Self::Stage(_)
            | Self::Greeting(_)
            | Self::HostKey { .. }
            | Self::Sign { .. }
            | Self::KeyRefused { .. }
            | Self::Prompt { .. }
            | Self::MethodRefused { .. }
            | Self::PartialSuccess { .. }
            | Self::PasswordExpired { .. }
            | Self::LoginUnanswered { .. }
            | Self::Banner(_)
            | Self::Authenticated { .. }
            | Self::Learned(_)
            | Self::HostKeys(_)
            | Self::HostKeysProven(_)
            | Self::Disconnected { .. } => None,
        }
    }
}

/// What binds an agent's socket to this connection: the fields of `session-bind@openssh.com`
/// (PROTOCOL.agent §1 of OpenSSH).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionBinding {
    /// The exchange hash of the first key exchange.
    pub session_id: Bytes,
    /// The blob of the host key, or of the certificate in which it was shown.
    pub host_key: Bytes,
    /// The host key's signature of the session id.
    pub signature: Bytes,
}
