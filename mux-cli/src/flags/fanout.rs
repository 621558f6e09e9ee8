//! How many hosts at once, as typed.

use std::fmt;
use std::num::IntErrorKind;

use crate::targets::MAX_TARGETS;

/// Why a text is no fanout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FanoutError {
    Malformed,
    TooLarge,
}

impl fmt::Display for FanoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => write!(f, "write a number of hosts, at least 1 and at most {MAX_TARGETS}"),
            Self::TooLarge => write!(f, "too large: at most {MAX_TARGETS} hosts"),
        }
    }
}

impl std::error::Error for FanoutError {}

/// More than the targets of a run is a typing error.
pub(super) fn parse_fanout(text: &str) -> Result<usize, FanoutError> {
    match text.parse() {
        Ok(0) => Err(FanoutError::Malformed),
        Ok(fanout) if fanout <= MAX_TARGETS => Ok(fanout),
        Ok(_) => Err(FanoutError::TooLarge),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(FanoutError::TooLarge),
        Err(_) => Err(FanoutError::Malformed),
    }
}
