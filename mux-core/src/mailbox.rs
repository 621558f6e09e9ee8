//! How other threads reach the loop: a queue of values and a way to end its wait. Never shares state.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Ends the wait of a loop from another thread. Cheap to clone, and cheap to use twice: a loop that was woken and
/// has not run yet is not woken again.
#[derive(Clone, Debug)]
pub struct Waker {
    inner: Arc<mio::Waker>,
    pending: Arc<AtomicBool>,
}

impl Waker {
    pub(crate) fn new(inner: mio::Waker) -> Self {
        Self {
            inner: Arc::new(inner),
            pending: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Makes the loop's current or next wait return with [`Ready::Woken`](crate::Ready::Woken).
    ///
    /// # Errors
    /// What the system says; only when it is out of memory or descriptors.
    pub fn wake(&self) -> io::Result<()> {
        // Acquire and release order what the caller queued before with what the loop reads after `settle`.
        if self.pending.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.inner.wake()
    }

    /// The loop has noticed. Called before it looks into mailboxes, so that what is sent from here on wakes again.
    pub(crate) fn settle(&self) {
        self.pending.swap(false, Ordering::AcqRel);
    }
}

/// A mailbox for values of one type, and its first sender.
pub(crate) fn mailbox<T>(waker: Waker) -> (Sender<T>, Mailbox<T>) {
    let (sender, receiver) = mpsc::channel();
    (Sender { queue: sender, waker }, Mailbox { queue: receiver })
}

/// Sends values into a loop from any thread.
#[derive(Debug)]
pub struct Sender<T> {
    queue: mpsc::Sender<T>,
    waker: Waker,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            waker: self.waker.clone(),
        }
    }
}

impl<T> Sender<T> {
    /// Queues `value` and wakes the loop.
    ///
    /// # Errors
    /// Gives the value back once the mailbox is gone.
    pub fn send(&self, value: T) -> Result<(), T> {
        self.queue.send(value).map_err(|mpsc::SendError(value)| value)?;
        if let Err(error) = self.waker.wake() {
            // The value is queued and is found at the next turn, whatever causes it.
            log::warn!("could not wake the loop: {error}");
        }
        Ok(())
    }
}

/// The loop's end of a mailbox: look into it when [`Ready::Woken`](crate::Ready::Woken) arrives.
#[derive(Debug)]
pub struct Mailbox<T> {
    queue: mpsc::Receiver<T>,
}

impl<T> Mailbox<T> {
    /// The oldest value that waits, if any. Never blocks.
    pub fn take(&mut self) -> Option<T> {
        self.queue.try_recv().ok()
    }
}
