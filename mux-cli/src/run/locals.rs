//! Commands on this machine: a shell, its two output pipes and its end. Decides when such a command is over: when it
//! has ended and both pipes are empty, as a session of sshd is.
//!
//! A command finds signals as this process found them: std unblocks all and gives SIGPIPE its default action again, and
//! whatever else is caught here is caught by a handler, which does not outlive exec. What was ignored stays ignored.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use mux_core::{Driver, Key, Recipient};
use rustix::process::Signal;

use super::net::Heard;
use super::pipe::{Pipe, PipeEvent};
use super::wire::Wire;
use crate::hub::{Kill, LinkEvent, Request, StreamKind};

/// What a command takes of ours while it runs: two sockets and a handle on the process.
pub(super) const DESCRIPTORS: usize = 3;

/// What a command that runs here is made of.
#[derive(Debug)]
struct Local {
    stdio: Key,
    stderr: Key,
    open: u8,
    /// Input that it was not given before it ended.
    unsent: usize,
    status: Option<Option<ExitStatus>>,
}

/// The commands that run on this machine.
#[derive(Debug, Default)]
pub(crate) struct Locals {
    by_process: HashMap<Key, Local>,
    by_pipe: HashMap<Key, (Key, StreamKind)>,
    /// The soft limit on descriptors as it was when this process started, if it has been raised since.
    descriptors: Option<u64>,
}

impl Locals {
    /// `descriptors` is the limit that children get back: many a program closes every descriptor that it may have.
    pub(crate) fn new(descriptors: Option<u64>) -> Self {
        Self {
            descriptors,
            ..Self::default()
        }
    }

    pub(crate) fn spawn(&mut self, driver: &mut Driver<Wire>, request: &Request) -> io::Result<Key> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c");
        if let Some(limit) = self.descriptors {
            shell
                .arg(format!("ulimit -S -n {limit}; exec /bin/sh -c \"$1\""))
                .arg("sh");
        }
        shell.arg(OsStr::from_bytes(&request.command)).process_group(0);
        let variables = request.env.iter();
        shell.envs(variables.map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))));
        let child = driver.child(
            shell,
            Wire::Pipe(Pipe::default()),
            Some(Wire::Pipe(Pipe::default())),
        )?;
        let stderr = child.stderr.unwrap_or(child.stdio);
        for pipe in [child.stdio, stderr] {
            let is_input = request.stdin && pipe == child.stdio;
            if !is_input && let Some(Wire::Pipe(pipe)) = driver.protocol(pipe) {
                // Nothing is written there, and a link that has nothing to send ends with what it receives.
                pipe.finish();
            }
        }
        self.by_pipe
            .insert(child.stdio, (child.process, StreamKind::Stdout));
        self.by_pipe.insert(stderr, (child.process, StreamKind::Stderr));
        self.by_process.insert(
            child.process,
            Local {
                stdio: child.stdio,
                stderr,
                open: 2,
                unsent: 0,
                status: None,
            },
        );
        Ok(child.process)
    }

    pub(crate) fn pipe(&self, process: Key, stream: StreamKind) -> Option<Key> {
        let local = self.by_process.get(&process)?;
        Some(match stream {
            StreamKind::Stdout => local.stdio,
            StreamKind::Stderr => local.stderr,
        })
    }

    pub(crate) fn kill(driver: &mut Driver<Wire>, process: Key, signal: Kill) {
        let number = match signal {
            Kill::Term => Signal::TERM,
            Kill::Kill => Signal::KILL,
        };
        if let Err(error) = driver.kill(process, number.as_raw(), Recipient::Group) {
            log::info!("could not signal a local command: {error}");
        }
    }

    pub(crate) fn on_pipe(&self, pipe: Key, said: PipeEvent) -> Option<Heard> {
        let (process, stream) = self.by_pipe.get(&pipe)?;
        match said {
            PipeEvent::Data(data) => Some(Heard::Link(*process, LinkEvent::Output(*stream, data))),
            // The link closes next.
            PipeEvent::Eof => None,
            PipeEvent::Room => Some(Heard::Link(*process, LinkEvent::Room)),
        }
    }

    pub(crate) fn on_pipe_closed(&mut self, pipe: Key, unsent: usize) -> Option<Heard> {
        let (process, _) = self.by_pipe.remove(&pipe)?;
        let local = self.by_process.get_mut(&process)?;
        local.open -= 1;
        local.unsent += unsent;
        self.over(process)
    }

    pub(crate) fn on_exit(&mut self, process: Key, status: Option<ExitStatus>) -> Option<Heard> {
        self.by_process.get_mut(&process)?.status = Some(status);
        self.over(process)
    }

    fn over(&mut self, process: Key) -> Option<Heard> {
        let local = self.by_process.get(&process)?;
        let (status, unsent) = (local.status.filter(|_| local.open == 0)?, local.unsent);
        self.by_process.remove(&process);
        let rc = status.and_then(|status| status.code());
        let signal = status.and_then(|status| status.signal());
        Some(Heard::Link(process, LinkEvent::Exited { rc, signal, unsent }))
    }
}
