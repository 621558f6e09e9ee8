//! The way of a record into the log: one datagram to a socket of this machine. Decides which socket, and how long is
//! waited for one that is full; never what is in the record.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use mux_ssh::Printable;

/// Where systemd's journal takes fields.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// Where syslog(3) writes to.
const SYSLOG: &str = if cfg!(target_os = "macos") {
    "/var/run/syslog"
} else {
    "/dev/log"
};

/// How long a full socket is waited for, where it may be: a log that lives empties it in milliseconds, and one that does
/// not is no reason to keep anybody.
const WAIT: Duration = Duration::from_millis(250);

/// In which form a log wants its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Journal,
    Syslog,
}

/// Whether a full socket is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    None,
    Some,
}

/// Why a record is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The log takes nothing more.
    Busy,
    /// There is no log, or not for us.
    Refused {
        /// Its socket.
        socket: PathBuf,
        /// What the system says.
        kind: ErrorKind,
    },
}

/// Where a record goes.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    form: Form,
    /// Not yet known: the first that is there.
    open: bool,
}

impl Socket {
    pub(super) fn journal(path: Option<PathBuf>) -> Self {
        Self {
            path: path.unwrap_or_else(|| JOURNAL.into()),
            form: Form::Journal,
            open: false,
        }
    }

    pub(super) fn syslog(path: Option<PathBuf>) -> Self {
        Self {
            path: path.unwrap_or_else(|| SYSLOG.into()),
            form: Form::Syslog,
            open: false,
        }
    }

    /// The journal if it listens, else syslog. A socket that was named speaks for a syslog: everybody can read that.
    pub(super) fn either(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) => Self::syslog(Some(path)),
            None => Self {
                open: true,
                ..Self::journal(None)
            },
        }
    }

    /// In which form records go there.
    pub(super) fn form(&mut self) -> Form {
        if std::mem::take(&mut self.open) && self.connect().is_err() {
            *self = Self::syslog(None);
        }
        self.form
    }

    /// Sends one record.
    pub(super) fn send(&self, record: &[u8], patience: Patience) -> Result<(), Loss> {
        let sent = self.connect().and_then(|socket| {
            match patience {
                Patience::None => socket.set_nonblocking(true)?,
                Patience::Some => socket.set_write_timeout(Some(WAIT))?,
            }
            socket.send(record)
        });
        sent.map(drop).map_err(|error| self.loss(&error))
    }

    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&self.path)?;
        Ok(socket)
    }

    fn loss(&self, error: &io::Error) -> Loss {
        let kind = error.kind();
        if matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            return Loss::Busy;
        }
        Loss::Refused {
            socket: self.path.clone(),
            kind,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("the log takes nothing more"),
            Self::Refused { socket, kind } => {
                let socket = socket.to_string_lossy();
                write!(f, "{}: {kind}", Printable::new(&socket))
            }
        }
    }
}

impl std::error::Error for Loss {}
