//! The writer thread: the only place that writes to standard output, standard error, the spill file and files of a run.
//! A reader that stands still stops this thread and nothing else. It never sets a flag on a descriptor that it shares
//! with others, never drops a byte without saying so, and decides nothing about what is written. One exception: the
//! last words of a run that leaves a reader who stands still are written past the thread (`leaving`).

mod error;
mod files;
mod leaving;
mod streams;
#[cfg(test)]
mod tests;
mod thread;

pub use error::{Fault, WriteError};
pub use leaving::Left;
pub use streams::Streams;

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};

use self::leaving::{Begun, Sent};
use crate::hub::RequestId;
use crate::output::{Credit, Destination, Write};

/// Bytes that may wait for the thread. Enough to keep a fast disk busy; what is above waits on the hosts.
pub const BUDGET: usize = 1024 * 1024;

/// What the thread has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Writes are done with, whether or not their destinations still take any.
    Written {
        /// How many.
        writes: usize,
        /// The memory that they took.
        cost: usize,
        /// What the hub may consume now.
        credits: Vec<Credit>,
        /// The hosts whose own files some were for, each with what the hub may consume.
        saved: Vec<(RequestId, Option<Credit>)>,
    },
    /// A destination takes no more. Said once for each; what is sent there after is dropped.
    Failed(WriteError),
}

/// Takes reports to the loop: a mailbox that also wakes it.
pub trait Reports: Send + 'static {
    /// Delivers one. The loop may be gone.
    fn report(&self, report: Report);
}

impl Reports for mpsc::Sender<Report> {
    fn report(&self, report: Report) {
        // Without a receiver the run is over, and nobody is left to tell.
        let _ = self.send(report);
    }
}

/// The loop's end of the thread. Dropping it lets the thread write what it has and end.
#[derive(Debug)]
pub struct Writer {
    jobs: mpsc::Sender<Vec<Write>>,
    /// Not handed over yet.
    batch: Vec<Write>,
    waiting: usize,
    /// Not reported yet, in order.
    sent: VecDeque<Sent>,
    /// Writes that were reported.
    reported: usize,
    begun: Arc<Begun>,
    streams: Arc<Streams>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(streams: Streams, reports: impl Reports) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let (streams, begun) = (Arc::new(streams), Arc::new(Begun::default()));
        let thread = thread::Thread::new(Arc::clone(&streams), Arc::clone(&begun), reports);
        std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || thread.run(&queue))?;
        Ok(Self {
            jobs,
            batch: Vec::new(),
            waiting: 0,
            sent: VecDeque::new(),
            reported: 0,
            begun,
            streams,
        })
    }

    /// Whether [`Writer::send`] may be called: less than [`BUDGET`] waits.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.waiting < BUDGET
    }

    /// Takes a write. One that is larger than the room left is still taken: it is at most a quarter of the budget.
    pub fn send(&mut self, write: Write) {
        self.waiting += write.cost();
        self.sent.push_back(Sent::of(&write));
        self.batch.push(write);
    }

    /// No progress line is left behind what was handed over, whether or not there is room for more.
    pub fn take_progress_away(&mut self) {
        self.send(Write::bytes(Destination::Progress, bytes::Bytes::new()));
    }

    /// Hands over what was sent, as one: each hand-over wakes the thread, and its report wakes the loop.
    pub fn flush(&mut self) {
        if !self.batch.is_empty() {
            // The thread ends only after this end is dropped.
            let _ = self.jobs.send(std::mem::take(&mut self.batch));
        }
    }

    /// Takes note of a report of the thread: what was written no longer counts.
    pub fn handle(&mut self, report: &Report) {
        match report {
            Report::Written { writes, cost, .. } => {
                self.waiting -= cost;
                self.reported += writes;
                // All of it may have been taken back meanwhile.
                self.sent.drain(..(*writes).min(self.sent.len()));
            }
            Report::Failed(_) => {}
        }
    }

    /// Whether everything that was handed over has been written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.sent.is_empty()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush();
    }
}
