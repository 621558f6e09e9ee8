//! Runs commands one after the other on connections that are kept, on many hosts at once: what a warm fleet costs.
//!
//! It is a client without a hub: no retries, no deadlines but one for all, one user, one key. It prints what the
//! commands print, each line behind the name of its host, and one line of JSON on standard error.

mod links;
mod sequence;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};

fn main() -> ExitCode {
    env_logger::init();
    let options = command().get_matches();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where even this can't be said, the status still does.
            let _ = writeln!(io::stderr(), "kept: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &ArgMatches) -> io::Result<()> {
    let report = sequence::run(options)?;
    writeln!(io::stderr(), "{}", serde_json::json!(report))
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
