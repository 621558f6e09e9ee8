//! `bench loop`: mux-core against plain mio and tokio, by the contenders of mux-core's example `loop_bench`.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::options::Options;
use super::statistics::Summary;
use super::table;
use crate::{command, paths, style};

/// Ours first: the others are compared with it.
const CONTENDERS: &[&str] = &["mux", "mio", "tokio"];
/// Kinds of work, with the least share of a contender's throughput that ours must have.
const WORK: &[(&str, &[(&str, f64)])] = &[
    ("echo", &[("mio", 0.9), ("tokio", 1.0)]),
    ("events", &[]),
    ("timers", &[]),
    ("wakeups", &[]),
];
/// Long enough for thousands of units, short enough for many turns.
const SECONDS: &str = "1";

/// What one run of a contender printed.
struct Run {
    per_second: f64,
    /// Microseconds of processor time a unit.
    cpu: f64,
}

/// One contender at one kind of work.
struct Row {
    contender: &'static str,
    rate: Summary,
    cpu: Summary,
}

pub(super) fn run(options: &Options) -> Result<Value> {
    let mut results = serde_json::Map::new();
    for (what, limits) in WORK {
        println!(
            "{}",
            style::bold(&format!(
                "\nloop: {what}, median [range] of {} runs of {SECONDS} s",
                options.runs
            ))
        );
        let rows = compare(what, options.runs)?;
        show(&rows);
        verdicts(&rows, limits);
        let rows = rows.iter().map(|row| {
            let numbers = |summary: Summary| json!({ "median": summary.median, "least": summary.least, "most": summary.most });
            (row.contender.to_owned(), json!({ "per_second": numbers(row.rate), "cpu_us": numbers(row.cpu) }))
        });
        results.insert((*what).to_owned(), Value::Object(rows.collect()));
    }
    Ok(Value::Object(results))
}

/// Contenders take turns, so that a slow minute of the machine hits all of them.
fn compare(what: &str, runs: u32) -> Result<Vec<Row>> {
    let mut measured: Vec<(&'static str, Vec<Run>)> = CONTENDERS
        .iter()
        .map(|contender| (*contender, Vec::new()))
        .collect();
    for _ in 0..runs {
        for (contender, runs) in &mut measured {
            runs.push(once(contender, what)?);
        }
    }
    let row = |(contender, runs): (&'static str, Vec<Run>)| {
        let rate = Summary::of(runs.iter().map(|run| run.per_second))?;
        let cpu = Summary::of(runs.iter().map(|run| run.cpu))?;
        Some(Row { contender, rate, cpu })
    };
    Ok(measured.into_iter().filter_map(row).collect())
}

fn once(contender: &str, what: &str) -> Result<Run> {
    let mut command = Command::new(paths::release("examples/loop_bench"));
    command.args(["--contender", contender, "--what", what, "--seconds", SECONDS]);
    let text = command::output(&mut command)?;
    let report: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let number = |key: &str| {
        report
            .get(key)
            .and_then(Value::as_f64)
            .with_context(|| format!("no `{key}` in {text}"))
    };
    Ok(Run {
        per_second: number("per_second")?,
        cpu: number("cpu_seconds")? * 1e6 / number("count")?,
    })
}

fn show(rows: &[Row]) {
    let mut cells = vec![
        ["contender", "per second", "ours is", "CPU µs each"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for row in rows {
        let Summary { median, least, most } = row.rate;
        cells.push(vec![
            row.contender.to_owned(),
            format!("{median:.0} [{least:.0}–{most:.0}]"),
            ratio(rows, row.contender)
                .map(|ratio| format!("× {ratio:.2}"))
                .unwrap_or_default(),
            format!("{:.2} [{:.2}–{:.2}]", row.cpu.median, row.cpu.least, row.cpu.most),
        ]);
    }
    table::print(&cells);
}

fn verdicts(rows: &[Row], limits: &[(&str, f64)]) {
    for (contender, least) in limits {
        let Some(ratio) = ratio(rows, contender) else {
            continue;
        };
        let text = format!("ours does × {ratio:.2} of {contender}, at least {least:.1} wanted");
        println!(
            "  {}",
            if ratio >= *least {
                style::good(&text)
            } else {
                style::bad(&text)
            }
        );
    }
}

/// Our throughput in units of another's.
fn ratio(rows: &[Row], contender: &str) -> Option<f64> {
    let rate = |name: &str| {
        rows.iter()
            .find(|row| row.contender == name)
            .map(|row| row.rate.median)
    };
    Some(rate("mux")? / rate(contender)?)
}
