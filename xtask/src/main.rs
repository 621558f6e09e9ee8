//! The project's own commands: `cargo xtask <verb>`, one verb a file.
//!
//! It decides how the workspace is built, checked and measured. It depends on no crate of the workspace: what it
//! knows of them it learns by building and running them, as their users do.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command for people: its output is its purpose"
)]

mod bench;
mod build;
mod cleanup;
mod command;
mod demo;
mod fuzz;
mod interop;
mod measure;
mod mutants;
mod paths;
mod style;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

/// What a verb is given: the rest of the command line.
type Verb = fn(lexopt::Parser) -> Result<ExitCode>;

/// Every verb, in the order of the help text. `measure` is for `bench` alone and not listed.
const VERBS: &[(&str, &str, Verb)] = &[
    (
        "demo",
        "[N] [--rtt MS]                     run a command on 100 servers that live in one process",
        demo::run,
    ),
    (
        "build",
        "                                   build the release binary",
        build::run,
    ),
    (
        "test",
        "[--only STEP] [--list]             everything that CI checks, setup included",
        test::run,
    ),
    (
        "tidy",
        "                                   the project's own rules, with file and line",
        tidy::run,
    ),
    (
        "fuzz",
        "[TARGET]... [--seconds N] [--seed N] [--keep] fuzz the decoders, or keep what was found",
        fuzz::run,
    ),
    (
        "mutants",
        "[NAME]... [--list]                 break what must hold, and see tests fail",
        mutants::run,
    ),
    (
        "interop",
        "[--debian SUITE] [FILTER]...       our client against foreign servers, or another Debian's sshd",
        interop::run,
    ),
    (
        "bench",
        "cold|warm|sequence|bulk|rtt|loop|scale|idle|knownhosts|jump|router [--install-peers] measure, against others where there are any",
        bench::run,
    ),
];

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{} {error:#}", style::bad("error:"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch() -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_env();
    let verb = match parser.next()? {
        Some(lexopt::Arg::Value(verb)) => verb.to_string_lossy().into_owned(),
        Some(lexopt::Arg::Short('h') | lexopt::Arg::Long("help")) | None => {
            help();
            return Ok(ExitCode::SUCCESS);
        }
        Some(other) => return Err(other.unexpected().into()),
    };
    if verb == "measure" {
        return measure::run(parser);
    }
    match VERBS.iter().find(|(name, ..)| *name == verb) {
        Some((_, _, run)) => run(parser),
        None => {
            help();
            bail!("no verb `{verb}`")
        }
    }
}

fn help() {
    println!("cargo xtask VERB");
    for (name, about, _) in VERBS {
        println!("  {name:<7} {about}");
    }
}
