//! Files of the user that are read whole: configuration, host keys, keys, lists, memory. Decides what may stand in their
//! place and how large they may be, so that none of them stops a run or eats its memory; never what they say.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file has no content for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The system says so; the number tells more than the kind, where there is one.
    Io(ErrorKind, Option<i32>),
    /// It is a pipe, a socket or a device: reading it could take for ever or never end.
    NotRegular,
    /// It is larger than this many bytes.
    TooLarge(u64),
    /// Another program holds its lock.
    Locked,
}

impl FileError {
    /// The nearest kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io(kind, _) => *kind,
            Self::NotRegular => ErrorKind::Unsupported,
            Self::TooLarge(_) => ErrorKind::FileTooLarge,
            Self::Locked => ErrorKind::ResourceBusy,
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.kind(), error.raw_os_error())
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io(_, Some(number)) => Self::from_raw_os_error(number),
            FileError::Io(..) | FileError::NotRegular | FileError::TooLarge(_) | FileError::Locked => {
                Self::new(error.kind(), error)
            }
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(ErrorKind::NotFound, _) => f.write_str("no such file"),
            Self::Io(ErrorKind::IsADirectory, _) => f.write_str("is a directory"),
            Self::Io(_, Some(number)) => f.write_str(&words(*number)),
            Self::Io(kind, None) => kind.fmt(f),
            Self::NotRegular => f.write_str("not a regular file"),
            Self::TooLarge(limit) => write!(f, "larger than {} MiB", limit >> 20),
            Self::Locked => f.write_str("another program holds its lock"),
        }
    }
}

impl std::error::Error for FileError {}

/// What the system calls an error, without its number and in the middle of a sentence.
fn words(number: i32) -> String {
    let text = io::Error::from_raw_os_error(number).to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Reads a file to its end.
///
/// # Errors
/// It can't be opened, is not a regular file, or is larger than `limit`.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let file = open(OpenOptions::new().read(true), path)?;
    // One more than there is: the read that finds the end needs room too.
    let length = file.metadata()?.len().min(limit) + 1;
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    read_into(&file, limit, &mut content)?;
    Ok(content)
}

/// Reads what somebody named on the command line: also a pipe, as in `--hosts <(command)`. Blocks until it ends, so it
/// is for the time before there is a loop.
///
/// # Errors
/// As [`read`].
pub fn read_named(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let is_pipe = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    if !is_pipe {
        return read(path, limit);
    }
    let mut content = Vec::new();
    read_into(File::open(path)?, limit, &mut content)?;
    Ok(content)
}

/// Reads all that is left. Half of a file says something else than the whole.
///
/// # Errors
/// Reading fails, or there are more than `limit` bytes.
pub fn read_into(source: impl Read, limit: u64, content: &mut Vec<u8>) -> Result<(), FileError> {
    match source.take(limit + 1).read_to_end(content)? as u64 > limit {
        true => Err(FileError::TooLarge(limit)),
        false => Ok(()),
    }
}

/// Opens a regular file, or the null device, which is how an empty one is written. Whatever else has this name is not
/// waited for: opening a pipe would stop the run for good.
///
/// # Errors
/// It can't be opened, or is something else.
pub fn open(options: &mut OpenOptions, path: &Path) -> Result<File, FileError> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).expect("open flags are an int in C");
    let file = match options.custom_flags(flags).open(path) {
        Ok(file) => file,
        // What a socket, or the write side of a pipe that nobody reads, answers to being opened.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(FileError::NotRegular);
        }
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    let kind = meta.file_type();
    if kind.is_file() || (kind.is_char_device() && is_null_device(meta.rdev())) {
        return Ok(file);
    }
    match kind.is_dir() {
        true => Err(FileError::Io(ErrorKind::IsADirectory, None)),
        false => Err(FileError::NotRegular),
    }
}

/// Whether this is the null device, by whatever name: what is written there is not kept.
#[must_use]
pub fn is_null(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_char_device() && is_null_device(meta.rdev()))
}

fn is_null_device(device: u64) -> bool {
    rustix::fs::stat("/dev/null").is_ok_and(|null| null.st_rdev == device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &Path, expected: Result<&[u8], FileError>) {
        assert_eq!(read(path, 16), expected.map(<[u8]>::to_vec), "{}", path.display());
    }

    #[test]
    fn only_regular_files_of_a_sane_size_are_read() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("whole"), [b'x'; 16])?;
        std::fs::write(path("large"), [b'x'; 17])?;
        std::os::unix::fs::symlink(path("whole"), path("link"))?;
        drop(std::os::unix::net::UnixListener::bind(path("socket"))?);
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, mode, 0)?;
        check(&path("whole"), Ok(&[b'x'; 16]));
        check(&path("link"), Ok(&[b'x'; 16]));
        check(&path("large"), Err(FileError::TooLarge(16)));
        check(&path("pipe"), Err(FileError::NotRegular));
        check(&path("socket"), Err(FileError::NotRegular));
        check(home.path(), Err(FileError::Io(ErrorKind::IsADirectory, None)));
        check(&path("none"), Err(FileError::Io(ErrorKind::NotFound, Some(2))));
        check(Path::new("/dev/zero"), Err(FileError::NotRegular));
        check(Path::new("/dev/full"), Err(FileError::NotRegular));
        check(Path::new("/dev/null"), Ok(b""));
        Ok(())
    }
}
