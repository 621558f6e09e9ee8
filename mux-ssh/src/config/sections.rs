//! The parts of a host's configuration about logins, host keys and sessions: defaults are filled in and tokens
//! expanded. Decides the final values; never which lines applied.

use super::choice::{
    AddKeysToAgent, FingerprintHash, ForwardAgent, RekeyLimit, RequestTty, SessionType, YesNoAsk,
};
use super::draft::{Draft, Slot};
use super::error::{ConfigError, Origin, Problem, Sourced};
use super::expand::{self, Tokens};
use super::finish::{at, is_none, or_default};
use super::host_config::{HostKeyConfig, LoginConfig, SessionConfig};
use super::lex;
use super::setting::{Flag, ForwardedAgent, List, Number, Text};

/// As OpenSSH.
const PASSWORD_PROMPTS: u32 = 3;

impl Draft<'_> {
    pub(super) fn login(&self, tokens: Tokens<'_>) -> Result<LoginConfig, ConfigError> {
        let named = self.certificate_files.iter().filter(|(file, _)| !is_none(file));
        let certificates = named.map(|(file, origin)| {
            Ok(Sourced {
                value: at(origin, expand::path(file, "CertificateFile", tokens))?,
                origin: (*origin).clone(),
            })
        });
        Ok(LoginConfig {
            certificate_files: certificates.collect::<Result<_, _>>()?,
            password_authentication: self.flag_or(Flag::PasswordAuthentication, true),
            kbd_interactive_authentication: self.flag_or(Flag::KbdInteractiveAuthentication, true),
            kbd_interactive_devices: self.written(Text::KbdInteractiveDevices),
            number_of_password_prompts: or_default(self.number(Number::PasswordPrompts), PASSWORD_PROMPTS),
            hostbased_authentication: self.flag_or(Flag::HostbasedAuthentication, false),
            hostbased_accepted_algorithms: self.written(Text::HostbasedAcceptedAlgorithms),
            gssapi_authentication: self.flag_or(Flag::GssapiAuthentication, false),
            gssapi_delegate_credentials: self.flag_or(Flag::GssapiDelegateCredentials, false),
            add_keys_to_agent: or_default(self.add_keys_to_agent, AddKeysToAgent::No),
            forward_agent: forward_agent(self.forward_agent, self.forward_socket, tokens)?,
            pkcs11_provider: self.unless_none(Text::Pkcs11Provider),
            security_key_provider: self.unless_none(Text::SecurityKeyProvider),
        })
    }

    pub(super) fn host_keys(&self, tokens: Tokens<'_>) -> Result<HostKeyConfig, ConfigError> {
        Ok(HostKeyConfig {
            check_host_ip: self.flag_or(Flag::CheckHostIp, false),
            update_host_keys: self.update_host_keys_or_default(),
            known_hosts_command: known_hosts_command(self.unless_none(Text::KnownHostsCommand), tokens)?,
            revoked_host_keys: revoked_host_keys(self.list(List::RevokedHostKeys), tokens)?,
            ca_signature_algorithms: self.written(Text::CaSignatureAlgorithms),
            no_host_authentication_for_localhost: self.flag_or(Flag::NoHostAuthenticationForLocalhost, false),
            verify_host_key_dns: or_default(self.verify_host_key_dns, YesNoAsk::No),
            fingerprint_hash: or_default(self.fingerprint_hash, FingerprintHash::Sha256),
            visual_host_key: self.flag_or(Flag::VisualHostKey, false),
        })
    }

    pub(super) fn session(&self, tokens: Tokens<'_>) -> Result<SessionConfig, ConfigError> {
        let send_env = self.send_env.iter().map(|(name, origin)| Sourced {
            value: (*name).clone(),
            origin: (*origin).clone(),
        });
        let remote_command = match self.unless_none(Text::RemoteCommand) {
            None => None,
            Some(Sourced { value, origin }) => Some(Sourced {
                value: at(&origin, expand::command(&value, "RemoteCommand", tokens))?,
                origin,
            }),
        };
        Ok(SessionConfig {
            send_env: send_env.collect(),
            set_env: set_env(self.set_env, tokens)?,
            remote_command,
            request_tty: or_default(self.request_tty, RequestTty::Auto),
            session_type: or_default(self.session_type, SessionType::Default),
            stdin_null: self.flag_or(Flag::StdinNull, false),
            fork_after_authentication: self.flag_or(Flag::ForkAfterAuthentication, false),
            permit_local_command: self.flag_or(Flag::PermitLocalCommand, false),
            local_command: self.unless_none(Text::LocalCommand),
            rekey_limit: self.rekey_limit(),
            compression: self.flag_or(Flag::Compression, false),
            tcp_keep_alive: self.flag_or(Flag::TcpKeepAlive, true),
            proxy_use_fdpass: self.flag_or(Flag::ProxyUseFdpass, false),
            tag: self.written(Text::Tag),
            version_addendum: self.unless_none(Text::VersionAddendum),
        })
    }

    fn unless_none(&self, text: Text) -> Option<Sourced<String>> {
        self.written(text).filter(|written| !is_none(&written.value))
    }

    /// On, unless keys are kept where OpenSSH does not keep them by itself.
    fn update_host_keys_or_default(&self) -> Sourced<YesNoAsk> {
        let own_files = match self.list(List::UserKnownHostsFile) {
            None => true,
            Some((files, _)) => matches!(files.as_slice(), [file] if file == "~/.ssh/known_hosts"),
        };
        let by_dns = self
            .verify_host_key_dns
            .is_some_and(|(verify, _)| *verify != YesNoAsk::No);
        let default = if own_files && !by_dns {
            YesNoAsk::Yes
        } else {
            YesNoAsk::No
        };
        or_default(self.update_host_keys, default)
    }

    /// The two halves may come from different lines; the limit in bytes is the one that is always written.
    fn rekey_limit(&self) -> Sourced<RekeyLimit> {
        let origin = self
            .rekey_bytes
            .map_or(Origin::Default, |(_, origin)| origin.clone());
        let value = RekeyLimit {
            bytes: self
                .rekey_bytes
                .map(|(bytes, _)| *bytes)
                .filter(|&bytes| bytes != 0),
            interval: self
                .rekey_interval
                .map(|(interval, _)| *interval)
                .filter(|interval| !interval.is_zero()),
        };
        Sourced { value, origin }
    }
}

fn forward_agent(
    agent: Slot<'_, ForwardedAgent>,
    socket: Slot<'_, String>,
    tokens: Tokens<'_>,
) -> Result<Sourced<ForwardAgent>, ConfigError> {
    let Sourced { value, origin } = or_default(agent, ForwardedAgent::No);
    let value = match (value, socket) {
        (ForwardedAgent::No, _) => ForwardAgent::No,
        (ForwardedAgent::Yes | ForwardedAgent::Socket(_), None) => ForwardAgent::Yes,
        (ForwardedAgent::Yes | ForwardedAgent::Socket(_), Some((text, origin))) => {
            let path = at(origin, expand::socket(text, "ForwardAgent", tokens))?;
            let problem = Problem::UndefinedVariable {
                keyword: "ForwardAgent",
                name: text.trim_start_matches('$').to_owned(),
            };
            ForwardAgent::Socket(path.ok_or_else(|| ConfigError {
                origin: origin.clone(),
                problem,
            })?)
        }
    };
    Ok(Sourced { value, origin })
}

/// A command without a shell: split into words as a line of ssh_config is, each of which is expanded.
fn known_hosts_command(
    command: Option<Sourced<String>>,
    tokens: Tokens<'_>,
) -> Result<Option<Sourced<Vec<String>>>, ConfigError> {
    let Some(Sourced { value, origin }) = command else {
        return Ok(None);
    };
    let words = at(&origin, lex::arguments(&value))?;
    let expanded = words
        .iter()
        .map(|word| at(&origin, expand::key_word(word, tokens)));
    let value = expanded.collect::<Result<Vec<_>, _>>()?;
    if value.is_empty() {
        let problem = Problem::MissingArgument {
            keyword: "KnownHostsCommand".to_owned(),
        };
        return Err(ConfigError { origin, problem });
    }
    Ok(Some(Sourced { value, origin }))
}

fn revoked_host_keys(
    files: Slot<'_, Vec<String>>,
    tokens: Tokens<'_>,
) -> Result<Sourced<Vec<String>>, ConfigError> {
    let Sourced { value, origin } = or_default(files, Vec::new());
    let expanded = value
        .iter()
        .map(|file| at(&origin, expand::path(file, "RevokedHostKeys", tokens)));
    Ok(Sourced {
        value: expanded.collect::<Result<_, _>>()?,
        origin,
    })
}

fn set_env(
    variables: Slot<'_, Vec<(String, String)>>,
    tokens: Tokens<'_>,
) -> Result<Sourced<Vec<(String, String)>>, ConfigError> {
    let Some((variables, origin)) = variables else {
        return Ok(Sourced {
            value: Vec::new(),
            origin: Origin::Default,
        });
    };
    let expanded = variables.iter().map(|(name, value)| {
        let value = at(origin, expand::value(value, "SetEnv", tokens))?;
        Ok((name.clone(), value))
    });
    Ok(Sourced {
        value: expanded.collect::<Result<_, _>>()?,
        origin: origin.clone(),
    })
}
