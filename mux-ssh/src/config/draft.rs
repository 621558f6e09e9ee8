//! Collects what the lines that apply say. Decides which of several wins; never what is true without a line.

use std::collections::BTreeMap;
use std::time::Duration;

use super::choice::{
    AddKeysToAgent, AddressFamily, Canonicalize, FingerprintHash, HostKeyPolicy, JumpHost,
    PubkeyAuthentication, RequestTty, SessionType, YesNoAsk,
};
use super::error::{Origin, Problem, Sourced};
use super::host_config::Note;
use super::setting::{Flag, ForwardedAgent, List, Number, Setting, Text, Time};
use super::value::LogLevel;
use crate::pattern::{Case, matches};

/// As OpenSSH's `SSH_MAX_IDENTITY_FILES` and `SSH_MAX_CERTIFICATE_FILES`.
const MAX_IDENTITY_FILES: usize = 100;

/// A value that was written somewhere, or not (yet).
pub(super) type Slot<'a, T> = Option<(&'a T, &'a Origin)>;

/// What the lines have said so far: the first value of each keyword.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    flags: BTreeMap<Flag, (&'a bool, &'a Origin)>,
    texts: BTreeMap<Text, (&'a String, &'a Origin)>,
    numbers: BTreeMap<Number, (&'a u32, &'a Origin)>,
    times: BTreeMap<Time, (&'a Duration, &'a Origin)>,
    lists: BTreeMap<List, (&'a Vec<String>, &'a Origin)>,
    /// What the first pass made of `HostName`, once a second pass has begun.
    pub(super) pinned_hostname: Option<Sourced<String>>,
    /// `HostKeyAlias` as it counts in the end.
    pub(super) key_alias: Option<Sourced<String>>,
    pub(super) port: Slot<'a, u16>,
    pub(super) identity_files: Vec<(&'a String, &'a Origin)>,
    pub(super) certificate_files: Vec<(&'a String, &'a Origin)>,
    pub(super) send_env: Vec<(&'a String, &'a Origin)>,
    pub(super) set_env: Slot<'a, Vec<(String, String)>>,
    pub(super) proxy_jump: Slot<'a, Option<Vec<JumpHost>>>,
    pub(super) proxy_command: Slot<'a, String>,
    pub(super) host_key_policy: Slot<'a, HostKeyPolicy>,
    pub(super) update_host_keys: Slot<'a, YesNoAsk>,
    pub(super) verify_host_key_dns: Slot<'a, YesNoAsk>,
    pub(super) address_family: Slot<'a, AddressFamily>,
    pub(super) pubkey_authentication: Slot<'a, PubkeyAuthentication>,
    pub(super) canonicalize: Slot<'a, Canonicalize>,
    pub(super) permitted_cnames: Slot<'a, Vec<(String, String)>>,
    pub(super) request_tty: Slot<'a, RequestTty>,
    pub(super) session_type: Slot<'a, SessionType>,
    pub(super) fingerprint_hash: Slot<'a, FingerprintHash>,
    pub(super) log_level: Slot<'a, LogLevel>,
    pub(super) forward_agent: Slot<'a, ForwardedAgent>,
    pub(super) forward_socket: Slot<'a, String>,
    pub(super) add_keys_to_agent: Slot<'a, AddKeysToAgent>,
    pub(super) rekey_bytes: Slot<'a, u64>,
    pub(super) rekey_interval: Slot<'a, Duration>,
    pub(super) notes: Vec<Note>,
}

/// Takes a value unless there is one.
fn first<'a, T>(slot: &mut Slot<'a, T>, value: &'a T, origin: &'a Origin) {
    slot.get_or_insert((value, origin));
}

impl<'a> Draft<'a> {
    /// Takes the value of a line that applies, unless an earlier line has set it.
    pub(super) fn set(&mut self, setting: &'a Setting, origin: &'a Origin) -> Result<(), Problem> {
        if self.pinned_hostname.is_some() && setting.is_about_names() {
            // The name is settled, and so is how: in OpenSSH the defaults are in force by now.
            return Ok(());
        }
        match setting {
            Setting::Flag(flag, value) => _ = self.flags.entry(*flag).or_insert((value, origin)),
            Setting::Text(text, value) => _ = self.texts.entry(*text).or_insert((value, origin)),
            Setting::Number(number, value) => _ = self.numbers.entry(*number).or_insert((value, origin)),
            Setting::Time(time, Some(value)) => _ = self.times.entry(*time).or_insert((value, origin)),
            Setting::Time(_, None) => {}
            Setting::List(list, value) => _ = self.lists.entry(*list).or_insert((value, origin)),
            Setting::Port(value) => first(&mut self.port, value, origin),
            Setting::IdentityFile(value) => self.identity_file(value, origin)?,
            Setting::CertificateFile(value) => {
                add(&mut self.certificate_files, value, origin, "CertificateFile")?;
            }
            Setting::SendEnv(words) => self.send_env(words, origin),
            Setting::SetEnv(value) => first(&mut self.set_env, value, origin),
            Setting::ProxyJump(value) => self.jump(value, origin),
            Setting::ProxyCommand(value) => self.command(value, origin),
            Setting::StrictHostKeyChecking(value) => first(&mut self.host_key_policy, value, origin),
            Setting::UpdateHostKeys(value) => first(&mut self.update_host_keys, value, origin),
            Setting::VerifyHostKeyDns(value) => first(&mut self.verify_host_key_dns, value, origin),
            Setting::AddressFamily(value) => first(&mut self.address_family, value, origin),
            Setting::PubkeyAuthentication(value) => first(&mut self.pubkey_authentication, value, origin),
            Setting::Canonicalize(value) => first(&mut self.canonicalize, value, origin),
            Setting::PermittedCnames(value) => first(&mut self.permitted_cnames, value, origin),
            Setting::RefuseConnection(why) => return Err(Problem::Refused(why.clone())),
            Setting::RequestTty(value) => first(&mut self.request_tty, value, origin),
            Setting::SessionType(value) => first(&mut self.session_type, value, origin),
            Setting::FingerprintHash(value) => first(&mut self.fingerprint_hash, value, origin),
            Setting::LogLevel(value) => first(&mut self.log_level, value, origin),
            Setting::ForwardAgent(value) => {
                first(&mut self.forward_agent, value, origin);
                // A path counts even behind a `yes`: it says which agent.
                if let ForwardedAgent::Socket(path) = value {
                    first(&mut self.forward_socket, path, origin);
                }
            }
            Setting::AddKeysToAgent(value) => first(&mut self.add_keys_to_agent, value, origin),
            Setting::RekeyLimit(bytes, interval) => {
                first(&mut self.rekey_bytes, bytes, origin);
                if let Some(interval) = interval {
                    first(&mut self.rekey_interval, interval, origin);
                }
            }
        }
        Ok(())
    }

    pub(super) fn flag(&self, flag: Flag) -> Slot<'a, bool> {
        self.flags.get(&flag).copied()
    }

    pub(super) fn text(&self, text: Text) -> Slot<'a, String> {
        self.texts.get(&text).copied()
    }

    pub(super) fn number(&self, number: Number) -> Slot<'a, u32> {
        self.numbers.get(&number).copied()
    }

    pub(super) fn time(&self, time: Time) -> Slot<'a, Duration> {
        self.times.get(&time).copied()
    }

    pub(super) fn list(&self, list: List) -> Slot<'a, Vec<String>> {
        self.lists.get(&list).copied()
    }

    /// Identity files add up; the second mention of one changes nothing.
    pub(super) fn identity_file(&mut self, path: &'a String, origin: &'a Origin) -> Result<(), Problem> {
        add(&mut self.identity_files, path, origin, "IdentityFile")
    }

    /// Stops count only if nothing was said before; they leave no room for a command. `none` does.
    fn jump(&mut self, hops: &'a Option<Vec<JumpHost>>, origin: &'a Origin) {
        if self.proxy_jump.is_none() && (hops.is_none() || self.proxy_command.is_none()) {
            self.proxy_jump = Some((hops, origin));
        }
    }

    fn command(&mut self, command: &'a String, origin: &'a Origin) {
        if !matches!(self.proxy_jump, Some((Some(_), _))) {
            first(&mut self.proxy_command, command, origin);
        }
    }

    /// A dash takes away what was named so far; what comes later is added again.
    fn send_env(&mut self, words: &'a [String], origin: &'a Origin) {
        for word in words {
            match word.strip_prefix('-') {
                Some(pattern) => self
                    .send_env
                    .retain(|(name, _)| !matches(name.as_bytes(), pattern.as_bytes(), Case::Sensitive)),
                None => self.send_env.push((word, origin)),
            }
        }
    }

    pub(super) fn note(&mut self, keyword: &'static str, origin: &Origin, problem: Option<Problem>) {
        let note = Note {
            keyword,
            origin: origin.clone(),
            problem,
        };
        // The second pass of `Match final` meets every line again.
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

fn add<'a>(
    files: &mut Vec<(&'a String, &'a Origin)>,
    path: &'a String,
    origin: &'a Origin,
    keyword: &'static str,
) -> Result<(), Problem> {
    if files.iter().any(|(known, _)| *known == path) {
        return Ok(());
    }
    if files.len() >= MAX_IDENTITY_FILES {
        return Err(Problem::TooMany {
            keyword,
            limit: MAX_IDENTITY_FILES,
        });
    }
    files.push((path, origin));
    Ok(())
}
