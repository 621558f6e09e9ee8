//! Tokens, `~` and `${NAME}` in values. Decides what each stands for; never which keyword may hold which (its
//! caller picks the function).

use std::borrow::Cow;
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
    /// `%j`: the last stop before the host; empty without one.
    pub(super) jump: &'a str,
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

/// Which tokens a keyword knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// All that say something about the connection.
    All,
    /// Those that are known before the user is: all but the user and the hash of everything.
    BeforeUser,
    /// Those that a proxy may have to know.
    Proxy,
    /// All, and those about a key of the host, which stay: nobody knows it yet.
    Key,
}

/// `~`, then tokens and variables in one pass, so that the value of one is never looked at by the other.
pub(super) fn path(text: &str, keyword: &'static str, tokens: Tokens<'_>) -> Result<String, Problem> {
    let text = tilde(text, keyword, tokens.local)?;
    variables_and_tokens(&text, keyword, tokens.local, true, Some((tokens, Known::All)))
}

/// Tokens and variables.
pub(super) fn value(text: &str, keyword: &'static str, tokens: Tokens<'_>) -> Result<String, Problem> {
    variables_and_tokens(text, keyword, tokens.local, true, Some((tokens, Known::All)))
}

/// Tokens and variables of a user's name, which can't refer to itself.
pub(super) fn user(text: &str, tokens: Tokens<'_>) -> Result<String, Problem> {
    variables_and_tokens(
        text,
        "User",
        tokens.local,
        true,
        Some((tokens, Known::BeforeUser)),
    )
}

/// Tokens of a command; variables are for its shell.
pub(super) fn command(text: &str, keyword: &'static str, tokens: Tokens<'_>) -> Result<String, Problem> {
    variables_and_tokens(text, keyword, tokens.local, false, Some((tokens, Known::All)))
}

/// Tokens of `ProxyCommand` and of the stops of `ProxyJump`.
pub(super) fn proxy(text: &str, keyword: &'static str, tokens: Tokens<'_>) -> Result<String, Problem> {
    variables_and_tokens(text, keyword, tokens.local, false, Some((tokens, Known::Proxy)))
}

/// A word of `KnownHostsCommand`. What it comes to still holds `%%` and the tokens about a key.
pub(super) fn key_word(text: &str, tokens: Tokens<'_>) -> Result<String, Problem> {
    let keyword = "KnownHostsCommand";
    variables_and_tokens(text, keyword, tokens.local, true, Some((tokens, Known::Key)))
}

/// The path of a socket, or what `$NAME` holds: `None` if that is nothing.
pub(super) fn socket(
    text: &str,
    keyword: &'static str,
    tokens: Tokens<'_>,
) -> Result<Option<String>, Problem> {
    match text.strip_prefix('$').filter(|name| !name.starts_with('{')) {
        Some(name) => Ok(variable(name, tokens.local)),
        None => path(text, keyword, tokens).map(Some),
    }
}

/// What a variable holds, if that is something.
pub(super) fn variable(name: &str, local: &Local) -> Option<String> {
    let value = local.variables.get(name);
    value.filter(|value| !value.is_empty()).cloned()
}

/// A path to be read. Without a host its tokens stand for themselves.
pub(super) fn include(text: &str, local: &Local, tokens: Option<Tokens<'_>>) -> Result<String, Problem> {
    let tokens = tokens.map(|tokens| (tokens, Known::All));
    variables_and_tokens(&tilde(text, "Include", local)?, "Include", local, true, tokens)
}

fn tilde(text: &str, keyword: &'static str, local: &Local) -> Result<String, Problem> {
    let Some(rest) = text.strip_prefix('~') else {
        return Ok(text.to_owned());
    };
    let (user, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let home = if user.is_empty() || user == local.user {
        &local.home
    } else {
        local.homes.get(user).ok_or_else(|| Problem::OtherHome {
            keyword,
            user: user.to_owned(),
        })?
    };
    Ok(format!("{}{tail}", home.trim_end_matches('/')))
}

fn variables_and_tokens(
    text: &str,
    keyword: &'static str,
    local: &Local,
    variables: bool,
    tokens: Option<(Tokens<'_>, Known)>,
) -> Result<String, Problem> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '%']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        if let Some(named) = special.strip_prefix("${").filter(|_| variables) {
            let undefined = |name: &str| Problem::UndefinedVariable {
                keyword,
                name: name.to_owned(),
            };
            let (name, tail) = named.split_once('}').ok_or_else(|| undefined(named))?;
            let value = local.variables.get(name).filter(|_| is_variable_name(name));
            put_literally(value.ok_or_else(|| undefined(name))?, tokens, &mut out);
            rest = tail;
            continue;
        }
        let mut chars = special.chars();
        match (chars.next(), tokens) {
            (Some('%'), Some((tokens, known))) => {
                let letter = chars.next();
                tokens
                    .put(letter, known, &mut out)
                    .ok_or_else(|| unknown(keyword, letter))?;
            }
            (first, _) => out.extend(first),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Ok(out)
}

/// A value whose percent signs are none of tokens that come later.
fn put_literally(value: &str, tokens: Option<(Tokens<'_>, Known)>, out: &mut String) {
    match tokens {
        Some((_, Known::Key)) => out.push_str(&value.replace('%', "%%")),
        Some((_, Known::All | Known::BeforeUser | Known::Proxy)) | None => out.push_str(value),
    }
}

impl Tokens<'_> {
    /// Puts down what a token stands for; `None` if the keyword knows none of that name.
    fn put(self, letter: Option<char>, known: Known, out: &mut String) -> Option<()> {
        let letter = letter?;
        match known {
            Known::All => out.push_str(&self.value(letter)?),
            Known::BeforeUser if matches!(letter, 'r' | 'C') => return None,
            Known::BeforeUser => out.push_str(&self.value(letter)?),
            Known::Proxy if !matches!(letter, '%' | 'h' | 'k' | 'n' | 'p' | 'r') => return None,
            Known::Proxy => out.push_str(&self.value(letter)?),
            Known::Key if matches!(letter, '%' | 'f' | 'H' | 'I' | 'K' | 't') => {
                out.extend(['%', letter]);
            }
            Known::Key => out.push_str(&self.value(letter)?.replace('%', "%%")),
        }
        Some(())
    }

    fn value(self, letter: char) -> Option<Cow<'static, str>> {
        let local = self.local;
        let text = |text: &str| Some(Cow::Owned(text.to_owned()));
        match letter {
            '%' => Some(Cow::Borrowed("%")),
            'C' => Some(Cow::Owned(self.connection_hash())),
            'd' => text(&local.home),
            'h' => text(self.host),
            'i' => text(&local.uid.to_string()),
            'j' => text(self.jump),
            'k' => text(self.key_alias),
            'L' => text(short(&local.host)),
            'l' => text(&local.host),
            'n' => text(self.typed),
            'p' => text(&self.port.to_string()),
            'r' => text(self.user),
            'u' => text(&local.user),
            _ => None,
        }
    }

    /// `%C`: SHA-1 over `%l%h%p%r%j`. A name, not a secret, and fixed by OpenSSH.
    fn connection_hash(self) -> String {
        let text = format!(
            "{}{}{}{}{}",
            self.local.host, self.host, self.port, self.user, self.jump
        );
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
