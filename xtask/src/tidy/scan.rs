//! From tokens to [`Code`]. It follows Rust's surface only as far as rules need: attributes, items, braces, paths.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::source::{Code, Function, Name};

pub(super) fn code(tokens: TokenStream) -> Code {
    let mut code = Code::default();
    items(&tokens, &mut code);
    names(tokens, &[], &mut code.names);
    code
}

/// One level of braces: finds functions, constants and test items, then looks into every group.
fn items(tokens: &TokenStream, code: &mut Code) {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        let rest = trees.get(at..).unwrap_or_default();
        if let Some(length) = test_item(rest) {
            let item = rest.get(..length).unwrap_or_default();
            code.tests.extend(lines(item));
            code.test_modules.extend(declared_module(item));
            at += length;
            continue;
        }
        if let Some((function, body)) = function(rest) {
            if is_match_table(&body) {
                code.tables.push(function.lines.clone());
            }
            code.functions.push(function);
        } else if is_word(tree, &["const", "static"]) {
            code.tables.extend(table(rest));
        }
        if let TokenTree::Group(group) = tree {
            items(&group.stream(), code);
        }
        at += 1;
    }
}

/// `#[cfg(test)]` or `#[test]`, further attributes, and the item behind them: how many tokens that is.
fn test_item(trees: &[TokenTree]) -> Option<usize> {
    let first = attribute(trees)?.to_string().replace(' ', "");
    if first != "test" && first != "cfg(test)" && !first.starts_with("cfg(all(test,") {
        return None;
    }
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    // `use a::{b, c};` ends with its semicolon, not with its braces.
    let is_use = trees
        .iter()
        .skip(2)
        .find(|tree| matches!(tree, TokenTree::Ident(_)))
        .is_some_and(|tree| is_word(tree, &["use"]));
    let end = trees
        .iter()
        .position(|tree| if is_use { is_punct(tree, ';') } else { ends(tree) })?;
    Some(end + 1)
}

/// The inside of `#[…]` at the start.
fn attribute(trees: &[TokenTree]) -> Option<TokenStream> {
    match trees {
        [hash, TokenTree::Group(group), ..]
            if is_punct(hash, '#') && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream())
        }
        _ => None,
    }
}

/// `name` in `… mod name;`.
fn declared_module(item: &[TokenTree]) -> Option<String> {
    match item {
        [.., word, TokenTree::Ident(name), end] if is_word(word, &["mod"]) && is_punct(end, ';') => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// `fn name … { … }` at the start; a declaration without a body is none.
fn function(trees: &[TokenTree]) -> Option<(Function, Group)> {
    let [word, TokenTree::Ident(name), rest @ ..] = trees else {
        return None;
    };
    if !is_word(word, &["fn"]) {
        return None;
    }
    for tree in rest {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let lines = word.span().start().line..=group.span_close().end().line;
                return Some((
                    Function {
                        name: name.to_string(),
                        lines,
                    },
                    group.clone(),
                ));
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Ident(_) | TokenTree::Literal(_) => {}
        }
    }
    None
}

/// A body that is one `match` with (on average) at most two lines an arm is a table that happens to be code.
fn is_match_table(body: &Group) -> bool {
    let trees: Vec<TokenTree> = body.stream().into_iter().collect();
    let [word, .., TokenTree::Group(arms)] = trees.as_slice() else {
        return false;
    };
    let count = arms
        .stream()
        .into_iter()
        .filter(|tree| is_punct(tree, '='))
        .count();
    let height = arms.span_close().end().line - arms.span_open().start().line;
    is_word(word, &["match"]) && arms.delimiter() == Delimiter::Brace && height <= 2 * count
}

/// `const NAME: T = … [ … ] … ;`
fn table(trees: &[TokenTree]) -> Option<RangeInclusive<usize>> {
    let end = trees.iter().position(|tree| is_punct(tree, ';'))?;
    let equals = trees.iter().position(|tree| is_punct(tree, '='))?;
    let value = trees.get(equals..end)?;
    let is_array =
        |tree: &TokenTree| matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    if value.iter().any(is_array) {
        lines(trees.get(..=end)?)
    } else {
        None
    }
}

fn lines(trees: &[TokenTree]) -> Option<RangeInclusive<usize>> {
    Some(trees.first()?.span().start().line..=trees.last()?.span().end().line)
}

/// Every path in the stream; inside a `use` group `prefix` stands before each of its members.
fn names(tokens: TokenStream, prefix: &[String], found: &mut Vec<Name>) {
    let mut path = prefix.to_vec();
    let mut line = 0;
    // How many colons came since the last word: two continue a path, one (a type, a label) ends it.
    let mut colons = if prefix.is_empty() { 0 } else { 2 };
    let mut after_dot = false;
    for tree in tokens {
        match &tree {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    finish(&mut path, prefix, line, found);
                }
                let dot = if after_dot { "." } else { "" };
                path.push(format!("{dot}{word}"));
                (line, colons) = (word.span().start().line, 0);
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Group(group) if colons == 2 && group.delimiter() == Delimiter::Brace => {
                names(group.stream(), &path, found);
                path = prefix.to_vec();
            }
            TokenTree::Group(group) => {
                finish(&mut path, prefix, line, found);
                names(group.stream(), &[], found);
                colons = 0;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {
                finish(&mut path, prefix, line, found);
                colons = if prefix.is_empty() { 0 } else { 2 };
            }
        }
        after_dot = is_punct(&tree, '.');
    }
    finish(&mut path, prefix, line, found);
}

fn finish(path: &mut Vec<String>, prefix: &[String], line: usize, found: &mut Vec<Name>) {
    if path.len() > prefix.len() {
        found.push(Name {
            path: path.join("::"),
            line,
        });
    }
    path.truncate(prefix.len());
}

fn is_word(tree: &TokenTree, words: &[&str]) -> bool {
    matches!(tree, TokenTree::Ident(ident) if words.iter().any(|word| ident == word))
}

fn is_punct(tree: &TokenTree, char: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == char)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn scan(text: &str) -> Code {
        code(text.parse().unwrap())
    }

    fn paths(text: &str) -> Vec<String> {
        scan(text).names.into_iter().map(|name| name.path).collect()
    }

    #[test]
    fn use_groups_are_multiplied_out() {
        assert_eq!(
            paths("use std::{fs, net::{TcpStream, UdpSocket}};"),
            ["use", "std::fs", "std::net::TcpStream", "std::net::UdpSocket"]
        );
    }

    #[test]
    fn comments_and_strings_name_nothing() {
        assert_eq!(paths("// std::fs\n\"std::net\""), [""; 0]);
    }

    #[test]
    fn methods_keep_their_dot_and_types_are_found_behind_a_colon() {
        assert_eq!(
            paths("start.elapsed(); let x: Mutex<u8>;"),
            ["start", ".elapsed", "let", "x", "Mutex", "u8"]
        );
    }

    #[test]
    fn test_items_tables_and_functions_have_their_lines() {
        let code = scan(
            "fn f() {\n}\nconst T: &[u8] = &[\n1,\n];\n#[cfg(test)]\nmod tests {\nfn g() {}\n}\n#[cfg(test)]\nmod more;",
        );
        assert_eq!(
            code.functions,
            [Function {
                name: "f".to_owned(),
                lines: 1..=2
            }]
        );
        assert_eq!(code.tables, [3..=5]);
        assert_eq!(code.tests, [6..=9, 10..=11]);
        assert_eq!(code.test_modules, ["more"]);
    }
}
