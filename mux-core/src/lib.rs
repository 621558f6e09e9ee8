//! A small event loop that drives sans-IO protocols.
//!
//! A [`Driver`] owns links; a link is a protocol ([`mux_proto::Protocol`]) over a [`Stream`]. The application turns
//! the loop, takes events and answers them by talking to the protocols; bytes move by themselves. There are two
//! layers, and both return values: nothing is ever called back.
//!
//! - [`Reactor`]: readiness from the system, one timer per key, wake-ups from other threads. Usable alone.
//! - [`Driver`]: a reactor and the links that it drives, child processes, listeners, signals.
//!
//! This crate decides when to read, when to write and in which order things are told; it never decides what the
//! bytes mean. Only [`Driver::turn`] and the [`Reactor::turn`] in it read a clock.
//!
//! # Example
//!
//! Two links of one loop that are each other's peer. One asks, the other answers:
//!
//! ```
//! use bytes::Bytes;
//! use mux_core::{Driver, Event, Stream};
//! use mux_proto::{Raw, RawEvent};
//!
//! # fn main() -> std::io::Result<()> {
//! let mut driver = Driver::new()?;
//! let (one, other) = mio::net::UnixStream::pair()?;
//! let asking = driver.add(Stream::Unix(one), Raw::new())?;
//! let answering = driver.add(Stream::Unix(other), Raw::new())?;
//! if let Some(raw) = driver.protocol(asking) {
//!     raw.send(Bytes::from_static(b"anybody there?"));
//! }
//!
//! let answer = 'done: loop {
//!     driver.turn(None)?;
//!     while let Some(event) = driver.poll_event() {
//!         match event {
//!             Event::Protocol(key, RawEvent::Data(data)) if key == answering => {
//!                 if let Some(raw) = driver.protocol(key) {
//!                     raw.consume(data.len());
//!                     raw.send(Bytes::from_static(b"yes"));
//!                 }
//!             }
//!             Event::Protocol(_, RawEvent::Data(data)) => break 'done data,
//!             _ => {}
//!         }
//!     }
//! };
//! assert_eq!(answer, "yes");
//! # Ok(())
//! # }
//! ```
//!
//! # Relays
//!
//! A [`Relay`] passes frames of the framed protocol ([`mux_proto::Connection`]) between the links of a driver;
//! [`router`] is the table that judges them.
//!
//! # In somebody else's loop
//!
//! Wait until [the driver's descriptor](Driver#impl-AsFd-for-Driver<P>) is readable or
//! [`next_deadline`](Driver::next_deadline) has come, call [`turn`](Driver::turn) with a wait of zero, take every
//! event. The examples `poll_loop` and `calloop_loop` do so.
//!
//! # Several loops
//!
//! A driver is [`Send`] and has no globals: one on each of several threads, values through
//! [mailboxes](Driver::mailbox).
//!
//! # Portability
//!
//! Linux is what it is built for and tested on. Other systems with epoll or kqueue lack pidfds: there the
//! application calls [`Driver::reap`] on its own `SIGCHLD`.

mod child;
mod driver;
mod error;
mod event;
mod key;
mod link;
mod mailbox;
mod reactor;
mod relay;
pub mod router;
mod scratch;
mod signal;
pub mod stdio;
mod stream;
mod timers;

pub use child::{Child, Recipient};
pub use driver::{Driver, is_shortage};
pub use error::LinkError;
pub use event::{Event, Readiness, Ready};
pub use key::Key;
pub use mailbox::{Mailbox, Sender, Waker};
pub use reactor::Reactor;
pub use relay::{Framed, Relay};
pub use stream::{Listener, Stream};

// One loop per thread, should one not be enough: a driver moves to the thread that turns it.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Driver<mux_proto::Raw>>();
};

// The example that people see first is one that compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
