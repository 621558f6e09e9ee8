//! Hosts behind jump hosts and proxies: the real program, real servers, and machines that see only their neighbours.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod chain;
mod fleet;
mod hops;
mod network;
mod proxies;
#[expect(dead_code, reason = "others use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod ways;
