//! The one owner of connections: what was asked for goes in, what happened comes out.

mod event;

pub use event::{Event, Failure, Level, Outcome, RequestId, Stage, Status, StreamKind, Timings};
