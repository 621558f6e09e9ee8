//! A client and a server that misbehaves, joined by a link of bytes without a socket and without a clock. It decides
//! when bytes pass and when nothing more will happen; what is right or wrong says the table.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_proto::{Close, Protocol, SendQueue};
use mux_ssh::client::{
    ChannelFailure, ChannelId, Client, ClientConfig, Event, Exec, Identity, Prompt, Stdin, StreamKind,
};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{self, Authorized, Exit, Plan, Server, ServerConfig, SessionId};
use mux_ssh::wire::Writer;
use mux_ssh::{Error, Secret, Violation};

/// More than this without an end is a test that hangs.
const MAX_ROUNDS: usize = 1_000_000;
/// What one case may take of a processor, server and all. The longest takes a second without optimisation.
const MOST_WORK: Duration = Duration::from_secs(20);
/// Calls of the client that a case may take beside those for the bytes that arrive.
const MAX_STEPS: usize = 2_000;
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

/// What the owner of either side does once nothing moves any more.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// The server wants new keys.
    Rekey,
    /// Time passes.
    Pass(Duration),
    /// The client's owner answers what it was asked.
    Answer,
    /// The client's owner takes the first window of output and from now on all of it.
    Consume,
    /// The client's owner gives so much input, as there is room for it.
    Input(usize),
    /// The client's owner gives input until there is no more room.
    InputUntilFull,
    /// No more input follows.
    InputEnds,
    /// The client's owner closes the channel of its command.
    CloseChannel,
    /// The client's owner gives another command.
    Exec(Bytes),
    /// The server sends this packet so many times.
    Send(Bytes, usize),
}

/// How a case must end.
#[derive(Clone)]
pub(crate) enum End {
    /// The command ran as if nothing had been wrong.
    Works,
    /// With this error.
    Fails(Error),
    /// With an error of this kind, where chance decides which: what noise says once it is decrypted.
    FailsLike(fn(&Error) -> bool),
    /// Without an error or with one of this kind.
    MayFail(fn(&Error) -> bool),
    /// Without an error and without any end: how long is waited is the owner's business.
    Waits,
    /// Without an error; what became of the command is looked at by [`Case::also`].
    Lives,
}

/// One client against one server.
#[derive(Clone)]
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
    /// What is said to every question of a login; `None`: nobody is there to ask.
    pub(crate) answer: Option<&'static str>,
    /// Whether the client's owner takes output.
    pub(crate) consume: bool,
    /// Whether the server gives room back for the input that it was sent.
    pub(crate) hoards: bool,
    /// Bytes that arrive at a time, on either side.
    pub(crate) chunk: usize,
    /// The connection ends for the client after this many bytes.
    pub(crate) cut: Option<usize>,
    /// What happens when nothing moves any more, one after the other.
    pub(crate) script: Vec<Turn>,
    /// How it must end.
    pub(crate) end: End,
    /// What must hold besides.
    also: Option<fn(&mut Pair)>,
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
    /// How often the client was called.
    pub(crate) steps: usize,
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
    taken_input: usize,
}

impl Case {
    pub(crate) fn new(plan: Plan) -> Self {
        let host = HOST.host_key().unwrap();
        let identity = Identity {
            key: USER.public().clone(),
            certificate: None,
            proven: true,
            hardware: false,
        };
        Self {
            plan,
            server: ServerConfig::new(host, Authorized::Keys(vec![USER.public().clone()])),
            client: ClientConfig {
                user: "u".to_owned(),
                identities: vec![identity],
                host_keys: true,
                ..ClientConfig::default()
            },
            reply: Reply::Hello,
            stdin: Stdin::Closed,
            trust: true,
            prompt: true,
            replayed: None,
            answer: Some("secret"),
            consume: true,
            hoards: false,
            chunk: usize::MAX,
            cut: None,
            script: Vec::new(),
            end: End::Works,
            also: None,
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

    /// The client cuts ciphers down to this one, and behind a plus sign to this way to authenticate.
    pub(crate) fn cipher(self, name: &str) -> Self {
        let (cipher, mac) = name
            .split_once('+')
            .map_or((name, None), |(cipher, mac)| (cipher, Some(mac)));
        self.client(|config| {
            config.algorithms.set_ciphers(cipher).unwrap();
            mac.into_iter()
                .for_each(|mac| config.algorithms.set_macs(mac).unwrap());
        })
    }

    pub(crate) fn ident(self, ident: &str) -> Self {
        self.server(|config| config.ident = ident.to_owned())
    }

    pub(crate) fn chunk(self, chunk: usize) -> Self {
        Self { chunk, ..self }
    }

    pub(crate) fn script(self, script: impl IntoIterator<Item = Turn>) -> Self {
        let script = script.into_iter().collect();
        Self { script, ..self }
    }

    pub(crate) fn end(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// The client ends with this error.
    pub(crate) fn fails(self, error: impl Into<Error>) -> Self {
        self.end(End::Fails(error.into()))
    }

    /// The client says that the server broke the protocol, in this way.
    pub(crate) fn violates(self, violation: impl Into<Violation>) -> Self {
        self.fails(violation.into())
    }

    /// Another thing that must hold.
    pub(crate) fn also(self, also: fn(&mut Pair)) -> Self {
        assert!(self.also.is_none(), "one is enough");
        let also = Some(also);
        Self { also, ..self }
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
            taken_input: 0,
        }
    }

    /// Runs until nothing more happens.
    pub(crate) fn play(self) -> Pair {
        let mut pair = self.start();
        pair.settle();
        for turn in pair.case.script.clone() {
            pair.take_turn(turn);
            pair.settle();
        }
        pair
    }

    /// Runs, and checks the end and what must hold in every case.
    #[track_caller]
    pub(crate) fn check(self) {
        let (end, also) = (self.end.clone(), self.also);
        let started = thread_time();
        let mut pair = self.play();
        let work = thread_time() - started;
        assert!(work <= MOST_WORK, "{work:?} of work");
        pair.check_invariants();
        pair.check_end(&end);
        if let Some(also) = also {
            also(&mut pair);
        }
    }
}

impl Pair {
    /// Lets bytes pass until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        assert!(
            self.settle_within(MAX_ROUNDS),
            "still busy after {MAX_ROUNDS} rounds"
        );
    }

    /// Lets bytes pass so many times at most; whether nothing moves any more.
    pub(crate) fn settle_within(&mut self, rounds: usize) -> bool {
        for _ in 0..rounds {
            let moved = self.client_to_server() | self.server_to_client();
            self.rounds += 1;
            if !moved {
                return true;
            }
        }
        false
    }

    /// The client, and what its link has read and it has not taken.
    pub(crate) fn into_client(self) -> (Client, BytesMut) {
        (self.client, self.unread)
    }

    fn take_turn(&mut self, turn: Turn) {
        match turn {
            Turn::Rekey => self.server.start_rekey(self.now),
            Turn::Pass(time) => self.pass(time),
            Turn::Answer => assert!(self.answer(), "nothing was asked"),
            Turn::Consume => {
                self.case.consume = true;
                let taken = self.seen.stdout.len() + self.seen.stderr.len();
                self.client.consume(self.channel, StreamKind::Stdout, taken);
            }
            Turn::Input(len) => {
                let rest = self.give_input(len);
                assert_eq!(rest, 0, "no room for input after everything was delivered");
            }
            Turn::InputUntilFull => drop(self.give_input(usize::MAX)),
            Turn::InputEnds => self.client.finish_stdin(self.channel),
            Turn::CloseChannel => self.client.close_channel(self.channel),
            Turn::Exec(command) => {
                let exec = Exec {
                    command,
                    ..Exec::default()
                };
                self.client.exec(self.now, exec);
            }
            Turn::Send(packet, times) => (0..times).for_each(|_| self.server.send_packet(&packet)),
        }
    }

    /// Time passes; whatever was due happens.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.seen.error.is_none()
            && let Err(error) = self.client.handle_timeout(self.now)
        {
            self.seen.error = Some(error);
        }
    }

    /// Returns what there was no room for.
    fn give_input(&mut self, mut len: usize) -> usize {
        while len > 0 {
            let room = self.client.stdin_room(self.channel).min(len);
            if room == 0 {
                break;
            }
            self.client
                .write_stdin(self.channel, vec![b'x'; room].into())
                .unwrap();
            self.taken_input += room;
            len -= room;
            self.settle();
        }
        len
    }

    /// Input that the client has taken from its owner.
    pub(crate) fn taken_input(&self) -> usize {
        self.taken_input
    }

    #[track_caller]
    fn check_end(&self, end: &End) {
        let error = self.seen.error.as_ref();
        match end {
            End::Works => self.seen.assert_worked(),
            End::Fails(expected) => assert_eq!(error, Some(expected)),
            End::FailsLike(expected) => assert!(error.is_some_and(expected), "{error:?}"),
            End::MayFail(expected) => assert!(error.is_none_or(expected), "{error:?}"),
            End::Waits => {
                assert_eq!(error, None);
                assert_eq!(self.seen.finals(self.channel), 0, "{:?}", self.seen.events);
            }
            End::Lives => assert_eq!((error, &self.seen.server_error), (None, &None)),
        }
    }

    fn check_invariants(&mut self) {
        // One call a packet, one a piece of input and some more: never a number that the server chooses.
        let most = MAX_STEPS + 2 * self.seen.bytes_to_client + 2 * self.taken_input;
        assert!(
            self.seen.steps <= most,
            "{} steps for {} bytes",
            self.seen.steps,
            self.seen.bytes_to_client
        );
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
                Event::Prompt { id, prompt } => {
                    let answers = answers(prompt, self.case.answer);
                    self.client.answer_prompt(*id, answers.as_deref());
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
        // What the client does not read stays with the server, as it would on a socket.
        let reads = self.client.wants_input() || self.seen.error.is_some();
        let out = match reads || self.unread.is_empty() {
            true => transmit(&mut self.server, self.now),
            false => BytesMut::new(),
        };
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
            self.seen.steps += 1;
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
            self.seen.steps += 1;
            match event {
                Event::HostKey { .. } | Event::Sign { .. } | Event::Prompt { .. } => {
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
                        StreamKind::Stdout => self.seen.stdout.extend_from_slice(data),
                        StreamKind::Stderr => self.seen.stderr.extend_from_slice(data),
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
                    if !self.case.hoards {
                        self.server.consume(*session, data.len());
                    }
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

    /// The last word about a command that failed: why, and whether it may have run.
    pub(crate) fn failure(&self) -> Option<(ChannelFailure, bool)> {
        self.events.iter().find_map(|event| match event {
            Event::ChannelFailed {
                reason, may_have_run, ..
            } => Some((reason.clone(), *may_have_run)),
            _ => None,
        })
    }

    /// How many events are like this.
    pub(crate) fn count(&self, like: fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| like(event)).count()
    }

    /// How often the server was asked to run something.
    pub(crate) fn execs(&self) -> usize {
        let is_exec = |event: &&server::Event| matches!(event, server::Event::Exec { .. });
        self.server_events.iter().filter(is_exec).count()
    }

    fn finals(&self, wanted: ChannelId) -> usize {
        let is_final = |event: &&Event| match event {
            Event::ChannelClosed { channel } | Event::ChannelFailed { channel, .. } => *channel == wanted,
            _ => false,
        };
        self.events.iter().filter(is_final).count()
    }
}

/// Time on this thread's own clock: others may use the machine meanwhile.
pub(crate) fn thread_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
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

/// This answer to every question.
pub(crate) fn answers(prompt: &Prompt, answer: Option<&str>) -> Option<Vec<Secret>> {
    let count = match prompt {
        Prompt::Password { .. } => 1,
        Prompt::Interactive { fields, .. } => fields.len(),
    };
    answer.map(|text| vec![Secret::from(text.to_owned()); count])
}

/// Ends a chain of fields.
pub(crate) fn drop_ref(_: &mut Writer<'_>) {}

fn private_key(seed: &Seed) -> PrivateKey {
    PrivateKey::parse(seed.to_openssh().unwrap().as_bytes(), None).unwrap()
}

pub(crate) fn transmit<P: Protocol>(peer: &mut P, now: Instant) -> BytesMut {
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

pub(crate) fn feed<P: Protocol>(peer: &mut P, now: Instant, input: &mut BytesMut) -> Result<(), P::Error> {
    while peer.wants_input() {
        let before = input.len();
        peer.handle_input(now, input)?;
        if input.len() == before {
            break;
        }
    }
    Ok(())
}
