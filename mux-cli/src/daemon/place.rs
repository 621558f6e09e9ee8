//! Where the daemon's socket is, and whether that place can be trusted: nobody else may have put something there. Decides
//! the path and refuses places; it listens and connects to nothing.

use std::fmt;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use rustix::fs::{FlockOperation, flock};

/// Bytes of the socket's path: macOS has room for 103, and a name behind it for tests and tools is worth three.
pub(crate) const MAX_PATH: usize = 100;

/// Where there is no runtime directory, as under cron and on macOS.
const FALLBACK: &str = "/tmp";

/// Permissions that others must not have on a directory that we trust.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// Where the socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its path.
    pub(crate) socket: PathBuf,
    /// The directory that it is in, which is ours alone.
    directory: PathBuf,
    /// Of which system or user we expect that nobody else may write to it.
    parent: Option<PathBuf>,
}

/// Why a place is not used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlaceError {
    /// More bytes than a socket's path may have.
    TooLong(PathBuf),
    /// Somebody else's.
    Owner(PathBuf, u32),
    /// Others may write to it: the permissions.
    Open(PathBuf, u32),
    /// A link, or no directory.
    NoDirectory(PathBuf),
    /// Not an absolute path.
    Relative(PathBuf),
    /// It can't be looked at or made.
    Io(PathBuf, ErrorKind),
}

/// What decides about the place; read from the environment by [`Surroundings::of_process`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) socket: Option<PathBuf>,
    pub(crate) runtime: Option<PathBuf>,
    pub(crate) state: Option<PathBuf>,
    pub(crate) uid: u32,
}

impl Surroundings {
    pub(crate) fn of_process(state: Option<PathBuf>) -> Self {
        let read = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            socket: read("MUX_SOCKET").map(PathBuf::from),
            runtime: read("XDG_RUNTIME_DIR").map(PathBuf::from),
            state,
            uid: uid(),
        }
    }
}

impl Place {
    /// Where the socket of this user and state directory is.
    ///
    /// # Errors
    /// What the environment names can't be one.
    pub(crate) fn of(surroundings: &Surroundings) -> Result<Self, PlaceError> {
        if let Some(socket) = &surroundings.socket {
            return Self::named(socket);
        }
        let name = format!("{}.sock", hash(surroundings));
        if let Some(runtime) = &surroundings.runtime {
            if !runtime.is_absolute() {
                return Err(PlaceError::Relative(runtime.clone()));
            }
            let place = Self::in_directory(runtime.join("mux"), Some(runtime.clone()), &name);
            if place.fits() {
                return Ok(place);
            }
        }
        let directory = Path::new(FALLBACK).join(format!("mux-{}", surroundings.uid));
        Ok(Self::in_directory(directory, None, &name))
    }

    fn named(socket: &Path) -> Result<Self, PlaceError> {
        if !socket.is_absolute() {
            return Err(PlaceError::Relative(socket.to_owned()));
        }
        let directory = socket.parent().unwrap_or(Path::new("/")).to_owned();
        let place = Self {
            socket: socket.to_owned(),
            directory,
            parent: None,
        };
        match place.fits() {
            true => Ok(place),
            false => Err(PlaceError::TooLong(place.socket)),
        }
    }

    fn in_directory(directory: PathBuf, parent: Option<PathBuf>, name: &str) -> Self {
        Self {
            socket: directory.join(name),
            directory,
            parent,
        }
    }

    fn fits(&self) -> bool {
        self.socket.as_os_str().as_bytes().len() <= MAX_PATH
    }

    /// Makes the directory if there is none, and looks whether it is ours alone.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn prepare(&self) -> Result<(), PlaceError> {
        if let Some(parent) = &self.parent {
            check(parent)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.directory) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(PlaceError::Io(self.directory.clone(), error.kind())),
        }
        self.check()
    }

    /// Looks whether the directory is ours alone.
    ///
    /// # Errors
    /// It is not, or there is none.
    pub(crate) fn check(&self) -> Result<(), PlaceError> {
        if let Some(parent) = &self.parent {
            check(parent)?;
        }
        check(&self.directory)
    }

    /// The lock that whoever listens holds for as long as it lives; `None`: another one holds it. The file stays: one that
    /// is removed and made again could be held twice.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let mut path = self.socket.clone().into_os_string();
        path.push(".lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A directory, no link, ours, and written to by nobody else.
fn check(directory: &Path) -> Result<(), PlaceError> {
    let io = |error: io::Error| PlaceError::Io(directory.to_owned(), error.kind());
    let found: Metadata = std::fs::symlink_metadata(directory).map_err(io)?;
    let path = directory.to_owned();
    if !found.is_dir() {
        Err(PlaceError::NoDirectory(path))
    } else if found.uid() != uid() {
        Err(PlaceError::Owner(path, found.uid()))
    } else if found.mode() & OTHERS_MAY_WRITE != 0 {
        Err(PlaceError::Open(path, found.mode() & 0o7777))
    } else {
        Ok(())
    }
}

/// Whose process this is.
pub(crate) fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Of the user and the state directory, never of the version: an old daemon is found by a new client, who says so.
fn hash(surroundings: &Surroundings) -> String {
    let state = surroundings.state.as_deref().unwrap_or(Path::new(""));
    let mut text = surroundings.uid.to_string().into_bytes();
    text.push(0);
    text.extend_from_slice(state.as_os_str().as_bytes());
    let digest = digest(&SHA256, &text);
    let first = digest.as_ref().iter().take(8);
    first.map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(path) => {
                let len = path.as_os_str().len();
                write!(
                    f,
                    "{}: {len} bytes, and a socket may have {MAX_PATH}",
                    path.display()
                )
            }
            Self::Owner(path, uid) => write!(f, "{}: belongs to user {uid}", path.display()),
            Self::Open(path, mode) => write!(
                f,
                "{}: others may write to it (mode {mode:04o}); chmod go-w",
                path.display()
            ),
            Self::NoDirectory(path) => write!(f, "{}: no directory, or a link", path.display()),
            Self::Relative(path) => write!(f, "{}: not an absolute path", path.display()),
            Self::Io(path, kind) => write!(f, "{}: {kind}", path.display()),
        }
    }
}
