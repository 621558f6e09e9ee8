//! One target as written: `[user@]host[:port]` with addresses, ranges and wildcards. It decides what each colon and
//! bracket means, and refuses names that a shell, ssh or a resolver could take for something else.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::error::{Problem, TargetErrorKind as Kind};
use super::{MAX_NAME, Target, TargetSet, range};

/// Characters that OpenSSH refuses in host names, because they have ended up in shells: RFC 952 needs none of them.
const REFUSED_IN_HOST: &str = "'\"`$\\;&<>|(){},%@/:[]";

/// The same for users; `\` is left to directory domains (`CORP\jane`).
const REFUSED_IN_USER: &str = "'\"`;&<>|(){},:/[]";

/// The targets of one operand that starts at byte `offset` of the expression. `text` has no blanks at its ends and
/// its brackets are balanced.
pub(super) fn parse(text: &str, offset: usize, known: &[Target]) -> Result<TargetSet, Problem> {
    let whole = offset..offset + text.len();
    check_start(text, &whole)?;
    if let Some((at, blank)) = text.char_indices().find(|(_, c)| c.is_whitespace()) {
        return Err(Problem::new(
            offset + at..offset + at + blank.len_utf8(),
            Kind::Blank,
        ));
    }
    if let Some(at) = outside_brackets(text, '/').first() {
        return Err(Problem::new(offset + at..whole.end, Kind::Method));
    }
    let (user, host_at) = match outside_brackets(text, '@').last() {
        Some(&at) => (Some(user(&text[..at], offset..offset + at)?), at + 1),
        None => (None, 0),
    };
    let host = HostText {
        text: &text[host_at..],
        start: offset + host_at,
    };
    if host.text.is_empty() {
        return Err(Problem::new(whole, Kind::MissingHost));
    }
    match host.split()? {
        HostPort::Address(address, port) => Ok(TargetSet::from_iter([Target::new(user, address, port)])),
        HostPort::Name(name, port) => names(&name, user.as_deref(), port, known),
    }
}

fn check_start(text: &str, whole: &Range<usize>) -> Result<(), Problem> {
    let first = whole.start..whole.start + 1;
    match text.as_bytes() {
        [b'@', ..] => Err(Problem::new(whole.clone(), Kind::Group)),
        [b'-', ..] => Err(Problem::new(whole.clone(), Kind::DashExclusion)),
        [b'/', ..] | [b'.', b'/', ..] | [b'.', b'.', b'/', ..] | [b'~', b'/', ..] => {
            Err(Problem::new(whole.clone(), Kind::Path))
        }
        [b':'] => Err(Problem::new(first, Kind::MissingHost)),
        _ => Ok(()),
    }
}

/// The places of `wanted` (ASCII) that are not inside brackets.
fn outside_brackets(text: &str, wanted: char) -> Vec<usize> {
    let mut inside = false;
    let mut places = Vec::new();
    for (at, c) in text.char_indices() {
        inside = (inside || c == '[') && c != ']';
        if !inside && c == wanted {
            places.push(at);
        }
    }
    places
}

fn user(text: &str, span: Range<usize>) -> Result<String, Problem> {
    let refused = |c: char| c.is_control() || REFUSED_IN_USER.contains(c);
    if text.is_empty() || text.starts_with('-') || text.ends_with('\\') || text.contains(refused) {
        return Err(Problem::new(
            span.start..span.end.max(span.start + 1),
            Kind::BadUser,
        ));
    }
    Ok(text.to_owned())
}

/// What follows the user.
struct HostText<'a> {
    text: &'a str,
    start: usize,
}

/// The host in its two shapes. The name still has ranges and wildcards in it.
enum HostPort<'a> {
    Address(String, Option<u16>),
    Name(HostText<'a>, Option<u16>),
}

impl<'a> HostText<'a> {
    fn span(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    fn split(self) -> Result<HostPort<'a>, Problem> {
        if let Some((inside, after)) = self.text.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            && inside.matches(':').count() >= 2
        {
            let after_at = self.start + inside.len() + 2;
            let address = address(inside, self.start + 1..self.start + 1 + inside.len())?;
            return Ok(HostPort::Address(address, port_after_address(after, after_at)?));
        }
        match outside_brackets(self.text, ':').as_slice() {
            [] => Ok(HostPort::Name(self, None)),
            [0] => Err(Problem::new(self.span(), Kind::MissingHost)),
            [at] => {
                let port = port(&self.text[at + 1..], self.start + at..self.span().end)?;
                Ok(HostPort::Name(
                    HostText {
                        text: &self.text[..*at],
                        start: self.start,
                    },
                    Some(port),
                ))
            }
            [_, _, ..] => Ok(HostPort::Address(address(self.text, self.span())?, None)),
        }
    }
}

fn address(text: &str, span: Range<usize>) -> Result<String, Problem> {
    let (plain, zone) = text
        .split_once('%')
        .map_or((text, None), |(plain, zone)| (plain, Some(zone)));
    let zone_is_sound = zone.is_none_or(|zone| {
        !zone.is_empty()
            && zone
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._~-".contains(c))
    });
    match plain.parse::<Ipv6Addr>() {
        Ok(_) if zone_is_sound => Ok(text.to_owned()),
        _ => Err(Problem::new(span, Kind::NotAnAddress)),
    }
}

fn port_after_address(text: &str, start: usize) -> Result<Option<u16>, Problem> {
    match text.strip_prefix(':') {
        Some(digits) => port(digits, start..start + text.len()).map(Some),
        None if text.is_empty() => Ok(None),
        None => Err(Problem::new(start..start + text.len(), Kind::AfterAddress)),
    }
}

/// `span` covers the colon too: a missing port has no other place.
fn port(digits: &str, span: Range<usize>) -> Result<u16, Problem> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse::<u16>() {
        Ok(port) if plain && port > 0 => Ok(port),
        _ => Err(Problem::new(span, Kind::BadPort)),
    }
}

fn names(
    host: &HostText<'_>,
    user: Option<&str>,
    port: Option<u16>,
    known: &[Target],
) -> Result<TargetSet, Problem> {
    check_name(host)?;
    let mut set = TargetSet::default();
    for name in range::expand(host.text, host.start)? {
        if name.len() > MAX_NAME {
            return Err(Problem::new(host.span(), Kind::NameTooLong));
        }
        if !name.contains(['*', '?']) {
            set.insert(Target::new(user.map(str::to_owned), name, port));
            continue;
        }
        let before = set.len();
        for found in known.iter().filter(|target| matches(&name, &target.host)) {
            let user = user.map(str::to_owned).or_else(|| found.user.clone());
            set.insert(Target::new(user, found.host.clone(), port.or(found.port)));
        }
        if set.len() == before {
            return Err(Problem::new(host.span(), Kind::NoMatch { known: known.len() }));
        }
    }
    Ok(set)
}

/// Refuses what no name has; what is inside brackets is left to the ranges.
fn check_name(host: &HostText<'_>) -> Result<(), Problem> {
    if host.text.starts_with('-') {
        return Err(Problem::new(host.span(), Kind::BadCharacter('-')));
    }
    let mut inside = false;
    for (at, c) in host.text.char_indices() {
        inside = (inside || c == '[') && c != ']';
        let bracket = c == '[' || c == ']';
        if !inside && !bracket && (c.is_control() || REFUSED_IN_HOST.contains(c)) {
            let at = host.start + at;
            return Err(Problem::new(at..at + c.len_utf8(), Kind::BadCharacter(c)));
        }
    }
    Ok(())
}

/// Whether `name` matches `pattern`, in which `*` is any text and `?` any one character. Linear in practice and
/// quadratic at worst: only the last `*` is ever tried again.
fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let mut next = pattern.clone();
        match (next.next(), name.clone().next()) {
            (Some('*'), _) => {
                retry = Some((next.clone(), name.clone()));
                pattern = next;
            }
            (Some(p), Some(n)) if p == '?' || p == n => {
                pattern = next;
                name.next();
            }
            (None, None) => return true,
            _ => match retry
                .as_mut()
                .and_then(|(after, from)| from.next().map(|_| (after.clone(), from.clone())))
            {
                Some(from_here) => (pattern, name) = from_here,
                None => return false,
            },
        }
    }
}
