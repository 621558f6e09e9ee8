//! What time it is for people: certificates hold from one date to another. Nothing that waits asks it, for it may jump.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; none before that, when no certificate holds.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
