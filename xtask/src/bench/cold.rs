//! `bench cold`: a command on many hosts, nothing connected before. Clients take turns, so that a slow minute of the
//! machine hits all of them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::clients::{self, Client};
use super::cost::{self, Run};
use super::fleet::{Fleet, Host};
use super::options::Options;
use super::servers::{self, KeyExchange, Running};
use super::{comparison, packets};
use crate::cleanup::{Directory, Server};
use crate::style;

const REMOTE: &str = "hostname";

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    servers::generate_keys(&directory)?;
    let mut results = serde_json::Map::new();
    // The one that is compared first, the other for information.
    for kex in [KeyExchange::Curve25519, KeyExchange::Default] {
        let sshd = servers::openssh(&directory, kex)?;
        let (fleet, _relay) = fleet(&directory, kex, &sshd, options)?;
        println!(
            "{}",
            style::bold(&format!(
                "\ncold: `{REMOTE}` on {} hosts at {} ms, OpenSSH, key exchange: {}, median [range] of {} runs",
                options.hosts,
                options.rtt,
                kex.name(),
                options.runs
            ))
        );
        results.insert(kex.name().to_owned(), compare(&directory, &fleet, options)?);
    }
    Ok(Value::Object(results))
}

/// Every host has an address of its own, all served by one relay in front of one sshd.
pub(super) fn fleet(
    directory: &Directory,
    kex: KeyExchange,
    sshd: &Running,
    options: &Options,
) -> Result<(Fleet, Server)> {
    let distances = (0..options.hosts).map(|_| options.rtt);
    let (addresses, relay) = servers::relay(directory, sshd.address, distances)?;
    let named = |(index, address)| Host {
        name: format!("h{index:04}"),
        address,
    };
    let hosts = addresses.into_iter().enumerate().map(named).collect();
    let fleet = Fleet::write(
        directory,
        kex.name(),
        hosts,
        &clients::openssh_host_key(directory)?,
    )?;
    Ok((fleet, relay))
}

fn compare(directory: &Directory, fleet: &Fleet, options: &Options) -> Result<Value> {
    let mut runs: Vec<(Client, Vec<Run>)> = options.clients().map(|client| (client, Vec::new())).collect();
    // One round more than asked for: the first warms caches and is thrown away.
    for round in 0..=options.runs {
        for (client, runs) in &mut runs {
            let run = once(directory, fleet, *client)?;
            if round > 0 {
                runs.push(run);
            }
        }
    }
    let notes = runs
        .iter()
        .filter_map(|(client, _)| client.note())
        .collect::<Vec<_>>();
    let rows = runs.iter().map(|(client, runs)| (client.name(), runs.as_slice()));
    comparison::print(&rows.collect::<Vec<_>>(), Client::Mux.name(), &notes);
    let packets = packets::of_one_run(fleet, &directory.join("state.packets"), REMOTE)?;
    println!("  {packets}");
    let clients: serde_json::Map<String, Value> = runs
        .iter()
        .map(|(client, runs)| (client.name().to_owned(), cost::to_json(runs)))
        .collect();
    Ok(json!({ "clients": clients, "packets": packets.to_json() }))
}

/// Every host has to answer, or the figures mean nothing. "Cold" is without memory of the servers, too.
pub(super) fn once(directory: &Directory, fleet: &Fleet, client: Client) -> Result<Run> {
    let state = tempfile::tempdir_in(directory.path())?;
    let run = cost::measure(&fleet.scratch, &client.command(fleet, state.path(), REMOTE))?;
    let answers = client.answers(&run.stdout, &clients::expected_answer()?);
    ensure!(
        answers == fleet.hosts.len(),
        "{}: {answers} of {} hosts answered\n{}{}",
        client.name(),
        fleet.hosts.len(),
        run.stdout,
        run.stderr
    );
    Ok(run)
}
