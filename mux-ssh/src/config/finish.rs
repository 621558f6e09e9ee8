//! Fills in defaults and expands tokens once all lines are read. Decides the final values; never which lines applied.

use std::time::Duration;

use super::draft::{Draft, Slot};
use super::error::{ConfigError, Origin, Problem, Sourced};
use super::expand::{self, Tokens};
use super::host_config::{HostConfig, HostKeyPolicy};
use super::value::Strictness;
use super::{Facts, Local};

/// OpenSSH's default, which `RequiredRSASize` changes.
const REQUIRED_RSA_SIZE: u32 = 1024;

/// No name in the DNS is longer (RFC 1035 §2.3.4).
const MAX_HOST_NAME: usize = 255;

/// What is tried when no `IdentityFile` is given: the types that we can sign with, in OpenSSH's order.
const DEFAULT_IDENTITIES: [&str; 3] = ["~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519"];

impl Draft<'_> {
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
        if !is_host_name(&facts.host) {
            let problem = Problem::InvalidHostName(facts.host.clone());
            return Err(ConfigError {
                origin: Origin::CommandLine,
                problem,
            });
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
        if user.origin == Origin::Default && user.value.is_empty() {
            let problem = Problem::NoUser { uid: local.uid };
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
            connect_timeout: connect_timeout(self.connect_timeout),
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

/// OpenSSH takes zero for "no limit" too.
fn connect_timeout(timeout: Slot<'_, Duration>) -> Sourced<Option<Duration>> {
    let Sourced { value, origin } = or_default(timeout, Duration::ZERO);
    Sourced {
        value: Some(value).filter(|time| !time.is_zero()),
        origin,
    }
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
        && name.len() <= MAX_HOST_NAME
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
