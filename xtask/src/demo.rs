//! `cargo xtask demo [N] [--rtt MS]`: what mux does, on servers that live in one process. Needs Rust and gcc alone.
//!
//! It decides how many servers and how far away; keys and configuration lie in a temporary directory that goes away,
//! Ctrl-C included. It never touches the user's own keys, configuration or known_hosts.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lexopt::{Arg, ValueExt};
use serde_json::Value;

use crate::cleanup::{self, Directory, Server};
use crate::{build, command, paths, style};

struct Options {
    count: u32,
    rtt: u32,
}

pub(crate) fn run(arguments: lexopt::Parser) -> Result<ExitCode> {
    let Options { count, rtt } = options(arguments)?;
    cleanup::on_signals()?;
    println!(
        "{}",
        style::dim("building the release binary; the first time, this takes a few minutes")
    );
    build::release(&["--package", "mux-cli", "--bin", "mux", "--example", "targets"])?;

    let demo = Demo::new()?;
    let start = Instant::now();
    let _servers = demo.servers(count, rtt)?;
    println!(
        "{count} SSH servers at {rtt} ms round-trip time, keys and configuration in {} {}",
        demo.directory.path().display(),
        style::dim(&format!("(ready in {})", style::duration(start.elapsed()))),
    );

    // First what a user types and sees; then the same again for the figures, as `mux` reports them itself.
    let gathered = demo.mux(&["-b", "-w", &names(count), "--", "hostname"]);
    println!("\n{} {}", style::bold("$"), style::bold(&shown(&gathered)));
    let (code, wall) = timed(gathered)?;
    println!("{}", style::dim(&format!("exit status {code}")));

    let again = demo.mux(&["-q", "--output", "jsonl", "-w", &names(count), "--", "hostname"]);
    println!("\n{} {}", style::bold("$"), style::bold(&shown(&again)));
    let outcome = Outcome::read(again)?;
    outcome.print();

    compare(wall, outcome.wall, count, rtt);

    let answered_all = code == 0 && outcome.ok == u64::from(count);
    let verdict = format!("{} of {count} servers answered", outcome.ok);
    println!(
        "\n{}",
        if answered_all {
            style::good(&verdict)
        } else {
            style::bad(&verdict)
        }
    );
    Ok(if answered_all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The three figures that a newcomer should keep.
fn compare(first: Duration, known: Duration, count: u32, rtt: u32) {
    let one_by_one = Duration::from_millis(u64::from(count) * u64::from(rtt) * u64::from(SSH_ROUND_TRIPS));
    let [first, known, one_by_one] = [first, known, one_by_one].map(style::duration);
    println!("\nfirst contact     {} from start to exit", style::bold(&first));
    println!("servers known     {}", style::bold(&known));
    println!(
        "{}",
        style::dim(&format!(
            "ssh in a loop     {one_by_one} for its round trips alone"
        ))
    );
}

/// What ssh(1) takes from connecting to the first byte of output, as `bench rtt` measures it.
const SSH_ROUND_TRIPS: u32 = 9;

fn options(mut arguments: lexopt::Parser) -> Result<Options> {
    let mut options = Options { count: 100, rtt: 25 };
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("rtt") => options.rtt = arguments.value()?.parse()?,
            Arg::Value(count) => options.count = count.parse()?,
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
        }
    }
    Ok(options)
}

/// A directory with everything that a client needs to know.
struct Demo {
    directory: Directory,
    config: PathBuf,
}

impl Demo {
    fn new() -> Result<Self> {
        let directory = Directory::new("mux-demo-")?;
        let config = directory.join("ssh_config");
        Ok(Self { directory, config })
    }

    /// All servers in one process, listening on loopback; they end with the returned value.
    fn servers(&self, count: u32, rtt: u32) -> Result<Server> {
        let mut command = Command::new(paths::release("examples/targets"));
        command
            .args([
                "--count",
                &count.to_string(),
                "--rtt",
                &rtt.to_string(),
                "--prefix",
                "web",
            ])
            .arg("--user-key")
            .arg(self.directory.join("id_ed25519"))
            .arg("--write-known-hosts")
            .arg(self.directory.join("known_hosts"))
            .arg("--write-ssh-config")
            .arg(&self.config);
        let (_, server) = Server::ready(command, 1, &self.directory.join("targets.log"))?;
        Ok(server)
    }

    /// `mux run` with nothing of the user's around it.
    fn mux(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(paths::release("mux"));
        command
            .arg("run")
            .arg("-F")
            .arg(&self.config)
            .args(arguments)
            .env("XDG_STATE_HOME", self.directory.join("state"))
            .env("XDG_CONFIG_HOME", self.directory.join("config"))
            .env_remove("MUX_CONFIG")
            .env_remove("SSH_AUTH_SOCK")
            .stdin(Stdio::null());
        command
    }
}

/// The range that names all servers: `web[001-100]`.
fn names(count: u32) -> String {
    let width = count.to_string().len();
    format!("web[{:0width$}-{count}]", 1)
}

/// The command as a user would type it.
fn shown(command: &Command) -> String {
    let line = command::line(command);
    line.split_once(" run ")
        .map_or(line.clone(), |(_, rest)| format!("mux run {rest}"))
}

/// Runs it in front of the user.
fn timed(mut command: Command) -> Result<(i32, Duration)> {
    std::io::stdout().flush()?;
    let start = Instant::now();
    let status = Server::new(command.spawn().context("cannot start mux")?).wait()?;
    Ok((status.code().unwrap_or(-1), start.elapsed()))
}

/// What `--output jsonl` said.
#[derive(Default)]
struct Outcome {
    ok: u64,
    wall: Duration,
    /// Seconds from start to the end of each stage's share, one a host.
    stages: Vec<(&'static str, Vec<f64>)>,
    /// The first few that did not answer.
    failures: Vec<String>,
}

/// Name lookup takes no time for addresses, so it is left out.
const STAGES: &[(&str, &str)] = &[
    ("tcp", "TCP"),
    ("kex", "key exchange"),
    ("auth", "authentication"),
    ("run", "command"),
];
const FAILURES_SHOWN: usize = 5;

impl Outcome {
    fn read(mut command: Command) -> Result<Self> {
        let start = Instant::now();
        let mut mux = Server::new(
            command
                .stdout(Stdio::piped())
                .spawn()
                .context("cannot start mux")?,
        );
        let output = mux.child().stdout.take().context("no pipe was made")?;
        let lines: Vec<String> = BufReader::new(output).lines().collect::<Result<_, _>>()?;
        mux.wait()?;
        let mut outcome = Self {
            wall: start.elapsed(),
            ..Self::default()
        };
        outcome.stages = STAGES.iter().map(|(_, title)| (*title, Vec::new())).collect();
        for line in lines {
            outcome.add(&serde_json::from_str(&line).with_context(|| line.clone())?, &line);
        }
        Ok(outcome)
    }

    fn add(&mut self, object: &Value, line: &str) {
        match object.get("status").and_then(Value::as_str) {
            Some("ok") => self.ok += 1,
            Some(_) if self.failures.len() < FAILURES_SHOWN => self.failures.push(line.to_owned()),
            Some(_) | None => return,
        }
        for ((key, _), (_, times)) in STAGES.iter().zip(&mut self.stages) {
            times.extend(object.pointer(&format!("/timings/{key}")).and_then(Value::as_f64));
        }
    }

    fn print(&self) {
        for failure in &self.failures {
            println!("{failure}");
        }
        println!(
            "{:<16} {:>9} {:>9} {:>9}",
            "time a host", "fastest", "median", "slowest"
        );
        let longest = self
            .stages
            .iter()
            .filter_map(|(_, times)| Spread::of(times))
            .map(|spread| spread.median);
        let longest = longest.fold(f64::MIN_POSITIVE, f64::max);
        for (title, times) in &self.stages {
            if let Some(spread) = Spread::of(times) {
                println!(
                    "{title:<16} {}  {}",
                    spread.columns(),
                    style::good(&bar(spread.median / longest))
                );
            }
        }
    }
}

/// Seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    fastest: f64,
    median: f64,
    slowest: f64,
}

impl Spread {
    fn of(times: &[f64]) -> Option<Self> {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        Some(Self {
            fastest: *times.first()?,
            median: *times.get(times.len() / 2)?,
            slowest: *times.last()?,
        })
    }

    fn columns(self) -> String {
        [self.fastest, self.median, self.slowest]
            .map(|time| format!("{:>6.0} ms", time * 1000.0))
            .join(" ")
    }
}

/// As long as the share is large.
fn bar(share: f64) -> String {
    const LONGEST: [char; 30] = ['▇'; 30];
    LONGEST
        .iter()
        .zip(1_u32..)
        .take_while(|(_, place)| f64::from(*place) <= (share * 30.0).ceil())
        .map(|(block, _)| block)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_as_the_servers_are() {
        assert_eq!(names(100), "web[001-100]");
        assert_eq!(names(1), "web[1-1]");
    }

    #[test]
    fn times_are_sorted_into_three_columns() {
        let spread = Spread::of(&[0.030, 0.010, 0.020]);
        assert_eq!(
            spread.map(Spread::columns).as_deref(),
            Some("    10 ms     20 ms     30 ms")
        );
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(1.0).chars().count(), 30);
        assert_eq!(bar(0.5).chars().count(), 15);
        assert_eq!(bar(0.0), "");
    }
}
