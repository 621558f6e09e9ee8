//! What a `Host` or `Match` line asks for. Decides what such a line may say; never whether it applies.

use core::net::{IpAddr, Ipv4Addr};

use super::error::Problem;
use crate::pattern::{Case, matches};

/// When a block applies.
#[derive(Debug)]
pub(super) enum Condition {
    Always,
    Host(Vec<HostPattern>),
    Match(Vec<Criterion>),
    /// A line that is wrong, whether anything depends on it or not.
    Wrong(Problem),
}

/// One word of a `Host` line.
#[derive(Debug)]
pub(super) struct HostPattern {
    pub(super) negated: bool,
    pub(super) pattern: String,
}

/// One criterion of a `Match` line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Criterion {
    pub(super) negated: bool,
    pub(super) test: Test,
}

/// What a criterion looks at. Texts are lists of patterns.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Test {
    All,
    Canonical,
    Final,
    Host(String),
    OriginalHost(String),
    User(String),
    LocalUser(String),
    LocalNetwork(Vec<Network>),
    Version(String),
    Tagged(String),
    Command(String),
    SessionType(String),
    /// A command for a shell, with tokens.
    Exec(String),
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    bits: u32,
}

impl HostPattern {
    pub(super) fn new(word: String) -> Self {
        match word.strip_prefix('!') {
            Some(pattern) => Self {
                negated: true,
                pattern: pattern.to_owned(),
            },
            None => Self {
                negated: false,
                pattern: word,
            },
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        !self.pattern.contains(['*', '?'])
    }
}

/// Whether the words of a `Host` line match `host`: any pattern, unless a negated one does.
pub(super) fn host_matches(patterns: &[HostPattern], host: &str) -> bool {
    let mut found = false;
    for HostPattern { negated, pattern } in patterns {
        if matches(host.as_bytes(), pattern.as_bytes(), Case::Sensitive) {
            if *negated {
                return false;
            }
            found = true;
        }
    }
    found
}

impl Condition {
    /// Reads the words behind `Match`.
    pub(super) fn of_match(words: &[String]) -> Self {
        match criteria(words) {
            Ok(criteria) => Self::Match(criteria),
            Err(problem) => Self::Wrong(problem),
        }
    }
}

fn bad(value: &str, expected: &'static str) -> Problem {
    Problem::BadValue {
        keyword: "Match",
        value: value.to_owned(),
        expected,
    }
}

fn criteria(words: &[String]) -> Result<Vec<Criterion>, Problem> {
    let mut criteria: Vec<Criterion> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (negated, plain) = match word.strip_prefix('!') {
            Some(plain) => (true, plain),
            None => (false, word.as_str()),
        };
        let test = match plain.to_ascii_lowercase().as_str() {
            // OpenSSH lets one criterion stand in front, none behind.
            "all" if criteria.len() > 1 || words.next().is_some() => {
                return Err(bad(word, "all to stand alone"));
            }
            "all" => Test::All,
            "canonical" => Test::Canonical,
            "final" => Test::Final,
            name => {
                let (name, argument) = match plain.split_once('=') {
                    Some((_, argument)) => (
                        name.split_once('=').map_or(name, |(name, _)| name),
                        Some(argument),
                    ),
                    None => (name, words.next().map(String::as_str)),
                };
                with_argument(name, argument).ok_or_else(|| bad(word, CRITERIA))??
            }
        };
        criteria.push(Criterion { negated, test });
    }
    Ok(criteria)
}

const CRITERIA: &str = "all, canonical, final, or one of host, originalhost, user, localuser, localnetwork, version, \
                        tagged, sessiontype, command, exec";

/// A criterion with its argument, which only some may have empty; `None`: there is none of that name.
fn with_argument(name: &str, argument: Option<&str>) -> Option<Result<Test, Problem>> {
    let make: fn(String) -> Test = match name {
        "host" => Test::Host,
        "originalhost" => Test::OriginalHost,
        "user" => Test::User,
        "localuser" => Test::LocalUser,
        "version" => Test::Version,
        "sessiontype" => Test::SessionType,
        "exec" => Test::Exec,
        "tagged" => Test::Tagged,
        "command" => Test::Command,
        "localnetwork" => {
            let list = argument.unwrap_or_default();
            return Some(networks(list).map(Test::LocalNetwork));
        }
        _ => return None,
    };
    let may_be_empty = matches!(name, "tagged" | "command");
    let text = argument.filter(|text| may_be_empty || !text.is_empty());
    Some(match text {
        Some(text) => Ok(make(text.to_owned())),
        None => Err(Problem::MissingArgument {
            keyword: format!("Match {name}"),
        }),
    })
}

/// Addresses and ranges, separated by commas. As OpenSSH: a range has no bit outside its mask.
fn networks(list: &str) -> Result<Vec<Network>, Problem> {
    let parsed = list.split(',').map(|text| {
        network(text).ok_or_else(|| bad(text, "addresses or ranges such as 10.0.0.0/8 after localnetwork"))
    });
    parsed.collect()
}

fn network(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let width = width(address);
    let bits = match bits {
        Some(bits) => super::value::digits(bits).filter(|&bits| bits <= width)?,
        None => width,
    };
    let network = Network { address, bits };
    (network.masked(address) == number(address)).then_some(network)
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(Ipv4Addr::to_bits(address)),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Network {
    pub(super) fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && self.masked(address) == self.masked(self.address)
    }

    fn masked(self, address: IpAddr) -> u128 {
        let free = width(address) - self.bits;
        number(address)
            .checked_shr(free)
            .and_then(|kept| kept.checked_shl(free))
            .unwrap_or(0)
    }
}

/// Suffixes for names that are not qualified, in lower case and without a dot at the end.
pub(super) fn domain(text: &str) -> Option<String> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let begins_well = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_valid =
        text.as_bytes().first().is_some_and(begins_well) && text.bytes().all(valid) && !text.contains("..");
    is_valid.then(|| text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase())
}

/// A pair of lists of patterns: which names may be followed to which others.
pub(super) fn permitted_cname(text: &str) -> Option<(String, String)> {
    if text == "*" {
        return Some(("*".to_owned(), "*".to_owned()));
    }
    let (from, to) = text.split_once(':').filter(|(_, to)| !to.is_empty())?;
    Some((from.to_ascii_lowercase(), to.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn check(line: &str, expected: &[(bool, Test)]) {
        let found = criteria(&words(line)).map(|criteria| {
            let pairs = criteria.into_iter();
            pairs
                .map(|criterion| (criterion.negated, criterion.test))
                .collect::<Vec<_>>()
        });
        assert_eq!(found.as_deref(), Ok(expected), "{line}");
    }

    #[test]
    fn criteria_are_read_with_their_arguments() {
        check("all", &[(false, Test::All)]);
        check("final ALL", &[(false, Test::Final), (false, Test::All)]);
        check(
            "!Host a,b User=root",
            &[
                (true, Test::Host("a,b".to_owned())),
                (false, Test::User("root".to_owned())),
            ],
        );
        check("exec=A=b", &[(false, Test::Exec("A=b".to_owned()))]);
        check(
            "tagged= !command ",
            &[
                (false, Test::Tagged(String::new())),
                (true, Test::Command(String::new())),
            ],
        );
    }

    #[test]
    fn lines_that_say_nothing_or_too_much_are_wrong() {
        for line in [
            "all host a",
            "host a user b all",
            "host",
            "user=",
            "hosts a",
            "localnetwork 10.0.0.1/8",
            "localnetwork 10.0.0.0/33",
            "localnetwork x",
            "localnetwork",
        ] {
            assert!(criteria(&words(line)).is_err(), "{line}");
        }
    }

    #[test]
    fn ranges_hold_the_addresses_under_their_mask() {
        let check = |network: &str, address: &str, expected: bool| {
            let networks = networks(network).unwrap_or_default();
            let address: IpAddr = address.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            let found = networks.iter().any(|network| network.contains(address));
            assert_eq!(found, expected, "{address} in {network}");
        };
        check("10.0.0.0/8", "10.1.2.3", true);
        check("10.0.0.0/8", "11.1.2.3", false);
        check("192.168.1.7", "192.168.1.7", true);
        check("0.0.0.0/0", "8.8.8.8", true);
        check("0.0.0.0/0", "::1", false);
        check("::/0", "::1", true);
        check("fe80::/10", "fe80::1", true);
        check("fe80::/10", "2001:db8::1", false);
        check("10.0.0.0/8,172.16.0.0/12", "172.17.0.1", true);
    }
}
