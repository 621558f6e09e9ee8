//! What the hub needs of the loop that moves its bytes. The real one drives sockets, the one of the tests a simulated
//! network; the hub cannot tell them apart.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mux_core::LinkError;
use mux_ssh::Client;
use mux_ssh::client::ChannelId;
use mux_ssh::keys::Certificate;

use super::{Likeness, Request, StreamKind};

/// The connections of a hub.
pub trait Links {
    /// Names a link. Never used again for another one.
    type Key: Copy + Eq + Hash + Debug;

    /// Starts to connect, from this address of ours if there is one; [`LinkEvent::Connected`] or
    /// [`LinkEvent::Closed`] follows.
    ///
    /// # Errors
    /// The attempt could not even be started.
    fn connect(
        &mut self,
        to: SocketAddr,
        from: Option<SocketAddr>,
        client: Client,
    ) -> Result<Self::Key, NoLink>;

    /// Adds a link whose bytes a channel of another one carries (RFC 4254, section 7.2): it stands at once, ends with
    /// that channel, and ends that channel. [`LinkEvent::Client`] and one [`LinkEvent::Closed`] follow.
    ///
    /// # Errors
    /// There is no such carrier any more.
    fn ride(&mut self, carrier: Self::Key, channel: ChannelId, client: Client) -> Result<Self::Key, NoLink>;

    /// Starts a process that is the connection; [`LinkEvent::Connected`] and the like follow.
    ///
    /// # Errors
    /// The process could not be started.
    fn proxy(&mut self, command: &str, client: Client) -> Result<Self::Key, NoLink>;

    /// Runs the command in a shell on this machine, or through the system's `ssh`; [`LinkEvent::Output`] and one
    /// [`LinkEvent::Exited`] follow.
    ///
    /// # Errors
    /// The process could not be started.
    fn spawn(&mut self, request: &Request) -> Result<Self::Key, NoLink>;

    /// The client on a link that exists. What it has to say is sent when the loop comes round.
    fn client(&mut self, key: Self::Key) -> Option<&mut Client>;

    /// Gives back `count` bytes of a local command's output.
    fn consume(&mut self, key: Self::Key, stream: StreamKind, count: usize);

    /// Connects the agent that listens on `socket` with a channel that the server has opened to it; what is said on the
    /// channel from now on is between those two. One that can't be had closes the channel.
    fn forward_agent(&mut self, key: Self::Key, channel: ChannelId, socket: &str);

    /// Sends a signal to the process group of a local command.
    fn kill(&mut self, key: Self::Key, signal: Kill);

    /// How many bytes a local command's input takes now; [`LinkEvent::Room`] follows once there is more room.
    fn local_room(&mut self, key: Self::Key) -> usize;

    /// Gives a local command bytes to read; none: that was all.
    fn local_write(&mut self, key: Self::Key, data: Bytes);

    /// A connection that nobody uses, is logged in and alike; it belongs to whoever asked.
    fn take_kept(&mut self, _like: &Likeness) -> Option<Self::Key> {
        None
    }

    /// Takes a connection that nobody uses any more, for whoever is alike. False: nobody keeps any.
    fn keep(&mut self, _kept: Kept<Self::Key>) -> bool {
        false
    }

    /// Drops a link now, and kills the process if it is one. No event follows.
    fn abort(&mut self, key: Self::Key);
}

/// A connection that is logged in and without a command.
#[derive(Clone, Debug)]
pub struct Kept<K> {
    /// Its link.
    pub key: K,
    /// Whom it may serve.
    pub like: Likeness,
    /// What people call it: `user@host:port`.
    pub name: String,
    /// The certificate with which it was made: it does not outlive that.
    pub certificate: Option<Arc<Certificate>>,
    /// How long the TCP handshake took, which is a round trip.
    pub rtt: Option<Duration>,
}

/// Why a link could not even be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLink {
    /// This process may have no more descriptors, now: when another link has ended, it may.
    Descriptors,
    /// This user may have no more processes, now.
    Processes,
    /// No connection can start from the address that it is to start from.
    Source(ErrorKind),
    /// The directory for the log and the socket of a process can't be made.
    Directory(ErrorKind),
    /// Anything else, which waiting does not mend.
    Io(ErrorKind),
}

impl NoLink {
    /// Whether it is ours that is lacking, and comes back as other links end.
    pub(super) fn is_shortage(self) -> bool {
        match self {
            Self::Descriptors | Self::Processes => true,
            Self::Source(_) | Self::Directory(_) | Self::Io(_) => false,
        }
    }
}

impl fmt::Display for NoLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors => f.write_str("too many open files; raise ulimit -n or lower -f"),
            Self::Processes => f.write_str("too many processes; raise ulimit -u or lower -f"),
            Self::Source(ErrorKind::AddrNotAvailable) => f.write_str("no address of this machine"),
            Self::Directory(kind) => write!(
                f,
                "no directory for its log and its socket can be made ({kind}); set TMPDIR to a place where one can"
            ),
            Self::Source(kind) | Self::Io(kind) => fmt::Display::fmt(kind, f),
        }
    }
}

/// How hard a local command is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
    /// Not the process but what it runs on its server: [`KILL_LINE`](super::KILL_LINE) over the same connection.
    /// [`LinkEvent::KillerOver`] follows if it could be tried.
    Remote,
}

/// What happened on a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// The TCP connection stands.
    Connected,
    /// A process that is the connection has written this on its standard error: one line, not yet safe to print.
    ProxySaid(String),
    /// The client says this.
    Client(mux_ssh::client::Event),
    /// The link is gone: the last event of its key.
    Closed(Result<(), LinkError<mux_ssh::Error>>),
    /// A local command has read some of what it was given.
    Room,
    /// A local command wrote something.
    Output(StreamKind, Bytes),
    /// The system's `ssh` wrote this into its log.
    Log {
        /// The number of the process, which nobody else's lines have.
        pid: u32,
        /// Part of the log.
        data: Bytes,
    },
    /// What [`Kill::Remote`] started has ended.
    KillerOver,
    /// A local command has ended and all its output was delivered: the last event of its key.
    Exited {
        /// Its exit status, unless a signal ended it.
        rc: Option<i32>,
        /// The number of the signal that ended it.
        signal: Option<i32>,
        /// Bytes that it was given to read and that had not left.
        unsent: usize,
    },
}
