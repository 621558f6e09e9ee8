//! Standard streams that the process inherited. Decides how they are read and written without a trace on the open
//! files that are shared with others; never sets a flag on them.
//!
//! `O_NONBLOCK` belongs to the open file, not to the descriptor: set on an inherited terminal it reaches the shell
//! and every other process that has it open. So the loop never sets it there; it opens the file anew.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, major, minor, open};

/// What an inherited stream is to be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It is read.
    Read,
    /// It is written.
    Write,
}

/// An inherited stream, ready for use.
#[derive(Debug)]
pub enum Inherited {
    /// Goes into [`Stream::Duplex`](crate::Stream::Duplex): an open file of our own (a pipe, a terminal), or a
    /// regular file, which never blocks.
    Pollable(OwnedFd),
    /// Cannot be opened anew (a socket, a file that we may not open, no `/dev/fd`): to be read or written by a
    /// thread that may block, with a [mailbox](crate::Driver::mailbox) to the loop.
    Blocking(OwnedFd),
}

/// Makes an inherited stream usable without setting anything on the open file that is shared with others.
///
/// # Errors
/// The descriptor is not open, or none is left.
pub fn inherited(fd: impl AsFd, direction: Direction) -> io::Result<Inherited> {
    let fd = fd.as_fd();
    let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
    if kind == FileType::RegularFile {
        // Opened anew it would start at offset zero and forget that it appends.
        return Ok(Inherited::Pollable(fd.try_clone_to_owned()?));
    }
    let access = match direction {
        Direction::Read => OFlags::RDONLY,
        Direction::Write => OFlags::WRONLY,
    };
    let path = format!("/dev/fd/{}", fd.as_raw_fd());
    match open(
        path,
        access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY,
        Mode::empty(),
    ) {
        Ok(own) => Ok(Inherited::Pollable(own)),
        Err(error) => {
            log::debug!("descriptor {} cannot be opened anew: {error}", fd.as_raw_fd());
            Ok(Inherited::Blocking(fd.try_clone_to_owned()?))
        }
    }
}

/// Whether a standard stream was closed when the process started. The runtime then puts `/dev/null` in its place,
/// opened for reading and writing, which a shell's redirection never does.
#[must_use]
pub fn was_closed(fd: impl AsFd) -> bool {
    /// The device number of `/dev/null`, the same on every Linux.
    const NULL: (u32, u32) = (1, 3);
    let fd = fd.as_fd();
    let is_null = fstat(fd).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
            && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL
    });
    is_null && fcntl_getfl(fd).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDWR)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::panic, reason = "a test fails by panicking")]

    use std::fs::OpenOptions;
    use std::io::{Read, Seek, Write};

    use super::*;

    fn is_nonblocking(fd: impl AsFd) -> bool {
        fcntl_getfl(fd)
            .expect("an open descriptor has flags")
            .contains(OFlags::NONBLOCK)
    }

    #[test]
    fn a_pipe_is_opened_anew_and_the_inherited_end_stays_blocking() {
        let (mut read, mut write) = io::pipe().expect("descriptors are left");
        let Inherited::Pollable(own) = inherited(&read, Direction::Read).expect("a pipe can be opened anew")
        else {
            panic!("a pipe has a path");
        };
        assert!(is_nonblocking(&own));
        assert!(!is_nonblocking(&read));
        write.write_all(b"x").expect("the pipe is empty");
        let mut byte = [0];
        read.read_exact(&mut byte).expect("a byte was written");
    }

    #[test]
    fn a_regular_file_keeps_its_offset() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(b"before").expect("a file can be written");
        let Inherited::Pollable(own) = inherited(&file, Direction::Write).expect("a file") else {
            panic!("a regular file never blocks");
        };
        std::fs::File::from(own)
            .write_all(b" after")
            .expect("a file can be written");
        file.rewind().expect("a file can be rewound");
        let mut content = String::new();
        file.read_to_string(&mut content).expect("it is text");
        assert_eq!(content, "before after");
    }

    #[test]
    fn a_socket_is_left_to_a_thread() {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
        assert!(matches!(
            inherited(&socket, Direction::Read),
            Ok(Inherited::Blocking(_))
        ));
        assert!(!is_nonblocking(&socket));
    }

    #[test]
    fn a_stream_closed_at_start_is_told_from_a_redirection() {
        let null = |read, write| {
            OpenOptions::new()
                .read(read)
                .write(write)
                .open("/dev/null")
                .expect("there is a null device")
        };
        assert!(was_closed(null(true, true)));
        assert!(!was_closed(null(true, false)));
        assert!(!was_closed(null(false, true)));
    }
}
