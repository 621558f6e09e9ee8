//! The `name-list` of RFC 4251 §5. Decides what a well-formed list is; not which names exist.

use crate::Violation;

/// What stands between two names of a list.
const COMMA: u8 = b',';

/// A `name-list`: printable ASCII, no empty names. May be empty as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameList<'a> {
    text: &'a str,
}

impl<'a> NameList<'a> {
    /// The content of the field.
    pub(super) fn parse(field: &'a [u8]) -> Result<Self, Violation> {
        // Every host sends a kilobyte of names: passes without early exit, which the compiler turns into vector code.
        let printable = field.iter().fold(true, |all, byte| all & byte.is_ascii_graphic());
        let pairs = field.iter().zip(field.iter().skip(1));
        let doubled = pairs.fold(false, |any, (&one, &next)| {
            any | ((one == COMMA) & (next == COMMA))
        });
        let at_an_end = field.first() == Some(&COMMA) || field.last() == Some(&COMMA);
        if !printable || doubled || at_an_end {
            return Err(Violation::NameList);
        }
        let text = std::str::from_utf8(field).map_err(|_| Violation::NameList)?;
        Ok(Self { text })
    }

    /// The names, in the sender's order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> + Clone {
        Names { rest: self.text }
    }

    /// How many names there are, without looking at any.
    #[must_use]
    pub fn len(self) -> usize {
        let commas = self.text.bytes().filter(|&byte| byte == COMMA).count();
        commas + usize::from(!self.text.is_empty())
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    /// The name that the sender prefers.
    #[must_use]
    pub fn first(self) -> Option<&'a str> {
        self.iter().next()
    }

    /// Whether the list has exactly this name.
    #[must_use]
    pub fn contains(self, name: &str) -> bool {
        self.iter().any(|candidate| candidate == name)
    }
}

/// The names that are left. By bytes: names are short, and a search that prepares itself costs more than it saves.
#[derive(Clone, Debug)]
struct Names<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.bytes().position(|byte| byte == COMMA);
        let (name, rest) = match end {
            Some(end) => (self.rest.get(..end)?, self.rest.get(end + 1..)?),
            None => (self.rest, ""),
        };
        self.rest = rest;
        Some(name)
    }
}
