//! What `bench` can be told. Defaults are the project's reference measurement.

use anyhow::{Result, bail};
use lexopt::{Arg, ValueExt};

use super::clients::Client;

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) verb: String,
    pub(super) hosts: u16,
    pub(super) rtt: u32,
    pub(super) runs: u32,
    /// Of a benchmark that has several parts: the only one to be measured.
    pub(super) part: Option<String>,
    /// What `bulk` sends, in MiB.
    pub(super) mib: u64,
    pub(super) install_peers: bool,
    /// All that are installed, if empty.
    only: Vec<Client>,
    /// All, if empty.
    ciphers: Vec<String>,
}

impl Options {
    pub(super) fn parse(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut options = Self {
            verb: String::new(),
            hosts: 100,
            rtt: 25,
            runs: 5,
            part: None,
            mib: 1024,
            install_peers: false,
            only: Vec::new(),
            ciphers: Vec::new(),
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Arg::Long("hosts") => options.hosts = arguments.value()?.parse()?,
                Arg::Long("rtt") => options.rtt = arguments.value()?.parse()?,
                Arg::Long("runs") => options.runs = arguments.value()?.parse()?,
                Arg::Long("part") => options.part = Some(arguments.value()?.string()?),
                Arg::Long("mib") => options.mib = arguments.value()?.parse()?,
                Arg::Long("cipher") => options.ciphers.push(arguments.value()?.string()?),
                Arg::Long("client") => options.only.push(client(&arguments.value()?.string()?)?),
                Arg::Long("install-peers") => options.install_peers = true,
                Arg::Value(verb) if options.verb.is_empty() => options.verb = verb.string()?,
                Arg::Short(_) | Arg::Long(_) | Arg::Value(_) => return Err(argument.unexpected().into()),
            }
        }
        Ok(options)
    }

    pub(super) fn wants_cipher(&self, name: &str) -> bool {
        self.ciphers.is_empty() || self.ciphers.iter().any(|wanted| wanted == name)
    }

    /// In the order of the tables.
    pub(super) fn clients(&self) -> impl Iterator<Item = Client> {
        let wanted = |client: &Client| self.only.is_empty() || self.only.contains(client);
        Client::ALL
            .iter()
            .copied()
            .filter(move |client| wanted(client) && client.is_installed())
    }
}

fn client(name: &str) -> Result<Client> {
    match Client::ALL
        .iter()
        .find(|client| client.name().split(' ').next() == Some(name))
    {
        Some(client) => Ok(*client),
        None => bail!("no client `{name}`; there are mux, ssh, asyncssh, bssh"),
    }
}
