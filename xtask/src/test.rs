//! `cargo xtask test`: everything that has to hold before a change is merged; CI runs exactly this.
//!
//! It decides the steps and their order. It stops at the first that fails and says how to run that one alone.

pub(crate) mod setup;

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use lexopt::{Arg, ValueExt};

use crate::{command, fuzz, paths, style};

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

/// Quick ones first: whoever waits for a failure should not wait long.
const STEPS: &[Step] = &[
    Step {
        name: "setup",
        about: "foreign servers, a Python environment, cargo-deny",
        run: setup::run,
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
        run: || fuzz::all(fuzz::DEFAULT_SECONDS),
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
        done.push((step, start.elapsed()));
        if let Err(error) = result {
            table(&done, false);
            bail!(
                "step {} failed; alone: cargo xtask test --only {}\n{error:#}",
                step.name,
                step.name
            );
        }
    }
    table(&done, true);
    Ok(ExitCode::SUCCESS)
}

fn table(done: &[(&Step, Duration)], passed: bool) {
    println!();
    for (index, (step, time)) in done.iter().enumerate() {
        let failed = !passed && index + 1 == done.len();
        let verdict = if failed {
            style::bad("FAILED")
        } else {
            style::good("ok")
        };
        println!("{:<8} {:>12}  {verdict}", step.name, style::duration(*time));
    }
    println!(
        "{:<8} {:>12}",
        "all",
        style::duration(done.iter().map(|(_, time)| *time).sum())
    );
}

fn cargo(lines: Lines) -> Result<()> {
    each(lines, |_| {})
}

/// Every line, with something set on each.
fn each(lines: Lines, prepare: impl Fn(&mut Command)) -> Result<()> {
    for line in lines {
        let mut command = command::cargo([]);
        command.args(*line);
        prepare(&mut command);
        println!("{}", style::dim(&command::line(&command)));
        command::run(&mut command)?;
    }
    Ok(())
}

fn tidy() -> Result<()> {
    let code = crate::tidy::run(lexopt::Parser::from_args::<[&str; 0]>([]))?;
    ensure!(code == ExitCode::SUCCESS, "see the findings above");
    Ok(())
}

fn tests() -> Result<()> {
    let python = setup::python();
    each(TESTS, |command| {
        command.env("MUX_TEST_PYTHON", &python);
    })
}

fn docs() -> Result<()> {
    each(DOCS, |command| {
        command.env("RUSTDOCFLAGS", "-D warnings");
    })
}

fn deny() -> Result<()> {
    let mut command = Command::new(setup::cargo_deny());
    command.current_dir(paths::root()).args([
        "--all-features",
        "--locked",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    command::run(&mut command)
}
