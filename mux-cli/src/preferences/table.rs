//! One file of ours as it is written: which keys there are. What is not in these structs is an error of the file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::error::{PreferenceError, Problem};
use super::{AuditLog, AuditPreferences};

/// A whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    audit: Option<AuditTable>,
    policy: Option<Spanned<PolicyTable>>,
}

/// `[policy]`: what users can't change.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyTable {
    pub(super) audit: Option<AuditTable>,
}

/// `[audit]`, with what was left open.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditTable {
    to: Option<AuditLog>,
    socket: Option<Spanned<PathBuf>>,
    required: Option<bool>,
}

/// A file, and where in it the policy begins.
#[derive(Debug)]
pub(super) struct File {
    pub(super) audit: Option<AuditTable>,
    policy: PolicyTable,
    policy_line: Option<usize>,
}

impl File {
    pub(super) fn parse(path: &Path, content: &[u8]) -> Result<Self, PreferenceError> {
        let error = |line, problem| PreferenceError::new(path, line, problem);
        let text = std::str::from_utf8(content);
        let text = text.map_err(|at| {
            let before = content.get(..at.valid_up_to()).unwrap_or_default();
            error(Some(lines(before)), Problem::NotText)
        })?;
        let line = |span: Range<usize>| lines(content.get(..span.start).unwrap_or_default());
        let parsed = toml::from_str(text);
        let parsed: Content = parsed.map_err(|wrong: toml::de::Error| {
            let words = Problem::Wrong(wrong.message().to_owned());
            error(wrong.span().map(line), words)
        })?;
        let policy_line = parsed.policy.as_ref().map(|policy| line(policy.span()));
        let policy = parsed.policy.map(Spanned::into_inner).unwrap_or_default();
        let sockets = [&parsed.audit, &policy.audit].into_iter().flatten();
        for socket in sockets.filter_map(|table| table.socket.as_ref()) {
            let path = socket.get_ref();
            if !path.is_absolute() {
                return Err(error(Some(line(socket.span())), Problem::Relative(path.clone())));
            }
        }
        Ok(Self {
            audit: parsed.audit,
            policy,
            policy_line,
        })
    }

    /// What users can't change.
    pub(super) fn policy(&mut self) -> PolicyTable {
        std::mem::take(&mut self.policy)
    }

    /// Such a file can't have a policy.
    pub(super) fn without_policy(&self, path: &Path) -> Result<(), PreferenceError> {
        match self.policy_line {
            line @ Some(_) => Err(PreferenceError::new(path, line, Problem::Policy)),
            None => Ok(()),
        }
    }
}

impl AuditTable {
    /// The keys of both, those of `later` first.
    pub(super) fn under(self, later: Self) -> Self {
        Self {
            to: later.to.or(self.to),
            socket: later.socket.or(self.socket),
            required: later.required.or(self.required),
        }
    }

    /// With defaults for what was left open.
    pub(super) fn settled(self) -> AuditPreferences {
        AuditPreferences {
            to: self.to.unwrap_or_default(),
            socket: self.socket.map(Spanned::into_inner),
            required: self.required.unwrap_or_default(),
        }
    }
}

/// The number of the line that begins behind this text.
fn lines(before: &[u8]) -> usize {
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
