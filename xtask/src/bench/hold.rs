//! The example `hold`: connections that stay open, with commands on them.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::fleet::Fleet;
use super::statistics::Summary;
use crate::{command, paths};

/// How long a command takes on a connection that is open: milliseconds to its first output, the median of a few.
pub(super) fn next_command(fleet: &Fleet, remote: &str) -> Result<f64> {
    let addresses: Vec<String> = fleet.hosts.iter().map(|host| host.address.to_string()).collect();
    let mut command = Command::new(paths::release("examples/hold"));
    command
        .args([
            "--to",
            &addresses.join(","),
            "--user",
            &fleet.user,
            "--command",
            remote,
            "--commands",
            "5",
            "--key",
        ])
        .arg(&fleet.key)
        .arg("--known-hosts")
        .arg(&fleet.known_hosts);
    let text = command::output(&mut command)?;
    let report: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let times = report
        .get("next_ms")
        .and_then(Value::as_array)
        .context("hold reported no times")?;
    Ok(Summary::of(times.iter().filter_map(Value::as_f64))
        .context("hold ran no command")?
        .median)
}
