//! Which targets a run has: reads the lists of hosts that were named. Decides nothing about the syntax.

use std::io::{self, Read};
use std::path::Path;

use super::config::Configuration;
use crate::plan::Plan;
use crate::targets::{HostsFile, HostsSource, MAX_HOSTS_FILE, Selection, TargetError, select};

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
    bounded(std::fs::File::open(path)?)
}

fn read_stdin() -> io::Result<Vec<u8>> {
    bounded(io::stdin().lock())
}

/// Half a list would be another fleet: a list that is too long is an error.
fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
    let limit = MAX_HOSTS_FILE as u64;
    let mut bytes = Vec::new();
    if source.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        let message = format!("larger than {} MiB, which is no list of hosts", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_too_long_is_an_error_and_not_half_a_fleet() {
        let line = b"web1\n".iter().copied().cycle();
        let read = |length| bounded(line.clone().take(length).collect::<Vec<u8>>().as_slice());
        assert_eq!(
            read(MAX_HOSTS_FILE).map(|bytes| bytes.len()).ok(),
            Some(MAX_HOSTS_FILE)
        );
        assert_eq!(
            read(MAX_HOSTS_FILE + 1).map_err(|error| error.to_string()),
            Err("larger than 16 MiB, which is no list of hosts".to_owned())
        );
    }
}
