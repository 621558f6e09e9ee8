//! Connections to servers whose keys are known. Answers what a client asks while it logs in; decides nothing about
//! commands.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ArgMatches;
use mux_core::{Driver, Event, Key};
use mux_ssh::client::{self, Client, ClientConfig, Identity};
use mux_ssh::keys::PrivateKey;
use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Verdict};

/// A server, and what it is called.
pub(crate) struct Server {
    pub(crate) name: String,
    id: HostId,
    address: SocketAddr,
}

pub(crate) struct Links {
    driver: Driver<Client>,
    pub(crate) servers: Vec<Server>,
    user: String,
    key: PrivateKey,
    known: KnownHosts,
    memo: Memo,
    /// Which server is behind a key.
    connected: HashMap<Key, usize>,
}

impl Links {
    pub(crate) fn new(options: &ArgMatches) -> io::Result<Self> {
        let file = |name: &str| {
            let path = options.get_one::<PathBuf>(name).expect("clap requires it");
            read(path)
        };
        let hosts = String::from_utf8(file("hosts")?).map_err(io::Error::other)?;
        let known = file("known-hosts")?;
        Ok(Self {
            driver: Driver::new()?,
            servers: hosts.lines().map(server).collect::<io::Result<_>>()?,
            user: options.get_one::<String>("user").cloned().unwrap_or_default(),
            key: PrivateKey::parse(&file("key")?, None).map_err(io::Error::other)?,
            known: KnownHosts::parse([("known_hosts", known.as_slice())]),
            memo: Memo::default(),
            connected: HashMap::new(),
        })
    }

    /// Starts a connection, which gets `prepare`d before its first flight.
    pub(crate) fn connect(&mut self, server: usize, prepare: impl FnOnce(&mut Client)) -> io::Result<Key> {
        let to = self.servers.get(server).expect("the caller counts servers");
        // The only key there is may sign at once, which saves a round trip.
        let identity = Identity {
            key: self.key.public().clone(),
            certificate: None,
            proven: true,
            hardware: false,
        };
        let mut client = Client::new(ClientConfig {
            user: self.user.clone(),
            known_host_key_types: self.known.key_types(&mut self.memo, &to.id).types,
            identities: vec![identity],
            spare: true,
            ..ClientConfig::default()
        });
        prepare(&mut client);
        let key = self.driver.connect(to.address, client)?;
        self.connected.insert(key, server);
        Ok(key)
    }

    pub(crate) fn client(&mut self, key: Key) -> Option<&mut Client> {
        self.driver.protocol(key)
    }

    pub(crate) fn turn(&mut self, left: Duration) -> io::Result<Instant> {
        self.driver.turn(Some(left))
    }

    /// The next thing that a client says about its commands.
    pub(crate) fn poll(&mut self) -> io::Result<Option<(Key, client::Event)>> {
        while let Some(event) = self.driver.poll_event() {
            match event {
                Event::Protocol(
                    key,
                    client::Event::HostKey {
                        id, key: host_key, ..
                    },
                ) => {
                    let server = self.connected.get(&key).and_then(|at| self.servers.get(*at));
                    let known = server.is_some_and(|server| {
                        let verdict = self.known.lookup(&mut self.memo, &server.id, &host_key);
                        matches!(verdict, Verdict::Known(_))
                    });
                    if let Some(client) = self.driver.protocol(key) {
                        client.answer_host_key(id, known);
                    }
                }
                Event::Protocol(
                    key,
                    client::Event::Sign {
                        id, algorithm, data, ..
                    },
                ) => {
                    let signature = self.key.sign(algorithm, &data).ok();
                    if let Some(client) = self.driver.protocol(key) {
                        client.answer_signature(id, signature);
                    }
                }
                Event::Protocol(key, said) => return Ok(Some((key, said))),
                Event::Closed(key, _, result) => self.closed(key, result.err())?,
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
        Ok(None)
    }

    /// Says goodbye. What the link has to say after that does not matter.
    pub(crate) fn leave(&mut self, key: Key) {
        self.connected.remove(&key);
        if let Some(client) = self.driver.protocol(key) {
            client.disconnect(BY_APPLICATION, "");
        }
    }

    fn closed(&self, key: Key, error: Option<impl ToString>) -> io::Result<()> {
        let server = self.connected.get(&key).and_then(|at| self.servers.get(*at));
        let Some(Server { name, .. }) = server else {
            return Ok(());
        };
        let error = error.map_or_else(|| "closed".to_owned(), |error| error.to_string());
        Err(io::Error::other(format!("{name}: {error}")))
    }
}

/// RFC 4253 §11.1.
const BY_APPLICATION: u32 = 11;

fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

fn server(line: &str) -> io::Result<Server> {
    let mut words = line.split_whitespace();
    let mut word = || words.next().ok_or(io::ErrorKind::InvalidData);
    let (name, ip, port) = (word()?, word()?, word()?);
    let port = port.parse().map_err(io::Error::other)?;
    Ok(Server {
        name: name.to_owned(),
        id: HostId::new(ip, port),
        address: SocketAddr::new(ip.parse().map_err(io::Error::other)?, port),
    })
}
