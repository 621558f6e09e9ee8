//! The client against a scripted peer: a real transport in the server's role, and above it whatever the test wants
//! said. Time is virtual, and bytes arrive in pieces of any size.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and looks at one event of many"
)]

mod agent;
mod algorithms;
mod channels;
mod direct;
mod flights;
mod greeting;
mod hostile_auth;
mod hostile_channels;
mod login;
mod pair;
mod prompts;
mod stdin;
mod timing;
mod windows;
