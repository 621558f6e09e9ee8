//! Entry points for fuzz targets: what a server says above the transport, as payloads, and what an owner does meanwhile.
//! A panic, a hang, a command without exactly one last word, or one more word behind it is the finding.
//!
//! Input: one byte of setup, then messages, each behind a length of two bytes. Messages that begin with 255, which is
//! no message of a service, are the owner's doing.

use std::collections::HashMap;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::channels::Channels;
use super::session::Session;
use super::{
    AuthMethod, ChannelId, ClientConfig, Event, Exec, Identity, Methods, Prompt, SessionBinding, Stdin,
};
use crate::Secret;
use crate::keys::PublicKey;
use crate::message::{SERVICE_ACCEPT, UNIMPLEMENTED, USERAUTH_SUCCESS};
use crate::transport::Family;
use crate::wire::{Reader, Writer};

const FAMILIES: [Family; 7] = [
    Family::OpenSsh,
    Family::Dropbear,
    Family::AsyncSsh,
    Family::TinySsh,
    Family::Paramiko,
    Family::Mux,
    Family::Unknown,
];

/// The first byte of what the owner does.
const OWNER: u8 = 255;

/// The login, with a command that waits for it.
pub fn auth(now: Instant, data: &[u8]) {
    let Some((&setup, data)) = data.split_first() else {
        return;
    };
    let mut world = World::new(now, setup);
    world.exec(b"command", setup & 1 == 0);
    world.begin();
    world.run(data);
    world.end();
}

/// The connection, with the login behind it.
pub fn channel(now: Instant, data: &[u8]) {
    let Some((&setup, data)) = data.split_first() else {
        return;
    };
    let mut world = World::new(now, setup & 0b1000_1111);
    world.exec(b"command", setup & 1 == 0);
    world.begin();
    let mut accept = BytesMut::new();
    Writer::new(&mut accept)
        .byte(SERVICE_ACCEPT)
        .string("ssh-userauth");
    world.say(&accept);
    world.say(&[USERAUTH_SUCCESS]);
    world.run(data);
    world.end();
}

struct World {
    session: Session,
    now: Instant,
    sequence: u32,
    /// Commands, and whether each has had its last word.
    commands: HashMap<ChannelId, bool>,
    /// Times that somebody was asked.
    asked: u32,
    over: bool,
}

impl World {
    fn new(now: Instant, setup: u8) -> Self {
        let identity = |seed: u8| Identity {
            key: key(seed),
            certificate: None,
            proven: setup & 0b0001_0000 == 0,
            hardware: setup & 0b0010_0000 != 0,
        };
        let mut session = Session::new(ClientConfig {
            identities: vec![identity(1), identity(2)],
            methods: Methods {
                order: AuthMethod::ALL.to_vec(),
                passwords: 3,
                ..Methods::default()
            },
            spare: setup & 0b1000_0000 != 0,
            cautious: setup & 0b0100_0000 != 0,
            host_keys: true,
            ..ClientConfig::default()
        });
        if let Some(&family) = FAMILIES.get(usize::from(setup >> 1 & 0b111)) {
            session.meet(family);
        }
        Self {
            session,
            now,
            sequence: 0,
            commands: HashMap::new(),
            asked: 0,
            over: false,
        }
    }

    fn channels(&mut self) -> &mut Channels {
        &mut self.session.channels
    }

    fn exec(&mut self, command: &[u8], open: bool) {
        let stdin = if open { Stdin::Open } else { Stdin::Closed };
        let env = vec![(Bytes::from_static(b"A"), Bytes::from_static(b"1"))];
        let exec = Exec {
            command: Bytes::copy_from_slice(command),
            env,
            stdin,
        };
        let id = self.session.channels.exec(exec, &mut self.session.events);
        assert!(self.commands.insert(id, false).is_none(), "an id twice");
    }

    fn begin(&mut self) {
        let binding = SessionBinding {
            session_id: Bytes::from_static(&[7; 32]),
            host_key: Bytes::new(),
            signature: Bytes::new(),
        };
        self.over = self.session.begin_login(binding).is_err();
        self.settle();
    }

    fn run(&mut self, mut data: &[u8]) {
        while let Some((length, rest)) = data.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
            let (message, rest) = rest.split_at(length);
            data = rest;
            match message.split_first() {
                _ if self.over => return,
                None => {}
                Some((&OWNER, action)) => self.act(action),
                Some(_) => self.say(message),
            }
        }
    }

    fn say(&mut self, message: &[u8]) {
        if message.first() == Some(&UNIMPLEMENTED) {
            let mut reader = Reader::new(message);
            let sequence = reader.byte().and_then(|_| reader.uint32());
            sequence
                .into_iter()
                .for_each(|sequence| self.session.unimplemented(sequence));
        } else if !self.over {
            let payload = Bytes::copy_from_slice(message);
            self.over = self.session.handle(self.now, &payload).is_err();
        }
        self.settle();
    }

    fn act(&mut self, action: &[u8]) {
        let Some((&kind, rest)) = action.split_first() else {
            return;
        };
        let place = rest.first().copied().map_or(0, usize::from);
        let mut ids: Vec<ChannelId> = self.commands.keys().copied().collect();
        ids.sort();
        let id = ids.get(place % ids.len().max(1)).copied();
        match (kind % 7, id) {
            (0, _) if self.commands.len() < 64 => self.exec(rest, place % 2 == 0),
            (1, Some(id)) => self.session.channels.close(id, &mut self.session.events),
            (2, Some(id)) => {
                if let Some(channel) = self.channels().owned(id) {
                    channel.push_signal("TERM");
                }
            }
            (3, Some(id)) => {
                if let Some(channel) = self
                    .channels()
                    .owned(id)
                    .filter(|channel| channel.stdin.room() > 0)
                {
                    channel.stdin.push(Bytes::from(vec![0; place * 100]));
                }
            }
            (4, Some(id)) => {
                if let Some(channel) = self.channels().owned(id) {
                    channel.stdin.finish();
                }
            }
            (5, Some(id)) => {
                let max = self.channels().max_window();
                if let Some(channel) = self.channels().owned(id) {
                    channel.window.consume(place * 1000, max);
                }
            }
            _ => {
                self.now += std::time::Duration::from_millis(100);
                let now = self.now;
                self.channels().opening.handle_timeout(now);
            }
        }
        self.settle();
    }

    /// Events are taken, questions answered and packets sent until nothing is left.
    fn settle(&mut self) {
        loop {
            while let Some(event) = self.session.events.pop() {
                self.hear(event);
            }
            if self.over || self.session.next_packet(self.sequence).is_none() {
                break;
            }
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    fn hear(&mut self, event: Event) {
        let (channel, last) = match event {
            Event::Sign { id, .. } => {
                let mut signature = BytesMut::new();
                Writer::new(&mut signature).string("ssh-ed25519").string([0; 64]);
                if let Some(auth) = self.session.auth() {
                    auth.answer(id, Some(&signature));
                }
                self.over |= self.session.advance().is_err();
                return;
            }
            Event::Prompt { id, prompt } => {
                self.asked += 1;
                let count = match prompt {
                    Prompt::Password { .. } => 1,
                    Prompt::Interactive { fields, .. } => fields.len(),
                };
                // Now and then nobody knows an answer, or one too few.
                let answers = vec![Secret::from("x".to_owned()); count - usize::from(self.asked % 5 == 4)];
                if let Some(auth) = self.session.auth() {
                    auth.answer_prompt(id, (self.asked % 5 != 3).then_some(&answers));
                }
                self.over |= self.session.advance().is_err();
                return;
            }
            Event::HostKeys(keys) => return self.session.host_keys.ask(keys),
            Event::Output { channel, data, .. } => {
                assert!(!data.is_empty());
                (channel, false)
            }
            // No agent was offered, so that there is no such command.
            Event::AgentOpened { channel }
            | Event::Opened { channel }
            | Event::Eof { channel }
            | Event::ExitStatus { channel, .. }
            | Event::ExitSignal { channel, .. }
            | Event::StdinRoom { channel }
            | Event::EnvRefused { channel, .. } => (channel, false),
            Event::ChannelFailed { channel, .. } | Event::ChannelClosed { channel } => (channel, true),
            Event::Stage(_)
            | Event::HostKey { .. }
            | Event::HostKeysProven(_)
            | Event::KeyRefused { .. }
            | Event::MethodRefused { .. }
            | Event::PartialSuccess { .. }
            | Event::PasswordExpired { .. }
            | Event::LoginUnanswered { .. }
            | Event::Banner(_)
            | Event::Greeting(_)
            | Event::Authenticated { .. }
            | Event::Learned(_)
            | Event::Disconnected { .. } => return,
        };
        let over = self
            .commands
            .get_mut(&channel)
            .expect("an event about a command that there is");
        assert!(!*over, "a word after the last");
        *over = last;
    }

    fn end(mut self) {
        self.session.connection_lost();
        while let Some(event) = self.session.events.pop() {
            self.hear(event);
        }
        assert!(
            self.commands.values().all(|&over| over),
            "a command without a last word"
        );
        assert_eq!(self.session.channels.owed(), 0);
    }
}

/// An Ed25519 key that nobody holds; which bytes it has matters to no one here.
fn key(fill: u8) -> PublicKey {
    let mut blob = BytesMut::new();
    Writer::new(&mut blob).string("ssh-ed25519").string([fill; 32]);
    PublicKey::parse(&blob).expect("any 32 bytes are an Ed25519 key to the parser")
}
