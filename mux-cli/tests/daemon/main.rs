//! `mux daemon` and `mux run` over it, against a real sshd: whose connections are shared, and what happens when somebody
//! is gone, silent or hostile.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod home;
mod hostile;
mod lives;
mod places;
#[path = "../rig/mod.rs"]
#[expect(dead_code, reason = "other tests use all of it")]
mod rig;
mod sharing;
