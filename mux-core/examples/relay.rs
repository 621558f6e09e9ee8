//! A TCP relay that is as far away as it is told to be. Decides when each byte arrives; never what arrives.
//!
//! ```text
//! relay --listen ADDR --to ADDR --rtt MS [--listen ADDR --to ADDR --rtt MS]...
//! ```
//!
//! Every `--listen` begins a pair; `--rtt` takes fractions of a millisecond. For each pair, `ready ADDR` is printed
//! once it listens (ask for port 0 to have one chosen). Ends at the end of its standard input, or on SIGTERM or
//! SIGINT.
//!
//! # What is charged
//!
//! Bytes and the end of a direction arrive half a round trip after they were sent, in order, at any bandwidth. The
//! handshake of TCP is charged too, although connecting to the relay takes no time. On a real network, with the
//! client's SYN leaving at 0:
//!
//! | at | happens |
//! | --- | --- |
//! | 1 RTT | `connect` returns at the client, which sends its first flight |
//! | 1.5 RTT | the client's ACK and its first flight reach the server, whose `accept` returns |
//! | 2 RTT | what the server says on its own account (a banner) reaches the client |
//!
//! Here `connect` returns at 0. So what the client sends before 1 RTT counts as sent at 1 RTT, and the server is
//! connected to at 1.5 RTT. From there on, all times are those of the real network. Whatever a client computes
//! between the return of `connect` and its first flight is hidden by this; for SSH that is nothing worth measuring.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mio::net::TcpListener;
use mux_core::{Driver, Event, Key, Listener, Ready};
use mux_proto::{Close, Protocol, SendQueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A direction holds at most this much that is under way, so that an endless writer does not fill the memory:
/// 64 MiB at 200 ms are 320 MB/s.
const UNDER_WAY_MAX: usize = 64 * 1024 * 1024;

/// Payloads smaller than this are copied: they would keep the loop's read buffer alive for half a round trip.
const COPY_BELOW: usize = 16 * 1024;

/// One end of a relayed connection: what it receives is an event at once, what it is given to send waits until its
/// time.
#[derive(Debug, Default)]
struct Delay {
    received: VecDeque<Arrival>,
    under_way: VecDeque<(Instant, Arrival)>,
    under_way_len: usize,
    /// The other end has too much under way.
    paused: bool,
    arrived: VecDeque<Bytes>,
    close: Option<Close>,
}

/// What travels.
#[derive(Debug)]
enum Arrival {
    Data(Bytes),
    Finish,
    Gone,
}

impl Delay {
    fn send(&mut self, at: Instant, what: Arrival) {
        if let Arrival::Data(data) = &what {
            self.under_way_len += data.len();
        }
        self.under_way.push_back((at, what));
    }
}

impl Protocol for Delay {
    type Event = Arrival;
    type Error = Infallible;

    fn wants_input(&self) -> bool {
        !self.paused
    }

    fn handle_input(&mut self, _now: Instant, input: &mut BytesMut) -> Result<(), Infallible> {
        let data = if input.len() < COPY_BELOW {
            let copy = Bytes::copy_from_slice(input);
            input.clear();
            copy
        } else {
            input.split().freeze()
        };
        self.received.push_back(Arrival::Data(data));
        Ok(())
    }

    fn handle_eof(&mut self, _now: Instant) -> Result<(), Infallible> {
        self.received.push_back(Arrival::Finish);
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Infallible> {
        while let Some((_, what)) = self.under_way.pop_front_if(|(at, _)| *at <= now) {
            match what {
                Arrival::Data(data) => {
                    self.under_way_len -= data.len();
                    self.arrived.push_back(data);
                }
                Arrival::Finish => self.close = self.close.or(Some(Close::Write)),
                Arrival::Gone => self.close = Some(Close::Both),
            }
        }
        Ok(())
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut SendQueue) {
        while out.has_room() {
            let Some(data) = self.arrived.pop_front() else {
                return;
            };
            out.push(data);
        }
    }

    fn poll_close(&self) -> Option<Close> {
        self.close
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.under_way.front().map(|(at, _)| *at)
    }

    fn poll_event(&mut self) -> Option<Arrival> {
        self.received.pop_front()
    }
}

/// Where connections come from, where they go, and how far that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) listen: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) rtt: Duration,
}

/// One end as the relay knows it: its link, and that of the other end once it exists.
#[derive(Debug)]
struct End {
    peer: Peer,
    rtt: Duration,
    /// What is sent earlier counts as sent then.
    open_at: Instant,
}

#[derive(Debug)]
enum Peer {
    /// The server is not connected to yet; until then its protocol collects.
    Due(Box<Delay>),
    Link(Key),
    Gone,
}

#[derive(Debug)]
pub(crate) struct Relay {
    driver: Driver<Delay>,
    routes: Vec<(Key, Route)>,
    ends: HashMap<Key, End>,
    due: HashMap<Key, (Key, SocketAddr)>,
    paused: Vec<Key>,
}

impl Relay {
    /// Listens on every route; returns where.
    pub(crate) fn open(routes: Vec<Route>) -> io::Result<(Self, Vec<SocketAddr>)> {
        let mut driver = Driver::new()?;
        let mut listening = Vec::new();
        let mut at = Vec::new();
        for route in routes {
            let listener = TcpListener::bind(route.listen)?;
            at.push(listener.local_addr()?);
            listening.push((driver.listen(Listener::Tcp(listener))?, route));
        }
        let (ends, due) = (HashMap::new(), HashMap::new());
        Ok((
            Self {
                driver,
                routes: listening,
                ends,
                due,
                paused: Vec::new(),
            },
            at,
        ))
    }

    /// Relays until `until` ends or a signal comes that was asked for.
    pub(crate) fn run(&mut self, mut until: impl Read + Send + 'static) -> Result<(), Box<dyn Error>> {
        let (sender, mut stop) = self.driver.mailbox();
        std::thread::spawn(move || {
            // Whether it ends or fails, whoever started us is gone. A failure to say so finds a relay that is, too.
            let _ = until.read_to_end(&mut Vec::new());
            let _ = sender.send(());
        });
        loop {
            let now = self.driver.turn(Some(Duration::ZERO))?;
            while let Some(event) = self.driver.poll_event() {
                if !self.handle(now, event)? || stop.take().is_some() {
                    return Ok(());
                }
            }
            self.resume();
            self.wait(now)?;
        }
    }

    fn handle(&mut self, now: Instant, event: Event<Delay>) -> Result<bool, Box<dyn Error>> {
        match event {
            Event::Accepted(listener, stream) => {
                let route = self
                    .routes
                    .iter()
                    .find(|(key, _)| *key == listener)
                    .map(|(_, route)| *route);
                let route = route.ok_or("no such listener")?;
                let client = self.driver.add(stream, Delay::default())?;
                let timer = self.driver.timer(now + route.rtt + route.rtt / 2);
                let peer = Peer::Due(Box::default());
                self.ends.insert(
                    client,
                    End {
                        peer,
                        rtt: route.rtt,
                        open_at: now + route.rtt,
                    },
                );
                self.due.insert(timer, (client, route.to));
            }
            Event::Ready(Ready::Timer(timer)) => {
                if let Some((client, to)) = self.due.remove(&timer) {
                    self.connect(now, client, to);
                }
            }
            Event::Protocol(from, arrival) => self.forward(now, from, arrival),
            Event::Closed(key, _, _) => {
                self.forward(now, key, Arrival::Gone);
                if let Some(End {
                    peer: Peer::Link(peer),
                    ..
                }) = self.ends.remove(&key)
                    && let Some(end) = self.ends.get_mut(&peer)
                {
                    end.peer = Peer::Gone;
                }
            }
            Event::Signal(_) => return Ok(false),
            Event::Connected(_)
            | Event::Outgoing(_)
            | Event::Finished(_)
            | Event::Consumed(..)
            | Event::Exited(..)
            | Event::Ready(Ready::Io(..) | Ready::Again(_) | Ready::Woken) => {}
        }
        Ok(true)
    }

    fn connect(&mut self, now: Instant, client: Key, to: SocketAddr) {
        let Some(end) = self.ends.get_mut(&client) else {
            return;
        };
        let Peer::Due(protocol) = std::mem::replace(&mut end.peer, Peer::Gone) else {
            return;
        };
        match self.driver.connect(to, *protocol) {
            Ok(server) => {
                end.peer = Peer::Link(server);
                let rtt = end.rtt;
                self.ends.insert(
                    server,
                    End {
                        peer: Peer::Link(client),
                        rtt,
                        open_at: now,
                    },
                );
            }
            Err(error) => {
                log::warn!("{to}: {error}");
                self.driver.abort(client);
                self.ends.remove(&client);
            }
        }
    }

    /// Sends what one end received, or its end, to the other.
    fn forward(&mut self, now: Instant, from: Key, arrival: Arrival) {
        let Some(end) = self.ends.get_mut(&from) else {
            return;
        };
        let at = now.max(end.open_at) + end.rtt / 2;
        let under_way = match &mut end.peer {
            Peer::Due(protocol) => {
                protocol.send(at, arrival);
                protocol.under_way_len
            }
            Peer::Link(peer) => {
                let peer = *peer;
                let Some(protocol) = self.driver.protocol(peer) else {
                    return;
                };
                protocol.send(at, arrival);
                protocol.under_way_len
            }
            Peer::Gone => return,
        };
        if under_way > UNDER_WAY_MAX
            && let Some(protocol) = self.driver.protocol(from)
        {
            protocol.paused = true;
            self.paused.push(from);
        }
    }

    /// Ends that were paused go on once the other end has room.
    fn resume(&mut self) {
        let Self {
            driver, ends, paused, ..
        } = self;
        paused.retain(|&key| {
            let Some(End {
                peer: Peer::Link(peer),
                ..
            }) = ends.get(&key)
            else {
                return ends.contains_key(&key);
            };
            let full = driver
                .peek(*peer)
                .is_some_and(|peer| peer.under_way_len > UNDER_WAY_MAX / 2);
            if !full && let Some(end) = driver.protocol(key) {
                end.paused = false;
            }
            full
        });
    }

    /// Waits with the precision of ppoll, which epoll's milliseconds do not have.
    fn wait(&self, mut now: Instant) -> io::Result<()> {
        loop {
            let left = match self.driver.next_deadline(now) {
                Some(at) if at <= now => return Ok(()),
                Some(at) => Some(Timespec::try_from(at - now).map_err(io::Error::other)?),
                None => None,
            };
            match poll(&mut [PollFd::new(&self.driver, PollFlags::IN)], left.as_ref()) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => now = Instant::now(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    raise_descriptor_limit();
    let (mut relay, listening) = Relay::open(parse(std::env::args().skip(1))?)?;
    relay
        .driver
        .signals(&[signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])?;
    for at in listening {
        writeln!(io::stdout(), "ready {at}")?;
    }
    relay.run(io::stdin())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Vec<Route>, Box<dyn Error>> {
    let mut routes: Vec<Route> = Vec::new();
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let missing = || format!("{flag} before the first --listen");
        match flag.as_str() {
            "--listen" => {
                let listen = value.parse()?;
                routes.push(Route {
                    listen,
                    to: SocketAddr::from(([0; 4], 0)),
                    rtt: Duration::ZERO,
                });
            }
            "--to" => routes.last_mut().ok_or_else(missing)?.to = value.parse()?,
            "--rtt" => {
                routes.last_mut().ok_or_else(missing)?.rtt =
                    Duration::from_secs_f64(value.parse::<f64>()? / 1e3);
            }
            _ => return Err(format!("unknown option {flag}").into()),
        }
    }
    match routes.iter().find(|route| route.to.port() == 0) {
        Some(route) => Err(format!("--listen {} without --to", route.listen).into()),
        None if routes.is_empty() => Err("usage: relay --listen ADDR --to ADDR --rtt MS ...".into()),
        None => Ok(routes),
    }
}

/// Two descriptors a connection: as many as the system lets us have.
fn raise_descriptor_limit() {
    const WANTED: u64 = 65_536;
    let limit = getrlimit(Resource::Nofile);
    let everything = Rlimit {
        current: Some(WANTED),
        maximum: limit.maximum.map(|max| max.max(WANTED)),
    };
    if setrlimit(Resource::Nofile, everything).is_err() {
        // Without the privilege to raise the ceiling, the ceiling is what there is.
        let ceiling = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, ceiling) {
            log::warn!("descriptor limit: {error}");
        }
    }
}
