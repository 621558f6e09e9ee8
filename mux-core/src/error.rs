//! Why a link ended. Tells the system's part from the protocol's; never carries text.

use std::fmt;
use std::io::ErrorKind;

/// Why a link was closed other than at its own wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError<E> {
    /// The system failed it: refused, reset, timed out.
    Io(ErrorKind),
    /// The protocol gave up; its goodbye was flushed.
    Protocol(E),
}

impl<E: fmt::Display> fmt::Display for LinkError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => kind.fmt(f),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for LinkError<E> {}
