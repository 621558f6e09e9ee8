//! What the thread does: one write after the other, each to its end. Blocking is its purpose.

use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::files::HostFiles;
use super::leaving::Begun;
use super::{Fault, Report, Reports, Streams, WriteError};
use crate::hub::RequestId;
use crate::output::{Credit, Destination, Extent, Neutraliser, Payload, Write};

/// The piece in which a spill file is read back: the memory that printing it takes, however large it is.
const READ_PIECE: usize = 64 * 1024;

/// The loop is told of this much at the latest: hosts that wait for it go on while the rest of a batch is written.
const REPORT_AT: usize = 64 * 1024;

/// Small output of hosts up to this much is written at once: what a pipe takes whole or not at all (Linux: PIPE_BUF), so
/// that it is never unknown which of it is gone.
const TOGETHER: usize = 4 * 1024;

/// Back to the first column and erase what is there (ECMA-48, CR and EL).
pub(super) const CLEAR_LINE: &[u8] = b"\r\x1b[K";

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Thread<R> {
    streams: Arc<Streams>,
    begun: Arc<Begun>,
    reports: R,
    written: Written,
    failed: HashSet<Destination>,
    spill: Option<File>,
    /// The directory for files of the run, once it is made.
    directory: Option<PathBuf>,
    files: HostFiles,
    progress: ProgressLine,
    done: Done,
}

/// What has been written and not been reported yet.
#[derive(Debug, Default)]
struct Done {
    writes: usize,
    cost: usize,
    credits: Vec<Credit>,
    saved: Vec<(RequestId, Option<Credit>)>,
}

impl Done {
    fn count(&mut self, write: &Write) {
        self.writes += 1;
        self.cost += write.cost();
        match write.to {
            Destination::Saved { request, .. } => self.saved.push((request, write.credit)),
            Destination::Stdout
            | Destination::Stderr
            | Destination::Progress
            | Destination::Spill
            | Destination::File(_) => self.credits.extend(write.credit),
        }
    }
}

/// Bytes so far, for messages.
#[derive(Debug, Default)]
struct Written {
    stdout: u64,
    stderr: u64,
    spill: u64,
}

/// The line at the end of a terminal that is not output.
#[derive(Debug, Default)]
struct ProgressLine {
    text: Bytes,
    is_shown: bool,
    /// Whether the terminal is in the middle of a line of output.
    mid_line: bool,
}

impl<R: Reports> Thread<R> {
    pub(super) fn new(streams: Arc<Streams>, begun: Arc<Begun>, reports: R) -> Self {
        Self {
            streams,
            begun,
            reports,
            written: Written::default(),
            failed: HashSet::new(),
            spill: None,
            directory: None,
            files: HostFiles::default(),
            progress: ProgressLine::default(),
            done: Done::default(),
        }
    }

    pub(super) fn run(mut self, queue: &Receiver<Vec<Write>>) {
        while let Ok(batch) = queue.recv() {
            self.write_batch(batch);
            while let Ok(batch) = queue.try_recv() {
                self.write_batch(batch);
            }
            // Nothing else waits: now the line is no longer in the way.
            if self.begun.is_taken() {
                return;
            }
            self.show_progress();
        }
    }

    fn write_batch(&mut self, batch: Vec<Write>) {
        let mut left = batch.as_slice();
        while !left.is_empty() {
            let (group, behind) = left.split_at(together(left));
            left = behind;
            if !self.begun.begin(u32::try_from(group.len()).unwrap_or(u32::MAX)) {
                break;
            }
            self.write(group);
            if self.done.cost >= REPORT_AT {
                self.report();
            }
        }
        self.report();
    }

    fn report(&mut self) {
        let Done {
            writes,
            cost,
            credits,
            saved,
        } = std::mem::take(&mut self.done);
        if writes > 0 {
            self.reports.report(Report::Written {
                writes,
                cost,
                credits,
                saved,
            });
        }
    }

    /// One write, or several small ones that leave as one.
    fn write(&mut self, group: &[Write]) {
        let Some(write) = group.first() else { return };
        if !self.failed.contains(&write.to)
            && let Err(fault) = self.attempt_all(group)
        {
            let written = match &write.to {
                Destination::Stdout => self.written.stdout,
                Destination::Stderr | Destination::Progress => self.written.stderr,
                Destination::Spill => self.written.spill,
                Destination::File(_) => 0,
                Destination::Saved { path, .. } => self.files.written(path),
            };
            self.fail(write.to.clone(), fault, written);
        }
        for write in group {
            self.done.count(write);
        }
    }

    fn fail(&mut self, to: Destination, fault: Fault, written: u64) {
        if to == Destination::Stdout {
            // The run is about to end, perhaps without another word: nothing of ours stays on the terminal.
            self.hide_progress();
            self.progress.text = Bytes::new();
            self.failed.insert(Destination::Progress);
        }
        if self.failed.insert(to.clone()) {
            // What was written before the failure is known to have been.
            self.report();
            self.reports
                .report(Report::Failed(WriteError { to, fault, written }));
        }
    }

    fn attempt_all(&mut self, group: &[Write]) -> Result<(), Fault> {
        match group {
            [write] => self.attempt(write),
            small => self.write_stream(Standard::Output, &Payload::Bytes(joined(small))),
        }
    }

    fn attempt(&mut self, write: &Write) -> Result<(), Fault> {
        match (&write.to, &write.payload) {
            (Destination::Progress, Payload::Bytes(text)) => {
                self.hide_progress();
                self.progress.text = text.clone();
                Ok(())
            }
            (Destination::Progress, Payload::Spilled { .. }) => Ok(()),
            (Destination::Stdout, payload) => self.write_stream(Standard::Output, payload),
            (Destination::Stderr, payload) => self.write_stream(Standard::Error, payload),
            (Destination::Spill, Payload::Bytes(bytes)) => self.append_spill(bytes),
            (Destination::File(path), Payload::Bytes(bytes)) => self.append_file(path, bytes),
            (Destination::Saved { path, .. }, Payload::Bytes(bytes)) => self.files.append(path, bytes),
            (
                Destination::Spill | Destination::File(_) | Destination::Saved { .. },
                Payload::Spilled { .. },
            ) => Ok(()),
        }
    }

    fn write_stream(&mut self, stream: Standard, payload: &Payload) -> Result<(), Fault> {
        let is_terminal = match stream {
            Standard::Output => self.streams.stdout_is_terminal,
            Standard::Error => self.streams.stderr_is_terminal,
        };
        if is_terminal {
            self.hide_progress();
        }
        match payload {
            Payload::Bytes(bytes) => self.write_descriptor(stream, bytes, is_terminal),
            Payload::Spilled { extents, neutralise } => {
                let filter = neutralise.then(Neutraliser::default);
                self.copy_spill(stream, extents, filter, is_terminal)
            }
        }
    }

    fn write_descriptor(&mut self, stream: Standard, bytes: &[u8], is_terminal: bool) -> Result<(), Fault> {
        let (descriptor, written) = match stream {
            Standard::Output => (&self.streams.stdout, &mut self.written.stdout),
            Standard::Error => (&self.streams.stderr, &mut self.written.stderr),
        };
        if bytes.is_empty() {
            return Ok(());
        }
        if is_terminal {
            self.progress.mid_line = !bytes.ends_with(b"\n");
        }
        write_all(descriptor.as_ref().ok_or(Fault::Closed)?, bytes, written)
    }

    /// Copies parts of the spill file, in pieces. A part that never got there is a failure of the spill file.
    fn copy_spill(
        &mut self,
        stream: Standard,
        extents: &[Extent],
        mut filter: Option<Neutraliser>,
        is_terminal: bool,
    ) -> Result<(), Fault> {
        let mut buffer = vec![0; READ_PIECE];
        for extent in extents {
            let (mut offset, end) = (extent.offset, extent.offset + extent.len);
            while offset < end {
                let wanted = usize::try_from(end - offset).map_or(READ_PIECE, |left| left.min(READ_PIECE));
                let piece = match self.read_spill(buffer.get_mut(..wanted).unwrap_or_default(), offset) {
                    Ok(read) => buffer.get(..read).unwrap_or_default(),
                    Err(error) => {
                        self.fail(Destination::Spill, error.into(), self.written.spill);
                        return Ok(());
                    }
                };
                offset += piece.len() as u64;
                match &mut filter {
                    Some(filter) => {
                        let shown = filter.push(piece);
                        self.write_descriptor(stream, shown.as_bytes(), is_terminal)?;
                    }
                    None => self.write_descriptor(stream, piece, is_terminal)?,
                }
            }
        }
        let rest = filter.map(|mut filter| filter.finish()).unwrap_or_default();
        self.write_descriptor(stream, rest.as_bytes(), is_terminal)
    }

    /// Reads at least a byte.
    fn read_spill(&self, piece: &mut [u8], offset: u64) -> io::Result<usize> {
        let file = self.spill.as_ref().ok_or(io::ErrorKind::UnexpectedEof)?;
        match file.read_at(piece, offset) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.read_spill(piece, offset),
            Err(error) => Err(error),
        }
    }

    /// The file has no name from the first moment and mode 0600, so nobody else ever opens it and nothing is left over.
    fn append_spill(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut file = match self.spill.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        let result = file.write_all(bytes);
        self.spill = Some(file);
        result?;
        self.written.spill += bytes.len() as u64;
        Ok(())
    }

    fn append_file(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        if self.directory.is_none()
            && let Some(directory) = path.parent()
        {
            // Fails if it is there already: then it is not ours.
            DirBuilder::new().mode(0o700).create(directory)?;
            self.directory = Some(directory.to_owned());
        }
        // Opened for each piece: thousands of hosts may have one, and descriptors are few.
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        Ok(file.write_all(bytes)?)
    }

    fn hide_progress(&mut self) {
        if std::mem::take(&mut self.progress.is_shown) {
            self.draw(CLEAR_LINE);
        }
    }

    fn show_progress(&mut self) {
        if !self.progress.is_shown && !self.progress.mid_line && !self.progress.text.is_empty() {
            self.progress.is_shown = true;
            let text = self.progress.text.clone();
            self.draw(&text);
        }
    }

    /// A progress line that can't be drawn is no loss.
    fn draw(&mut self, bytes: &[u8]) {
        if let Some(stderr) = &self.streams.stderr
            && write_all(stderr, bytes, &mut 0).is_err()
        {
            self.progress.text = Bytes::new();
        }
    }
}

/// How many of the next writes leave as one: lines of hosts for standard output, as long as they are small.
fn together(writes: &[Write]) -> usize {
    let mut sum = 0;
    let small = writes.iter().take_while(|write| {
        sum += write.cost();
        small_output(write).is_some() && sum <= TOGETHER
    });
    small.count().max(1)
}

fn small_output(write: &Write) -> Option<&Bytes> {
    match (&write.to, &write.payload) {
        (Destination::Stdout, Payload::Bytes(bytes)) => Some(bytes),
        (
            Destination::Stdout
            | Destination::Stderr
            | Destination::Progress
            | Destination::Spill
            | Destination::File(_)
            | Destination::Saved { .. },
            Payload::Bytes(_) | Payload::Spilled { .. },
        ) => None,
    }
}

fn joined(writes: &[Write]) -> Bytes {
    let mut bytes = Vec::with_capacity(TOGETHER);
    for piece in writes.iter().filter_map(small_output) {
        bytes.extend_from_slice(piece);
    }
    bytes.into()
}

/// The two standard streams that are written to.
#[derive(Clone, Copy, Debug)]
enum Standard {
    Output,
    Error,
}

/// Writes all of `bytes`, however long that takes and whatever flags the descriptor was inherited with.
fn write_all(descriptor: &OwnedFd, mut bytes: &[u8], written: &mut u64) -> Result<(), Fault> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
            Ok(count) => {
                *written += count as u64;
                bytes = bytes.get(count..).unwrap_or_default();
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_writable(descriptor.as_fd())?,
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}

/// Someone else made the descriptor non-blocking, and whoever shares it may rely on that: waited for, not changed.
fn wait_writable(descriptor: BorrowedFd<'_>) -> Result<(), Fault> {
    match poll(&mut [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)], None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}
