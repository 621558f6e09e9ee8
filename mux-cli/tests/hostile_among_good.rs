//! Servers that misbehave share one loop with a hundred that don't: nothing changes for the hundred, and every hostile one
//! ends as the table of hostile cases says. Over real sockets, with mux-core's loop and mux-ssh's client and server; the
//! hub is not needed for it.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    dead_code,
    reason = "a test fails by panicking, and looks at the events that it is about; the table has more than is used"
)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::{Driver, Event, Key, LinkError, Listener};
use mux_ssh::Error;
use mux_ssh::client::{self, Client, Exec};
use mux_ssh::server::{self, Act, Moment, Plan, Point, Server, ServerConfig};

/// A row is no test by itself here.
macro_rules! named {
    ($name:ident) => {};
}

#[path = "../../mux-ssh/tests/hostile/table/mod.rs"]
mod table;

use crate::table::Kind;
use crate::table::harness::{Case, End, Reply, USER, answers};

const GOOD: usize = 100;
/// Far beyond what all these handshakes take on a busy machine; only a loop that is held up needs it.
const PATIENCE: Duration = Duration::from_secs(120);

/// One hostile server.
struct Hostile {
    name: &'static str,
    case: Case,
}

/// The first case of every row that needs nothing but bytes over a socket.
fn rows() -> Vec<Hostile> {
    table::rows()
        .filter(|row| row.kind != Kind::Harmless)
        .filter_map(|row| {
            let case = row.cases().into_iter().next()?;
            let name = row.name;
            let over_a_socket = case.script.is_empty()
                && case.cut.is_none()
                && case.prompt
                && case.trust
                && case.consume
                && case.replayed.is_none()
                && case.answer == Some("secret");
            over_a_socket.then_some(Hostile { name, case })
        })
        .collect()
}

/// What stands for the name of a row below.
const ENDLESS: &str = "endless";

/// Floods that never end, and silence where it hurts.
fn endless() -> Vec<Hostile> {
    let flood = |payload: &'static [u8]| Act::Flood {
        payload: Bytes::from_static(payload),
        times: u32::MAX,
    };
    let plans = [
        (Moment::AuthSuccess, flood(b"\x02\0\0\0\0")),
        (Moment::AuthSuccess, flood(b"\x50\0\0\0\x01x\x01")),
        (
            Moment::AuthSuccess,
            flood(b"\x5a\0\0\0\x03x11\0\0\0\x09\0\x10\0\0\0\0\x80\0"),
        ),
        (Moment::ChannelSuccess, flood(b"\x5e\0\0\0\0\0\0\0\0")),
        (Moment::AuthSuccess, Act::NeverRead),
        (Moment::Output, Act::Stall),
    ];
    let hostile = |(moment, act)| Hostile {
        name: ENDLESS,
        case: Case::new(Plan::new().with(Point::After(moment, 1), act)).end(End::Waits),
    };
    plans.map(hostile).into()
}

/// What became of one client.
#[derive(Debug, Default, PartialEq)]
struct Told {
    output: Vec<u8>,
    status: Option<u32>,
    closed: bool,
    end: Option<Result<(), LinkError<Error>>>,
}

struct World {
    servers: Driver<Server>,
    clients: Driver<Client>,
    cases: HashMap<Key, (Plan, Arc<ServerConfig>)>,
    told: HashMap<Key, Told>,
    /// Servers of commands that print nothing.
    mute: Vec<Key>,
}

impl World {
    fn new() -> Self {
        Self {
            servers: Driver::new().unwrap(),
            clients: Driver::new().unwrap(),
            cases: HashMap::new(),
            told: HashMap::new(),
            mute: Vec::new(),
        }
    }

    fn listen(&mut self, case: &Case) -> SocketAddr {
        let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let key = self.servers.listen(Listener::Tcp(listener)).unwrap();
        let config = Arc::new(case.server.clone());
        self.cases.insert(key, (case.plan.clone(), config));
        if !matches!(case.reply, Reply::Hello | Reply::StatusFirst) {
            self.mute.push(key);
        }
        address
    }

    fn connect(&mut self, address: SocketAddr, case: &Case) -> Key {
        let mut client = Client::new(case.client.clone());
        let command = Bytes::from_static(b"say hello");
        client.exec(
            Instant::now(),
            Exec {
                command,
                ..Exec::default()
            },
        );
        let key = self.clients.connect(address, client).unwrap();
        self.told.insert(key, Told::default());
        key
    }

    fn turn(&mut self) {
        self.servers.turn(Some(Duration::ZERO)).unwrap();
        while let Some(event) = self.servers.poll_event() {
            match event {
                Event::Accepted(listener, stream) => {
                    let (plan, config) = self.cases.get(&listener).unwrap().clone();
                    let key = self.servers.add(stream, Server::new(config, plan)).unwrap();
                    if self.mute.contains(&listener) {
                        self.mute.push(key);
                    }
                }
                Event::Protocol(key, server::Event::Exec { session, .. }) if !self.mute.contains(&key) => {
                    let server = self.servers.protocol(key).unwrap();
                    server.reply(session, Bytes::from_static(b"hello\n"), 0);
                }
                _ => {}
            }
        }
        self.clients.turn(Some(Duration::from_millis(1))).unwrap();
        while let Some(event) = self.clients.poll_event() {
            match event {
                Event::Protocol(key, event) => self.handle(key, event),
                Event::Closed(key, _, result) => self.told.get_mut(&key).unwrap().end = Some(result),
                _ => {}
            }
        }
    }

    fn handle(&mut self, key: Key, event: client::Event) {
        let Some(client) = self.clients.protocol(key) else {
            return;
        };
        let told = self.told.get_mut(&key).unwrap();
        match event {
            client::Event::HostKey { id, .. } => client.answer_host_key(id, true),
            client::Event::Sign {
                id, algorithm, data, ..
            } => {
                client.answer_signature(id, USER.sign(algorithm, &data).ok());
            }
            client::Event::Prompt { id, prompt } => {
                client.answer_prompt(id, answers(&prompt, Some("secret")).as_deref());
            }
            client::Event::Output {
                channel,
                stream,
                data,
            } => {
                told.output.extend_from_slice(&data);
                client.consume(channel, stream, data.len());
            }
            client::Event::ExitStatus { status, .. } => told.status = Some(status),
            client::Event::ChannelClosed { .. } => told.closed = true,
            _ => {}
        }
    }
}

/// Whether a hostile server's client has come to its end, if it has one.
fn is_over(hostile: &Hostile, told: &Told) -> bool {
    match hostile.case.end {
        End::Fails(_) | End::FailsLike(_) => told.end.is_some(),
        End::Works => told.closed || told.end.is_some(),
        End::MayFail(_) | End::Waits | End::Lives => true,
    }
}

/// Over a socket the end of a connection may overtake what was said before it.
fn is_right(hostile: &Hostile, told: &Told) -> bool {
    match (&hostile.case.end, &told.end) {
        (End::Fails(expected), Some(Err(LinkError::Protocol(error)))) => error == expected || is_lost(error),
        (End::FailsLike(expected), Some(Err(LinkError::Protocol(error)))) => {
            expected(error) || is_lost(error)
        }
        (End::Fails(_) | End::FailsLike(_), Some(Err(LinkError::Io(_)))) => true,
        (End::Fails(_) | End::FailsLike(_), Some(Ok(())) | None) => false,
        (End::Works, end) => told.closed && end.is_none() && told.status == Some(0),
        (End::MayFail(_) | End::Waits | End::Lives, _) => true,
    }
}

fn is_lost(error: &Error) -> bool {
    matches!(
        error,
        Error::UnexpectedEof | Error::EarlyAuthRefused { .. } | Error::AuthFailed { .. }
    )
}

#[test]
fn a_hundred_good_servers_do_not_notice_the_hostile_ones() {
    let mut world = World::new();
    let hostile: Vec<Hostile> = rows().into_iter().chain(endless()).collect();
    assert!(hostile.len() > 80, "{}", hostile.len());
    let good = Case::good();
    let bad: Vec<SocketAddr> = hostile.iter().map(|bad| world.listen(&bad.case)).collect();
    let addresses: Vec<SocketAddr> = (0..GOOD).map(|_| world.listen(&good)).collect();
    // The hostile ones first, so that they are at work while the others connect.
    let bad: Vec<Key> = bad
        .into_iter()
        .zip(&hostile)
        .map(|(address, bad)| world.connect(address, &bad.case))
        .collect();
    let good: Vec<Key> = addresses
        .into_iter()
        .map(|address| world.connect(address, &good))
        .collect();

    let deadline = Instant::now() + PATIENCE;
    while !good.iter().all(|key| world.told.get(key).unwrap().closed) {
        assert!(Instant::now() < deadline, "the good ones are held up");
        world.turn();
    }
    for key in &good {
        let expected = Told {
            output: b"hello\n".to_vec(),
            status: Some(0),
            closed: true,
            end: None,
        };
        assert_eq!(world.told.get(key).unwrap(), &expected);
    }
    // What never ends has had its chance; the others come to their ends sooner without it.
    let pairs: Vec<(&Key, &Hostile)> = bad.iter().zip(&hostile).collect();
    for (key, _) in pairs.iter().filter(|(_, bad)| bad.name == ENDLESS) {
        world.clients.abort(**key);
    }
    while let Some((_, late)) = pairs
        .iter()
        .find(|(key, bad)| !is_over(bad, world.told.get(key).unwrap()))
    {
        assert!(Instant::now() < deadline, "{} comes to no end", late.name);
        world.turn();
    }
    for (key, bad) in pairs {
        let told = world.told.get(key).unwrap();
        assert!(is_right(bad, told), "{}: {told:?}", bad.name);
    }
}
