//! One command on one server through a real event loop, and everything that came of it. It behaves as an owner of a
//! client is told to: where the client asks for another connection, it makes one; nothing is sent twice.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::{Driver, Event, Key, LinkError};
use mux_proto::{Protocol, SendQueue};
use mux_ssh::Error;
use mux_ssh::client::{self, ChannelId, Client, ClientConfig, Exec, Identity, Stdin};
use mux_ssh::keys::PrivateKey;
use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Verdict};

use crate::keys;
use crate::servers::Server;
use crate::told::{End, Told};

/// Longer than anybody is silent on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);
/// A command and how to reach it.
pub(crate) struct Visit<'a> {
    server: &'a Server,
    known: KnownHosts,
    pub(crate) config: ClientConfig,
    keys: Vec<PrivateKey>,
}

impl<'a> Visit<'a> {
    /// With the key that every server lets in, which may sign at once.
    pub(crate) fn new(server: &'a Server) -> Self {
        let port = server.address.port();
        let known: String = server
            .host_keys
            .iter()
            .map(|key| format!("[127.0.0.1]:{port} {}\n", key.trim()))
            .collect();
        let known = KnownHosts::parse([("known_hosts", known.as_bytes())]);
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid())
            .unwrap()
            .unwrap();
        let config = ClientConfig {
            user: user.name,
            known_host_key_types: known.key_types(&mut Memo::default(), &host(server.address)).types,
            spare: true,
            ..ClientConfig::default()
        };
        let visit = Self {
            server,
            known,
            config,
            keys: Vec::new(),
        };
        visit.with_key("user", "ed25519", true)
    }

    /// Without any key.
    pub(crate) fn without_keys(mut self) -> Self {
        self.keys.clear();
        self.config.identities.clear();
        self
    }

    /// And this key, which is offered after the others.
    pub(crate) fn with_key(mut self, owner: &str, name: &str, proven: bool) -> Self {
        let key = keys::private(owner, name);
        self.config.identities.push(Identity {
            key: key.public().clone(),
            certificate: None,
            proven,
            hardware: false,
        });
        self.keys.push(key);
        self
    }

    /// Runs a command to its end, with this as its standard input.
    pub(crate) fn run(mut self, command: &str, input: &Bytes) -> Told {
        let mut detours = Vec::new();
        loop {
            let mut told = self.connect(command, input);
            let Some(End::Failed {
                may_have_run, error, ..
            }) = &told.end
            else {
                told.detours = detours;
                return told;
            };
            let may_have_run = *may_have_run;
            let again = match error {
                _ if told.unanswered.is_some() && !self.config.cautious => {
                    self.be_cautious(None);
                    self.config.doubted = told.unanswered.filter(|_| may_have_run);
                    true
                }
                Some(Error::GuessRejected) => {
                    self.config.memory = None;
                    true
                }
                Some(Error::EarlyAuthRefused { identity }) => {
                    self.be_cautious(*identity);
                    true
                }
                _ => false,
            };
            // One detour for each reason; a second would be a loop.
            if !again || detours.len() >= 2 {
                told.detours = detours;
                return told;
            }
            assert!(
                !may_have_run || self.config.doubted.is_some(),
                "{told:?}\n{}",
                self.server.log()
            );
            detours.extend(error.clone());
        }
    }

    fn be_cautious(&mut self, refused: Option<usize>) {
        self.config.cautious = true;
        if let Some(refused) = refused {
            self.config.identities.remove(refused);
            self.keys.remove(refused);
        }
        for identity in &mut self.config.identities {
            identity.proven = false;
        }
    }

    fn connect(&self, command: &str, input: &Bytes) -> Told {
        let mut client = Client::new(self.config.clone());
        let exec = Exec {
            command: command.to_owned().into(),
            env: Vec::new(),
            stdin: if input.is_empty() {
                Stdin::Closed
            } else {
                Stdin::Open
            },
        };
        let channel = client.exec(Instant::now(), exec);
        let mut driver = Driver::new().unwrap();
        let key = driver.connect(self.server.address, client).unwrap();
        let mut call = Call {
            visit: self,
            driver,
            key,
            channel,
            input: input.clone(),
            told: Told::new(),
        };
        call.feed();
        let mut progress = Instant::now();
        loop {
            match call.drain() {
                Drained::Over => break,
                Drained::Something => progress = Instant::now(),
                Drained::Nothing => assert!(
                    progress.elapsed() < PATIENCE,
                    "nothing for {PATIENCE:?}: {:?}\n{}",
                    call.told,
                    self.server.log()
                ),
            }
            call.driver.turn(Some(PATIENCE)).unwrap();
        }
        call.told.first_flight = self.first_flight();
        call.told
    }

    /// Packets that leave before anything is read. Asked of a client of its own: the link's has often read before it
    /// is looked at.
    fn first_flight(&self) -> u64 {
        let mut client = Client::new(self.config.clone());
        client.poll_transmit(Instant::now(), &mut SendQueue::new());
        client.stats().packets_sent
    }
}

fn host(address: SocketAddr) -> HostId {
    HostId::new("127.0.0.1", address.port())
}

/// What has happened since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drained {
    Nothing,
    Something,
    /// The connection is over.
    Over,
}

/// A connection of a visit.
struct Call<'v, 's> {
    visit: &'v Visit<'s>,
    driver: Driver<Client>,
    key: Key,
    channel: ChannelId,
    /// What is left of it.
    input: Bytes,
    told: Told,
}

impl Call<'_, '_> {
    fn client(&mut self) -> &mut Client {
        self.driver.protocol(self.key).unwrap()
    }

    fn drain(&mut self) -> Drained {
        let mut drained = Drained::Nothing;
        while let Some(event) = self.driver.poll_event() {
            drained = Drained::Something;
            match event {
                Event::Protocol(_, event) => self.handle(event),
                Event::Closed(_, mut client, result) => {
                    self.told.counters = client.stats();
                    self.close(&mut client, result.err());
                    return Drained::Over;
                }
                Event::Connected(_)
                | Event::Outgoing(_)
                | Event::Finished(_)
                | Event::Consumed(..)
                | Event::Accepted(..)
                | Event::Exited(..)
                | Event::Signal(_)
                | Event::Ready(_) => {}
            }
        }
        drained
    }

    fn close(&mut self, client: &mut Client, error: Option<LinkError<Error>>) {
        client.connection_lost();
        while let Some(event) = client.poll_event() {
            self.last_words(event);
        }
        let lost = match error {
            None => return,
            Some(LinkError::Protocol(error)) => error,
            // The system's word for the same.
            Some(LinkError::Io(_)) => Error::UnexpectedEof,
        };
        if let Some(End::Failed { error, .. }) = &mut self.told.end {
            *error = Some(lost);
        }
    }

    fn last_words(&mut self, event: client::Event) {
        if let client::Event::ChannelFailed {
            reason, may_have_run, ..
        } = event
        {
            self.told.end = Some(End::Failed {
                reason,
                may_have_run,
                error: None,
            });
        } else if let client::Event::LoginUnanswered { identity } = event {
            self.told.unanswered = Some(identity);
        }
    }

    fn handle(&mut self, event: client::Event) {
        match event {
            client::Event::HostKey { id, key, .. } => {
                self.told.before_host_key = self.client().stats().packets_sent;
                let host = host(self.visit.server.address);
                let verdict = self.visit.known.lookup(&mut Memo::default(), &host, &key);
                assert!(matches!(verdict, Verdict::Known(_)), "{verdict:?}");
                self.told.host_key = Some(key);
                self.client().answer_host_key(id, true);
            }
            client::Event::Sign {
                id,
                identity,
                algorithm,
                data,
                ..
            } => {
                let key = self.visit.keys.get(identity).unwrap();
                let signature = key.sign(algorithm, &data).unwrap();
                self.client().answer_signature(id, Some(signature));
            }
            client::Event::AgentOpened { .. } => {}
            client::Event::Learned(memory) => self.told.memory = Some(memory),
            client::Event::KeyRefused { identity } => self.told.refused.push(identity),
            client::Event::Authenticated { identity } => self.told.accepted = identity,
            client::Event::Output {
                channel,
                stream,
                data,
            } => {
                match stream {
                    client::StreamKind::Stdout => self.told.stdout.push(&data),
                    client::StreamKind::Stderr => self.told.stderr.push(&data),
                }
                self.client().consume(channel, stream, data.len());
            }
            client::Event::StdinRoom { .. } => self.feed(),
            client::Event::ExitStatus { status, .. } => self.told.end = Some(End::Status(status)),
            client::Event::ExitSignal { signal, .. } => self.told.end = Some(End::Signal(signal)),
            client::Event::ChannelClosed { .. } => {
                self.told.end.get_or_insert(End::Closed);
                self.client().disconnect(11, "done");
            }
            client::Event::LoginUnanswered { .. } => self.last_words(event),
            client::Event::ChannelFailed { .. } => {
                self.last_words(event);
                // Where the connection lives on, nobody else will end it.
                self.client().disconnect(11, "done");
            }
            client::Event::Stage(_)
            | client::Event::Banner(_)
            | client::Event::Prompt { .. }
            | client::Event::MethodRefused { .. }
            | client::Event::PartialSuccess { .. }
            | client::Event::PasswordExpired { .. }
            | client::Event::Greeting(_)
            | client::Event::Opened { .. }
            | client::Event::Eof { .. }
            | client::Event::EnvRefused { .. }
            | client::Event::HostKeys(_)
            | client::Event::HostKeysProven(_)
            | client::Event::Disconnected { .. } => {}
        }
    }

    /// Hands over as much standard input as there is room for.
    fn feed(&mut self) {
        if self.input.is_empty() {
            return;
        }
        let channel = self.channel;
        let client = self.driver.protocol(self.key).unwrap();
        let room = client.stdin_room(channel).min(self.input.len());
        client.write_stdin(channel, self.input.split_to(room)).unwrap();
        if self.input.is_empty() {
            client.finish_stdin(channel);
        }
    }
}
