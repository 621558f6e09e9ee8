//! SSH servers for demos, benchmarks and tests of dead hosts: thousands of targets in one process, at a distance of
//! our choosing, some of them in trouble. It decides where they listen and which of them do not behave; what they
//! say is `mux_ssh::server`.
//!
//! `cargo run --example targets -- --count 100 --rtt 25 --reply builtin --user-key k --write-ssh-config c
//! --write-known-hosts h`, then `ssh -F c web001 hostname`.

mod builtin;
mod delay;
mod fleet;
mod forwards;
mod jobs;
mod options;
mod process;
mod wire;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_core::{Driver, Event, Key, Listener, Mailbox, Ready, Stream};
use mux_proto::{Raw, RawEvent};
use mux_ssh::server::{Act, Moment, Plan, Point, Server};
use rustix::fs::{FileType, fstat};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::fleet::{Held, Target};
use crate::forwards::Forwards;
use crate::jobs::Jobs;
use crate::options::{Options, Trouble};
use crate::wire::{Wire, WireEvent};

const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

fn main() -> ExitCode {
    env_logger::init();
    match run(&options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "targets: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    raise_file_limit();
    let mut driver = Driver::new()?;
    let mut held = Held::default();
    let opened = fleet::open(options, &mut held)?;
    fleet::write_files(options, opened.iter().map(|(target, _)| target))?;
    driver.signals(&[SIGINT, SIGTERM])?;
    let mut targets = Targets::listen(options, opened, &mut driver)?;
    targets.say_ready()?;
    loop {
        let now = driver.turn(None)?;
        while let Some(event) = driver.poll_event() {
            if targets.handle(&mut driver, now, event)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Everything that accepts, runs or is connected.
struct Targets {
    rtt: Duration,
    targets: Vec<Target>,
    listeners: HashMap<Key, usize>,
    /// Which target a client is connected to.
    clients: HashMap<Key, usize>,
    jobs: Jobs,
    forwards: Forwards,
    /// Says when the process that started us is gone.
    owner: Option<Mailbox<()>>,
}

impl Targets {
    fn listen(
        options: &Options,
        opened: Vec<(Target, Option<mio::net::TcpListener>)>,
        driver: &mut Driver<Wire>,
    ) -> io::Result<Self> {
        let mut targets = Vec::with_capacity(opened.len());
        let mut listeners = HashMap::new();
        for (index, (target, listener)) in opened.into_iter().enumerate() {
            if let Some(listener) = listener {
                listeners.insert(driver.listen(Listener::Tcp(listener))?, index);
            }
            targets.push(target);
        }
        Ok(Self {
            rtt: options.rtt,
            targets,
            listeners,
            clients: HashMap::new(),
            jobs: Jobs::new(options.reply),
            forwards: Forwards::default(),
            owner: watch_stdin(driver),
        })
    }

    /// One line: how many, and where the first and the last are.
    fn say_ready(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let [first, last] = [self.targets.first(), self.targets.last()];
        let at =
            |target: Option<&Target>| target.map_or_else(String::new, |target| target.address.to_string());
        writeln!(
            out,
            "ready count={} first={} last={}",
            self.targets.len(),
            at(first),
            at(last)
        )?;
        out.flush()
    }

    fn handle(
        &mut self,
        driver: &mut Driver<Wire>,
        now: Instant,
        event: Event<Wire>,
    ) -> io::Result<ControlFlow<()>> {
        match event {
            Event::Accepted(listener, stream) => self.accept(driver, now, listener, stream)?,
            Event::Protocol(key, WireEvent::Ssh(event)) => {
                let event = self.forwards.handle_ssh(driver, key, event);
                if let Some(target) = self.clients.get(&key).and_then(|&index| self.targets.get(index))
                    && let Some(event) = event
                {
                    self.jobs.handle_ssh(driver, now, key, &target.name, event);
                }
            }
            Event::Protocol(key, WireEvent::Plain(event)) if self.forwards.has_link(key) => {
                self.forwards.handle_plain(driver, key, event);
            }
            Event::Protocol(key, WireEvent::Plain(event)) => match self.clients.contains_key(&key) {
                true => ignore(driver, key, &event),
                false => self.jobs.handle_plain(driver, key, event),
            },
            Event::Closed(key, _, result) if self.forwards.has_link(key) => {
                let why = match result {
                    Err(mux_core::LinkError::Io(kind)) => kind.to_string(),
                    Ok(()) | Err(mux_core::LinkError::Protocol(_)) => "closed".to_owned(),
                };
                self.forwards.closed(driver, key, &why);
            }
            Event::Closed(key, _, result) => {
                if self.clients.remove(&key).is_some() {
                    log::debug!("{key:?} closed: {result:?}");
                    self.jobs.connection_closed(driver, key);
                    self.forwards.client_closed(driver, key);
                } else {
                    self.jobs.plain_closed(driver, key);
                }
            }
            Event::Exited(process, status) => self.jobs.exited(driver, process, status),
            Event::Ready(Ready::Timer(key)) => self.jobs.timer(driver, now, key),
            Event::Ready(Ready::Woken) => {
                if self.owner.as_mut().is_some_and(|owner| owner.take().is_some()) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Event::Signal(_) => return Ok(ControlFlow::Break(())),
            Event::Connected(key) => self.forwards.connected(driver, key),
            Event::Outgoing(_)
            | Event::Finished(_)
            | Event::Consumed(..)
            | Event::Ready(Ready::Io(..) | Ready::Again(_)) => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn accept(
        &mut self,
        driver: &mut Driver<Wire>,
        now: Instant,
        listener: Key,
        stream: Stream,
    ) -> io::Result<()> {
        let Some((index, target)) = self
            .listeners
            .get(&listener)
            .and_then(|&index| Some((index, self.targets.get(index)?)))
        else {
            return Ok(());
        };
        let wire = match target.trouble {
            Some(Trouble::Silent) => Wire::Plain(Raw::new()),
            trouble => {
                if let (Some(Trouble::ResetOutput), Stream::Tcp(tcp)) = (trouble, &stream) {
                    // Closing discards what is queued and resets.
                    rustix::net::sockopt::set_socket_linger(tcp, Some(Duration::ZERO))?;
                }
                Wire::server(
                    Server::new(Arc::clone(&target.config), plan(trouble)),
                    self.rtt,
                    now,
                )
            }
        };
        let key = driver.add(stream, wire)?;
        self.clients.insert(key, index);
        Ok(())
    }
}

/// A client that is never answered: what it says is read, and when it is gone, so is the link.
fn ignore(driver: &mut Driver<Wire>, key: Key, event: &RawEvent) {
    if let Some(raw) = driver.protocol(key).and_then(Wire::as_plain) {
        match event {
            RawEvent::Data(data) => raw.consume(data.len()),
            RawEvent::Eof => raw.close(),
        }
    }
}

/// What the SSH server of a target in trouble does.
fn plan(trouble: Option<Trouble>) -> Plan {
    match trouble {
        Some(Trouble::StallAuth) => Plan::new().with(Point::After(Moment::NewKeys, 1), Act::Stall),
        Some(Trouble::ResetOutput) => Plan::new().with(Point::After(Moment::Output, 1), Act::Close),
        Some(Trouble::Refuse | Trouble::Drop | Trouble::Silent) | None => Plan::new(),
    }
}

/// Whoever started us through a pipe ends us by closing it, even if it is killed. A terminal, a file or /dev/null
/// on standard input mean nothing.
fn watch_stdin(driver: &Driver<Wire>) -> Option<Mailbox<()>> {
    let kind = FileType::from_raw_mode(fstat(io::stdin()).ok()?.st_mode);
    if kind != FileType::Fifo && kind != FileType::Socket {
        return None;
    }
    let (sender, mailbox) = driver.mailbox();
    std::thread::spawn(move || {
        let mut scratch = [0; 512];
        while io::stdin().read(&mut scratch).is_ok_and(|count| count > 0) {}
        sender.send(())
    });
    Some(mailbox)
}

/// Thousands of listeners and connections need more descriptors than most systems give at first.
fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::warn!("descriptor limit: {error}");
    }
}
