//! A small event loop that drives sans-IO protocols.

mod child;
mod driver;
mod error;
mod event;
mod key;
mod link;
mod mailbox;
mod reactor;
mod scratch;
mod signal;
pub mod stdio;
mod stream;
mod timers;

pub use child::{Child, Recipient};
pub use driver::Driver;
pub use error::LinkError;
pub use event::{Event, Readiness, Ready};
pub use key::Key;
pub use mailbox::{Mailbox, Sender, Waker};
pub use reactor::Reactor;
pub use stream::{Listener, Stream};
