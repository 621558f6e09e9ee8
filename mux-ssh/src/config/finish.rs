//! Fills in defaults and expands tokens once all lines are read. Decides the final values; never which lines applied.

use std::time::Duration;

use super::canonical;
use super::choice::{AddressFamily, HostKeyPolicy, JumpHost, Proxy, PubkeyAuthentication};
use super::draft::{Draft, Slot};
use super::error::{ConfigError, Origin, Problem, Sourced};
use super::expand::{self, Tokens};
use super::host_config::HostConfig;
use super::need::Answers;
use super::setting::{Flag, List, Number, Text, Time};
use super::walk::Stop;
use super::{Facts, Local};

/// OpenSSH's default, which `RequiredRSASize` changes.
const REQUIRED_RSA_SIZE: u32 = 1024;

/// No name in the DNS is longer (RFC 1035 §2.3.4).
const MAX_HOST_NAME: usize = 255;

/// What is tried when no `IdentityFile` is given, in OpenSSH's order. Of security keys the file says which one of an agent's
/// is meant; DSA and XMSS, which OpenSSH 10 looks for no more, nothing here can sign with.
pub(super) const DEFAULT_IDENTITIES: [&str; 5] = [
    "~/.ssh/id_rsa",
    "~/.ssh/id_ecdsa",
    "~/.ssh/id_ecdsa_sk",
    "~/.ssh/id_ed25519",
    "~/.ssh/id_ed25519_sk",
];

impl Draft<'_> {
    /// Settles the host name after the first pass: later `HostName` lines come too late, as in OpenSSH.
    pub(super) fn pin_hostname(&mut self, facts: &Facts, answers: &Answers) -> Result<String, Stop> {
        let hostname = self.canonical(self.hostname(facts)?, answers)?;
        let value = hostname.value.clone();
        self.pinned_hostname = Some(hostname);
        Ok(value)
    }

    /// `HostName` with its token, else the name as typed; names in lower case, addresses in their usual form.
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
        let (name, origin) = match self.text(Text::HostName) {
            Some((name, origin)) => (at(origin, expand::host_name(name, &facts.host))?, origin.clone()),
            None => (facts.host.clone(), Origin::CommandLine),
        };
        let value = canonical::address(&name, self.address_family).unwrap_or_else(|| {
            match name.contains(['%', ':']) {
                // An address with a scope, whose name has its case.
                true => name,
                false => name.to_ascii_lowercase(),
            }
        });
        if !is_host_name(&value) {
            return Err(ConfigError {
                problem: Problem::InvalidHostName(value),
                origin,
            });
        }
        Ok(Sourced { value, origin })
    }

    fn user(&self, facts: &Facts, tokens: Tokens<'_>) -> Result<Sourced<String>, ConfigError> {
        let (value, origin) = match (&facts.user, self.text(Text::User)) {
            (Some(user), _) => (user.clone(), Origin::CommandLine),
            (None, Some((user, origin))) => (at(origin, expand::user(user, tokens))?, origin.clone()),
            (None, None) => (tokens.local.user.clone(), Origin::Default),
        };
        let problem = if origin == Origin::Default && value.is_empty() {
            Problem::NoUser {
                uid: tokens.local.uid,
            }
        } else if is_user_name(&value) {
            return Ok(Sourced { value, origin });
        } else {
            Problem::InvalidUser(value)
        };
        Err(ConfigError { origin, problem })
    }

    /// Stops win over a command; whichever was written first has seen to that.
    fn proxy(&self, tokens: Tokens<'_>) -> Result<Option<Sourced<Proxy>>, ConfigError> {
        if let Some((Some(hops), origin)) = self.proxy_jump {
            let expand = |text: &String| at(origin, expand::proxy(text, "ProxyJump", tokens));
            let hops = hops.iter().map(|hop| {
                let user = hop.user.as_ref().map(expand).transpose()?;
                let host = expand(&hop.host)?;
                let problem = match &user {
                    _ if !is_host_name(&host) => Problem::InvalidHostName(host),
                    Some(user) if !is_user_name(user) => Problem::InvalidUser(user.clone()),
                    Some(_) | None => {
                        let port = hop.port;
                        return Ok(JumpHost { user, host, port });
                    }
                };
                Err(ConfigError {
                    origin: origin.clone(),
                    problem,
                })
            });
            return Ok(Some(Sourced {
                value: Proxy::Jump(hops.collect::<Result<_, _>>()?),
                origin: origin.clone(),
            }));
        }
        let command = self.proxy_command.filter(|(command, _)| !is_none(command));
        let Some((command, origin)) = command else {
            return Ok(None);
        };
        Ok(Some(Sourced {
            value: Proxy::Command(at(origin, expand::proxy(command, "ProxyCommand", tokens))?),
            origin: origin.clone(),
        }))
    }

    /// Where the last stop is, for `%j`.
    pub(super) fn last_jump(&self) -> &str {
        match self.proxy_jump {
            Some((Some(hops), _)) => hops.last().map_or("", |hop| &hop.host),
            Some((None, _)) | None => "",
        }
    }

    /// What counts once all lines are read: names under which keys are kept are in lower case.
    pub(super) fn settle(&mut self) {
        self.key_alias = self.written(Text::HostKeyAlias);
        if let Some(alias) = &mut self.key_alias {
            alias.value.make_ascii_lowercase();
        }
    }

    pub(super) fn port(&self, facts: &Facts) -> Sourced<u16> {
        match facts.port {
            Some(value) => Sourced {
                value,
                origin: Origin::CommandLine,
            },
            None => or_default(self.port, 22),
        }
    }

    /// What tokens stand for before the user is known.
    pub(super) fn tokens<'t>(
        &'t self,
        facts: &'t Facts,
        local: &'t Local,
        host: &'t str,
        port: u16,
    ) -> Tokens<'t> {
        let alias = self.key_alias.as_ref();
        Tokens {
            local,
            typed: &facts.host,
            host,
            key_alias: alias.map_or(&facts.host, |alias| &alias.value),
            port,
            user: "",
            jump: self.last_jump(),
        }
    }

    /// Fills in what nobody has said and expands what was.
    pub(super) fn finish(&self, facts: &Facts, local: &Local) -> Result<HostConfig, ConfigError> {
        let hostname = self.hostname(facts)?;
        let port = self.port(facts);
        let tokens = self.tokens(facts, local, &hostname.value, port.value);
        let user = self.user(facts, tokens)?;
        let tokens = Tokens {
            user: &user.value,
            ..tokens
        };
        Ok(HostConfig {
            proxy: self.proxy(tokens)?,
            address_family: or_default(self.address_family, AddressFamily::Any),
            bind_address: self.written(Text::BindAddress),
            bind_interface: self.written(Text::BindInterface),
            identity_files: identity_files(&self.identity_files, tokens)?,
            identities_only: self.flag_or(Flag::IdentitiesOnly, false).value,
            identity_agent: identity_agent(self.text(Text::IdentityAgent), tokens)?,
            user_known_hosts_files: user_known_hosts(self.list(List::UserKnownHostsFile), tokens)?,
            global_known_hosts_files: written(self.list(List::GlobalKnownHostsFile))
                .unwrap_or_else(|| defaults(&["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"])),
            // Not to ask is our default: of a set of hosts nobody compares the fingerprints one by one.
            host_key_policy: or_default(self.host_key_policy, HostKeyPolicy::Ask),
            host_key_alias: self.key_alias.clone(),
            connect_timeout: connect_timeout(self.time(Time::ConnectTimeout)),
            server_alive_interval: or_default(self.time(Time::ServerAliveInterval), Duration::ZERO),
            server_alive_count_max: or_default(self.number(Number::ServerAliveCountMax), 3),
            batch_mode: self.flag_or(Flag::BatchMode, false).value,
            pubkey_authentication: pubkey_authentication(self.pubkey_authentication),
            preferred_authentications: self.written(Text::PreferredAuthentications),
            kex_algorithms: self.written(Text::KexAlgorithms),
            host_key_algorithms: self.written(Text::HostKeyAlgorithms),
            ciphers: self.written(Text::Ciphers),
            macs: self.written(Text::Macs),
            pubkey_accepted_algorithms: self.written(Text::PubkeyAcceptedAlgorithms),
            required_rsa_size: or_default(self.number(Number::RequiredRsaSize), REQUIRED_RSA_SIZE),
            log_level: written(self.log_level),
            hash_known_hosts: self.flag_or(Flag::HashKnownHosts, false).value,
            login: self.login(tokens)?,
            host_keys: self.host_keys(tokens)?,
            session: self.session(tokens)?,
            notes: self.notes.clone(),
            host: facts.host.clone(),
            hostname,
            user,
            port,
        })
    }

    pub(super) fn written(&self, text: Text) -> Option<Sourced<String>> {
        written(self.text(text))
    }

    pub(super) fn flag_or(&self, flag: Flag, default: bool) -> Sourced<bool> {
        or_default(self.flag(flag), default)
    }
}

fn pubkey_authentication(slot: Slot<'_, PubkeyAuthentication>) -> Sourced<bool> {
    let Sourced { value, origin } = or_default(slot, PubkeyAuthentication::Yes);
    Sourced {
        value: value != PubkeyAuthentication::No,
        origin,
    }
}

/// Many keywords take `none` for nothing, which still settles them.
pub(super) fn is_none(text: &str) -> bool {
    text.eq_ignore_ascii_case("none")
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
    let named = files.iter().filter(|(file, _)| !is_none(file));
    named.map(|(file, origin)| expand(file, origin)).collect()
}

/// `none`, `SSH_AUTH_SOCK`, `$NAME` or a path.
fn identity_agent(
    agent: Slot<'_, String>,
    tokens: Tokens<'_>,
) -> Result<Sourced<Option<String>>, ConfigError> {
    let (text, origin) = match agent {
        None => ("SSH_AUTH_SOCK", &Origin::Default),
        Some((text, origin)) => (text.as_str(), origin),
    };
    let value = match text {
        "none" => None,
        "SSH_AUTH_SOCK" => expand::variable(text, tokens.local),
        text => at(origin, expand::socket(text, "IdentityAgent", tokens))?,
    };
    Ok(Sourced {
        value,
        origin: origin.clone(),
    })
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

pub(super) fn written<T: Clone>(slot: Slot<'_, T>) -> Option<Sourced<T>> {
    slot.map(|(value, origin)| Sourced {
        value: value.clone(),
        origin: origin.clone(),
    })
}

pub(super) fn or_default<T: Clone>(slot: Slot<'_, T>, default: T) -> Sourced<T> {
    written(slot).unwrap_or(Sourced {
        value: default,
        origin: Origin::Default,
    })
}

pub(super) fn at<T>(origin: &Origin, result: Result<T, Problem>) -> Result<T, ConfigError> {
    result.map_err(|problem| ConfigError {
        origin: origin.clone(),
        problem,
    })
}

/// As OpenSSH: no dash in front (it would pass for an option), no blanks, nothing that a shell would act on.
pub(super) fn is_host_name(name: &str) -> bool {
    const FORBIDDEN: &str = "'`\"$\\;&<>|(){},";
    !name.is_empty()
        && name.len() <= MAX_HOST_NAME
        && !name.starts_with('-')
        && !name
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || FORBIDDEN.contains(c))
}

/// As OpenSSH: no dash in front or after a blank, nothing that a shell would act on, no backslash at the end.
pub(super) fn is_user_name(name: &str) -> bool {
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
