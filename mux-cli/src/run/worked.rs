//! The key that a target took last time, as it is remembered: which one, and which were refused before it. Decides the
//! form of the text; where it is kept and what follows from it is decided elsewhere.

use std::fmt;

/// More keys than any server lets a login show, `MaxAuthTries` being 6 if nobody sets it. Behind more than these a key is
/// not remembered, and costs a question for each every time.
const MAX_AHEAD: usize = 32;

/// What is kept of a fingerprint ahead: 60 bits, they only have to be told apart.
const SHORT: usize = 10;

/// Where another key comes first by now, with `-i` or by a changed configuration, that one has to be asked about, as `ssh`
/// does: a server may tie each key to other commands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Worked {
    pub(crate) print: String,
    /// Fingerprints, shortened.
    ahead: Vec<String>,
}

impl Worked {
    /// A key, and all that was shown before it. `None`: that is too much.
    pub(crate) fn new<'a>(print: &str, ahead: impl Iterator<Item = &'a str>) -> Option<Self> {
        let ahead: Vec<String> = ahead.map(short).collect();
        (ahead.len() <= MAX_AHEAD).then(|| Self {
            print: print.to_owned(),
            ahead,
        })
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    pub(crate) fn parse(text: &str) -> Self {
        let (print, ahead) = text.split_once(" after ").unwrap_or((text, ""));
        Self {
            print: print.to_owned(),
            ahead: ahead.split_whitespace().map(str::to_owned).collect(),
        }
    }

    /// Whether the target refused this key before it took the one that worked.
    pub(crate) fn came_after(&self, print: &str) -> bool {
        self.ahead.contains(&short(print))
    }
}

impl fmt::Display for Worked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print)?;
        match self.ahead.as_slice() {
            [] => Ok(()),
            ahead => write!(f, " after {}", ahead.join(" ")),
        }
    }
}

/// The beginning of a fingerprint, and whether it is that of a certificate.
fn short(print: &str) -> String {
    let digest = print.strip_prefix("SHA256:").unwrap_or(print);
    let (digest, certified) = match digest.strip_suffix("+cert") {
        Some(digest) => (digest, "+cert"),
        None => (digest, ""),
    };
    digest.chars().take(SHORT).collect::<String>() + certified
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const A: &str = "SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "SHA256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const C: &str = "SHA256:ccccccccccccccccccccccccccccccccccccccccccc+cert";

    #[test]
    fn what_is_written_is_read_again() {
        for ahead in [&[][..], &[B], &[B, C]] {
            let worked = Worked::new(A, ahead.iter().copied()).unwrap();
            assert_eq!(Worked::parse(&worked.to_string()), worked);
            assert_eq!(
                ahead.iter().filter(|print| worked.came_after(print)).count(),
                ahead.len()
            );
            assert!(!worked.came_after(A));
        }
    }

    #[test]
    fn a_key_and_its_certificate_are_two() {
        let worked = Worked::new(A, [C].into_iter()).unwrap();
        assert_eq!(worked.to_string(), format!("{A} after cccccccccc+cert"));
        assert!(!worked.came_after(C.trim_end_matches("+cert")));
    }

    #[test]
    fn a_key_behind_more_than_anybody_shows_is_not_remembered() {
        assert!(Worked::new(A, [B; MAX_AHEAD].into_iter()).is_some());
        assert!(Worked::new(A, [B; MAX_AHEAD + 1].into_iter()).is_none());
    }
}
