//! The contract between a protocol and whatever moves its bytes.
//!
//! A [`Protocol`] is a state machine over bytes and time: it reads no socket, no file and no clock. Whoever drives
//! it hands in what arrived and what time it is, and takes out what is to be sent and what happened. So it runs the
//! same over a socket, inside a channel of another protocol, and in a test that has neither.
//!
//! [`SendQueue`] is where a protocol puts its output, [`Raw`] the protocol for bytes without one, and [`Connection`] the
//! framed protocol that the processes of mux speak with each other: [`frame`] and [`body`] are its bytes,
//! [`connection`] is one end of a link, [`error`] why it ends. `PROTOCOL.md` beside this crate specifies it.
//!
//! # Example
//!
//! A protocol that answers every line with its length, and a driver that has no socket:
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Instant;
//!
//! use bytes::BytesMut;
//! use mux_proto::{Close, Protocol, SendQueue};
//!
//! #[derive(Default)]
//! struct Lengths {
//!     answers: Vec<String>,
//!     lines: usize,
//! }
//!
//! impl Protocol for Lengths {
//!     type Event = ();
//!     type Error = Infallible;
//!
//!     fn wants_input(&self) -> bool {
//!         self.answers.len() < 1000
//!     }
//!
//!     fn handle_input(&mut self, _: Instant, input: &mut BytesMut) -> Result<(), Infallible> {
//!         // One step a call: whoever drives us calls again until the input stays as it is.
//!         if let Some(end) = input.iter().position(|&byte| byte == b'\n') {
//!             let line = input.split_to(end + 1);
//!             self.answers.push(format!("{}\n", line.len() - 1));
//!             self.lines += 1;
//!         }
//!         Ok(())
//!     }
//!
//!     fn handle_eof(&mut self, _: Instant) -> Result<(), Infallible> {
//!         Ok(())
//!     }
//!
//!     fn handle_timeout(&mut self, _: Instant) -> Result<(), Infallible> {
//!         Ok(())
//!     }
//!
//!     fn poll_transmit(&mut self, _: Instant, out: &mut SendQueue) {
//!         for answer in self.answers.drain(..) {
//!             out.put_slice(answer.as_bytes());
//!         }
//!     }
//!
//!     fn poll_close(&self) -> Option<Close> {
//!         None
//!     }
//!
//!     fn poll_timeout(&self) -> Option<Instant> {
//!         None
//!     }
//!
//!     fn poll_event(&mut self) -> Option<()> {
//!         None
//!     }
//! }
//!
//! let now = Instant::now();
//! let mut protocol = Lengths::default();
//! let mut input = BytesMut::from("three\nand four\nunfinished");
//! loop {
//!     let before = input.len();
//!     protocol.handle_input(now, &mut input)?;
//!     if input.len() == before {
//!         break;
//!     }
//! }
//! assert_eq!(input, "unfinished");
//!
//! let mut out = SendQueue::new();
//! protocol.poll_transmit(now, &mut out);
//! assert_eq!(out.take(usize::MAX), "5\n8\n");
//! # Ok::<(), Infallible>(())
//! ```

pub mod body;
mod codes;
pub mod connection;
pub mod error;
pub mod frame;
mod protocol;
mod raw;
mod send_queue;

pub use connection::Connection;
pub use protocol::{Close, Protocol};
pub use raw::{Raw, RawEvent};
pub use send_queue::{COPY_BELOW, LOW_WATER, SendQueue};

// The example that people see first is one that compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
