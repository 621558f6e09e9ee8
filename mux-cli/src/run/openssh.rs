//! The system's `ssh`: where it is, how it is called for a target, and the directory with the logs and control sockets
//! of those that run. Decides nothing about what becomes of a request.
//!
//! Each has its log (`-E`) in a named pipe of its own, so that what the server sends to standard error stays what it
//! is. Each is a control master with a socket that nobody else can reach: ssh passes no signal on, so that a command is
//! stopped by another one over the same connection.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::stat::Mode;
use rustix::fs::OFlags;
use tempfile::TempDir;

use super::abandoned;
use crate::hub::{KILL_LINE, LOG_VERBOSE, OpenSsh, Request};

/// A socket's name may have 104 bytes on the smallest system, and ssh appends 17 while it makes one.
const MAX_CONTROL_PATH: usize = 104 - 17 - 1;

/// What is the same for all, before anything that the user says: the first value of an option wins.
///
/// Nobody can be asked by many processes at once. What opens ports, runs something here or puts something else in the
/// place of the command has no business in a run, as over the native transport. An old version that does not know one
/// of these says so and ends.
const OPTIONS: [&str; 12] = [
    "LogLevel=ERROR",
    "ControlPersist=no",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
    "Tunnel=no",
    "RequestTTY=no",
    "EscapeChar=none",
    // These three: input that is thrown away, a command that runs behind our back, and none at all.
    "StdinNull=no",
    "ForkAfterAuthentication=no",
    "SessionType=default",
];

/// Where a program is, if there is one in `PATH`.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|program| {
            let is_file = std::fs::metadata(program).is_ok_and(|meta| meta.is_file());
            is_file && rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok()
        })
}

/// What the processes of a run share.
#[derive(Debug, Default)]
pub(super) struct Directory {
    directory: Option<TempDir>,
    /// Says that its owner lives.
    lock: Option<File>,
    /// How many had something there.
    count: u64,
}

/// One process, ready to be started.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) command: Command,
    pub(super) log: LogPipe,
    /// Where its connection can be shared.
    pub(super) control: Option<PathBuf>,
}

/// Both ends of a log. That we write to it, too, keeps it open until the process has ended.
#[derive(Debug)]
pub(super) struct LogPipe {
    pub(super) path: PathBuf,
    pub(super) read: OwnedFd,
    pub(super) write: OwnedFd,
}

impl Directory {
    /// # Errors
    /// There is no place for its log.
    pub(super) fn call(&mut self, request: &Request, ssh: &OpenSsh) -> io::Result<Call> {
        let number = self.count;
        self.count += 1;
        let directory = self.path()?;
        let log = LogPipe::new(directory.join(format!("{number}.log")))?;
        let control = directory.join(format!("{number}.s"));
        let control = (control.as_os_str().len() <= MAX_CONTROL_PATH).then_some(control);
        let mut command = Command::new(&ssh.program);
        command.arg("-E").arg(&log.path).process_group(0);
        match &control {
            Some(path) => {
                command.args(["-o", "ControlMaster=yes"]);
                command.arg("-o").arg(joined("ControlPath=", path.as_os_str()));
            }
            None => {
                command.args(["-o", "ControlMaster=no", "-o", "ControlPath=none"]);
            }
        }
        command.arg("-o").arg(format!("LogVerbose={LOG_VERBOSE}"));
        command.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
        ask_nobody(&mut command);
        command.args(&ssh.options);
        command.arg("--").arg(&request.host);
        command.arg(OsStr::from_bytes(&request.command));
        Ok(Call {
            command,
            log,
            control,
        })
    }

    fn path(&mut self) -> io::Result<&Path> {
        if self.directory.is_none() {
            let (directory, lock) = abandoned::create(&std::env::temp_dir())?;
            self.directory = Some(directory);
            self.lock = Some(lock);
        }
        let directory = self.directory.as_ref().map(TempDir::path);
        directory.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl LogPipe {
    fn new(path: PathBuf) -> io::Result<Self> {
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let open = |how| {
            let flags = how | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(&path, flags, rustix::fs::Mode::empty())
        };
        // There has to be a reader before there can be a writer.
        let read = open(OFlags::RDONLY)?;
        let write = open(OFlags::WRONLY)?;
        Ok(Self { path, read, write })
    }
}

/// Whether no question is put to anybody. A process in the background would be stopped at its first one: whoever wants
/// to be asked says so, and is asked by `SSH_ASKPASS`.
pub(super) fn asks_nobody() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let wanted = std::env::var_os("SSH_ASKPASS_REQUIRE");
    let is_wanted = wanted.is_some_and(|value| value == "force" || value == "prefer");
    !(is_wanted && is_set("SSH_ASKPASS"))
}

/// A jump host's ssh is started by ssh itself, without our options; it is told by the environment.
fn ask_nobody(command: &mut Command) {
    if asks_nobody() {
        command.args(["-o", "BatchMode=yes"]);
        command.env("SSH_ASKPASS", "false");
    }
    command.env("SSH_ASKPASS_REQUIRE", "force");
}

/// What ends the command of the process with this control socket.
pub(super) fn killer(program: &Path, control: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["-F", "none", "-T", "-o", "ControlMaster=no", "-o"]);
    command.arg(joined("ControlPath=", control.as_os_str()));
    // Without that connection there is nothing to do, least of all to make another one.
    command.args([
        "-o",
        "ProxyCommand=false",
        "-o",
        "BatchMode=yes",
        "-o",
        "LogLevel=QUIET",
    ]);
    command.args(["--", "mux", KILL_LINE]).process_group(0);
    command
}

/// An option and its value, which is a path: ssh takes it as it is.
fn joined(option: &str, value: &OsStr) -> OsString {
    let mut value = value.as_bytes().to_vec();
    for at in (0..value.len()).rev() {
        if value.get(at) == Some(&b'%') {
            value.insert(at, b'%');
        }
    }
    let mut joined = OsString::from(option);
    joined.push(quoted(&value));
    joined
}

/// As ssh reads a word of its configuration.
pub(super) fn quoted(bytes: &[u8]) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}
