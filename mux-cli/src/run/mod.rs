//! `mux run` and what it is made of: the loop that ties hub, links, blocking pool, output and signals together.
//! Reads the command line and the environment once and hands values on; every decision is made elsewhere.

mod abandoned;
mod agents;
mod asking;
mod askpass;
mod bound;
mod complaints;
mod config;
mod directories;
mod early;
mod effective;
mod either;
mod engine;
mod expected;
mod fallback;
mod far;
mod feeding;
mod flights;
mod forwarding;
mod forwards;
mod further_keys;
mod gathering;
mod host_keys;
mod hosts;
mod in_file;
mod input;
mod interrupts;
mod jumps;
mod key_command;
mod known;
mod learning;
mod lessons;
mod likeness;
mod limits;
mod locals;
mod looking;
mod methods;
pub(crate) mod net;
mod offers;
mod openssh;
mod other_ways;
mod outside;
mod outward;
mod pipe;
mod preparing;
mod profile;
mod prompting;
mod proxies;
mod questions;
mod recording;
mod relay;
mod report;
mod revoked;
mod searches;
mod select;
mod settings;
mod signing;
mod source;
mod start;
mod stop;
mod task;
mod terminal;
mod unsupported;
mod wall_clock;
pub(crate) mod wire;
mod worked;

pub(crate) use config::state_home;
pub(crate) use limits::{for_daemon as descriptors_for_daemon, not_ignored};
pub(crate) use locals::Locals;
pub(crate) use wall_clock::unix_seconds;

use std::io::{self, Write};

use mux_ssh::Printable;

use crate::daemon;
use crate::exit;
use crate::flags::{self, Environment, Invocation};
use crate::words;
use crate::writer::{Fault, Streams};

/// The whole program: from the arguments of the process to its exit status.
#[must_use]
pub fn main() -> u8 {
    limits::survive_large_files();
    let environment = Environment::of_process();
    if let Some(filter) = &environment.log {
        start_log(&filter.to_string_lossy());
    }
    match flags::parse(std::env::args_os(), &environment) {
        Ok(Invocation::Run(plan)) => start::start(&plan),
        Ok(Invocation::Config(query)) => effective::show(&query),
        Ok(Invocation::Daemon(verb)) => daemon_verb(&verb, &environment),
        Ok(Invocation::Print(text)) => print(&text),
        Err(error) => {
            complain(&error.to_string());
            exit::USAGE
        }
    }
}

fn daemon_verb(verb: &daemon::Verb, environment: &Environment) -> u8 {
    // Nobody looks on: what it has to say is for the file that its standard error is.
    if matches!(verb, daemon::Verb::Run(_)) && environment.log.is_none() {
        start_log("warn");
    }
    match daemon::carry_out(verb) {
        Ok(text) => print(&text),
        Err(text) => {
            complain(&format!("daemon: {text}"));
            exit::INTERNAL
        }
    }
}

/// The log that `MUX_LOG` asks for. A run is not refused for it.
fn start_log(filter: &str) {
    if env_filter::Builder::new().try_parse(filter).is_err() {
        let shown = Printable::new(filter);
        return complain(&format!(
            "MUX_LOG={shown}: no log; write a level, or modules with theirs: debug, mux_ssh=trace,warn"
        ));
    }
    env_logger::Builder::new()
        .parse_filters(filter)
        .format(|to, record| {
            let words = words::printable(&record.args().to_string());
            writeln!(
                to,
                "[{} {} {}] {words}",
                to.timestamp(),
                record.level(),
                record.target()
            )
        })
        .init();
}

/// Text on standard output, and the exit status that goes with it: before there is a writer thread, and without one.
fn print(text: &str) -> u8 {
    let mut stdout = io::stdout().lock();
    // What is closed takes everything and keeps nothing.
    let written = match Streams::of_process() {
        Ok(Streams { stdout: None, .. }) => Err(Fault::Closed),
        Ok(_) | Err(_) => stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(Fault::from),
    };
    match written {
        Ok(()) => exit::OK,
        Err(Fault::Io(io::ErrorKind::BrokenPipe, _)) => exit::SIGPIPE,
        Err(fault) => {
            complain(&format!("standard output: {fault}"));
            exit::INTERNAL
        }
    }
}

/// Something on standard error. That it can't be written has nobody to be told.
fn complain(text: &str) {
    let _ = io::stderr().write_all(words::lines(text).as_bytes());
}
