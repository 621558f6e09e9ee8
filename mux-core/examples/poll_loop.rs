//! The loop inside a plain poll(2) loop, which has a descriptor of its own to look after. Decides nothing: shows the
//! three things that embedding takes.
//!
//! 1. Wait until the driver's descriptor is readable, or its next deadline has come.
//! 2. `turn` without waiting.
//! 3. Take every event.
//!
//! ```text
//! cargo run -p mux-core --example poll_loop -- 127.0.0.1:7007
//! ```

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::{Driver, Event, Key, Ready};
use mux_proto::{Raw, RawEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What the two halves of the loop got.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) reply: Vec<u8>,
    pub(crate) own: Vec<u8>,
}

/// Sends `message` to an echo server, a moment after connecting, while the host loop reads its own descriptor to the
/// end.
pub(crate) fn fetch(to: SocketAddr, message: &[u8], mut own: impl Read + AsFd) -> io::Result<Got> {
    let mut driver = Driver::new()?;
    let link = driver.connect(to, Raw::new())?;
    let mut got = Got::default();
    let (mut own_open, mut link_open) = (true, true);
    let mut now = Instant::now();
    while own_open || link_open {
        let timeout = match driver.next_deadline(now) {
            Some(at) => {
                Some(Timespec::try_from(at.saturating_duration_since(now)).map_err(io::Error::other)?)
            }
            None => None,
        };
        let mut fds = vec![PollFd::new(&driver, PollFlags::IN)];
        if own_open {
            fds.push(PollFd::new(&own, PollFlags::IN));
        }
        poll(&mut fds, timeout.as_ref())?;
        let own_ready = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());

        if own_ready {
            let mut buffer = [0; 512];
            let read = own.read(&mut buffer)?;
            own_open = read > 0;
            got.own.extend(buffer.iter().take(read));
        }

        now = driver.turn(Some(Duration::ZERO))?;
        while let Some(event) = driver.poll_event() {
            link_open &= handle(&mut driver, now, link, event, (message, &mut got.reply))?;
        }
    }
    Ok(got)
}

/// `false` once the link is gone.
fn handle(
    driver: &mut Driver<Raw>,
    now: Instant,
    link: Key,
    event: Event<Raw>,
    (message, reply): (&[u8], &mut Vec<u8>),
) -> io::Result<bool> {
    match event {
        Event::Connected(_) => {
            driver.timer(now + Duration::from_millis(20));
        }
        Event::Ready(Ready::Timer(_)) => {
            if let Some(raw) = driver.protocol(link) {
                raw.send(Bytes::copy_from_slice(message));
                raw.finish();
            }
        }
        Event::Protocol(_, RawEvent::Data(data)) => {
            if let Some(raw) = driver.protocol(link) {
                raw.consume(data.len());
            }
            reply.extend_from_slice(&data);
        }
        Event::Closed(_, _, result) => return result.map(|()| false).map_err(io::Error::other),
        Event::Protocol(_, RawEvent::Eof)
        | Event::Outgoing(_)
        | Event::Finished(_)
        | Event::Consumed(..)
        | Event::Accepted(..)
        | Event::Exited(..)
        | Event::Signal(_)
        | Event::Ready(_) => {}
    }
    Ok(true)
}

fn main() -> io::Result<()> {
    let to = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7007".to_owned());
    let to = to.parse().map_err(io::Error::other)?;
    let got = fetch(to, b"hello", io::stdin())?;
    writeln!(
        io::stdout(),
        "the server said {:?}, standard input {:?}",
        got.reply.escape_ascii(),
        got.own.len()
    )
}
