//! The upper of the two layers: a reactor and the links that it drives. Decides which link is served next and when
//! a flight leaves; leaves reading and writing to the link, and meaning to its protocol.

mod accept;
mod memory;
mod turn;

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use mio::Interest;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mux_proto::{Protocol, SendQueue};

use crate::child::Process;
use crate::link::Link;
use crate::scratch::Scratch;
use crate::signal::Signals;
use crate::stream::{Bound, Io};
use crate::{Event, Key, Listener, Mailbox, Reactor, Sender, Stream, Waker};

/// Drives protocols over streams.
///
/// One round is [`turn`](Self::turn), then [`poll_event`](Self::poll_event) until it returns `None`, acting on each
/// event:
///
/// ```no_run
/// # use mux_core::{Driver, Event}; use mux_proto::Raw;
/// # fn main() -> std::io::Result<()> {
/// let mut driver: Driver<Raw> = Driver::new()?;
/// loop {
///     let now = driver.turn(None)?;
///     while let Some(event) = driver.poll_event() { /* act on it */ }
/// }
/// # }
/// ```
///
/// # Guarantees
/// - Nothing is called back. What a link's protocol has to say is returned by `poll_event`, in order, and
///   [`Event::Closed`] is the last of its key.
/// - Work is done as events are taken: a link whose events are not taken is not read.
/// - What [`protocol`](Self::protocol) was asked to send leaves, as one vectored write, at the latest when
///   `poll_event` returns `None` or the next turn starts. A flush cannot be forgotten.
/// - A link is read 256 KiB a turn at most; a busy one starves nobody.
/// - Within a turn, every link with data waiting is heard before any deadline is enforced.
pub struct Driver<P: Protocol> {
    pub(crate) reactor: Reactor,
    entries: Vec<Option<Entry<P>>>,
    /// The time of the last turn; what is done between two turns is done at this time.
    now: Option<Instant>,
    scratch: Scratch,
    flight: SendQueue,
    /// Links that may have output, input left over, or an end to look after.
    dirty: VecDeque<Key>,
    /// Links whose protocols may have events.
    speaking: VecDeque<Key>,
    pub(crate) events: VecDeque<Event<P>>,
    /// Listeners that ran out of descriptors.
    deaf: Vec<Key>,
}

/// What a key of the driver stands for. Keys without an entry are sources that the application registered.
struct Entry<P: Protocol> {
    key: Key,
    what: What<P>,
}

pub(crate) enum What<P: Protocol> {
    Link(Box<Link<P>>),
    Listener(Listener),
    Timer,
    Process(Box<Process>),
    Signals(Box<Signals>),
}

impl<P: Protocol> Driver<P> {
    /// A driver without links.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            reactor: Reactor::new()?,
            entries: Vec::new(),
            now: None,
            scratch: Scratch::default(),
            flight: SendQueue::new(),
            dirty: VecDeque::new(),
            speaking: VecDeque::new(),
            events: VecDeque::new(),
            deaf: Vec::new(),
        })
    }

    /// Adds a link over an open stream. Its first flight leaves like any other.
    ///
    /// # Errors
    /// What the system says about watching the stream.
    pub fn add(&mut self, stream: Stream, protocol: P) -> io::Result<Key> {
        let io = Io::open(stream)?;
        self.insert_link(Link::new(protocol, io, false))
    }

    /// Opens a TCP connection without waiting. [`Event::Connected`] tells that it stands; a failure arrives as
    /// [`Event::Closed`].
    ///
    /// # Errors
    /// The system has no descriptor or memory left for a socket.
    pub fn connect(&mut self, to: SocketAddr, protocol: P) -> io::Result<Key> {
        let stream = TcpStream::connect(to).map(Stream::Tcp);
        self.add_connecting(stream, protocol)
    }

    /// As [`connect`](Self::connect), from an address of this machine; port 0 leaves the port to the system.
    ///
    /// # Errors
    /// What the system says about that address, [`ErrorKind::AddrNotAvailable`] if it is not this machine's, or that it
    /// has no descriptor or memory left for a socket.
    pub fn connect_from(&mut self, from: SocketAddr, to: SocketAddr, protocol: P) -> io::Result<Key> {
        let bound = Bound::to(from)?;
        self.add_connecting(bound.connect(to), protocol)
    }

    /// Connects to a unix socket. [`Event::Connected`] tells that it stands; a failure arrives as
    /// [`Event::Closed`].
    ///
    /// # Errors
    /// The system has no descriptor or memory left for a socket.
    pub fn connect_unix(&mut self, path: &Path, protocol: P) -> io::Result<Key> {
        let stream = UnixStream::connect(path).map(Stream::Unix);
        self.add_connecting(stream, protocol)
    }

    fn add_connecting(&mut self, stream: io::Result<Stream>, protocol: P) -> io::Result<Key> {
        match stream {
            Ok(stream) => {
                let io = Io::open(stream)?;
                self.insert_link(Link::new(protocol, io, true))
            }
            Err(error) if is_shortage(&error) => Err(error),
            Err(error) => self.insert_link(Link::stillborn(protocol, error.kind())),
        }
    }

    fn insert_link(&mut self, mut link: Link<P>) -> io::Result<Key> {
        let key = self.reactor.reserve();
        if let Err(error) = link.io.attach(&mut self.reactor, key) {
            link.io.detach(&mut self.reactor);
            self.reactor.release(key);
            return Err(error);
        }
        self.insert(key, What::Link(Box::new(link)));
        self.mark_dirty(key);
        Ok(key)
    }

    /// Accepts connections: each arrives as [`Event::Accepted`]. When descriptors run out, accepting goes on as
    /// soon as a link is closed, or after a moment.
    ///
    /// # Errors
    /// What the system says about watching the socket.
    pub fn listen(&mut self, mut listener: Listener) -> io::Result<Key> {
        let key = listener.attach(&mut self.reactor)?;
        self.insert(key, What::Listener(listener));
        Ok(key)
    }

    /// Forgets a listener, a child (which then has to be collected by somebody else), or a signal registration.
    /// Links are left alone: see [`abort`](Self::abort).
    pub fn remove(&mut self, key: Key) {
        match self.entry(key) {
            None | Some(What::Link(_)) => {}
            Some(What::Listener(_) | What::Timer | What::Process(_) | What::Signals(_)) => self.forget(key),
        }
    }

    /// Removes whatever `key` names that is not a link.
    pub(crate) fn forget(&mut self, key: Key) {
        match self.take_entry(key) {
            Some(What::Listener(mut listener)) => listener.detach(&mut self.reactor),
            Some(What::Process(mut process)) => process.detach(&mut self.reactor),
            Some(What::Signals(mut signals)) => signals.detach(&mut self.reactor),
            Some(What::Timer | What::Link(_)) | None => {}
        }
        self.reactor.release(key);
    }

    /// An application timer: [`Ready::Timer`](crate::Ready::Timer) once, then its key is gone.
    pub fn timer(&mut self, at: Instant) -> Key {
        let key = self.reactor.reserve();
        self.insert(key, What::Timer);
        self.reactor.set_timer(key, Some(at));
        key
    }

    /// Forgets an application timer. Harmless when it has fired already.
    pub fn cancel_timer(&mut self, key: Key) {
        if matches!(self.entry(key), Some(What::Timer)) {
            self.forget(key);
        }
    }

    /// Watches a source of the application's own: its readiness arrives as
    /// [`Ready::Io`](crate::Ready::Io), edge-triggered.
    ///
    /// # Errors
    /// What the system says.
    pub fn register(&mut self, source: &mut impl Source, interest: Interest) -> io::Result<Key> {
        self.reactor.register(source, interest)
    }

    /// Stops watching a source that was [registered](Self::register).
    pub fn deregister(&mut self, key: Key, source: &mut impl Source) {
        if self.entry(key).is_none() {
            self.reactor.deregister(key, source);
        }
    }

    /// A handle that ends the loop's wait from another thread: [`Ready::Woken`](crate::Ready::Woken).
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.reactor.waker()
    }

    /// A queue into this loop from other threads, which wakes it.
    #[must_use]
    pub fn mailbox<T>(&self) -> (Sender<T>, Mailbox<T>) {
        crate::mailbox::mailbox(self.waker())
    }

    /// The protocol of a link, to tell it something. What that causes leaves with the next flush.
    pub fn protocol(&mut self, key: Key) -> Option<&mut P> {
        self.mark_dirty(key);
        self.link(key).map(|link| &mut link.protocol)
    }

    /// The protocol of a link, to look at.
    #[must_use]
    pub fn peek(&self, key: Key) -> Option<&P> {
        match &self
            .entries
            .get(key.slot())?
            .as_ref()
            .filter(|entry| entry.key == key)?
            .what
        {
            What::Link(link) => Some(&link.protocol),
            What::Listener(_) | What::Timer | What::Process(_) | What::Signals(_) => None,
        }
    }

    /// Drops a link now: nothing more is flushed, no event follows.
    pub fn abort(&mut self, key: Key) -> Option<P> {
        self.link(key)?;
        let (protocol, _) = self.take_link(key)?.into_parts();
        self.events.retain(|event| event.link() != Some(key));
        Some(protocol)
    }
}

/// The table behind the keys.
impl<P: Protocol> Driver<P> {
    pub(crate) fn insert(&mut self, key: Key, what: What<P>) {
        if self.entries.len() <= key.slot() {
            self.entries.resize_with(key.slot() + 1, || None);
        }
        if let Some(entry) = self.entries.get_mut(key.slot()) {
            *entry = Some(Entry { key, what });
        }
    }

    pub(crate) fn entry(&mut self, key: Key) -> Option<&mut What<P>> {
        let entry = self
            .entries
            .get_mut(key.slot())?
            .as_mut()
            .filter(|entry| entry.key == key)?;
        Some(&mut entry.what)
    }

    pub(crate) fn take_entry(&mut self, key: Key) -> Option<What<P>> {
        self.entry(key)?;
        self.entries.get_mut(key.slot())?.take().map(|entry| entry.what)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.entries.iter().flatten().map(|entry| entry.key)
    }

    fn link(&mut self, key: Key) -> Option<&mut Link<P>> {
        match self.entry(key)? {
            What::Link(link) => Some(link),
            What::Listener(_) | What::Timer | What::Process(_) | What::Signals(_) => None,
        }
    }

    /// Takes a link out of the loop and closes its stream.
    fn take_link(&mut self, key: Key) -> Option<Box<Link<P>>> {
        let Some(What::Link(mut link)) = self.take_entry(key) else {
            return None;
        };
        link.discard(&mut self.scratch);
        link.io.detach(&mut self.reactor);
        self.reactor.release(key);
        for listener in self.deaf.drain(..) {
            self.reactor.requeue(listener);
        }
        Some(link)
    }

    fn mark_dirty(&mut self, key: Key) {
        if let Some(link) = self.link(key)
            && !std::mem::replace(&mut link.dirty, true)
        {
            self.dirty.push_back(key);
        }
    }
}

/// Whether the system has no room for one more descriptor, now: a reason to wait until another one was closed.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    error.kind() == ErrorKind::OutOfMemory
        || shortages
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl<P: Protocol> fmt::Debug for Driver<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("reactor", &self.reactor)
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> AsFd for Driver<P> {
    /// Readable when a turn would find something; for waiting in somebody else's loop.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reactor.as_fd()
    }
}
