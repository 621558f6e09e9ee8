//! Servers that misbehave share one loop with a hundred that don't: nothing changes for the hundred. Over real sockets,
//! with mux-core's loop and mux-ssh's client and server; the hub is not needed for it.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and looks at the events that it is about"
)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::{Driver, Event, Key, LinkError, Listener};
use mux_ssh::client::{self, Client, ClientConfig, Exec, Identity};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{self, Act, Authorized, Moment, Plan, Point, Server, ServerConfig};

const GOOD: usize = 100;
/// Far beyond what a hundred handshakes take on a busy machine; only a loop that is held up needs it.
const PATIENCE: Duration = Duration::from_secs(60);

fn hostile() -> Vec<Plan> {
    let before = |moment, act| Plan::new().with(Point::Before(moment, 1), act);
    let after = |moment, act| Plan::new().with(Point::After(moment, 1), act);
    let flood = |payload: &'static [u8]| Act::Flood {
        payload: Bytes::from_static(payload),
        times: u32::MAX,
    };
    let noise = || Act::Raw(Bytes::from(vec![0x5a; 300_000]));
    vec![
        before(Moment::Ident, Act::Stall),
        before(Moment::Ident, Act::Close),
        before(Moment::Ident, noise()),
        before(Moment::KexInit, noise()),
        before(Moment::KexReply, Act::Stall),
        before(Moment::KexReply, Act::Close),
        before(Moment::KexReply, Act::Patch { from_end: 0, mask: 1 }),
        before(Moment::ServiceAccept, noise()),
        before(Moment::ServiceAccept, Act::FlipBit(77)),
        before(Moment::AuthSuccess, Act::NeverRead),
        after(Moment::AuthSuccess, flood(b"\x02\0\0\0\0")),
        after(Moment::AuthSuccess, flood(b"\x50\0\0\0\x01x\x01")),
        after(
            Moment::AuthSuccess,
            flood(b"\x5a\0\0\0\x03x11\0\0\0\x09\0\x10\0\0\0\0\x80\0"),
        ),
        after(Moment::ChannelSuccess, flood(b"\x5e\0\0\0\0\0\0\0\0")),
        after(Moment::ChannelSuccess, Act::Close),
        after(Moment::Output, Act::HalfClose),
        after(Moment::Output, Act::Stall),
    ]
}

/// What became of one client.
#[derive(Debug, Default, PartialEq)]
struct Told {
    output: Vec<u8>,
    status: Option<u32>,
    closed: bool,
    end: Option<Result<(), LinkError<mux_ssh::Error>>>,
}

struct World {
    servers: Driver<Server>,
    clients: Driver<Client>,
    plans: HashMap<Key, Plan>,
    config: Arc<ServerConfig>,
    user: PrivateKey,
    told: HashMap<Key, Told>,
}

impl World {
    fn new() -> Self {
        let seed = Seed::generate().unwrap();
        let host = Seed::generate().unwrap().host_key().unwrap();
        Self {
            servers: Driver::new().unwrap(),
            clients: Driver::new().unwrap(),
            plans: HashMap::new(),
            config: Arc::new(ServerConfig::new(host, Authorized::AnyKey)),
            user: PrivateKey::parse(seed.to_openssh().unwrap().as_bytes(), None).unwrap(),
            told: HashMap::new(),
        }
    }

    fn listen(&mut self, plan: Plan) -> SocketAddr {
        let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let key = self.servers.listen(Listener::Tcp(listener)).unwrap();
        self.plans.insert(key, plan);
        address
    }

    fn connect(&mut self, address: SocketAddr) -> Key {
        let identity = Identity {
            key: self.user.public().clone(),
            proven: true,
            hardware: false,
        };
        let mut client = Client::new(ClientConfig {
            user: "u".to_owned(),
            identities: vec![identity],
            ..ClientConfig::default()
        });
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
                    let plan = self.plans.get(&listener).unwrap().clone();
                    self.servers
                        .add(stream, Server::new(Arc::clone(&self.config), plan))
                        .unwrap();
                }
                Event::Protocol(key, server::Event::Exec { session, .. }) => {
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
                client.answer_signature(id, self.user.sign(algorithm, &data).ok());
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

#[test]
fn a_hundred_good_servers_do_not_notice_the_hostile_ones() {
    let mut world = World::new();
    let plans = hostile();
    let bad: Vec<SocketAddr> = plans.iter().map(|plan| world.listen(plan.clone())).collect();
    let good: Vec<SocketAddr> = (0..GOOD).map(|_| world.listen(Plan::new())).collect();
    // The hostile ones first, so that they are at work while the others connect.
    let bad: Vec<Key> = bad.into_iter().map(|address| world.connect(address)).collect();
    let good: Vec<Key> = good.into_iter().map(|address| world.connect(address)).collect();

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
    for (key, plan) in bad.iter().zip(&plans) {
        let end = &world.told.get(key).unwrap().end;
        assert!(
            !matches!(end, Some(Ok(()))),
            "{plan:?} ended as if nothing had been wrong"
        );
    }
}
