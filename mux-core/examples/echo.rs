//! An echo server that hangs up on clients that say nothing, and reports once a second. Shows a protocol with a
//! deadline, a listener, an application timer and a signal; decides nothing that is worth knowing.
//!
//! ```text
//! cargo run -p mux-core --example echo -- 127.0.0.1:7007
//! ```

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mio::net::TcpListener;
use mux_core::{Driver, Event, Key, LinkError, Listener, Ready};
use mux_proto::{Close, Protocol, SendQueue};

/// What a client sent and has not been sent back: beyond this it has to read first.
const OWED_MAX: usize = 256 * 1024;

/// One client. All that it knows is bytes and time.
#[derive(Debug)]
pub(crate) struct Echo {
    owed: VecDeque<Bytes>,
    owed_len: usize,
    patience: Duration,
    /// Every byte from the client moves it.
    deadline: Instant,
    finished: bool,
}

/// The client had its time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Silent;

impl Echo {
    fn new(now: Instant, patience: Duration) -> Self {
        let deadline = now + patience;
        Self {
            owed: VecDeque::new(),
            owed_len: 0,
            patience,
            deadline,
            finished: false,
        }
    }
}

impl Protocol for Echo {
    /// Bytes that will be sent back.
    type Event = usize;
    type Error = Silent;

    fn wants_input(&self) -> bool {
        self.owed_len <= OWED_MAX
    }

    fn handle_input(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), Silent> {
        self.deadline = now + self.patience;
        self.owed_len += input.len();
        self.owed.push_back(Bytes::copy_from_slice(input));
        input.clear();
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Silent> {
        self.finished = true;
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Silent> {
        if self.deadline <= now { Err(Silent) } else { Ok(()) }
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        while out.has_room() {
            let Some(data) = self.owed.pop_front() else { return };
            self.owed_len -= data.len();
            out.push(data);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        self.finished.then_some(Close::Both)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.deadline)
    }

    fn poll_event(&mut self) -> Option<usize> {
        None
    }
}

/// How it went so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) connected: usize,
    pub(crate) finished: usize,
    pub(crate) silent: usize,
    pub(crate) reports: usize,
}

/// The server and its loop.
#[derive(Debug)]
pub(crate) struct Server {
    driver: Driver<Echo>,
    patience: Duration,
    report_every: Duration,
    report: Option<Key>,
    pub(crate) counters: Counters,
}

impl Server {
    pub(crate) fn new(listener: TcpListener, patience: Duration, report_every: Duration) -> io::Result<Self> {
        let mut driver = Driver::new()?;
        driver.listen(Listener::Tcp(listener))?;
        Ok(Self {
            driver,
            patience,
            report_every,
            report: None,
            counters: Counters::default(),
        })
    }

    /// One round of the loop. `false` once a signal asks for the end.
    pub(crate) fn turn(&mut self) -> io::Result<bool> {
        let now = self.driver.turn(Some(Duration::from_secs(1)))?;
        if self.report.is_none() {
            self.report = Some(self.driver.timer(now + self.report_every));
        }
        while let Some(event) = self.driver.poll_event() {
            match event {
                Event::Accepted(_, stream) => {
                    self.driver.add(stream, Echo::new(now, self.patience))?;
                    self.counters.connected += 1;
                }
                Event::Closed(_, _, Err(LinkError::Protocol(Silent))) => self.counters.silent += 1,
                Event::Closed(..) => self.counters.finished += 1,
                Event::Ready(Ready::Timer(key)) if Some(key) == self.report => {
                    self.counters.reports += 1;
                    self.report = Some(self.driver.timer(now + self.report_every));
                }
                Event::Signal(_) => return Ok(false),
                Event::Connected(_)
                | Event::Protocol(..)
                | Event::Outgoing(_)
                | Event::Finished(_)
                | Event::Consumed(..)
                | Event::Exited(..)
                | Event::Ready(_) => {}
            }
        }
        Ok(true)
    }
}

fn main() -> io::Result<()> {
    let listen = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:7007".to_owned());
    let listen: SocketAddr = listen.parse().map_err(io::Error::other)?;
    let listener = TcpListener::bind(listen)?;
    writeln!(
        io::stdout(),
        "listening on {}; ctrl-c ends it",
        listener.local_addr()?
    )?;
    let mut server = Server::new(listener, Duration::from_secs(30), Duration::from_secs(1))?;
    server.driver.signals(&[signal_hook::consts::SIGINT])?;
    let mut last = Counters::default();
    while server.turn()? {
        let Counters {
            connected,
            finished,
            silent,
            ..
        } = server.counters;
        if (Counters {
            reports: last.reports,
            ..server.counters
        }) != last
        {
            writeln!(
                io::stdout(),
                "{connected} connected, {finished} finished, {silent} said nothing"
            )?;
        }
        last = server.counters;
    }
    Ok(())
}
