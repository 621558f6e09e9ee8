//! What the commands of a run read: one input, given to each of them from its first byte to its last, at the pace of
//! each. Decides from where a piece comes and when more is to be read; reads nothing itself.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use mux_core::stdio::was_closed;
use mux_ssh::Printable;
use rustix::fs::{Mode, OFlags, SeekFrom, fcntl_getfl, open, seek};
use rustix::termios::isatty;

use super::in_file::InFile;
use super::source::{Arrival, Source, Start};
use crate::files::FileError;
use crate::hub::{RequestId, Ticket, Wish};
use crate::plan::StdinSource;

/// What is read of a pipe before anybody needs it: the next piece is there when the last one has left.
const READ_AHEAD: u64 = 64 * 1024;

/// Where a piece is.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Here; empty: there is no more.
    Here(Bytes),
    /// To be read from a file.
    InFile(InFile),
    /// It will come.
    Later,
}

/// An input that can be opened, and was.
#[derive(Debug)]
pub(crate) struct Opened {
    name: String,
    file: File,
}

impl Opened {
    /// # Errors
    /// One line, for a command line that can't be carried out.
    pub(crate) fn open(source: &StdinSource) -> Result<Self, String> {
        if *source == StdinSource::Inherited && is_closed() {
            return Err(
                "--stdin: standard input is closed; write --stdin=FILE, or < FILE behind the command"
                    .to_owned(),
            );
        }
        let (name, file) = match source {
            StdinSource::Inherited => (
                "standard input".to_owned(),
                io::stdin().as_fd().try_clone_to_owned().map(File::from),
            ),
            StdinSource::File(path) => (
                Printable::new(&path.to_string_lossy()).to_string(),
                open_file(path),
            ),
        };
        if file.as_ref().is_ok_and(is_write_only) {
            return Err(format!(
                "--stdin: {name}: not open for reading; write --stdin=FILE, or < FILE behind the command"
            ));
        }
        let file = file.and_then(|file| match file.metadata()?.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => Ok(file),
        });
        match file {
            Ok(file) => Ok(Self { name, file }),
            Err(error) => Err(format!("--stdin: {name}: {}", FileError::from(error))),
        }
    }

    /// Whether it is typed.
    pub(crate) fn is_terminal(&self) -> bool {
        isatty(&self.file)
    }
}

/// Whether we were started without a standard input, which is not an empty one. Where all three streams are missing, as
/// those of a daemon are, nobody has forgotten anything.
fn is_closed() -> bool {
    was_closed(io::stdin()) && !(was_closed(io::stdout()) && was_closed(io::stderr()))
}

/// Whether the first read would fail: `0> FILE`, or the end of a pipe that is written to.
fn is_write_only(file: &File) -> bool {
    fcntl_getfl(file).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::WRONLY)
}

/// Does not wait for the writer of a named pipe: the thread does.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(open(path, flags, Mode::empty())?.into())
}

/// The input of a run.
#[derive(Debug)]
pub(crate) struct Input {
    name: String,
    supply: Supply,
    waiting: HashMap<RequestId, (Ticket, Wish)>,
    /// The most that any command took.
    taken: u64,
    /// Some command took all of it.
    is_taken: bool,
    warnings: Vec<String>,
    /// Why it is not whole.
    fault: Option<String>,
    is_broken: bool,
}

#[derive(Debug)]
enum Supply {
    File(Regular),
    Stream(Stream),
}

/// A regular file: read in place, each command where it is.
#[derive(Debug)]
struct Regular {
    file: Arc<File>,
    start: u64,
    len: u64,
    looked: Look,
}

/// What a file that nobody writes to has in common at two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    size: u64,
    modified: (i64, i64),
}

impl Look {
    fn at(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// A pipe, a terminal, a socket: read once, and kept as long as somebody may need it.
#[derive(Debug)]
struct Stream {
    source: Source,
    is_kept: bool,
    /// What is in memory, each with the place of its first byte.
    memory: VecDeque<(u64, Bytes)>,
    /// What came after that.
    file: Option<(Arc<File>, u64)>,
    len: u64,
    is_ended: bool,
}

impl Input {
    /// The input for so many commands. `report` takes to the loop what its thread says, and says whether that is still
    /// there.
    pub(crate) fn start(
        opened: Opened,
        commands: usize,
        report: impl Fn(Arrival) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        Ok(Self {
            supply: Supply::new(opened.file, commands > 1, report)?,
            name: opened.name,
            waiting: HashMap::new(),
            taken: 0,
            is_taken: false,
            warnings: Vec::new(),
            fault: None,
            is_broken: false,
        })
    }

    /// Somebody is asked something on the terminal (`true`), or has answered: no answer of theirs is for the commands.
    pub(crate) fn hold(&mut self, held: bool) {
        match &mut self.supply {
            Supply::File(_) => {}
            Supply::Stream(stream) => stream.source.hold(held),
        }
    }

    /// A command wants a piece.
    pub(crate) fn wish(&mut self, ticket: Ticket, wish: Wish) -> Piece {
        if self.is_broken {
            // What is left of it must not pass for all of it.
            return Piece::Later;
        }
        let piece = match &mut self.supply {
            Supply::File(file) => file.piece(wish),
            Supply::Stream(stream) => stream.piece(wish),
        };
        if matches!(piece, Piece::Later) {
            self.waiting.insert(ticket.request, (ticket, wish));
        }
        piece
    }

    /// The thread has said something. Returns the wishes that may be fulfilled now.
    pub(crate) fn arrived(&mut self, arrival: Arrival) -> Vec<(Ticket, Wish)> {
        let Supply::Stream(stream) = &mut self.supply else {
            return Vec::new();
        };
        match arrival {
            Arrival::Bytes(bytes) => stream.add(bytes),
            Arrival::Stored { file, bytes } => stream.store(file, bytes),
            Arrival::End(Ok(())) => stream.is_ended = true,
            Arrival::End(Err(reason)) => self.break_off(&reason),
            Arrival::InBackground => self.warnings.push(format!(
                "{} is the terminal, and this job is in the background: it is read once that is in the foreground (fg)",
                self.name
            )),
        }
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    /// A part of a file was read.
    pub(crate) fn was_read(&mut self, result: io::Result<Bytes>) -> Option<Bytes> {
        match result {
            Ok(bytes) if bytes.is_empty() => self.break_off("it has become shorter while it was read"),
            Ok(bytes) => return Some(bytes),
            Err(error) => self.break_off(&error.to_string()),
        }
        None
    }

    fn break_off(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.is_broken, true) {
            self.fault = Some(format!(
                "{}: {reason}; no command has had all of it, those that run are stopped",
                self.name
            ));
        }
    }

    /// An attempt reads no more.
    pub(crate) fn over(&mut self, request: RequestId, taken: u64, whole: bool) {
        self.waiting.remove(&request);
        self.taken = self.taken.max(taken);
        self.is_taken |= whole;
    }

    /// What is to be said since the last call.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Why the commands can't have all of it; said once.
    pub(crate) fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// What is to be said at the end.
    pub(crate) fn last_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let (len, is_more) = match &self.supply {
            Supply::File(file) => {
                if Look::at(&file.file).is_ok_and(|look| look != file.looked) {
                    words.push(format!(
                        "{} changed while it was read: not every command may have had the same",
                        self.name
                    ));
                }
                (file.len, false)
            }
            // Who types and stops typing knows that.
            Supply::Stream(stream) => (stream.len, !stream.is_ended && !stream.source.is_terminal),
        };
        let left = len.saturating_sub(self.taken);
        if !self.is_taken && !self.is_broken && (left > 0 || is_more) {
            let left = match left {
                0 => String::new(),
                left => format!(", {left} that were read were not"),
            };
            let more = if is_more { ", and more may follow" } else { "" };
            words.push(format!(
                "{}: no command took all of it; {} bytes were sent{left}{more}",
                self.name, self.taken
            ));
        }
        words
    }
}

impl Supply {
    fn new(file: File, is_kept: bool, report: impl Fn(Arrival) -> bool + Send + 'static) -> io::Result<Self> {
        let metadata = file.metadata()?;
        // Files of /proc say that they are empty and are not: those are read to their end, wherever that is.
        if metadata.is_file() && metadata.len() > 0 {
            let start = seek(&file, SeekFrom::Current(0))?;
            return Ok(Self::File(Regular {
                start,
                len: metadata.len().saturating_sub(start),
                looked: Look::at(&file)?,
                file: Arc::new(file),
            }));
        }
        let start = Start {
            from: file.into(),
            is_kept,
        };
        Ok(Self::Stream(Stream {
            source: Source::start(start, report)?,
            is_kept,
            memory: VecDeque::new(),
            file: None,
            len: 0,
            is_ended: false,
        }))
    }
}

impl Regular {
    /// What is added to the file meanwhile belongs to nobody.
    fn piece(&self, wish: Wish) -> Piece {
        let left = self.len.saturating_sub(wish.position);
        match usize::try_from(left).unwrap_or(usize::MAX).min(wish.room) {
            0 => Piece::Here(Bytes::new()),
            len => {
                let part = InFile {
                    file: Arc::clone(&self.file),
                    offset: self.start + wish.position,
                    len,
                };
                part.read_at_once().map_or(Piece::InFile(part), Piece::Here)
            }
        }
    }
}

impl Stream {
    fn add(&mut self, bytes: Bytes) {
        let at = self.len;
        self.len += bytes.len() as u64;
        self.memory.push_back((at, bytes));
    }

    fn store(&mut self, file: Arc<File>, bytes: u64) {
        self.file.get_or_insert((file, self.len));
        self.len += bytes;
    }

    fn piece(&mut self, wish: Wish) -> Piece {
        if !self.is_kept && !wish.may_restart {
            self.forget(wish.position);
        }
        if !self.is_ended {
            self.source.until(wish.position + READ_AHEAD);
        }
        if wish.position >= self.len {
            return match self.is_ended {
                true => Piece::Here(Bytes::new()),
                false => Piece::Later,
            };
        }
        match &self.file {
            Some((file, start)) if wish.position >= *start => Piece::InFile(InFile {
                file: Arc::clone(file),
                offset: wish.position - start,
                len: usize::try_from(self.len - wish.position)
                    .unwrap_or(usize::MAX)
                    .min(wish.room),
            }),
            // Only what nobody may want again is forgotten.
            Some(_) | None => self.in_memory(wish).map_or(Piece::Later, Piece::Here),
        }
    }

    fn in_memory(&self, wish: Wish) -> Option<Bytes> {
        let after = self.memory.partition_point(|(at, _)| *at <= wish.position);
        let (at, bytes) = self.memory.get(after.checked_sub(1)?)?;
        let from = usize::try_from(wish.position - at).ok()?;
        let to = bytes.len().min(from.saturating_add(wish.room));
        (from < to).then(|| bytes.slice(from..to))
    }

    /// Nobody will want what is before `position`.
    fn forget(&mut self, position: u64) {
        while let Some((at, bytes)) = self.memory.front()
            && at + bytes.len() as u64 <= position
        {
            self.memory.pop_front();
        }
    }
}
