//! The thread that reads a pipe or a terminal for the commands of a run. It reads only as much as it is asked for, and
//! waits where it may wait: nothing here blocks the loop, and no flag is set on what is shared with others.
//!
//! For one command the bytes go to the loop and nowhere else. For many they are kept: the first in memory, the rest in
//! a file without a name, from which each host reads at its own pace.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{isatty, tcgetpgrp};

/// What is kept in memory of an input that many read.
pub(crate) const IN_MEMORY: u64 = 1024 * 1024;

/// What is read at once: a full pipe of Linux.
const PIECE: usize = 64 * 1024;

/// How often a job in the background looks whether it is in the foreground now: nothing tells it.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// What the thread is told.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Read until this many bytes were read in all.
    Until(u64),
    /// Read nothing (`true`): somebody is asked something on the terminal.
    Hold(bool),
}

/// What the thread has to say.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The next bytes.
    Bytes(Bytes),
    /// The next bytes are in this file, which begins where memory ends.
    Stored { file: Arc<File>, bytes: u64 },
    /// There is no more, or it can't be read: one line.
    End(Result<(), String>),
    /// It is the terminal, and belongs to another job.
    InBackground,
}

/// The loop's end of the thread.
#[derive(Debug)]
pub(crate) struct Source {
    orders: mpsc::Sender<Order>,
    wake: PipeWriter,
    asked: u64,
    pub(crate) is_terminal: bool,
}

/// What the thread is started with.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) from: OwnedFd,
    /// Whether more than one command reads it.
    pub(crate) is_kept: bool,
}

impl Source {
    /// Starts the thread; `report` takes what it says to the loop, and says whether that is still there.
    pub(crate) fn start(start: Start, report: impl Fn(Arrival) -> bool + Send + 'static) -> io::Result<Self> {
        let (orders, receiver) = mpsc::channel();
        let (woken, wake) = io::pipe()?;
        let is_terminal = isatty(&start.from);
        let reader = Reader {
            from: start.from,
            is_kept: start.is_kept,
            is_terminal,
            orders: receiver,
            woken,
            read: 0,
            wanted: 0,
            held: false,
            told: false,
            store: None,
        };
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || reader.run(&report))?;
        Ok(Self {
            orders,
            wake,
            asked: 0,
            is_terminal,
        })
    }

    /// Has it read until this many bytes were read in all.
    pub(crate) fn until(&mut self, total: u64) {
        if total > self.asked {
            self.asked = total;
            self.tell(Order::Until(total));
        }
    }

    /// Lets nothing be read while somebody is asked something on the same terminal.
    pub(crate) fn hold(&mut self, held: bool) {
        if self.is_terminal {
            self.tell(Order::Hold(held));
        }
    }

    fn tell(&mut self, order: Order) {
        // A thread that is gone has said so.
        let _ = self.orders.send(order);
        if let Err(error) = self.wake.write_all(&[0]) {
            log::debug!("reader of standard input: {error}");
        }
    }
}

struct Reader {
    from: OwnedFd,
    is_kept: bool,
    is_terminal: bool,
    orders: Receiver<Order>,
    woken: PipeReader,
    read: u64,
    wanted: u64,
    held: bool,
    /// That the job is in the background was said.
    told: bool,
    /// The file, and which byte of the input is its first.
    store: Option<(Arc<File>, u64)>,
}

impl Reader {
    fn run(mut self, report: &impl Fn(Arrival) -> bool) {
        loop {
            if !self.take_orders() {
                return;
            }
            let is_background = self.wants_more() && self.is_background();
            if is_background && !std::mem::replace(&mut self.told, true) && !report(Arrival::InBackground) {
                return;
            }
            let ready = match self.wait(is_background) {
                Ok(ready) => ready,
                Err(error) => {
                    report(Arrival::End(Err(error.to_string())));
                    return;
                }
            };
            if !ready {
                continue;
            }
            let arrival = self.next();
            let Some(arrival) = arrival else { continue };
            let is_end = matches!(arrival, Arrival::End(_));
            if !report(arrival) || is_end {
                return;
            }
        }
    }

    fn wants_more(&self) -> bool {
        self.read < self.wanted && !self.held
    }

    /// Whether reading would stop the whole process (SIGTTIN): nobody would know why nothing happens.
    fn is_background(&self) -> bool {
        self.is_terminal && tcgetpgrp(&self.from).is_ok_and(|foreground| foreground != getpgrp())
    }

    /// Whether the loop is still there.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(Order::Until(total)) => self.wanted = self.wanted.max(total),
                Ok(Order::Hold(held)) => self.held = held,
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Waits for an order, and for something to read if any is wanted. Returns whether there is.
    fn wait(&mut self, is_background: bool) -> io::Result<bool> {
        let is_reading = self.wants_more() && !is_background;
        let (woken, from) = (self.woken.as_fd(), self.from.as_fd());
        let mut both = [
            PollFd::from_borrowed_fd(woken, PollFlags::IN),
            PollFd::from_borrowed_fd(from, PollFlags::IN),
        ];
        let waited = if is_reading {
            both.as_mut_slice()
        } else {
            both.split_at_mut(1).0
        };
        match poll(waited, is_background.then_some(&LOOK_AGAIN)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [order, input] = both.map(|fd| !fd.revents().is_empty());
        if order {
            // One is enough: each order has its byte, and those that are left wake again.
            let _ = self.woken.read(&mut [0; 64])?;
            // What was just ordered may forbid to read.
            return Ok(false);
        }
        Ok(is_reading && input)
    }

    /// Reads once and keeps what came.
    fn next(&mut self) -> Option<Arrival> {
        let left = usize::try_from(self.wanted - self.read).unwrap_or(PIECE);
        let mut buffer = vec![0; left.min(PIECE)];
        let count = match rustix::io::read(&self.from, buffer.as_mut_slice()) {
            Ok(0) => return Some(Arrival::End(Ok(()))),
            Ok(count) => count,
            // Somebody else made it non-blocking, or was faster.
            Err(Errno::INTR | Errno::AGAIN) => return None,
            Err(error) => return Some(Arrival::End(Err(io::Error::from(error).to_string()))),
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        let before = self.read;
        self.read += bytes.len() as u64;
        if !self.is_kept || (self.store.is_none() && self.read <= IN_MEMORY) {
            return Some(Arrival::Bytes(Bytes::copy_from_slice(bytes)));
        }
        Some(match self.keep(bytes, before) {
            Ok(arrival) => arrival,
            Err(error) => Arrival::End(Err(format!(
                "temporary file for it, in {}: {error}; free some space or set TMPDIR",
                std::env::temp_dir().display()
            ))),
        })
    }

    /// The file has no name from the first moment and mode 0600.
    fn keep(&mut self, bytes: &[u8], at: u64) -> io::Result<Arrival> {
        let file = match &self.store {
            Some((file, _)) => Arc::clone(file),
            None => Arc::new(tempfile::tempfile()?),
        };
        let start = self.store.as_ref().map_or(at, |(_, start)| *start);
        self.store = Some((Arc::clone(&file), start));
        file.write_all_at(bytes, at - start)?;
        Ok(Arrival::Stored {
            file,
            bytes: bytes.len() as u64,
        })
    }
}
