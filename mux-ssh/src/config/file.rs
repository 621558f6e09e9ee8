//! One configuration file, parsed once for all hosts. Decides which lines belong to which `Host` or `Match` block;
//! never whether a block applies.

use std::collections::HashMap;
use std::sync::Arc;

use super::choice::Canonicalize;
use super::condition::{Condition, Criterion, HostPattern, Test};
use super::error::{Origin, Problem};
use super::keyword::{Class, lookup};
use super::lex;
use super::setting::Setting;
use super::value::Arguments;

/// A file as a list of blocks; what stands before the first `Host` or `Match` is a block that always applies.
#[derive(Debug)]
pub(super) struct ParsedFile {
    blocks: Vec<Block>,
    index: Index,
}

/// Which blocks have to be looked at for which host: of ten thousand that name a host each, one and not all.
#[derive(Debug, Default)]
struct Index {
    /// Those that may concern any host, or count even where they do not apply; in order.
    always: Vec<usize>,
    /// The others, by each name on their `Host` line; in order.
    by_name: HashMap<String, Vec<usize>>,
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
            Self::Set(_) | Self::Noted(_) => false,
        }
    }
}

impl ParsedFile {
    pub(super) fn parse(path: &str, content: &[u8]) -> Self {
        let path: Arc<str> = Arc::from(path);
        let mut file = Self::new(Origin::File {
            path: path.clone(),
            line: 0,
        });
        for (line, number) in content.split(|&byte| byte == b'\n').zip(1..) {
            file.push(
                Origin::File {
                    path: path.clone(),
                    line: number,
                },
                line,
            );
        }
        file.indexed()
    }

    /// The `-o` options, each a line.
    pub(super) fn from_options(options: &[String]) -> Self {
        let mut file = Self::new(Origin::CommandLine);
        for option in options {
            // Host, Match and Include make no sense there; OpenSSH refuses them too.
            file.push(Origin::CommandLine, option.as_bytes());
        }
        file.indexed()
    }

    fn new(origin: Origin) -> Self {
        Self {
            blocks: vec![Block::new(origin)],
            index: Index::default(),
        }
    }

    fn indexed(mut self) -> Self {
        for (at, block) in self.blocks.iter().enumerate() {
            match block.names() {
                Some(names) => {
                    for name in names {
                        let blocks = self.index.by_name.entry(name.to_owned()).or_default();
                        // A line may have a name twice.
                        if blocks.last() != Some(&at) {
                            blocks.push(at);
                        }
                    }
                }
                None => self.index.always.push(at),
            }
        }
        self
    }

    /// All blocks, in order.
    #[cfg(test)]
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter()
    }

    /// The blocks that may concern `host`, in the order of the file. Whether one applies is for its condition to say.
    pub(super) fn blocks_for(&self, host: &str) -> impl Iterator<Item = &Block> {
        let named = self.index.by_name.get(host).map_or(&[][..], Vec::as_slice);
        let (mut named, mut always) = (named.iter().peekable(), self.index.always.iter().peekable());
        let next = std::iter::from_fn(move || match (named.peek(), always.peek()) {
            (Some(name), Some(any)) if name < any => named.next(),
            (_, Some(_)) => always.next(),
            (_, None) => named.next(),
        });
        next.filter_map(|&at| self.blocks.get(at))
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
                Kind::Set(_) | Kind::Noted(_) | Kind::Unknown(_) | Kind::Bad(_) => &[],
            }
            .iter()
            .map(|pattern| (&statement.origin, pattern))
        })
    }

    /// Whether a line asks for a command or for names.
    pub(super) fn may_take_time(&self) -> bool {
        self.blocks.iter().any(|block| {
            let runs = |criterion: &Criterion| matches!(criterion.test, Test::Exec(_));
            let looks_up = |statement: &Statement| match &statement.kind {
                Kind::Set(Setting::Canonicalize(value)) => *value != Canonicalize::No,
                Kind::Set(_) | Kind::Include(_) | Kind::Noted(_) | Kind::Unknown(_) | Kind::Bad(_) => false,
            };
            let runs = match &block.condition {
                Condition::Match(criteria) => criteria.iter().any(runs),
                Condition::Always | Condition::Host(_) | Condition::Wrong(_) => false,
            };
            runs || block.statements.iter().any(looks_up)
        })
    }

    /// The names that stand literally on `Host` lines.
    pub(super) fn literal_names(&self) -> impl Iterator<Item = &str> {
        let patterns = self.blocks.iter().flat_map(|block| match &block.condition {
            Condition::Host(patterns) => patterns.as_slice(),
            Condition::Always | Condition::Match(_) | Condition::Wrong(_) => &[],
        });
        patterns
            .filter(|pattern| !pattern.negated && pattern.is_literal())
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

    /// The only hosts to which the block can matter, if they stand on its `Host` line.
    fn names(&self) -> Option<impl Iterator<Item = &str>> {
        let Condition::Host(patterns) = &self.condition else {
            return None;
        };
        let wanted = patterns.iter().filter(|pattern| !pattern.negated);
        let closed = self.loud.is_empty() && wanted.clone().all(HostPattern::is_literal);
        closed.then(|| wanted.map(|pattern| pattern.pattern.as_str()))
    }
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
        rest,
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
        Class::Host => Line::Block(Condition::Host(
            arguments.into_iter().map(HostPattern::new).collect(),
        )),
        Class::Match => Line::Block(Condition::of_match(&arguments)),
        Class::Include => Line::Statement(Kind::Include(arguments)),
        Class::Honoured(shape) => {
            let parsed = shape.parse(Arguments {
                keyword: keyword.name,
                words: &arguments,
                rest: &rest,
            });
            Line::Statement(parsed.map_or_else(Kind::Bad, Kind::Set))
        }
        Class::Noted => Line::Statement(Kind::Noted(keyword.name)),
    }
}
