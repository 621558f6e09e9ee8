//! A sans-IO SSH client: no sockets, no clock, no files. Bytes and time go in, bytes and events come out.
//!
//! The crate decides what is said on the wire and what a peer may say; it never reads a file, a socket, the clock
//! or the environment. All cryptography comes from `aws-lc-rs` (and `sntrup` for the one primitive it lacks).

pub mod agent;
pub mod algorithms;
pub mod client;
pub mod config;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod keys;
pub mod known_hosts;
pub mod message;
mod pattern;
#[cfg(feature = "server")]
pub mod server;
pub mod transport;
pub mod wire;

pub use client::Client;
pub use error::{Error, Incompatible, Misuse, Violation};
