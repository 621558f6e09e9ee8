//! Hosts in this process, some of them in trouble, and the configuration that leads `mux` to them. Good ones answer
//! every command with one line.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use mux_core::{Driver, Event, Key, Listener, Stream};
use mux_ssh::server::key_file::{Seed, public_line};
use mux_ssh::server::{self, Act, Authorized, Moment, Plan, Point, Server, ServerConfig};
use rustix::net::{AddressFamily, SocketType};
use tempfile::TempDir;

use crate::rig::write_key;

/// What a host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Good,
    Refuses,
    DropsPackets,
    SaysNothing,
    StallsInAuth,
    ResetsInOutput,
    /// Commands end without a word about how.
    NoStatus,
    /// The connection ends with the command.
    HangsUp,
    /// The same before the end of the output was said.
    HangsUpAtOnce,
}

pub(crate) struct Servers {
    dir: TempDir,
    stop: Arc<AtomicBool>,
    loop_: Option<JoinHandle<()>>,
    /// What keeps the ports of hosts that don't accept.
    _held: Vec<OwnedFd>,
}

impl Servers {
    /// Hosts `h001`, `h002`, … of these kinds.
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        let dir = tempfile::Builder::new().prefix("mux-fleet").tempdir().unwrap();
        write_key(&dir.path().join("id"));
        let host_key = Seed::generate().unwrap().host_key().unwrap();
        let public = public_line(host_key.public());
        let config = Arc::new(ServerConfig::new(host_key, Authorized::AnyKey));
        let mut driver = Driver::new().unwrap();
        let (mut listeners, mut held) = (HashMap::new(), Vec::new());
        let (mut hosts, mut known) = (String::new(), String::new());
        for (number, kind) in (1..).zip(kinds) {
            let address = match kind {
                Kind::Refuses => refusing(&mut held),
                Kind::DropsPackets => dropping(&mut held),
                Kind::SaysNothing => silent(&mut held),
                Kind::Good
                | Kind::StallsInAuth
                | Kind::ResetsInOutput
                | Kind::NoStatus
                | Kind::HangsUp
                | Kind::HangsUpAtOnce => {
                    let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
                    let address = listener.local_addr().unwrap();
                    listeners.insert(driver.listen(Listener::Tcp(listener)).unwrap(), *kind);
                    address
                }
            };
            let port = address.port();
            hosts.push_str(&format!(
                "Host h{number:03}\n  HostName 127.0.0.1\n  Port {port}\n"
            ));
            known.push_str(&format!("[127.0.0.1]:{port} {}\n", public.trim()));
        }
        let at = dir.path().display();
        hosts.push_str(&format!(
            "Host *\n  User u\n  IdentityFile {at}/id\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile \
             {at}/known_hosts\n  GlobalKnownHostsFile none\n"
        ));
        fs::write(dir.path().join("config"), hosts).unwrap();
        fs::write(dir.path().join("known_hosts"), known).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let loop_ = std::thread::spawn(move || serve(driver, &listeners, &config, &until));
        Self {
            dir,
            stop,
            loop_: Some(loop_),
            _held: held,
        }
    }

    /// What is known of host keys.
    pub(crate) fn known_hosts(&self) -> PathBuf {
        self.dir.path().join("known_hosts")
    }

    /// `mux run` on these hosts, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.subcommand(&["run"], args)
    }

    /// The same for another subcommand.
    pub(crate) fn subcommand(&self, names: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mux"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command
            .env("XDG_STATE_HOME", self.dir.path().join("state"))
            .stdin(Stdio::null());
        let config = self.dir.path().join("config");
        command
            .args(names)
            .args(["-F", config.to_str().unwrap()])
            .args(args);
        command
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.loop_.take() {
            let _ = thread.join();
        }
    }
}

fn socket(held: &mut Vec<OwnedFd>, backlog: Option<i32>) -> SocketAddr {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap().try_into().unwrap();
    if let Some(backlog) = backlog {
        rustix::net::listen(&socket, backlog).unwrap();
    }
    held.push(socket);
    address
}

/// Bound, so that nobody else gets the port, and nobody listens.
fn refusing(held: &mut Vec<OwnedFd>) -> SocketAddr {
    socket(held, None)
}

/// A queue of length 0 that one connection fills: packets that would open another are dropped.
fn dropping(held: &mut Vec<OwnedFd>) -> SocketAddr {
    let address = socket(held, Some(0));
    held.push(TcpStream::connect(address).unwrap().into());
    address
}

/// The kernel completes connections, and nobody ever looks at them.
fn silent(held: &mut Vec<OwnedFd>) -> SocketAddr {
    socket(held, Some(16))
}

fn plan(kind: Kind) -> Plan {
    match kind {
        Kind::StallsInAuth => Plan::new().with(Point::After(Moment::NewKeys, 1), Act::Stall),
        Kind::ResetsInOutput => Plan::new().with(Point::After(Moment::Output, 1), Act::Close),
        Kind::Good | Kind::Refuses | Kind::DropsPackets | Kind::SaysNothing => Plan::new(),
        Kind::NoStatus => Plan::new(),
        Kind::HangsUp => Plan::new().with(Point::After(Moment::Eof, 1), Act::Close),
        Kind::HangsUpAtOnce => Plan::new().with(Point::After(Moment::ExitReport, 1), Act::Close),
    }
}

fn serve(
    mut driver: Driver<Server>,
    listeners: &HashMap<Key, Kind>,
    config: &Arc<ServerConfig>,
    stop: &AtomicBool,
) {
    let mut kinds = HashMap::new();
    while !stop.load(Ordering::Relaxed) {
        driver.turn(Some(Duration::from_millis(50))).unwrap();
        while let Some(event) = driver.poll_event() {
            if let Event::Accepted(listener, stream) = event {
                let kind = listeners[&listener];
                if let (Kind::ResetsInOutput, Stream::Tcp(tcp)) = (kind, &stream) {
                    // Closing discards what is queued and resets.
                    rustix::net::sockopt::set_socket_linger(tcp, Some(Duration::ZERO)).unwrap();
                }
                let key = driver
                    .add(stream, Server::new(Arc::clone(config), plan(kind)))
                    .unwrap();
                kinds.insert(key, kind);
            } else if let Event::Protocol(key, server::Event::Exec { session, .. }) = event {
                let server = driver.protocol(key).unwrap();
                let hello = Bytes::from_static(b"hello\n");
                match kinds[&key] {
                    Kind::NoStatus => {
                        server.stdout(session, hello);
                        server.eof(session);
                        server.close(session);
                    }
                    Kind::HangsUp | Kind::HangsUpAtOnce => server.reply(session, hello, 7),
                    Kind::Good
                    | Kind::Refuses
                    | Kind::DropsPackets
                    | Kind::SaysNothing
                    | Kind::StallsInAuth
                    | Kind::ResetsInOutput => server.reply(session, hello, 0),
                }
            }
        }
    }
}
