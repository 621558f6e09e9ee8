//! What a link can be made of. Decides how each kind is read, written and half-closed; never when.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The byte stream under a link.
///
/// Not `Box<dyn Read + Write>`: the kinds differ in how they are half-closed, in what a short read means and in
/// whether they have a descriptor at all.
#[derive(Debug)]
pub enum Stream {
    /// A TCP connection. `TCP_NODELAY` is set when it is added: output is already gathered into flights.
    Tcp(TcpStream),
    /// A unix socket, or one end of a socketpair.
    Unix(UnixStream),
    /// A pair of descriptors, the first to read, the second to write: pipes, a terminal, regular files.
    ///
    /// They must be the application's own: the loop sets `O_NONBLOCK`, which is shared with everyone who holds the
    /// same open file. For inherited descriptors see [`stdio`](crate::stdio).
    Duplex(OwnedFd, OwnedFd),
    /// No descriptor: the application delivers input and takes output. See
    /// [`Driver::deliver`](crate::Driver::deliver).
    Memory,
}

/// A socket that accepts.
#[derive(Debug)]
pub enum Listener {
    /// Accepts [`Stream::Tcp`].
    Tcp(TcpListener),
    /// Accepts [`Stream::Unix`].
    Unix(UnixListener),
}
