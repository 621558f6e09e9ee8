//! The hub against simulated servers, on a clock that only the simulation moves: who may start when, which deadline
//! ends what, what is tried again, and how requests are stopped.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and looks at the events that it is about"
)]

mod children;
mod deadlines;
mod far;
mod flights;
mod jumps;
mod login;
mod openssh;
mod pacing;
mod parked;
mod prompts;
mod retries;
mod riders;
mod sim;
mod stdin;
mod stopping;
