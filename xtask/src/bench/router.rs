//! `bench router`: calls, frames and bytes through a tree of processes on pipes, against yamux on tokio and against
//! Mitogen, in the same run.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::options::Options;
use super::statistics::Summary;
use super::table;
use crate::test::setup;
use crate::{command, paths, style};

/// The version whose interface the script knows.
const MITOGEN: &str = "mitogen==0.3.54";
/// Long enough for thousands of units.
const SECONDS: &str = "1";
/// Children of the job `many`.
const CHILDREN: &str = "32";
/// Ours is wanted to make at least so many times the calls of Mitogen.
const LEAST_OF_MITOGEN: f64 = 5.0;
/// A call beside a bulk transfer is wanted to take no longer, 99 times of 100.
const MOST_BESIDE: f64 = 5_000.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contender {
    Mux,
    Yamux,
    Mitogen,
}

/// Ours first: the others are compared with it.
const CONTENDERS: &[Contender] = &[Contender::Mux, Contender::Yamux, Contender::Mitogen];

/// What is done, through how many relays, what it counts, and whether Mitogen does it, too.
struct Job {
    what: &'static str,
    hops: &'static [u8],
    unit: &'static str,
    has_mitogen: bool,
}

const JOBS: &[Job] = &[
    job("call", &[0, 1, 2], "calls/s, one caller", true),
    job("calls", &[0, 1, 2], "calls/s, 64 callers", false),
    job("many", &[0], "calls/s, 32 children", true),
    job("frames", &[0, 1, 2], "messages there and back/s", false),
    job("bulk", &[0, 1, 2], "MiB/s", false),
    job("beside", &[0, 1, 2], "calls/s beside a bulk transfer", false),
];

const fn job(what: &'static str, hops: &'static [u8], unit: &'static str, has_mitogen: bool) -> Job {
    Job {
        what,
        hops,
        unit,
        has_mitogen,
    }
}

/// What one run printed.
struct Run {
    per_second: f64,
    p50: f64,
    p99: f64,
}

/// One contender at one job.
struct Row {
    contender: Contender,
    rate: Summary,
    p50: Summary,
    p99: Summary,
}

impl Contender {
    fn name(self) -> &'static str {
        match self {
            Self::Mux => "mux",
            Self::Yamux => "tokio + yamux",
            Self::Mitogen => "Mitogen",
        }
    }

    fn is_installed(self) -> bool {
        match self {
            Self::Mux => true,
            Self::Yamux => yamux().exists(),
            Self::Mitogen => has_mitogen(),
        }
    }

    fn command(self, what: &str, hops: u8) -> Command {
        let hops = hops.to_string();
        match self {
            Self::Mux => {
                let mut command = Command::new(paths::release("examples/router_bench"));
                command.arg("--node").arg(paths::release("examples/node"));
                with_options(command, what, &hops)
            }
            Self::Yamux => with_options(Command::new(yamux()), what, &hops),
            Self::Mitogen => {
                let mut command = Command::new(setup::python());
                command
                    .arg(paths::root().join("xtask/peers/mitogen_calls.py"))
                    .args([what, &hops, CHILDREN, SECONDS]);
                command
            }
        }
    }
}

fn with_options(mut command: Command, what: &str, hops: &str) -> Command {
    command
        .args(["--what", what, "--hops", hops])
        .args(["--children", CHILDREN, "--seconds", SECONDS]);
    command
}

fn yamux() -> PathBuf {
    paths::target().join("peers/build/release/yamux-tree")
}

fn has_mitogen() -> bool {
    let wanted = MITOGEN.rsplit('=').next().unwrap_or_default();
    let code = "import mitogen; print('.'.join(map(str, mitogen.__version__)))";
    command::output(Command::new(setup::python()).args(["-c", code]))
        .is_ok_and(|version| version.trim() == wanted)
}

/// What is compared with, below the target directory.
pub(super) fn install() -> Result<()> {
    setup::python_environment()?;
    if !has_mitogen() {
        setup::announce(
            Command::new(setup::python())
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(MITOGEN),
        )?;
    }
    command::run(
        command::cargo(["build", "--release", "--locked", "--quiet", "--manifest-path"])
            .arg(paths::root().join("xtask/peers/yamux/Cargo.toml"))
            .env("CARGO_TARGET_DIR", paths::target().join("peers/build")),
    )
}

pub(super) fn run(options: &Options) -> Result<Value> {
    for contender in CONTENDERS.iter().filter(|contender| !contender.is_installed()) {
        println!("{} is not there; --install-peers gets it", contender.name());
    }
    let wanted = |job: &&Job| options.part.as_deref().is_none_or(|part| part == job.what);
    let mut results = serde_json::Map::new();
    let mut verdicts = Vec::new();
    for job in JOBS.iter().filter(wanted) {
        println!(
            "{}",
            style::bold(&format!(
                "\nrouter: {}, median [range] of {} runs of {SECONDS} s",
                job.unit, options.runs
            ))
        );
        let mut cells = vec![
            ["contender", "relays", "per second", "ours is", "p50 µs", "p99 µs"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for &hops in job.hops {
            let rows = compare(job, hops, options.runs)?;
            cells.extend(rows.iter().map(|row| cells_of(&rows, row, hops)));
            verdicts.extend(judge(job, hops, &rows));
            results.insert(format!("{} {hops}", job.what), as_json(&rows));
        }
        table::print(&cells);
    }
    println!();
    for (is_met, text) in verdicts {
        println!(
            "  {}",
            if is_met {
                style::good(&text)
            } else {
                style::bad(&text)
            }
        );
    }
    Ok(Value::Object(results))
}

/// One after the other and again, so that what befalls the machine befalls all.
fn compare(job: &Job, hops: u8, runs: u32) -> Result<Vec<Row>> {
    let takes_part = |contender: &Contender| {
        contender.is_installed() && (*contender != Contender::Mitogen || job.has_mitogen)
    };
    let contenders: Vec<Contender> = CONTENDERS.iter().copied().filter(takes_part).collect();
    let mut seen: Vec<Vec<Run>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..runs {
        for (contender, seen) in contenders.iter().zip(&mut seen) {
            seen.push(measure(&mut contender.command(job.what, hops))?);
        }
    }
    let rows = contenders.into_iter().zip(seen).map(|(contender, seen)| {
        let of = |number: fn(&Run) -> f64| Summary::of(seen.iter().map(number)).context("no run");
        Ok(Row {
            contender,
            rate: of(|run| run.per_second)?,
            p50: of(|run| run.p50)?,
            p99: of(|run| run.p99)?,
        })
    });
    rows.collect()
}

fn measure(command: &mut Command) -> Result<Run> {
    let text = command::output(command)?;
    let report: Value = serde_json::from_str(text.trim()).with_context(|| text.clone())?;
    let number = |key: &str| {
        let number = report.get(key).and_then(Value::as_f64);
        number.with_context(|| format!("no `{key}` in {text}"))
    };
    Ok(Run {
        per_second: number("per_second")?,
        p50: number("p50_us")?,
        p99: number("p99_us")?,
    })
}

fn cells_of(rows: &[Row], row: &Row, hops: u8) -> Vec<String> {
    let Summary { median, least, most } = row.rate;
    let time = |time: Summary| {
        if time.most > 0.0 {
            format!("{:.0}", time.median)
        } else {
            String::new()
        }
    };
    vec![
        row.contender.name().to_owned(),
        hops.to_string(),
        format!("{median:.0} [{least:.0}–{most:.0}]"),
        ratio(rows, row.contender)
            .filter(|_| row.contender != Contender::Mux)
            .map(|ratio| format!("× {ratio:.2}"))
            .unwrap_or_default(),
        time(row.p50),
        time(row.p99),
    ]
}

/// What is wanted of this job, and whether it is so.
fn judge(job: &Job, hops: u8, rows: &[Row]) -> Vec<(bool, String)> {
    let mut verdicts = Vec::new();
    if let Some(ratio) = ratio(rows, Contender::Mitogen) {
        let text = format!(
            "{}, {hops} relays: × {ratio:.1} of Mitogen, at least {LEAST_OF_MITOGEN:.0} wanted",
            job.unit
        );
        verdicts.push((ratio >= LEAST_OF_MITOGEN, text));
    }
    let ours = rows.iter().find(|row| row.contender == Contender::Mux);
    if let Some(row) = ours.filter(|_| job.what == "beside") {
        let text = format!(
            "a call beside a bulk transfer, {hops} relays: p99 {:.0} µs, at most {MOST_BESIDE:.0} wanted",
            row.p99.most
        );
        verdicts.push((row.p99.most <= MOST_BESIDE, text));
    }
    verdicts
}

/// Our rate in units of another's.
fn ratio(rows: &[Row], contender: Contender) -> Option<f64> {
    let rate = |wanted: Contender| {
        let row = rows.iter().find(|row| row.contender == wanted);
        row.map(|row| row.rate.median)
    };
    Some(rate(Contender::Mux)? / rate(contender)?)
}

fn as_json(rows: &[Row]) -> Value {
    let numbers =
        |summary: Summary| json!({ "median": summary.median, "least": summary.least, "most": summary.most });
    let rows = rows.iter().map(|row| {
        let report = json!({
            "per_second": numbers(row.rate),
            "p50_us": numbers(row.p50),
            "p99_us": numbers(row.p99),
        });
        (row.contender.name().to_owned(), report)
    });
    Value::Object(rows.collect())
}
