//! Processes that are connections (`ProxyCommand`): how they are started, what they say beside the connection, and that
//! none outlives its link. Decides nothing about who may have one.
//!
//! As in ssh the line is run by the user's shell with `exec` before it, over a pipe for each direction. Unlike there, its
//! standard error is ours to show and it has a process group of its own: an interrupt at the terminal first asks what is
//! to become of the commands, and must not take their connections away.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use mux_core::{Driver, Key, Recipient};
use mux_ssh::Client;
use rustix::io::Errno;
use rustix::process::Signal;

use super::net::Heard;
use super::pipe::{Pipe, PipeEvent};
use super::wire::Wire;
use crate::hub::{LinkEvent, MAX_PROXIES};

/// What one takes of ours: two pipes, a socket for its standard error, a handle on the process.
pub(super) const DESCRIPTORS: usize = LINK_DESCRIPTORS + 2;

/// What its link has of those.
pub(super) const LINK_DESCRIPTORS: usize = 2;

/// How long one that has closed the connection has to end by itself and to say why: a shell that could not start the
/// program is done in a millisecond.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How long one has to end after SIGHUP, which is what ssh sends to its own.
const AFTER_HANGUP: Duration = Duration::from_secs(1);

/// A line that is longer is cut: it is for people.
const MAX_LINE: usize = 1024;

/// The processes of a run that are connections.
#[derive(Debug, Default)]
pub(super) struct Proxies {
    by_link: HashMap<Key, Proxy>,
    /// Whose process, standard error or timer this is.
    owners: HashMap<Key, Key>,
    /// The soft limit on descriptors that children get back.
    descriptors: Option<u64>,
}

#[derive(Debug)]
struct Proxy {
    process: Key,
    stderr: Key,
    stderr_open: bool,
    has_exited: bool,
    /// With which status, if that is worth a word.
    failed: Option<ExitStatus>,
    is_hung_up: bool,
    line: Vec<u8>,
    has_spoken: bool,
    timer: Option<Key>,
    /// The end of the link, told once the process has had its last words; `None`: it lives, or its end was told.
    end: Option<Vec<Heard>>,
    link_open: bool,
}

impl Proxies {
    pub(super) fn new(descriptors: Option<u64>) -> Self {
        Self {
            descriptors,
            ..Self::default()
        }
    }

    pub(super) fn start(&mut self, driver: &mut Driver<Wire>, line: &str, client: Client) -> io::Result<Key> {
        if self.by_link.len() >= MAX_PROXIES {
            // Places are given back when a connection is over, which is a moment before its process has ended.
            return Err(Errno::AGAIN.into());
        }
        let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
        let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
        let line = format!("exec {line}");
        let mut command = match self.descriptors {
            None => Command::new(&shell),
            Some(limit) => {
                let mut first = Command::new("/bin/sh");
                let script = format!("ulimit -S -n {limit}; exec \"$0\" \"$@\"");
                first.arg("-c").arg(script).arg(&shell);
                first
            }
        };
        command.arg("-c").arg(line).process_group(0);
        let wire = Wire::Ssh(Box::new(client));
        let child = driver.piped_child(command, wire, Some(Wire::Pipe(Pipe::default())))?;
        let stderr = child.stderr.unwrap_or(child.stdio);
        if let Some(Wire::Pipe(pipe)) = driver.protocol(stderr) {
            // Nothing is written there, and a link that has nothing to send ends with what it receives.
            pipe.finish();
        }
        self.owners
            .extend([(child.process, child.stdio), (stderr, child.stdio)]);
        self.by_link.insert(
            child.stdio,
            Proxy {
                process: child.process,
                stderr,
                stderr_open: true,
                has_exited: false,
                failed: None,
                is_hung_up: false,
                line: Vec::new(),
                has_spoken: false,
                timer: None,
                end: None,
                link_open: true,
            },
        );
        Ok(child.stdio)
    }

    /// Whether this is the link of one.
    pub(super) fn has_link(&self, link: Key) -> bool {
        self.by_link.contains_key(&link)
    }

    /// Whether this is the standard error, the process or the timer of one.
    pub(super) fn owns(&self, key: Key) -> bool {
        self.owners.contains_key(&key)
    }

    /// Something came on a standard error.
    pub(super) fn said(&mut self, driver: &mut Driver<Wire>, pipe: Key, said: &PipeEvent) -> Vec<Heard> {
        let (Some(&link), PipeEvent::Data(data)) = (self.owners.get(&pipe), said) else {
            return Vec::new();
        };
        if let Some(Wire::Pipe(pipe)) = driver.protocol(pipe) {
            pipe.consume(data.len());
        }
        let proxy = self.by_link.get_mut(&link);
        proxy.map(|proxy| proxy.read(link, data)).unwrap_or_default()
    }

    /// A link is gone. `heard` is its end; what may be told of it by now is returned.
    pub(super) fn closed(
        &mut self,
        driver: &mut Driver<Wire>,
        now: Instant,
        link: Key,
        heard: Vec<Heard>,
        by_itself: bool,
    ) -> Vec<Heard> {
        let Some(proxy) = self.by_link.get_mut(&link) else {
            return heard;
        };
        proxy.link_open = false;
        if !by_itself {
            self.hang_up(driver, now, link);
            return heard;
        }
        proxy.end = Some(heard);
        if proxy.has_said_all() {
            return self.finish(driver, link);
        }
        let timer = driver.timer(now + LAST_WORDS);
        proxy.timer = Some(timer);
        self.owners.insert(timer, link);
        Vec::new()
    }

    /// A link was dropped without a word.
    pub(super) fn dropped(&mut self, driver: &mut Driver<Wire>, now: Instant, link: Key) {
        if let Some(proxy) = self.by_link.get_mut(&link) {
            proxy.link_open = false;
            self.hang_up(driver, now, link);
        }
    }

    /// A standard error has ended.
    pub(super) fn stderr_closed(&mut self, driver: &mut Driver<Wire>, pipe: Key) -> Vec<Heard> {
        let Some(link) = self.owners.remove(&pipe) else {
            return Vec::new();
        };
        if let Some(proxy) = self.by_link.get_mut(&link) {
            proxy.stderr_open = false;
        }
        self.look(driver, link)
    }

    /// A process has ended.
    pub(super) fn exited(
        &mut self,
        driver: &mut Driver<Wire>,
        process: Key,
        status: Option<ExitStatus>,
    ) -> Vec<Heard> {
        let Some(link) = self.owners.remove(&process) else {
            return Vec::new();
        };
        if let Some(proxy) = self.by_link.get_mut(&link) {
            proxy.has_exited = true;
            proxy.failed = status.filter(|status| !status.success() && !proxy.is_hung_up);
        }
        self.look(driver, link)
    }

    /// A timer of one came due: it has had its last words, or its last second. Also how many descriptors are free
    /// again.
    pub(super) fn timed_out(
        &mut self,
        driver: &mut Driver<Wire>,
        now: Instant,
        timer: Key,
    ) -> (Vec<Heard>, usize) {
        let link = self.owners.remove(&timer);
        let Some((link, proxy)) = link.and_then(|link| Some((link, self.by_link.get_mut(&link)?))) else {
            return (Vec::new(), 0);
        };
        proxy.timer = None;
        if !proxy.is_hung_up {
            let heard = proxy.end(link);
            self.hang_up(driver, now, link);
            return (heard, 0);
        }
        signal(driver, proxy.process, Signal::KILL);
        // Whoever else has its standard error, such as a master of connections that it has left behind, keeps it.
        let freed = std::mem::take(&mut proxy.stderr_open) && driver.abort(proxy.stderr).is_some();
        self.owners.remove(&proxy.stderr);
        let heard = self.look(driver, link);
        (heard, usize::from(freed))
    }

    /// The run is over: none stays behind.
    pub(super) fn end(&mut self, driver: &mut Driver<Wire>) {
        for proxy in self.by_link.values().filter(|proxy| !proxy.has_exited) {
            signal(driver, proxy.process, Signal::HUP);
            signal(driver, proxy.process, Signal::KILL);
        }
    }

    fn look(&mut self, driver: &mut Driver<Wire>, link: Key) -> Vec<Heard> {
        let over = |proxy: &Proxy| !proxy.link_open && proxy.has_said_all();
        match self.by_link.get(&link).is_some_and(over) {
            true => self.finish(driver, link),
            false => Vec::new(),
        }
    }

    /// Forgets one whose process has ended. Whoever else has its standard error is nobody that we know.
    fn finish(&mut self, driver: &mut Driver<Wire>, link: Key) -> Vec<Heard> {
        let Some(mut proxy) = self.by_link.remove(&link) else {
            return Vec::new();
        };
        if let Some(timer) = proxy.timer {
            self.owners.remove(&timer);
            driver.cancel_timer(timer);
        }
        proxy.end(link)
    }

    fn hang_up(&mut self, driver: &mut Driver<Wire>, now: Instant, link: Key) {
        let Some(proxy) = self.by_link.get_mut(&link) else {
            return;
        };
        if proxy.has_said_all() {
            self.by_link.remove(&link);
        } else if !std::mem::replace(&mut proxy.is_hung_up, true) {
            signal(driver, proxy.process, Signal::HUP);
            let timer = driver.timer(now + AFTER_HANGUP);
            proxy.timer = Some(timer);
            self.owners.insert(timer, link);
        }
    }
}

impl Proxy {
    fn has_said_all(&self) -> bool {
        self.has_exited && !self.stderr_open
    }

    /// Its last words, and then the end of the link.
    fn end(&mut self, link: Key) -> Vec<Heard> {
        let mut heard = self.read(link, b"\n");
        if let Some(status) = self.failed.filter(|_| !self.has_spoken) {
            heard.push(Heard::Link(link, LinkEvent::ProxySaid(status.to_string())));
        }
        heard.extend(self.end.take().unwrap_or_default());
        heard
    }

    /// Cuts what it says into lines.
    fn read(&mut self, link: Key, data: &[u8]) -> Vec<Heard> {
        let mut heard = Vec::new();
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            let (text, whole) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = MAX_LINE.saturating_sub(self.line.len()).min(text.len());
            self.line.extend_from_slice(text.get(..room).unwrap_or(text));
            if whole && !self.line.is_empty() {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line).into_owned();
                self.has_spoken = true;
                heard.push(Heard::Link(link, LinkEvent::ProxySaid(line)));
            }
        }
        heard
    }
}

fn signal(driver: &mut Driver<Wire>, process: Key, signal: Signal) {
    if let Err(error) = driver.kill(process, signal.as_raw(), Recipient::Group) {
        log::debug!("could not signal a ProxyCommand: {error}");
    }
}
