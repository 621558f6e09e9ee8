//! How much the server may send on a channel before its consumer has caught up: arithmetic on four numbers.
//!
//! The window is refilled only when bytes are consumed, never when they arrive. It doubles while the consumer keeps up
//! and halves while it does not, so that one slow pager holds 64 KiB, not 2 MiB.
//!
//! Worked example: a window of 64 KiB, 40 KiB arrive (24 KiB left) and are consumed. More than half was used and
//! nothing waits, so the limit doubles to 128 KiB and the refill is 128 − 24 = 104 KiB.

/// What every channel starts with: enough for the output of most commands, little enough for 10,000 of them.
pub(crate) const INITIAL_WINDOW: u32 = 64 * 1024;

/// What a channel may grow to: 2 MiB is 80 MB/s at 25 ms, and what OpenSSH grants.
pub(crate) const MAX_WINDOW: u32 = 2 * 1024 * 1024;

/// The largest data packet that we accept: what OpenSSH announces for a session, and within the 35,000 bytes that
/// RFC 4253 §6.1 makes every implementation take.
pub(crate) const MAX_PACKET: u32 = 32 * 1024;

/// The receiving side's window of one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// What `granted + unconsumed` is filled up to.
    limit: u32,
    /// What the server may still send.
    granted: u32,
    /// What it sent and the consumer has not taken.
    unconsumed: u32,
    /// Consumed, and not yet given back.
    owed: u32,
}

/// The server sent more than it was allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded;

impl ReceiveWindow {
    pub(crate) fn new() -> Self {
        Self {
            limit: INITIAL_WINDOW,
            granted: INITIAL_WINDOW,
            unconsumed: 0,
            owed: 0,
        }
    }

    /// `count` bytes arrived.
    pub(crate) fn receive(&mut self, count: usize) -> Result<(), Exceeded> {
        let count = u32::try_from(count).map_err(|_| Exceeded)?;
        self.granted = self.granted.checked_sub(count).ok_or(Exceeded)?;
        self.unconsumed += count;
        Ok(())
    }

    /// `count` bytes reached their destination; more than had arrived count as all that had.
    pub(crate) fn consume(&mut self, count: usize, max: u32) {
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(self.unconsumed);
        self.unconsumed -= count;
        let used = self.granted <= self.limit / 2;
        if !used {
            return;
        }
        if self.unconsumed == 0 {
            self.limit = self.limit.saturating_mul(2);
        } else if self.unconsumed > self.limit / 2 {
            self.limit /= 2;
        }
        self.limit = self.limit.min(max).max(INITIAL_WINDOW);
        self.owed = self
            .limit
            .saturating_sub(self.granted)
            .saturating_sub(self.unconsumed);
    }

    /// Whether a refill is worth a packet: half of the window.
    pub(crate) fn refill_due(&self) -> bool {
        self.owed >= self.limit / 2
    }

    /// What to grant in the next window adjust; it counts as granted.
    pub(crate) fn refill(&mut self) -> u32 {
        let refill = std::mem::take(&mut self.owed);
        self.granted += refill;
        refill
    }

    /// What the server may make us hold beyond the first window.
    pub(crate) fn growth(&self) -> usize {
        let held = u64::from(self.granted) + u64::from(self.unconsumed);
        usize::try_from(held.saturating_sub(u64::from(INITIAL_WINDOW))).unwrap_or(usize::MAX)
    }
}
