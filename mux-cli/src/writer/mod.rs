//! The writer thread: the only place that writes to standard output, standard error, the spill file and files of a run.
//! A reader that stands still stops this thread and nothing else. It never sets a flag on a descriptor that it shares
//! with others, never drops a byte without saying so, and decides nothing about what is written.

mod error;
mod files;
mod streams;
#[cfg(test)]
mod tests;
mod thread;

pub use error::{Fault, WriteError};
pub use streams::Streams;

use std::sync::mpsc;

use crate::hub::RequestId;
use crate::output::{Credit, Write};

/// Bytes that may wait for the thread. Enough to keep a fast disk busy; what is above waits on the hosts.
pub const BUDGET: usize = 1024 * 1024;

/// What the thread has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A write is done with, whether or not its destination still takes any.
    Written {
        /// The memory that it took.
        cost: usize,
        /// What the hub may consume now.
        credit: Option<Credit>,
        /// The host whose own file it was for.
        saved: Option<RequestId>,
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
    jobs: mpsc::Sender<Write>,
    waiting: usize,
    unreported: usize,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(streams: Streams, reports: impl Reports) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let thread = thread::Thread::new(streams, reports);
        std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || thread.run(&queue))?;
        Ok(Self {
            jobs,
            waiting: 0,
            unreported: 0,
        })
    }

    /// Whether [`Writer::send`] may be called: less than [`BUDGET`] waits.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.waiting < BUDGET
    }

    /// Hands a write over. One that is larger than the room left is still taken: it is at most a quarter of the budget.
    pub fn send(&mut self, write: Write) {
        self.waiting += write.cost();
        self.unreported += 1;
        // The thread ends only after this end is dropped.
        let _ = self.jobs.send(write);
    }

    /// Takes note of a report of the thread: what was written no longer counts.
    pub fn handle(&mut self, report: &Report) {
        match report {
            Report::Written { cost, .. } => {
                self.waiting -= cost;
                self.unreported -= 1;
            }
            Report::Failed(_) => {}
        }
    }

    /// Whether everything that was handed over has been written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.unreported == 0
    }
}
