//! What a resolver cannot know by itself, and what it was told. Decides nothing: each question is answered once and
//! the answer kept for all hosts.

use core::net::IpAddr;
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;

use super::file::ParsedFile;

/// What the resolver cannot know by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The content of a file: [`Resolver::supply_file`](super::Resolver::supply_file).
    File(String),
    /// The paths that match a glob(7) pattern, sorted: [`Resolver::supply_glob`](super::Resolver::supply_glob).
    Glob(String),
    /// Whether a command of `Match exec` succeeds, run by the user's shell without input and output:
    /// [`Resolver::supply_exec`](super::Resolver::supply_exec).
    Exec(String),
    /// Where the user of this name is at home: [`Resolver::supply_home`](super::Resolver::supply_home).
    Home(String),
    /// The addresses of this machine's interfaces that are up:
    /// [`Resolver::supply_addresses`](super::Resolver::supply_addresses).
    Addresses,
    /// What `ssh -V` says, up to the first comma or blank: [`Resolver::supply_version`](super::Resolver::supply_version).
    Version,
    /// Whether this name has an address, and what the name is to which it leads in the end:
    /// [`Resolver::supply_lookup`](super::Resolver::supply_lookup).
    Lookup(String),
}

/// Why nobody knows whether a command succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecFailure {
    /// The shell can't be started.
    NotStarted(ErrorKind),
    /// A signal ended it.
    Killed,
    /// It took too long.
    TimedOut,
}

/// What the resolver was told.
#[derive(Debug, Default)]
pub(super) struct Answers {
    pub(super) files: HashMap<String, Loaded>,
    pub(super) globs: HashMap<String, Vec<String>>,
    pub(super) execs: HashMap<String, Result<bool, ExecFailure>>,
    pub(super) addresses: Option<Vec<IpAddr>>,
    pub(super) version: Option<String>,
    /// Users that there are not.
    pub(super) strangers: HashSet<String>,
    pub(super) lookups: HashMap<String, Option<String>>,
}

/// What became of a file.
#[derive(Debug)]
pub(super) enum Loaded {
    Parsed(ParsedFile),
    Missing,
    Unreadable(ErrorKind),
}
