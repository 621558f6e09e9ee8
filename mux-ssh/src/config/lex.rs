//! Splits one line of ssh_config into a keyword and its arguments, exactly as OpenSSH does: `=` or blanks after the
//! keyword, quotes, backslashes, comments. Never looks at what a keyword means.

use super::error::Problem;

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// In lower case.
    pub(super) keyword: String,
    pub(super) arguments: Vec<String>,
    /// What follows the keyword, as it stands.
    pub(super) rest: String,
}

const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// `None` for an empty line or a comment.
pub(super) fn split(line: &str) -> Result<Option<Words>, Problem> {
    let line = line
        .trim_end_matches([' ', '\t', '\r', '\n', '\x0c'])
        .trim_start_matches(BLANKS);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (keyword, rest) = keyword(line)?;
    if rest.is_empty() {
        return Err(Problem::MissingArgument { keyword });
    }
    Ok(Some(Words {
        keyword,
        arguments: arguments(rest)?,
        rest: rest.to_owned(),
    }))
}

/// The keyword in lower case, and what follows it without the one `=` that may stand between the two.
fn keyword(line: &str) -> Result<(String, &str), Problem> {
    let (word, rest) = match line.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or(Problem::InvalidQuotes)?,
        None => line.split_at(
            line.find(|c| BLANKS.contains(&c) || c == '=' || c == '"')
                .unwrap_or(line.len()),
        ),
    };
    if rest.starts_with('"') && !line.starts_with('"') {
        return Err(Problem::InvalidQuotes);
    }
    let rest = rest.trim_start_matches(BLANKS);
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    Ok((word.to_ascii_lowercase(), rest.trim_start_matches(BLANKS)))
}

/// The arguments, with quotes and escapes taken away. A `#` at the start of a word begins a comment.
pub(super) fn arguments(rest: &str) -> Result<Vec<String>, Problem> {
    let mut words = Vec::new();
    let mut chars = rest.chars().peekable();
    loop {
        while chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match chars.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => words.push(word(&mut chars)?),
        }
    }
}

fn word(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, Problem> {
    let mut word = String::new();
    let mut quote: Option<char> = None;
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) => {
                let escaped = chars
                    .next_if(|&next| matches!(next, '\'' | '"' | '\\') || (quote.is_none() && next == ' '));
                word.push(escaped.unwrap_or('\\'));
            }
            (' ' | '\t', None) => return Ok(word),
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if open == c => quote = None,
            _ => word.push(c),
        }
    }
    if quote.is_some() {
        Err(Problem::InvalidQuotes)
    } else {
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Option<(&str, &[&str])>, Problem>) {
        let expected = expected.map(|line| {
            line.map(|(keyword, arguments)| {
                let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
                (keyword.to_owned(), arguments)
            })
        });
        let found = split(line).map(|words| words.map(|words| (words.keyword, words.arguments)));
        assert_eq!(found, expected, "{line:?}");
    }

    #[test]
    fn lines_split_as_openssh_splits_them() {
        let none = || Problem::MissingArgument {
            keyword: "user".to_owned(),
        };
        check("", Ok(None));
        check("   \t", Ok(None));
        check("  # User x", Ok(None));
        check("User", Err(none()));
        check("User  \r", Err(none()));
        check("User=", Err(none()));
        check("User x", Ok(Some(("user", &["x"]))));
        check("\tUSER\t x \x0c\r\n", Ok(Some(("user", &["x"]))));
        check("User=x", Ok(Some(("user", &["x"]))));
        check("User = x", Ok(Some(("user", &["x"]))));
        check("User ==x", Ok(Some(("user", &["=x"]))));
        check("User=\"a b\"", Ok(Some(("user", &["a b"]))));
        check("User\"a b\"", Err(Problem::InvalidQuotes));
        check("\"User\" x", Ok(Some(("user", &["x"]))));
        check("\"User x", Err(Problem::InvalidQuotes));
        check("User 'a b' c", Ok(Some(("user", &["a b", "c"]))));
        check("User a\\ b", Ok(Some(("user", &["a b"]))));
        check("User \"a\\ b\"", Ok(Some(("user", &["a\\ b"]))));
        check("User \"a\\\"b\"", Ok(Some(("user", &["a\"b"]))));
        check("User a\\nb", Ok(Some(("user", &["a\\nb"]))));
        check("User a\\", Ok(Some(("user", &["a\\"]))));
        check("User \"a", Err(Problem::InvalidQuotes));
        check("User \"\"", Ok(Some(("user", &[""]))));
        check("User a # b", Ok(Some(("user", &["a"]))));
        check("User a#b", Ok(Some(("user", &["a#b"]))));
        check("User a\"b\"c", Ok(Some(("user", &["abc"]))));
        check("Host a  b\tc", Ok(Some(("host", &["a", "b", "c"]))));
        check("User # only a comment", Ok(Some(("user", &[]))));
    }
}
