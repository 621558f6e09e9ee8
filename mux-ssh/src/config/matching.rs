//! Whether the block behind a `Host` or `Match` line applies to a host, given what the lines above have said. Decides
//! that alone; never what such a line may say.

use super::choice::SessionType;
use super::condition::{Condition, Criterion, Test, host_matches};
use super::error::{ConfigError, Origin, Problem};
use super::expand::{self, Tokens};
use super::file::Block;
use super::setting::Text;
use super::walk::{Stop, Walk};
use super::{Need, Purpose};
use crate::pattern::{Case, ListMatch, matches_list};

impl Walk<'_, '_> {
    /// Whether the lines of `block` count, given whether those around it do.
    pub(super) fn applies(&mut self, block: &Block, active: bool) -> Result<bool, Stop> {
        match &block.condition {
            Condition::Always => Ok(active),
            Condition::Host(patterns) => Ok(active && host_matches(patterns, self.host)),
            Condition::Match(criteria) => {
                // The wish for a second pass counts wherever it stands, and negated too, as in most versions of OpenSSH.
                self.wants_final |= criteria.iter().any(|criterion| criterion.test == Test::Final);
                Ok(active && self.all_hold(criteria, &block.origin)?)
            }
            Condition::Wrong(problem) => Err(Stop::Error(ConfigError {
                origin: block.origin.clone(),
                problem: problem.clone(),
            })),
        }
    }

    /// One after the other: no command runs if something in front of it has already decided.
    fn all_hold(&self, criteria: &[Criterion], origin: &Origin) -> Result<bool, Stop> {
        for Criterion { negated, test } in criteria {
            if self.holds(test, origin)? == *negated {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn holds(&self, test: &Test, origin: &Origin) -> Result<bool, Stop> {
        let answers = &self.resolver.answers;
        match test {
            Test::All => Ok(true),
            Test::Canonical | Test::Final => Ok(self.final_pass),
            Test::Host(list) => Ok(listed(&self.target()?, list, Case::Insensitive)),
            Test::OriginalHost(list) => Ok(listed(&self.facts.host, list, Case::Insensitive)),
            Test::User(list) => Ok(listed(self.user(), list, Case::Sensitive)),
            Test::LocalUser(list) => Ok(listed(&self.resolver.local.user, list, Case::Sensitive)),
            Test::Tagged(list) => {
                let tag = self.draft.text(Text::Tag).map_or("", |(tag, _)| tag);
                Ok(listed_or_both_empty(tag, list))
            }
            Test::Command(list) => {
                let command = match &self.facts.purpose {
                    Purpose::Command(command) => command,
                    Purpose::Shell | Purpose::Proxy => "",
                };
                Ok(listed_or_both_empty(command, list))
            }
            Test::SessionType(list) => Ok(listed(self.session_type(), list, Case::Sensitive)),
            Test::Version(list) => {
                let version = answers.version.as_ref().ok_or(Stop::Need(Need::Version))?;
                Ok(listed(version, list, Case::Sensitive))
            }
            Test::LocalNetwork(networks) => {
                let addresses = answers.addresses.as_ref().ok_or(Stop::Need(Need::Addresses))?;
                let inside = |address| networks.iter().any(|network| network.contains(address));
                Ok(addresses.iter().copied().any(inside))
            }
            Test::Exec(command) => self.succeeds(command, origin),
        }
    }

    /// Whether a command succeeds. Its tokens stand for what is known so far.
    fn succeeds(&self, command: &str, origin: &Origin) -> Result<bool, Stop> {
        let fail = |problem| ConfigError {
            origin: origin.clone(),
            problem,
        };
        let target = self.target()?;
        let command = expand::command(command, "Match exec", self.tokens(&target)).map_err(fail)?;
        match self.resolver.answers.execs.get(&command) {
            None => Err(Stop::Need(Need::Exec(command))),
            Some(Ok(succeeded)) => Ok(*succeeded),
            Some(Err(why)) => Err(fail(Problem::Exec { command, why: *why }).into()),
        }
    }

    /// What tokens stand for in the middle of a configuration.
    pub(super) fn tokens<'t>(&'t self, target: &'t str) -> Tokens<'t> {
        let alias = self.draft.text(Text::HostKeyAlias);
        Tokens {
            local: &self.resolver.local,
            typed: &self.facts.host,
            host: target,
            key_alias: alias.map_or(target, |(alias, _)| alias),
            port: self.draft.port(self.facts).value,
            user: self.user(),
            jump: self.draft.last_jump(),
        }
    }

    /// Where the connection would go if no line followed.
    pub(super) fn target(&self) -> Result<String, ConfigError> {
        if let Some(pinned) = &self.draft.pinned_hostname {
            return Ok(pinned.value.clone());
        }
        match self.draft.text(Text::HostName) {
            Some((name, origin)) => expand::host_name(name, self.host).map_err(|problem| ConfigError {
                origin: origin.clone(),
                problem,
            }),
            None => Ok(self.host.to_owned()),
        }
    }

    /// As whom one would log in if no line followed.
    fn user(&self) -> &str {
        let written = self.draft.text(Text::User).map(|(user, _)| user);
        let user = self.facts.user.as_ref().or(written);
        user.unwrap_or(&self.resolver.local.user)
    }

    fn session_type(&self) -> &'static str {
        match (self.draft.session_type, &self.facts.purpose) {
            (_, Purpose::Proxy) | (Some((SessionType::None, _)), _) => "none",
            (Some((SessionType::Subsystem, _)), _) => "subsystem",
            (Some((SessionType::Default, _)) | None, Purpose::Command(command)) if !command.is_empty() => {
                "exec"
            }
            (Some((SessionType::Default, _)) | None, Purpose::Command(_) | Purpose::Shell) => "shell",
        }
    }
}

fn listed(text: &str, list: &str, case: Case) -> bool {
    matches_list(text.as_bytes(), list.as_bytes(), case) == ListMatch::Yes
}

/// An empty text is matched by an empty list alone.
fn listed_or_both_empty(text: &str, list: &str) -> bool {
    if text.is_empty() {
        list.is_empty()
    } else {
        listed(text, list, Case::Sensitive)
    }
}
