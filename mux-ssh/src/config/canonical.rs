//! What a host is really called: addresses in their usual form, names completed by `CanonicalDomains` and followed
//! through `CanonicalizePermittedCNAMEs`. Decides the name; never looks one up itself.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::choice::Canonicalize;
use super::draft::Draft;
use super::error::{ConfigError, Origin, Problem, Sourced};
use super::need::{Answers, Need};
use super::setting::{Flag, List, Number};
use super::walk::Stop;
use crate::pattern::{Case, ListMatch, matches_list};

/// As OpenSSH.
const MAX_DOTS: u32 = 1;

/// An address in the form in which it is written usually, but in the case in which it was; `None`: it is none. As
/// OpenSSH, by way of inet_aton(3): `127.1` is one, and so is `0x7f000001`.
pub(super) fn address(text: &str) -> Option<String> {
    let usual = match text.parse::<Ipv6Addr>() {
        Ok(address) => ipv6(address),
        Err(_) => short_ipv4(text)?.to_string(),
    };
    Some(if usual.eq_ignore_ascii_case(text) {
        text.to_owned()
    } else {
        usual
    })
}

/// As inet_ntop(3) writes it: an address that holds an older one and nothing else ends in that.
fn ipv6(address: Ipv6Addr) -> String {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
            let old = Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
            format!("::{old}")
        }
        _ => address.to_string(),
    }
}

/// Up to four numbers, of which the last one fills the rest.
fn short_ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = text.split('.').map(part).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    if front.len() > 3 || front.iter().any(|&part| part > 255) {
        return None;
    }
    let free = 32 - 8 * u32::try_from(front.len()).ok()?;
    if free < 32 && last.checked_shr(free).unwrap_or(0) != 0 {
        return None;
    }
    let shifted = front
        .iter()
        .zip([24_u32, 16, 8])
        .map(|(part, shift)| part << shift);
    Some(Ipv4Addr::from_bits(
        shifted.fold(*last, |address, part| address | part),
    ))
}

fn part(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (digits, base) = match lower.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (lower.as_str(), 8),
        None => (lower.as_str(), 10),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, base).ok().filter(|_| plain)
}

/// Looks like an address: perhaps one with a scope that does not exist. Nothing is to be added to it.
fn is_like_an_address(text: &str) -> bool {
    text.contains(['%', ':']) || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

impl Draft<'_> {
    pub(super) fn canonicalize(&self) -> Canonicalize {
        self.canonicalize.map_or(Canonicalize::No, |(value, _)| *value)
    }

    /// What a host name becomes: completed by the first domain in which there is such a name.
    pub(super) fn canonical(
        &self,
        hostname: Sourced<String>,
        answers: &Answers,
    ) -> Result<Sourced<String>, Stop> {
        let name = hostname.value.as_str();
        let proxied = matches!(self.proxy_jump, Some((Some(_), _)))
            || self
                .proxy_command
                .is_some_and(|(command, _)| !super::finish::is_none(command));
        let wanted = match self.canonicalize() {
            Canonicalize::No => false,
            // The proxy may know names that nobody else does.
            Canonicalize::Yes => !proxied,
            Canonicalize::Always => true,
        };
        if !wanted || address(name).is_some() || is_like_an_address(name) {
            return Ok(hostname);
        }
        let origin = self.canonicalize.map_or(&Origin::Default, |(_, origin)| origin);
        let found = |value: String| Sourced {
            value,
            origin: origin.clone(),
        };
        let max_dots = self
            .number(Number::CanonicalizeMaxDots)
            .map_or(MAX_DOTS, |(dots, _)| *dots);
        let candidates: Vec<String> = match name.strip_suffix('.') {
            Some(_) => vec![name.to_owned()],
            None if name.matches('.').count() > usize::try_from(max_dots).unwrap_or(usize::MAX) => {
                return Ok(self.followed(name, name, answers)?.map_or(hostname, found));
            }
            None => {
                let domains = self
                    .list(List::CanonicalDomains)
                    .map_or(&[][..], |(domains, _)| domains);
                domains.iter().map(|domain| format!("{name}.{domain}.")).collect()
            }
        };
        for candidate in &candidates {
            if lookup(candidate, answers)?.is_some() {
                let full = candidate.trim_end_matches('.');
                let followed = self.followed(candidate, full, answers)?;
                return Ok(found(followed.unwrap_or_else(|| full.to_owned())));
            }
        }
        let falls_back = self.flag(Flag::CanonicalizeFallbackLocal);
        if falls_back.is_some_and(|(falls_back, _)| !falls_back) {
            let problem = Problem::NotCanonical(name.to_owned());
            let origin = origin.clone();
            return Err(ConfigError { origin, problem }.into());
        }
        Ok(self.followed(name, name, answers)?.map_or(hostname, found))
    }

    /// The name to which `name`, looked up as `query`, leads, if it may be followed there.
    fn followed(&self, query: &str, name: &str, answers: &Answers) -> Result<Option<String>, Stop> {
        let Some((rules, _)) = self.permitted_cnames.filter(|(rules, _)| !rules.is_empty()) else {
            return Ok(None);
        };
        let Some(target) = lookup(query, answers)? else {
            return Ok(None);
        };
        let target = target.trim_end_matches('.').to_ascii_lowercase();
        let fits = |text: &str, list: &str| {
            matches_list(text.as_bytes(), list.as_bytes(), Case::Insensitive) == ListMatch::Yes
        };
        let permitted = rules
            .iter()
            .any(|(from, to)| fits(name, from) && fits(&target, to));
        Ok(Some(target).filter(|target| permitted && target != name && !target.is_empty()))
    }
}

fn lookup<'a>(name: &str, answers: &'a Answers) -> Result<&'a Option<String>, Stop> {
    let answer = answers.lookups.get(name);
    answer.ok_or_else(|| Stop::Need(Need::Lookup(name.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_in_their_usual_form() {
        for (text, expected) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("10.1", Some("10.0.0.1")),
            ("10.1.2", Some("10.1.0.2")),
            ("2130706433", Some("127.0.0.1")),
            ("0x7f.1", Some("127.0.0.1")),
            ("010.0.0.1", Some("8.0.0.1")),
            ("2001:DB8:0::1", Some("2001:db8::1")),
            ("FE80::1", Some("FE80::1")),
            ("::1.2.3.4", Some("::1.2.3.4")),
            ("::ffff:102:304", Some("::ffff:1.2.3.4")),
            ("::1", Some("::1")),
            ("256.0.0.1", None),
            ("1.2.3.4.5", None),
            ("10.16777216", None),
            ("web1", None),
            ("0xg", None),
            ("+1", None),
            ("", None),
            ("fe80::1%eth0", None),
        ] {
            assert_eq!(address(text).as_deref(), expected, "{text}");
        }
    }
}
