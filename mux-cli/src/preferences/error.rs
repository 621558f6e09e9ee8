//! What is wrong with a file of ours, where, and what to write instead. Words only.

use std::fmt;
use std::path::{Path, PathBuf};

use mux_ssh::Printable;

/// Why a configuration can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferenceError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1, if it is one.
    pub line: Option<usize>,
    /// What about it.
    pub problem: Problem,
}

/// What is wrong with a file or one of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It can't be read; in the system's words.
    Unreadable(String),
    /// It is not UTF-8, as TOML has to be.
    NotText,
    /// It is no TOML, or says what we don't know; in the parser's words.
    Wrong(String),
    /// `[policy]` in a file that everybody may write for themselves.
    Policy,
    /// A relative path, which would mean another file in each directory.
    Relative(PathBuf),
}

impl PreferenceError {
    pub(super) fn new(path: &Path, line: Option<usize>, problem: Problem) -> Self {
        Self {
            path: path.to_owned(),
            line,
            problem,
        }
    }
}

impl fmt::Display for PreferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Printable::new(&self.path.to_string_lossy()))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(words) => f.write_str(words),
            Self::NotText => f.write_str("not UTF-8, which TOML has to be"),
            Self::Wrong(words) => write!(f, "{}", Printable::new(words)),
            Self::Policy => f.write_str("[policy] is for /etc/mux/config.toml alone; write [audit] instead"),
            Self::Relative(path) => {
                let path = path.to_string_lossy();
                write!(
                    f,
                    "socket = '{}': a path has to begin with /",
                    Printable::new(&path)
                )
            }
        }
    }
}

impl std::error::Error for PreferenceError {}
