//! What the command line says, as one value. Decides defaults; never opens anything.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How many targets.
    pub(crate) count: usize,
    /// Where the first one listens.
    pub(crate) first: SocketAddr,
    /// How the others differ from it.
    pub(crate) spread: Spread,
    /// Names are this and a number.
    pub(crate) prefix: String,
    /// Whether they connect to other hosts for their clients.
    pub(crate) forward: bool,
    /// Charged on every round trip, the TCP handshake's included.
    pub(crate) rtt: Duration,
    /// Who may log in; anyone with a key if there is no file.
    pub(crate) authorized_keys: Option<PathBuf>,
    /// The host key of all targets, made if it is missing; each has its own if there is no file.
    pub(crate) host_key: Option<PathBuf>,
    /// A user's key to make, which may log in then.
    pub(crate) user_key: Option<PathBuf>,
    /// Who answers commands.
    pub(crate) reply: Reply,
    /// What the servers call themselves.
    pub(crate) ident: Option<String>,
    /// Files for clients.
    pub(crate) write: Files,
    /// How many targets of each kind do not behave; they are the last ones, in this order.
    pub(crate) bad: Vec<(Trouble, usize)>,
}

/// How targets differ in their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    /// The same address, consecutive ports (or any ports, if the first is 0).
    Ports,
    /// The same port on consecutive addresses.
    Addresses,
}

/// Who answers commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// `sh -c`.
    Shell,
    /// A handful of commands that need no process.
    Builtin,
}

/// Files for clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Host keys.
    pub(crate) known_hosts: Option<PathBuf>,
    /// A `Host` block for each target.
    pub(crate) ssh_config: Option<PathBuf>,
    /// One name a line.
    pub(crate) hosts: Option<PathBuf>,
}

/// How a target does not behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody listens.
    Refuse,
    /// The connection is never answered: the queue of the listener is full.
    Drop,
    /// The connection is accepted and nothing is said.
    Silent,
    /// Nothing comes after the key exchange.
    StallAuth,
    /// The connection is reset in the middle of output.
    ResetOutput,
}

impl Trouble {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Refuse, "refuse", "nobody listens"),
        (Self::Drop, "drop", "packets to open a connection are dropped"),
        (Self::Silent, "silent", "accept and say nothing"),
        (
            Self::StallAuth,
            "stall-auth",
            "say nothing after the key exchange",
        ),
        (
            Self::ResetOutput,
            "reset-output",
            "reset the connection behind the first output",
        ),
    ];
}

/// Reads the command line; ends the process when it can't be understood.
pub(crate) fn parse() -> Options {
    from_matches(&command().get_matches())
}

/// Options that name a file.
const FILES: [(&str, &str); 6] = [
    ("authorized-keys", "who may log in (default: anyone with a key)"),
    (
        "host-key",
        "host key of all targets, made if missing (default: one each, in memory)",
    ),
    ("user-key", "make a key that may log in, and FILE.pub"),
    ("write-known-hosts", "write the host keys there"),
    ("write-ssh-config", "write a client's configuration there"),
    ("write-hosts", "write the names there"),
];

/// Options with a text: name, placeholder, help, default.
const TEXTS: [(&str, &str, &str, Option<&str>); 4] = [
    (
        "listen",
        "ADDR[:PORT]",
        "address of the first; any ports without one",
        Some("127.0.0.1"),
    ),
    (
        "prefix",
        "TEXT",
        "targets are named by this and a number",
        Some("web"),
    ),
    ("reply", "sh|builtin", "who answers commands", Some("sh")),
    (
        "ident",
        "TEXT",
        "identification, such as SSH-2.0-OpenSSH_9.2",
        None,
    ),
];

const ABOUT: &str =
    "SSH servers for demos and benchmarks, in one process. Prints a line that begins with `ready`.";

fn command() -> Command {
    let value = |name: &'static str, placeholder: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(placeholder).help(help)
    };
    let count = |name, help| value(name, "N", help).value_parser(value_parser!(usize));
    let rtt = value("rtt", "MS", "round-trip time").value_parser(value_parser!(f64));
    let addresses = Arg::new("addresses")
        .long("addresses")
        .action(ArgAction::SetTrue)
        .help("consecutive addresses with the same port, instead of consecutive ports");
    let forward = Arg::new("forward")
        .long("forward")
        .action(ArgAction::SetTrue)
        .help("connect to other addresses for clients, as a bastion does");
    let files = FILES.map(|(name, help)| value(name, "FILE", help).value_parser(value_parser!(PathBuf)));
    let texts = TEXTS.map(|(name, shape, help, default)| value(name, shape, help).default_values(default));
    let troubles = Trouble::ALL.map(|(_, name, help)| count(name, help).default_value("0"));
    Command::new("targets")
        .about(ABOUT)
        .arg(count("count", "how many").default_value("1"))
        .arg(rtt.default_value("0"))
        .args(texts)
        .arg(addresses)
        .arg(forward)
        .args(files)
        .args(troubles)
        .mut_arg("reply", |reply| reply.value_parser(["sh", "builtin"]))
}

fn from_matches(matches: &ArgMatches) -> Options {
    let number = |name: &str| matches.get_one::<usize>(name).copied().unwrap_or(0);
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let listen = text("listen").unwrap_or_default();
    let Some(first) = address(&listen) else {
        command()
            .error(
                clap::error::ErrorKind::ValueValidation,
                format!("not an address: {listen}"),
            )
            .exit()
    };
    let milliseconds = matches.get_one::<f64>("rtt").copied().unwrap_or(0.0);
    Options {
        count: number("count"),
        first,
        spread: if matches.get_flag("addresses") {
            Spread::Addresses
        } else {
            Spread::Ports
        },
        prefix: text("prefix").unwrap_or_default(),
        forward: matches.get_flag("forward"),
        rtt: Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default(),
        authorized_keys: path("authorized-keys"),
        host_key: path("host-key"),
        user_key: path("user-key"),
        reply: if text("reply").as_deref() == Some("builtin") {
            Reply::Builtin
        } else {
            Reply::Shell
        },
        ident: text("ident"),
        write: Files {
            known_hosts: path("write-known-hosts"),
            ssh_config: path("write-ssh-config"),
            hosts: path("write-hosts"),
        },
        bad: Trouble::ALL
            .map(|(trouble, name, _)| (trouble, number(name)))
            .to_vec(),
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    let bare = || text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    text.parse().ok().or_else(bare)
}
