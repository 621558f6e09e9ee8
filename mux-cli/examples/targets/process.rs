//! A shell that runs a command of a client: how it is started, signalled and reported. Decides nothing about the
//! client.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};

use bytes::Bytes;
use mux_core::{Child, Driver, Key, Recipient};
use mux_proto::Raw;
use mux_ssh::server::{Exit, Output};

use crate::wire::Wire;

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) stdout: Flow,
    pub(crate) stderr: Flow,
    pub(crate) stdin: usize,
    pub(crate) stdin_ended: bool,
    pub(crate) status: Option<ExitStatus>,
}

/// One stream of a child.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Handed to the server beyond what the client takes, and not given back to the pipe.
    pub(crate) owed: usize,
    pub(crate) ended: bool,
}

impl Process {
    pub(crate) fn new(child: Child) -> Self {
        Self {
            child,
            stdout: Flow::default(),
            stderr: Flow {
                owed: 0,
                ended: child.stderr.is_none(),
            },
            stdin: 0,
            stdin_ended: false,
            status: None,
        }
    }

    pub(crate) fn flow(&mut self, key: Key) -> (Output, &mut Flow) {
        if key == self.child.stdio {
            (Output::Stdout, &mut self.stdout)
        } else {
            (Output::Stderr, &mut self.stderr)
        }
    }
}

impl Flow {
    pub(crate) fn give_back(&mut self, driver: &mut Driver<Wire>, key: Key) {
        let owed = std::mem::take(&mut self.owed);
        if let Some(raw) = driver.protocol(key).and_then(Wire::as_plain).filter(|_| owed > 0) {
            raw.consume(owed);
        }
    }
}

pub(crate) fn spawn(driver: &mut Driver<Wire>, command: &[u8], env: &[(Bytes, Bytes)]) -> io::Result<Child> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(OsStr::from_bytes(command))
        .process_group(0)
        .stderr(Stdio::piped());
    shell.envs(
        env.iter()
            .map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))),
    );
    driver.child(shell, Wire::Plain(Raw::new()), Some(Wire::Plain(Raw::new())))
}

pub(crate) fn kill(driver: &mut Driver<Wire>, process: &Process, signal: i32) {
    if process.status.is_none()
        && let Err(error) = driver.kill(process.child.process, signal, Recipient::Group)
    {
        log::debug!("kill {}: {error}", process.child.pid);
    }
}

/// The signals of RFC 4254 §6.10 by their numbers on Linux.
pub(crate) const SIGNALS: [(i32, &str); 13] = [
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (4, "ILL"),
    (6, "ABRT"),
    (8, "FPE"),
    (9, "KILL"),
    (10, "USR1"),
    (11, "SEGV"),
    (12, "USR2"),
    (13, "PIPE"),
    (14, "ALRM"),
    (15, "TERM"),
];

pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    let Some(signal) = status.signal() else {
        return Exit::Status(
            status
                .code()
                .and_then(|code| u32::try_from(code).ok())
                .unwrap_or(255),
        );
    };
    let known = SIGNALS.iter().find(|(number, _)| *number == signal);
    let name = known.map_or_else(|| format!("{signal}@mux"), |(_, name)| (*name).to_owned());
    Exit::Signal {
        name,
        core_dumped: status.core_dumped(),
        message: String::new(),
    }
}
