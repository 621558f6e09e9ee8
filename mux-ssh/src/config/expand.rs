//! Tokens, `~` and `${NAME}` in values. Decides what each stands for; never which keyword may hold which (its
//! caller picks the function).

use std::fmt::Write as _;

use aws_lc_rs::digest;

use super::Local;
use super::error::Problem;
use super::value::is_variable_name;

/// What the tokens of one host stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'a> {
    pub(super) local: &'a Local,
    /// `%n`: as it was typed.
    pub(super) typed: &'a str,
    /// `%h`: after `HostName`.
    pub(super) host: &'a str,
    /// `%k`.
    pub(super) key_alias: &'a str,
    pub(super) port: u16,
    /// `%r`.
    pub(super) user: &'a str,
}

/// `HostName` knows `%%` and `%h` only.
pub(super) fn host_name(text: &str, typed: &str) -> Result<String, Problem> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '%') {
            (_, false) => out.push(c),
            (_, true) => match chars.next() {
                Some('%') => out.push('%'),
                Some('h') => out.push_str(typed),
                other => return Err(unknown("HostName", other)),
            },
        }
    }
    Ok(out)
}

/// `~`, then tokens and variables in one pass, so that the value of one is never looked at by the other.
pub(super) fn path(text: &str, keyword: &'static str, tokens: Tokens<'_>) -> Result<String, Problem> {
    variables_and_tokens(
        &tilde(text, keyword, tokens.local)?,
        keyword,
        tokens.local,
        Some(tokens),
    )
}

/// `~` and variables, for paths that are read before the host is known.
pub(super) fn include(text: &str, local: &Local) -> Result<String, Problem> {
    variables_and_tokens(&tilde(text, "Include", local)?, "Include", local, None)
}

fn tilde(text: &str, keyword: &'static str, local: &Local) -> Result<String, Problem> {
    let Some(rest) = text.strip_prefix('~') else {
        return Ok(text.to_owned());
    };
    let (user, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !user.is_empty() && user != local.user {
        return Err(Problem::OtherHome {
            keyword,
            user: user.to_owned(),
        });
    }
    Ok(format!("{}{tail}", local.home.trim_end_matches('/')))
}

fn variables_and_tokens(
    text: &str,
    keyword: &'static str,
    local: &Local,
    tokens: Option<Tokens<'_>>,
) -> Result<String, Problem> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '%']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        if let Some(named) = special.strip_prefix("${") {
            let undefined = |name: &str| Problem::UndefinedVariable {
                keyword,
                name: name.to_owned(),
            };
            let (name, tail) = named.split_once('}').ok_or_else(|| undefined(named))?;
            let value = local.variables.get(name).filter(|_| is_variable_name(name));
            out.push_str(value.ok_or_else(|| undefined(name))?);
            rest = tail;
            continue;
        }
        let mut chars = special.chars();
        match (chars.next(), tokens) {
            (Some('%'), Some(tokens)) => {
                let letter = chars.next();
                tokens
                    .put(letter, &mut out)
                    .ok_or_else(|| unknown(keyword, letter))?;
            }
            (first, _) => out.extend(first),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Ok(out)
}

impl Tokens<'_> {
    fn put(self, letter: Option<char>, out: &mut String) -> Option<()> {
        let local = self.local;
        match letter? {
            '%' => out.push('%'),
            'C' => out.push_str(&self.connection_hash()),
            'd' => out.push_str(&local.home),
            'h' => out.push_str(self.host),
            'i' => write!(out, "{}", local.uid).ok()?,
            // The jump hosts: there are none.
            'j' => {}
            'k' => out.push_str(self.key_alias),
            'L' => out.push_str(short(&local.host)),
            'l' => out.push_str(&local.host),
            'n' => out.push_str(self.typed),
            'p' => write!(out, "{}", self.port).ok()?,
            'r' => out.push_str(self.user),
            'u' => out.push_str(&local.user),
            _ => return None,
        }
        Some(())
    }

    /// `%C`: SHA-1 over `%l%h%p%r%j`. A name, not a secret, and fixed by OpenSSH.
    fn connection_hash(self) -> String {
        let text = format!("{}{}{}{}", self.local.host, self.host, self.port, self.user);
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
        hash.as_ref()
            .iter()
            .fold(String::with_capacity(40), |mut hex, byte| {
                let _infallible = write!(hex, "{byte:02x}");
                hex
            })
    }
}

fn short(host: &str) -> &str {
    host.split_once('.').map_or(host, |(short, _)| short)
}

fn unknown(keyword: &'static str, letter: Option<char>) -> Problem {
    Problem::UnknownToken {
        keyword,
        token: letter.map_or_else(|| "%".to_owned(), |letter| format!("%{letter}")),
    }
}
