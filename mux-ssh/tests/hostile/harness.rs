//! A client and a server that misbehaves, joined by a link of bytes without a socket and without a clock. It decides
//! when bytes pass and when nothing more will happen; what is right or wrong is for the tests.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};
use mux_ssh::client::{ChannelId, Client, ClientConfig, Event, Exec, Identity, Stdin};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{self, Authorized, Exit, Plan, Server, ServerConfig, SessionId};
use mux_ssh::wire::Writer;
use mux_ssh::{Error, Violation};

/// More than this without an end is a test that hangs.
const MAX_ROUNDS: usize = 1_000_000;
/// What a client may leave in the buffer of its link: one packet that is not whole, at the limit of what is accepted.
const MAX_LEFT: usize = 256 * 1024 + 64;

/// The user's key.
pub(crate) static USER: LazyLock<PrivateKey> = LazyLock::new(|| private_key(&Seed::generate().unwrap()));
/// A key that opens no door; in a case with several identities, all but the last are this one.
pub(crate) static OTHER: LazyLock<PrivateKey> = LazyLock::new(|| private_key(&Seed::generate().unwrap()));
/// The host's.
pub(crate) static HOST: LazyLock<Seed> = LazyLock::new(|| Seed::generate().unwrap());

/// What the server does with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Prints `hello` and a line end, returns 0.
    Hello,
    /// Says how it ends before it prints.
    StatusFirst,
    /// Prints this many bytes.
    Bulk(u64),
    /// Runs on.
    Nothing,
    /// Prints its input.
    Cat,
}

/// One client against one server.
pub(crate) struct Case {
    pub(crate) plan: Plan,
    pub(crate) server: ServerConfig,
    pub(crate) client: ClientConfig,
    pub(crate) reply: Reply,
    pub(crate) stdin: Stdin,
    /// Whether the client's owner accepts the host key.
    pub(crate) trust: bool,
    /// Whether the client's owner answers questions by itself; if not, [`Pair::answer`] does.
    pub(crate) prompt: bool,
    /// What the owner answers instead of a signature: one from another connection.
    pub(crate) replayed: Option<Bytes>,
    /// Whether the client's owner takes output.
    pub(crate) consume: bool,
    /// Bytes that arrive at a time, on either side.
    pub(crate) chunk: usize,
    /// The connection ends for the client after this many bytes.
    pub(crate) cut: Option<usize>,
}

/// What happened.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) error: Option<Error>,
    pub(crate) events: Vec<Event>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) server_events: Vec<server::Event>,
    pub(crate) server_error: Option<Error>,
    /// Round trips until the first output.
    pub(crate) rounds_to_output: Option<usize>,
    pub(crate) bytes_to_client: usize,
    pub(crate) client_says: Vec<u8>,
    /// The last signature that was made.
    pub(crate) signature: Option<Bytes>,
}

/// A case that runs.
pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) now: Instant,
    pub(crate) seen: Seen,
    pub(crate) channel: ChannelId,
    case: Case,
    to_client: BytesMut,
    to_server: BytesMut,
    unread: BytesMut,
    /// Questions that were not answered.
    questions: Vec<Event>,
    bulk: Option<(SessionId, u64)>,
    client_gone: bool,
    server_gone: bool,
    rounds: usize,
}

impl Case {
    pub(crate) fn new(plan: Plan) -> Self {
        let host = HOST.host_key().unwrap();
        let identity = Identity {
            key: USER.public().clone(),
            proven: true,
            hardware: false,
        };
        Self {
            plan,
            server: ServerConfig::new(host, Authorized::Keys(vec![USER.public().clone()])),
            client: ClientConfig {
                user: "u".to_owned(),
                identities: vec![identity],
                ..ClientConfig::default()
            },
            reply: Reply::Hello,
            stdin: Stdin::Closed,
            trust: true,
            prompt: true,
            replayed: None,
            consume: true,
            chunk: usize::MAX,
            cut: None,
        }
    }

    /// A well-behaved server.
    pub(crate) fn good() -> Self {
        Self::new(Plan::new())
    }

    pub(crate) fn server(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        change(&mut self.server);
        self
    }

    pub(crate) fn client(mut self, change: impl FnOnce(&mut ClientConfig)) -> Self {
        change(&mut self.client);
        self
    }

    /// The client asks before it signs.
    pub(crate) fn unproven(self) -> Self {
        self.client(|config| {
            config
                .identities
                .iter_mut()
                .for_each(|identity| identity.proven = false)
        })
    }

    /// The quick key exchange, where the kind does not matter.
    pub(crate) fn kex(self, name: &str) -> Self {
        self.client(|config| config.algorithms.set_kex(name).unwrap())
    }

    pub(crate) fn reply(self, reply: Reply) -> Self {
        Self { reply, ..self }
    }

    pub(crate) fn start(self) -> Pair {
        let now = Instant::now();
        let mut client = Client::new(self.client.clone());
        let exec = Exec {
            command: Bytes::from_static(b"say hello"),
            stdin: self.stdin,
            ..Exec::default()
        };
        let channel = client.exec(now, exec);
        Pair {
            channel,
            client,
            server: Server::new(Arc::new(self.server.clone()), self.plan.clone()),
            now,
            seen: Seen::default(),
            case: self,
            to_client: BytesMut::new(),
            to_server: BytesMut::new(),
            unread: BytesMut::new(),
            questions: Vec::new(),
            bulk: None,
            client_gone: false,
            server_gone: false,
            rounds: 0,
        }
    }

    /// Runs until nothing more happens, and checks what must hold in every case.
    pub(crate) fn run(self) -> Seen {
        let mut pair = self.start();
        pair.settle();
        pair.check_invariants();
        pair.seen
    }
}

impl Pair {
    /// Lets bytes pass until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let moved = self.client_to_server() | self.server_to_client();
            self.rounds += 1;
            if !moved {
                return;
            }
        }
        panic!("still busy after {MAX_ROUNDS} rounds");
    }

    /// Time passes; whatever was due happens.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.seen.error.is_none()
            && let Err(error) = self.client.handle_timeout(self.now)
        {
            self.seen.error = Some(error);
        }
        self.settle();
    }

    /// Stops or resumes taking output.
    pub(crate) fn set_consume(&mut self, consume: bool) {
        self.case.consume = consume;
    }

    pub(crate) fn check_invariants(&mut self) {
        assert!(
            self.unread.len() <= MAX_LEFT,
            "{} bytes wait in front of the client",
            self.unread.len()
        );
        if let Some(error) = &self.seen.error {
            assert_eq!(
                self.client.poll_close(),
                Some(Close::Both),
                "the link is not closed after {error:?}"
            );
            let again = self.client.handle_input(self.now, &mut BytesMut::from(&b"x"[..]));
            assert_eq!(again, Err(error.clone()), "errors are sticky");
            assert_eq!(
                self.client.open_channels(),
                0,
                "a command without a final event after {error:?}"
            );
        }
        let finals = self.seen.finals(self.channel);
        let due = usize::from(self.seen.error.is_some());
        assert!(
            (due..=1).contains(&finals),
            "{finals} final events for one command"
        );
    }

    /// Answers the questions that wait; whether there were any.
    pub(crate) fn answer(&mut self) -> bool {
        let questions = std::mem::take(&mut self.questions);
        for question in &questions {
            match question {
                Event::HostKey { id, .. } => self.client.answer_host_key(*id, self.case.trust),
                Event::Sign {
                    id,
                    algorithm,
                    data,
                    binding,
                    identity,
                } => {
                    let signed_for = payload(|w| drop_ref(w.string(&binding.session_id)));
                    assert!(data.starts_with(&signed_for), "a signature is for this session");
                    let key = if *identity + 1 < self.case.client.identities.len() {
                        &OTHER
                    } else {
                        &USER
                    };
                    let signature = self
                        .case
                        .replayed
                        .clone()
                        .or_else(|| key.sign(*algorithm, data).ok());
                    self.seen.signature.clone_from(&signature);
                    self.client.answer_signature(*id, signature);
                }
                _ => {}
            }
        }
        !questions.is_empty()
    }

    fn client_to_server(&mut self) -> bool {
        let out = transmit(&mut self.client, self.now);
        self.seen.client_says.extend_from_slice(&out);
        let mut moved = !out.is_empty();
        if !self.server_gone {
            let mut left = out;
            while !left.is_empty() {
                let chunk = left.split_to(self.case.chunk.min(left.len()));
                self.to_server.extend_from_slice(&chunk);
                self.feed_server();
            }
            self.feed_server();
            moved |= self.handle_server_events();
        }
        if self.client.poll_close().is_some() && !self.client_gone {
            self.client_gone = true;
            let _ = self.server.handle_eof(self.now);
            moved = true;
        }
        moved
    }

    fn feed_server(&mut self) {
        let fed = feed(&mut self.server, self.now, &mut self.to_server);
        self.seen.server_error = self.seen.server_error.take().or(fed.err());
    }

    fn server_to_client(&mut self) -> bool {
        self.send_bulk();
        let out = transmit(&mut self.server, self.now);
        let mut moved = !out.is_empty();
        self.to_client.extend_from_slice(&out);
        if let Some(cut) = self.case.cut {
            self.to_client
                .truncate(cut.saturating_sub(self.seen.bytes_to_client));
        }
        self.seen.bytes_to_client += self.to_client.len();
        while !self.to_client.is_empty() {
            let chunk = self.to_client.split_to(self.case.chunk.min(self.to_client.len()));
            self.unread.extend_from_slice(&chunk);
            self.feed_client();
        }
        // What was not taken before an answer is offered again after it.
        moved |= self.feed_client();
        let ended = self.server.poll_close().is_some() || self.case.cut == Some(self.seen.bytes_to_client);
        if ended && !moved && !self.server_gone {
            self.server_gone = true;
            moved = true;
            if self.seen.error.is_none() && !self.client_gone {
                self.seen.error = self.client.handle_eof(self.now).err();
            }
            self.handle_client_events();
        }
        moved
    }

    fn feed_client(&mut self) -> bool {
        let mut moved = false;
        loop {
            let before = self.unread.len();
            if self.seen.error.is_none() && before > 0 {
                self.seen.error = feed(&mut self.client, self.now, &mut self.unread).err();
            } else {
                self.unread.clear();
            }
            let handled = self.handle_client_events();
            if !handled && self.unread.len() == before {
                return moved;
            }
            moved = true;
        }
    }

    fn handle_client_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.client.poll_event() {
            any = true;
            match event {
                Event::HostKey { .. } | Event::Sign { .. } => {
                    self.questions.push(event.clone());
                    if self.case.prompt {
                        self.answer();
                    }
                }
                Event::Output {
                    channel,
                    stream,
                    ref data,
                } => {
                    self.seen.rounds_to_output.get_or_insert(self.rounds + 1);
                    match stream {
                        mux_ssh::client::StreamKind::Stdout => self.seen.stdout.extend_from_slice(data),
                        mux_ssh::client::StreamKind::Stderr => self.seen.stderr.extend_from_slice(data),
                    }
                    if self.case.consume {
                        self.client.consume(channel, stream, data.len());
                    }
                    continue;
                }
                _ => {}
            }
            self.seen.events.push(event);
        }
        any
    }

    fn handle_server_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.server.poll_event() {
            any = true;
            match &event {
                server::Event::Exec { session, .. } => self.reply(*session),
                server::Event::Stdin { session, data } => {
                    if self.case.reply == Reply::Cat {
                        self.server.stdout(*session, data.clone());
                    }
                    self.server.consume(*session, data.len());
                }
                server::Event::StdinEof { session } if self.case.reply == Reply::Cat => {
                    self.server.reply(*session, Bytes::new(), 0);
                }
                _ => {}
            }
            self.seen.server_events.push(event);
        }
        any
    }

    fn reply(&mut self, session: SessionId) {
        let hello = Bytes::from_static(b"hello\n");
        match self.case.reply {
            Reply::Hello => self.server.reply(session, hello, 0),
            Reply::StatusFirst => {
                self.server.exit(session, Exit::Status(0));
                self.server.stdout(session, hello);
                self.server.eof(session);
                self.server.close(session);
            }
            Reply::Bulk(bytes) => self.bulk = Some((session, bytes)),
            Reply::Nothing | Reply::Cat => {}
        }
    }

    fn send_bulk(&mut self) {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let Some((session, left)) = &mut self.bulk else {
            return;
        };
        while *left > 0 {
            let len = self
                .server
                .room(*session)
                .min(ZEROS.len())
                .min(usize::try_from(*left).unwrap());
            if len == 0 {
                return;
            }
            self.server.stdout(*session, Bytes::from_static(&ZEROS[..len]));
            *left -= len as u64;
        }
        let session = *session;
        self.bulk = None;
        self.server.reply(session, Bytes::new(), 0);
    }
}

impl Seen {
    /// The command ran as if nothing had been wrong.
    pub(crate) fn assert_worked(&self) {
        assert_eq!(self.error, None);
        assert_eq!(self.stdout, b"hello\n");
        assert!(
            self.events
                .iter()
                .any(|event| matches!(event, Event::ExitStatus { status: 0, .. }))
        );
        assert!(
            self.events
                .iter()
                .any(|event| matches!(event, Event::ChannelClosed { .. }))
        );
        assert_eq!(self.server_error, None, "the client made the server complain");
    }

    /// How often the server was answered with this message.
    pub(crate) fn answers(&self, number: u8) -> usize {
        let answer = server::Event::Answer { message: number };
        self.server_events
            .iter()
            .filter(|event| **event == answer)
            .count()
    }

    /// Whether the server has let the client in.
    pub(crate) fn logged_in(&self) -> bool {
        self.server_events
            .iter()
            .any(|event| matches!(event, server::Event::Authenticated { .. }))
    }

    fn finals(&self, wanted: ChannelId) -> usize {
        let is_final = |event: &&Event| match event {
            Event::ChannelClosed { channel } | Event::ChannelFailed { channel, .. } => *channel == wanted,
            _ => false,
        };
        self.events.iter().filter(is_final).count()
    }
}

/// The client ends with this error.
#[track_caller]
pub(crate) fn fails(case: Case, expected: impl Into<Error>) -> Seen {
    let seen = case.run();
    assert_eq!(seen.error, Some(expected.into()));
    seen
}

/// The client says that the server broke the protocol, in this way.
#[track_caller]
pub(crate) fn violates(plan: Plan, violation: impl Into<Violation>) {
    fails(Case::new(plan), violation.into());
}

/// The client does not mind.
#[track_caller]
pub(crate) fn works(plan: Plan) -> Seen {
    let seen = Case::new(plan).run();
    seen.assert_worked();
    seen
}

/// A payload, field by field.
pub(crate) fn payload(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut Writer::new(&mut out));
    out.freeze()
}

/// A plain packet of this length and padding, with `body` behind them.
pub(crate) fn plain_packet(length: u32, padding: u8, body: &[u8]) -> Bytes {
    payload(|w| drop_ref(w.uint32(length).byte(padding).raw(body)))
}

/// Ends a chain of fields.
pub(crate) fn drop_ref(_: &mut Writer<'_>) {}

fn private_key(seed: &Seed) -> PrivateKey {
    PrivateKey::parse(seed.to_openssh().unwrap().as_bytes(), None).unwrap()
}

fn transmit<P: Protocol>(peer: &mut P, now: Instant) -> BytesMut {
    let mut all = BytesMut::new();
    let mut out = SendQueue::new();
    // As much as a link would let wait at most, so that a flood passes piece by piece.
    while all.len() < 256 * 1024 {
        peer.poll_transmit(now, &mut out);
        if out.is_empty() {
            break;
        }
        all.extend_from_slice(&out.take(usize::MAX));
    }
    while !out.is_empty() {
        all.extend_from_slice(&out.take(usize::MAX));
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
