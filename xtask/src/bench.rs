//! `cargo xtask bench cold|warm|sequence|bulk|rtt|loop|scale|idle|knownhosts|jump|router`: ours against others, in the same run, as whole
//! processes with their children.
//!
//! It builds release binaries, measures them and writes what it prints as JSON below `target/bench/`, too.

mod bulk;
mod clients;
mod cold;
mod comparison;
mod cost;
mod embedded;
mod fleet;
mod group;
mod hold;
mod idle;
mod jump;
mod knownhosts;
mod loops;
mod options;
mod packets;
mod router;
mod rtt;
mod scale;
mod sequence;
mod servers;
mod statistics;
mod table;
mod warm;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{build, cleanup, command, paths};
use options::Options;

pub(crate) fn run(arguments: lexopt::Parser) -> Result<ExitCode> {
    let options = Options::parse(arguments)?;
    if options.install_peers {
        if options.verb == "router" {
            router::install()?;
        } else {
            clients::install()?;
        }
        if options.verb.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let measure: fn(&Options) -> Result<Value> = match options.verb.as_str() {
        "cold" => cold::run,
        "warm" => warm::run,
        "sequence" => sequence::run,
        "bulk" => bulk::run,
        "rtt" => rtt::run,
        "loop" => loops::run,
        "scale" => scale::run,
        "idle" => idle::run,
        "knownhosts" => knownhosts::run,
        "jump" => jump::run,
        "router" => router::run,
        other => bail!(
            "no benchmark `{other}`; there are cold, warm, sequence, bulk, rtt, loop, scale, idle, knownhosts, jump, router"
        ),
    };
    cleanup::on_signals()?;
    if options.verb == "loop" {
        build::release(&["--package", "mux-core", "--example", "loop_bench"])?;
    } else if options.verb == "router" {
        build::release(&[
            "--package",
            "mux-core",
            "--example",
            "node",
            "--example",
            "router_bench",
        ])?;
    } else {
        build::release(&["--package", "mux-core", "--example", "relay"])?;
        build::release(&["--package", "mux-cli", "--bin", "mux", "--example", "hold"])?;
        build::release(&[
            "--package",
            "mux-cli",
            "--example",
            "targets",
            "--example",
            "kept",
        ])?;
    }
    let results = measure(&options)?;
    save(&options.verb, results)
}

fn save(verb: &str, results: Value) -> Result<ExitCode> {
    let directory = paths::target().join("bench");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("{verb}.json"));
    let report = json!({ "benchmark": verb, "machine": machine(), "results": results });
    std::fs::write(&path, serde_json::to_string_pretty(&report)?)
        .with_context(|| path.display().to_string())?;
    println!("\n{}", path.display());
    Ok(ExitCode::SUCCESS)
}

/// Figures of two machines can't be compared; ratios can. This tells them apart.
fn machine() -> Value {
    let system = command::output(Command::new("uname").arg("-srm")).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    json!({ "system": system.trim(), "cpus": cpus, "model": model.trim_start_matches(['\t', ' ', ':']) })
}
