//! Processes on this machine that run commands: shells, and the system's `ssh`. Decides when such a command is over:
//! when the process has ended and its pipes are empty, as a session of sshd is.
//!
//! A command finds signals as this process found them: std unblocks all and gives SIGPIPE its default action again, and
//! whatever else is caught here is caught by a handler, which does not outlive exec. What was ignored stays ignored.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use bytes::Bytes;
use mux_core::{Child, Driver, Key, Recipient, Stream};
use rustix::process::Signal;

use super::net::Heard;
use super::openssh::{self, Directory};
use super::pipe::{Pipe, PipeEvent};
use super::wire::Wire;
use crate::hub::{Kill, LinkEvent, OpenSsh, Request, StreamKind, Transport};

/// What a command takes of ours while it runs: two sockets and a handle on the process.
pub(super) const DESCRIPTORS: usize = 3;

/// The same for one through `ssh`, with both ends of its log.
pub(super) const SSH_DESCRIPTORS: usize = DESCRIPTORS + LOG_DESCRIPTORS;

const LOG_DESCRIPTORS: usize = 2;

/// What a process is made of.
#[derive(Debug)]
struct Local {
    pid: u32,
    pipes: Vec<Key>,
    /// Input that it was not given before it ended.
    unsent: usize,
    status: Option<Option<ExitStatus>>,
    role: Role,
}

/// What it is for.
#[derive(Debug)]
enum Role {
    /// It runs a command here.
    Shell,
    /// It runs a command on a server. The log is to end when the process has.
    Ssh {
        log: Key,
        program: PathBuf,
        control: Option<PathBuf>,
        /// Where ssh opens its log.
        log_path: PathBuf,
    },
    /// It ends the command of another one.
    Killer(Key),
}

/// What comes out of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Output(StreamKind),
    Log,
    /// Nothing that anybody wants to read.
    Nothing,
}

/// The processes of a run.
#[derive(Debug, Default)]
pub(crate) struct Locals {
    by_process: HashMap<Key, Local>,
    by_pipe: HashMap<Key, (Key, Source)>,
    /// The soft limit on descriptors as it was when this process started, if it has been raised since.
    descriptors: Option<u64>,
    directory: Directory,
}

/// Why a process could not be started.
#[derive(Debug)]
pub(crate) enum NotSpawned {
    /// There is no place for its log and its socket.
    Directory(io::Error),
    /// Anything else.
    Process(io::Error),
}

impl From<io::Error> for NotSpawned {
    fn from(error: io::Error) -> Self {
        Self::Process(error)
    }
}

impl Locals {
    /// `descriptors` is the limit that children get back: many a program closes every descriptor that it may have.
    pub(crate) fn new(descriptors: Option<u64>) -> Self {
        Self {
            descriptors,
            ..Self::default()
        }
    }

    /// The limit on descriptors that children get back, if it has been raised.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.descriptors
    }

    /// How many descriptors a request takes.
    pub(crate) fn needed(request: &Request) -> usize {
        match request.transport {
            Transport::Ssh(_) => 1,
            Transport::Local => DESCRIPTORS,
            Transport::OpenSsh(_) => SSH_DESCRIPTORS,
        }
    }

    pub(crate) fn spawn(&mut self, driver: &mut Driver<Wire>, request: &Request) -> Result<Key, NotSpawned> {
        match &request.transport {
            Transport::OpenSsh(ssh) => self.spawn_ssh(driver, request, ssh),
            Transport::Local | Transport::Ssh(_) => Ok(self.spawn_shell(driver, request)?),
        }
    }

    fn spawn_shell(&mut self, driver: &mut Driver<Wire>, request: &Request) -> io::Result<Key> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(OsStr::from_bytes(&request.command));
        let variables = request.env.iter();
        shell.envs(variables.map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))));
        let mut shell = self.limited(&shell);
        shell.process_group(0);
        let child = start(driver, shell)?;
        self.add(driver, child, Role::Shell, request.stdin);
        Ok(child.process)
    }

    fn spawn_ssh(
        &mut self,
        driver: &mut Driver<Wire>,
        request: &Request,
        ssh: &OpenSsh,
    ) -> Result<Key, NotSpawned> {
        let call = self.directory.call(request, ssh).map_err(NotSpawned::Directory)?;
        let log = call.log;
        let added = driver.add(Stream::Duplex(log.read, log.write), Wire::Pipe(Pipe::default()));
        let key = added?;
        let mut command = self.limited(&call.command);
        command.process_group(0);
        let child = match start(driver, command) {
            Ok(child) => child,
            Err(error) => {
                driver.abort(key);
                return Err(error.into());
            }
        };
        let role = Role::Ssh {
            log: key,
            program: ssh.program.clone(),
            control: call.control,
            log_path: log.path,
        };
        self.add(driver, child, role, request.stdin);
        if let Some(local) = self.by_process.get_mut(&child.process) {
            local.pipes.push(key);
        }
        self.by_pipe.insert(key, (child.process, Source::Log));
        Ok(child.process)
    }

    /// The same command, under the limit on descriptors that this process was started with.
    fn limited(&self, command: &Command) -> Command {
        let Some(limit) = self.descriptors else {
            return again(command, Command::new(command.get_program()));
        };
        let mut shell = Command::new("/bin/sh");
        shell
            .arg("-c")
            .arg(format!("ulimit -S -n {limit}; exec \"$@\""))
            .arg("sh");
        shell.arg(command.get_program());
        again(command, shell)
    }

    fn add(&mut self, driver: &mut Driver<Wire>, child: Child, role: Role, stdin: bool) {
        let stderr = child.stderr.unwrap_or(child.stdio);
        for pipe in [child.stdio, stderr] {
            let is_input = stdin && pipe == child.stdio;
            if !is_input && let Some(Wire::Pipe(pipe)) = driver.protocol(pipe) {
                // Nothing is written there, and a link that has nothing to send ends with what it receives.
                pipe.finish();
            }
        }
        let (out, err) = match role {
            Role::Killer(_) => (Source::Nothing, Source::Nothing),
            Role::Shell | Role::Ssh { .. } => (
                Source::Output(StreamKind::Stdout),
                Source::Output(StreamKind::Stderr),
            ),
        };
        self.by_pipe.insert(child.stdio, (child.process, out));
        self.by_pipe.insert(stderr, (child.process, err));
        let local = Local {
            pid: child.pid,
            pipes: vec![child.stdio, stderr],
            unsent: 0,
            status: None,
            role,
        };
        self.by_process.insert(child.process, local);
    }

    pub(crate) fn pipe(&self, process: Key, stream: StreamKind) -> Option<Key> {
        let pipes = &self.by_process.get(&process)?.pipes;
        let wanted = Source::Output(stream);
        let found = pipes.iter().find(|pipe| {
            self.by_pipe
                .get(pipe)
                .is_some_and(|(_, source)| *source == wanted)
        });
        found.copied()
    }

    pub(crate) fn is_process(&self, key: Key) -> bool {
        self.by_process.contains_key(&key)
    }

    /// How many descriptors a pipe has.
    pub(crate) fn descriptors(&self, pipe: Key) -> usize {
        match self.by_pipe.get(&pipe) {
            Some((_, Source::Log)) => LOG_DESCRIPTORS,
            Some((_, Source::Output(_) | Source::Nothing)) | None => 1,
        }
    }

    /// Returns how many descriptors it takes for that.
    pub(crate) fn kill(&mut self, driver: &mut Driver<Wire>, process: Key, signal: Kill) -> usize {
        let number = match signal {
            Kill::Term => Signal::TERM,
            Kill::Kill => Signal::KILL,
            Kill::Remote => match self.kill_remote(driver, process) {
                Ok(()) => return DESCRIPTORS,
                Err(error) => {
                    log::info!("could not reach the server for what runs there: {error}");
                    Signal::TERM
                }
            },
        };
        if let Err(error) = driver.kill(process, number.as_raw(), Recipient::Group) {
            log::info!("could not signal a local command: {error}");
        }
        0
    }

    /// Starts what ends the command of an `ssh` on its server.
    fn kill_remote(&mut self, driver: &mut Driver<Wire>, process: Key) -> io::Result<()> {
        let Some(Local {
            role:
                Role::Ssh {
                    program,
                    control: Some(control),
                    ..
                },
            ..
        }) = self.by_process.get(&process)
        else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let child = start(driver, openssh::killer(program, control))?;
        self.add(driver, child, Role::Killer(process), false);
        Ok(())
    }

    /// Nobody waits for this process any more: it is killed, and its pipes are closed. Returns how many descriptors that
    /// frees.
    pub(crate) fn abandon(&mut self, driver: &mut Driver<Wire>, process: Key) -> usize {
        self.kill(driver, process, Kill::Kill);
        let Some(local) = self.by_process.get_mut(&process) else {
            return 0;
        };
        let pipes = std::mem::take(&mut local.pipes);
        let mut freed = 0;
        for pipe in pipes {
            freed += self.descriptors(pipe);
            self.by_pipe.remove(&pipe);
            driver.abort(pipe);
        }
        freed
    }

    pub(crate) fn on_pipe(&self, driver: &mut Driver<Wire>, pipe: Key, said: PipeEvent) -> Option<Heard> {
        let (process, source) = *self.by_pipe.get(&pipe)?;
        match (said, source) {
            (PipeEvent::Data(data), Source::Output(stream)) => {
                Some(Heard::Link(process, LinkEvent::Output(stream, data)))
            }
            (PipeEvent::Data(data), Source::Log) => {
                consume(driver, pipe, &data);
                let pid = self.by_process.get(&process)?.pid;
                Some(Heard::Link(process, LinkEvent::Log { pid, data }))
            }
            (PipeEvent::Data(data), Source::Nothing) => {
                consume(driver, pipe, &data);
                None
            }
            // The link closes next.
            (PipeEvent::Eof, _) => None,
            (PipeEvent::Room, _) => Some(Heard::Link(process, LinkEvent::Room)),
        }
    }

    pub(crate) fn on_pipe_closed(&mut self, pipe: Key, unsent: usize) -> Option<Heard> {
        let (process, _) = self.by_pipe.remove(&pipe)?;
        let local = self.by_process.get_mut(&process)?;
        local.pipes.retain(|open| *open != pipe);
        local.unsent += unsent;
        self.over(process)
    }

    pub(crate) fn on_exit(
        &mut self,
        driver: &mut Driver<Wire>,
        process: Key,
        status: Option<ExitStatus>,
    ) -> Option<Heard> {
        let local = self.by_process.get_mut(&process)?;
        local.status = Some(status);
        if let Role::Ssh { log, .. } = local.role
            && let Some(Wire::Pipe(pipe)) = driver.protocol(log)
        {
            // Nobody but us keeps it open now.
            pipe.finish();
        }
        self.over(process)
    }

    fn over(&mut self, process: Key) -> Option<Heard> {
        let local = self.by_process.get(&process)?;
        let status = local.status.filter(|_| local.pipes.is_empty())?;
        let local = self.by_process.remove(&process)?;
        match local.role {
            Role::Killer(of) => return Some(Heard::Link(of, LinkEvent::KillerOver)),
            Role::Ssh { log_path, .. } => {
                if let Err(error) = std::fs::remove_file(&log_path) {
                    log::debug!("{}: {error}", log_path.display());
                }
            }
            Role::Shell => {}
        }
        let rc = status.and_then(|status| status.code());
        let signal = status.and_then(|status| status.signal());
        let unsent = local.unsent;
        Some(Heard::Link(process, LinkEvent::Exited { rc, signal, unsent }))
    }
}

fn start(driver: &mut Driver<Wire>, command: Command) -> io::Result<Child> {
    let pipe = || Wire::Pipe(Pipe::default());
    driver.child(command, pipe(), Some(pipe()))
}

/// `command` with the arguments and the environment of `of` behind its own.
fn again(of: &Command, mut command: Command) -> Command {
    command.args(of.get_args());
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn consume(driver: &mut Driver<Wire>, pipe: Key, data: &Bytes) {
    if let Some(Wire::Pipe(pipe)) = driver.protocol(pipe) {
        pipe.consume(data.len());
    }
}
