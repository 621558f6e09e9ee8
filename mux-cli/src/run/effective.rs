//! `mux config -G`: prints what the configuration says about one host. Connects to nothing.

use std::fmt::Write as _;

use mux_ssh::Printable;
use mux_ssh::config::Effective;

use super::config::Configuration;
use super::{complain, print};
use crate::exit;
use crate::flags::ConfigQuery;

/// Where the column with the places begins, unless a value is longer.
const COLUMN: usize = 48;

/// Prints the configuration and returns the exit status.
pub(super) fn show(query: &ConfigQuery) -> u8 {
    match Configuration::new(&query.connection).effective(&query.host) {
        Ok(lines) => print(&text(&lines, query.origin)),
        Err(error) => {
            complain(&error.to_string());
            exit::USAGE
        }
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
