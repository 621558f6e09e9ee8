//! What can be wrong with a configuration, and where. Decides the words; never what is wrong.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use super::MAX_FILE;
use super::need::ExecFailure;
use crate::printable::Printable;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// On the command line: a flag, `-o` or the target itself.
    CommandLine,
    /// In a file.
    File {
        /// The file, as it was named.
        path: Arc<str>,
        /// Counted from 1.
        line: u32,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::CommandLine => f.write_str("command line"),
            Self::File { path, line: 0 } => Printable::new(path).fmt(f),
            Self::File { path, line } => write!(f, "{} line {line}", Printable::new(path)),
        }
    }
}

/// A value, and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub origin: Origin,
}

/// Why a host has no configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where.
    pub origin: Origin,
    /// What.
    pub problem: Problem,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Default => self.problem.fmt(f),
            origin @ (Origin::CommandLine | Origin::File { .. }) => write!(f, "{origin}: {}", self.problem),
        }
    }
}

impl std::error::Error for ConfigError {}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No such keyword, and `IgnoreUnknown` does not name it.
    UnknownKeyword(String),
    /// A keyword stands alone.
    MissingArgument {
        /// As in the file, in lower case.
        keyword: String,
    },
    /// Something follows the last argument that the keyword takes.
    ExtraArguments {
        /// The keyword.
        keyword: &'static str,
    },
    /// A quote without its partner.
    InvalidQuotes,
    /// The line is not UTF-8.
    NotUtf8,
    /// The value is none that the keyword takes.
    BadValue {
        /// The keyword.
        keyword: &'static str,
        /// What was written.
        value: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// The keyword decides where, as whom or how safely the connection is made, and cannot be honoured yet.
    NotSupported {
        /// The keyword.
        keyword: &'static str,
        /// What was written.
        value: String,
    },
    /// `RefuseConnection`, and what it says.
    Refused(String),
    /// Nobody knows whether a command of `Match exec` succeeds.
    Exec {
        /// The command, with its tokens expanded.
        command: String,
        /// Why.
        why: ExecFailure,
    },
    /// None of the `CanonicalDomains` has the host, and nothing else may be tried.
    NotCanonical(String),
    /// A list of algorithms names none that this build has.
    NoAlgorithmLeft {
        /// The keyword.
        keyword: &'static str,
        /// What was written.
        value: String,
    },
    /// An RSA key below `RequiredRSASize`.
    RsaKeyTooSmall {
        /// Its size.
        bits: usize,
        /// What was asked for.
        required: u32,
    },
    /// More values than a connection can use.
    TooMany {
        /// The keyword.
        keyword: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// Files include each other deeper, or more often, than any sane configuration does.
    TooManyIncludes,
    /// A file exists or was asked for and could not be read.
    Unreadable(ErrorKind),
    /// The same of a file that another one includes.
    UnreadableInclude {
        /// The included file.
        path: String,
        /// Why.
        kind: ErrorKind,
    },
    /// `%` with a letter that the keyword does not know, or at the end.
    UnknownToken {
        /// The keyword.
        keyword: &'static str,
        /// The token with its `%`.
        token: String,
    },
    /// `${NAME}` of a variable that is not set, or without its brace.
    UndefinedVariable {
        /// The keyword.
        keyword: &'static str,
        /// The name.
        name: String,
    },
    /// `~name` of a user whom nobody knows.
    OtherHome {
        /// The keyword.
        keyword: &'static str,
        /// `name`.
        user: String,
    },
    /// The host name holds characters that no host name has.
    InvalidHostName(String),
    /// The user name holds characters that are refused because they have been used to smuggle commands.
    InvalidUser(String),
    /// Nobody says as whom to log in, and the password database has no name for us.
    NoUser {
        /// Our number there.
        uid: u32,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Printable::new;
        match self {
            Self::UnknownKeyword(keyword) => write!(f, "Bad configuration option: {}", shown(keyword)),
            Self::MissingArgument { keyword } => write!(f, "{} needs an argument", shown(keyword)),
            Self::ExtraArguments { keyword } => write!(f, "extra arguments after {keyword}"),
            Self::InvalidQuotes => f.write_str("a quote is not closed"),
            Self::NotUtf8 => f.write_str("not UTF-8"),
            Self::BadValue {
                keyword,
                value,
                expected,
            } => {
                write!(
                    f,
                    "bad value \"{}\" for {keyword}: expected {expected}",
                    shown(value)
                )
            }
            Self::NotSupported { keyword, value } => {
                write!(f, "{keyword} {}: not supported yet", shown(value))
            }
            Self::Refused(why) => write!(f, "RefuseConnection: {}", shown(why)),
            Self::Exec { command, why } => fmt_exec(f, command, *why),
            Self::NotCanonical(name) => {
                write!(f, "no address for {} in CanonicalDomains", shown(name))
            }
            Self::NoAlgorithmLeft { keyword, value } => {
                write!(
                    f,
                    "{keyword} {} leaves no algorithm that is supported",
                    shown(value)
                )
            }
            Self::RsaKeyTooSmall { bits, required } => {
                write!(
                    f,
                    "an RSA key of {bits} bits, and RequiredRSASize asks for {required}"
                )
            }
            Self::TooMany { keyword, limit } => write!(f, "more than {limit} values for {keyword}"),
            Self::TooManyIncludes => f.write_str("too many nested Include files"),
            Self::Unreadable(kind) => fmt_unreadable(f, *kind),
            Self::UnreadableInclude { path, kind } => fmt_include(f, path, *kind),
            Self::UnknownToken { keyword, token } => write!(f, "unknown token {} in {keyword}", shown(token)),
            Self::UndefinedVariable { keyword, name } => {
                write!(
                    f,
                    "environment variable \"{}\" in {keyword} is not set",
                    shown(name)
                )
            }
            Self::OtherHome { keyword, user } => {
                write!(f, "~{} in {keyword}: no such user", shown(user))
            }
            Self::InvalidHostName(name) => write!(f, "invalid host name \"{}\"", shown(name)),
            Self::InvalidUser(name) => write!(f, "invalid user name \"{}\"", shown(name)),
            Self::NoUser { uid } => write!(f, "no user name for uid {uid}; give -l USER"),
        }
    }
}

fn fmt_exec(f: &mut fmt::Formatter<'_>, command: &str, why: ExecFailure) -> fmt::Result {
    write!(f, "Match exec \"{}\": ", Printable::new(command))?;
    match why {
        ExecFailure::NotStarted(kind) => write!(f, "the shell cannot be started: {kind}"),
        ExecFailure::Killed => f.write_str("ended by a signal"),
        ExecFailure::TimedOut => f.write_str("took too long"),
    }
}

fn fmt_include(f: &mut fmt::Formatter<'_>, path: &str, kind: ErrorKind) -> fmt::Result {
    write!(f, "Include {}: ", Printable::new(path))?;
    fmt_unreadable(f, kind)
}

/// Why a file could not be read, and what would help.
fn fmt_unreadable(f: &mut fmt::Formatter<'_>, kind: ErrorKind) -> fmt::Result {
    const KNOWN: [(ErrorKind, &str); 4] = [
        (ErrorKind::NotFound, "no such file"),
        (
            ErrorKind::PermissionDenied,
            "not readable for us, or writable for others (chmod go-w)",
        ),
        (ErrorKind::IsADirectory, "is a directory"),
        (ErrorKind::Unsupported, "not a regular file"),
    ];
    if kind == ErrorKind::FileTooLarge {
        return write!(f, "larger than {} MiB", MAX_FILE >> 20);
    }
    match KNOWN.iter().find(|(known, _)| *known == kind) {
        Some((_, words)) => f.write_str(words),
        None => write!(f, "cannot be read: {kind}"),
    }
}
