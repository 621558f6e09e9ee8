//! The example `hold`: connections that stay open, with commands on them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::fleet::Fleet;
use crate::{command, paths};

/// How long a command takes on a connection that is open, in milliseconds.
pub(super) fn next_command(fleet: &Fleet, state: &Path, remote: &str) -> Result<f64> {
    let mut command = Command::new(paths::release("examples/hold"));
    command
        .arg("-F")
        .arg(&fleet.config)
        .args(["-w", &fleet.targets(), "--rounds", "2", "--", remote]);
    command.env("XDG_STATE_HOME", state);
    let text = command::output(&mut command)?;
    text.lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .context("hold printed no time")
}
