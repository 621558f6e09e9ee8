//! The client against the server role, over nothing but two byte queues: whole sessions in random pieces and orders,
//! and sessions that end at every byte. The rule behind all of it: what did run is never reported as not run.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, and looks at some events of many"
)]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Protocol, SendQueue};
use mux_ssh::Error;
use mux_ssh::algorithms::Kex;
use mux_ssh::client::{ChannelId, Client, ClientConfig, Event, Exec, Identity, Stdin};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::{self, Authorized, Exit, Plan, Server, ServerConfig};

const IDENTS: [&str; 6] = [
    "SSH-2.0-OpenSSH_9.2p1",
    "SSH-2.0-dropbear_2022.83",
    "SSH-2.0-paramiko_5.1.0",
    "SSH-2.0-AsyncSSH_2.24.1",
    "SSH-2.0-mux_0.1.0",
    "SSH-2.0-Gateway_1.0",
];

/// Keys by seed number, made once.
static KEYS: LazyLock<Vec<PrivateKey>> = LazyLock::new(|| {
    let key = |_| {
        let seed = server::key_file::Seed::generate().unwrap();
        PrivateKey::parse(seed.to_openssh().unwrap().as_bytes(), None).unwrap()
    };
    (0..2).map(key).collect()
});

static HOST: LazyLock<server::key_file::Seed> = LazyLock::new(|| server::key_file::Seed::generate().unwrap());

/// A small generator of repeatable chance (xorshift64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A client, a server and what is on its way between them.
struct World {
    client: Client,
    server: Server,
    now: Instant,
    to_server: Wire,
    to_client: Wire,
    commands: HashMap<ChannelId, Vec<u8>>,
    stdin_left: HashMap<ChannelId, usize>,
    output: HashMap<ChannelId, Vec<u8>>,
    last_words: HashMap<ChannelId, Event>,
    status: HashMap<ChannelId, u32>,
    executed: Vec<Vec<u8>>,
    error: Option<Error>,
    over: bool,
}

/// One direction: what was sent, what arrived and was not read, and where it breaks off.
#[derive(Default)]
struct Wire {
    queue: SendQueue,
    arrived: BytesMut,
    passed: usize,
    cut: Option<usize>,
}

impl Wire {
    /// Moves at most `max` bytes. Whether any moved.
    fn pass(&mut self, max: usize) -> bool {
        let max = max.min(self.cut.map_or(usize::MAX, |cut| cut - self.passed));
        if max == 0 || self.queue.is_empty() {
            return false;
        }
        let piece = self.queue.take(max);
        self.passed += piece.len();
        self.arrived.extend_from_slice(&piece);
        true
    }

    fn is_cut(&self) -> bool {
        self.cut == Some(self.passed)
    }
}

struct Setup {
    ident: &'static str,
    identities: usize,
    /// The index of the key that opens the door.
    good: usize,
    proven: bool,
    spare: bool,
    rekey_bytes: u64,
    commands: &'static [&'static str],
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            ident: IDENTS[0],
            identities: 1,
            good: 0,
            proven: true,
            spare: false,
            rekey_bytes: 1 << 30,
            commands: &["echo 10"],
        }
    }
}

impl World {
    fn new(setup: &Setup) -> Self {
        let identity = |key: &PrivateKey| Identity {
            key: key.public().clone(),
            certificate: None,
            proven: setup.proven,
            hardware: false,
        };
        let mut config = ClientConfig {
            user: "root".to_owned(),
            identities: KEYS.iter().take(setup.identities).map(identity).collect(),
            spare: setup.spare,
            ..ClientConfig::default()
        };
        config.algorithms.kex = vec![Kex::Curve25519];
        config.rekey.bytes = setup.rekey_bytes;
        let authorized = Authorized::Keys(vec![KEYS[setup.good].public().clone()]);
        let mut server = ServerConfig::new(HOST.host_key().unwrap(), authorized);
        setup.ident.clone_into(&mut server.ident);
        let mut world = Self {
            client: Client::new(config),
            server: Server::new(Arc::new(server), Plan::default()),
            now: Instant::now(),
            to_server: Wire::default(),
            to_client: Wire::default(),
            commands: HashMap::new(),
            stdin_left: HashMap::new(),
            output: HashMap::new(),
            last_words: HashMap::new(),
            status: HashMap::new(),
            executed: Vec::new(),
            error: None,
            over: false,
        };
        for command in setup.commands {
            world.exec(command);
        }
        world
    }

    fn exec(&mut self, command: &'static str) {
        let input: usize = command
            .strip_prefix("cat ")
            .map_or(0, |count| count.parse().unwrap());
        let stdin = if input > 0 { Stdin::Open } else { Stdin::Closed };
        let exec = Exec {
            command: command.into(),
            stdin,
            ..Exec::default()
        };
        let id = self.client.exec(self.now, exec);
        self.commands.insert(id, command.into());
        if input > 0 {
            self.stdin_left.insert(id, input);
        }
    }

    /// One thing happens. Whether anything did.
    fn step(&mut self, chance: &mut Chance) -> bool {
        let piece = 1 + chance.below(4096);
        match chance.below(6) {
            0 => self.to_server.pass(piece),
            1 => self.to_client.pass(piece),
            2 => self.client_turn(),
            3 => self.server_turn(),
            4 => self.feed(),
            _ if chance.below(64) == 0 => {
                self.server.start_rekey(self.now);
                true
            }
            _ => false,
        }
    }

    /// Everything that can happen happens, until nothing does.
    fn settle(&mut self) {
        loop {
            let moved = self.feed()
                | self.client_turn()
                | self.to_server.pass(usize::MAX)
                | self.server_turn()
                | self.to_client.pass(usize::MAX);
            if !moved {
                return;
            }
        }
    }

    fn feed(&mut self) -> bool {
        let mut fed = false;
        let mut done = Vec::new();
        for (&id, left) in &mut self.stdin_left {
            let count = self.client.stdin_room(id).min(*left);
            if count == 0
                || self
                    .client
                    .write_stdin(id, Bytes::from(vec![b'i'; count]))
                    .is_err()
            {
                continue;
            }
            fed = true;
            *left -= count;
            if *left == 0 {
                self.client.finish_stdin(id);
                done.push(id);
            }
        }
        self.stdin_left.retain(|id, _| !done.contains(id));
        fed
    }

    fn client_turn(&mut self) -> bool {
        let mut moved = false;
        while !self.over && self.client.wants_input() && !self.to_client.arrived.is_empty() {
            let before = self.to_client.arrived.len();
            if let Err(error) = self.client.handle_input(self.now, &mut self.to_client.arrived) {
                self.fail(error);
            }
            moved |= self.drain();
            if self.to_client.arrived.len() == before {
                break;
            }
            moved = true;
        }
        if !self.over
            && self.client.poll_timeout() == Some(self.now)
            && let Err(error) = self.client.handle_timeout(self.now)
        {
            self.fail(error);
        }
        moved |= self.drain();
        let before = self.to_server.queue.len();
        self.client.poll_transmit(self.now, &mut self.to_server.queue);
        moved |= self.drain();
        moved | (self.to_server.queue.len() != before)
    }

    fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.over = true;
    }

    fn drain(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.client.poll_event() {
            any = true;
            let last = match &event {
                Event::HostKey { id, .. } => {
                    self.client.answer_host_key(*id, true);
                    continue;
                }
                Event::Sign {
                    id,
                    identity,
                    algorithm,
                    data,
                    ..
                } => {
                    let signature = KEYS[*identity].sign(*algorithm, data).unwrap();
                    self.client.answer_signature(*id, Some(signature));
                    continue;
                }
                Event::Output {
                    channel,
                    stream,
                    data,
                } => {
                    self.client.consume(*channel, *stream, data.len());
                    self.output.entry(*channel).or_default().extend_from_slice(data);
                    *channel
                }
                Event::ExitStatus { channel, status } => {
                    self.status.insert(*channel, *status);
                    *channel
                }
                Event::ChannelFailed { channel, .. } | Event::ChannelClosed { channel } => {
                    let earlier = self.last_words.insert(*channel, event.clone());
                    assert_eq!(earlier, None, "two last words");
                    continue;
                }
                _ => continue,
            };
            assert!(
                !self.last_words.contains_key(&last),
                "{event:?} after the last word"
            );
        }
        any
    }

    fn server_turn(&mut self) -> bool {
        let mut moved = false;
        while self.server.wants_input() && !self.to_server.arrived.is_empty() {
            let before = self.to_server.arrived.len();
            let result = self.server.handle_input(self.now, &mut self.to_server.arrived);
            self.serve();
            if result.is_err() || self.to_server.arrived.len() == before {
                break;
            }
            moved = true;
        }
        self.serve();
        let before = self.to_client.queue.len();
        self.server.poll_transmit(self.now, &mut self.to_client.queue);
        moved | (self.to_client.queue.len() != before)
    }

    fn serve(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                server::Event::Exec { session, command } => {
                    let text = String::from_utf8(command.to_vec()).unwrap();
                    self.executed.push(command.to_vec());
                    let mut words = text.split(' ');
                    match (words.next(), words.next().map(str::parse::<usize>)) {
                        (Some("echo"), Some(Ok(count))) => {
                            self.server.reply(session, Bytes::from(vec![b'o'; count]), 0);
                        }
                        (Some("fail"), Some(Ok(status))) => {
                            self.server.reply(session, Bytes::new(), status as u32)
                        }
                        (Some("cat"), _) => {}
                        other => panic!("{other:?}"),
                    }
                }
                server::Event::Stdin { session, data } => {
                    self.server.consume(session, data.len());
                    self.server.stdout(session, data);
                }
                server::Event::StdinEof { session } => {
                    self.server.exit(session, Exit::Status(0));
                    self.server.eof(session);
                    self.server.close(session);
                }
                _ => {}
            }
        }
    }

    /// What did run is never reported as not run, and everyone has a last word.
    fn check_end(&mut self, context: &str) {
        let executed: HashSet<_> = self.executed.iter().collect();
        for (id, command) in &self.commands {
            let last = self
                .last_words
                .get(id)
                .unwrap_or_else(|| panic!("{context}: no last word"));
            if let Event::ChannelFailed {
                may_have_run: false, ..
            } = last
            {
                assert!(!executed.contains(command), "{context}: it did run: {last:?}");
            }
        }
    }

    fn check_success(&self, context: &str) {
        assert_eq!(self.error, None, "{context}");
        for (id, command) in &self.commands {
            assert_eq!(
                self.last_words.get(id),
                Some(&Event::ChannelClosed { channel: *id }),
                "{context}"
            );
            let text = String::from_utf8(command.clone()).unwrap();
            let (word, count) = text.split_once(' ').unwrap();
            let count: usize = count.parse().unwrap();
            let expected = match word {
                "echo" => vec![b'o'; count],
                "cat" => vec![b'i'; count],
                _ => Vec::new(),
            };
            assert_eq!(
                self.output.get(id).cloned().unwrap_or_default(),
                expected,
                "{context}"
            );
            let status = if word == "fail" { count as u32 } else { 0 };
            assert_eq!(self.status.get(id), Some(&status), "{context}");
        }
        assert_eq!(self.executed.len(), self.commands.len(), "{context}");
        assert!(self.client.is_idle(), "{context}");
    }
}

const MANY: &[&str] = &["echo 300000", "cat 200000", "fail 3", "echo 0", "cat 1"];

#[test]
fn sessions_in_random_pieces_and_orders_lose_nothing() {
    for seed in 1..=60 {
        let ident = IDENTS[seed % IDENTS.len()];
        let setup = Setup {
            ident,
            commands: MANY,
            spare: seed % 2 == 0,
            proven: seed % 3 != 0,
            ..Setup::default()
        };
        let mut world = World::new(&setup);
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ seed as u64);
        for _ in 0..2_000 {
            world.step(&mut chance);
        }
        world.settle();
        world.check_success(&format!("seed {seed}, {ident}"));
    }
}

#[test]
fn new_keys_every_few_packets_lose_nothing() {
    for ident in [IDENTS[0], IDENTS[5]] {
        let setup = Setup {
            ident,
            commands: MANY,
            rekey_bytes: 20_000,
            ..Setup::default()
        };
        let mut world = World::new(&setup);
        world.settle();
        world.check_success(ident);
    }
}

/// A session of which the client gets the first `cut` bytes, or the server does, and then the end.
fn broken(setup: &Setup, cut: usize, at_client: bool) -> World {
    let mut world = World::new(setup);
    let wire = if at_client {
        &mut world.to_client
    } else {
        &mut world.to_server
    };
    wire.cut = Some(cut);
    world.settle();
    if !world.over {
        match world.client.handle_eof(world.now) {
            Ok(()) => panic!("an end that nobody asked for is an error"),
            Err(error) => world.fail(error),
        }
    }
    world.drain();
    world.settle();
    world
}

/// Cuts sessions at every byte of either direction until one is complete.
fn check_every_cut(setup: &Setup) {
    for at_client in [true, false] {
        for cut in 0.. {
            let context = format!(
                "{} {} cut at {cut}, client {at_client}",
                setup.ident, setup.identities
            );
            let mut world = broken(setup, cut, at_client);
            world.check_end(&context);
            assert!(world.error.is_some(), "{context}");
            let wire = if at_client {
                &world.to_client
            } else {
                &world.to_server
            };
            if !wire.is_cut() {
                break;
            }
        }
    }
}

#[test]
fn a_session_that_ends_at_any_byte_ends_with_the_truth_about_its_commands() {
    check_every_cut(&Setup {
        commands: &["echo 10", "fail 1"],
        ..Setup::default()
    });
}

#[test]
fn a_login_with_a_refused_key_that_ends_at_any_byte_ends_with_the_truth() {
    check_every_cut(&Setup {
        identities: 2,
        good: 1,
        commands: &["echo 10"],
        ..Setup::default()
    });
}

#[test]
fn every_kind_of_server_ends_with_the_truth_at_many_bytes() {
    for ident in &IDENTS[1..] {
        for (identities, good) in [(1, 0), (2, 1)] {
            let setup = Setup {
                ident,
                identities,
                good,
                ..Setup::default()
            };
            for cut in (0..3000).step_by(37) {
                for at_client in [true, false] {
                    broken(&setup, cut, at_client)
                        .check_end(&format!("{ident} cut at {cut}, client {at_client}"));
                }
            }
        }
    }
}

#[test]
fn a_refused_key_runs_nothing_and_the_next_runs_it_once_where_the_server_goes_on() {
    let setup = Setup {
        identities: 2,
        good: 1,
        ..Setup::default()
    };
    let mut world = World::new(&setup);
    world.settle();
    world.check_success("refused, then accepted");
}

#[test]
fn where_the_server_does_not_go_on_a_refused_key_asks_for_one_reconnect() {
    for ident in &IDENTS[1..4] {
        let mut world = World::new(&Setup {
            ident,
            identities: 2,
            good: 1,
            ..Setup::default()
        });
        world.settle();
        assert_eq!(
            world.error,
            Some(Error::EarlyAuthRefused { identity: Some(0) }),
            "{ident}"
        );
        assert_eq!(world.executed, Vec::<Vec<u8>>::new());
        world.check_end(ident);
    }
}
