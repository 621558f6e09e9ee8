//! A host's configuration in the words of `ssh -G`. Decides spelling and order, one table; never a value.

use std::fmt;
use std::time::Duration;

use super::choice::{
    AddKeysToAgent, AddressFamily, Canonicalize, FingerprintHash, HostKeyPolicy, JumpHost,
    PubkeyAuthentication, RequestTty, SessionType, YesNoAsk,
};
use super::draft::{Draft, Slot};
use super::error::{ConfigError, Origin};
use super::expand::{self, Tokens};
use super::finish::{at, is_none};
use super::host_config::HostConfig;
use super::setting::{Flag, ForwardedAgent, List, Number, Text, Time};
use super::value::LogLevel;
use crate::algorithms::{Algorithms, PublicKeyAlgorithm, SignatureAlgorithm};

/// One line of what `ssh -G` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The keyword, as `ssh -G` spells it.
    pub keyword: &'static str,
    /// The value; the line's own text for what is not expanded before a connection is made.
    pub value: String,
    /// Where it was written.
    pub origin: Origin,
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.keyword, self.value)
    }
}

/// What a line is made from.
#[derive(Clone, Copy)]
struct View<'a> {
    draft: &'a Draft<'a>,
    config: &'a HostConfig,
    tokens: Tokens<'a>,
}

/// A value and where it was written.
type Value = (String, Origin);

/// How a keyword is shown.
#[derive(Clone, Copy)]
enum Show {
    Flag(Flag, bool),
    Number(Number, u32),
    Seconds(Time, &'static str),
    /// Nothing where nothing was written.
    Text(Text),
    /// The same, and `none` is nothing.
    Command(Text),
    /// On one line; `none` and the like where there are none.
    Words(List, &'static str),
    Lines(fn(View<'_>) -> Result<Vec<Value>, ConfigError>),
    Line(fn(View<'_>) -> Value),
}

use Show::{Command, Line, Lines, Number as Count, Seconds, Words};

#[rustfmt::skip]
const ORDER: &[(&str, Show)] = &[
    ("host", Line(|view| (view.config.host.clone(), Origin::CommandLine))),
    ("user", Line(|view| (view.config.user.value.clone(), view.config.user.origin.clone()))),
    ("hostname", Line(|view| (view.config.hostname.value.clone(), view.config.hostname.origin.clone()))),
    ("port", Line(|view| (view.config.port.value.to_string(), view.config.port.origin.clone()))),
    ("addressfamily", Line(|view| chosen(view.draft.address_family, "any", |family| match family {
        AddressFamily::Any => "any",
        AddressFamily::Inet => "inet",
        AddressFamily::Inet6 => "inet6",
    }))),
    ("batchmode", Show::Flag(Flag::BatchMode, false)),
    ("canonicalizefallbacklocal", Show::Flag(Flag::CanonicalizeFallbackLocal, true)),
    ("canonicalizehostname", Line(|view| chosen(view.draft.canonicalize, "false", |value| match value {
        Canonicalize::No => "false",
        Canonicalize::Yes => "true",
        Canonicalize::Always => "always",
    }))),
    ("checkhostip", Show::Flag(Flag::CheckHostIp, false)),
    ("compression", Show::Flag(Flag::Compression, false)),
    ("enablesshkeysign", Show::Flag(Flag::EnableSshKeysign, false)),
    ("clearallforwardings", Show::Flag(Flag::ClearAllForwardings, false)),
    ("exitonforwardfailure", Show::Flag(Flag::ExitOnForwardFailure, false)),
    ("fingerprinthash", Line(|view| chosen(view.draft.fingerprint_hash, "SHA256", |hash| match hash {
        FingerprintHash::Md5 => "MD5",
        FingerprintHash::Sha256 => "SHA256",
    }))),
    ("gatewayports", Show::Flag(Flag::GatewayPorts, false)),
    ("gssapiauthentication", Show::Flag(Flag::GssapiAuthentication, false)),
    ("gssapidelegatecredentials", Show::Flag(Flag::GssapiDelegateCredentials, false)),
    ("hashknownhosts", Show::Flag(Flag::HashKnownHosts, false)),
    ("hostbasedauthentication", Show::Flag(Flag::HostbasedAuthentication, false)),
    ("identitiesonly", Show::Flag(Flag::IdentitiesOnly, false)),
    ("kbdinteractiveauthentication", Show::Flag(Flag::KbdInteractiveAuthentication, true)),
    ("nohostauthenticationforlocalhost", Show::Flag(Flag::NoHostAuthenticationForLocalhost, false)),
    ("passwordauthentication", Show::Flag(Flag::PasswordAuthentication, true)),
    ("permitlocalcommand", Show::Flag(Flag::PermitLocalCommand, false)),
    ("proxyusefdpass", Line(proxy_use_fdpass)),
    ("pubkeyauthentication", Line(|view| chosen(view.draft.pubkey_authentication, "true", |value| match value {
        PubkeyAuthentication::No => "false",
        PubkeyAuthentication::Yes => "true",
        PubkeyAuthentication::Unbound => "unbound",
        PubkeyAuthentication::HostBound => "host-bound",
    }))),
    ("requesttty", Line(|view| chosen(view.draft.request_tty, "auto", |value| match value {
        RequestTty::No => "false",
        RequestTty::Yes => "true",
        RequestTty::Force => "force",
        RequestTty::Auto => "auto",
    }))),
    ("sessiontype", Line(|view| chosen(view.draft.session_type, "default", |value| match value {
        SessionType::Default => "default",
        SessionType::Subsystem => "subsystem",
        SessionType::None => "none",
    }))),
    ("stdinnull", Show::Flag(Flag::StdinNull, false)),
    ("forkafterauthentication", Show::Flag(Flag::ForkAfterAuthentication, false)),
    ("stricthostkeychecking", Line(|view| chosen(view.draft.host_key_policy, "ask", |value| match value {
        HostKeyPolicy::Strict => "true",
        HostKeyPolicy::Ask => "ask",
        HostKeyPolicy::AcceptNew => "accept-new",
        HostKeyPolicy::Off => "false",
    }))),
    ("tcpkeepalive", Show::Flag(Flag::TcpKeepAlive, true)),
    ("verifyhostkeydns", Line(|view| chosen(view.draft.verify_host_key_dns, "false", yes_no_ask))),
    ("visualhostkey", Show::Flag(Flag::VisualHostKey, false)),
    ("updatehostkeys", Line(|view| {
        let update = &view.config.host_keys.update_host_keys;
        (yes_no_ask(&update.value).to_owned(), update.origin.clone())
    })),
    ("enableescapecommandline", Show::Flag(Flag::EnableEscapeCommandline, false)),
    ("canonicalizemaxdots", Count(Number::CanonicalizeMaxDots, 1)),
    ("connectionattempts", Count(Number::ConnectionAttempts, 1)),
    ("numberofpasswordprompts", Count(Number::PasswordPrompts, 3)),
    ("serveralivecountmax", Count(Number::ServerAliveCountMax, 3)),
    ("serveraliveinterval", Seconds(Time::ServerAliveInterval, "0")),
    ("requiredrsasize", Count(Number::RequiredRsaSize, 1024)),
    ("bindaddress", Show::Text(Text::BindAddress)),
    ("bindinterface", Show::Text(Text::BindInterface)),
    ("ciphers", Lines(|view| Ok(algorithms(view, Text::Ciphers, ciphers)))),
    ("controlpath", Lines(|view| expanded(view, Text::ControlPath, "ControlPath", expand::path))),
    ("hostkeyalgorithms", Lines(|view| Ok(algorithms(view, Text::HostKeyAlgorithms, host_key_algorithms)))),
    ("hostkeyalias", Lines(|view| {
        let alias = view.config.host_key_alias.iter();
        Ok(alias.map(|alias| (alias.value.clone(), alias.origin.clone())).collect())
    })),
    ("hostbasedacceptedalgorithms", Show::Text(Text::HostbasedAcceptedAlgorithms)),
    ("identityagent", Lines(identity_agent)),
    ("ignoreunknown", Show::Text(Text::IgnoreUnknown)),
    ("kbdinteractivedevices", Show::Text(Text::KbdInteractiveDevices)),
    ("kexalgorithms", Lines(|view| Ok(algorithms(view, Text::KexAlgorithms, kex_algorithms)))),
    ("casignaturealgorithms", Lines(|view| Ok(algorithms(view, Text::CaSignatureAlgorithms, authority_algorithms)))),
    ("localcommand", Command(Text::LocalCommand)),
    ("remotecommand", Lines(|view| expanded(view, Text::RemoteCommand, "RemoteCommand", expand::command))),
    ("loglevel", Line(|view| chosen(view.draft.log_level, "INFO", log_level))),
    ("macs", Lines(|view| Ok(algorithms(view, Text::Macs, macs)))),
    ("pkcs11provider", Command(Text::Pkcs11Provider)),
    ("preferredauthentications", Show::Text(Text::PreferredAuthentications)),
    ("pubkeyacceptedalgorithms", Lines(|view| Ok(algorithms(view, Text::PubkeyAcceptedAlgorithms, accepted_algorithms)))),
    ("revokedhostkeys", Lines(revoked_host_keys)),
    ("securitykeyprovider", Command(Text::SecurityKeyProvider)),
    ("xauthlocation", Show::Text(Text::XAuthLocation)),
    ("knownhostscommand", Command(Text::KnownHostsCommand)),
    ("tag", Show::Text(Text::Tag)),
    ("versionaddendum", Command(Text::VersionAddendum)),
    ("identityfile", Lines(identity_files)),
    ("canonicaldomains", Words(List::CanonicalDomains, "none")),
    ("certificatefile", Lines(|view| Ok(written(&view.draft.certificate_files)))),
    ("globalknownhostsfile", Line(|view| {
        let files = &view.config.global_known_hosts_files;
        (joined(&files.value, "none"), files.origin.clone())
    })),
    ("userknownhostsfile", Line(|view| {
        let files = &view.config.user_known_hosts_files;
        (joined(&files.value, "none"), files.origin.clone())
    })),
    ("sendenv", Lines(|view| Ok(written(&view.draft.send_env)))),
    ("setenv", Lines(set_env)),
    ("logverbose", Words(List::LogVerbose, "none")),
    ("channeltimeout", Words(List::ChannelTimeout, "none")),
    ("permitremoteopen", Words(List::PermitRemoteOpen, "any")),
    ("addkeystoagent", Line(add_keys_to_agent)),
    ("forwardagent", Lines(forward_agent)),
    ("connecttimeout", Seconds(Time::ConnectTimeout, "none")),
    ("canonicalizePermittedcnames", Line(permitted_cnames)),
    ("rekeylimit", Line(rekey_limit)),
    ("proxyjump", Lines(|view| Ok(proxy_jump(view)))),
    ("proxycommand", Lines(|view| Ok(proxy_command(view)))),
];

/// Whether a keyword is shown at all: those that decide nothing here are kept by nobody.
pub(super) fn is_shown(keyword: &str) -> bool {
    ORDER.iter().any(|(shown, _)| shown.eq_ignore_ascii_case(keyword))
}

impl Draft<'_> {
    /// The lines of `ssh -G` for what this draft has become.
    pub(super) fn effective(
        &self,
        config: &HostConfig,
        tokens: Tokens<'_>,
    ) -> Result<Vec<Effective>, ConfigError> {
        let view = View {
            draft: self,
            config,
            tokens,
        };
        let mut lines = Vec::new();
        for (keyword, show) in ORDER {
            let values = values(view, *show)?;
            lines.extend(values.into_iter().map(|(value, origin)| Effective {
                keyword,
                value,
                origin,
            }));
        }
        Ok(lines)
    }
}

fn values(view: View<'_>, show: Show) -> Result<Vec<Value>, ConfigError> {
    let draft = view.draft;
    let text = |slot: Slot<'_, String>| slot.map(|(text, origin)| (text.clone(), origin.clone()));
    Ok(match show {
        Show::Flag(flag, default) => {
            let default = if default { "yes" } else { "no" };
            vec![chosen(
                draft.flag(flag),
                default,
                |&on| if on { "yes" } else { "no" },
            )]
        }
        Count(number, default) => vec![match draft.number(number) {
            Some((number, origin)) => (number.to_string(), origin.clone()),
            None => (default.to_string(), Origin::Default),
        }],
        Seconds(time, default) => vec![match draft.time(time) {
            Some((time, origin)) => (time.as_secs().to_string(), origin.clone()),
            None => (default.to_owned(), Origin::Default),
        }],
        Show::Text(name) => text(draft.text(name)).into_iter().collect(),
        Command(name) => text(draft.text(name).filter(|(text, _)| !is_none(text)))
            .into_iter()
            .collect(),
        Words(list, none) => vec![match draft.list(list) {
            Some((words, origin)) => (joined(words, none), origin.clone()),
            None => (none.to_owned(), Origin::Default),
        }],
        Lines(lines) => lines(view)?,
        Line(line) => vec![line(view)],
    })
}

fn chosen<T>(slot: Slot<'_, T>, default: &str, name: impl Fn(&T) -> &'static str) -> Value {
    match slot {
        Some((value, origin)) => (name(value).to_owned(), origin.clone()),
        None => (default.to_owned(), Origin::Default),
    }
}

fn yes_no_ask(value: &YesNoAsk) -> &'static str {
    match value {
        YesNoAsk::No => "false",
        YesNoAsk::Yes => "true",
        YesNoAsk::Ask => "ask",
    }
}

fn log_level(level: &LogLevel) -> &'static str {
    match level {
        LogLevel::Quiet => "SILENT",
        LogLevel::Fatal => "FATAL",
        LogLevel::Error => "ERROR",
        LogLevel::Info => "INFO",
        LogLevel::Verbose => "VERBOSE",
        LogLevel::Debug1 => "DEBUG",
        LogLevel::Debug2 => "DEBUG2",
        LogLevel::Debug3 => "DEBUG3",
    }
}

fn joined(words: &[String], none: &str) -> String {
    if words.is_empty() {
        return none.to_owned();
    }
    words.join(" ")
}

fn written(values: &[(&String, &Origin)]) -> Vec<Value> {
    let values = values.iter();
    values
        .map(|(value, origin)| ((*value).clone(), (*origin).clone()))
        .collect()
}

type Expand = fn(&str, &'static str, Tokens<'_>) -> Result<String, super::Problem>;

fn expanded(
    view: View<'_>,
    name: Text,
    keyword: &'static str,
    expand: Expand,
) -> Result<Vec<Value>, ConfigError> {
    let Some((text, origin)) = view.draft.text(name).filter(|(text, _)| !is_none(text)) else {
        return Ok(Vec::new());
    };
    let text = at(origin, expand(text, keyword, view.tokens))?;
    Ok(vec![(text, origin.clone())])
}

/// Our names that a list leaves; the list itself, if there are none.
fn algorithms(view: View<'_>, name: Text, left: fn(Option<&str>) -> Option<Vec<&'static str>>) -> Vec<Value> {
    match view.draft.text(name) {
        Some((list, origin)) => {
            let value = left(Some(list)).map_or_else(|| list.clone(), |names| names.join(","));
            vec![(value, origin.clone())]
        }
        None => vec![(left(None).unwrap_or_default().join(","), Origin::Default)],
    }
}

fn kex_algorithms(list: Option<&str>) -> Option<Vec<&'static str>> {
    let mut ours = Algorithms::default();
    list.map_or(Ok(()), |list| ours.set_kex(list)).ok()?;
    Some(ours.kex.iter().map(|one| one.name()).collect())
}

fn host_key_algorithms(list: Option<&str>) -> Option<Vec<&'static str>> {
    let mut ours = Algorithms::default();
    list.map_or(Ok(()), |list| ours.set_host_keys(list)).ok()?;
    Some(ours.host_keys.iter().map(|one| one.name()).collect())
}

fn ciphers(list: Option<&str>) -> Option<Vec<&'static str>> {
    let mut ours = Algorithms::default();
    list.map_or(Ok(()), |list| ours.set_ciphers(list)).ok()?;
    Some(ours.ciphers.iter().map(|one| one.name()).collect())
}

fn macs(list: Option<&str>) -> Option<Vec<&'static str>> {
    let mut ours = Algorithms::default();
    list.map_or(Ok(()), |list| ours.set_macs(list)).ok()?;
    Some(ours.macs.iter().map(|one| one.name()).collect())
}

fn accepted_algorithms(list: Option<&str>) -> Option<Vec<&'static str>> {
    let ours = match list {
        Some(list) => PublicKeyAlgorithm::choose(list).ok()?,
        None => PublicKeyAlgorithm::ALL.to_vec(),
    };
    Some(ours.iter().map(|one| one.name()).collect())
}

fn authority_algorithms(list: Option<&str>) -> Option<Vec<&'static str>> {
    let ours = match list {
        Some(list) => SignatureAlgorithm::choose(list).ok()?,
        None => SignatureAlgorithm::ALL.to_vec(),
    };
    Some(ours.iter().map(|one| one.name()).collect())
}

/// Stops are reached by connections of our own: no socket is handed over.
fn proxy_use_fdpass(view: View<'_>) -> Value {
    match view.draft.proxy_jump {
        Some((Some(_), origin)) => ("no".to_owned(), origin.clone()),
        Some((None, _)) | None => chosen(view.draft.flag(Flag::ProxyUseFdpass), "no", |&on| {
            if on { "yes" } else { "no" }
        }),
    }
}

fn identity_agent(view: View<'_>) -> Result<Vec<Value>, ConfigError> {
    let Some((text, origin)) = view.draft.text(Text::IdentityAgent) else {
        return Ok(Vec::new());
    };
    let is_variable = text.starts_with('$') && !text.starts_with("${");
    let text = match text.as_str() {
        "none" | "SSH_AUTH_SOCK" => text.clone(),
        _ if is_variable => text.clone(),
        _ => at(origin, expand::path(text, "IdentityAgent", view.tokens))?,
    };
    Ok(vec![(text, origin.clone())])
}

fn identity_files(view: View<'_>) -> Result<Vec<Value>, ConfigError> {
    if !view.draft.identity_files.is_empty() {
        return Ok(written(&view.draft.identity_files));
    }
    let defaults = super::finish::DEFAULT_IDENTITIES.iter();
    Ok(defaults
        .map(|file| ((*file).to_owned(), Origin::Default))
        .collect())
}

fn revoked_host_keys(view: View<'_>) -> Result<Vec<Value>, ConfigError> {
    let files = &view.config.host_keys.revoked_host_keys;
    Ok(match files.value.is_empty() {
        true => Vec::new(),
        false => vec![(files.value.join(" "), files.origin.clone())],
    })
}

fn set_env(view: View<'_>) -> Result<Vec<Value>, ConfigError> {
    let variables = &view.config.session.set_env;
    let lines = variables.value.iter();
    Ok(lines
        .map(|(name, value)| (format!("{name}={value}"), variables.origin.clone()))
        .collect())
}

fn add_keys_to_agent(view: View<'_>) -> Value {
    let add = &view.config.login.add_keys_to_agent;
    let value = match add.value {
        AddKeysToAgent::No => "false".to_owned(),
        AddKeysToAgent::Ask => "ask".to_owned(),
        AddKeysToAgent::Add { confirm, lifetime } => {
            let seconds = lifetime.map(|time| time.as_secs().to_string());
            match (confirm, seconds) {
                (true, Some(seconds)) => format!("confirm {seconds}"),
                (true, None) => "confirm".to_owned(),
                (false, Some(seconds)) => seconds,
                (false, None) => "true".to_owned(),
            }
        }
    };
    (value, add.origin.clone())
}

fn forward_agent(view: View<'_>) -> Result<Vec<Value>, ConfigError> {
    if let Some((text, origin)) = view.draft.forward_socket {
        let value = match text.starts_with('$') && !text.starts_with("${") {
            true => text.clone(),
            false => at(origin, expand::path(text, "ForwardAgent", view.tokens))?,
        };
        return Ok(vec![(value, origin.clone())]);
    }
    let value = chosen(view.draft.forward_agent, "no", |agent| match agent {
        ForwardedAgent::No => "no",
        ForwardedAgent::Yes | ForwardedAgent::Socket(_) => "yes",
    });
    Ok(vec![value])
}

fn permitted_cnames(view: View<'_>) -> Value {
    let rule = |(from, to): &(String, String)| format!("{from}:{to}");
    match view.draft.permitted_cnames {
        Some((rules, origin)) if !rules.is_empty() => {
            let rules: Vec<String> = rules.iter().map(rule).collect();
            (rules.join(" "), origin.clone())
        }
        Some((_, origin)) => ("none".to_owned(), origin.clone()),
        None => ("none".to_owned(), Origin::Default),
    }
}

fn rekey_limit(view: View<'_>) -> Value {
    let limit = &view.config.session.rekey_limit;
    let seconds = limit.value.interval.unwrap_or(Duration::ZERO).as_secs();
    (
        format!("{} {seconds}", limit.value.bytes.unwrap_or(0)),
        limit.origin.clone(),
    )
}

fn proxy_jump(view: View<'_>) -> Vec<Value> {
    let Some((Some(hops), origin)) = view.draft.proxy_jump else {
        return Vec::new();
    };
    let hops: Vec<String> = hops.iter().map(stop).collect();
    vec![(hops.join(","), origin.clone())]
}

/// A stop as it can be written. Addresses have brackets, whether they need them or not.
fn stop(hop: &JumpHost) -> String {
    let user = hop.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
    let digits = hop.host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let host = if digits || hop.host.contains(':') {
        format!("[{}]", hop.host)
    } else {
        hop.host.clone()
    };
    let port = hop.port.map_or(String::new(), |port| format!(":{port}"));
    format!("{user}{host}{port}")
}

fn proxy_command(view: View<'_>) -> Vec<Value> {
    match (view.draft.proxy_jump, view.draft.proxy_command) {
        (Some((None, _)) | None, Some((command, origin))) if !is_none(command) => {
            vec![(command.clone(), origin.clone())]
        }
        _ => Vec::new(),
    }
}
