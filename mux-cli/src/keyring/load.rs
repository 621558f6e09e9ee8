//! Key files and certificates as they lie on the disk. Decides which can't be used and why; never who needs them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use mux_ssh::Printable;
use mux_ssh::keys::{Certificate, CertificateError, CertificateKind, KeyFile, KeyFileError, PublicKey};
use nix::unistd::Uid;

use super::Unusable;
use crate::files::{self, FileError};

/// No key file is larger; the parser has a limit of its own, this one bounds what is read.
const MAX_FILE: u64 = 1024 * 1024;

/// Where the private half of a key is that was read.
#[derive(Debug)]
pub(super) enum Loaded {
    /// In a file that needs no passphrase.
    Closed(Arc<KeyFile>),
    /// In a file that needs one.
    Locked(Arc<KeyFile>),
    /// In no file.
    PublicOnly,
    /// Inside a security key: the file only says which.
    SecurityKey,
}

/// What tells a file, and the public half beside it, from a later one under the same name. Keys that live for an hour are
/// written anew while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen([Option<Stamp>; 2]);

/// Device, inode, length, and when it was written.
type Stamp = (u64, u64, u64, i64, i64);

impl Seen {
    pub(super) fn of(path: &str) -> Self {
        let stamp = |path: &str| {
            let meta = fs::metadata(path).ok()?;
            Some((
                meta.dev(),
                meta.ino(),
                meta.len(),
                meta.mtime(),
                meta.mtime_nsec(),
            ))
        };
        Self([stamp(path), stamp(&format!("{path}.pub"))])
    }
}

/// Reads a key file, or the public half if only that is there. The public half is `None` where it is encrypted too.
pub(super) fn key(path: &str) -> Result<(Option<PublicKey>, Loaded), Unusable> {
    let because = |reason: &dyn fmt::Display| Unusable::Because(reason.to_string());
    let content = match read(path) {
        Ok(content) => content,
        Err(Refusal::File(error)) if error.kind() == ErrorKind::NotFound => {
            let missing = || Unusable::Missing(error.to_string());
            return Ok((Some(public_beside(path).ok_or_else(missing)?), Loaded::PublicOnly));
        }
        Err(Refusal::File(error)) => return Err(because(&error)),
        Err(Refusal::Mode(mode)) => {
            let path = Printable::new(path);
            let advice = format!("mode {mode:04o} lets others read it; chmod 600 {path}");
            return Err(Unusable::Because(advice));
        }
    };
    match KeyFile::parse(&content) {
        Ok(file) => Ok(private(path, file)),
        // `-i key.pub` names a key of the agent.
        Err(KeyFileError::Malformed) => match public_line(&content) {
            Some(public) => Ok((Some(public), Loaded::PublicOnly)),
            None => Err(because(&KeyFileError::Malformed)),
        },
        Err(error) => Err(because(&error)),
    }
}

/// Encrypted PKCS #8 hides the public half with the other; a `.pub` file beside it may have it.
fn private(path: &str, file: KeyFile) -> (Option<PublicKey>, Loaded) {
    let public = file.public().cloned().or_else(|| public_beside(path));
    let file = match &public {
        Some(public) if public.key_type().is_security_key() => {
            return (Some(public.clone()), Loaded::SecurityKey);
        }
        Some(public) => Arc::new(file.with_public(public.clone())),
        None => Arc::new(file),
    };
    let loaded = if file.is_encrypted() {
        Loaded::Locked(file)
    } else {
        Loaded::Closed(file)
    };
    (public, loaded)
}

/// Reads a certificate, from the file or from the one of this name with `.pub` behind, as ssh does.
pub(super) fn certificate(path: &str) -> Result<Certificate, Unusable> {
    let is_missing = |error: &FileError| error.kind() == ErrorKind::NotFound;
    let beside = || files::read(Path::new(&format!("{path}.pub")), MAX_FILE);
    let content = files::read(Path::new(path), MAX_FILE)
        .or_else(|error| if is_missing(&error) { beside() } else { Err(error) });
    let content = content.map_err(|error| match is_missing(&error) {
        true => Unusable::Missing(error.to_string()),
        false => Unusable::Because(error.to_string()),
    })?;
    let because = |reason: &dyn fmt::Display| Unusable::Because(reason.to_string());
    let text = std::str::from_utf8(&content).map_err(|_| because(&CertificateError::Malformed))?;
    let certificate = Certificate::parse_line(text).map_err(|error| because(&error))?;
    match certificate.kind() {
        CertificateKind::User => Ok(certificate),
        CertificateKind::Host => Err(because(&"certificate of a host, not of a user")),
    }
}

enum Refusal {
    File(FileError),
    Mode(u32),
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// As ssh: a private key of ours that others may read is no longer one.
fn read(path: &str) -> Result<zeroize::Zeroizing<Vec<u8>>, Refusal> {
    let file = files::open(OpenOptions::new().read(true), Path::new(path))?;
    let meta = file.metadata().map_err(FileError::from)?;
    let mut content = zeroize::Zeroizing::new(Vec::new());
    files::read_into(&file, MAX_FILE, &mut content)?;
    let mode = meta.mode() & 0o7777;
    let readable = meta.is_file() && meta.uid() == Uid::current().as_raw() && mode & 0o077 != 0;
    if readable && public_line(&content).is_none() {
        return Err(Refusal::Mode(mode));
    }
    Ok(content)
}

fn public_beside(path: &str) -> Option<PublicKey> {
    public_line(&files::read(Path::new(&format!("{path}.pub")), MAX_FILE).ok()?)
}

fn public_line(content: &[u8]) -> Option<PublicKey> {
    let text = std::str::from_utf8(content).ok()?;
    PublicKey::parse_line(text).ok().map(|line| line.key)
}
