//! What can be wrong with a command line. All of it ends with exit status 2 before anything has run.

use std::fmt;

use mux_ssh::Printable;

/// A command line that can't be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageError {
    /// What the flag parser says, ready to print.
    Flags(String),
    /// `mux` alone, and the help that says what there is.
    NoSubcommand(String),
    /// `mux run` without a command.
    NoCommand,
    /// A subcommand that is planned.
    NoSuchCommandYet(String),
    /// An option that is planned.
    NotSupportedYet(String),
    /// A letter that other tools give several meanings.
    PeerLetter {
        /// The letter.
        letter: char,
        /// What it means elsewhere and what to write here.
        advice: &'static str,
    },
    /// `-b` or `-B` beside another `--output`.
    TwoFormats,
    /// Standard input for the list of hosts and for the commands.
    StdinTwice,
    /// Standard input for the list of hosts and for that of the keys.
    StdinTwiceForKeys,
    /// Host keys of a transport that has none.
    NoHostKeys,
    /// More than one transport for all targets.
    TwoTransports,
    /// A transport for these targets, where all have another one.
    NoOthers(String),
    /// A variable of the environment whose value is wrong.
    Environment {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What would have been right.
        advice: String,
    },
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The parser's own word for what all of ours have in front.
            Self::Flags(text) => f.write_str(text.strip_prefix("error: ").unwrap_or(text).trim_end()),
            Self::NoSubcommand(help) => write!(f, "say what to do, as in `mux run`\n\n{}", help.trim_end()),
            Self::NoCommand => f.write_str(
                "no command; write it after the options, as in: mux run -w web[1-3] -- uptime\n\
                 (an interactive session is `mux shell`, which is not supported yet)",
            ),
            Self::NoSuchCommandYet(name) => write!(
                f,
                "{name}: not supported yet; there are `mux run` and `mux hosts learn`"
            ),
            Self::NotSupportedYet(option) => write!(f, "{option}: not supported yet"),
            Self::PeerLetter { letter, advice } => write!(f, "-{letter}: {advice}"),
            Self::TwoFormats => f.write_str("-b and -B are --output grouped; leave one of them out"),
            Self::StdinTwice => f.write_str(
                "--hosts - and --stdin: both can't read standard input; write --stdin=FILE or --hosts FILE",
            ),
            Self::StdinTwiceForKeys => f.write_str(
                "--hosts - and --from -: both can't read standard input; write --from FILE or --hosts FILE",
            ),
            Self::NoHostKeys => f.write_str("--transport: only the native one sees host keys; leave it out"),
            Self::TwoTransports => f.write_str(
                "--transport: two for all targets; leave one out, or write --transport openssh=SET for some of them",
            ),
            Self::NoOthers(set) => write!(
                f,
                "--transport openssh={set}: for some targets, beside another --transport for all; leave one of them out"
            ),
            Self::Environment { name, value, advice } => {
                write!(
                    f,
                    "environment: {name}={}: {advice}; change or unset it",
                    Printable::new(value)
                )
            }
        }
    }
}

impl std::error::Error for UsageError {}
