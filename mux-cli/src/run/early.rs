//! Signals that end the process before its loop listens, while programs of the user's run that would outlive it (`Match
//! exec`). Decides when a signal waits for their end; whoever runs them looks whether one came, and ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use signal_hook::{SigId, flag, low_level};

use super::limits;

/// The signals, with their default action except while they are held.
#[derive(Debug)]
pub(super) struct Early {
    is_default: Arc<AtomicBool>,
    /// The number of one that came while they were held, or 0.
    came: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl Early {
    /// From here on they can be held. Where that can't be had, they stay as they are.
    pub(super) fn new() -> Self {
        let mut early = Self {
            is_default: Arc::new(AtomicBool::new(true)),
            came: Arc::default(),
            registered: Vec::new(),
        };
        for number in limits::not_ignored(&[Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP]) {
            let is_default = Arc::clone(&early.is_default);
            let came = Arc::clone(&early.came);
            let value = usize::try_from(number).unwrap_or_default();
            // In this order: what has its default action is not noted.
            let registered = [
                flag::register_conditional_default(number, is_default),
                flag::register_usize(number, came, value),
            ];
            for one in registered {
                match one {
                    Ok(id) => early.registered.push(id),
                    Err(error) => log::warn!("signal {number} is not heard: {error}"),
                }
            }
        }
        early
    }

    /// What comes from here on is noted and waits.
    pub(super) fn hold(&self) {
        self.is_default.store(false, Ordering::SeqCst);
    }

    /// Where it is noted: not 0 any more.
    pub(super) fn came(&self) -> &AtomicUsize {
        &self.came
    }

    /// What came ends the process now, and so does what comes.
    pub(super) fn let_go(&self) {
        self.is_default.store(true, Ordering::SeqCst);
        let number = i32::try_from(self.came.load(Ordering::SeqCst)).unwrap_or_default();
        if number != 0
            && let Err(error) = low_level::emulate_default_handler(number)
        {
            log::warn!("signal {number}: {error}");
        }
    }
}

impl Drop for Early {
    /// To be called when somebody else listens: for whoever has no other listener they are ignored from here on.
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}
