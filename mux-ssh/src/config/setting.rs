//! What one line of ssh_config says: its keyword, and the value that the keyword takes. Plain values: they decide
//! nothing.

use std::time::Duration;

use super::choice::{
    AddKeysToAgent, AddressFamily, Canonicalize, FingerprintHash, HostKeyPolicy, JumpHost,
    PubkeyAuthentication, RequestTty, SessionType, YesNoAsk,
};
use super::value::LogLevel;

/// One honoured line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Flag(Flag, bool),
    Text(Text, String),
    Number(Number, u32),
    /// `None` for `none`, which in OpenSSH counts as not set: a later line may still say something else.
    Time(Time, Option<Duration>),
    List(List, Vec<String>),
    Port(u16),
    IdentityFile(String),
    CertificateFile(String),
    /// Names and patterns to add, and with a dash those to take away again.
    SendEnv(Vec<String>),
    SetEnv(Vec<(String, String)>),
    /// `None` for `none`.
    ProxyJump(Option<Vec<JumpHost>>),
    ProxyCommand(String),
    StrictHostKeyChecking(HostKeyPolicy),
    UpdateHostKeys(YesNoAsk),
    VerifyHostKeyDns(YesNoAsk),
    AddressFamily(AddressFamily),
    PubkeyAuthentication(PubkeyAuthentication),
    Canonicalize(Canonicalize),
    PermittedCnames(Vec<(String, String)>),
    /// The host is not to be connected to, and why.
    RefuseConnection(String),
    RequestTty(RequestTty),
    SessionType(SessionType),
    FingerprintHash(FingerprintHash),
    LogLevel(LogLevel),
    /// As written: `yes`, `no` or a path.
    ForwardAgent(ForwardedAgent),
    AddKeysToAgent(AddKeysToAgent),
    /// The limit in bytes, zero for the default; and the time, if there is one.
    RekeyLimit(u64, Option<Duration>),
}

impl Setting {
    /// Whether it decides how names are completed.
    pub(super) fn is_about_names(&self) -> bool {
        matches!(
            self,
            Self::Canonicalize(_)
                | Self::Flag(Flag::CanonicalizeFallbackLocal, _)
                | Self::Number(Number::CanonicalizeMaxDots, _)
        )
    }
}

/// What `ForwardAgent` can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ForwardedAgent {
    No,
    Yes,
    /// A path with tokens, or `$NAME`.
    Socket(String),
}

/// Keywords that say yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flag {
    BatchMode,
    CanonicalizeFallbackLocal,
    CheckHostIp,
    ClearAllForwardings,
    Compression,
    EnableEscapeCommandline,
    EnableSshKeysign,
    ExitOnForwardFailure,
    ForkAfterAuthentication,
    ForwardX11,
    ForwardX11Trusted,
    GatewayPorts,
    GssapiAuthentication,
    GssapiDelegateCredentials,
    GssapiKeyExchange,
    GssapiRenewalForcesRekey,
    GssapiTrustDns,
    HashKnownHosts,
    HostbasedAuthentication,
    IdentitiesOnly,
    KbdInteractiveAuthentication,
    NoHostAuthenticationForLocalhost,
    PasswordAuthentication,
    PermitLocalCommand,
    ProxyUseFdpass,
    StdinNull,
    StreamLocalBindUnlink,
    TcpKeepAlive,
    VisualHostKey,
}

/// Keywords whose value is text. Lists of algorithms are text too: what they mean depends on the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Text {
    BindAddress,
    BindInterface,
    CaSignatureAlgorithms,
    Ciphers,
    ControlPath,
    HostbasedAcceptedAlgorithms,
    HostKeyAlgorithms,
    HostKeyAlias,
    HostName,
    IdentityAgent,
    IgnoreUnknown,
    KbdInteractiveDevices,
    KexAlgorithms,
    KnownHostsCommand,
    LocalCommand,
    Macs,
    Pkcs11Provider,
    PreferredAuthentications,
    PubkeyAcceptedAlgorithms,
    RemoteCommand,
    SecurityKeyProvider,
    Tag,
    User,
    VersionAddendum,
    XAuthLocation,
}

/// Keywords whose value is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Number {
    CanonicalizeMaxDots,
    ConnectionAttempts,
    PasswordPrompts,
    RequiredRsaSize,
    ServerAliveCountMax,
}

/// Keywords whose value is a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Time {
    ConnectTimeout,
    ForwardX11Timeout,
    ServerAliveInterval,
}

/// Keywords that take several words on one line, of which the first line wins. `none` is the empty list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum List {
    CanonicalDomains,
    ChannelTimeout,
    GlobalKnownHostsFile,
    LogVerbose,
    PermitRemoteOpen,
    RevokedHostKeys,
    UserKnownHostsFile,
}
