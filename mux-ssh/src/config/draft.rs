//! Collects what the lines that apply say. Decides which of several wins; never what is true without a line.

use std::time::Duration;

use super::error::{Origin, Problem, Sourced};
use super::host_config::Note;
use super::value::{LogLevel, Setting, Strictness};

/// As OpenSSH's `SSH_MAX_IDENTITY_FILES`.
const MAX_IDENTITY_FILES: usize = 100;

/// A value that was written somewhere, or not (yet).
pub(super) type Slot<'a, T> = Option<(&'a T, &'a Origin)>;

/// What the lines have said so far: the first value of each keyword.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    pub(super) host_name: Slot<'a, String>,
    /// What the first pass made of `host_name`, once a second pass has begun.
    pub(super) pinned_hostname: Option<Sourced<String>>,
    pub(super) user: Slot<'a, String>,
    pub(super) port: Slot<'a, u16>,
    pub(super) identity_files: Vec<(&'a String, &'a Origin)>,
    pub(super) identities_only: Slot<'a, bool>,
    pub(super) identity_agent: Slot<'a, String>,
    pub(super) user_known_hosts: Slot<'a, Vec<String>>,
    pub(super) global_known_hosts: Slot<'a, Vec<String>>,
    pub(super) strictness: Slot<'a, Strictness>,
    pub(super) host_key_alias: Slot<'a, String>,
    pub(super) connect_timeout: Slot<'a, Duration>,
    pub(super) alive_interval: Slot<'a, Duration>,
    pub(super) alive_count_max: Slot<'a, u32>,
    pub(super) batch_mode: Slot<'a, bool>,
    pub(super) pubkey_authentication: Slot<'a, bool>,
    pub(super) preferred_authentications: Slot<'a, String>,
    pub(super) kex_algorithms: Slot<'a, String>,
    pub(super) host_key_algorithms: Slot<'a, String>,
    pub(super) ciphers: Slot<'a, String>,
    pub(super) macs: Slot<'a, String>,
    pub(super) pubkey_accepted: Slot<'a, String>,
    pub(super) required_rsa_size: Slot<'a, u32>,
    pub(super) log_level: Slot<'a, LogLevel>,
    pub(super) hash_known_hosts: Slot<'a, bool>,
    pub(super) ignore_unknown: Slot<'a, String>,
    pub(super) notes: Vec<Note>,
    /// Slots of refused keywords whose first value was harmless.
    pub(super) settled: Vec<&'static str>,
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
            Setting::ConnectTimeout(Some(value)) => first(&mut self.connect_timeout, value, origin),
            Setting::ServerAliveInterval(Some(value)) => first(&mut self.alive_interval, value, origin),
            Setting::ConnectTimeout(None) | Setting::ServerAliveInterval(None) => {}
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
}
