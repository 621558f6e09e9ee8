//! A whole client against a server that misbehaves by a plan, and the plan is the input: order, time and contents of
//! what is wrong are found by the fuzzer, encryption and all. What must hold whatever a server does is checked here.
//!
//! Input: one byte of setup, then steps, each of five bytes (kind of point, moment, occurrence, kind of act, length)
//! and as many bytes of contents.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};
use mux_ssh::Secret;
use mux_ssh::client::{
    AuthMethod, ChannelId, Client, ClientConfig, DirectTcpip, Event, Exec, Identity, Methods, Prompt,
};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{self, Act, Authorized, Moment, Plan, Point, Proofs, Server, ServerConfig};
use mux_ssh::transport::HostKey;

const MOMENTS: [Moment; 18] = [
    Moment::Ident,
    Moment::KexInit,
    Moment::KexReply,
    Moment::NewKeys,
    Moment::ExtInfo,
    Moment::ServiceAccept,
    Moment::PkOk,
    Moment::AuthFailure,
    Moment::AuthSuccess,
    Moment::OpenConfirmation,
    Moment::OpenFailure,
    Moment::ChannelSuccess,
    Moment::WindowAdjust,
    Moment::Output,
    Moment::ExitReport,
    Moment::Eof,
    Moment::ChannelClose,
    Moment::Other,
];

const IDENTS: [&str; 7] = [
    "SSH-2.0-mux_0",
    "SSH-2.0-OpenSSH_9.2",
    "SSH-2.0-dropbear_2022.83",
    "SSH-2.0-AsyncSSH_2.24.1",
    "SSH-2.0-tinyssh_20230101",
    "SSH-2.0-paramiko_5.1.0",
    "SSH-2.0-Unheard_1",
];

/// In the place of one of those: the server is a jump host, and connections through it are asked for beside the command.
const JUMP_HOST: u8 = 7;

/// Where those lead: to one that is made, one that is refused, and one about which nothing is said.
const BEHIND: [u16; 3] = [22, 23, 24];

/// More than this without an end is a hang: the longest flood takes three rounds.
const MAX_ROUNDS: usize = 2_000;

/// The same in every run, so that a finding is found again: whoever has these keys has nothing.
const USER_SEED: &str = include_str!("../seeds/key_file/ed25519");

static USER: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::parse(USER_SEED.as_bytes(), None).expect("a sound key file"));
static HOST: LazyLock<Arc<[HostKey]>> = LazyLock::new(|| {
    let seed = Seed::from_openssh(USER_SEED).expect("a sound key file");
    Arc::from([seed.host_key().expect("the library has randomness")])
});

pub(crate) fn misbehaviour(data: &[u8]) {
    let Some((&setup, steps)) = data.split_first() else {
        return;
    };
    let mut pair = Pair::new(setup, plan(steps));
    pair.settle();
    for _ in 0..4 {
        pair.pass(Duration::from_secs(60));
    }
    pair.check();
}

fn plan(mut steps: &[u8]) -> Plan {
    let mut plan = Plan::new();
    while let Some((&[point, moment, nth, act, length], rest)) = steps.split_first_chunk() {
        let (contents, rest) = rest.split_at(usize::from(length).min(rest.len()));
        steps = rest;
        let moment = MOMENTS[usize::from(moment) % MOMENTS.len()];
        let nth = u32::from(nth % 4) + 1;
        let point = match point % 3 {
            0 => Point::Before(moment, nth),
            1 => Point::After(moment, nth),
            _ => Point::OutputBytes(u64::from(nth)),
        };
        plan = plan.with(point, step(act, Bytes::copy_from_slice(contents)));
    }
    plan
}

fn step(kind: u8, contents: Bytes) -> Act {
    let first = contents.first().copied().unwrap_or(1);
    match kind % 17 {
        0 => Act::Raw(contents),
        1 | 2 => Act::Packet(contents),
        3 => Act::Flood {
            payload: contents.slice(1.min(contents.len())..),
            times: u32::from(first) * 8 + 1,
        },
        4 => Act::Drop,
        5 => Act::Lose,
        6 | 7 => Act::Replace(contents),
        8 => Act::Patch {
            from_end: usize::from(first),
            mask: contents.get(1).copied().unwrap_or(1),
        },
        9 => Act::FlipBit(usize::from(first) * 3),
        10 => Act::Stall,
        11 => Act::NeverRead,
        13 => Act::Length(number(&contents)),
        14 => Act::Padding(first),
        15 => Act::Replay,
        16 => Act::Cut(usize::from(first)),
        _ if first % 2 == 0 => Act::Close,
        _ => Act::HalfClose,
    }
}

fn number(contents: &[u8]) -> u32 {
    contents
        .first_chunk()
        .copied()
        .map_or(u32::MAX, u32::from_be_bytes)
}

/// Which server it is, or that it is a jump host.
fn kind(setup: u8) -> u8 {
    setup >> 1 & 0b111
}

fn server(setup: u8) -> ServerConfig {
    let mut config = ServerConfig::new(
        Seed::from_openssh(USER_SEED)
            .and_then(|seed| seed.host_key().ok())
            .expect("a sound key file"),
        if setup & 0b0000_0001 == 0 {
            Authorized::AnyKey
        } else {
            Authorized::Nobody
        },
    );
    config.host_keys = Arc::clone(&HOST);
    // Where no key is accepted, what somebody says is.
    config.proofs = Arc::new(Proofs::any_of(&AuthMethod::ALL));
    let kind = kind(setup);
    config.ident = IDENTS[usize::from(kind) % IDENTS.len()].to_owned();
    config.forwards = kind == JUMP_HOST;
    config
}

fn client(setup: u8) -> ClientConfig {
    let mut client = ClientConfig {
        user: "u".to_owned(),
        identities: vec![Identity {
            key: USER.public().clone(),
            certificate: None,
            proven: setup & 0b0001_0000 == 0,
            hardware: false,
        }],
        methods: Methods {
            order: AuthMethod::ALL.to_vec(),
            passwords: 2,
            ..Methods::default()
        },
        spare: setup & 0b0010_0000 != 0,
        cautious: setup & 0b0100_0000 != 0,
        host_keys: true,
        ..ClientConfig::default()
    };
    client
        .algorithms
        .set_kex("curve25519-sha256")
        .expect("this build has it");
    client
}

struct Pair {
    client: Client,
    server: Server,
    now: Instant,
    /// Commands and connections through the server, and whether each has had its last word.
    channels: Vec<(ChannelId, bool)>,
    /// The connections among them.
    ways: Vec<ChannelId>,
    error: Option<mux_ssh::Error>,
    unread: BytesMut,
    server_unread: BytesMut,
    server_gone: bool,
}

impl Pair {
    fn new(setup: u8, plan: Plan) -> Self {
        let now = Instant::now();
        let mut client = Client::new(client(setup));
        let kind = kind(setup);
        let count = if setup & 0b1000_0000 == 0 { 1 } else { 3 };
        let commands = (0..count).map(|_| {
            let exec = Exec {
                command: Bytes::from_static(b"command"),
                ..Exec::default()
            };
            client.exec(now, exec)
        });
        let mut channels: Vec<ChannelId> = commands.collect();
        let ports = BEHIND.into_iter().filter(|_| kind == JUMP_HOST);
        let ways = ports.map(|port| {
            let host = "behind".to_owned();
            client.direct_tcpip(now, DirectTcpip { host, port })
        });
        let ways: Vec<ChannelId> = ways.collect();
        channels.extend(&ways);
        Self {
            client,
            server: Server::new(Arc::new(server(setup)), plan),
            now,
            channels: channels.into_iter().map(|channel| (channel, false)).collect(),
            ways,
            error: None,
            unread: BytesMut::new(),
            server_unread: BytesMut::new(),
            server_gone: false,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.error.is_none() {
            self.error = self.client.handle_timeout(self.now).err();
        }
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let moved = self.client_to_server() | self.server_to_client();
            if !moved {
                return;
            }
        }
        panic!("still busy after {MAX_ROUNDS} rounds");
    }

    fn client_to_server(&mut self) -> bool {
        let out = transmit(&mut self.client, self.now);
        let moved = !out.is_empty();
        self.server_unread.extend_from_slice(&out);
        // A server that fails has nothing more to say; its errors are its own.
        if feed(&mut self.server, self.now, &mut self.server_unread).is_err() {
            self.server_unread.clear();
        }
        while let Some(event) = self.server.poll_event() {
            match event {
                server::Event::Exec { session, .. } => {
                    self.server.stderr(session, Bytes::from_static(b"e"));
                    self.server.reply(session, Bytes::from_static(b"hello\n"), 3);
                }
                server::Event::Stdin { session, data } => self.server.consume(session, data.len()),
                server::Event::DirectTcpip { session, port, .. } => {
                    match BEHIND.iter().position(|to| *to == port) {
                        Some(0) => {
                            self.server.accept(session);
                            self.server.stdout(session, Bytes::from_static(b"SSH-2.0-x\r\n"));
                        }
                        Some(1) => self.server.refuse(session, 2, "Connection refused"),
                        Some(_) | None => {}
                    }
                }
                server::Event::Authenticated { .. }
                | server::Event::Env { .. }
                | server::Event::StdinEof { .. }
                | server::Event::Signal { .. }
                | server::Event::Room { .. }
                | server::Event::SessionClosed { .. }
                | server::Event::Answer { .. }
                | server::Event::Disconnected { .. } => {}
            }
        }
        moved
    }

    fn server_to_client(&mut self) -> bool {
        let out = transmit(&mut self.server, self.now);
        let moved = !out.is_empty();
        self.unread.extend_from_slice(&out);
        // Answers to questions may make room for what was not taken before.
        loop {
            let before = self.unread.len();
            if self.error.is_none() {
                self.error = feed(&mut self.client, self.now, &mut self.unread).err();
            } else {
                self.unread.clear();
            }
            if !self.hear() && self.unread.len() == before {
                break;
            }
        }
        let ended = self.server.poll_close().is_some() && !moved;
        if ended && !self.server_gone {
            self.server_gone = true;
            if self.error.is_none() {
                self.error = self.client.handle_eof(self.now).err();
            }
            self.hear();
            return true;
        }
        moved
    }

    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.client.poll_event() {
            any = true;
            match event {
                Event::HostKey { id, .. } => self.client.answer_host_key(id, true),
                Event::HostKeys(keys) => self.client.prove_host_keys(keys),
                Event::Sign {
                    id, algorithm, data, ..
                } => self.client.answer_signature(id, USER.sign(algorithm, &data).ok()),
                Event::Prompt { id, prompt } => self.client.answer_prompt(id, Some(&answers(&prompt))),
                Event::Output {
                    channel,
                    stream,
                    data,
                } => {
                    assert!(!self.is_over(channel), "output behind the last word");
                    self.client.consume(channel, stream, data.len());
                }
                Event::ChannelFailed { channel, .. } | Event::ChannelClosed { channel } => {
                    assert!(!self.is_over(channel), "a second last word");
                    let known = self.channels.iter_mut().find(|(id, _)| *id == channel);
                    known.expect("a channel that there is").1 = true;
                }
                Event::AgentOpened { .. } => panic!("no agent was offered"),
                Event::Opened { channel } => {
                    // What leads through the server takes what it is given, and that ends with it.
                    if self
                        .client
                        .write_stdin(channel, Bytes::from_static(b"SSH-2.0-y\r\n"))
                        .is_ok()
                    {
                        self.client.finish_stdin(channel);
                    }
                }
                Event::Eof { channel } if self.ways.contains(&channel) => self.client.close_channel(channel),
                Event::Eof { .. }
                | Event::HostKeysProven(_)
                | Event::ExitStatus { .. }
                | Event::ExitSignal { .. }
                | Event::StdinRoom { .. }
                | Event::EnvRefused { .. }
                | Event::Stage(_)
                | Event::KeyRefused { .. }
                | Event::MethodRefused { .. }
                | Event::PartialSuccess { .. }
                | Event::PasswordExpired { .. }
                | Event::LoginUnanswered { .. }
                | Event::Banner(_)
                | Event::Greeting(_)
                | Event::Authenticated { .. }
                | Event::Learned(_)
                | Event::Disconnected { .. } => {}
            }
        }
        any
    }

    fn is_over(&self, channel: ChannelId) -> bool {
        self.channels.iter().any(|(id, over)| *id == channel && *over)
    }

    fn check(&mut self) {
        assert!(self.unread.len() <= 256 * 1024 + 64, "more than one packet waits");
        let Some(error) = self.error.clone() else { return };
        assert_eq!(self.client.poll_close(), Some(Close::Both));
        let again = self.client.handle_input(self.now, &mut BytesMut::from(&b"x"[..]));
        assert_eq!(again, Err(error), "errors are sticky");
        assert!(
            self.channels.iter().all(|(_, over)| *over),
            "a channel without a last word"
        );
    }
}

fn answers(prompt: &Prompt) -> Vec<Secret> {
    let count = match prompt {
        Prompt::Password { .. } => 1,
        Prompt::Interactive { fields, .. } => fields.len(),
    };
    vec![Secret::from("secret".to_owned()); count]
}

fn transmit<P: Protocol>(peer: &mut P, now: Instant) -> BytesMut {
    let mut all = BytesMut::new();
    let mut out = SendQueue::new();
    while all.len() < 256 * 1024 {
        peer.poll_transmit(now, &mut out);
        if out.is_empty() {
            break;
        }
        while !out.is_empty() {
            all.extend_from_slice(&out.take(usize::MAX));
        }
    }
    all
}

fn feed<P: Protocol>(peer: &mut P, now: Instant, input: &mut BytesMut) -> Result<(), P::Error> {
    while peer.wants_input() {
        let before = input.len();
        peer.handle_input(now, input)?;
        if input.len() == before {
            break;
        }
    }
    Ok(())
}
