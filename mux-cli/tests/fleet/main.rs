//! Whole fleets, with `mux` as a user runs it: hosts that are dead in every way, interrupts from a terminal, output
//! without bound. A test binary of its own, because these take seconds by their nature.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod dead;
mod host_keys;
mod interrupts;
mod odd;
mod processes;
#[expect(dead_code, reason = "other tests use the rest of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod servers;
mod volume;
