//! `xtask measure --report FILE -- COMMAND…`: what one command and all its children cost. Only `bench` calls it.
//!
//! A process of its own, so that "children" are exactly that command's tree: `getrusage(RUSAGE_CHILDREN)` counts
//! whatever was waited for, down to the last grandchild. Unwaited-for children are not counted; no client here has any.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lexopt::Arg;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    let mut report = PathBuf::new();
    let mut words = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("report") => report = arguments.value()?.into(),
            Arg::Value(word) => {
                words.push(word);
                words.extend(arguments.raw_args()?);
            }
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
        }
    }
    let (program, rest) = words.split_first().context("measure needs a command")?;

    let start = Instant::now();
    let status = Command::new(program)
        .args(rest)
        .status()
        .with_context(|| program.display().to_string())?;
    let wall = start.elapsed();

    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let json = json!({
        "wall": wall.as_secs_f64(),
        "user": seconds(usage.user_time()),
        "system": seconds(usage.system_time()),
        // Linux gives KiB, and of the largest process of the tree, not of their sum.
        "peak_rss_kib": usage.max_rss(),
        "voluntary": usage.voluntary_context_switches(),
        "involuntary": usage.involuntary_context_switches(),
        "code": status.code(),
    });
    std::fs::write(&report, json.to_string()).with_context(|| report.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn seconds(time: TimeVal) -> f64 {
    let micros = time.tv_sec().unsigned_abs() * 1_000_000 + time.tv_usec().unsigned_abs();
    Duration::from_micros(micros).as_secs_f64()
}
