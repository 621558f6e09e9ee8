//! Tests of the transport through one harness: a client and a server that talk through memory, with a clock that only
//! the test moves.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and knows its numbers"
)]

mod algorithms;
mod exchange;
mod guess;
mod hostile;
mod methods;
mod packets;
mod pair;
mod ping;
mod rekey;
mod wrap;
