//! Which targets a run has: reads the lists of hosts that were named. Decides nothing about the syntax.

use std::io::{self, Read};
use std::path::Path;

use super::config::Configuration;
use crate::plan::Plan;
use crate::targets::{HostsFile, HostsSource, Selection, TargetError, select};

/// A list of hosts is text that people or tools write; more than this is something else.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The targets of `plan`, or what is wrong with them in one line or more.
pub(super) fn targets(plan: &Plan, configuration: &mut Configuration) -> Result<Selection, String> {
    if let Some(name) = plan.targets.glob_suspect()
        && Path::new(name).exists()
    {
        return Err(TargetError::globbed(name).to_string());
    }
    let mut files = Vec::new();
    for source in &plan.targets.hosts {
        let (label, bytes) = match source {
            HostsSource::File(path) => (path.display().to_string(), read(path)),
            HostsSource::Stdin => ("-".to_owned(), read_stdin()),
        };
        files.push((label.clone(), bytes.map_err(|error| format!("{label}: {error}"))?));
    }
    let files: Vec<HostsFile<'_>> = files
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

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MAX_FILE)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
