//! The loop inside the loop of another event library, `calloop`. Decides nothing: the same three steps as in
//! `poll_loop.rs`, with the library doing the waiting and running a timer of its own meanwhile.
//!
//! ```text
//! cargo run -p mux-core --example calloop_loop -- 127.0.0.1:7007
//! ```

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use calloop::generic::Generic;
use calloop::timer::{TimeoutAction, Timer};
use calloop::{EventLoop, Interest, Mode, PostAction};
use mux_core::{Driver, Event, Key};
use mux_proto::{Raw, RawEvent};

/// What the two halves of the loop saw.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) reply: Vec<u8>,
    /// Ticks of the host's own timer.
    pub(crate) ticks: usize,
}

/// Sends `message` to an echo server and collects what comes back, while the host loop counts ticks; ends when there
/// was enough of both.
pub(crate) fn fetch(to: SocketAddr, message: &[u8], ticks: usize) -> io::Result<Seen> {
    let mut host: EventLoop<'_, Seen> = EventLoop::try_new().map_err(io::Error::other)?;
    let mut driver = Driver::new()?;

    // The host is told about our descriptor; that it became readable is all it has to tell us.
    let ours = Generic::new(driver.as_fd().try_clone_to_owned()?, Interest::READ, Mode::Level);
    let handle = host.handle();
    handle
        .insert_source(ours, |_, _, _| Ok(PostAction::Continue))
        .map_err(|error| error.error)
        .map_err(other)?;
    let tick = Duration::from_millis(5);
    handle
        .insert_source(Timer::from_duration(tick), move |_, (), seen: &mut Seen| {
            seen.ticks += 1;
            TimeoutAction::ToDuration(tick)
        })
        .map_err(|error| error.error)
        .map_err(other)?;

    let link = driver.connect(to, Raw::new())?;
    if let Some(raw) = driver.protocol(link) {
        raw.send(Bytes::copy_from_slice(message));
        raw.finish();
    }
    let (mut seen, mut open) = (Seen::default(), true);
    let mut now = Instant::now();
    while open || seen.ticks < ticks {
        let wait = driver
            .next_deadline(now)
            .map(|at| at.saturating_duration_since(now));
        host.dispatch(wait, &mut seen).map_err(other)?;
        now = driver.turn(Some(Duration::ZERO))?;
        while let Some(event) = driver.poll_event() {
            open &= handle_event(&mut driver, link, event, &mut seen)?;
        }
    }
    Ok(seen)
}

/// `false` once the link is gone.
fn handle_event(driver: &mut Driver<Raw>, link: Key, event: Event<Raw>, seen: &mut Seen) -> io::Result<bool> {
    match event {
        Event::Protocol(_, RawEvent::Data(data)) => {
            if let Some(raw) = driver.protocol(link) {
                raw.consume(data.len());
            }
            seen.reply.extend_from_slice(&data);
            Ok(true)
        }
        Event::Closed(_, _, result) => result.map(|()| false).map_err(io::Error::other),
        Event::Connected(_)
        | Event::Protocol(_, RawEvent::Eof)
        | Event::Outgoing(_)
        | Event::Finished(_)
        | Event::Consumed(..)
        | Event::Accepted(..)
        | Event::Exited(..)
        | Event::Signal(_)
        | Event::Ready(_) => Ok(true),
    }
}

fn other(error: calloop::Error) -> io::Error {
    io::Error::other(error)
}

fn main() -> io::Result<()> {
    let to = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7007".to_owned());
    let seen = fetch(to.parse().map_err(io::Error::other)?, b"hello", 1)?;
    writeln!(
        io::stdout(),
        "the server said {:?}, {} ticks passed",
        seen.reply.escape_ascii(),
        seen.ticks
    )
}
