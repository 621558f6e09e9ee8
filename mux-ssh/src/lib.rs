//! A sans-IO SSH client: no sockets, no clock, no files. Bytes and time go in, bytes and events come out.
//!
//! The crate decides what is said on the wire and what a peer may say; it never reads a file, a socket, the clock
//! or the environment. All cryptography comes from `aws-lc-rs` (and `sntrup` for the one primitive it lacks).
//!
//! [`Client`] is one connection. It is driven as any [`Protocol`](mux_proto::Protocol): hand in what arrived and what
//! time it is, take out events and bytes. Questions, whether a host key is the right one and what an identity's
//! signature is, come as events and are answered by methods:
//!
//! ```
//! use std::time::Instant;
//!
//! use mux_proto::{Protocol, SendQueue};
//! use mux_ssh::client::{Client, ClientConfig, Event, Exec};
//!
//! let mut client = Client::new(ClientConfig { user: "root".into(), ..ClientConfig::default() });
//! // Allowed before anything is connected: it leaves as early as the server allows.
//! let uptime = client.exec(Instant::now(), Exec { command: "uptime".into(), ..Exec::default() });
//!
//! // The first flight leaves before the server has said anything.
//! let mut out = SendQueue::new();
//! client.poll_transmit(Instant::now(), &mut out);
//! assert!(out.take(usize::MAX).starts_with(b"SSH-2.0-mux_"));
//!
//! // Here the server hangs up instead of answering.
//! assert!(client.handle_eof(Instant::now()).is_err());
//! let Some(Event::ChannelFailed { channel, may_have_run, .. }) = client.poll_event() else {
//!     panic!("every command has a last word");
//! };
//! assert!(channel == uptime && !may_have_run);
//! ```
//!
//! The README and `examples/exec.rs` show a whole loop over a blocking socket.
//!
//! - [`client`]: the client, its configuration and its events.
//! - [`transport`]: what is below the login: identification, key exchange, packets, renewal of keys.
//! - [`keys`], [`known_hosts`], [`config`], [`agent`]: files and sockets of OpenSSH as values.
//! - [`algorithms`], [`wire`], [`message`]: names, data types and numbers of the protocol.

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
mod printable;
mod secret;
#[cfg(feature = "server")]
pub mod server;
pub mod transport;
pub mod wire;

pub use client::Client;
pub use error::{Error, Incompatible, Misuse, Violation};
pub use printable::{MAX_PRINTED, Printable};
pub use secret::Secret;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
