//! A part of a file, and the two ways to read it: at once, where the system has it in memory, or on a thread that may
//! wait for a disk. Decides nothing about who reads what.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;

/// A part of a file.
#[derive(Debug)]
pub(crate) struct InFile {
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl InFile {
    /// Reads what is in memory, and never waits. A thread costs two wake-ups, which for 64 KiB is more than reading them.
    /// `None`: a thread is to read it; whatever is wrong with the file is found there.
    #[cfg(target_os = "linux")]
    pub(crate) fn read_at_once(&self) -> Option<Bytes> {
        let mut buffer = vec![0; self.len];
        let mut slices = [io::IoSliceMut::new(&mut buffer)];
        let flags = rustix::io::ReadWriteFlags::NOWAIT;
        let count = rustix::io::preadv2(&self.file, &mut slices, self.offset, flags).ok()?;
        buffer.truncate(count);
        Some(buffer.into()).filter(|read: &Bytes| !read.is_empty())
    }

    /// Other systems can't say whether a read will wait.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn read_at_once(&self) -> Option<Bytes> {
        None
    }

    /// Reads some of it, on a thread that may wait. Nothing: the file has ended.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        let mut buffer = vec![0; self.len];
        loop {
            match self.file.read_at(&mut buffer, self.offset) {
                Ok(count) => {
                    buffer.truncate(count);
                    return Ok(Bytes::from(buffer));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_read_at_once_is_what_a_thread_would_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let part = |offset, len| InFile {
            file: Arc::new(file.try_clone().unwrap()),
            offset,
            len,
        };
        for (offset, len, expected) in [
            (0, 10, &b"0123456789"[..]),
            (3, 4, b"3456"),
            (8, 100, b"89"),
            (10, 5, b""),
        ] {
            let part = part(offset, len);
            assert_eq!(part.read().unwrap(), expected);
            // Whether it is in memory is the system's affair.
            let at_once = part.read_at_once().unwrap_or_default();
            assert!(expected.starts_with(&at_once), "{at_once:?}");
        }
    }
}
