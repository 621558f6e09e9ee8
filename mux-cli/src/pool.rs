//! The threads that wait so that the loop does not: name lookups, passphrases, key decryption, known_hosts writes.
//! Decides how many threads there are; what each piece of work means is its owner's business.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mux_core::Sender;

/// As many as the default fanout: if every lookup hangs, each host has its own.
pub(crate) const MAX_THREADS: usize = 64;

/// Work that waited this long is not waiting for a quick predecessor: there must be more threads. Their number
/// doubles each time, so that 64 slow lookups are all under way after 30 ms, and 64 quick ones need one thread.
const PATIENCE: Duration = Duration::from_millis(5);

/// Name lookup through the C library needs more than the minimum; pages that are not touched cost nothing.
const STACK: usize = 512 * 1024;

/// Something that blocks.
pub trait Work: Send + 'static {
    /// What comes of it.
    type Done: Send + 'static;

    /// Does it, on a thread of the pool.
    fn run(self) -> Self::Done;
}

/// Threads that appear when they are needed. What they have done arrives in the mailbox of the sender.
#[derive(Debug)]
pub struct Pool<W: Work> {
    queue: Arc<Queue<W>>,
    results: Sender<W::Done>,
    threads: usize,
    max_threads: usize,
    grow_at: Option<Instant>,
}

#[derive(Debug)]
struct Queue<W> {
    state: Mutex<Waiting<W>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct Waiting<W> {
    work: VecDeque<W>,
    idle: usize,
}

impl<W: Work> Pool<W> {
    /// A pool without threads, which never has more than `max_threads`: what they do takes descriptors.
    #[must_use]
    pub fn new(results: Sender<W::Done>, max_threads: usize) -> Self {
        let state = Mutex::new(Waiting {
            work: VecDeque::new(),
            idle: 0,
        });
        Self {
            queue: Arc::new(Queue {
                state,
                arrived: Condvar::new(),
            }),
            results,
            threads: 0,
            max_threads: max_threads.clamp(1, MAX_THREADS),
            grow_at: None,
        }
    }

    /// Queues `work`.
    ///
    /// # Errors
    /// The first thread can't be started; then the work is not done.
    pub fn submit(&mut self, now: Instant, work: W) -> io::Result<()> {
        let idle = {
            let mut waiting = self.queue.lock();
            waiting.work.push_back(work);
            waiting.idle
        };
        if idle > 0 {
            self.queue.arrived.notify_one();
        } else if self.threads == 0 {
            self.spawn()
                .inspect_err(|_| drop(self.queue.lock().work.pop_back()))?;
        }
        if self.threads < self.max_threads {
            self.grow_at.get_or_insert(now + PATIENCE);
        }
        Ok(())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.grow_at
    }

    /// Adds threads if work has been waiting for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.grow_at.is_none_or(|at| at > now) {
            return;
        }
        let waiting = self.queue.lock().work.len();
        let more = waiting.min(self.threads).min(self.max_threads - self.threads);
        for _ in 0..more {
            if let Err(error) = self.spawn() {
                log::warn!("no further thread for blocking work: {error}");
                break;
            }
        }
        self.grow_at = (more > 0 && waiting > more).then(|| now + PATIENCE);
    }

    fn spawn(&mut self) -> io::Result<()> {
        let queue = Arc::clone(&self.queue);
        let results = self.results.clone();
        let name = "mux-blocking".to_owned();
        thread::Builder::new()
            .name(name)
            .stack_size(STACK)
            .spawn(move || queue.serve(&results))?;
        self.threads += 1;
        Ok(())
    }
}

impl<W: Work> Queue<W> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting<W>> {
        // Nothing that can panic runs under the lock, so that a poisoned one is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, results: &Sender<W::Done>) {
        loop {
            let work = self.next();
            if results.send(work.run()).is_err() {
                return;
            }
        }
    }

    fn next(&self) -> W {
        let mut waiting = self.lock();
        loop {
            if let Some(work) = waiting.work.pop_front() {
                return work;
            }
            waiting.idle += 1;
            waiting = self.arrived.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::sync::mpsc;

    use mux_core::{Driver, Mailbox};
    use mux_proto::Raw;

    use super::*;

    /// Runs until the sender of its channel is used or dropped.
    struct Held(u32, mpsc::Receiver<()>);

    impl Work for Held {
        type Done = u32;

        fn run(self) -> u32 {
            let _ = self.1.recv();
            self.0
        }
    }

    fn next(driver: &mut Driver<Raw>, mailbox: &mut Mailbox<u32>) -> u32 {
        loop {
            if let Some(done) = mailbox.take() {
                return done;
            }
            driver.turn(None).unwrap();
            while driver.poll_event().is_some() {}
        }
    }

    #[test]
    fn a_stuck_piece_of_work_does_not_queue_the_others() {
        let mut driver = Driver::<Raw>::new().unwrap();
        let (sender, mut mailbox) = driver.mailbox();
        let mut pool = Pool::new(sender, MAX_THREADS);
        let now = Instant::now();
        let (stuck, never) = mpsc::channel();
        pool.submit(now, Held(0, never)).unwrap();
        for id in 1..=10 {
            pool.submit(now, Held(id, mpsc::channel().1)).unwrap();
        }
        let mut at = now;
        while let Some(next) = pool.poll_timeout() {
            at = at.max(next);
            pool.handle_timeout(at);
        }
        let mut done: Vec<u32> = (0..10).map(|_| next(&mut driver, &mut mailbox)).collect();
        done.sort_unstable();
        assert_eq!(done, (1..=10).collect::<Vec<_>>());
        drop(stuck);
        assert_eq!(next(&mut driver, &mut mailbox), 0);
    }
}
