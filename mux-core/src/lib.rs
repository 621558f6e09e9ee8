//! A small event loop that drives sans-IO protocols.

mod driver;
mod error;
mod event;
mod key;
mod mailbox;
mod reactor;
pub mod stdio;
mod stream;

pub use driver::{Child, Driver};
pub use error::LinkError;
pub use event::{Event, Readiness, Ready};
pub use key::Key;
pub use mailbox::{Mailbox, Sender, Waker};
pub use reactor::Reactor;
pub use stream::{Listener, Stream};
