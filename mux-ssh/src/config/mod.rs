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
//!         Step::Need(Need::File(path)) => resolver.supply_file(path, Err(std::io::ErrorKind::NotFound)),
//!         Step::Need(Need::Glob(pattern)) => resolver.supply_glob(pattern, Vec::new()),
//!     }
//! };
//! assert_eq!(config.hostname.value, "web1.example.org");
//! assert_eq!(config.user.origin.to_string(), "/home/me/.ssh/config line 2");
//! # Ok::<(), mux_ssh::config::ConfigError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;

mod algorithms;
mod choice;
mod draft;
mod error;
mod expand;
mod file;
mod finish;
mod host_config;
mod jump;
mod keyword;
mod lex;
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
pub use error::{ConfigError, Origin, Problem, Sourced};
pub use host_config::{HostConfig, HostKeyConfig, LoginConfig, Note, SessionConfig};
pub use value::LogLevel;

use draft::Draft;
use file::ParsedFile;
use walk::{Owner, Stop, Walk, unreadable};

use crate::pattern::{Case, matches};

/// No configuration that people or tools write is larger. Whoever reads the files keeps to it: a file that is cut
/// somewhere says something else.
pub const MAX_FILE: u64 = 16 * 1024 * 1024;

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
}

/// How far a question got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The answer.
    Done(T),
    /// Supply this and ask again.
    Need(Need),
}

/// What the resolver cannot know by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The content of a file: [`Resolver::supply_file`].
    File(String),
    /// The paths that match a glob(7) pattern, sorted: [`Resolver::supply_glob`].
    Glob(String),
}

/// Resolves hosts against files that were read once.
#[derive(Debug)]
pub struct Resolver {
    local: Local,
    options: ParsedFile,
    files: HashMap<String, Loaded>,
    globs: HashMap<String, Vec<String>>,
}

#[derive(Debug)]
enum Loaded {
    Parsed(ParsedFile),
    Missing,
    Unreadable(ErrorKind),
}

impl Resolver {
    /// Reads the options; nothing else is known yet.
    #[must_use]
    pub fn new(local: Local) -> Self {
        let options = ParsedFile::from_options(&local.options);
        Self {
            local,
            options,
            files: HashMap::new(),
            globs: HashMap::new(),
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
        self.files.insert(path, loaded);
    }

    /// Answers [`Need::Glob`]. No match is an empty list.
    pub fn supply_glob(&mut self, pattern: String, mut paths: Vec<String>) {
        paths.sort_unstable();
        self.globs.insert(pattern, paths);
    }

    /// What the configuration says about a host.
    ///
    /// # Errors
    /// A line that is wrong, or that applies and cannot be honoured.
    pub fn resolve(&self, facts: &Facts) -> Result<Step<HostConfig>, ConfigError> {
        match self.config(facts) {
            Ok(config) => Ok(Step::Done(config)),
            Err(Stop::Need(need)) => Ok(Step::Need(need)),
            Err(Stop::Error(error)) => Err(error),
        }
    }

    /// The names that stand literally on `Host` lines of all files: names that the user knows. Files that cannot
    /// be read know none.
    ///
    /// # Errors
    /// An `Include` whose path cannot be expanded.
    pub fn literal_names(&self) -> Result<Step<BTreeSet<String>>, ConfigError> {
        let mut names = BTreeSet::new();
        match self.collect_names(&mut names) {
            Ok(()) => Ok(Step::Done(names)),
            Err(Stop::Need(need)) => Ok(Step::Need(need)),
            Err(Stop::Error(error)) => Err(error),
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

    fn config(&self, facts: &Facts) -> Result<HostConfig, Stop> {
        let mut draft = Draft::default();
        for identity in &self.local.identity_files {
            draft
                .identity_file(identity, &Origin::CommandLine)
                .map_err(|problem| ConfigError {
                    origin: Origin::CommandLine,
                    problem,
                })?;
        }
        let mut walk = Walk::new(self, &facts.host, &mut draft);
        walk.file(&self.options, Owner::User, true, 0)?;
        self.pass(&mut walk)?;
        if walk.wants_final {
            // `Match final` compares with what the first pass found, and so does every `Host` line in the second.
            let hostname = draft.pin_hostname(facts)?;
            let mut walk = Walk::new(self, &hostname, &mut draft);
            walk.final_pass = true;
            self.pass(&mut walk)?;
        }
        Ok(draft.finish(facts, &self.local)?)
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
        self.files.get(path).ok_or_else(|| Need::File(path.to_owned()))
    }

    /// The paths that a pattern stands for; one without wildcards stands for itself.
    fn expand<'p>(&'p self, pattern: &'p String) -> Result<&'p [String], Stop> {
        if !pattern.contains(['*', '?', '[', '\\']) {
            return Ok(std::slice::from_ref(pattern));
        }
        let found = self.globs.get(pattern).map(Vec::as_slice);
        found.ok_or_else(|| Stop::Need(Need::Glob(pattern.clone())))
    }

    fn collect_names(&self, names: &mut BTreeSet<String>) -> Result<(), Stop> {
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
                let pattern = walk::absolute(pattern, owner, &self.local).map_err(|problem| ConfigError {
                    origin: origin.clone(),
                    problem,
                })?;
                waiting.extend(self.expand(&pattern)?.iter().map(|path| (path.clone(), owner)));
            }
        }
        Ok(())
    }
}
