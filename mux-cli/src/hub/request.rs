//! What the hub is asked to do, and what it asks of the outside. Plain values: they decide nothing.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mux_ssh::Secret;
use mux_ssh::algorithms::{Algorithms, KeyType, SignatureAlgorithm};
use mux_ssh::client::{AuthMethod, Identity, Keepalive, Methods, Prompt, QuestionId, SessionBinding};
use mux_ssh::keys::PublicKey;
use mux_ssh::transport::{RekeyLimits, ServerMemory};

use super::{RequestId, Shown, Source};
pub use crate::plan::{Family, MissingStatus};

/// One command on one target, with everything resolved: names, ports, users, limits.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name in every event.
    pub id: RequestId,
    /// The name that host keys are filed under and that messages use.
    pub host: String,
    /// What to connect to: a name or an address.
    pub address: String,
    /// The port.
    pub port: u16,
    /// The account.
    pub user: String,
    /// How to get there.
    pub transport: Transport,
    /// By which way.
    pub route: Route,
    /// The command, byte for byte as the remote login shell gets it.
    pub command: Bytes,
    /// Variables to set before: names and values.
    pub env: Vec<(Bytes, Bytes)>,
    /// Variables that the ssh configuration sends along: one that a server refuses is nothing to speak of.
    pub env_by_habit: Vec<(Bytes, Bytes)>,
    /// Whether it reads what the outside gives it; nothing otherwise.
    pub stdin: bool,
    /// How often to try again what can't have started.
    pub retries: u32,
    /// What it means if the command ends without an exit status.
    pub missing_status: MissingStatus,
    /// Name, TCP, identification and key exchange together.
    pub connect_timeout: Duration,
    /// Authentication.
    pub login_timeout: Duration,
    /// The command itself; unlimited if `None`.
    pub command_timeout: Option<Duration>,
    /// Which kept connections may serve it, and whom its own may serve later; `None`: it has one for itself.
    pub like: Option<Likeness>,
}

/// The whole identity of a connection: how to get there, who logs in with what, and what the host's key has to be.
/// Whoever differs in any of it never shares one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Likeness {
    /// SHA-256 of all of it.
    pub digest: [u8; 32],
    /// The socket of the agent that is part of it: no connection outlives it.
    pub agent: Option<Arc<str>>,
}

/// How to get to a target.
#[derive(Clone, Debug)]
pub enum Transport {
    /// The SSH client of this program.
    Ssh(Arc<SshOptions>),
    /// A shell on this machine; the target's name is only a name.
    Local,
    /// The system's `ssh`, as a process.
    OpenSsh(Arc<OpenSsh>),
}

/// How the system's `ssh` is called for one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSsh {
    /// The program.
    pub program: PathBuf,
    /// Options that are this target's own; the target and the command follow.
    pub options: Vec<OsString>,
    /// The first server on the way: so many logins at once are under way there, and no more.
    pub door: Arc<str>,
    /// Why it is used.
    pub reason: String,
    /// It puts no question to anybody, and where a login fails that is worth a word.
    pub asks_nobody: bool,
}

/// The way to a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Route {
    /// From here.
    #[default]
    Direct,
    /// Through a connection that [`Hub::add_hop`](super::Hub::add_hop) told of, shared with all others that go through
    /// it.
    Jump(RequestId),
    /// Through a process whose standard input and output are the connection: the line for the user's shell.
    Command(Arc<str>),
}

/// What the SSH client of a connection needs to know, shared by all targets for which it is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SshOptions {
    /// What is offered, in order.
    pub algorithms: Algorithms,
    /// When a silent server is given up.
    pub keepalive: Keepalive,
    /// Which addresses of a name are used.
    pub family: Family,
    /// From which address of ours; none: as the system likes.
    pub source: Option<Source>,
    /// Which ways to log in are tried.
    pub methods: Methods,
    /// Ways that are not, and why; said where a server offers nothing else.
    pub left_out: Vec<(AuthMethod, String)>,
    /// The socket of the agent that the command may use, unless the host's key is not verified.
    pub forward_agent: Option<Arc<str>>,
    /// When keys are changed.
    pub rekey: RekeyLimits,
    /// Whether to hear of further keys of the host.
    pub further_host_keys: bool,
}

/// Names one attempt of a request; answers to an attempt that is over are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// Whose.
    pub request: RequestId,
    /// The how-manieth attempt.
    pub attempt: u32,
}

/// Something that only the outside can do. Those that are answered say by what.
#[derive(Debug)]
pub enum Action {
    /// Gather what is known about the target: keys, host-key types, memory. Answered by [`Answer::Prepared`].
    Prepare,
    /// Look a name up. Answered by [`Answer::Resolved`].
    Resolve {
        /// The name; never a literal address.
        host: String,
        /// The port to put into the addresses.
        port: u16,
    },
    /// Judge the key that a server proved to have. Answered by [`Answer::HostKey`].
    JudgeHostKey {
        /// Which question of the client this is.
        question: QuestionId,
        /// The key.
        key: PublicKey,
        /// The certificate that it was shown in, or what is wrong with that one.
        certificate: Option<Shown>,
        /// The types of key that the server has, of those that it was offered.
        types: Vec<KeyType>,
        /// The server runs on this machine, as far as its address tells.
        local: bool,
    },
    /// The host says that it has these keys too. Answered by [`Answer::ProveHostKeys`], or not.
    LookAtHostKeys {
        /// Of types that are allowed.
        keys: Vec<PublicKey>,
    },
    /// The host proved that it has these keys too.
    KeepHostKeys {
        /// Never empty.
        keys: Vec<PublicKey>,
    },
    /// Sign with a key of the user. Answered by [`Answer::Signed`].
    Sign {
        /// Which question of the client this is.
        question: QuestionId,
        /// With which key.
        key: KeyId,
        /// Under which algorithm.
        algorithm: SignatureAlgorithm,
        /// What is to be signed.
        data: Bytes,
        /// The session that the signature is for, to bind an agent to it.
        binding: SessionBinding,
    },
    /// Ask somebody for what the server wants to know. Answered by [`Answer::Prompted`].
    Prompt {
        /// Which question of the client this is.
        question: QuestionId,
        /// What is asked.
        prompt: Prompt,
    },
    /// This attempt signs no more, and nobody has to be asked for it.
    SigningOver,
    /// The server's habits, to be remembered.
    Remember(ServerMemory),
    /// The key that worked, to be tried first next time.
    RememberKey(KeyId),
    /// The key that was thought to work, and does not.
    ForgetKey(KeyId),
    /// No login of ours was taken: is there another way in? Answered by [`Answer::OtherWay`].
    OtherWay,
    /// The next bytes for the command to read. Answered by [`Answer::Fed`], whenever there are some.
    Feed(Wish),
    /// This attempt reads no more.
    FeedOver {
        /// Bytes that were sent.
        taken: u64,
        /// Whether that was all there is, its end included.
        whole: bool,
    },
}

/// What a command may be given to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// From where on: bytes that this attempt was given before.
    pub position: u64,
    /// At most so many.
    pub room: usize,
    /// Another attempt may ask for all of it again.
    pub may_restart: bool,
}

/// What the outside says to an [`Action`].
#[derive(Debug)]
pub enum Answer {
    /// To [`Action::Prepare`].
    Prepared(Prepared),
    /// To [`Action::Resolve`]: at least one address, or why there is none.
    Resolved(Result<Vec<SocketAddr>, String>),
    /// To [`Action::JudgeHostKey`].
    HostKey {
        /// Which question.
        question: QuestionId,
        /// The judgement.
        judgement: Judgement,
    },
    /// To [`Action::LookAtHostKeys`]: those that are wanted, if the host can prove that it has them.
    ProveHostKeys(Vec<PublicKey>),
    /// To [`Action::Sign`].
    Signed {
        /// Which question.
        question: QuestionId,
        /// The signature blob, or why this key can't sign.
        signature: Result<Bytes, String>,
    },
    /// To [`Action::Prompt`].
    Prompted {
        /// Which question.
        question: QuestionId,
        /// As many as there were questions, or why there are none; that names the method.
        answers: Result<Vec<Secret>, String>,
    },
    /// To [`Action::OtherWay`].
    OtherWay(Option<Arc<OpenSsh>>),
    /// To [`Action::Feed`]; empty: there is no more.
    Fed(Bytes),
    /// A person is being asked (`true`) or has answered (`false`), or a file of ours is written to: deadlines measure the
    /// other side, and stand still in between.
    Asking(bool),
}

/// What is known about a target before the first byte is sent.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The user's keys in the order in which they are tried.
    pub keys: Vec<Offer>,
    /// The types of host key that are on file for the target.
    pub known_host_key_types: Vec<KeyType>,
    /// An authority is on file that may vouch for the target by a certificate.
    pub known_authority: bool,
    /// The server's habits at the last visit.
    pub memory: Option<ServerMemory>,
    /// Keys that could not be used, and why; said when authentication fails.
    pub skipped: Vec<String>,
}

/// One key to offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// As the client wants it.
    pub identity: Identity,
    /// Its name in [`Action::Sign`].
    pub key: KeyId,
    /// What people know it as: a path, or `agent key` with its comment and fingerprint.
    pub label: Arc<str>,
}

/// Names a key of the user for the length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(pub u32);

/// Whether to go on with a server that proved to have a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Go on.
    Accept,
    /// Go on, but with nothing that a host in the place of the right one could use: no password, no answers to its
    /// questions, no agent.
    Distrust,
    /// The key was all that was wanted: close, and all is well.
    Enough,
    /// A person is to be asked, who may take any time: let go of the connection, and wait for another judgement.
    Later,
    /// The host is known by other types of key, these, and nobody had looked before it was asked for one: connect once
    /// more and ask for them first.
    AskForOthers(Vec<KeyType>),
    /// Close, for this reason.
    Refuse(String),
}

/// Why a request is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Someone asked for it.
    Interrupted,
    /// Its `--timeout` is over.
    TimedOut,
}
