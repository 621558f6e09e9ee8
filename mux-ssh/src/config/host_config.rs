//! What one host's configuration comes to: defaults filled in, tokens expanded. Decides the final values; never
//! which lines applied (that is `walk`'s).

use std::time::Duration;

use super::error::{ConfigError, Origin, Problem, Sourced};
use super::expand::{self, Tokens};
use super::value::{LogLevel, Setting, Strictness};
use super::{Facts, Local};

/// As OpenSSH's `SSH_MAX_IDENTITY_FILES`.
const MAX_IDENTITY_FILES: usize = 100;

/// OpenSSH's default, which `RequiredRSASize` changes.
const REQUIRED_RSA_SIZE: u32 = 1024;

/// What is tried when no `IdentityFile` is given: the types that we can sign with, in OpenSSH's order.
const DEFAULT_IDENTITIES: [&str; 3] = ["~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"];

/// Whether the key of an unknown host is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKeyPolicy {
    /// Only known keys.
    Strict,
    /// The first key of an unknown host is taken and kept; a changed one is refused.
    AcceptNew,
}

/// Everything that decides how one host is reached. Paths are expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// As it was typed.
    pub host: String,
    /// Where to connect: a name in lower case or an address.
    pub hostname: Sourced<String>,
    /// As whom.
    pub user: Sourced<String>,
    /// On which port.
    pub port: Sourced<u16>,
    /// In the order in which they are tried. Those with [`Origin::Default`] may be missing without a word.
    pub identity_files: Vec<Sourced<String>>,
    /// Use no key of the agent that is not among `identity_files`.
    pub identities_only: bool,
    /// Socket of the agent; `None` if there is none to ask.
    pub identity_agent: Sourced<Option<String>>,
    /// Where accept-new writes (the first one) and where keys are looked up.
    pub user_known_hosts_files: Sourced<Vec<String>>,
    /// Where keys are looked up as well.
    pub global_known_hosts_files: Sourced<Vec<String>>,
    /// What to do about unknown keys.
    pub host_key_policy: Sourced<HostKeyPolicy>,
    /// The name under which the host's key is kept, instead of `hostname`.
    pub host_key_alias: Option<Sourced<String>>,
    /// `None`: as long as the system takes.
    pub connect_timeout: Sourced<Option<Duration>>,
    /// Zero: off.
    pub server_alive_interval: Sourced<Duration>,
    /// Unanswered questions after which the server counts as gone.
    pub server_alive_count_max: Sourced<u32>,
    /// Never ask anything.
    pub batch_mode: bool,
    /// Whether keys may be used at all.
    pub pubkey_authentication: Sourced<bool>,
    /// Methods in order, separated by commas.
    pub preferred_authentications: Option<Sourced<String>>,
    /// Lists as written, with `+`, `-` or `^` in front; `None`: the defaults.
    pub kex_algorithms: Option<Sourced<String>>,
    /// As `kex_algorithms`.
    pub host_key_algorithms: Option<Sourced<String>>,
    /// As `kex_algorithms`.
    pub ciphers: Option<Sourced<String>>,
    /// As `kex_algorithms`.
    pub macs: Option<Sourced<String>>,
    /// With which signature algorithms to log in; as `kex_algorithms`.
    pub pubkey_accepted_algorithms: Option<Sourced<String>>,
    /// Smallest RSA key, in bits, of the server and of the user.
    pub required_rsa_size: Sourced<u32>,
    /// How much to say.
    pub log_level: Option<Sourced<LogLevel>>,
    /// Whether accept-new writes hashed names.
    pub hash_known_hosts: bool,
    /// Lines that applied and have no effect.
    pub notes: Vec<Note>,
}

/// A line that was accepted without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The keyword, as the manual writes it.
    pub keyword: &'static str,
    /// Where it stands.
    pub origin: Origin,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} has no effect", self.origin, self.keyword)
    }
}

/// A value that was written somewhere, or not (yet).
type Slot<'a, T> = Option<(&'a T, &'a Origin)>;

/// What the lines have said so far: the first value of each keyword.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    host_name: Slot<'a, String>,
    /// What the first pass made of `host_name`, once a second pass has begun.
    pinned_hostname: Option<Sourced<String>>,
    user: Slot<'a, String>,
    port: Slot<'a, u16>,
    identity_files: Vec<(&'a String, &'a Origin)>,
    identities_only: Slot<'a, bool>,
    identity_agent: Slot<'a, String>,
    user_known_hosts: Slot<'a, Vec<String>>,
    global_known_hosts: Slot<'a, Vec<String>>,
    strictness: Slot<'a, Strictness>,
    host_key_alias: Slot<'a, String>,
    connect_timeout: Slot<'a, Option<Duration>>,
    alive_interval: Slot<'a, Duration>,
    alive_count_max: Slot<'a, u32>,
    batch_mode: Slot<'a, bool>,
    pubkey_authentication: Slot<'a, bool>,
    preferred_authentications: Slot<'a, String>,
    kex_algorithms: Slot<'a, String>,
    host_key_algorithms: Slot<'a, String>,
    ciphers: Slot<'a, String>,
    macs: Slot<'a, String>,
    pubkey_accepted: Slot<'a, String>,
    required_rsa_size: Slot<'a, u32>,
    log_level: Slot<'a, LogLevel>,
    hash_known_hosts: Slot<'a, bool>,
    pub(super) ignore_unknown: Slot<'a, String>,
    notes: Vec<Note>,
    /// Slots of refused keywords whose first value was harmless.
    settled: Vec<&'static str>,
}

impl<'a> Draft<'a> {
    /// Takes the value of a line that applies, unless an earlier line has set it.
    pub(super) fn set(&mut self, setting: &'a Setting, origin: &'a Origin) -> Result<(), Problem> {
        fn first<'a, T>(slot: &mut Slot<'a, T>, value: &'a T, origin: &'a Origin) {
            slot.get_or_insert((value, origin));
        }
        match setting {
            Setting::HostName(value) => first(&mut self.host_name, value, origin),
            Setting::User(value) => first(&mut self.user, value, origin),
            Setting::Port(value) => first(&mut self.port, value, origin),
            Setting::IdentityFile(value) => self.identity_file(value, origin)?,
            Setting::IdentitiesOnly(value) => first(&mut self.identities_only, value, origin),
            Setting::IdentityAgent(value) => first(&mut self.identity_agent, value, origin),
            Setting::UserKnownHostsFile(value) => first(&mut self.user_known_hosts, value, origin),
            Setting::GlobalKnownHostsFile(value) => first(&mut self.global_known_hosts, value, origin),
            Setting::StrictHostKeyChecking(value) => first(&mut self.strictness, value, origin),
            Setting::HostKeyAlias(value) => first(&mut self.host_key_alias, value, origin),
            Setting::ConnectTimeout(value) => first(&mut self.connect_timeout, value, origin),
            Setting::ServerAliveInterval(value) => first(&mut self.alive_interval, value, origin),
            Setting::ServerAliveCountMax(value) => first(&mut self.alive_count_max, value, origin),
            Setting::BatchMode(value) => first(&mut self.batch_mode, value, origin),
            Setting::PubkeyAuthentication(value) => first(&mut self.pubkey_authentication, value, origin),
            Setting::PreferredAuthentications(value) => {
                first(&mut self.preferred_authentications, value, origin);
            }
            Setting::KexAlgorithms(value) => first(&mut self.kex_algorithms, value, origin),
            Setting::HostKeyAlgorithms(value) => first(&mut self.host_key_algorithms, value, origin),
            Setting::Ciphers(value) => first(&mut self.ciphers, value, origin),
            Setting::Macs(value) => first(&mut self.macs, value, origin),
            Setting::PubkeyAcceptedAlgorithms(value) => first(&mut self.pubkey_accepted, value, origin),
            Setting::RequiredRsaSize(value) => first(&mut self.required_rsa_size, value, origin),
            Setting::LogLevel(value) => first(&mut self.log_level, value, origin),
            Setting::HashKnownHosts(value) => first(&mut self.hash_known_hosts, value, origin),
            Setting::IgnoreUnknown(value) => first(&mut self.ignore_unknown, value, origin),
        }
        Ok(())
    }

    /// Identity files add up; the second mention of one changes nothing.
    pub(super) fn identity_file(&mut self, path: &'a String, origin: &'a Origin) -> Result<(), Problem> {
        if self.identity_files.iter().any(|(known, _)| *known == path) {
            return Ok(());
        }
        if self.identity_files.len() >= MAX_IDENTITY_FILES {
            return Err(Problem::TooMany {
                keyword: "IdentityFile",
                limit: MAX_IDENTITY_FILES,
            });
        }
        self.identity_files.push((path, origin));
        Ok(())
    }

    pub(super) fn note(&mut self, keyword: &'static str, origin: &Origin) {
        let note = Note {
            keyword,
            origin: origin.clone(),
        };
        // The second pass of `Match final` meets every line again.
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether the first value of a refused keyword's slot is this one, and harmful.
    pub(super) fn refuses(&mut self, slot: &'static str, harmless: bool) -> bool {
        if self.settled.contains(&slot) {
            return false;
        }
        if harmless {
            self.settled.push(slot);
        }
        !harmless
    }

    /// Settles the host name after the first pass: later `HostName` lines come too late, as in OpenSSH.
    pub(super) fn pin_hostname(&mut self, facts: &Facts) -> Result<String, ConfigError> {
        let hostname = self.hostname(facts)?;
        let value = hostname.value.clone();
        self.pinned_hostname = Some(hostname);
        Ok(value)
    }

    /// `HostName` with its token, else the name as typed; names in lower case.
    fn hostname(&self, facts: &Facts) -> Result<Sourced<String>, ConfigError> {
        if let Some(pinned) = &self.pinned_hostname {
            return Ok(pinned.clone());
        }
        let (mut value, origin) = match self.host_name {
            Some((name, origin)) => (at(origin, expand::host_name(name, &facts.host))?, origin.clone()),
            None => (facts.host.clone(), Origin::CommandLine),
        };
        if value.parse::<core::net::IpAddr>().is_err() {
            value.make_ascii_lowercase();
        }
        if !is_host_name(&value) {
            return Err(ConfigError {
                problem: Problem::InvalidHostName(value),
                origin,
            });
        }
        Ok(Sourced { value, origin })
    }

    fn user(&self, facts: &Facts, local: &Local) -> Result<Sourced<String>, ConfigError> {
        let user = match (&facts.user, self.user) {
            (Some(user), _) => Sourced {
                value: user.clone(),
                origin: Origin::CommandLine,
            },
            (None, Some((user, origin))) => Sourced {
                value: user.clone(),
                origin: origin.clone(),
            },
            (None, None) => Sourced {
                value: local.user.clone(),
                origin: Origin::Default,
            },
        };
        // Newer versions of OpenSSH expand tokens here, older ones do not: it would be somebody else's login.
        if user.origin != Origin::Default && (user.value.contains("${") || user.value.contains('%')) {
            let problem = Problem::NotSupported {
                keyword: "User",
                value: user.value,
            };
            return Err(ConfigError {
                origin: user.origin,
                problem,
            });
        }
        if !is_user_name(&user.value) {
            return Err(ConfigError {
                problem: Problem::InvalidUser(user.value),
                origin: user.origin,
            });
        }
        Ok(user)
    }

    fn policy(&self) -> Result<Sourced<HostKeyPolicy>, ConfigError> {
        let (strictness, origin) = self.strictness.unwrap_or((&Strictness::Yes, &Origin::Default));
        let value = match *strictness {
            Strictness::Yes => HostKeyPolicy::Strict,
            Strictness::AcceptNew => HostKeyPolicy::AcceptNew,
            Strictness::Off(value) => {
                let problem = Problem::HostKeyCheckingOff { value };
                return Err(ConfigError {
                    origin: origin.clone(),
                    problem,
                });
            }
        };
        Ok(Sourced {
            value,
            origin: origin.clone(),
        })
    }

    /// Fills in what nobody has said and expands what was.
    pub(super) fn finish(self, facts: &Facts, local: &Local) -> Result<HostConfig, ConfigError> {
        let hostname = self.hostname(facts)?;
        let user = self.user(facts, local)?;
        let port = match (facts.port, self.port) {
            (Some(port), _) => Sourced {
                value: port,
                origin: Origin::CommandLine,
            },
            (None, port) => or_default(port, 22),
        };
        let tokens = Tokens {
            local,
            typed: &facts.host,
            host: &hostname.value,
            key_alias: self.host_key_alias.map_or(&facts.host, |(alias, _)| alias),
            port: port.value,
            user: &user.value,
        };
        Ok(HostConfig {
            identity_files: identity_files(&self.identity_files, tokens)?,
            identities_only: or_default(self.identities_only, false).value,
            identity_agent: identity_agent(self.identity_agent, tokens)?,
            user_known_hosts_files: user_known_hosts(self.user_known_hosts, tokens)?,
            global_known_hosts_files: self.global_known_hosts.map_or_else(
                || defaults(&["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]),
                |(files, origin)| Sourced {
                    value: files.clone(),
                    origin: origin.clone(),
                },
            ),
            host_key_policy: self.policy()?,
            host_key_alias: written(self.host_key_alias),
            connect_timeout: or_default(self.connect_timeout, None),
            server_alive_interval: or_default(self.alive_interval, Duration::ZERO),
            server_alive_count_max: or_default(self.alive_count_max, 3),
            batch_mode: or_default(self.batch_mode, false).value,
            pubkey_authentication: or_default(self.pubkey_authentication, true),
            preferred_authentications: written(self.preferred_authentications),
            kex_algorithms: written(self.kex_algorithms),
            host_key_algorithms: written(self.host_key_algorithms),
            ciphers: written(self.ciphers),
            macs: written(self.macs),
            pubkey_accepted_algorithms: written(self.pubkey_accepted),
            required_rsa_size: or_default(self.required_rsa_size, REQUIRED_RSA_SIZE),
            log_level: written(self.log_level),
            hash_known_hosts: or_default(self.hash_known_hosts, false).value,
            notes: self.notes,
            host: facts.host.clone(),
            hostname,
            user,
            port,
        })
    }
}

/// `none` stands for no file, also among others; without any the defaults are tried.
fn identity_files(
    files: &[(&String, &Origin)],
    tokens: Tokens<'_>,
) -> Result<Vec<Sourced<String>>, ConfigError> {
    let expand = |file: &str, origin: &Origin| {
        let value = at(origin, expand::path(file, "IdentityFile", tokens))?;
        Ok(Sourced {
            value,
            origin: origin.clone(),
        })
    };
    if files.is_empty() {
        return DEFAULT_IDENTITIES
            .iter()
            .map(|file| expand(file, &Origin::Default))
            .collect();
    }
    let named = files
        .iter()
        .filter(|(file, _)| !file.eq_ignore_ascii_case("none"));
    named.map(|(file, origin)| expand(file, origin)).collect()
}

/// `none`, `SSH_AUTH_SOCK`, `$NAME` or a path.
fn identity_agent(
    agent: Slot<'_, String>,
    tokens: Tokens<'_>,
) -> Result<Sourced<Option<String>>, ConfigError> {
    let variable = |name: &str| {
        tokens
            .local
            .variables
            .get(name)
            .filter(|path| !path.is_empty())
            .cloned()
    };
    let (text, origin) = match agent {
        None => {
            return Ok(Sourced {
                value: variable("SSH_AUTH_SOCK"),
                origin: Origin::Default,
            });
        }
        Some((text, origin)) => (text.as_str(), origin.clone()),
    };
    let value = match text.strip_prefix('$').filter(|name| !name.starts_with('{')) {
        Some(name) => variable(name),
        None if text == "none" => None,
        None if text == "SSH_AUTH_SOCK" => variable(text),
        None => Some(at(&origin, expand::path(text, "IdentityAgent", tokens))?),
    };
    Ok(Sourced { value, origin })
}

fn user_known_hosts(
    files: Slot<'_, Vec<String>>,
    tokens: Tokens<'_>,
) -> Result<Sourced<Vec<String>>, ConfigError> {
    let Sourced { value, origin } = files.map_or_else(
        || defaults(&["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]),
        |(files, origin)| Sourced {
            value: files.clone(),
            origin: origin.clone(),
        },
    );
    let expanded: Result<Vec<String>, Problem> = value
        .iter()
        .map(|file| expand::path(file, "UserKnownHostsFile", tokens))
        .collect();
    Ok(Sourced {
        value: at(&origin, expanded)?,
        origin,
    })
}

fn defaults(files: &[&str]) -> Sourced<Vec<String>> {
    Sourced {
        value: files.iter().map(|&file| file.to_owned()).collect(),
        origin: Origin::Default,
    }
}

fn written<T: Clone>(slot: Slot<'_, T>) -> Option<Sourced<T>> {
    slot.map(|(value, origin)| Sourced {
        value: value.clone(),
        origin: origin.clone(),
    })
}

fn or_default<T: Clone>(slot: Slot<'_, T>, default: T) -> Sourced<T> {
    written(slot).unwrap_or(Sourced {
        value: default,
        origin: Origin::Default,
    })
}

fn at<T>(origin: &Origin, result: Result<T, Problem>) -> Result<T, ConfigError> {
    result.map_err(|problem| ConfigError {
        origin: origin.clone(),
        problem,
    })
}

/// As OpenSSH: no dash in front (it would pass for an option), no blanks, nothing that a shell would act on.
fn is_host_name(name: &str) -> bool {
    const FORBIDDEN: &str = "'`\"$\\;&<>|(){},";
    !name.is_empty()
        && !name.starts_with('-')
        && !name
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || FORBIDDEN.contains(c))
}

/// As OpenSSH: no dash in front or after a blank, nothing that a shell would act on, no backslash at the end.
fn is_user_name(name: &str) -> bool {
    const FORBIDDEN: &str = "'`\";&<>|(){}";
    let dash_after_blank = name
        .split(char::is_whitespace)
        .skip(1)
        .any(|word| word.starts_with('-'));
    !name.is_empty()
        && !name.starts_with('-')
        && !dash_after_blank
        && !name.ends_with('\\')
        && !name.chars().any(|c| c.is_control() || FORBIDDEN.contains(c))
}
