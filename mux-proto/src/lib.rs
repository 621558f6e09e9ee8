//! The contract between a protocol and whatever moves its bytes.
//!
//! A [`Protocol`] is a state machine over bytes and time: it reads no socket, no file and no clock. Whoever drives
//! it hands in what arrived and what time it is, and takes out what is to be sent and what happened.
//!
//! This crate decides how the two talk; it never decides what they say.

mod protocol;
mod raw;
mod send_queue;

pub use protocol::{Close, Protocol};
pub use raw::{Raw, RawEvent};
pub use send_queue::{COPY_BELOW, LOW_WATER, SendQueue};
