//! What a link can be made of. Decides how each kind is read, written and half-closed; never when.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use mio::Interest;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::unix::SourceFd;
use mux_proto::SendQueue;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use crate::{Key, Reactor};

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

/// Slices of one vectored write: more than a flight has in practice, and 1 KiB of stack.
const SLICES: usize = 64;

/// An open stream as a link holds it.
#[derive(Debug)]
pub(crate) enum Io {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// The half that writes is closed by dropping it.
    Duplex {
        read: OwnedFd,
        write: Option<OwnedFd>,
        /// Both are pipes or sockets.
        are_queues: bool,
    },
    Memory,
}

/// What one write did: how much was taken of how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) count: usize,
    pub(crate) offered: usize,
}

impl Io {
    pub(crate) fn open(stream: Stream) -> io::Result<Self> {
        Ok(match stream {
            Stream::Tcp(tcp) => {
                // Some systems refuse this on a socket that the peer has already closed, which reading will tell.
                if let Err(error) = tcp.set_nodelay(true) {
                    log::debug!("TCP_NODELAY: {error}");
                }
                Self::Tcp(tcp)
            }
            Stream::Unix(unix) => Self::Unix(unix),
            Stream::Duplex(read, write) => {
                let are_queues = set_nonblocking(&read)? & set_nonblocking(&write)?;
                Self::Duplex {
                    read,
                    write: Some(write),
                    are_queues,
                }
            }
            Stream::Memory => Self::Memory,
        })
    }

    /// Registered once for everything: edge-triggered readiness is remembered by the link, so that no interest is
    /// ever changed.
    pub(crate) fn attach(&mut self, reactor: &mut Reactor, key: Key) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(tcp) => reactor.attach(key, tcp, both),
            Self::Unix(unix) => reactor.attach(key, unix, both),
            Self::Duplex { read, write, .. } => {
                reactor.attach(key, &mut SourceFd(&read.as_raw_fd()), Interest::READABLE)?;
                match write {
                    Some(write) => reactor.attach(key, &mut SourceFd(&write.as_raw_fd()), Interest::WRITABLE),
                    None => Ok(()),
                }
            }
            Self::Memory => Ok(()),
        }
    }

    /// Before it is dropped. A socket is nobody's but ours, and the system stops watching it when it is closed.
    pub(crate) fn detach(&mut self, reactor: &mut Reactor) {
        match self {
            Self::Tcp(_) | Self::Unix(_) | Self::Memory => {}
            Self::Duplex { read, write, .. } => {
                reactor.detach(&mut SourceFd(&read.as_raw_fd()));
                if let Some(write) = write {
                    reactor.detach(&mut SourceFd(&write.as_raw_fd()));
                }
            }
        }
    }

    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory)
    }

    pub(crate) fn is_socket(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Unix(_))
    }

    /// Whether a short read has emptied it and a short write has filled it, so that the system tells when that changes. Not
    /// so for terminals, which give one line at a time, and files.
    pub(crate) fn is_queue(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => true,
            Self::Duplex { are_queues, .. } => *are_queues,
            Self::Memory => false,
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.read(buffer),
            Self::Unix(unix) => unix.read(buffer),
            Self::Duplex { read, .. } => Ok(rustix::io::read(read, buffer)?),
            Self::Memory => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// One write of everything that waits, or of as many pieces as one call takes.
    pub(crate) fn write(&mut self, queue: &SendQueue) -> io::Result<Written> {
        if let Some(chunk) = queue.as_one_chunk() {
            let count = match self {
                Self::Tcp(tcp) => tcp.write(chunk)?,
                Self::Unix(unix) => unix.write(chunk)?,
                Self::Duplex {
                    write: Some(write), ..
                } => rustix::io::write(write, chunk)?,
                Self::Duplex { write: None, .. } | Self::Memory => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
            };
            return Ok(Written {
                count,
                offered: chunk.len(),
            });
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = queue.chunks_vectored(&mut slices);
        let slices = slices.get(..filled).unwrap_or_default();
        let offered = slices.iter().map(|slice| slice.len()).sum();
        let count = match self {
            Self::Tcp(tcp) => tcp.write_vectored(slices)?,
            Self::Unix(unix) => unix.write_vectored(slices)?,
            Self::Duplex {
                write: Some(write), ..
            } => rustix::io::writev(write, slices)?,
            Self::Duplex { write: None, .. } | Self::Memory => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        Ok(Written { count, offered })
    }

    /// Tells the peer that nothing more comes. That it is gone already is found by reading.
    pub(crate) fn shutdown_write(&mut self, reactor: &mut Reactor) {
        let result = match self {
            Self::Tcp(tcp) => tcp.shutdown(Shutdown::Write),
            Self::Unix(unix) => unix.shutdown(Shutdown::Write),
            Self::Duplex { write, .. } => {
                if let Some(write) = write.take() {
                    reactor.detach(&mut SourceFd(&write.as_raw_fd()));
                }
                Ok(())
            }
            Self::Memory => Ok(()),
        };
        if let Err(error) = result {
            log::trace!("half-close: {error}");
        }
    }

    /// The error that made the system report failure, if it has one.
    pub(crate) fn take_error(&self) -> Option<io::ErrorKind> {
        let error = match self {
            Self::Tcp(tcp) => tcp.take_error(),
            Self::Unix(unix) => unix.take_error(),
            Self::Duplex { .. } | Self::Memory => Ok(None),
        };
        error.unwrap_or_else(Some).map(|error| error.kind())
    }
}

/// A TCP socket with an address of ours and no peer yet.
#[derive(Debug)]
pub(crate) struct Bound(Socket);

impl Bound {
    pub(crate) fn to(from: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(from), Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&from.into())?;
        Ok(Self(socket))
    }

    /// Without waiting.
    pub(crate) fn connect(self, to: SocketAddr) -> io::Result<Stream> {
        match self.0.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
            Ok(()) | Err(_) => Ok(Stream::Tcp(TcpStream::from_std(self.0.into()))),
        }
    }
}

/// Regular files never block, and their flag is left alone: the open file may be shared. `true` for pipes and sockets.
fn set_nonblocking(fd: &OwnedFd) -> io::Result<bool> {
    let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
    if kind == FileType::RegularFile {
        return Ok(false);
    }
    let flags = fcntl_getfl(fd)?;
    if !flags.contains(OFlags::NONBLOCK) {
        fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
    }
    Ok(matches!(kind, FileType::Fifo | FileType::Socket))
}

impl Listener {
    pub(crate) fn attach(&mut self, reactor: &mut Reactor) -> io::Result<Key> {
        match self {
            Self::Tcp(tcp) => reactor.register(tcp, Interest::READABLE),
            Self::Unix(unix) => reactor.register(unix, Interest::READABLE),
        }
    }

    pub(crate) fn detach(&mut self, reactor: &mut Reactor) {
        match self {
            Self::Tcp(tcp) => reactor.detach(tcp),
            Self::Unix(unix) => reactor.detach(unix),
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(tcp) => tcp.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(unix) => unix.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}
