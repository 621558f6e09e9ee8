//! `bench sequence`: commands one after the other on connections that are kept, on many hosts at once. The first of
//! them pays for the connection: a run is a whole process, from its start over the logins to the last goodbye.

use std::process::Command;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::clients::{self, Client, FANOUT};
use super::cost::{self, Run};
use super::fleet::Fleet;
use super::options::Options;
use super::servers::{self, KeyExchange};
use super::{cold, comparison};
use crate::cleanup::Directory;
use crate::{paths, style};

const REMOTE: &str = "hostname";

/// How often each host runs the command.
const COMMANDS: usize = 10;

/// Who takes part: those that can keep a connection within one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contender {
    /// The example `kept`: our client and loop as a library.
    Mux,
    Asyncssh,
}

impl Contender {
    const ALL: &[Self] = &[Self::Mux, Self::Asyncssh];

    fn client(self) -> Client {
        match self {
            Self::Mux => Client::Mux,
            Self::Asyncssh => Client::Asyncssh,
        }
    }

    fn command(self, fleet: &Fleet) -> Command {
        match self {
            Self::Mux => kept(fleet),
            Self::Asyncssh => clients::asyncssh_sequence(fleet, REMOTE, COMMANDS),
        }
    }
}

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    servers::generate_keys(&directory)?;
    let mut results = serde_json::Map::new();
    // The one that is compared first, the other for information.
    for kex in [KeyExchange::Curve25519, KeyExchange::Default] {
        let sshd = servers::openssh(&directory, kex)?;
        let (fleet, _relay) = cold::fleet(&directory, kex, &sshd, options)?;
        println!(
            "{}",
            style::bold(&format!(
                "\nsequence: `{REMOTE}` {COMMANDS} times on each of {} hosts at {} ms, one connection a host, OpenSSH, \
                 key exchange: {}, median [range] of {} runs",
                options.hosts,
                options.rtt,
                kex.name(),
                options.runs
            ))
        );
        results.insert(kex.name().to_owned(), compare(&fleet, options)?);
    }
    Ok(Value::Object(results))
}

fn compare(fleet: &Fleet, options: &Options) -> Result<Value> {
    let wanted: Vec<Client> = options.clients().collect();
    let contenders = Contender::ALL.iter().filter(|one| wanted.contains(&one.client()));
    let mut runs: Vec<(Contender, Vec<Run>)> = contenders.map(|one| (*one, Vec::new())).collect();
    // One round more than asked for: the first warms caches and is thrown away.
    for round in 0..=options.runs {
        for (contender, runs) in &mut runs {
            let run = once(fleet, *contender)?;
            if round > 0 {
                runs.push(run);
            }
        }
    }
    let rows = runs
        .iter()
        .map(|(one, runs)| (one.client().name(), runs.as_slice()));
    comparison::print(
        &rows.collect::<Vec<_>>(),
        Client::Mux.name(),
        &[
            "whole processes: start, logins, all commands, goodbyes; mux: the example `kept`, our client as a library",
        ],
    );
    let report = |(one, runs): &(Contender, Vec<Run>)| (one.client().name().to_owned(), cost::to_json(runs));
    Ok(json!({ "clients": runs.iter().map(report).collect::<serde_json::Map<_, _>>() }))
}

/// Every command has to be answered, or the figures mean nothing.
fn once(fleet: &Fleet, contender: Contender) -> Result<Run> {
    let run = cost::measure(&fleet.scratch, &contender.command(fleet))?;
    let client = contender.client();
    let answers = client.answers(&run.stdout, &clients::expected_answer()?);
    let due = fleet.hosts.len() * COMMANDS;
    ensure!(
        answers == due,
        "{}: {answers} of {due} commands were answered\n{}",
        client.name(),
        run.stderr
    );
    Ok(run)
}

fn kept(fleet: &Fleet) -> Command {
    let mut command = Command::new(paths::release("examples/kept"));
    command
        .args(["--user", &fleet.user, "--fanout", FANOUT, "--command", REMOTE])
        .args(["--commands", &COMMANDS.to_string()])
        .arg("--hosts")
        .arg(&fleet.list)
        .arg("--key")
        .arg(&fleet.key)
        .arg("--known-hosts")
        .arg(&fleet.known_hosts);
    command
}
