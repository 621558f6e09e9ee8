//! Reads the files for one host in OpenSSH's order. Decides which lines apply; never what their values mean.

use super::draft::Draft;
use super::error::{ConfigError, Origin, Problem};
use super::expand::{self, Tokens};
use super::file::{Kind, ParsedFile, Statement};
use super::need::Loaded;
use super::setting::Text;
use super::{Facts, Local, Need, Resolver};
use crate::pattern::{Case, ListMatch, matches_list};

/// As OpenSSH's `READCONF_MAX_DEPTH`.
const MAX_DEPTH: usize = 16;

/// Files read for one host: a few hundred are plausible (one per customer), a tree that doubles at each level is
/// not and would take for ever.
const MAX_INCLUDES: usize = 16 * 1024;

/// Whose file it is, which decides where relative paths lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    User,
    System,
}

/// Why a walk ended early.
#[derive(Debug)]
pub(super) enum Stop {
    Need(Need),
    Error(ConfigError),
}

impl From<ConfigError> for Stop {
    fn from(error: ConfigError) -> Self {
        Self::Error(error)
    }
}

/// One pass over all files for one host.
pub(super) struct Walk<'a, 'd> {
    pub(super) resolver: &'a Resolver,
    pub(super) facts: &'d Facts,
    /// What `Host` patterns are compared with.
    pub(super) host: &'d str,
    pub(super) final_pass: bool,
    pub(super) draft: &'d mut Draft<'a>,
    /// Whether a `Match final` was met, which asks for a second pass.
    pub(super) wants_final: bool,
    includes: usize,
}

impl<'a, 'd> Walk<'a, 'd> {
    pub(super) fn new(
        resolver: &'a Resolver,
        facts: &'d Facts,
        host: &'d str,
        draft: &'d mut Draft<'a>,
    ) -> Self {
        Self {
            resolver,
            facts,
            host,
            final_pass: false,
            draft,
            wants_final: false,
            includes: 0,
        }
    }

    /// Reads one file. Where `active` is false only what OpenSSH would complain about anyway counts.
    pub(super) fn file(
        &mut self,
        file: &'a ParsedFile,
        owner: Owner,
        active: bool,
        depth: usize,
    ) -> Result<(), Stop> {
        for block in file.blocks_for(self.host) {
            let applies = self.applies(block, active)?;
            if applies {
                for statement in &block.statements {
                    self.statement(statement, owner, true, depth)?;
                }
            } else {
                for statement in block.loud.iter().filter_map(|&index| block.statements.get(index)) {
                    self.statement(statement, owner, false, depth)?;
                }
            }
        }
        Ok(())
    }

    fn statement(
        &mut self,
        statement: &'a Statement,
        owner: Owner,
        active: bool,
        depth: usize,
    ) -> Result<(), Stop> {
        let origin = &statement.origin;
        let fail = |problem: Problem| {
            Stop::Error(ConfigError {
                origin: origin.clone(),
                problem,
            })
        };
        match &statement.kind {
            Kind::Set(setting) => self.draft.set(setting, origin).map_err(fail),
            Kind::Include(patterns) => self.include(patterns, origin, owner, active, depth),
            Kind::Noted(keyword) => {
                self.draft.note(keyword, origin, None);
                Ok(())
            }
            Kind::Unknown(keyword) if self.is_ignored(keyword) => Ok(()),
            Kind::Unknown(keyword) => Err(fail(Problem::UnknownKeyword(keyword.clone()))),
            Kind::Bad(problem) => Err(fail(problem.clone())),
        }
    }

    fn is_ignored(&self, keyword: &str) -> bool {
        self.draft.text(Text::IgnoreUnknown).is_some_and(|(list, _)| {
            let found = matches_list(keyword.as_bytes(), list.as_bytes(), Case::Insensitive);
            found == ListMatch::Yes
        })
    }

    fn include(
        &mut self,
        patterns: &'a [String],
        origin: &Origin,
        owner: Owner,
        active: bool,
        depth: usize,
    ) -> Result<(), Stop> {
        let fail = |problem| ConfigError {
            origin: origin.clone(),
            problem,
        };
        for pattern in patterns {
            let target = self.target()?;
            let tokens = self.tokens(&target);
            let pattern = match absolute(pattern, owner, &self.resolver.local, Some(tokens)) {
                Ok(pattern) => pattern,
                Err(problem) if self.resolver.leads_nowhere(&problem) => {
                    if active {
                        self.draft.note("Include", origin, Some(problem));
                    }
                    continue;
                }
                Err(problem) => return Err(fail(problem).into()),
            };
            let paths = self.resolver.expand(&pattern)?;
            for path in paths {
                self.includes += 1;
                if depth >= MAX_DEPTH || self.includes > MAX_INCLUDES {
                    return Err(fail(Problem::TooManyIncludes).into());
                }
                match self.resolver.loaded(path).map_err(Stop::Need)? {
                    Loaded::Parsed(file) => self.file(file, owner, active, depth + 1)?,
                    // A pattern that matches nothing is how optional files are written.
                    Loaded::Missing => {}
                    Loaded::Unreadable(kind) if active => {
                        let (path, kind) = (path.clone(), *kind);
                        return Err(fail(Problem::UnreadableInclude { path, kind }).into());
                    }
                    Loaded::Unreadable(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// Relative paths lie beside the file that OpenSSH would have started with, and nobody is at home in the system's.
pub(super) fn absolute(
    pattern: &str,
    owner: Owner,
    local: &Local,
    tokens: Option<Tokens<'_>>,
) -> Result<String, Problem> {
    if owner == Owner::System && pattern.starts_with('~') {
        return Err(Problem::BadValue {
            keyword: "Include",
            value: pattern.to_owned(),
            expected: "a path without ~ in a file of the system",
        });
    }
    let expanded = expand::include(pattern, local, tokens)?;
    if expanded.starts_with('/') {
        return Ok(expanded);
    }
    Ok(match owner {
        Owner::User => format!("{}/.ssh/{expanded}", local.home.trim_end_matches('/')),
        Owner::System => format!("/etc/ssh/{expanded}"),
    })
}

/// The error of a file that is there and cannot be read.
pub(super) fn unreadable(path: &str, kind: std::io::ErrorKind) -> ConfigError {
    let origin = Origin::File {
        path: path.into(),
        line: 0,
    };
    ConfigError {
        origin,
        problem: Problem::Unreadable(kind),
    }
}
