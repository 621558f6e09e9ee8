//! The files of hosts: opened when there is something to write, few at a time, and never two hosts in one. It decides
//! which stay open; what goes into them is decided elsewhere.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Fault;

/// Files that stay open. Hosts write in bursts, so that a few are enough; thousands would be more than a process may
/// have.
const MAX_OPEN: usize = 16;

/// Device and number: what makes two names one file.
type Identity = (u64, u64);

/// The files of a run.
#[derive(Debug, Default)]
pub(super) struct HostFiles {
    /// The one that was used last is at the end.
    open: VecDeque<(Arc<Path>, File)>,
    written: HashMap<Arc<Path>, u64>,
    owners: HashMap<Identity, Arc<Path>>,
}

impl HostFiles {
    /// Bytes that went into a file so far.
    pub(super) fn written(&self, path: &Path) -> u64 {
        self.written.get(path).copied().unwrap_or_default()
    }

    /// Adds to the end of a file. The first time in a run it is emptied before that.
    pub(super) fn append(&mut self, path: &Arc<Path>, mut bytes: &[u8]) -> Result<(), Fault> {
        let mut file = self.take(path)?;
        let written = self.written.entry(Arc::clone(path)).or_default();
        while !bytes.is_empty() {
            match file.write(bytes) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(count) => {
                    *written += count as u64;
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.open.len() >= MAX_OPEN {
            self.open.pop_front();
        }
        self.open.push_back((Arc::clone(path), file));
        Ok(())
    }

    fn take(&mut self, path: &Arc<Path>) -> Result<File, Fault> {
        if let Some(at) = self.open.iter().position(|(open, _)| open == path)
            && let Some((_, file)) = self.open.remove(at)
        {
            return Ok(file);
        }
        let file = match open(path) {
            Err(error) if is_shortage(&error) && !self.open.is_empty() => {
                self.open.clear();
                open(path)?
            }
            other => other?,
        };
        if self.written.contains_key(path) {
            return Ok(file);
        }
        let metadata = file.metadata()?;
        let kind = metadata.file_type();
        if kind.is_fifo() || kind.is_socket() {
            return Err(Fault::NoFile);
        }
        if kind.is_file() {
            let identity = (metadata.dev(), metadata.ino());
            if self.owners.insert(identity, Arc::clone(path)).is_some() {
                return Err(Fault::Shared);
            }
            file.set_len(0)?;
        }
        Ok(file)
    }
}

/// Not emptied yet: first it must be known whose it is. Does not wait for the reader of a pipe, which may never come.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
}

fn is_shortage(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
