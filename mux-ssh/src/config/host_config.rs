//! What one host's configuration comes to, as values. Decides nothing by itself: `walk` finds the lines, `finish`
//! fills in the rest.

use std::time::Duration;

use super::choice::{
    AddKeysToAgent, AddressFamily, FingerprintHash, ForwardAgent, HostKeyPolicy, Proxy, RekeyLimit,
    RequestTty, SessionType, YesNoAsk,
};
use super::error::{Origin, Problem, Sourced};
use super::value::LogLevel;
use crate::known_hosts::HostId;

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
    /// What stands between us and the host; `None`: nothing.
    pub proxy: Option<Sourced<Proxy>>,
    /// Which addresses of a name are used.
    pub address_family: Sourced<AddressFamily>,
    /// From which of our addresses; a name or an address.
    pub bind_address: Option<Sourced<String>>,
    /// From the addresses of which interface.
    pub bind_interface: Option<Sourced<String>>,
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
    /// How to log in, besides keys in files.
    pub login: LoginConfig,
    /// How to judge the host's key, besides known_hosts.
    pub host_keys: HostKeyConfig,
    /// What the session on the host is like.
    pub session: SessionConfig,
    /// Lines that applied and have no effect.
    pub notes: Vec<Note>,
}

/// How to log in, besides keys in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginConfig {
    /// `CertificateFile`, in order, expanded.
    pub certificate_files: Vec<Sourced<String>>,
    /// Whether `password` may be tried.
    pub password_authentication: Sourced<bool>,
    /// Whether `keyboard-interactive` may be tried.
    pub kbd_interactive_authentication: Sourced<bool>,
    /// The methods to ask for within it, separated by commas.
    pub kbd_interactive_devices: Option<Sourced<String>>,
    /// How often a password is asked for.
    pub number_of_password_prompts: Sourced<u32>,
    /// Whether `hostbased` may be tried.
    pub hostbased_authentication: Sourced<bool>,
    /// With which signature algorithms; as written.
    pub hostbased_accepted_algorithms: Option<Sourced<String>>,
    /// Whether `gssapi-with-mic` may be tried.
    pub gssapi_authentication: Sourced<bool>,
    /// Whether tickets are handed on.
    pub gssapi_delegate_credentials: Sourced<bool>,
    /// Whether keys that worked are given to the agent.
    pub add_keys_to_agent: Sourced<AddKeysToAgent>,
    /// Whether the host may use the agent. Paths are expanded.
    pub forward_agent: Sourced<ForwardAgent>,
    /// The library of a smart card.
    pub pkcs11_provider: Option<Sourced<String>>,
    /// The library of security keys; `None`: the built-in one.
    pub security_key_provider: Option<Sourced<String>>,
}

/// How to judge the host's key, besides known_hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostKeyConfig {
    /// Whether the address is looked up too.
    pub check_host_ip: Sourced<bool>,
    /// Whether further keys of the host are learnt after a login.
    pub update_host_keys: Sourced<YesNoAsk>,
    /// A program that prints lines of known_hosts, and its arguments: at least one word. In each word `%%` stands for
    /// a percent sign, and `%f`, `%H`, `%I`, `%K` and `%t` are left to whoever knows the key.
    pub known_hosts_command: Option<Sourced<Vec<String>>>,
    /// Files with keys that are never taken, expanded; empty: none.
    pub revoked_host_keys: Sourced<Vec<String>>,
    /// With which algorithms certificates may be signed; as written.
    pub ca_signature_algorithms: Option<Sourced<String>>,
    /// Whether the key of an address of loopback is taken as it is.
    pub no_host_authentication_for_localhost: Sourced<bool>,
    /// Whether fingerprints are looked up in the DNS.
    pub verify_host_key_dns: Sourced<YesNoAsk>,
    /// How fingerprints are printed.
    pub fingerprint_hash: Sourced<FingerprintHash>,
    /// Whether fingerprints are drawn.
    pub visual_host_key: Sourced<bool>,
}

/// What the session on the host is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Names and patterns of our variables to send.
    pub send_env: Vec<Sourced<String>>,
    /// Variables to send with these values, expanded.
    pub set_env: Sourced<Vec<(String, String)>>,
    /// What to run instead of nothing, expanded.
    pub remote_command: Option<Sourced<String>>,
    /// Whether to ask for a terminal.
    pub request_tty: Sourced<RequestTty>,
    /// What is started.
    pub session_type: Sourced<SessionType>,
    /// Whether commands read nothing.
    pub stdin_null: Sourced<bool>,
    /// Whether `ssh` would go to the background.
    pub fork_after_authentication: Sourced<bool>,
    /// Whether `local_command` may run.
    pub permit_local_command: Sourced<bool>,
    /// What to run here after the login; as written.
    pub local_command: Option<Sourced<String>>,
    /// How long keys are used.
    pub rekey_limit: Sourced<RekeyLimit>,
    /// Whether to compress.
    pub compression: Sourced<bool>,
    /// Whether the system probes idle connections.
    pub tcp_keep_alive: Sourced<bool>,
    /// Whether a `ProxyCommand` hands over a socket instead of being one.
    pub proxy_use_fdpass: Sourced<bool>,
    /// For `Match tagged`.
    pub tag: Option<Sourced<String>>,
    /// What stands behind our version; as written.
    pub version_addendum: Option<Sourced<String>>,
}

/// A line that was accepted without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The keyword, as the manual writes it.
    pub keyword: &'static str,
    /// Where it stands.
    pub origin: Origin,
    /// Why it could have none, where it should have had one.
    pub problem: Option<Problem>,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.problem {
            None => write!(f, "{}: {} has no effect", self.origin, self.keyword),
            Some(problem) => write!(f, "{}: {problem}; passed over", self.origin),
        }
    }
}

impl HostConfig {
    /// The name under which the host's key is kept.
    #[must_use]
    pub fn host_id(&self) -> HostId {
        match &self.host_key_alias {
            Some(alias) => HostId::alias(&alias.value),
            None => HostId::new(&self.hostname.value, self.port.value),
        }
    }
}
