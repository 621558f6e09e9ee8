//! One configuration file, parsed once for all hosts. Decides which lines belong to which `Host` or `Match` block;
//! never whether a block applies.

use std::sync::Arc;

use super::error::{Origin, Problem};
use super::keyword::{Class, lookup};
use super::lex;
use super::value::{Arguments, Setting};
use crate::pattern::{Case, matches};

/// A file as a list of blocks; what stands before the first `Host` or `Match` is a block that always applies.
#[derive(Debug)]
pub(super) struct ParsedFile {
    pub(super) blocks: Vec<Block>,
}

/// The lines from one `Host` or `Match` to the next.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) origin: Origin,
    pub(super) condition: Condition,
    pub(super) statements: Vec<Statement>,
    /// Indices of the statements that count even where the block does not apply.
    pub(super) loud: Vec<usize>,
}

/// When a block applies.
#[derive(Debug)]
pub(super) enum Condition {
    Always,
    Host(Vec<HostPattern>),
    MatchAll,
    MatchFinal,
    /// Criteria that cannot be evaluated yet; `wants_final` if `final` is among them.
    MatchUnsupported {
        criteria: String,
        wants_final: bool,
    },
}

/// One word of a `Host` line.
#[derive(Debug)]
pub(super) struct HostPattern {
    negated: bool,
    pattern: String,
}

/// One line within a block.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) origin: Origin,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Set(Setting),
    Include(Vec<String>),
    Noted(&'static str),
    Refused {
        keyword: &'static str,
        slot: &'static str,
        value: String,
        harmless: bool,
    },
    /// In lower case; an error unless `IgnoreUnknown` names it.
    Unknown(String),
    /// A line that is wrong whether it applies or not, as in OpenSSH.
    Bad(Problem),
}

impl Kind {
    /// Whether the line matters even in a block that does not apply.
    fn is_loud(&self) -> bool {
        match self {
            Self::Include(_) | Self::Unknown(_) | Self::Bad(_) => true,
            Self::Set(_) | Self::Noted(_) | Self::Refused { .. } => false,
        }
    }
}

impl ParsedFile {
    pub(super) fn parse(path: &str, content: &[u8]) -> Self {
        let path: Arc<str> = Arc::from(path);
        let mut file = Self {
            blocks: vec![Block::new(Origin::File {
                path: path.clone(),
                line: 0,
            })],
        };
        for (line, number) in content.split(|&byte| byte == b'\n').zip(1..) {
            file.push(
                Origin::File {
                    path: path.clone(),
                    line: number,
                },
                line,
            );
        }
        file
    }

    /// The `-o` options, each a line.
    pub(super) fn from_options(options: &[String]) -> Self {
        let mut file = Self {
            blocks: vec![Block::new(Origin::CommandLine)],
        };
        for option in options {
            // Host, Match and Include make no sense there; OpenSSH refuses them too.
            file.push(Origin::CommandLine, option.as_bytes());
        }
        file
    }

    fn push(&mut self, origin: Origin, line: &[u8]) {
        let Some(statement) = read_line(line, origin == Origin::CommandLine) else {
            return;
        };
        let kind = match statement {
            Line::Block(condition) => {
                self.blocks.push(Block {
                    condition,
                    ..Block::new(origin)
                });
                return;
            }
            Line::Statement(kind) => kind,
        };
        let block = self.blocks.last_mut().expect("a file starts with a block");
        if kind.is_loud() {
            block.loud.push(block.statements.len());
        }
        block.statements.push(Statement { origin, kind });
    }

    /// The `Include` patterns of all blocks, and where they stand.
    pub(super) fn includes(&self) -> impl Iterator<Item = (&Origin, &String)> {
        let statements = self.blocks.iter().flat_map(|block| &block.statements);
        statements.flat_map(|statement| {
            match &statement.kind {
                Kind::Include(patterns) => patterns.as_slice(),
                Kind::Set(_) | Kind::Noted(_) | Kind::Refused { .. } | Kind::Unknown(_) | Kind::Bad(_) => &[],
            }
            .iter()
            .map(|pattern| (&statement.origin, pattern))
        })
    }

    /// The names that stand literally on `Host` lines.
    pub(super) fn literal_names(&self) -> impl Iterator<Item = &str> {
        let patterns = self.blocks.iter().flat_map(|block| match &block.condition {
            Condition::Host(patterns) => patterns.as_slice(),
            Condition::Always
            | Condition::MatchAll
            | Condition::MatchFinal
            | Condition::MatchUnsupported { .. } => &[],
        });
        patterns
            .filter(|pattern| !pattern.negated && !pattern.pattern.contains(['*', '?']))
            .map(|p| &*p.pattern)
    }
}

impl Block {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            condition: Condition::Always,
            statements: Vec::new(),
            loud: Vec::new(),
        }
    }
}

/// Whether the words of a `Host` line match `host`: any pattern, unless a negated one does.
pub(super) fn host_matches(patterns: &[HostPattern], host: &str) -> bool {
    let mut found = false;
    for HostPattern { negated, pattern } in patterns {
        if matches(host.as_bytes(), pattern.as_bytes(), Case::Sensitive) {
            if *negated {
                return false;
            }
            found = true;
        }
    }
    found
}

enum Line {
    Block(Condition),
    Statement(Kind),
}

fn read_line(line: &[u8], command_line: bool) -> Option<Line> {
    let words = match std::str::from_utf8(line) {
        Ok(line) => lex::split(line),
        // A comment in another encoding hurts nobody.
        Err(_) if line.trim_ascii_start().first() == Some(&b'#') => return None,
        Err(_) => Err(Problem::NotUtf8),
    };
    match words {
        Ok(None) => None,
        Ok(Some(words)) => Some(interpret(words, command_line)),
        Err(problem) => Some(Line::Statement(Kind::Bad(problem))),
    }
}

fn interpret(words: lex::Words, command_line: bool) -> Line {
    let lex::Words {
        keyword: name,
        arguments,
    } = words;
    let Some(keyword) = lookup(&name) else {
        return Line::Statement(Kind::Unknown(name));
    };
    let missing = || {
        Line::Statement(Kind::Bad(Problem::MissingArgument {
            keyword: keyword.name.to_owned(),
        }))
    };
    if arguments.is_empty() {
        return missing();
    }
    match keyword.class {
        Class::Host | Class::Match | Class::Include if command_line => {
            let value = arguments.join(" ");
            Line::Statement(Kind::Bad(Problem::NotSupported {
                keyword: keyword.name,
                value,
            }))
        }
        Class::Host | Class::Include if arguments.iter().any(String::is_empty) => missing(),
        Class::Host => Line::Block(Condition::Host(arguments.into_iter().map(host_pattern).collect())),
        Class::Match => Line::Block(condition(&arguments)),
        Class::Include => Line::Statement(Kind::Include(arguments)),
        Class::Honoured(parse) => {
            let parsed = parse(Arguments {
                keyword: keyword.name,
                words: &arguments,
            });
            Line::Statement(parsed.map_or_else(Kind::Bad, Kind::Set))
        }
        Class::Noted => Line::Statement(Kind::Noted(keyword.name)),
        Class::Refused { slot, harmless } => {
            let value = arguments.join(" ");
            let harmless = harmless.iter().any(|word| word.eq_ignore_ascii_case(&value));
            Line::Statement(Kind::Refused {
                keyword: keyword.name,
                slot,
                value,
                harmless,
            })
        }
    }
}

fn host_pattern(word: String) -> HostPattern {
    match word.strip_prefix('!') {
        Some(pattern) => HostPattern {
            negated: true,
            pattern: pattern.to_owned(),
        },
        None => HostPattern {
            negated: false,
            pattern: word,
        },
    }
}

fn condition(arguments: &[String]) -> Condition {
    let criteria: Vec<String> = arguments.iter().map(|word| word.to_ascii_lowercase()).collect();
    let names: Vec<&str> = criteria.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["all"] => Condition::MatchAll,
        ["final"] | ["final", "all"] => Condition::MatchFinal,
        names => Condition::MatchUnsupported {
            criteria: arguments.join(" "),
            wants_final: names.iter().any(|name| matches!(*name, "final" | "!final")),
        },
    }
}
