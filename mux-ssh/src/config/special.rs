//! The keywords whose values are more than a word, a number or a list. Decides what each accepts, as OpenSSH does;
//! never whether the line applies to a host.

use super::choice::{
    AddKeysToAgent, AddressFamily, Canonicalize, FingerprintHash, HostKeyPolicy, PubkeyAuthentication,
    RequestTty, SessionType, YesNoAsk,
};
use super::condition;
use super::error::Problem;
use super::jump;
use super::setting::{ForwardedAgent, List, Setting};
use super::value::{self, Arguments, LogLevel};

/// OpenSSH takes no limit below the size of a block.
const MIN_REKEY_BYTES: u64 = 16;

impl Arguments<'_> {
    fn choose<T: Copy>(
        self,
        known: &[(&str, T)],
        expected: &'static str,
        wrap: fn(T) -> Setting,
    ) -> Result<Setting, Problem> {
        self.pick(self.one()?, known, expected).map(wrap)
    }

    pub(super) fn port(self) -> Result<Setting, Problem> {
        let word = self.one()?;
        let port = value::digits(word)
            .and_then(|number| u16::try_from(number).ok())
            .filter(|&port| port != 0);
        port.map(Setting::Port)
            .ok_or_else(|| self.bad(word, "a port between 1 and 65535"))
    }

    pub(super) fn identity_file(self) -> Result<Setting, Problem> {
        self.text().map(Setting::IdentityFile)
    }

    pub(super) fn certificate_file(self) -> Result<Setting, Problem> {
        self.text().map(Setting::CertificateFile)
    }

    pub(super) fn identity_agent(self) -> Result<Setting, Problem> {
        let word = self.socket("a path, $NAME, SSH_AUTH_SOCK or none")?;
        Ok(Setting::Text(super::setting::Text::IdentityAgent, word))
    }

    pub(super) fn forward_agent(self) -> Result<Setting, Problem> {
        let word = self.socket("yes, no, a path or $NAME")?;
        Ok(Setting::ForwardAgent(match word.to_ascii_lowercase().as_str() {
            "yes" | "true" => ForwardedAgent::Yes,
            "no" | "false" => ForwardedAgent::No,
            _ => ForwardedAgent::Socket(word),
        }))
    }

    /// A path, or the name of a variable that holds one.
    fn socket(self, expected: &'static str) -> Result<String, Problem> {
        let word = self.one()?;
        let legacy = word.strip_prefix('$').filter(|rest| !rest.starts_with('{'));
        match legacy {
            Some(name) if !value::is_variable_name(name) => Err(self.bad(word, expected)),
            Some(_) | None => Ok(word.to_owned()),
        }
    }

    pub(super) fn add_keys_to_agent(self) -> Result<Setting, Problem> {
        let (first, lifetime) = match self.words {
            [first] => (first, None),
            [first, second] if first.eq_ignore_ascii_case("confirm") => (first, Some(second)),
            [_, second, ..] => return Err(self.bad(second, "a time after confirm only")),
            [] => return Err(self.missing()),
        };
        let time = |word: &str| {
            value::time(word)
                .map(|time| Some(time).filter(|time| !time.is_zero()))
                .ok_or_else(|| self.bad(word, "yes, no, ask, confirm or a time"))
        };
        let lifetime = lifetime.map(|word| time(word)).transpose()?.flatten();
        Ok(Setting::AddKeysToAgent(
            match first.to_ascii_lowercase().as_str() {
                "" => return Err(self.missing()),
                "yes" | "true" => AddKeysToAgent::Add {
                    confirm: false,
                    lifetime: None,
                },
                "no" | "false" => AddKeysToAgent::No,
                "ask" => AddKeysToAgent::Ask,
                "confirm" => AddKeysToAgent::Add {
                    confirm: true,
                    lifetime,
                },
                _ => AddKeysToAgent::Add {
                    confirm: false,
                    lifetime: time(first)?,
                },
            },
        ))
    }

    pub(super) fn pubkey_authentication(self) -> Result<Setting, Problem> {
        let known = [
            ("yes", PubkeyAuthentication::Yes),
            ("true", PubkeyAuthentication::Yes),
            ("no", PubkeyAuthentication::No),
            ("false", PubkeyAuthentication::No),
            ("unbound", PubkeyAuthentication::Unbound),
            ("host-bound", PubkeyAuthentication::HostBound),
        ];
        let expected = "yes, no, unbound or host-bound";
        self.choose(&known, expected, Setting::PubkeyAuthentication)
    }

    pub(super) fn strict_host_key_checking(self) -> Result<Setting, Problem> {
        let known = [
            ("yes", HostKeyPolicy::Strict),
            ("true", HostKeyPolicy::Strict),
            ("ask", HostKeyPolicy::Ask),
            ("accept-new", HostKeyPolicy::AcceptNew),
            ("no", HostKeyPolicy::Off),
            ("false", HostKeyPolicy::Off),
            ("off", HostKeyPolicy::Off),
        ];
        let expected = "yes, accept-new, ask, no or off";
        self.choose(&known, expected, Setting::StrictHostKeyChecking)
    }

    pub(super) fn update_host_keys(self) -> Result<Setting, Problem> {
        self.choose(&YES_NO_ASK, "yes, no or ask", Setting::UpdateHostKeys)
    }

    pub(super) fn verify_host_key_dns(self) -> Result<Setting, Problem> {
        self.choose(&YES_NO_ASK, "yes, no or ask", Setting::VerifyHostKeyDns)
    }

    pub(super) fn address_family(self) -> Result<Setting, Problem> {
        let known = [
            ("any", AddressFamily::Any),
            ("inet", AddressFamily::Inet),
            ("inet6", AddressFamily::Inet6),
        ];
        self.choose(&known, "any, inet or inet6", Setting::AddressFamily)
    }

    pub(super) fn canonicalize(self) -> Result<Setting, Problem> {
        let known = [
            ("no", Canonicalize::No),
            ("false", Canonicalize::No),
            ("yes", Canonicalize::Yes),
            ("true", Canonicalize::Yes),
            ("always", Canonicalize::Always),
        ];
        self.choose(&known, "yes, no or always", Setting::Canonicalize)
    }

    pub(super) fn canonical_domains(self) -> Result<Setting, Problem> {
        let domains = self
            .list()?
            .into_iter()
            .map(|word| condition::domain(&word).ok_or_else(|| self.bad(&word, "names of domains, or none")));
        Ok(Setting::List(
            List::CanonicalDomains,
            domains.collect::<Result<_, _>>()?,
        ))
    }

    pub(super) fn permitted_cnames(self) -> Result<Setting, Problem> {
        let expected = "*, pairs such as *.example.org:*.example.net, or none alone";
        let rules = self
            .list()?
            .into_iter()
            .map(|word| condition::permitted_cname(&word).ok_or_else(|| self.bad(&word, expected)));
        Ok(Setting::PermittedCnames(rules.collect::<Result<_, _>>()?))
    }

    pub(super) fn request_tty(self) -> Result<Setting, Problem> {
        let known = [
            ("no", RequestTty::No),
            ("false", RequestTty::No),
            ("yes", RequestTty::Yes),
            ("true", RequestTty::Yes),
            ("force", RequestTty::Force),
            ("auto", RequestTty::Auto),
        ];
        self.choose(&known, "yes, no, force or auto", Setting::RequestTty)
    }

    pub(super) fn session_type(self) -> Result<Setting, Problem> {
        let known = [
            ("none", SessionType::None),
            ("subsystem", SessionType::Subsystem),
            ("default", SessionType::Default),
        ];
        self.choose(&known, "none, subsystem or default", Setting::SessionType)
    }

    pub(super) fn fingerprint_hash(self) -> Result<Setting, Problem> {
        let known = [("md5", FingerprintHash::Md5), ("sha256", FingerprintHash::Sha256)];
        self.choose(&known, "sha256 or md5", Setting::FingerprintHash)
    }

    pub(super) fn log_level(self) -> Result<Setting, Problem> {
        let known = [
            ("quiet", LogLevel::Quiet),
            ("silent", LogLevel::Quiet),
            ("fatal", LogLevel::Fatal),
            ("error", LogLevel::Error),
            ("info", LogLevel::Info),
            ("verbose", LogLevel::Verbose),
            ("debug", LogLevel::Debug1),
            ("debug1", LogLevel::Debug1),
            ("debug2", LogLevel::Debug2),
            ("debug3", LogLevel::Debug3),
        ];
        self.choose(&known, "a log level", Setting::LogLevel)
    }

    pub(super) fn proxy_command(self) -> Result<Setting, Problem> {
        self.command().map(Setting::ProxyCommand)
    }

    /// A comment may follow; `none` is looked for before it is taken away, as OpenSSH does it.
    pub(super) fn proxy_jump(self) -> Result<Setting, Problem> {
        let text = self.command()?;
        if text.eq_ignore_ascii_case("none") {
            return Ok(Setting::ProxyJump(None));
        }
        let hops = text.split_once('#').map_or(&*text, |(hops, _)| hops).trim_end();
        let parsed = hops.split(',').map(jump::host).collect::<Option<Vec<_>>>();
        parsed
            .map(|hops| Setting::ProxyJump(Some(hops)))
            .ok_or_else(|| self.bad(hops, "[user@]host[:port], separated by commas, or none"))
    }

    /// A limit in bytes, and perhaps a time. `none` as the time leaves it to a later line.
    pub(super) fn rekey_limit(self) -> Result<Setting, Problem> {
        let (bytes, time) = match self.words {
            [bytes] => (bytes, None),
            [bytes, time] => (bytes, Some(time)),
            [] => return Err(self.missing()),
            [_, _, ..] => {
                return Err(Problem::ExtraArguments {
                    keyword: self.keyword,
                });
            }
        };
        let limit = match bytes.as_str() {
            "default" => Some(0),
            text => scaled(text).filter(|&bytes| bytes == 0 || bytes >= MIN_REKEY_BYTES),
        };
        let limit = limit.ok_or_else(|| self.bad(bytes, "default, or at least 16 bytes such as 1G"))?;
        let time = match time.map(String::as_str) {
            None | Some("none") => None,
            Some(word) => {
                Some(value::time(word).ok_or_else(|| self.bad(word, "a time such as 90 or 1m30s, or none"))?)
            }
        };
        Ok(Setting::RekeyLimit(limit, time))
    }

    pub(super) fn send_env(self) -> Result<Setting, Problem> {
        let bad = |word: &&String| word.is_empty() || word.contains('=');
        match self.words.iter().find(bad) {
            Some(word) => Err(self.bad(word, "names of variables")),
            None => Ok(Setting::SendEnv(self.words.to_vec())),
        }
    }

    /// Of two values for a name on one line the first one counts.
    pub(super) fn set_env(self) -> Result<Setting, Problem> {
        let mut variables: Vec<(String, String)> = Vec::new();
        for word in self.words {
            let (name, value) = word.split_once('=').ok_or_else(|| self.bad(word, "NAME=value"))?;
            if variables.iter().all(|(known, _)| known != name) {
                variables.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(Setting::SetEnv(variables))
    }
}

const YES_NO_ASK: [(&str, YesNoAsk); 5] = [
    ("yes", YesNoAsk::Yes),
    ("true", YesNoAsk::Yes),
    ("no", YesNoAsk::No),
    ("false", YesNoAsk::No),
    ("ask", YesNoAsk::Ask),
];

/// A number with an optional fraction and unit, as OpenBSD's `scan_scaled` reads it.
fn scaled(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit {
        "" | "B" | "b" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        "T" | "t" => 1 << 40,
        "P" | "p" => 1 << 50,
        "E" | "e" => 1 << 60,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().ok()?;
    let whole = whole.checked_mul(factor)?;
    let fraction = match fraction.get(..fraction.len().min(9)).unwrap_or_default() {
        "" => 0,
        digits => {
            let value: u128 = digits.parse().ok()?;
            let scale = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
            u64::try_from(value * u128::from(factor) / scale).ok()?
        }
    };
    // OpenSSH keeps it in a signed number of 64 bits.
    whole
        .checked_add(fraction)
        .filter(|&bytes| i64::try_from(bytes).is_ok())
}
