//! `mux config -G`: prints what the configuration says about one host. Connects to nothing.

use std::fmt::Write as _;

use mux_ssh::Printable;
use mux_ssh::config::Effective;

use super::config::Configuration;
use super::{complain, print};
use crate::exit;
use crate::flags::ConfigQuery;
use crate::targets::{self, Target};

/// Where the column with the places begins, unless a value is longer.
const COLUMN: usize = 48;

/// Prints the configuration and returns the exit status.
pub(super) fn show(query: &ConfigQuery) -> u8 {
    let mut configuration = Configuration::new(&query.connection);
    let lines = target(&query.host, &mut configuration).and_then(|target| {
        configuration
            .effective(&target)
            .map_err(|error| error.to_string())
    });
    match lines {
        Ok(lines) => print(&text(&lines, query.origin)),
        Err(error) => {
            complain(&error);
            exit::USAGE
        }
    }
}

/// The target that `host` means, as `-w` reads it: what is printed is to be what a run would do.
fn target(host: &str, configuration: &mut Configuration) -> Result<Target, String> {
    let names = configuration.literal_names().map_err(|error| error.to_string())?;
    let known: Vec<Target> = names
        .into_iter()
        .map(|name| Target::new(None, name, None))
        .collect();
    let set = targets::parse(host, &known).map_err(|error| error.to_string())?;
    match <[Target; 1]>::try_from(set.into_vec()) {
        Ok([target]) => Ok(target),
        Err(others) => Err(format!(
            "config -G: one host at a time, and {} is {} ({}); name one of them",
            Printable::new(host),
            others.len(),
            targets::fold(others.iter())
        )),
    }
}

/// One line a value. What others wrote can't act on a terminal.
fn text(lines: &[Effective], with_origin: bool) -> String {
    let mut text = String::new();
    for line in lines {
        let shown = line.to_string();
        let shown = Printable::within(&shown, usize::MAX).to_string();
        let _infallible = match with_origin {
            true => writeln!(text, "{:COLUMN$} # {}", shown, line.origin),
            false => writeln!(text, "{shown}"),
        };
    }
    text
}
