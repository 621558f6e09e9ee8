//! Child processes. Decides how their streams become links and how their end is noticed; sets nothing of a process
//! but its standard streams.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

use mio::Interest;
use mio::unix::SourceFd;
use mux_proto::Protocol;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use crate::driver::{Driver, What, is_shortage};
use crate::{Event, Key, Reactor, Stream};

/// A child process and the links to its standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Names the process: [`Event::Exited`], [`Driver::kill`].
    pub process: Key,
    /// Standard input (what the link sends) and standard output (what it receives).
    pub stdio: Key,
    /// Standard error, if a protocol was given for it.
    pub stderr: Option<Key>,
    /// The process id.
    pub pid: u32,
}

/// A process that was not collected yet.
pub(crate) struct Process {
    child: std::process::Child,
    /// Readable once the process has ended. `None` where the system has no such thing.
    pidfd: Option<OwnedFd>,
}

impl Process {
    pub(crate) fn detach(&mut self, reactor: &mut Reactor) {
        if let Some(pidfd) = &self.pidfd {
            reactor.detach(&mut SourceFd(&pidfd.as_raw_fd()));
        }
    }
}

/// Whom a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The child alone.
    Process,
    /// The group that the child leads: for commands started with
    /// [`process_group(0)`](std::os::unix::process::CommandExt::process_group).
    Group,
}

impl<P: Protocol> Driver<P> {
    /// Starts a child. Its standard input and output are the two directions of one link; standard error is a
    /// second, receiving link if `stderr` is given, and as `command` says otherwise. Everything else
    /// (environment, directory, process group) is the command's.
    ///
    /// The links end when the child, and whoever inherited the streams from it, have closed them. Its end is
    /// [`Event::Exited`], which can come before or after that.
    ///
    /// # Errors
    /// The command cannot be run, or no descriptor is left.
    pub fn child(&mut self, mut command: Command, stdio: P, stderr: Option<P>) -> io::Result<Child> {
        let (ours, theirs) = UnixStream::pair()?;
        command
            .stdin(OwnedFd::from(theirs.try_clone()?))
            .stdout(OwnedFd::from(theirs));
        ours.set_nonblocking(true)?;
        let stream = Stream::Unix(mio::net::UnixStream::from_std(ours));
        self.start(command, (stream, stdio), stderr)
    }

    /// Like [`child`](Self::child), with a pipe for each direction: for programs that can't do with a socket, as those
    /// can't that open `/dev/stdin`.
    ///
    /// # Errors
    /// The command cannot be run, or no descriptor is left.
    pub fn piped_child(&mut self, mut command: Command, stdio: P, stderr: Option<P>) -> io::Result<Child> {
        let (their_input, our_output) = io::pipe()?;
        let (our_input, their_output) = io::pipe()?;
        command.stdin(their_input).stdout(their_output);
        let stream = Stream::Duplex(our_input.into(), our_output.into());
        self.start(command, (stream, stdio), stderr)
    }

    fn start(
        &mut self,
        mut command: Command,
        (stream, stdio): (Stream, P),
        stderr: Option<P>,
    ) -> io::Result<Child> {
        let stderr = match stderr {
            Some(protocol) => {
                let (ours, theirs) = UnixStream::pair()?;
                command.stderr(OwnedFd::from(theirs));
                Some((ours, protocol))
            }
            None => None,
        };
        let child = command.spawn()?;
        // The command holds the child's ends of the streams; as long as it does, they never end.
        drop(command);
        let pid = child.id();
        let process = self.watch(child)?;
        let stdio = self.add(stream, stdio)?;
        let stderr = stderr
            .map(|(ours, protocol)| self.add_socket(ours, protocol))
            .transpose()?;
        Ok(Child {
            process,
            stdio,
            stderr,
            pid,
        })
    }

    fn add_socket(&mut self, socket: UnixStream, protocol: P) -> io::Result<Key> {
        socket.set_nonblocking(true)?;
        self.add(Stream::Unix(mio::net::UnixStream::from_std(socket)), protocol)
    }

    fn watch(&mut self, mut child: std::process::Child) -> io::Result<Key> {
        let pidfd = match pidfd(&child) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                // A child whose end nobody would notice is none; it has hardly begun.
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        let key = match &pidfd {
            Some(pidfd) => self
                .reactor
                .register(&mut SourceFd(&pidfd.as_raw_fd()), Interest::READABLE)?,
            None => self.reactor.reserve(),
        };
        self.insert(key, What::Process(Box::new(Process { child, pidfd })));
        Ok(key)
    }

    /// Sends `signal` to a child that has not been collected yet.
    ///
    /// # Errors
    /// `NotFound` once [`Event::Exited`] was returned; otherwise what the system says.
    pub fn kill(&mut self, process: Key, signal: i32, recipient: Recipient) -> io::Result<()> {
        let Some(What::Process(process)) = self.entry(process) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        // Not collected, so that its id is still its own.
        let pid = Pid::from_raw(process.child.id().cast_signed()).ok_or(io::ErrorKind::NotFound)?;
        let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
        match recipient {
            Recipient::Process => kill_process(pid, signal)?,
            Recipient::Group => kill_process_group(pid, signal)?,
        }
        Ok(())
    }

    /// Collects children that have ended, where the system has no pidfd: for the application's own `SIGCHLD`.
    /// Harmless elsewhere.
    pub fn reap(&mut self) {
        let keys: Vec<Key> = self.keys().collect();
        for key in keys {
            self.collect(key);
        }
    }

    /// Collects one child, if it has ended.
    pub(crate) fn collect(&mut self, key: Key) {
        let Some(What::Process(process)) = self.entry(key) else {
            return;
        };
        let status = match process.child.try_wait() {
            Ok(None) => return,
            Ok(Some(status)) => Some(status),
            Err(error) => {
                log::warn!("child {}: {error}", process.child.id());
                None
            }
        };
        self.forget(key);
        self.events.push_back(Event::Exited(key, status));
    }
}

/// A descriptor for the end of a child; `None` where the system has no such thing, or does not let us have it.
fn pidfd(child: &std::process::Child) -> io::Result<Option<OwnedFd>> {
    // The id cannot have been reused: nobody but us collects this child.
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else {
        return Ok(None);
    };
    match pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from) {
        Ok(pidfd) => Ok(Some(pidfd)),
        Err(error) if is_shortage(&error) => Err(error),
        Err(_) => Ok(None),
    }
}
