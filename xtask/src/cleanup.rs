//! What must not outlive a verb: servers that it started and directories that it filled.
//!
//! A guard ([`Directory`], [`Server`]) undoes its thing when dropped; Ctrl-C and SIGTERM undo everything and leave with
//! 128 + the signal. Nothing is touched that was not handed to this module.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::command;

/// Undone last to first, on a signal.
static PENDING: Mutex<Vec<Undo>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, PartialEq, Eq)]
enum Undo {
    Kill(i32),
    Remove(PathBuf),
}

/// From now on a signal cleans up before the process ends. Called once by each verb that starts servers.
pub(crate) fn on_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch signals")?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for undo in pending().drain(..).rev() {
                undo.perform();
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// A temporary directory that goes away with its guard, or on a signal.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
}

impl Directory {
    /// A fresh directory that only this user can enter: it will hold private keys.
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        let path = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .context("cannot make a temporary directory")?
            .keep();
        pending().push(Undo::Remove(path.clone()));
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        settle(&Undo::Remove(self.path.clone()));
    }
}

/// A process in the background that ends with its guard, or on a signal.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// `None` once it was waited for: its process id may be another's by then.
    undo: Option<Undo>,
}

impl Server {
    pub(crate) fn new(child: Child) -> Self {
        let undo = Undo::Kill(
            child
                .id()
                .try_into()
                .expect("a process id fits an i32 on every Unix"),
        );
        pending().push(undo.clone());
        Self {
            child,
            undo: Some(undo),
        }
    }

    /// Starts one of our examples and waits for `count` lines that begin with `ready`; gives what follows the word.
    /// It keeps the other end of the server's standard input, whose end is a reason for our examples to leave.
    pub(crate) fn ready(mut command: Command, count: usize, log: &Path) -> Result<(Vec<String>, Self)> {
        let line = command::line(&command);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?);
        let mut server = Self::new(
            command
                .spawn()
                .with_context(|| format!("cannot start `{line}`"))?,
        );
        let output = BufReader::new(server.child().stdout.take().context("no pipe was made")?);
        let ready = output
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| Some(line.strip_prefix("ready")?.trim().to_owned()));
        let lines: Vec<String> = ready.take(count).collect();
        ensure!(
            lines.len() == count,
            "`{line}` did not get ready: {}",
            std::fs::read_to_string(log)?
        );
        Ok((lines, server))
    }

    /// Waits until it ends on its own account.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait()?;
        pending().retain(|other| Some(other) != self.undo.as_ref());
        self.undo = None;
        Ok(status)
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(undo) = &self.undo {
            settle(undo);
        }
        // Reaped here, or it would stay a zombie for as long as a long benchmark runs.
        let _ = self.child.wait();
    }
}

impl Undo {
    /// Best effort: what is gone already needs no undoing.
    fn perform(self) {
        match self {
            Self::Kill(pid) => {
                let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
            }
            Self::Remove(path) => {
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }
}

fn settle(undo: &Undo) {
    pending().retain(|other| other != undo);
    undo.clone().perform();
}

fn pending() -> MutexGuard<'static, Vec<Undo>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}
