//! Tests of the transport through one harness: a client and a server that talk through memory, with a clock that only
//! the test moves.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and knows its numbers"
)]

mod exchange;
mod packets;
mod pair;
