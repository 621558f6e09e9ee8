//! Tests of the transport through one harness: a client and a server that talk through memory, with a clock that only
//! the test moves.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod exchange;
mod pair;
