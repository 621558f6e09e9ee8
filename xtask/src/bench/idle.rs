//! `bench idle`: what a connection costs that is kept and on which nothing happens: resident memory of the client, by
//! the example `hold`, and the kernel's socket memory beside it.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::options::Options;
use super::scale::verdict;
use super::statistics::Summary;
use super::{embedded, table};
use crate::cleanup::Directory;
use crate::{command, paths, style};

/// Held at once.
const CONNECTIONS: usize = 10_000;

/// The addresses that they go to: local ports are enough for each of them.
const TARGETS: usize = 10;

/// What a connection may hold.
const MOST: f64 = 16.0;

/// Long enough that what was needed to open connections is given back.
const IDLE_SECONDS: u32 = 2;

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    println!(
        "{}",
        style::bold(&format!(
            "\nidle: {CONNECTIONS} connections kept, nothing happens on them, median [range] of {} runs",
            options.runs
        ))
    );
    let mut reports = Vec::new();
    for _ in 0..options.runs.max(1) {
        reports.push(once(&directory)?);
    }
    let of = |name: &str| {
        let values = reports.iter().filter_map(|report| report.get(name)?.as_f64());
        Summary::of(values).with_context(|| format!("hold reports no {name}"))
    };
    let rows = [
        ("RSS with 0, MiB", of("rss_kib_before")?, 1024.0),
        ("RSS with all held, MiB", of("rss_kib_held")?, 1024.0),
        ("held a connection, KiB", of("rss_bytes_per_connection")?, 1024.0),
        ("kernel's TCP memory before, KiB", of("kernel_kib_before")?, 1.0),
        (
            "kernel's TCP memory with all held, KiB",
            of("kernel_kib_held")?,
            1.0,
        ),
        ("opening them all, s", of("open_ms")?, 1000.0),
    ];
    let mut table = vec![vec![String::new(), "median".to_owned(), "range".to_owned()]];
    for (title, Summary { median, least, most }, unit) in rows {
        table.push(vec![
            title.to_owned(),
            format!("{:.1}", median / unit),
            format!("{:.1}–{:.1}", least / unit, most / unit),
        ]);
    }
    table::print(&table);
    println!(
        "  {}",
        style::dim(
            "kernel's TCP memory: of both ends and of everything else on this machine; nothing is queued in it"
        )
    );
    let each = of("rss_bytes_per_connection")?.median / 1024.0;
    verdict(
        each <= MOST,
        &format!("an idle connection holds {each:.1} KiB (at most {MOST})"),
    );
    Ok(json!({ "runs": reports, "kib_each": each }))
}

fn once(directory: &Directory) -> Result<Value> {
    let targets = embedded::start(directory, TARGETS, CONNECTIONS)?;
    let addresses: Vec<String> = (0..TARGETS)
        .map(|index| Ok(format!("{}:{}", embedded::Targets::address(index)?, targets.port)))
        .collect::<Result<_>>()?;
    let mut command = Command::new(paths::release("examples/hold"));
    command
        .args(["--to", &addresses.join(","), "--user", "demo"])
        .args(["--command", "hostname", "--commands", "0"])
        .args(["--count", &CONNECTIONS.to_string()])
        .args(["--idle", &IDLE_SECONDS.to_string(), "--key"])
        .arg(&targets.key)
        .arg("--known-hosts")
        .arg(&targets.known_hosts);
    let text = command::output(&mut command)?;
    serde_json::from_str(&text).with_context(|| text.clone())
}
