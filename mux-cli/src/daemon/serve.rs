//! The loop of the daemon: what links and clients say goes to the hub of whom it concerns, what the hubs say goes to the
//! clients. Decides when the daemon ends; what a client may ask is in `answering.rs`, what it runs in `guest.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use mio::net::UnixListener as MioListener;
use mux_core::{Driver, Key, Listener, Stream};
use mux_proto::Connection;
use mux_proto::body::GoodbyeCode;
use mux_proto::connection::{ChannelId, Config, Event, Role};
use mux_proto::frame::NodeId;
use rustix::process::Signal;

use super::answering::Letter;
use super::guest::{Common, Guest};
use super::place::{self, Place};
use super::warm::{self, Warm};
use crate::hub::LinkEvent;
use crate::hub::ids::IdMap;
use crate::run::net::{Heard, Net};
use crate::run::{Locals, descriptors_for_daemon, not_ignored};

/// How long the daemon stays without a client.
pub const DEFAULT_IDLE: Duration = Duration::from_secs(10 * 60);

/// What runs has this long to end by itself when the daemon is to stop.
const GRACE: Duration = Duration::from_secs(5);

/// What is stopped then has this long: as long as the hub takes at most to stop a command.
const AFTER_GRACE: Duration = Duration::from_secs(10);

/// A loop that comes round this much later than it was due has been stopped.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A client has one channel for its run, and a few for questions.
const MAX_CHANNELS: u32 = 8;

/// Bytes that may be under way from a client: enough for thousands of requests, little for thousands of clients.
const WINDOW: u32 = 256 * 1024;

/// The number of this node, and of the first client: 2 to 15 are nobody's, as in the specification's examples.
const OWN: NodeId = NodeId(1);
const FIRST_CLIENT: u32 = 17;

/// How long last words may take to leave.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Why the daemon does not begin.
#[derive(Debug)]
pub(crate) enum NoStart {
    /// There is one.
    Running,
    /// The place can't be used, or the system has not what it takes; one line.
    Failed(String),
}

/// The daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) common: Common,
    place: Place,
    /// Held for as long as this process lives.
    _lock: File,
    listener: Option<Key>,
    /// By the links to them.
    pub(super) guests: BTreeMap<Key, Guest>,
    /// Every link to a client.
    pub(super) nodes: IdMap<Key, NodeId>,
    next_node: u32,
    pub(super) letters: BTreeMap<(Key, ChannelId), Letter>,
    touched: BTreeSet<Key>,
    pub(super) born: Instant,
    /// Since when nobody runs anything.
    idle_since: Instant,
    idle: Option<Duration>,
    /// When what runs is stopped.
    pub(super) stopping: Option<Instant>,
    is_stopped: bool,
}

/// Runs the daemon until it is to end. `idle`: how long it stays without a client; `None`: for ever.
///
/// # Errors
/// It could not begin.
pub(crate) fn serve(place: Place, idle: Option<Duration>) -> Result<(), NoStart> {
    let failed = |what: &str, error: &io::Error| NoStart::Failed(format!("could not {what}: {error}"));
    place
        .prepare()
        .map_err(|error| NoStart::Failed(format!("socket: {error}")))?;
    let lock = place
        .lock()
        .map_err(|error| failed("open the lock file beside the socket", &error))?
        .ok_or(NoStart::Running)?;
    let listener = listen(&place).map_err(|error| {
        NoStart::Failed(format!("could not listen on {}: {error}", place.socket.display()))
    })?;
    let mut daemon = Daemon::new(place, lock, listener, idle).map_err(|error| failed("begin", &error))?;
    log::info!("listening on {}", daemon.place.socket.display());
    daemon.run().map_err(|error| failed("go on", &error))
}

/// The socket. Whoever holds the lock is the only one who listens: what stands there is of one that is dead.
fn listen(place: &Place) -> io::Result<UnixListener> {
    match fs::remove_file(&place.socket) {
        Ok(()) => log::info!("a socket of a daemon that is gone is replaced"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(&place.socket)?;
    fs::set_permissions(&place.socket, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Daemon {
    fn new(place: Place, lock: File, listener: UnixListener, idle: Option<Duration>) -> io::Result<Self> {
        let mut driver = Driver::new()?;
        let now = driver.turn(Some(Duration::ZERO))?;
        let listener = driver.listen(Listener::Unix(MioListener::from_std(listener)))?;
        driver.signals(&not_ignored(&[
            Signal::INT,
            Signal::TERM,
            Signal::HUP,
            Signal::USR1,
        ]))?;
        let net = Net::new(driver, Locals::new(None), descriptors_for_daemon());
        let common = Common {
            net,
            warm: Warm::new(idle.unwrap_or(warm::MAX_IDLE)),
            owners: IdMap::default(),
            finished: 0,
            reused: 0,
        };
        Ok(Self {
            common,
            place,
            _lock: lock,
            listener: Some(listener),
            guests: BTreeMap::new(),
            nodes: IdMap::default(),
            next_node: FIRST_CLIENT,
            letters: BTreeMap::new(),
            touched: BTreeSet::new(),
            born: now,
            idle_since: now,
            idle,
            stopping: None,
            is_stopped: false,
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut now = self.common.net.turn(Some(Duration::ZERO))?;
        loop {
            while let Some(heard) = self.common.net.poll() {
                self.heard(now, heard);
            }
            self.on_time(now);
            self.settle(now);
            if self.is_over(now) {
                break;
            }
            let wait = self.next(now).map(|at| at.saturating_duration_since(now));
            let then = self.common.net.turn(wait)?;
            let late = wait.map_or(Duration::ZERO, |wait| then.saturating_duration_since(now + wait));
            if late >= STANDSTILL {
                log::info!("stood still for {late:?}");
                for guest in self.guests.values_mut() {
                    guest.stood_still(then, &mut self.common, late);
                }
            }
            now = then;
        }
        self.leave(now)
    }

    /// When to come round if nothing happens.
    fn next(&self, now: Instant) -> Option<Instant> {
        let guests = self.guests.values().filter_map(Guest::poll_timeout);
        let others = [
            self.common.warm.poll_timeout(),
            self.leaves_at(),
            self.stopping.filter(|_| !self.is_stopped),
            self.stopping.map(|at| at + AFTER_GRACE),
        ];
        let due = guests.chain(others.into_iter().flatten()).min();
        // A deadline that is over was dealt with: whoever has set it says so again.
        due.map(|at| at.max(now))
    }

    /// When the daemon leaves if nobody comes.
    fn leaves_at(&self) -> Option<Instant> {
        let idle = self
            .idle
            .filter(|_| self.guests.is_empty() && self.stopping.is_none());
        idle.map(|idle| self.idle_since + idle)
    }

    fn on_time(&mut self, now: Instant) {
        for (key, guest) in &mut self.guests {
            if guest.poll_timeout().is_some_and(|at| at <= now) {
                guest.handle_timeout(now, &mut self.common);
                self.touched.insert(*key);
            }
        }
        if self.common.warm.poll_timeout().is_some_and(|at| at <= now) {
            self.look_at_kept(now);
        }
        if self.leaves_at().is_some_and(|at| at <= now) {
            log::info!("nobody came for {:?}", self.idle.unwrap_or_default());
            self.stop(now);
        }
        if self.stopping.is_some_and(|at| at <= now) && !std::mem::replace(&mut self.is_stopped, true) {
            for (key, guest) in &mut self.guests {
                guest.stop(now, &mut self.common);
                self.touched.insert(*key);
            }
        }
    }

    fn look_at_kept(&mut self, now: Instant) {
        let overdue = self.common.warm.overdue(now, warm::uptime());
        self.common.close(&overdue);
    }

    /// Takes no new work, and ends once what runs has ended.
    pub(super) fn stop(&mut self, now: Instant) {
        if self.stopping.is_some() {
            // Whoever says it twice does not want to wait.
            self.stopping = Some(now);
            return;
        }
        self.stopping = Some(now + GRACE);
        if let Some(listener) = self.listener.take() {
            self.common.net.unlisten(listener);
            self.remove_socket();
        }
        let all = self.common.warm.drain(|_| true);
        self.common.close(&all);
    }

    fn remove_socket(&self) {
        if let Err(error) = fs::remove_file(&self.place.socket) {
            log::warn!("{}: {error}", self.place.socket.display());
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        // A client that has been told everything leaves by itself.
        let is_idle = self.guests.is_empty() && self.letters.is_empty();
        self.stopping.is_some_and(|at| is_idle || now >= at + AFTER_GRACE)
    }

    /// Tells everybody, and waits a moment for it to leave.
    fn leave(&mut self, now: Instant) -> io::Result<()> {
        // What was answered leaves before the goodbye, which drops what waits.
        let now = self.common.net.turn(Some(Duration::ZERO))?.max(now);
        while self.common.net.poll().is_some() {}
        for key in self.nodes.keys() {
            if let Some(connection) = self.common.net.node(*key) {
                connection.goodbye(GoodbyeCode::Done, "the daemon has been stopped");
            }
        }
        let until = now + LAST_WORDS;
        let mut then = now;
        while then < until && !self.nodes.is_empty() {
            then = self
                .common
                .net
                .turn(Some(until.saturating_duration_since(then)))?;
            while let Some(heard) = self.common.net.poll() {
                if let Heard::NodeClosed(key, _) = heard {
                    self.nodes.remove(&key);
                }
            }
        }
        Ok(())
    }

    fn heard(&mut self, now: Instant, heard: Heard) {
        match heard {
            Heard::Link(key, event) => self.link(now, key, event),
            Heard::Signal(number) if number == Signal::USR1.as_raw() => {
                log::warn!("{}", self.report(now).show(super::status::Form::Text));
            }
            Heard::Signal(_) => self.stop(now),
            Heard::Accepted(stream) => self.accept(now, stream),
            Heard::Node(key, event) => self.node(now, key, event),
            Heard::NodeClosed(key, why) => {
                log::debug!("client {key:?}: {why}");
                self.part(now, key);
            }
            // There is neither an agent nor a mailbox here.
            Heard::Woken | Heard::Agent(..) | Heard::AgentClosed(..) => {}
        }
    }

    fn link(&mut self, now: Instant, key: Key, event: LinkEvent) {
        let is_closed = matches!(event, LinkEvent::Closed(_));
        match self.common.owners.get(&key) {
            Some(owner) => {
                let owner = *owner;
                if let Some(guest) = self.guests.get_mut(&owner) {
                    guest.handle_link(now, &mut self.common, key, event);
                    self.touched.insert(owner);
                }
                if is_closed {
                    self.common.owners.remove(&key);
                    self.common.warm.closed(key);
                }
            }
            None if is_closed => {
                self.common.warm.closed(key);
            }
            None => {}
        }
    }

    /// Somebody connects: only who is the same user, whatever the permissions of files say.
    fn accept(&mut self, now: Instant, stream: Stream) {
        let Stream::Unix(unix) = stream else { return };
        match rustix::net::sockopt::socket_peercred(&unix) {
            Ok(peer) if peer.uid.as_raw() == place::uid() => {}
            Ok(peer) => return log::warn!("refused: user {} is not ours", peer.uid.as_raw()),
            Err(error) => return log::warn!("refused: whose it is can't be told: {error}"),
        }
        let node = NodeId(self.next_node);
        let config = Config {
            names: Some((OWN, node)),
            max_channels: MAX_CHANNELS,
            window: WINDOW,
            // A client that was stopped (Ctrl-Z) says nothing for as long as it likes; one that is gone closes its end.
            keepalive: None,
            ..Config::new(Role::Below)
        };
        match self
            .common
            .net
            .add_node(Stream::Unix(unix), Connection::new(now, config))
        {
            Ok(key) => {
                self.next_node = self.next_node.wrapping_add(1).max(FIRST_CLIENT);
                self.nodes.insert(key, node);
            }
            Err(error) => log::warn!("a client could not be taken: {error}"),
        }
    }

    fn node(&mut self, now: Instant, key: Key, event: Event) {
        match event {
            Event::Opened {
                channel,
                kind,
                arguments,
            } => self.opened(now, (key, channel), &kind, &arguments),
            Event::Data { channel, data, .. } => {
                match self
                    .guests
                    .get_mut(&key)
                    .filter(|guest| guest.channel() == channel)
                {
                    Some(guest) => {
                        guest.heard(now, &mut self.common, &data);
                        self.touched.insert(key);
                    }
                    // Nothing is read on the others, and what comes is dropped.
                    None => {
                        if let Some(connection) = self.common.net.node(key) {
                            connection.consume(channel, data.len());
                        }
                    }
                }
            }
            Event::Writable(channel) => {
                if let Some(guest) = self
                    .guests
                    .get_mut(&key)
                    .filter(|guest| guest.channel() == channel)
                {
                    guest.flush(&mut self.common);
                }
                self.write(key, channel);
            }
            Event::Reset(channel, _) => {
                self.letters.remove(&(key, channel));
                if self
                    .guests
                    .get(&key)
                    .is_some_and(|guest| guest.channel() == channel)
                {
                    self.end_guest(now, key);
                }
            }
            Event::Goodbye(_) => self.end_guest(now, key),
            Event::Hello(_) | Event::Finished(_) => {}
            // Only those above hear these.
            Event::Result(..) | Event::Route(_) | Event::Log(_) => {}
            // Nobody is behind it.
            Event::Transit(_) => {}
        }
    }

    /// The link to a client is gone.
    fn part(&mut self, now: Instant, key: Key) {
        self.nodes.remove(&key);
        self.letters.retain(|(of, _), _| *of != key);
        self.end_guest(now, key);
    }

    fn end_guest(&mut self, now: Instant, key: Key) {
        if let Some(guest) = self.guests.get_mut(&key) {
            guest.leave(now, &mut self.common);
            self.touched.insert(key);
        }
    }

    fn settle(&mut self, now: Instant) {
        for key in std::mem::take(&mut self.touched) {
            let Some(guest) = self.guests.get_mut(&key) else {
                continue;
            };
            guest.settle(&mut self.common);
            if guest.is_over() {
                self.guests.remove(&key);
                self.idle_since = now;
            }
        }
    }
}
