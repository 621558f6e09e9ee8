//! Which targets a run has: reads the lists of hosts that were named. Decides nothing about the syntax.

use std::io;
use std::path::Path;

use mux_ssh::Printable;

use super::config::Configuration;
use crate::files;
use crate::plan::Plan;
use crate::targets::{HostsFile, HostsSource, MAX_HOSTS_FILE, Selection, TargetError, select};

/// The targets of `plan`, or what is wrong with them in one line or more.
pub(super) fn targets(plan: &Plan, configuration: &mut Configuration) -> Result<Selection, String> {
    if let Some(name) = plan.targets.glob_suspect()
        && Path::new(name).exists()
    {
        return Err(TargetError::globbed(name).to_string());
    }
    let mut lists = Vec::new();
    for source in &plan.targets.hosts {
        let (label, bytes) = match source {
            HostsSource::File(path) => (
                path.display().to_string(),
                files::read_named(path, MAX_HOSTS_FILE as u64).map_err(|error| error.to_string()),
            ),
            HostsSource::Stdin => (
                "standard input".to_owned(),
                read_stdin(MAX_HOSTS_FILE as u64, "name hosts with -w or --hosts FILE"),
            ),
        };
        let bytes = bytes.map_err(|error| format!("{}: {error}", Printable::new(&label)))?;
        lists.push((label, bytes));
    }
    let files: Vec<HostsFile<'_>> = lists
        .iter()
        .map(|(label, bytes)| HostsFile { label, bytes })
        .collect();
    let names: Vec<String> = configuration
        .literal_names()
        .map_err(|error| error.to_string())?
        .into_iter()
        .collect();
    select(&plan.targets, &files, &names).map_err(|error| error.to_string())
}

/// A list on standard input. One that is closed is no empty list: `advice` says what to do then.
pub(super) fn read_stdin(limit: u64, advice: &str) -> Result<Vec<u8>, String> {
    if mux_core::stdio::was_closed(io::stdin()) {
        return Err(format!("closed; {advice}"));
    }
    let mut content = Vec::new();
    files::read_into(io::stdin().lock(), limit, &mut content).map_err(|error| error.to_string())?;
    Ok(content)
}
