//! What one run of a whole client cost: it and all its children, from start to exit. Measured by `xtask measure`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::statistics::Summary;
use crate::command;

/// One run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) cost: Value,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Run {
    pub(super) fn wall_ms(&self) -> Option<f64> {
        self.cost
            .get("wall")
            .and_then(Value::as_f64)
            .map(|seconds| seconds * 1e3)
    }

    /// User and system together.
    pub(super) fn cpu_ms(&self) -> Option<f64> {
        let seconds = |key: &str| self.cost.get(key).and_then(Value::as_f64);
        Some((seconds("user")? + seconds("system")?) * 1e3)
    }

    pub(super) fn peak_mib(&self) -> Option<f64> {
        let kib = self.cost.get("peak_rss_kib").and_then(Value::as_f64)?;
        Some(kib / 1024.0)
    }

    /// Whether the command ended with status 0.
    pub(super) fn succeeded(&self) -> bool {
        self.cost.get("code").and_then(Value::as_i64) == Some(0)
    }
}

/// A column of the tables: where the number lies in a report, and how it is shown.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) title: &'static str,
    key: &'static str,
    scale: f64,
    decimals: usize,
}

/// Milliseconds, MiB and plain counts.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        title: "wall ms",
        key: "wall",
        scale: 1e3,
        decimals: 0,
    },
    Metric {
        title: "user ms",
        key: "user",
        scale: 1e3,
        decimals: 1,
    },
    Metric {
        title: "system ms",
        key: "system",
        scale: 1e3,
        decimals: 1,
    },
    Metric {
        title: "CPU ms",
        key: "cpu",
        scale: 1e3,
        decimals: 1,
    },
    Metric {
        title: "peak MiB",
        key: "peak_rss_kib",
        scale: 1.0 / 1024.0,
        decimals: 1,
    },
    Metric {
        title: "voluntary",
        key: "voluntary",
        scale: 1.0,
        decimals: 0,
    },
    Metric {
        title: "involuntary",
        key: "involuntary",
        scale: 1.0,
        decimals: 0,
    },
];

impl Metric {
    pub(super) fn summary(&self, runs: &[Run]) -> Option<Summary> {
        Summary::of(runs.iter().filter_map(|run| self.of(run)))
    }

    /// `median [least – most]`.
    pub(super) fn show(&self, summary: Summary) -> String {
        let Summary { median, least, most } = summary;
        format!("{median:.0$} [{least:.0$}–{most:.0$}]", self.decimals)
    }

    /// The others' median divided by ours.
    pub(super) fn ratio(&self, runs: &[Run], ours: &[Run]) -> Option<f64> {
        let ratio = self.summary(runs)?.median / self.summary(ours)?.median;
        ratio.is_finite().then_some(ratio)
    }

    fn of(&self, run: &Run) -> Option<f64> {
        let number = |key: &str| run.cost.get(key).and_then(Value::as_f64);
        let raw = if self.key == "cpu" {
            number("user")? + number("system")?
        } else {
            number(self.key)?
        };
        Some(raw * self.scale)
    }
}

/// All metrics of some runs, for the report.
pub(super) fn to_json(runs: &[Run]) -> Value {
    let entry = |metric: &Metric| {
        let Summary { median, least, most } = metric.summary(runs)?;
        Some((
            metric.title.to_owned(),
            json!({ "median": median, "least": least, "most": most }),
        ))
    };
    Value::Object(METRICS.iter().filter_map(entry).collect())
}

/// Runs a command under `xtask measure`, with its output in files of `scratch`: a pipe would make us part of the race.
pub(super) fn measure(scratch: &Path, what: &Command) -> Result<Run> {
    measure_with(scratch, what, Stdio::null(), true)
}

/// The same with an input of its own; `keep`: its standard output is wanted, and does not go to `/dev/null`.
pub(super) fn measure_with(scratch: &Path, what: &Command, input: Stdio, keep: bool) -> Result<Run> {
    let (report, stdout, stderr) = (
        scratch.join("report.json"),
        scratch.join("stdout"),
        scratch.join("stderr"),
    );
    let mut command = Command::new(this_program()?);
    command
        .args(["measure", "--report"])
        .arg(&report)
        .arg("--")
        .arg(what.get_program())
        .args(what.get_args());
    for (key, value) in what.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let kept = File::create(&stdout)?;
    command
        .stdin(input)
        .stdout(if keep { Stdio::from(kept) } else { Stdio::null() })
        .stderr(File::create(&stderr)?);
    let status = command.status()?;
    let read = |path: &Path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    ensure!(status.success(), "`{}`: {}", command::line(what), read(&stderr)?);
    let cost = serde_json::from_str(&read(&report)?).context("the report of `xtask measure`")?;
    Ok(Run {
        cost,
        stdout: read(&stdout)?,
        stderr: read(&stderr)?,
    })
}

/// By the name that the kernel has for it: a benchmark outlives a rebuild of this very binary.
fn this_program() -> Result<PathBuf> {
    let linked = Path::new("/proc/self/exe");
    if linked.exists() {
        return Ok(linked.to_owned());
    }
    std::env::current_exe().context("cannot find this program")
}
