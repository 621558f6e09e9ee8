//! `bench rtt`: how many round trips a command takes, first byte to exit, as the slope of its wall time over distance.
//!
//! The slope is free of what the machine adds: that is the intercept. `ssh` is the yardstick; if it does not come out
//! where it always does, the table says nothing and says so.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::clients::{self, Client};
use super::cost;
use super::fleet::{Fleet, Host};
use super::options::Options;
use super::servers::{self, KeyExchange, Running};
use super::statistics::{Line, Summary};
use super::{hold, table};
use crate::cleanup::Directory;
use crate::style;

/// Round trip times of the relays in milliseconds.
const DISTANCES: &[u32] = &[0, 50, 100, 200];
const REMOTE: &str = "hostname";

/// TCP 1, identification 1, key exchange 2, service 1, two authentication requests 2, channel and exec 2.
const CALIBRATION: f64 = 9.0;
const TOLERANCE: f64 = 0.3;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Ours, which has never met the server.
    FirstContact,
    /// Ours, a second time with the same memory.
    Remembered,
    /// Ours, on a connection that is open.
    NextCommand,
    Peer(Client),
}

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::FirstContact => "mux, first contact",
            Self::Remembered => "mux, remembered",
            Self::NextCommand => "mux, next command",
            Self::Peer(Client::Ssh) => "ssh, curve25519",
            Self::Peer(client) => client.name(),
        }
    }
}

/// Wall times in milliseconds of one case at one distance.
#[derive(Debug)]
struct Cell {
    case: Case,
    distance: u32,
    walls: Vec<f64>,
}

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    servers::generate_keys(&directory)?;
    let sshd = servers::openssh(&directory, KeyExchange::Default)?;
    let openssh = compare(
        &directory,
        "OpenSSH",
        &sshd,
        &clients::openssh_host_key(&directory)?,
        options,
    )?;
    drop(sshd);
    let dropbear = servers::dropbear(&directory)?;
    let dropbear = compare(
        &directory,
        "dropbear",
        &dropbear,
        &servers::dropbear_public_key(&directory)?,
        options,
    )?;
    Ok(json!({ "OpenSSH": openssh, "dropbear": dropbear }))
}

fn compare(
    directory: &Directory,
    server: &str,
    running: &Running,
    host_key: &str,
    options: &Options,
) -> Result<Value> {
    let (addresses, _relay) = servers::relay(directory, running.address, DISTANCES.iter().copied())?;
    let mut places = Vec::new();
    for (distance, address) in DISTANCES.iter().zip(addresses) {
        let host = Host {
            name: format!("at{distance:03}"),
            address,
        };
        places.push((
            *distance,
            Fleet::write(directory, &format!("{server}.{distance}"), vec![host], host_key)?,
        ));
    }
    let mut cells = Vec::new();
    // One round more than asked for: the first warms caches and is thrown away.
    for round in 0..=options.runs {
        for (distance, fleet) in &places {
            for (case, wall) in round_of(directory, fleet, options)? {
                if round > 0 {
                    add(&mut cells, case, *distance, wall);
                }
            }
        }
    }
    println!(
        "{}",
        style::bold(&format!(
            "\nrtt: `{REMOTE}` on one host, {server}, least wall ms of {} runs at each round-trip time",
            options.runs
        ))
    );
    Ok(show(&cells))
}

/// Every case once, at one distance.
fn round_of(directory: &Directory, fleet: &Fleet, options: &Options) -> Result<Vec<(Case, f64)>> {
    let state = tempfile::tempdir_in(directory.path())?;
    let mut walls = Vec::new();
    for client in options.clients() {
        if client == Client::Mux {
            walls.push((Case::FirstContact, wall(fleet, client, state.path())?));
            walls.push((Case::Remembered, wall(fleet, client, state.path())?));
            walls.push((Case::NextCommand, hold::next_command(fleet, REMOTE)?));
        } else {
            walls.push((Case::Peer(client), wall(fleet, client, state.path())?));
        }
    }
    Ok(walls)
}

fn wall(fleet: &Fleet, client: Client, state: &Path) -> Result<f64> {
    let command = match client {
        Client::Ssh => clients::ssh_for_calibration(fleet, REMOTE),
        Client::Mux | Client::Asyncssh | Client::Bssh => client.command(fleet, state, REMOTE),
    };
    let run = cost::measure(&fleet.scratch, &command)?;
    let answers = client.answers(&run.stdout, &clients::expected_answer()?);
    ensure!(
        answers == 1,
        "{} got no answer\n{}{}",
        client.name(),
        run.stdout,
        run.stderr
    );
    run.wall_ms().context("a report without a wall time")
}

fn add(cells: &mut Vec<Cell>, case: Case, distance: u32, wall: f64) {
    match cells
        .iter_mut()
        .find(|cell| cell.case == case && cell.distance == distance)
    {
        Some(cell) => cell.walls.push(wall),
        None => cells.push(Cell {
            case,
            distance,
            walls: vec![wall],
        }),
    }
}

/// How long Linux may delay an acknowledgement, in ms. A client that gathers small writes (Nagle) waits for it, and
/// the delay hides behind every round trip that is longer: below it such clients are slower for a reason that is not
/// distance, so the slope is taken above it.
const DELAYED_ACK: f64 = 40.0;

fn show(cells: &[Cell]) -> Value {
    let mut cases: Vec<Case> = Vec::new();
    for cell in cells {
        if !cases.contains(&cell.case) {
            cases.push(cell.case);
        }
    }
    let heading = DISTANCES.iter().map(|distance| format!("{distance} ms"));
    let mut rows = vec![
        std::iter::once("client".to_owned())
            .chain(heading)
            .chain(["round trips".to_owned(), "rest ms".to_owned()])
            .collect(),
    ];
    let mut results = serde_json::Map::new();
    let mut calibration = None;
    for case in cases {
        let points = points(cells, case);
        let far: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|(distance, _)| *distance > DELAYED_ACK)
            .collect();
        let Some(line) = Line::through(&far) else {
            continue;
        };
        let walls = points.iter().map(|(_, wall)| format!("{wall:.0}"));
        rows.push(
            std::iter::once(case.name().to_owned())
                .chain(walls)
                .chain([format!("{:.2}", line.slope), format!("{:.0}", line.intercept)])
                .collect(),
        );
        if case == Case::Peer(Client::Ssh) {
            calibration = Some(line.slope);
        }
        results.insert(
            case.name().to_owned(),
            json!({ "wall_ms": points, "round_trips": line.slope, "rest_ms": line.intercept }),
        );
    }
    table::print(&rows);
    let valid = judge(calibration);
    json!({ "cases": results, "calibrated": valid })
}

/// Whether the table means anything; says so beneath it.
fn judge(calibration: Option<f64>) -> bool {
    let valid = calibration.is_some_and(|slope| (slope - CALIBRATION).abs() <= TOLERANCE);
    let verdict = match calibration {
        Some(slope) if valid => style::good(&format!(
            "calibrated: ssh takes {slope:.2} round trips ({CALIBRATION:.1} ± {TOLERANCE})"
        )),
        Some(slope) => style::bad(&format!(
            "VOID: ssh takes {slope:.2} round trips instead of {CALIBRATION:.1} ± {TOLERANCE}; this table means nothing"
        )),
        None => style::bad("VOID: without ssh there is no calibration; this table means nothing"),
    };
    println!("  {verdict}");
    valid
}

/// The least wall at each distance: what else the machine does only ever adds, and the slope is about the network.
fn points(cells: &[Cell], case: Case) -> Vec<(f64, f64)> {
    let of_case = cells.iter().filter(|cell| cell.case == case);
    of_case
        .filter_map(|cell| {
            Some((
                f64::from(cell.distance),
                Summary::of(cell.walls.iter().copied())?.least,
            ))
        })
        .collect()
}
