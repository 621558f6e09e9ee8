//! The harness: one client, one scripted server, the bytes between them and a clock that only tests move.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use bytes::{Bytes, BytesMut};
use mux_proto::{Protocol, SendQueue};

use crate::algorithms::{Kex, KeyType};
use crate::client::{
    ChannelFailure, ChannelId, Client, ClientConfig, Event, Exec, Identity, QuestionId, Stdin,
};
use crate::keys::PublicKey;
use crate::message;
use crate::transport::{HostKey, Incoming, ServerTransportConfig, Transport};
use crate::wire::{Reader, Writer};
use crate::{Error, Violation};

pub(super) const OPENSSH: &str = "SSH-2.0-OpenSSH_9.2p1 Debian-2";
pub(super) const DROPBEAR: &str = "SSH-2.0-dropbear_2022.83";
pub(super) const PARAMIKO: &str = "SSH-2.0-paramiko_5.1.0";
pub(super) const ASYNCSSH: &str = "SSH-2.0-AsyncSSH_2.24.1";
pub(super) const TINYSSH: &str = "SSH-2.0-tinyssh_20230101 x4Gt";
pub(super) const UNKNOWN: &str = "SSH-2.0-Gateway_1.0";

static HOST_KEYS: LazyLock<Arc<[HostKey]>> =
    LazyLock::new(|| Arc::from([HostKey::from_ed25519_seed(&[7; 32]).unwrap()]));

/// A user's key.
pub(super) struct UserKey {
    pair: Ed25519KeyPair,
    pub(super) public: PublicKey,
}

impl UserKey {
    pub(super) fn new(seed: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let mut blob = BytesMut::new();
        Writer::new(&mut blob)
            .string("ssh-ed25519")
            .string(pair.public_key());
        Self {
            pair,
            public: PublicKey::parse(&blob).unwrap(),
        }
    }

    pub(super) fn sign(&self, data: &[u8]) -> Bytes {
        let mut blob = BytesMut::new();
        Writer::new(&mut blob)
            .string("ssh-ed25519")
            .string(self.pair.sign(data));
        blob.freeze()
    }

    pub(super) fn identity(&self, proven: bool) -> Identity {
        Identity {
            key: self.public.clone(),
            certificate: None,
            proven,
            hardware: false,
        }
    }
}

/// One connection.
pub(super) struct Pair {
    pub(super) client: Client,
    pub(super) peer: Transport,
    pub(super) now: Instant,
    /// How many bytes arrive at a time, either way.
    pub(super) step: usize,
    /// Everything that the client told.
    pub(super) events: Vec<Event>,
    pub(super) error: Option<Error>,
    /// The reason of the client's DISCONNECT.
    pub(super) goodbye: Option<u32>,
    /// The owner's keys, by identity.
    pub(super) keys: Vec<UserKey>,
    /// The owner signs and accepts host keys by itself.
    pub(super) answers: bool,
    /// The owner consumes output as it comes.
    pub(super) consumes: bool,
    /// How often the client wrote something.
    pub(super) writes: usize,
    to_client: BytesMut,
    to_peer: BytesMut,
    /// Packets that the server has read and no test has looked at.
    pub(super) received: Vec<Bytes>,
    /// Packets under the first keys before those.
    before: u32,
}

/// A client's configuration with `keys` proven keys.
pub(super) fn config(keys: &[UserKey]) -> ClientConfig {
    let mut config = ClientConfig {
        user: "root".to_owned(),
        identities: keys.iter().map(|key| key.identity(true)).collect(),
        known_host_key_types: vec![KeyType::Ed25519],
        ..ClientConfig::default()
    };
    // The cheapest exchange: none of these tests is about it.
    config.algorithms.kex = vec![Kex::Curve25519];
    config
}

pub(super) fn keys(count: u8) -> Vec<UserKey> {
    (1..=count).map(UserKey::new).collect()
}

pub(super) fn exec(command: &'static str) -> Exec {
    Exec {
        command: Bytes::from_static(command.as_bytes()),
        ..Exec::default()
    }
}

pub(super) fn open_exec(command: &'static str) -> Exec {
    Exec {
        stdin: Stdin::Open,
        ..exec(command)
    }
}

impl Pair {
    pub(super) fn new(ident: &str, config: ClientConfig, keys: Vec<UserKey>) -> Self {
        let mut server = ServerTransportConfig::new(Arc::clone(&HOST_KEYS));
        server.ident = ident.to_owned();
        Self {
            client: Client::new(config),
            peer: Transport::server(server),
            now: Instant::now(),
            step: usize::MAX,
            events: Vec::new(),
            error: None,
            goodbye: None,
            keys,
            answers: true,
            consumes: true,
            writes: 0,
            to_client: BytesMut::new(),
            to_peer: BytesMut::new(),
            received: Vec::new(),
            before: 0,
        }
    }

    /// One proven key, and nothing unusual.
    pub(super) fn simple(ident: &str) -> Self {
        Self::new(ident, config(&keys(1)), keys(1))
    }

    /// Logged in, with nothing running.
    pub(super) fn logged_in(ident: &str) -> Self {
        Self::log_in(ident, config(&keys(1)))
    }

    pub(super) fn log_in(ident: &str, config: ClientConfig) -> Self {
        let mut pair = Self::new(ident, config, keys(1));
        pair.until_auth();
        pair.say(|to| {
            to.byte(message::SERVICE_ACCEPT).string("ssh-userauth");
        });
        pair.success();
        pair.take_kinds();
        pair.events.clear();
        pair.writes = 0;
        pair
    }

    /// OpenSSH with one command that runs on channel 0 of both sides.
    pub(super) fn running(command: Exec) -> (Self, ChannelId) {
        let mut pair = Self::logged_in(OPENSSH);
        let id = pair.exec(command);
        pair.confirm(0, 0);
        pair.reply(0, true);
        pair.take_kinds();
        pair.events.clear();
        (pair, id)
    }

    pub(super) fn exec(&mut self, exec: Exec) -> ChannelId {
        let id = self.client.exec(self.now, exec);
        self.run();
        id
    }

    /// Runs until the server has read the first request of the login.
    pub(super) fn until_auth(&mut self) {
        self.run();
        assert!(
            self.kinds().contains(&message::USERAUTH_REQUEST),
            "{:?} {:?}",
            self.kinds(),
            self.error
        );
    }

    /// Moves bytes until nobody has anything left to say.
    pub(super) fn run(&mut self) {
        for _ in 0..1000 {
            let moved = self.flight() | self.answer();
            if !moved {
                return;
            }
        }
        panic!("the two never come to rest");
    }

    /// Whatever the client wants to send goes to the server. Whether there was anything.
    pub(super) fn flight(&mut self) -> bool {
        self.drain_events();
        let mut out = SendQueue::new();
        let mut any = false;
        loop {
            self.client.poll_transmit(self.now, &mut out);
            if out.is_empty() {
                break;
            }
            any = true;
            while !out.is_empty() {
                self.to_peer.extend_from_slice(&out.take(usize::MAX));
            }
        }
        self.writes += usize::from(any);
        self.drain_events();
        self.peer_reads();
        any
    }

    fn peer_reads(&mut self) {
        let bytes = self.to_peer.split();
        let mut input = BytesMut::new();
        for piece in bytes.chunks(self.step.min(bytes.len().max(1))) {
            input.extend_from_slice(piece);
            loop {
                match self.peer.handle_input(self.now, &mut input) {
                    Ok(None) => break,
                    Ok(Some(Incoming::Packet(payload))) => self.received.push(payload),
                    Ok(Some(Incoming::ExtInfo(_))) => self.before += 1,
                    Ok(Some(_)) => {}
                    Err(Error::Disconnected { code, .. }) => {
                        self.goodbye = Some(code);
                        return;
                    }
                    Err(error) => panic!("the client broke the protocol: {error:?}"),
                }
            }
        }
        assert!(input.is_empty());
    }

    /// Whatever the server wants to send goes to the client. Whether there was anything.
    pub(super) fn answer(&mut self) -> bool {
        let mut out = SendQueue::new();
        self.peer.poll_transmit(self.now, &mut out);
        let mut any = false;
        while !out.is_empty() {
            any = true;
            let bytes = out.take(usize::MAX);
            self.deliver(&bytes);
            self.peer.poll_transmit(self.now, &mut out);
        }
        any
    }

    /// Bytes arrive at the client.
    pub(super) fn deliver(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.step.min(bytes.len().max(1))) {
            self.to_client.extend_from_slice(piece);
            self.offer();
        }
    }

    /// Offers what has arrived, as a link does.
    pub(super) fn offer(&mut self) {
        while self.client.wants_input() {
            let before = self.to_client.len();
            if let Err(error) = self.client.handle_input(self.now, &mut self.to_client) {
                self.error.get_or_insert(error);
                self.drain_events();
                return;
            }
            self.drain_events();
            if self.to_client.len() == before {
                return;
            }
        }
    }

    /// What arrived and was not read.
    pub(super) fn unread(&self) -> usize {
        self.to_client.len()
    }

    pub(super) fn drain_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match &event {
                Event::HostKey { id, .. } if self.answers => self.client.answer_host_key(*id, true),
                Event::Sign {
                    id, identity, data, ..
                } if self.answers => {
                    let signature = self.keys[*identity].sign(data);
                    self.client.answer_signature(*id, Some(signature));
                }
                Event::Output {
                    channel,
                    stream,
                    data,
                } if self.consumes => {
                    self.client.consume(*channel, *stream, data.len());
                }
                _ => {}
            }
            self.events.push(event);
        }
    }

    pub(super) fn question(&self) -> QuestionId {
        let asked = self.events.iter().rev().find_map(|event| match event {
            Event::Sign { id, .. } | Event::HostKey { id, .. } => Some(*id),
            _ => None,
        });
        asked.unwrap()
    }

    /// Time passes, in one step, and whoever is due is called.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        if self.client.poll_timeout().is_some_and(|due| due <= self.now)
            && let Err(error) = self.client.handle_timeout(self.now)
        {
            self.error.get_or_insert(error);
        }
        self.drain_events();
        self.run();
    }

    pub(super) fn eof(&mut self) {
        if let Err(error) = self.client.handle_eof(self.now) {
            self.error.get_or_insert(error);
        }
        self.drain_events();
    }

    /// The numbers of the messages that the server has read.
    pub(super) fn kinds(&self) -> Vec<u8> {
        self.received.iter().map(|payload| payload[0]).collect()
    }

    /// Like [`Self::kinds`], and forgets them.
    pub(super) fn take_kinds(&mut self) -> Vec<u8> {
        let kinds = self.kinds();
        self.before += u32::try_from(kinds.len()).unwrap();
        self.received.clear();
        kinds
    }

    /// The fields of the last message of this number that the server has read.
    pub(super) fn last(&self, number: u8) -> Reader<'_> {
        let payload = self.received.iter().rev().find(|payload| payload[0] == number);
        Reader::new(&payload.expect("the client has sent it")[1..])
    }

    /// The sequence number of the first message of this number that no test has taken.
    pub(super) fn sequence_of(&self, number: u8) -> u32 {
        let place = self
            .received
            .iter()
            .position(|payload| payload[0] == number)
            .unwrap();
        self.before + u32::try_from(place).unwrap()
    }

    /// The server sends a message, and the two come to rest.
    pub(super) fn say(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        self.peer.send(write);
        self.run();
    }

    pub(super) fn success(&mut self) {
        self.say(|to| {
            to.byte(message::USERAUTH_SUCCESS);
        });
    }

    pub(super) fn failure(&mut self, methods: &str, partial: bool) {
        self.say(|to| {
            to.byte(message::USERAUTH_FAILURE)
                .string(methods)
                .boolean(partial);
        });
    }

    pub(super) fn accept_service(&mut self) {
        self.say(|to| {
            to.byte(message::SERVICE_ACCEPT).string("ssh-userauth");
        });
    }

    /// PK_OK for the key of this seed.
    pub(super) fn pk_ok(&mut self, seed: u8) {
        let key = UserKey::new(seed);
        self.say(|to| {
            to.byte(message::USERAUTH_PK_OK)
                .string("ssh-ed25519")
                .string(key.public.blob());
        });
    }

    pub(super) fn confirm(&mut self, ours: u32, number: u32) {
        self.confirm_with(ours, number, 2 << 20, 32 << 10);
    }

    pub(super) fn confirm_with(&mut self, ours: u32, number: u32, window: u32, packet: u32) {
        self.say(|to| {
            to.byte(message::CHANNEL_OPEN_CONFIRMATION)
                .uint32(ours)
                .uint32(number)
                .uint32(window)
                .uint32(packet);
        });
    }

    pub(super) fn refuse(&mut self, ours: u32) {
        self.say(|to| {
            to.byte(message::CHANNEL_OPEN_FAILURE)
                .uint32(ours)
                .uint32(2)
                .string("open failed")
                .string("");
        });
    }

    pub(super) fn reply(&mut self, ours: u32, success: bool) {
        let number = if success {
            message::CHANNEL_SUCCESS
        } else {
            message::CHANNEL_FAILURE
        };
        self.say(|to| {
            to.byte(number).uint32(ours);
        });
    }

    pub(super) fn data(&mut self, ours: u32, data: &[u8]) {
        self.say(|to| {
            to.byte(message::CHANNEL_DATA).uint32(ours).string(data);
        });
    }

    pub(super) fn stderr(&mut self, ours: u32, kind: u32, data: &[u8]) {
        self.say(|to| {
            to.byte(message::CHANNEL_EXTENDED_DATA)
                .uint32(ours)
                .uint32(kind)
                .string(data);
        });
    }

    pub(super) fn adjust(&mut self, ours: u32, bytes: u32) {
        self.say(|to| {
            to.byte(message::CHANNEL_WINDOW_ADJUST).uint32(ours).uint32(bytes);
        });
    }

    pub(super) fn exit_status(&mut self, ours: u32, status: u32) {
        self.say(|to| {
            to.byte(message::CHANNEL_REQUEST)
                .uint32(ours)
                .string("exit-status")
                .boolean(false)
                .uint32(status);
        });
    }

    /// EOF or CLOSE.
    pub(super) fn tell(&mut self, number: u8, ours: u32) {
        self.say(|to| {
            to.byte(number).uint32(ours);
        });
    }

    pub(super) fn unimplemented(&mut self, sequence: u32) {
        self.say(|to| {
            to.byte(message::UNIMPLEMENTED).uint32(sequence);
        });
    }

    /// All output of a channel, both streams together.
    pub(super) fn output(&self, id: ChannelId) -> Vec<u8> {
        let output = self.events.iter().filter_map(|event| match event {
            Event::Output { channel, data, .. } if *channel == id => Some(data.to_vec()),
            _ => None,
        });
        output.flatten().collect()
    }

    /// The final event of a channel; there is exactly one, and nothing follows it.
    pub(super) fn last_word(&self, id: ChannelId) -> &Event {
        let about = |event: &&Event| match event {
            Event::Output { channel, .. }
            | Event::Opened { channel }
            | Event::Eof { channel }
            | Event::ExitStatus { channel, .. }
            | Event::ExitSignal { channel, .. }
            | Event::StdinRoom { channel }
            | Event::EnvRefused { channel, .. }
            | Event::ChannelFailed { channel, .. }
            | Event::ChannelClosed { channel } => *channel == id,
            _ => false,
        };
        let finals = self
            .events
            .iter()
            .filter(about)
            .filter(|event| is_final(event))
            .count();
        assert_eq!(finals, 1, "{:?}", self.events);
        self.events
            .iter()
            .rfind(about)
            .filter(|event| is_final(event))
            .expect("something follows the last word")
    }

    /// The channel failed in this way.
    pub(super) fn assert_failed(&self, id: ChannelId, reason: ChannelFailure, may_have_run: bool) {
        assert_eq!(
            *self.last_word(id),
            Event::ChannelFailed {
                channel: id,
                reason,
                may_have_run
            }
        );
    }

    pub(super) fn assert_violation(&self, violation: impl Into<Violation>) {
        assert_eq!(self.error, Some(Error::Violation(violation.into())));
        assert_eq!(self.goodbye, Some(message::disconnect::PROTOCOL_ERROR));
    }

    pub(super) fn assert_healthy(&self) {
        assert_eq!(self.error, None);
        assert!(self.client.poll_close().is_none());
    }

    /// Whether this event was told.
    pub(super) fn told(&self, event: &Event) -> bool {
        self.events.contains(event)
    }
}

fn is_final(event: &Event) -> bool {
    matches!(event, Event::ChannelFailed { .. } | Event::ChannelClosed { .. })
}
