//! How many hosts at once, as typed.

use std::fmt;

use crate::targets::MAX_TARGETS;

/// A text that is no fanout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FanoutError;

impl fmt::Display for FanoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write a number of hosts, at least 1 and at most {MAX_TARGETS}")
    }
}

impl std::error::Error for FanoutError {}

/// More than the targets of a run is a typing error.
pub(super) fn parse_fanout(text: &str) -> Result<usize, FanoutError> {
    let fanout = text.parse().ok();
    fanout
        .filter(|fanout| (1..=MAX_TARGETS).contains(fanout))
        .ok_or(FanoutError)
}
