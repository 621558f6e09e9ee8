//! The example `targets` as servers of a benchmark: any number of them in one process, each at an address of its own,
//! so that neither ports nor processes run out. Decides where they listen; never what is measured.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit};

use crate::cleanup::{Directory, Server};
use crate::paths;

/// The first address; the others follow. Far from those that people and other programs use on loopback.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);

/// Descriptors beside listeners and connections.
const SPARE_DESCRIPTORS: u64 = 128;

/// Servers, with the files that tell a client about them.
#[derive(Debug)]
pub(super) struct Targets {
    pub(super) port: u16,
    /// A block a host, and what they have in common.
    pub(super) config: PathBuf,
    pub(super) known_hosts: PathBuf,
    /// A name a line.
    pub(super) names: PathBuf,
    pub(super) key: PathBuf,
    _server: Server,
}

/// Starts so many targets that answer by themselves, for so many connections at once.
pub(super) fn start(directory: &Directory, count: usize, connections: usize) -> Result<Targets> {
    start_at(directory, count, connections, 0)
}

/// The same at a distance, in milliseconds of round trip.
pub(super) fn start_at(directory: &Directory, count: usize, connections: usize, rtt: u32) -> Result<Targets> {
    let port = TcpListener::bind((FIRST, 0))?.local_addr()?.port();
    let needed = u64::try_from(count + connections)? + SPARE_DESCRIPTORS;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    ensure!(
        most >= needed,
        "{count} targets with {connections} connections take {needed} descriptors, and a process may have {most}; \
         raise the hard limit (ulimit -Hn {needed}, as root)"
    );
    let file = |name: &str| directory.join(&format!("targets.{count}.{name}"));
    let key = directory.join("targets.key");
    let mut command = Command::new(paths::release("examples/targets"));
    command
        .args(["--count", &count.to_string(), "--addresses", "--listen"])
        .arg(SocketAddrV4::new(FIRST, port).to_string())
        .args(["--rtt", &rtt.to_string()])
        .args(["--reply", "builtin", "--prefix", "t", "--user-key"])
        .arg(&key)
        .arg("--write-ssh-config")
        .arg(file("config"))
        .arg("--write-known-hosts")
        .arg(file("known_hosts"))
        .arg("--write-hosts")
        .arg(file("names"));
    let (_, server) = Server::ready(command, 1, &file("log"))?;
    Ok(Targets {
        port,
        config: file("config"),
        known_hosts: file("known_hosts"),
        names: file("names"),
        key,
        _server: server,
    })
}

impl Targets {
    /// The address of the target with this number, counted from 0.
    pub(super) fn address(index: usize) -> Result<Ipv4Addr> {
        let offset = u32::try_from(index)?;
        let address = FIRST.to_bits().checked_add(offset).context("no such address")?;
        Ok(Ipv4Addr::from_bits(address))
    }

    /// `mux run` of a command on all of them, with an empty memory or the one in `state`.
    pub(super) fn mux(&self, state: &std::path::Path, remote: &str) -> Command {
        let mut command = Command::new(paths::release("mux"));
        command
            .arg("run")
            .arg("-F")
            .arg(&self.config)
            .arg("--hosts")
            .arg(&self.names)
            .args(["--", remote])
            .env("XDG_STATE_HOME", state)
            .env_remove("SSH_AUTH_SOCK");
        command
    }
}
