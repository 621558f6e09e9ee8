//! Turns the arguments of honoured keywords into values. Decides what each keyword accepts; never whether the line
//! applies to a host.

use std::time::Duration;

use super::error::Problem;

/// As OpenSSH's `SSH_MAX_HOSTS_FILES`.
pub(super) const MAX_KNOWN_HOSTS_FILES: usize = 32;

/// How much OpenSSH would say. `-v` maps onto it, not the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    Quiet,
    /// What ends the process.
    Fatal,
    /// What fails.
    Error,
    /// The default.
    Info,
    /// One `-v` less than debug.
    Verbose,
    /// `-v`.
    Debug1,
    /// `-vv`.
    Debug2,
    /// `-vvv`.
    Debug3,
}

/// The arguments of one line, with the name to put into errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a> {
    pub(super) keyword: &'static str,
    pub(super) words: &'a [String],
    /// The rest of the line as it stands, for keywords whose value is for a shell.
    pub(super) rest: &'a str,
}

impl<'a> Arguments<'a> {
    pub(super) fn one(self) -> Result<&'a str, Problem> {
        match self.words {
            [] => Err(self.missing()),
            [word] if word.is_empty() => Err(self.missing()),
            [word] => Ok(word),
            _ => Err(Problem::ExtraArguments {
                keyword: self.keyword,
            }),
        }
    }

    pub(super) fn missing(self) -> Problem {
        Problem::MissingArgument {
            keyword: self.keyword.to_owned(),
        }
    }

    pub(super) fn bad(self, value: &str, expected: &'static str) -> Problem {
        Problem::BadValue {
            keyword: self.keyword,
            value: value.to_owned(),
            expected,
        }
    }

    pub(super) fn text(self) -> Result<String, Problem> {
        self.one().map(str::to_owned)
    }

    pub(super) fn flag(self) -> Result<bool, Problem> {
        let word = self.one()?;
        self.pick(
            word,
            &[("yes", true), ("true", true), ("no", false), ("false", false)],
            "yes or no",
        )
    }

    pub(super) fn number(self) -> Result<u32, Problem> {
        let word = self.one()?;
        // OpenSSH keeps these in an `int`.
        let number = digits(word).filter(|&number| number <= i32::MAX.unsigned_abs());
        number.ok_or_else(|| self.bad(word, "a number"))
    }

    /// `None` for `none`, which in OpenSSH counts as not set: a later line may still say something else.
    pub(super) fn time(self) -> Result<Option<Duration>, Problem> {
        let word = self.one()?;
        if word == "none" {
            return Ok(None);
        }
        time(word)
            .map(Some)
            .ok_or_else(|| self.bad(word, "a time such as 90 or 1m30s"))
    }

    /// As it stands, but for the blanks and equal signs in front.
    pub(super) fn command(self) -> Result<String, Problem> {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n', '=']);
        if text.is_empty() {
            return Err(self.missing());
        }
        Ok(text.to_owned())
    }

    /// `none` stands alone and means none at all.
    pub(super) fn list(self) -> Result<Vec<String>, Problem> {
        if self.words.is_empty() || self.words.iter().any(String::is_empty) {
            return Err(self.missing());
        }
        if self.words.len() > MAX_KNOWN_HOSTS_FILES {
            return Err(Problem::TooMany {
                keyword: self.keyword,
                limit: MAX_KNOWN_HOSTS_FILES,
            });
        }
        match self.words {
            [word] if word.eq_ignore_ascii_case("none") => Ok(Vec::new()),
            words => match words.iter().find(|word| word.eq_ignore_ascii_case("none")) {
                Some(none) => Err(self.bad(none, "`none` alone or a list")),
                None => Ok(words.to_vec()),
            },
        }
    }

    /// A list with an optional `+`, `-` or `^` in front. Names that nobody here knows are left for those who
    /// negotiate: a list may name what a newer OpenSSH has.
    pub(super) fn algorithms(self) -> Result<String, Problem> {
        let word = self.one()?;
        let list = word.strip_prefix(['+', '-', '^']).unwrap_or(word);
        if list
            .split(',')
            .all(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            Ok(word.to_owned())
        } else {
            Err(self.bad(word, "algorithm names separated by commas"))
        }
    }

    pub(super) fn pick<T: Copy>(
        self,
        word: &str,
        known: &[(&str, T)],
        expected: &'static str,
    ) -> Result<T, Problem> {
        let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found
            .map(|&(_, value)| value)
            .ok_or_else(|| self.bad(word, expected))
    }
}

/// As POSIX names environment variables.
pub(super) fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(super) fn digits(word: &str) -> Option<u32> {
    word.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| word.parse().ok())
        .flatten()
}

/// The time format of sshd_config(5): numbers with an optional unit, added up.
pub(super) fn time(word: &str) -> Option<Duration> {
    let mut total: u64 = 0;
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        let number: u64 = number.parse().ok()?;
        let mut units = tail.chars();
        let seconds = match units.next() {
            None | Some('s' | 'S') => 1,
            Some('m' | 'M') => 60,
            Some('h' | 'H') => 60 * 60,
            Some('d' | 'D') => 24 * 60 * 60,
            Some('w' | 'W') => 7 * 24 * 60 * 60,
            Some(_) => return None,
        };
        total = total.checked_add(number.checked_mul(seconds)?)?;
        rest = units.as_str();
    }
    // OpenSSH keeps times in an `int` of seconds.
    (!word.is_empty() && total <= u64::from(i32::MAX.unsigned_abs())).then(|| Duration::from_secs(total))
}
