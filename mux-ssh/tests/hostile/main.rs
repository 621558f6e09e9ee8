//! A client against servers that break the protocol on purpose: the end-to-end table of hostile cases, one test per
//! case, each through the whole client. What is expected is always an exact error (or none), every command told its
//! end exactly once, and bounded buffers.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and looks at the events that it is about"
)]

mod auth;
mod connection;
mod harness;
mod kex;
mod packets;
mod rekey;
