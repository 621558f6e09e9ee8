//! `cargo xtask test`: everything that has to hold before a change is merged; CI runs exactly this.
//!
//! It decides the steps and their order. It stops at the first that fails and says how to run that one alone.

pub(crate) mod setup;
mod tally;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use lexopt::{Arg, ValueExt};

use crate::{command, fuzz, paths, style};
use tally::Tally;

struct Step {
    name: &'static str,
    about: &'static str,
    /// Gives what the table should say beside the time.
    run: fn() -> Result<String>,
}

/// Quick ones first: whoever waits for a failure should not wait long.
const STEPS: &[Step] = &[
    Step {
        name: "setup",
        about: "foreign servers, a Python environment, cargo-deny",
        run: || quiet(setup::run()),
    },
    Step {
        name: "fmt",
        about: "rustfmt changes nothing",
        run: || cargo(FMT),
    },
    Step {
        name: "tidy",
        about: "the project's own rules",
        run: tidy,
    },
    Step {
        name: "clippy",
        about: "no warning: all targets and features, then each library alone",
        run: || cargo(CLIPPY),
    },
    Step {
        name: "tests",
        about: "all tests with all features, then each library alone",
        run: tests,
    },
    Step {
        name: "docs",
        about: "no warning in the documentation, whole and each library alone",
        run: docs,
    },
    Step {
        name: "deny",
        about: "bans, licences and sources of dependencies",
        run: deny,
    },
    Step {
        name: "fuzz",
        about: "each decoder for 20 seconds",
        run: || quiet(fuzz::all(fuzz::DEFAULT_SECONDS)),
    },
];

/// Command lines of cargo.
type Lines = &'static [&'static [&'static str]];

const FMT: Lines = &[
    &["fmt", "--all", "--check"],
    &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"],
];

/// "Alone" means without the features that the workspace's other members would switch on.
const CLIPPY: Lines = &[
    &[
        "clippy",
        "--quiet",
        "--locked",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ],
    &[
        "clippy",
        "--quiet",
        "--locked",
        "-p",
        "mux-proto",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
    &[
        "clippy",
        "--quiet",
        "--locked",
        "-p",
        "mux-core",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
    &[
        "clippy",
        "--quiet",
        "--locked",
        "-p",
        "mux-ssh",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ],
];

const TESTS: Lines = &[
    &["test", "--locked", "--workspace", "--all-features"],
    &["test", "--quiet", "--locked", "-p", "mux-proto"],
    &["test", "--quiet", "--locked", "-p", "mux-core"],
    &["test", "--quiet", "--locked", "-p", "mux-ssh"],
];

const DOCS: Lines = &[
    &[
        "doc",
        "--quiet",
        "--locked",
        "--no-deps",
        "--workspace",
        "--all-features",
    ],
    &["doc", "--quiet", "--locked", "--no-deps", "-p", "mux-proto"],
    &["doc", "--quiet", "--locked", "--no-deps", "-p", "mux-core"],
    &["doc", "--quiet", "--locked", "--no-deps", "-p", "mux-ssh"],
];

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    let mut only: Option<String> = None;
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("only") => only = Some(arguments.value()?.string()?),
            Arg::Long("list") => {
                STEPS
                    .iter()
                    .for_each(|step| println!("{:<8} {}", step.name, step.about));
                return Ok(ExitCode::SUCCESS);
            }
            Arg::Short(_) | Arg::Long(_) | Arg::Value(_) => return Err(argument.unexpected().into()),
        }
    }
    let wanted = |step: &&Step| only.as_deref().is_none_or(|name| name == step.name);
    let steps: Vec<&Step> = STEPS.iter().filter(wanted).collect();
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("no such step; there are {}", names.join(", "));
    }
    let mut done = Vec::new();
    for step in steps {
        println!("{}", style::bold(&format!("== {}: {}", step.name, step.about)));
        let start = Instant::now();
        let result = (step.run)();
        let (note, error) = match result {
            Ok(note) => (Some(note), None),
            Err(error) => (None, Some(error)),
        };
        done.push(Done {
            name: step.name,
            time: start.elapsed(),
            note,
        });
        if let Some(error) = error {
            table(&done);
            bail!(
                "step {0} failed; alone: cargo xtask test --only {0}\n{error:#}",
                step.name
            );
        }
    }
    table(&done);
    Ok(ExitCode::SUCCESS)
}

/// A step that ran; without a note if it failed.
struct Done {
    name: &'static str,
    time: Duration,
    note: Option<String>,
}

fn table(done: &[Done]) {
    println!();
    for Done { name, time, note } in done {
        let verdict = if note.is_some() {
            style::good("ok")
        } else {
            style::bad("FAILED")
        };
        println!(
            "{name:<8} {:>12}  {verdict}  {}",
            style::duration(*time),
            note.as_deref().unwrap_or_default()
        );
    }
    println!(
        "{:<8} {:>12}",
        "all",
        style::duration(done.iter().map(|done| done.time).sum())
    );
}

fn cargo(lines: Lines) -> Result<String> {
    quiet(each_with(lines, command::run))
}

fn each_with(lines: Lines, mut run: impl FnMut(&mut Command) -> Result<()>) -> Result<()> {
    for line in lines {
        let mut command = command::cargo([]);
        command.args(*line);
        println!("{}", style::dim(&command::line(&command)));
        run(&mut command)?;
    }
    Ok(())
}

fn tidy() -> Result<String> {
    let code = crate::tidy::run(lexopt::Parser::from_args::<[&str; 0]>([]))?;
    ensure!(code == ExitCode::SUCCESS, "see the findings above");
    Ok(String::new())
}

/// Tests of Ctrl-C send signals to programs that leave an ignored signal ignored. A shell's background jobs, and so
/// whatever runs in them, ignore SIGINT; this puts it right, where env(1) can.
const DEFAULT_SIGNALS: &str = "--default-signal=HUP,INT,QUIT,TERM";

/// The results are shown again, added up, as the last word: they are what a reader of a log looks for.
fn tests() -> Result<String> {
    let env_can = command::run_quietly(Command::new("env").args([DEFAULT_SIGNALS, "true"])).is_ok();
    let mut tally = Tally::default();
    let result = each_with(TESTS, |cargo| {
        let mut command = Command::new("env");
        command
            .args(env_can.then_some(DEFAULT_SIGNALS))
            .arg(cargo.get_program())
            .args(cargo.get_args());
        command
            .current_dir(paths::root())
            .env("MUX_TEST_PYTHON", setup::python());
        command::run_and_read(&mut command, |line| tally.add(line))
    });
    println!("{tally}");
    result.map(|()| tally.to_string())
}

fn docs() -> Result<String> {
    quiet(each_with(DOCS, |command| {
        command::run(command.env("RUSTDOCFLAGS", "-D warnings"))
    }))
}

fn deny() -> Result<String> {
    let mut command = Command::new(setup::cargo_deny());
    command.current_dir(paths::root()).args([
        "--all-features",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    quiet(command::run(&mut command))
}

/// A step that needs no more than its time in the table.
fn quiet(result: Result<()>) -> Result<String> {
    result.map(|()| String::new())
}
