//! What one host's configuration comes to, as values. Decides nothing by itself: `walk` finds the lines, `finish`
//! fills in the rest.

use std::time::Duration;

use super::error::{Origin, Sourced};
use super::value::LogLevel;
use crate::known_hosts::HostId;

/// Whether the key of an unknown host is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostKeyPolicy {
    /// Only known keys.
    Strict,
    /// The user is asked about the first key of an unknown host; a changed one is refused.
    Ask,
    /// The first key of an unknown host is taken and kept; a changed one is refused.
    AcceptNew,
    /// Any key is taken: `no` and `off`.
    Off,
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
