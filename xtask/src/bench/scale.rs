//! `bench scale`: what a target costs when there are many. Two parts: servers that live in one process, from ten to ten
//! thousand, where only the client is measured; and a thousand hosts on a real sshd, which is the bottleneck there.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use super::clients::Client;
use super::cost::{self, METRICS, Metric, Run};
use super::group::Group;
use super::options::Options;
use super::servers::{self, KeyExchange};
use super::statistics::Summary;
use super::{cold, embedded, table};
use crate::cleanup::Directory;
use crate::style;

const REMOTE: &str = "hostname";

/// Targets in one process.
const COUNTS: [usize; 5] = [10, 100, 1_000, 3_000, 10_000];

/// Those two are compared: at ten the start of the program counts for more than the targets.
const FEW: usize = 100;
const MANY: usize = 10_000;

/// What a target among ten thousand may cost of one among a hundred.
const GROWTH: f64 = 1.5;

/// On the real sshd.
const HOSTS: u16 = 1_000;

/// How much longer a run may take than sshd and its children need of all processors.
const ABOVE_SSHD: f64 = 1.15;

/// What ours may use on the real hosts.
const CLIENT_CPU: Duration = Duration::from_millis(300);

type Part = fn(&Directory, &Options) -> Result<Value>;

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    let mut results = Map::new();
    let parts: [(&str, Part); 2] = [("embedded", embedded_targets), ("sshd", real_hosts)];
    if let Some(part) = options.part.as_deref()
        && parts.iter().all(|(name, _)| *name != part)
    {
        bail!("no part `{part}`; there are embedded, sshd");
    }
    for (name, measure) in parts {
        if options.part.as_deref().is_none_or(|part| part == name) {
            results.insert(name.to_owned(), measure(&directory, options)?);
        }
    }
    Ok(Value::Object(results))
}

fn embedded_targets(directory: &Directory, options: &Options) -> Result<Value> {
    println!(
        "{}",
        style::bold(&format!(
            "\nscale: `{REMOTE}` on targets that live in one process, at 0 ms, median [range] of {} runs",
            options.runs
        ))
    );
    let mut rows = vec![heading(&["targets", "CPU µs each"])];
    let mut costs = Vec::new();
    let mut results = Map::new();
    for count in COUNTS {
        let targets = embedded::start(directory, count, 64)?;
        let mut runs = Vec::new();
        // One round more than asked for: the first warms caches and is thrown away.
        for round in 0..=options.runs {
            let state = tempfile::tempdir_in(directory.path())?;
            let run = cost::measure(directory.path(), &targets.mux(state.path(), REMOTE))?;
            let answers = run.stdout.lines().filter(|line| line.starts_with('t')).count();
            ensure!(
                answers == count,
                "{answers} of {count} targets answered\n{}",
                run.stderr
            );
            if round > 0 {
                runs.push(run);
            }
        }
        let each = each(&runs, count).context("nothing was measured")?;
        rows.push(row(&format!("{count} all ok"), &runs, &[micros(each)]));
        costs.push((count, each.median));
        let mut report = cost::to_json(&runs);
        if let Some(report) = report.as_object_mut() {
            report.insert(
                "CPU µs each".to_owned(),
                json!({ "median": each.median, "least": each.least, "most": each.most }),
            );
        }
        results.insert(count.to_string(), report);
    }
    table::print(&rows);
    let of = |wanted: usize| {
        let found = costs.iter().find(|(count, _)| *count == wanted);
        found.map(|(_, each)| *each)
    };
    let (few, many) = of(FEW).zip(of(MANY)).context("both are among those measured")?;
    let growth = many / few;
    verdict(
        growth <= GROWTH,
        &format!("a target among {MANY} costs {growth:.2} × one among {FEW} (at most {GROWTH})"),
    );
    results.insert("growth".to_owned(), json!(growth));
    Ok(Value::Object(results))
}

/// Processor time a target, in µs.
fn each(runs: &[Run], count: usize) -> Option<Summary> {
    let count = f64::from(u32::try_from(count).ok()?);
    Summary::of(runs.iter().filter_map(Run::cpu_ms).map(|cpu| cpu * 1e3 / count))
}

fn real_hosts(directory: &Directory, options: &Options) -> Result<Value> {
    let mut options = options.clone();
    options.hosts = HOSTS;
    servers::generate_keys(directory)?;
    let mut sshd = servers::openssh(directory, KeyExchange::Curve25519)?;
    let group = Group::of(sshd.process())?;
    let (fleet, _relay) = cold::fleet(directory, KeyExchange::Curve25519, &sshd, &options)?;
    println!(
        "{}",
        style::bold(&format!(
            "\nscale: `{REMOTE}` on {HOSTS} hosts at {} ms, OpenSSH, key exchange: curve25519, median [range] of {} runs",
            options.rtt, options.runs
        ))
    );
    let mut runs: Vec<(Client, Vec<Run>, Vec<f64>)> = options
        .clients()
        .map(|client| (client, Vec::new(), Vec::new()))
        .collect();
    for round in 0..=options.runs {
        for (client, runs, bounds) in &mut runs {
            settled(&group)?;
            let before = group.used()?;
            let run = cold::once(directory, &fleet, *client)?;
            settled(&group)?;
            let used = group.used()?.saturating_sub(before);
            if round > 0 {
                runs.push(run);
                bounds.push(used.as_secs_f64() * 1e3 / processors());
            }
        }
    }
    show(&runs)
}

fn show(runs: &[(Client, Vec<Run>, Vec<f64>)]) -> Result<Value> {
    let mut rows = vec![heading(&["client", "sshd ms", "wall / sshd"])];
    let mut results = Map::new();
    for (client, runs, bounds) in runs {
        let bound = Summary::of(bounds.iter().copied()).context("nothing was measured")?;
        let walls = runs.iter().filter_map(Run::wall_ms);
        let ratio = Summary::of(walls.zip(bounds).map(|(wall, bound)| wall / bound));
        let ratio = ratio.context("nothing was measured")?;
        rows.push(row(
            client.name(),
            runs,
            &[
                format!("{:.0} [{:.0}–{:.0}]", bound.median, bound.least, bound.most),
                format!("{:.2} [{:.2}–{:.2}]", ratio.median, ratio.least, ratio.most),
            ],
        ));
        let mut report = cost::to_json(runs);
        if let Some(report) = report.as_object_mut() {
            report.insert("sshd ms".to_owned(), json!(bound.median));
            report.insert("wall / sshd".to_owned(), json!(ratio.median));
        }
        results.insert(client.name().to_owned(), report);
        if *client == Client::Mux {
            let cpu = Summary::of(runs.iter().filter_map(Run::cpu_ms)).context("nothing was measured")?;
            let most = CLIENT_CPU.as_secs_f64() * 1e3;
            let good = ratio.median <= ABOVE_SSHD && cpu.median <= most;
            results.insert("reached".to_owned(), json!(good));
        }
    }
    table::print(&rows);
    println!(
        "  {}",
        style::dim(&format!(
            "sshd ms: processor time of sshd and its children in the run, divided by {} processors; \
             ours is to stay below × {ABOVE_SSHD} of it and below {} ms of its own",
            processors(),
            CLIENT_CPU.as_millis()
        ))
    );
    Ok(Value::Object(results))
}

/// Sessions that end take a moment after the client has gone: until nothing is used any more.
fn settled(group: &Group) -> Result<()> {
    const QUIET: Duration = Duration::from_millis(300);
    const PATIENCE: Duration = Duration::from_secs(30);
    let start = Instant::now();
    let mut last = group.used()?;
    while start.elapsed() < PATIENCE {
        std::thread::sleep(QUIET);
        let now = group.used()?;
        if now.saturating_sub(last) < QUIET / 100 {
            break;
        }
        last = now;
    }
    Ok(())
}

fn processors() -> f64 {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn heading(own: &[&str]) -> Vec<String> {
    let (first, rest) = own.split_first().unwrap_or((&"", &[]));
    let titles = METRICS.iter().map(|metric| metric.title);
    std::iter::once(*first)
        .chain(titles)
        .chain(rest.iter().copied())
        .map(str::to_owned)
        .collect()
}

fn row(name: &str, runs: &[Run], rest: &[String]) -> Vec<String> {
    let cell = |metric: &Metric| {
        let summary = metric.summary(runs);
        summary.map(|summary| metric.show(summary)).unwrap_or_default()
    };
    std::iter::once(name.to_owned())
        .chain(METRICS.iter().map(cell))
        .chain(rest.iter().cloned())
        .collect()
}

fn micros(summary: Summary) -> String {
    format!("{:.0} [{:.0}–{:.0}]", summary.median, summary.least, summary.most)
}

/// One line beneath a table: reached or not.
pub(super) fn verdict(good: bool, text: &str) {
    let text = if good {
        style::good(text)
    } else {
        style::bad(&format!("NOT REACHED: {text}"))
    };
    println!("  {text}");
}
