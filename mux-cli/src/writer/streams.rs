//! The standard streams as they were inherited: duplicated, never changed. It finds out whether they were closed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};

/// Where standard output and standard error go.
#[derive(Debug)]
pub struct Streams {
    /// Standard output; none: it was closed.
    pub stdout: Option<OwnedFd>,
    /// Standard error; none: it was closed.
    pub stderr: Option<OwnedFd>,
    /// Whether standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub stderr_is_terminal: bool,
}

impl Streams {
    /// Those of this process.
    ///
    /// # Errors
    /// When a descriptor can't be duplicated.
    pub fn of_process() -> io::Result<Self> {
        Self::inherited(io::stdin().as_fd(), io::stdout().as_fd(), io::stderr().as_fd())
    }

    /// Rust's runtime opens `/dev/null` for reading and writing in the place of a standard stream that is closed. A
    /// daemon may have done the same on purpose, but then to all three: only a mixture means that one was closed.
    pub(super) fn inherited(
        stdin: BorrowedFd<'_>,
        stdout: BorrowedFd<'_>,
        stderr: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        let detached = [stdin, stdout, stderr].iter().all(|fd| is_stand_in(*fd));
        let open = |fd: BorrowedFd<'_>| match is_stand_in(fd) && !detached {
            true => Ok(None),
            false => fd.try_clone_to_owned().map(Some),
        };
        let terminal = |fd| rustix::termios::isatty(fd);
        Ok(Self {
            stdout: open(stdout)?,
            stderr: open(stderr)?,
            stdout_is_terminal: terminal(stdout),
            stderr_is_terminal: terminal(stderr),
        })
    }
}

/// Whether this is `/dev/null`, opened for reading and writing.
fn is_stand_in(fd: BorrowedFd<'_>) -> bool {
    let Ok((stat, flags)) = fstat(fd).and_then(|stat| Ok((stat, fcntl_getfl(fd)?))) else {
        return false;
    };
    let null = rustix::fs::stat("/dev/null").map(|null| null.st_rdev);
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && null == Ok(stat.st_rdev)
        && flags & OFlags::RWMODE == OFlags::RDWR
}
