//! How a client reaches the daemon: to its socket, as the same user, and for the short questions of `mux status` and
//! `mux daemon` one channel, waited for. Decides how long that may take; `mux run` has its own loop.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::Bytes;
use mux_core::{Driver, Event as LinkEvent, LinkError, Stream};
use mux_proto::Connection;
use mux_proto::body::Reset;
use mux_proto::connection::{Config, Event, Role};
use mux_proto::error::Error;
use mux_proto::frame::NodeId;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::codec;
use super::place::{self, Place, PlaceError};

/// How long the daemon may say nothing, to a greeting or a ping: it has nothing to wait for, and a busy machine is slow.
const ANSWER: Duration = Duration::from_secs(10);

/// Why there is no daemon to talk to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoDaemon {
    /// Nobody listens.
    None,
    /// The place is not to be trusted.
    Place(PlaceError),
    /// Another user's.
    Owner(u32),
    /// It takes nobody, or does not answer: stopped, or busy beyond measure.
    Deaf,
    /// It does not want to; one line.
    Refused(String),
    /// It broke off, for this reason.
    Lost(String),
}

impl fmt::Display for NoDaemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("not running"),
            Self::Place(error) => write!(f, "socket: {error}"),
            Self::Owner(uid) => write!(f, "the socket is user {uid}'s"),
            Self::Deaf => f.write_str("it does not answer"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Lost(why) => f.write_str(why),
        }
    }
}

/// A connection to the daemon's socket, which does not block.
///
/// # Errors
/// There is none, or it can't be trusted.
pub(crate) fn reach(place: &Place) -> Result<UnixStream, NoDaemon> {
    match place.check() {
        Ok(()) => {}
        Err(PlaceError::Io(_, ErrorKind::NotFound)) => return Err(NoDaemon::None),
        Err(error) => return Err(NoDaemon::Place(error)),
    }
    let lost = |error: Errno| NoDaemon::Lost(std::io::Error::from(error).to_string());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(lost)?;
    let address = SocketAddrUnix::new(&place.socket).map_err(lost)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::NOENT | Errno::CONNREFUSED) => return Err(NoDaemon::None),
        Err(Errno::AGAIN) => return Err(NoDaemon::Deaf),
        Err(error) => return Err(lost(error)),
    }
    let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(lost)?;
    match peer.uid.as_raw() {
        uid if uid == place::uid() => Ok(UnixStream::from(socket)),
        uid => Err(NoDaemon::Owner(uid)),
    }
}

/// What a client of the daemon is made with.
pub(crate) fn config() -> Config {
    Config {
        keepalive: Some(ANSWER),
        answer_time: ANSWER,
        window: 1024 * 1024,
        ..Config::new(Role::Above)
    }
}

/// One question: the text of the answer, and a number.
///
/// # Errors
/// There is nobody to answer, or no answer.
pub(crate) fn ask(place: &Place, kind: &str, arguments: &[u8]) -> Result<(Vec<u8>, u32), NoDaemon> {
    let stream = reach(place)?;
    let lost = |error: io::Error| NoDaemon::Lost(error.to_string());
    let mut driver = Driver::<Connection>::new().map_err(lost)?;
    let now = driver.turn(Some(Duration::ZERO)).map_err(lost)?;
    let stream = Stream::Unix(mio::net::UnixStream::from_std(stream));
    let key = driver.add(stream, Connection::new(now, config())).map_err(lost)?;
    if let Some(connection) = driver.protocol(key) {
        let arguments = Bytes::copy_from_slice(arguments);
        connection
            .open(NodeId::NEIGHBOUR, kind, arguments)
            .map_err(|misuse| NoDaemon::Lost(misuse.to_string()))?;
    }
    let mut text = Vec::new();
    loop {
        while let Some(event) = driver.poll_event() {
            match event {
                LinkEvent::Protocol(_, Event::Data { channel, data, .. }) => {
                    text.extend_from_slice(&data);
                    if let Some(connection) = driver.protocol(key) {
                        connection.consume(channel, data.len());
                    }
                }
                LinkEvent::Protocol(_, said) => {
                    if let Some(answer) = answer(said)? {
                        return Ok((text, answer));
                    }
                }
                LinkEvent::Closed(_, _, result) => return Err(closed(result)),
                LinkEvent::Connected(_)
                | LinkEvent::Outgoing(_)
                | LinkEvent::Finished(_)
                | LinkEvent::Consumed(..)
                | LinkEvent::Accepted(..)
                | LinkEvent::Exited(..)
                | LinkEvent::Signal(_)
                | LinkEvent::Ready(_) => {}
            }
        }
        // Ends at the latest when the daemon has answered no ping.
        driver.turn(None).map_err(lost)?;
    }
}

/// The number at the end of an answer, or why there is none.
fn answer(said: Event) -> Result<Option<u32>, NoDaemon> {
    match said {
        Event::Result(_, body) => match codec::decode(&body) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(NoDaemon::Lost("its answer is no number".to_owned())),
        },
        Event::Reset(_, reset) => Err(NoDaemon::Refused(words(reset))),
        Event::Goodbye(goodbye) => Err(NoDaemon::Lost(goodbye.code.to_string())),
        Event::Hello(_)
        | Event::Opened { .. }
        | Event::Data { .. }
        | Event::Finished(_)
        | Event::Writable(_)
        | Event::Route(_)
        | Event::Log(_)
        | Event::Transit(_) => Ok(None),
    }
}

/// Why a channel was reset, for people.
pub(crate) fn words(reset: Reset) -> String {
    match reset.text.is_empty() {
        true => reset.code.to_string(),
        false => reset.text,
    }
}

fn closed(result: Result<(), LinkError<mux_proto::error::Error>>) -> NoDaemon {
    match result {
        Ok(()) => NoDaemon::Lost("it hung up".to_owned()),
        Err(LinkError::Protocol(Error::NoHello | Error::Silent)) => NoDaemon::Deaf,
        Err(error) => NoDaemon::Lost(error.to_string()),
    }
}
