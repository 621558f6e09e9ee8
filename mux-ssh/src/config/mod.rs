//! ssh_config: which host is reached where, as whom and how.
//!
//! Decides what the files, the `-o` options and the defaults say about a host. Never reads a file: a [`Resolver`]
//! asks for what it needs by value, parses each file once and reuses it for all hosts.
//!
//! ```
//! use mux_ssh::config::{Facts, Local, Need, Resolver, Step};
//!
//! let mut resolver = Resolver::new(Local { home: "/home/me".into(), user: "me".into(), ..Local::default() });
//! let facts = Facts { host: "web1".into(), ..Facts::default() };
//! let config = loop {
//!     match resolver.resolve(&facts)? {
//!         Step::Done(config) => break config,
//!         Step::Need(Need::File(path)) if path == "/home/me/.ssh/config" => {
//!             resolver.supply_file(path, Ok(b"Host web*\n  User root\n  HostName %h.example.org\n"));
//!         }
//!         Step::Need(other) => resolver.decline(other),
//!     }
//! };
//! assert_eq!(config.hostname.value, "web1.example.org");
//! assert_eq!(config.user.origin.to_string(), "/home/me/.ssh/config line 2");
//! # Ok::<(), mux_ssh::config::ConfigError>(())
//! ```

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::sync::Arc;

mod algorithms;
mod canonical;
mod choice;
mod condition;
mod draft;
mod effective;
mod error;
mod expand;
mod file;
mod finish;
mod host_config;
mod jump;
mod keyword;
mod lex;
mod manual;
mod matching;
mod need;
mod sections;
mod setting;
mod special;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub use algorithms::UnknownAlgorithm;
pub use choice::{
    AddKeysToAgent, AddressFamily, FingerprintHash, ForwardAgent, HostKeyPolicy, JumpHost, Proxy, RekeyLimit,
    RequestTty, SessionType, YesNoAsk,
};
pub use effective::Effective;
pub use error::{ConfigError, Origin, Problem, Sourced};
pub use host_config::{HostConfig, HostKeyConfig, LoginConfig, Note, SessionConfig};
pub use manual::keywords;
pub use need::{ExecFailure, Need};
pub use value::LogLevel;

use choice::Canonicalize;
use draft::Draft;
use expand::Tokens;
use file::ParsedFile;
use need::{Answers, Loaded};
use walk::{Owner, Stop, Walk, unreadable};

use crate::pattern::{Case, matches};

/// No configuration that people or tools write is larger. Whoever reads the files keeps to it: a file that is cut
/// somewhere says something else.
pub const MAX_FILE: u64 = 16 * 1024 * 1024;

/// The version of OpenSSH whose configuration is understood here, for `Match version` where there is no `ssh`.
const MODEL: &str = "OpenSSH_10.2p1";

const SYSTEM_FILE: &str = "/etc/ssh/ssh_config";

/// What is the same for every host of a run: where we are, who we are, what the command line says.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// The user's home, from the password database.
    pub home: String,
    /// The user's name; empty: there is none.
    pub user: String,
    /// The user's id.
    pub uid: u32,
    /// The name of this machine with its domain.
    pub host: String,
    /// The environment.
    pub variables: HashMap<String, String>,
    /// Which files to read.
    pub files: ConfigFiles,
    /// `-o` options, each `Keyword=value` or `Keyword value`. They win over every file.
    pub options: Vec<String>,
    /// `-i` options, tried before every other identity.
    pub identity_files: Vec<String>,
    /// Homes of other users, as far as they are known; those that are not are asked for.
    pub homes: HashMap<String, String>,
}

/// Which files to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConfigFiles {
    /// The user's, then the system's.
    #[default]
    Default,
    /// `-F none`.
    None,
    /// `-F FILE`: that one alone, and it must exist.
    Only(String),
}

impl ConfigFiles {
    /// What `-F` asks for.
    #[must_use]
    pub fn from_flag(flag: Option<&str>) -> Self {
        match flag {
            None => Self::Default,
            Some(none) if none.eq_ignore_ascii_case("none") => Self::None,
            Some(path) => Self::Only(path.to_owned()),
        }
    }
}

/// What was asked for one host. What is given here wins over every file and every `-o`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    /// As it was typed.
    pub host: String,
    /// From `user@host` or `-l`.
    pub user: Option<String>,
    /// From the target or `-p`.
    pub port: Option<u16>,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// What a connection is for; `Match` may ask for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A login shell, or nothing in particular.
    #[default]
    Shell,
    /// This command.
    Command(Arc<str>),
    /// Connections of others: the host is a stop on their way.
    Proxy,
}

/// How far a question got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The answer.
    Done(T),
    /// Supply this and ask again.
    Need(Need),
}

/// Resolves hosts against files that were read once.
#[derive(Debug)]
pub struct Resolver {
    local: Local,
    options: ParsedFile,
    answers: Answers,
}

impl Resolver {
    /// Reads the options; nothing else is known yet.
    #[must_use]
    pub fn new(local: Local) -> Self {
        let options = ParsedFile::from_options(&local.options);
        Self {
            local,
            options,
            answers: Answers::default(),
        }
    }

    /// Answers [`Need::File`]: the content, or why there is none. [`ErrorKind::NotFound`] is no error where a file
    /// may be missing; [`ErrorKind::PermissionDenied`] also stands for a file that others may write to,
    /// [`ErrorKind::Unsupported`] for a pipe, a socket or a device, [`ErrorKind::FileTooLarge`] for more than
    /// [`MAX_FILE`] bytes.
    pub fn supply_file(&mut self, path: String, content: Result<&[u8], ErrorKind>) {
        let loaded = match content {
            Ok(content) => Loaded::Parsed(ParsedFile::parse(&path, content)),
            Err(ErrorKind::NotFound) => Loaded::Missing,
            Err(kind) => Loaded::Unreadable(kind),
        };
        self.answers.files.insert(path, loaded);
    }

    /// Answers [`Need::Glob`]. No match is an empty list.
    pub fn supply_glob(&mut self, pattern: String, mut paths: Vec<String>) {
        paths.sort_unstable();
        self.answers.globs.insert(pattern, paths);
    }

    /// Answers [`Need::Exec`].
    pub fn supply_exec(&mut self, command: String, succeeded: Result<bool, ExecFailure>) {
        self.answers.execs.insert(command, succeeded);
    }

    /// Answers [`Need::Home`]; `None`: there is no such user.
    pub fn supply_home(&mut self, user: String, home: Option<String>) {
        match home {
            Some(home) => _ = self.local.homes.insert(user, home),
            None => _ = self.answers.strangers.insert(user),
        }
    }

    /// Answers [`Need::Addresses`].
    pub fn supply_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.answers.addresses = Some(addresses);
    }

    /// Answers [`Need::Version`], as in `OpenSSH_10.0p2`; `None` if there is no such program.
    pub fn supply_version(&mut self, version: Option<String>) {
        self.answers.version = Some(version.unwrap_or_else(|| MODEL.to_owned()));
    }

    /// Answers [`Need::Lookup`]: the name at the end of all aliases, or `None` if there is no address.
    pub fn supply_lookup(&mut self, name: String, canonical: Option<String>) {
        self.answers.lookups.insert(name, canonical);
    }

    /// Answers as a machine would that has nothing: no such file, user or name, and no command succeeds.
    pub fn decline(&mut self, need: Need) {
        match need {
            Need::File(path) => self.supply_file(path, Err(ErrorKind::NotFound)),
            Need::Glob(pattern) => self.supply_glob(pattern, Vec::new()),
            Need::Exec(command) => self.supply_exec(command, Ok(false)),
            Need::Home(user) => self.supply_home(user, None),
            Need::Addresses => self.supply_addresses(Vec::new()),
            Need::Version => self.supply_version(None),
            Need::Lookup(name) => self.supply_lookup(name, None),
        }
    }

    /// Whether a file that was read so far may ask for commands or names, which take their time.
    #[must_use]
    pub fn may_take_time(&self) -> bool {
        let files = self.answers.files.values();
        let parsed = files.filter_map(|loaded| match loaded {
            Loaded::Parsed(file) => Some(file),
            Loaded::Missing | Loaded::Unreadable(_) => None,
        });
        parsed.chain([&self.options]).any(ParsedFile::may_take_time)
    }

    /// What the configuration says about a host.
    ///
    /// # Errors
    /// A line that is wrong, or that applies and cannot be honoured.
    pub fn resolve(&self, facts: &Facts) -> Result<Step<HostConfig>, ConfigError> {
        self.step(self.config(facts))
    }

    /// The names that stand literally on `Host` lines of all files: names that the user knows. Files that cannot
    /// be read know none.
    ///
    /// # Errors
    /// An `Include` whose path cannot be expanded.
    pub fn literal_names(&self) -> Result<Step<BTreeSet<String>>, ConfigError> {
        self.step(self.collect_names())
    }

    /// A home that nobody has asked for yet is a question and no error.
    fn step<T>(&self, result: Result<T, Stop>) -> Result<Step<T>, ConfigError> {
        match result {
            Ok(answer) => Ok(Step::Done(answer)),
            Err(Stop::Need(need)) => Ok(Step::Need(need)),
            Err(Stop::Error(error)) => {
                if let Problem::OtherHome { user, .. } = &error.problem
                    && !self.answers.strangers.contains(user)
                {
                    return Ok(Step::Need(Need::Home(user.clone())));
                }
                Err(error)
            }
        }
    }

    /// The variables to send: those of ours that `SendEnv` names, and what `SetEnv` sets, which wins. Sorted, each
    /// name once.
    #[must_use]
    pub fn variables(&self, session: &SessionConfig) -> Vec<(String, String)> {
        let sent = self.local.variables.iter().filter(|(name, _)| {
            let mut patterns = session.send_env.iter();
            patterns.any(|pattern| matches(name.as_bytes(), pattern.value.as_bytes(), Case::Sensitive))
        });
        let mut variables: BTreeMap<&String, &String> = sent.collect();
        variables.extend(session.set_env.value.iter().map(|(name, value)| (name, value)));
        let owned = variables.into_iter();
        owned.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The same in the words of `ssh -G`, each line with its place.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn effective(&self, facts: &Facts) -> Result<Step<Vec<Effective>>, ConfigError> {
        let lines = self.draft(facts).and_then(|draft| {
            let config = draft.finish(facts, &self.local)?;
            let tokens = draft.tokens(facts, &self.local, &config.hostname.value, config.port.value);
            let tokens = Tokens {
                user: &config.user.value,
                ..tokens
            };
            Ok(draft.effective(&config, tokens)?)
        });
        self.step(lines)
    }

    fn config(&self, facts: &Facts) -> Result<HostConfig, Stop> {
        Ok(self.draft(facts)?.finish(facts, &self.local)?)
    }

    /// What all lines say, and no default.
    fn draft(&self, facts: &Facts) -> Result<Draft<'_>, Stop> {
        let mut draft = Draft::default();
        for identity in &self.local.identity_files {
            draft
                .identity_file(identity, &Origin::CommandLine)
                .map_err(|problem| ConfigError {
                    origin: Origin::CommandLine,
                    problem,
                })?;
        }
        let mut walk = Walk::new(self, facts, &facts.host, &mut draft);
        walk.file(&self.options, Owner::User, true, 0)?;
        self.pass(&mut walk)?;
        let wants_final = walk.wants_final;
        if wants_final || draft.canonicalize() != Canonicalize::No {
            // `Match final` compares with what the first pass found, and so does every `Host` line in the second.
            let hostname = draft.pin_hostname(facts, &self.answers)?;
            let mut walk = Walk::new(self, facts, &hostname, &mut draft);
            walk.final_pass = true;
            self.pass(&mut walk)?;
        }
        draft.settle();
        Ok(draft)
    }

    fn pass<'a>(&'a self, walk: &mut Walk<'a, '_>) -> Result<(), Stop> {
        for (path, owner) in self.roots() {
            if let Some(file) = self.root(&path)? {
                walk.file(file, owner, true, 0)?;
            }
        }
        Ok(())
    }

    fn roots(&self) -> Vec<(String, Owner)> {
        match &self.local.files {
            ConfigFiles::None => Vec::new(),
            ConfigFiles::Only(path) => vec![(path.clone(), Owner::User)],
            ConfigFiles::Default => vec![
                (
                    format!("{}/.ssh/config", self.local.home.trim_end_matches('/')),
                    Owner::User,
                ),
                (SYSTEM_FILE.to_owned(), Owner::System),
            ],
        }
    }

    fn root(&self, path: &str) -> Result<Option<&ParsedFile>, Stop> {
        match self.loaded(path).map_err(Stop::Need)? {
            Loaded::Parsed(file) => Ok(Some(file)),
            Loaded::Missing if self.local.files == ConfigFiles::Default => Ok(None),
            Loaded::Missing => Err(unreadable(path, ErrorKind::NotFound).into()),
            Loaded::Unreadable(kind) => Err(unreadable(path, *kind).into()),
        }
    }

    fn loaded(&self, path: &str) -> Result<&Loaded, Need> {
        self.answers
            .files
            .get(path)
            .ok_or_else(|| Need::File(path.to_owned()))
    }

    /// The paths that a pattern stands for; one without wildcards stands for itself.
    fn expand<'p>(&'p self, pattern: &'p String) -> Result<&'p [String], Stop> {
        if !pattern.contains(['*', '?', '[', '\\']) {
            return Ok(std::slice::from_ref(pattern));
        }
        let found = self.answers.globs.get(pattern).map(Vec::as_slice);
        found.ok_or_else(|| Stop::Need(Need::Glob(pattern.clone())))
    }

    /// Whether an `Include` fails for want of a variable or of a user: as in OpenSSH, there is nothing to include then.
    fn leads_nowhere(&self, problem: &Problem) -> bool {
        let is_stranger = |user| self.answers.strangers.contains(user);
        matches!(problem, Problem::UndefinedVariable { .. })
            || matches!(problem, Problem::OtherHome { user, .. } if is_stranger(user))
    }

    fn collect_names(&self) -> Result<BTreeSet<String>, Stop> {
        let mut names = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut waiting = self.roots();
        while let Some((path, owner)) = waiting.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let Loaded::Parsed(file) = self.loaded(&path).map_err(Stop::Need)? else {
                continue;
            };
            names.extend(file.literal_names().map(str::to_owned));
            for (origin, pattern) in file.includes() {
                let pattern = match walk::absolute(pattern, owner, &self.local, None) {
                    Ok(pattern) => pattern,
                    Err(problem) if self.leads_nowhere(&problem) => continue,
                    Err(problem) => {
                        let origin = origin.clone();
                        return Err(ConfigError { origin, problem }.into());
                    }
                };
                waiting.extend(self.expand(&pattern)?.iter().map(|path| (path.clone(), owner)));
            }
        }
        Ok(names)
    }
}
