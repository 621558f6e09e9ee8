//! Hosts as every client wants to read them: an ssh_config for `ssh` and `mux`, a plain list for scripts, known_hosts.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;

use super::servers;
use crate::cleanup::Directory;

/// A set of hosts with the files that describe it.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) hosts: Vec<Host>,
    pub(super) user: String,
    /// ssh_config with a block a host.
    pub(super) config: PathBuf,
    /// `name address port` a line.
    pub(super) list: PathBuf,
    /// A name a line.
    pub(super) names: PathBuf,
    pub(super) known_hosts: PathBuf,
    pub(super) key: PathBuf,
    /// For files that a run leaves behind.
    pub(super) scratch: PathBuf,
}

/// A name, and where it listens.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

impl Fleet {
    /// Writes the files. `host_key` is the public half, as `ssh-ed25519 AAAA…`; `label` keeps fleets of one directory apart.
    pub(super) fn write(
        directory: &Directory,
        label: &str,
        hosts: Vec<Host>,
        host_key: &str,
    ) -> Result<Self> {
        let scratch = directory.join(label);
        std::fs::create_dir_all(&scratch)?;
        let user = servers::user()?;
        let fleet = Self {
            user,
            config: scratch.join("ssh_config"),
            list: scratch.join("list"),
            names: scratch.join("names"),
            known_hosts: scratch.join("known_hosts"),
            key: directory.join("id_ed25519"),
            hosts,
            scratch,
        };
        let host_key: String = host_key.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let (mut config, mut list, mut names, mut known_hosts) =
            <(String, String, String, String)>::default();
        for Host { name, address } in &fleet.hosts {
            let (ip, port) = (address.ip(), address.port());
            write!(config, "Host {name}\n  HostName {ip}\n  Port {port}\n")?;
            writeln!(list, "{name} {ip} {port}")?;
            writeln!(names, "{name}")?;
            writeln!(known_hosts, "[{ip}]:{port} {host_key}")?;
        }
        write!(
            config,
            "Host *\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
             GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
            fleet.user,
            fleet.key.display(),
            fleet.known_hosts.display(),
        )?;
        for (path, text) in [
            (&fleet.config, config),
            (&fleet.list, list),
            (&fleet.names, names),
            (&fleet.known_hosts, known_hosts),
        ] {
            std::fs::write(path, text)?;
        }
        Ok(fleet)
    }

    /// All names, comma-separated.
    pub(super) fn targets(&self) -> String {
        self.hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect::<Vec<_>>()
            .join(",")
    }
}
