//! What the hub tells whoever asked it to run something. Plain values: they decide nothing and own no connection.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

/// Names one request of a run, in the order in which the targets were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// Which of the two output streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Channel data (RFC 4254, section 5.2).
    Stdout,
    /// Extended data of type 1.
    Stderr,
}

/// How loud a [`Event::Notice`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Said always, unless `-q`.
    Warning,
    /// Said with `-v`.
    Verbose,
}

/// One thing that happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The request has reached this stage.
    Stage {
        /// Whose.
        request: RequestId,
        /// Which.
        stage: Stage,
    },
    /// The command wrote something. The same number of bytes is to be given back by `Hub::consume`, or the host is
    /// slowed down.
    Output {
        /// Whose.
        request: RequestId,
        /// On which stream.
        stream: StreamKind,
        /// The bytes, untouched.
        data: Bytes,
    },
    /// The request goes through the system's `ssh`.
    ViaOpenSsh {
        /// Whose.
        request: RequestId,
        /// Why.
        reason: String,
    },
    /// The server does not take this variable; the command runs without it.
    EnvRefused {
        /// Whose.
        request: RequestId,
        /// The variable.
        name: String,
    },
    /// The last event of a request.
    Finished {
        /// Whose.
        request: RequestId,
        /// How it ended.
        outcome: Outcome,
    },
    /// Something that the user should know and that ends nothing.
    Notice {
        /// Whose, if it concerns one target.
        request: Option<RequestId>,
        /// How loud.
        level: Level,
        /// One line, without the target's name and without a final newline.
        text: String,
    },
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The one word for it.
    pub status: Status,
    /// The remote exit status, if the server sent one.
    pub rc: Option<i32>,
    /// The signal that ended the command, without `SIG` (RFC 4254, section 6.10).
    pub signal: Option<String>,
    /// Why, unless the command ran to its end.
    pub error: Option<Failure>,
    /// How long each stage took.
    pub timings: Timings,
    /// Connections that were tried.
    pub attempts: u32,
    /// How often the request was tried again because it had failed.
    pub retries: u32,
}

impl Outcome {
    /// The end of a request that was never tried, or of which no more is known.
    #[must_use]
    pub fn untried(status: Status, error: Option<Failure>) -> Self {
        Self {
            status,
            rc: None,
            signal: None,
            error,
            timings: Timings::default(),
            attempts: 0,
            retries: 0,
        }
    }
}

/// Where and why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The jump host at which it happened, if it was not the target itself.
    pub via: Option<String>,
    /// The stage that was not completed.
    pub stage: Stage,
    /// One line: what happened, where, and what to do next.
    pub message: String,
    /// The same without the host's own name and address, to be said once about many hosts; `None`: it has neither.
    pub general: Option<String>,
}

impl Failure {
    /// A failure whose words are the same for every host.
    #[must_use]
    pub fn new(stage: Stage, message: impl Into<String>) -> Self {
        Self {
            via: None,
            stage,
            message: message.into(),
            general: None,
        }
    }

    /// The failure of a jump host, told about those behind it.
    #[must_use]
    pub fn at_hop(mut self, name: &str) -> Self {
        self.via.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Everything in one line: `via gate2: auth: …`.
    #[must_use]
    pub fn words(&self) -> String {
        self.line(&self.message)
    }

    /// The same for many hosts, where it differs.
    #[must_use]
    pub fn general_words(&self) -> Option<String> {
        self.general.as_deref().map(|general| self.line(general))
    }

    fn line(&self, message: &str) -> String {
        match &self.via {
            Some(via) => format!("via {via}: {}: {message}", self.stage),
            None => format!("{}: {message}", self.stage),
        }
    }

    /// The words for many hosts, where those for one name it.
    #[must_use]
    pub fn in_general(mut self, general: impl Into<String>) -> Self {
        self.general = Some(general.into());
        self
    }
}

/// Wall time of each stage, as far as it was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Name lookup.
    pub dns: Option<Duration>,
    /// TCP handshake.
    pub tcp: Option<Duration>,
    /// Identification, key exchange and host key.
    pub kex: Option<Duration>,
    /// User authentication.
    pub auth: Option<Duration>,
    /// From the request of the command to its end.
    pub run: Option<Duration>,
}

/// The result of a request in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// Exit status 0.
    Ok,
    /// Another exit status, or a signal.
    Failed,
    /// Ended by `--timeout`.
    Timeout,
    /// No usable connection: name, TCP, identification, key exchange, or a refused channel.
    Unreachable,
    /// The server let us in with nothing that we have, or did not answer in time.
    Auth,
    /// The host key is unknown, changed or revoked.
    HostKey,
    /// The command was sent and may have run; how it ended is not known.
    Unknown,
    /// Never tried.
    Skipped,
    /// Ended on request.
    Cancelled,
}

/// The way of a request from its name to the end of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Looking up the name.
    Dns,
    /// Connecting.
    Tcp,
    /// Waiting for the server's identification (RFC 4253, section 4.2).
    Banner,
    /// Key exchange.
    Kex,
    /// Judging the host key.
    HostKey,
    /// User authentication.
    Auth,
    /// Opening the session.
    Channel,
    /// The command itself.
    Command,
}

impl Status {
    /// The word used in machine-readable output and in the summary.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Auth => "auth",
            Self::HostKey => "hostkey",
            Self::Unknown => "unknown",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Stage {
    /// The word used in messages and in machine-readable output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Tcp => "tcp",
            Self::Banner => "banner",
            Self::Kex => "kex",
            Self::HostKey => "hostkey",
            Self::Auth => "auth",
            Self::Channel => "channel",
            Self::Command => "command",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
