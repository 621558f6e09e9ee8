//! What can go wrong with writing: what, where, and what it means.

use std::fmt;
use std::io;

use crate::output::Destination;

/// A destination that takes no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteError {
    /// Which.
    pub to: Destination,
    /// Why.
    pub fault: Fault,
    /// Bytes that it had taken before.
    pub written: u64,
}

/// Why a destination takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was closed when the program was started.
    Closed,
    /// It is the file of another host or stream too: a link, or a file system that takes both names for one.
    Shared,
    /// It is a pipe or a socket, where nobody may ever read.
    NoFile,
    /// The system says so; the number tells more than the kind, where there is one.
    Io(io::ErrorKind, Option<i32>),
}

impl WriteError {
    /// Whether the reader of standard output has left: a reason to end, and nothing to complain about.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        self.to == Destination::Stdout && matches!(self.fault, Fault::Io(io::ErrorKind::BrokenPipe, _))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind(), error.raw_os_error())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it is closed"),
            Self::Shared => f.write_str("the file of another host, under another name"),
            Self::NoFile => f.write_str("not a file"),
            Self::Io(_, Some(number)) => io::Error::from_raw_os_error(*number).fmt(f),
            Self::Io(kind, None) => kind.fmt(f),
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            Destination::Stdout => f.write_str("standard output")?,
            Destination::Stderr | Destination::Progress => f.write_str("standard error")?,
            Destination::Spill => {
                write!(
                    f,
                    "temporary file for large output, in {}",
                    std::env::temp_dir().display()
                )?;
            }
            Destination::File(path) | Destination::Saved { path, .. } => write!(f, "{}", path.display())?,
        }
        write!(
            f,
            ": {}, after {} bytes; what follows is lost",
            self.fault, self.written
        )?;
        match self.to {
            Destination::Spill | Destination::File(_) => f.write_str("; free some space or set TMPDIR"),
            Destination::Stdout | Destination::Stderr | Destination::Progress => Ok(()),
            Destination::Saved { .. } => Ok(()),
        }
    }
}

impl std::error::Error for WriteError {}
