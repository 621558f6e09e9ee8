//! ssh_config for the hosts of a run: reads the files that the resolver asks for, each once, before the loop starts.
//! Decides nothing about what they say.

use std::collections::{BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use mux_ssh::config::{
    ConfigError, ConfigFiles, Effective, Facts, HostConfig, JumpHost, Local, MAX_FILE, Need, Purpose,
    Resolver, Step,
};
use nix::unistd::{Uid, User};

use super::bound::Bound;
use super::early::Early;
use super::outward::{self, Question, Reply};
use crate::files::{self, FileError};
use crate::hub::{Route, Source};
use crate::plan::Connection;
use crate::targets::Target;

/// Answers what one run wants to know about its hosts.
#[derive(Debug)]
pub(crate) struct Configuration {
    resolver: Resolver,
    /// The files of the user's own configuration must not be writable by others, as in ssh; one named by `-F` may.
    guarded: String,
    /// What `-F` names.
    named: Option<String>,
    user: Option<String>,
    port: Option<u16>,
    /// What the targets are connected to for.
    purpose: Purpose,
    bound: Bound,
    /// Once a command has run.
    early: Option<Early>,
}

impl Configuration {
    pub(crate) fn new(connection: &Connection) -> Self {
        let local = local(connection);
        let named = match &local.files {
            ConfigFiles::Only(path) => Some(path.clone()),
            ConfigFiles::Default | ConfigFiles::None => None,
        };
        Self {
            named,
            guarded: format!("{}/.ssh/", local.home.trim_end_matches('/')),
            resolver: Resolver::new(local),
            user: connection.user.clone(),
            port: connection.port,
            purpose: Purpose::Shell,
            bound: Bound::default(),
            early: None,
        }
    }

    /// Targets are to run this.
    pub(crate) fn set_command(&mut self, command: &[u8]) {
        self.purpose = Purpose::Command(String::from_utf8_lossy(command).into());
    }

    /// Answers at the same time what single hosts would ask one after the other: whether commands succeed, and what
    /// names lead to.
    pub(crate) fn foresee(&mut self, targets: &[Target]) {
        let Some(first) = targets.first() else { return };
        if self.question(first).is_none() && !self.resolver.may_take_time() {
            return;
        }
        let mut open: Vec<&Target> = targets.iter().collect();
        while !open.is_empty() {
            let mut questions = BTreeSet::new();
            open.retain(|target| match self.question(target) {
                Some(question) => {
                    questions.insert(question);
                    true
                }
                None => false,
            });
            let questions: Vec<Question> = questions.into_iter().collect();
            self.ask(&questions);
        }
    }

    /// What has to be known before the configuration of a target is, and takes its time.
    fn question(&mut self, target: &Target) -> Option<Question> {
        let facts = self.facts(target);
        loop {
            match self.resolver.resolve(&facts) {
                Ok(Step::Need(Need::Exec(command))) => return Some(Question::Exec(command)),
                Ok(Step::Need(Need::Lookup(name))) => return Some(Question::Lookup(name)),
                Ok(Step::Need(need)) => self.supply(need),
                Ok(Step::Done(_)) | Err(_) => return None,
            }
        }
    }

    fn take(&mut self, reply: Reply) {
        match reply {
            Reply::Exec(command, succeeded) => self.resolver.supply_exec(command, succeeded),
            Reply::Lookup(name, canonical) => self.resolver.supply_lookup(name, canonical),
        }
    }

    fn facts(&self, target: &Target) -> Facts {
        Facts {
            host: target.host.clone(),
            user: target.user.clone().or_else(|| self.user.clone()),
            port: target.port.or(self.port),
            purpose: self.purpose.clone(),
        }
    }

    /// The known_hosts file that `ssh-keygen` changes if no other is named.
    pub(crate) fn default_known_hosts(&self) -> String {
        format!("{}known_hosts", self.guarded)
    }

    /// What the configuration says about a target.
    pub(crate) fn host(&mut self, target: &Target) -> Result<HostConfig, ConfigError> {
        self.find(&self.facts(target))
    }

    /// What it says about a stop of a `ProxyJump`.
    pub(crate) fn stop(&mut self, stop: &JumpHost) -> Result<HostConfig, ConfigError> {
        self.find(&Facts {
            host: stop.host.clone(),
            user: stop.user.clone(),
            port: stop.port,
            purpose: Purpose::Proxy,
        })
    }

    /// What it says about a target, in the words of `ssh -G`.
    pub(crate) fn effective(&mut self, target: &Target) -> Result<Vec<Effective>, ConfigError> {
        let facts = self.facts(target);
        loop {
            match self.resolver.effective(&facts)? {
                Step::Done(lines) => return Ok(lines),
                Step::Need(need) => self.supply(need),
            }
        }
    }

    fn find(&mut self, facts: &Facts) -> Result<HostConfig, ConfigError> {
        loop {
            match self.resolver.resolve(facts)? {
                Step::Done(config) => return Ok(config),
                Step::Need(need) => self.supply(need),
            }
        }
    }

    /// The variables to send along.
    pub(crate) fn variables(&self, config: &HostConfig) -> Vec<(String, String)> {
        self.resolver.variables(&config.session)
    }

    /// From where a connection to this host starts, if that is not for the system to choose. Whoever connects by another
    /// way is bound by his own configuration.
    ///
    /// # Errors
    /// A line that names no address of ours; one line of text.
    pub(crate) fn source(&mut self, config: &HostConfig, route: &Route) -> Result<Option<Source>, String> {
        match route {
            Route::Direct => self.bound.source(config),
            Route::Jump(_) | Route::Command(_) => Ok(None),
        }
    }

    /// The names that stand literally on `Host` lines.
    pub(crate) fn literal_names(&mut self) -> Result<BTreeSet<String>, ConfigError> {
        loop {
            match self.resolver.literal_names()? {
                Step::Done(names) => return Ok(names),
                Step::Need(need) => self.supply(need),
            }
        }
    }

    /// The signals that commands may have changed, for whoever listens to them from here on.
    pub(crate) fn signals(&mut self) -> Option<Early> {
        self.early.take()
    }

    /// No command outlives the process that waits for it. A name that nobody answers for can't be given up, so that it is
    /// left to the signal.
    fn ask(&mut self, questions: &[Question]) {
        let is_command = |question: &Question| matches!(question, Question::Exec(_));
        let (commands, names): (Vec<_>, Vec<_>) = questions.iter().cloned().partition(is_command);
        let mut replies = outward::ask(&names, &AtomicUsize::default());
        if !commands.is_empty() {
            let early = self.early.get_or_insert_with(Early::new);
            early.hold();
            replies.extend(outward::ask(&commands, early.came()));
            early.let_go();
        }
        for reply in replies {
            self.take(reply);
        }
    }

    fn supply(&mut self, need: Need) {
        match need {
            Need::File(path) => {
                let content = if self.named.as_ref() == Some(&path) {
                    files::read_named(Path::new(&path), MAX_FILE)
                } else {
                    read(Path::new(&path), path.starts_with(&self.guarded))
                };
                let content = content.as_deref().map_err(FileError::kind);
                self.resolver.supply_file(path, content);
            }
            Need::Glob(pattern) => {
                let paths = matching(&pattern);
                self.resolver.supply_glob(pattern, paths);
            }
            Need::Exec(command) => self.ask(&[Question::Exec(command)]),
            Need::Lookup(name) => self.ask(&[Question::Lookup(name)]),
            Need::Home(user) => {
                let home = outward::home(&user);
                self.resolver.supply_home(user, home);
            }
            Need::Addresses => self.resolver.supply_addresses(outward::addresses()),
            Need::Version => self.resolver.supply_version(outward::version()),
        }
    }
}

/// Reads a configuration file; a guarded one that others may write to is as good as forbidden.
fn read(path: &Path, guarded: bool) -> Result<Vec<u8>, FileError> {
    let file = files::open(OpenOptions::new().read(true), path)?;
    let meta = file.metadata()?;
    let foreign = meta.uid() != 0 && meta.uid() != Uid::current().as_raw();
    if guarded && (foreign || meta.mode() & 0o022 != 0) {
        return Err(FileError::Io(ErrorKind::PermissionDenied, None));
    }
    let mut content = Vec::new();
    files::read_into(&file, MAX_FILE, &mut content)?;
    Ok(content)
}

/// The paths that a pattern matches. As glob(3): a leading dot is matched only by a dot.
fn matching(pattern: &str) -> Vec<String> {
    let options = glob::MatchOptions {
        require_literal_leading_dot: true,
        ..glob::MatchOptions::default()
    };
    let found = glob::glob_with(pattern, options).into_iter().flatten();
    found
        .filter_map(|path| path.ok()?.into_os_string().into_string().ok())
        .collect()
}

/// Where we are and who we are. As ssh does it: from the password database, not from `$HOME` and `$USER`.
fn local(connection: &Connection) -> Local {
    let uid = Uid::current();
    let user = User::from_uid(uid).ok().flatten();
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (name, home) = match user {
        Some(user) => (user.name, user.dir.to_string_lossy().into_owned()),
        // As in a container that was started with a number: what it says of itself is all there is.
        None => (
            variable("LOGNAME")
                .or_else(|| variable("USER"))
                .unwrap_or_default(),
            variable("HOME").unwrap_or_default(),
        ),
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Local {
        home,
        user: name,
        uid: uid.as_raw(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        variables: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        files: ConfigFiles::from_flag(connection.config.as_deref().map(text).as_deref()),
        options: connection.options.clone(),
        identity_files: connection.identities.iter().map(|path| text(path)).collect(),
        homes: HashMap::new(),
    }
}

/// The directory in which state is kept (XDG Base Directory Specification).
pub(crate) fn state_home() -> Option<std::path::PathBuf> {
    let absolute = |path: std::path::PathBuf| path.is_absolute().then_some(path);
    let named = std::env::var_os("XDG_STATE_HOME")
        .map(Into::into)
        .and_then(absolute);
    named.or_else(|| Some(std::env::home_dir().and_then(absolute)?.join(".local/state")))
}
