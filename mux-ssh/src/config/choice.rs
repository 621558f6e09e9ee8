//! The values of keywords that choose between a few words or hold more than one part. Plain values: they decide
//! nothing.

use std::time::Duration;

/// Whether the key of an unknown host is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKeyPolicy {
    /// Only known keys.
    Strict,
    /// The user is asked about the first key of an unknown host; a changed one is refused.
    Ask,
    /// The first key of an unknown host is taken and kept; a changed one is refused.
    AcceptNew,
    /// Any key is taken: `no` and `off`.
    Off,
}

/// How the connection gets to the host, if not directly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// `ProxyJump`: through these, in this order; at least one.
    Jump(Vec<JumpHost>),
    /// `ProxyCommand`: through the standard input and output of this, for a shell. Tokens are expanded.
    Command(String),
}

/// One stop of a `ProxyJump`. What it leaves open is for the stop's own configuration to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JumpHost {
    /// As whom.
    pub user: Option<String>,
    /// A name to be looked up in the configuration, or an address without brackets.
    pub host: String,
    /// On which port.
    pub port: Option<u16>,
}

/// Whether the agent may be used from the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ForwardAgent {
    /// It may not.
    No,
    /// The one of `SSH_AUTH_SOCK`.
    Yes,
    /// The one that listens on this socket.
    Socket(String),
}

/// What becomes of a key that was read from a file and worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddKeysToAgent {
    /// It stays where it is.
    No,
    /// The user is asked.
    Ask,
    /// The agent gets it.
    Add {
        /// Each use is to be confirmed.
        confirm: bool,
        /// The agent forgets it after so long; `None`: never.
        lifetime: Option<Duration>,
    },
}

/// A choice between yes, no and a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum YesNoAsk {
    /// No.
    No,
    /// Yes.
    Yes,
    /// The user is asked.
    Ask,
}

/// Which addresses of a name are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressFamily {
    /// All.
    Any,
    /// IPv4 only.
    Inet,
    /// IPv6 only.
    Inet6,
}

/// How long keys are used; zero and `None` mean the defaults of the cipher and no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RekeyLimit {
    /// So many bytes; `None`: as the cipher likes.
    pub bytes: Option<u64>,
    /// So long; `None`: for any time.
    pub interval: Option<Duration>,
}

/// Whether a terminal is asked for on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestTty {
    /// Never.
    No,
    /// If our standard input is one.
    Yes,
    /// Always.
    Force,
    /// For a login shell.
    Auto,
}

/// What is started on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionType {
    /// A command or a shell.
    Default,
    /// A subsystem.
    Subsystem,
    /// Nothing.
    None,
}

/// How fingerprints are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FingerprintHash {
    /// In hexadecimal.
    Md5,
    /// In base64.
    Sha256,
}

/// Whether a name is made canonical before anything else is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Canonicalize {
    /// It is taken as it is.
    No,
    /// Unless a proxy is in the way.
    Yes,
    /// Even if a proxy is in the way.
    Always,
}

/// Which methods of public keys are used with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PubkeyAuthentication {
    /// None.
    No,
    /// All.
    Yes,
    /// Only the one of RFC 4252.
    Unbound,
    /// Only the one that is bound to the host's key.
    HostBound,
}
