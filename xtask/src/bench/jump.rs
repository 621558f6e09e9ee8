//! `bench jump`: hosts behind a bastion as it comes (`MaxStartups 10:30:100`, `MaxSessions 10`), against `xargs ssh -J`
//! over one control connection; and what each hop adds in round trips, as the slope of wall time over distance.
//!
//! Parts: `fleet`, `rtt`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cost::{self, Run};
use super::fleet::{Fleet, Host};
use super::options::Options;
use super::servers::{self, KeyExchange};
use super::statistics::{Line, Summary};
use super::{clients, comparison, table};
use crate::cleanup::Directory;
use crate::{paths, style};

const REMOTE: &str = "hostname";

/// From here to the bastion in the second part, in milliseconds; what lies behind it is right beside it.
const DISTANCES: [u32; 4] = [0, 50, 100, 200];

/// Below it delayed acknowledgements hide behind a round trip: see `bench rtt`.
const SHORTEST: f64 = 40.0;

const MOST_HOPS: usize = 2;

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    servers::generate_keys(&directory)?;
    let bastion = servers::stock(&directory)?;
    let sshd = servers::openssh(&directory, KeyExchange::Default)?;
    let wanted = |part: &str| options.part.as_deref().is_none_or(|only| only == part);
    let mut results = serde_json::Map::new();
    if wanted("fleet") {
        let fleet = fleet(&directory, bastion.address, sshd.address, options)?;
        results.insert("fleet".to_owned(), fleet);
    }
    if wanted("rtt") {
        let rtt = round_trips(&directory, bastion.address, sshd.address, options)?;
        results.insert("rtt".to_owned(), rtt);
    }
    ensure!(!results.is_empty(), "no such part of jump; there are fleet, rtt");
    Ok(Value::Object(results))
}

/// One run of a fleet through the bastion: what it cost and how often it logged in there.
fn fleet(directory: &Directory, bastion: SocketAddr, sshd: SocketAddr, options: &Options) -> Result<Value> {
    let (gate, _near) = servers::relay(directory, bastion, [options.rtt])?;
    let gate = *gate.first().context("a relay without an address")?;
    let (addresses, _far) = servers::relay(directory, sshd, (0..options.hosts).map(|_| 0))?;
    let named = |(index, address)| Host {
        name: format!("h{index:04}"),
        address,
    };
    let hosts = addresses.into_iter().enumerate().map(named).collect();
    let fleet = Fleet::write(directory, "jump", hosts, &clients::openssh_host_key(directory)?)?;
    let control = fleet.scratch.join("control");
    let config = with_gates(&fleet, &[gate], "Host h*\n  ProxyJump gate1\n", Some(&control))?;
    println!(
        "{}",
        style::bold(&format!(
            "\njump: `{REMOTE}` on {} hosts behind a stock sshd at {} ms, median [range] of {} runs",
            options.hosts, options.rtt, options.runs
        ))
    );
    let mut rows = [("mux", Vec::new()), ("xargs ssh -J", Vec::new())];
    let mut logins = [Vec::new(), Vec::new()];
    for round in 0..=options.runs {
        for (which, (name, runs)) in rows.iter_mut().enumerate() {
            let before = logins_at(directory)?;
            let state = tempfile::tempdir_in(directory.path())?;
            let command = match which {
                0 => ours(&config, state.path(), &fleet.targets()),
                _ => theirs(&config, &fleet.names),
            };
            let run = once(&fleet, name, &command)?;
            if round > 0 {
                runs.push(run);
                if let Some(logins) = logins.get_mut(which) {
                    logins.push(logins_at(directory)? - before);
                }
            }
        }
    }
    compare(&rows, &logins)
}

fn once(fleet: &Fleet, name: &str, command: &Command) -> Result<Run> {
    let run = cost::measure(&fleet.scratch, command)?;
    let (answers, hosts) = (answers(&run)?, fleet.hosts.len());
    if answers < hosts {
        println!(
            "  {name}: only {answers} of {hosts} hosts answered\n{}",
            run.stderr
        );
    }
    Ok(run)
}

fn compare(rows: &[(&str, Vec<Run>)], logins: &[Vec<usize>]) -> Result<Value> {
    let shown: Vec<(&str, &[Run])> = rows.iter().map(|(name, runs)| (*name, runs.as_slice())).collect();
    let note = "xargs ssh -J: 64 at once over a control connection that was opened before; its CPU is without that one";
    comparison::print(&shown, "mux", &[note]);
    for ((name, _), logins) in rows.iter().zip(logins) {
        println!("  logins at the bastion, {name}: {logins:?}");
    }
    ensure!(
        logins
            .first()
            .is_some_and(|logins| logins.iter().all(|count| *count == 1)),
        "one connection to the bastion is enough"
    );
    let runs: serde_json::Map<String, Value> = rows
        .iter()
        .map(|(name, runs)| ((*name).to_owned(), cost::to_json(runs)))
        .collect();
    Ok(json!({ "clients": runs, "logins": logins }))
}

/// The configuration of a fleet behind jump hosts, of which each lies behind the one before it.
fn with_gates(fleet: &Fleet, gates: &[SocketAddr], ways: &str, control: Option<&Path>) -> Result<PathBuf> {
    let mut text = String::new();
    let mut known = std::fs::read_to_string(&fleet.known_hosts)?;
    let key = known
        .split_once(' ')
        .map(|(_, key)| key.lines().next().unwrap_or_default().to_owned());
    let key = key.context("known_hosts without a line")?;
    for (number, gate) in (1..).zip(gates) {
        let (ip, port) = (gate.ip(), gate.port());
        write!(
            text,
            "Host gate{number}\n  HostName {ip}\n  Port {port}\n  ProxyJump none\n"
        )?;
        if let Some(control) = control {
            write!(
                text,
                "  ControlMaster auto\n  ControlPath {}\n",
                control.display()
            )?;
        }
        writeln!(known, "[{ip}]:{port} {key}")?;
    }
    text.push_str(ways);
    text.push_str(&std::fs::read_to_string(&fleet.config)?);
    std::fs::write(&fleet.known_hosts, known)?;
    let file = fleet.scratch.join("ssh_config.jump");
    std::fs::write(&file, text)?;
    Ok(file)
}

fn ours(config: &Path, state: &Path, targets: &str) -> Command {
    let mut command = Command::new(paths::release("mux"));
    command
        .args(["run", "-f", clients::FANOUT, "-F"])
        .arg(config)
        .args(["-w", targets, "--", REMOTE])
        .env("XDG_STATE_HOME", state)
        .env_remove("SSH_AUTH_SOCK");
    command
}

/// Opening the control connection belongs to it: without one that is there already, the first 64 would each open one,
/// and the bastion drops most of those.
fn theirs(config: &Path, names: &Path) -> Command {
    let (config, names, fanout) = (config.display(), names.display(), clients::FANOUT);
    let script = format!(
        "ssh -F {config} -M -f -N gate1 </dev/null >/dev/null 2>&1; \
         xargs -a {names} -P {fanout} -I{{}} ssh -F {config} {{}} {REMOTE}; \
         ssh -F {config} -O exit gate1 >/dev/null 2>&1; true"
    );
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).env_remove("SSH_AUTH_SOCK");
    command
}

fn answers(run: &Run) -> Result<usize> {
    let expected = clients::expected_answer()?;
    Ok(run.stdout.lines().filter(|line| line.contains(&expected)).count())
}

/// How often somebody has logged in at the bastion.
fn logins_at(directory: &Directory) -> Result<usize> {
    let log = std::fs::read_to_string(directory.join(servers::STOCK_LOG))?;
    Ok(log
        .lines()
        .filter(|line| line.contains("Accepted publickey"))
        .count())
}

/// Who, over how many hops, and the least wall time at each distance.
type Walls = Vec<(String, Vec<(f64, f64)>)>;

/// What each hop adds: all of it passes the one distance that there is, from here to the first jump host.
fn round_trips(
    directory: &Directory,
    bastion: SocketAddr,
    sshd: SocketAddr,
    options: &Options,
) -> Result<Value> {
    let mut walls: Walls = Vec::new();
    for distance in DISTANCES {
        let (near, _one) = servers::relay(directory, bastion, [distance])?;
        let (direct, _two) = servers::relay(directory, sshd, [distance, 0, 0])?;
        let [direct, gate2, far] = direct.as_slice() else {
            anyhow::bail!("a relay without its addresses")
        };
        let gate1 = *near.first().context("a relay without an address")?;
        let hosts = [("t0", *direct), ("t1", *far), ("t2", *far)].map(|(name, address)| Host {
            name: name.to_owned(),
            address,
        });
        let label = format!("jump.{distance}");
        let fleet = Fleet::write(
            directory,
            &label,
            hosts.into(),
            &clients::openssh_host_key(directory)?,
        )?;
        let ways = "Host t1\n  ProxyJump gate1\nHost t2\n  ProxyJump gate1,gate2\n";
        let config = with_gates(&fleet, &[gate1, *gate2], ways, None)?;
        for hops in 0..=MOST_HOPS {
            at_distance(&mut walls, &fleet, &config, (hops, distance), options)?;
        }
    }
    println!(
        "{}",
        style::bold(&format!(
            "\njump: round trips of `{REMOTE}` by hops before the host, least wall ms of {} runs",
            options.runs
        ))
    );
    Ok(show(&walls))
}

fn at_distance(
    walls: &mut Walls,
    fleet: &Fleet,
    config: &Path,
    (hops, distance): (usize, u32),
    options: &Options,
) -> Result<()> {
    let target = format!("t{hops}");
    let state = tempfile::tempdir_in(&fleet.scratch)?;
    // The first meets everybody; from then on they are remembered.
    let mut cases = vec![
        ("mux, first contact", Vec::new()),
        ("mux, remembered", Vec::new()),
        ("ssh", Vec::new()),
    ];
    for round in 0..=options.runs {
        let new = tempfile::tempdir_in(&fleet.scratch)?;
        let ssh = {
            let mut ssh = Command::new("ssh");
            ssh.arg("-F").arg(config).args([&target, REMOTE]);
            ssh.env_remove("SSH_AUTH_SOCK");
            ssh
        };
        let commands = [
            ours(config, new.path(), &target),
            ours(config, state.path(), &target),
            ssh,
        ];
        for ((name, walls), command) in cases.iter_mut().zip(commands) {
            let run = cost::measure(&fleet.scratch, &command)?;
            ensure!(answers(&run)? == 1, "{name}, {target}: no answer\n{}", run.stderr);
            if round > 0 {
                walls.push(run.wall_ms().context("a report without a wall time")?);
            }
        }
    }
    for (name, values) in cases {
        let name = format!("{name}, {hops} hops");
        let least = Summary::of(values).context("no runs")?.least;
        let point = (f64::from(distance), least);
        match walls.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => walls.push((name, vec![point])),
        }
    }
    Ok(())
}

fn show(walls: &Walls) -> Value {
    let mut heading = vec!["client".to_owned()];
    heading.extend(DISTANCES.iter().map(|distance| format!("{distance} ms")));
    heading.push("round trips".to_owned());
    let mut rows = vec![heading];
    let mut results = serde_json::Map::new();
    for (name, points) in walls {
        let far: Vec<(f64, f64)> = points.iter().copied().filter(|(at, _)| *at > SHORTEST).collect();
        let slope = Line::through(&far).map(|line| line.slope);
        let mut row = vec![name.clone()];
        row.extend(points.iter().map(|(_, wall)| format!("{wall:.0}")));
        row.push(slope.map_or_else(String::new, |slope| format!("{slope:.2}")));
        rows.push(row);
        results.insert(name.clone(), json!({ "wall_ms": points, "round_trips": slope }));
    }
    table::print(&rows);
    Value::Object(results)
}
