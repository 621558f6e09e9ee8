//! `cargo xtask build`: the release binary. It decides nothing but what belongs to a release.

use std::process::ExitCode;

use anyhow::Result;

use crate::{command, paths};

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    if let Some(argument) = arguments.next()? {
        return Err(argument.unexpected().into());
    }
    release(&["--package", "mux-cli", "--bin", "mux"])?;
    println!("{}", paths::release("mux").display());
    Ok(ExitCode::SUCCESS)
}

/// Builds parts of the workspace with the release profile, from the committed lock file.
pub(crate) fn release(what: &[&str]) -> Result<()> {
    command::run(command::cargo(["build", "--release", "--locked"]).args(what))
}
