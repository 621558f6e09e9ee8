//! Runs commands one after the other on connections that are kept, on many hosts at once: what a warm fleet costs.
//!
//! It is a client without a hub: no retries, no deadlines but one for all, one user, one key. It prints what the
//! commands print, each line behind the address of its host, and one line of JSON on standard error.

mod links;
mod sequence;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, Command, value_parser};

fn main() -> ExitCode {
    env_logger::init();
    let report = sequence::run(&command().get_matches());
    let written = match &report {
        Ok(report) => writeln!(io::stderr(), "{}", serde_json::json!(report)),
        Err(error) => writeln!(io::stderr(), "kept: {error}"),
    };
    if report.is_ok() && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn command() -> Command {
    let value = |name: &'static str, placeholder: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(placeholder).help(help)
    };
    let path = |name, help| {
        value(name, "FILE", help)
            .value_parser(value_parser!(PathBuf))
            .required(true)
    };
    let number = |name, help| value(name, "N", help).value_parser(value_parser!(usize));
    Command::new("kept")
        .about("Runs a command again and again on connections that are kept.")
        .arg(path("hosts", "a line `name address port` a host"))
        .arg(value("user", "NAME", "log in as").default_value("root"))
        .arg(path("key", "private key without passphrase"))
        .arg(path("known-hosts", "host keys"))
        .arg(number("fanout", "connections that are being opened at once").default_value("64"))
        .arg(number("commands", "how often each host runs the command").default_value("10"))
        .arg(value("command", "TEXT", "what to run").default_value("hostname"))
}
