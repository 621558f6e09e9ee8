//! What a run is to do, as plain values: the one place where what was typed has become a decision. It reads nothing and
//! no library takes it; each part hands its own small struct on.

use std::path::PathBuf;
use std::time::Duration;

use crate::targets::TargetSpec;

/// Hosts at once, unless said otherwise.
pub const DEFAULT_FANOUT: usize = 64;

/// What temporary files may hold, unless said otherwise: no `/tmp` is to be filled by a command that went wild.
pub const DEFAULT_SPILL_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Each try waits longer than the one before: after so many nothing is left to wait for.
pub const MAX_RETRIES: u32 = 100;

/// Everything that `mux run` was asked for, or another subcommand that connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// On which hosts.
    pub targets: TargetSpec,
    /// What to do there.
    pub action: Action,
    /// At most so many hosts at once; at least 1.
    pub fanout: usize,
    /// The longest that a command may take; none: as long as it likes.
    pub timeout: Option<Duration>,
    /// What the commands find in their environment.
    pub environment: Variables,
    /// What the commands read; none: nothing.
    pub stdin: Option<StdinSource>,
    /// How often a host is tried again whose command can't have started.
    pub retries: u32,
    /// What a command is that ends without an exit status.
    pub missing_status: MissingStatus,
    /// How to get there.
    pub connection: Connection,
    /// Whether connections are shared with other runs.
    pub sharing: Sharing,
    /// What to print.
    pub output: OutputPlan,
    /// Which exit status to give.
    pub exit: ExitRule,
    /// How many `-v` were given.
    pub verbose: u8,
}

/// Whether connections are shared with other runs, by the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// `--no-daemon`: this run connects by itself.
    pub never: bool,
    /// `--fresh`: over connections that it makes, which others may use then.
    pub fresh: bool,
    /// `--persist`: there is to be a daemon, which stays so long after its last client.
    pub persist: Option<Duration>,
}

/// What to do with the targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run this command: the exec string, byte for byte.
    Run(Vec<u8>),
    /// Print the targets.
    ListHosts,
    /// Look at their host keys, and write down which they are.
    LearnHosts(Learn),
}

/// Which host keys to write down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learn {
    /// The file that says which keys are right; none: a person does.
    pub from: Option<PathBuf>,
    /// Whatever the hosts show, without a question.
    pub yes: bool,
}

/// How to get to a host, as far as flags say; the ssh configuration says the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// `-l`: for targets that name no user.
    pub user: Option<String>,
    /// `-p`: for targets that name no port.
    pub port: Option<u16>,
    /// `-i`, in the order given.
    pub identities: Vec<PathBuf>,
    /// `-F`: instead of the usual configuration files.
    pub config: Option<PathBuf>,
    /// `-o`: lines of configuration that win over files, in the order given.
    pub options: Vec<String>,
    /// `-4`, `-6`.
    pub family: Family,
    /// Name, TCP, identification and key exchange; none: the configuration decides.
    pub connect_timeout: Option<Duration>,
    /// Authentication; none: the default.
    pub login_timeout: Option<Duration>,
    /// Over what.
    pub transport: Transport,
    /// `--transport openssh=SET`: targets that go through the system's `ssh` where the others don't.
    pub through_openssh: Vec<String>,
    /// `-A`: commands may use our agent.
    pub forward_agent: bool,
    /// `--forward-agent-to-all`: those of a set, too.
    pub forward_to_all: bool,
}

/// Which addresses of a name are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Over what a command gets to its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// SSH.
    #[default]
    Ssh,
    /// SSH through the system's `ssh`.
    OpenSsh,
    /// No network: run it here, whatever the targets are called. Only ever on request.
    Local,
}

/// Variables that servers are asked to set for the commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// `--env`, each name once.
    pub given: Vec<Variable>,
    /// `--env-info`: also which of how many hosts this is.
    pub info: bool,
}

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Letters, digits and `_`.
    pub name: String,
    /// Any bytes but NUL.
    pub value: Vec<u8>,
}

/// Where the commands' standard input comes from: each of them reads all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdinSource {
    /// Our own.
    Inherited,
    /// A file.
    File(PathBuf),
}

/// What a command is that ends without an exit status, as some servers let all of them do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingStatus {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Well.
    Ok,
}

/// What is printed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPlan {
    /// The form.
    pub format: Format,
    /// Whether lines and groups carry their hosts.
    pub prefix: bool,
    /// Only what the commands wrote: no summary, no warnings, no progress.
    pub quiet: bool,
    /// Colour.
    pub color: ColorChoice,
    /// What all temporary files for large output together may hold, in bytes.
    pub spill_max: u64,
    /// What goes to a file for each host.
    pub save: SavePlan,
}

/// Directories with a file for each host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavePlan {
    /// `--outdir`: for standard output.
    pub outdir: Option<PathBuf>,
    /// `--errdir`: for standard error.
    pub errdir: Option<PathBuf>,
    /// Whether it is printed as well: a form of output was asked for by name.
    pub is_shown: bool,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines as they come, prefixed with their host.
    #[default]
    Text,
    /// Identical outputs once, under the folded names of their hosts, at the end.
    Grouped {
        /// Whether standard error is gathered too; it is printed as it comes otherwise.
        with_stderr: bool,
    },
    /// One JSON object a host, then one with the summary.
    Jsonl,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColorChoice {
    /// On terminals, unless the environment says otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How the exit status is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitRule {
    /// The worst kind of failure.
    #[default]
    Fleet,
    /// `-S`: the largest remote status.
    Largest,
}
