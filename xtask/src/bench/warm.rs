//! `bench warm`: a command on many hosts to which there are connections already. Ours over its daemon, others over
//! OpenSSH's ControlMaster. What holds the connections works, too: its processor time counts with the client's.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Map, Value, json};

use super::clients::FANOUT;
use super::cost::{self, Run};
use super::fleet::Fleet;
use super::options::Options;
use super::scale::verdict;
use super::servers::{self, KeyExchange};
use super::statistics::Summary;
use super::{cold, comparison, embedded};
use crate::cleanup::{Directory, Server};
use crate::{command, paths, style};

const REMOTE: &str = "true";

/// What client and daemon together may use of the processors for a hundred hosts.
const CPU: f64 = 15.0;

/// What a run may take beyond the round trip, where servers cost nothing.
const ABOVE_RTT: f64 = 40.0;

/// What a run may take of the best other's wall time, on a real sshd.
const OF_BEST: f64 = 0.5;

/// How long the others' connections stay.
const PERSIST: u32 = 120;

/// Who takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contender {
    Mux,
    Ssh,
    Clush,
    Pdsh,
}

impl Contender {
    const ALL: [Self; 4] = [Self::Mux, Self::Ssh, Self::Clush, Self::Pdsh];

    fn name(self) -> &'static str {
        match self {
            Self::Mux => "mux",
            Self::Ssh => "ssh + xargs",
            Self::Clush => "clush",
            Self::Pdsh => "pdsh",
        }
    }

    fn is_installed(self) -> bool {
        match self {
            Self::Mux => true,
            Self::Ssh => command::exists("ssh") && command::exists("xargs"),
            Self::Clush => command::exists("clush"),
            Self::Pdsh => command::exists("pdsh"),
        }
    }

    /// `remote` on all hosts; the others than ours over the connections of `masters`.
    fn command(self, fleet: &Fleet, masters: &Path, daemon: &Daemon, remote: &str) -> Command {
        let program = match self {
            Self::Mux => return daemon.run(&fleet.config, &["-w", &fleet.targets()], remote),
            Self::Ssh => "xargs",
            Self::Clush => "clush",
            Self::Pdsh => "pdsh",
        };
        let mut command = Command::new(program);
        command.env_remove("SSH_AUTH_SOCK");
        match self {
            Self::Mux => {}
            Self::Ssh => {
                command.arg("-a").arg(&fleet.names);
                command.args(["-P", FANOUT, "-I{}", "ssh", "-F"]).arg(masters);
                command.args(["{}", remote]);
            }
            Self::Clush => {
                command
                    .args(["-f", FANOUT, "-o"])
                    .arg(format!("-F {}", masters.display()));
                command.args(["-w", &fleet.targets(), "--", remote]);
            }
            Self::Pdsh => {
                command.env("PDSH_SSH_ARGS", format!("-F {} %h", masters.display()));
                command.args(["-R", "ssh", "-f", FANOUT, "-w", &fleet.targets(), remote]);
            }
        }
        command
    }
}

type Part = fn(&Directory, &Options) -> Result<Value>;

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    let mut results = Map::new();
    let parts: [(&str, Part); 2] = [("sshd", real_hosts), ("embedded", embedded_targets)];
    if let Some(part) = options.part.as_deref()
        && parts.iter().all(|(name, _)| *name != part)
    {
        bail!("no part `{part}`; there are sshd, embedded");
    }
    for (name, measure) in parts {
        if options.part.as_deref().is_none_or(|part| part == name) {
            results.insert(name.to_owned(), measure(&directory, options)?);
        }
    }
    Ok(Value::Object(results))
}

fn real_hosts(directory: &Directory, options: &Options) -> Result<Value> {
    servers::generate_keys(directory)?;
    let sshd = servers::openssh(directory, KeyExchange::Curve25519)?;
    let (fleet, _relay) = cold::fleet(directory, KeyExchange::Curve25519, &sshd, options)?;
    let masters = Masters::write(&fleet)?;
    let daemon = Daemon::start(directory)?;
    println!(
        "{}",
        style::bold(&format!(
            "\nwarm: `{REMOTE}` on {} hosts at {} ms, OpenSSH, connections made before, median [range] of {} runs",
            options.hosts, options.rtt, options.runs
        ))
    );
    let contenders = Contender::ALL.into_iter().filter(|one| one.is_installed());
    let mut runs: Vec<(Contender, Vec<Run>)> = contenders.map(|one| (one, Vec::new())).collect();
    masters.open(&fleet, options)?;
    // One round more than asked for: the first makes what connections are missing, and is thrown away.
    for round in 0..=options.runs {
        for (contender, runs) in &mut runs {
            let holders = match contender {
                Contender::Mux => vec![daemon.id],
                Contender::Ssh | Contender::Clush | Contender::Pdsh => masters.processes()?,
            };
            let command = contender.command(&fleet, &masters.config, &daemon, REMOTE);
            let run = with_holders(&fleet.scratch, &command, &holders)?;
            ensure!(
                run.succeeded(),
                "{}: {}{}",
                contender.name(),
                run.stdout,
                run.stderr
            );
            if round > 0 {
                runs.push(run);
            }
        }
    }
    let rows: Vec<_> = runs
        .iter()
        .map(|(one, runs)| (one.name(), runs.as_slice()))
        .collect();
    comparison::print(
        &rows,
        Contender::Mux.name(),
        &["user ms has what the daemon, or the masters, used in the run; peak MiB is the client's alone"],
    );
    verdicts(&runs);
    let report = |(one, runs): &(Contender, Vec<Run>)| (one.name().to_owned(), cost::to_json(runs));
    Ok(Value::Object(runs.iter().map(report).collect()))
}

fn verdicts(runs: &[(Contender, Vec<Run>)]) {
    let wall = |of: &[Run]| Summary::of(of.iter().filter_map(Run::wall_ms)).map(|wall| wall.median);
    let is_ours = |contender: &Contender| *contender == Contender::Mux;
    let others = runs.iter().filter(|(one, _)| !is_ours(one));
    let best = others.filter_map(|(_, runs)| wall(runs)).reduce(f64::min);
    let Some((_, ours)) = runs.iter().find(|(one, _)| is_ours(one)) else {
        return;
    };
    if let Some((ours, best)) = wall(ours).zip(best) {
        let of = ours / best;
        verdict(
            of <= OF_BEST,
            &format!("ours takes {of:.2} of the best other's time (at most {OF_BEST})"),
        );
    }
    cpu_verdict(ours);
}

fn cpu_verdict(runs: &[Run]) {
    if let Some(cpu) = Summary::of(runs.iter().filter_map(Run::cpu_ms)) {
        let text = format!(
            "client and daemon use {:.1} ms of processors (at most {CPU})",
            cpu.median
        );
        verdict(cpu.median <= CPU, &text);
    }
}

/// Servers in one process, which cost next to nothing: what is left is ours and the distance.
fn embedded_targets(directory: &Directory, options: &Options) -> Result<Value> {
    let targets = embedded::start_at(directory, usize::from(options.hosts), 512, options.rtt)?;
    let daemon = Daemon::start(directory)?;
    println!(
        "{}",
        style::bold(&format!(
            "\nwarm: `{REMOTE}` on {} targets in one process at {} ms, median [range] of {} runs",
            options.hosts, options.rtt, options.runs
        ))
    );
    let names = targets.names.display().to_string();
    let mut runs = Vec::new();
    for round in 0..=options.runs {
        // All at once: with fewer there is a round trip for each handful.
        let hosts = options.hosts.to_string();
        let command = daemon.run(&targets.config, &["-f", &hosts, "--hosts", &names], REMOTE);
        let run = with_holders(directory.path(), &command, &[daemon.id])?;
        ensure!(run.succeeded(), "{}{}", run.stdout, run.stderr);
        if round > 0 {
            runs.push(run);
        }
    }
    comparison::print(&[("mux", &runs)], "mux", &["user ms has what the daemon used"]);
    if let Some(wall) = Summary::of(runs.iter().filter_map(Run::wall_ms)) {
        let most = f64::from(options.rtt) + ABOVE_RTT;
        let text = format!("a run takes {:.1} ms (at most {most:.0})", wall.median);
        verdict(wall.median <= most, &text);
    }
    cpu_verdict(&runs);
    Ok(json!({ "mux": cost::to_json(&runs) }))
}

/// A run with what those who hold the connections used meanwhile.
fn with_holders(scratch: &Path, command: &Command, holders: &[u32]) -> Result<Run> {
    let before = used(holders);
    let mut run = cost::measure(scratch, command)?;
    let more = used(holders).saturating_sub(before).as_secs_f64();
    let user = run
        .cost
        .get("user")
        .and_then(Value::as_f64)
        .context("no user time")?;
    if let Some(cost) = run.cost.as_object_mut() {
        cost.insert("user".to_owned(), json!(user + more));
    }
    Ok(run)
}

/// Processor time of processes so far, in nanoseconds as the scheduler counts it: a tick of `stat` is as long as all that
/// is measured here.
fn used(processes: &[u32]) -> Duration {
    let of = |process: &u32| {
        let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    processes.iter().filter_map(of).sum()
}

/// A daemon of ours, by itself.
#[derive(Debug)]
struct Daemon {
    id: u32,
    socket: PathBuf,
    state: PathBuf,
    _server: Server,
}

impl Daemon {
    fn start(directory: &Directory) -> Result<Self> {
        let own = tempfile::tempdir_in(directory.path())?.keep();
        let (socket, state) = (own.join("socket"), own.join("state"));
        let child = Command::new(paths::release("mux"))
            .args(["daemon", "run"])
            .env("MUX_SOCKET", &socket)
            .env("XDG_STATE_HOME", &state)
            .stdin(Stdio::null())
            .spawn()
            .context("the daemon")?;
        let (id, server) = (child.id(), Server::new(child));
        wait_until("the daemon listens", || Ok(socket.exists()))?;
        Ok(Self {
            id,
            socket,
            state,
            _server: server,
        })
    }

    fn run(&self, config: &Path, targets: &[&str], remote: &str) -> Command {
        let mut command = Command::new(paths::release("mux"));
        command.arg("run").arg("-F").arg(config).args(["-f", FANOUT]);
        command.args(targets).args(["--", remote]);
        command
            .env("MUX_SOCKET", &self.socket)
            .env("XDG_STATE_HOME", &self.state)
            .env_remove("SSH_AUTH_SOCK");
        command
    }
}

/// OpenSSH's processes that hold connections for others; they end with this value.
#[derive(Debug)]
struct Masters {
    config: PathBuf,
    sockets: PathBuf,
}

impl Masters {
    fn write(fleet: &Fleet) -> Result<Self> {
        let masters = Self {
            config: fleet.scratch.join("masters_config"),
            sockets: fleet.scratch.join("cm"),
        };
        fs::create_dir_all(&masters.sockets)?;
        let text = fs::read_to_string(&fleet.config)?;
        let path = masters.sockets.display();
        let more = format!("  ControlMaster auto\n  ControlPath {path}/%n\n  ControlPersist {PERSIST}\n");
        fs::write(&masters.config, text + &more)?;
        Ok(masters)
    }

    /// One for each host, made by the first client that would make them all the same.
    fn open(&self, fleet: &Fleet, options: &Options) -> Result<()> {
        let mut command = Command::new("xargs");
        command.arg("-a").arg(&fleet.names);
        command.args(["-P", "16", "-I{}", "ssh", "-F"]).arg(&self.config);
        command.args(["{}", REMOTE]).env_remove("SSH_AUTH_SOCK");
        // What stays behind keeps what it was given open.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command::run(&mut command)?;
        wait_until("each host has a master", || {
            Ok(self.processes()?.len() >= usize::from(options.hosts))
        })
    }

    /// Those that have named themselves after a socket of ours, as masters do.
    fn processes(&self) -> Result<Vec<u32>> {
        let ours = format!("{}/", self.sockets.display());
        let mut found = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.starts_with("ssh:") && line.contains(&ours) && line.contains("[mux]") {
                found.insert(id, line);
            }
        }
        Ok(found.into_keys().collect())
    }
}

impl Drop for Masters {
    fn drop(&mut self) {
        for process in self.processes().unwrap_or_default() {
            if let Ok(id) = i32::try_from(process) {
                // One that has ended meanwhile is no loss.
                let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
            }
        }
    }
}

fn wait_until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let start = Instant::now();
    while !is_so()? {
        ensure!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
