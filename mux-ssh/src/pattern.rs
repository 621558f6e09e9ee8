//! The shell-like patterns of ssh_config and known_hosts: `*`, `?`, comma lists and `!`.
//!
//! Decides whether a text matches; never needs more than `text × pattern` steps, whatever the pattern.

/// How letters compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// `Host` lines compare names as they were typed.
    Sensitive,
    /// known_hosts compares names without regard to case.
    Insensitive,
}

/// What a list of patterns says about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMatch {
    /// A pattern matched and no negated one did.
    Yes,
    /// A negated pattern matched, which overrules every other one.
    Negated,
    /// No pattern matched.
    No,
}

/// Whether `pattern` matches the whole of `text`.
///
/// After a mismatch only the last `*` is widened: an earlier one could only leave less text for what follows, so
/// the number of steps is at most `text.len() * pattern.len()`.
pub(crate) fn matches(text: &[u8], pattern: &[u8], case: Case) -> bool {
    let (mut at, mut in_pattern) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(&byte) = text.get(at) {
        match pattern.get(in_pattern) {
            Some(b'*') => {
                star = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(&wanted) if wanted == b'?' || same(wanted, byte, case) => {
                at += 1;
                in_pattern += 1;
            }
            _ => {
                let Some((star_at, resume)) = star else {
                    return false;
                };
                star = Some((star_at, resume + 1));
                in_pattern = star_at + 1;
                at = resume + 1;
            }
        }
    }
    pattern
        .get(in_pattern..)
        .unwrap_or_default()
        .iter()
        .all(|&rest| rest == b'*')
}

/// What the comma-separated `list` says about `text`. A `!` in front of a pattern negates it.
pub(crate) fn matches_list(text: &[u8], list: &[u8], case: Case) -> ListMatch {
    let mut found = ListMatch::No;
    for pattern in list.split(|&byte| byte == b',') {
        match pattern.strip_prefix(b"!") {
            Some(negated) if matches(text, negated, case) => return ListMatch::Negated,
            Some(_) => {}
            None if found == ListMatch::No && matches(text, pattern, case) => found = ListMatch::Yes,
            None => {}
        }
    }
    found
}

fn same(left: u8, right: u8, case: Case) -> bool {
    match case {
        Case::Sensitive => left == right,
        Case::Insensitive => left.eq_ignore_ascii_case(&right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, pattern: &str, expected: bool) {
        let found = matches(text.as_bytes(), pattern.as_bytes(), Case::Sensitive);
        assert_eq!(found, expected, "{text:?} against {pattern:?}");
    }

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "*", true),
            ("", "?", false),
            ("a", "", false),
            ("web1", "web?", true),
            ("web12", "web?", false),
            ("web12", "web*", true),
            ("web12", "*12", true),
            ("web12", "*1", false),
            ("a.b.c", "*.*.*", true),
            ("a.b", "*.*.*", false),
            ("abab", "*ab", true),
            ("mississippi", "m*iss*ppi", true),
            ("mississippi", "m*iss*pp", false),
            ("Web", "web", false),
            ("x*y", "x*y", true),
        ] {
            check(text, pattern, expected);
        }
    }

    #[test]
    fn many_stars_cost_no_exponential_time() {
        let text = "a".repeat(20_000);
        let pattern = format!("{}b", "a*".repeat(200));
        check(&text, &pattern, false);
    }

    #[test]
    fn a_negated_pattern_overrules_the_rest_of_its_list() {
        for (text, list, expected) in [
            ("web1", "web*,!web1", ListMatch::Negated),
            ("web1", "!web1,web*", ListMatch::Negated),
            ("web2", "web*,!web1", ListMatch::Yes),
            ("db", "!web1", ListMatch::No),
            ("WEB2", "web*", ListMatch::Yes),
            ("", "", ListMatch::Yes),
            ("x", "", ListMatch::No),
        ] {
            assert_eq!(
                matches_list(text.as_bytes(), list.as_bytes(), Case::Insensitive),
                expected,
                "{list}"
            );
        }
    }
}
