//! Every keyword of ssh_config and what it takes: the one table. Never reads a value of a keyword that is only noted.

use super::error::Problem;
use super::setting::{Flag, List, Number, Setting, Text, Time};
use super::value::Arguments;

/// A keyword and its class.
#[derive(Debug)]
pub(super) struct Keyword {
    /// As the manual page writes it.
    pub(super) name: &'static str,
    pub(super) class: Class,
}

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    Host,
    Match,
    Include,
    /// Its value is used.
    Honoured(Shape),
    /// Accepted without effect, and said so on request.
    Noted,
}

/// What a keyword takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Flag(Flag),
    Text(Text),
    /// The rest of the line as it stands, for a shell.
    Command(Text),
    Algorithms(Text),
    Number(Number),
    Time(Time),
    List(List),
    Special(fn(Arguments<'_>) -> Result<Setting, Problem>),
}

impl Shape {
    pub(super) fn parse(self, arguments: Arguments<'_>) -> Result<Setting, Problem> {
        match self {
            Self::Flag(flag) => arguments.flag().map(|value| Setting::Flag(flag, value)),
            Self::Text(text) => arguments.text().map(|value| Setting::Text(text, value)),
            Self::Command(text) => arguments.command().map(|value| Setting::Text(text, value)),
            Self::Algorithms(text) => arguments.algorithms().map(|value| Setting::Text(text, value)),
            Self::Number(number) => arguments.number().map(|value| Setting::Number(number, value)),
            Self::Time(time) => arguments.time().map(|value| Setting::Time(time, value)),
            Self::List(list) => arguments.list().map(|value| Setting::List(list, value)),
            Self::Special(parse) => parse(arguments),
        }
    }
}

/// The keyword of a name in lower case.
pub(super) fn lookup(name: &str) -> Option<&'static Keyword> {
    KEYWORDS
        .iter()
        .find(|(spelling, _)| *spelling == name)
        .map(|(_, keyword)| keyword)
}

const fn honoured(name: &'static str, shape: Shape) -> Keyword {
    Keyword {
        name,
        class: Class::Honoured(shape),
    }
}

const fn flag(name: &'static str, flag: Flag) -> Keyword {
    honoured(name, Shape::Flag(flag))
}

const fn text(name: &'static str, text: Text) -> Keyword {
    honoured(name, Shape::Text(text))
}

const fn command(name: &'static str, text: Text) -> Keyword {
    honoured(name, Shape::Command(text))
}

const fn algorithms(name: &'static str, text: Text) -> Keyword {
    honoured(name, Shape::Algorithms(text))
}

const fn number(name: &'static str, number: Number) -> Keyword {
    honoured(name, Shape::Number(number))
}

const fn time(name: &'static str, time: Time) -> Keyword {
    honoured(name, Shape::Time(time))
}

const fn list(name: &'static str, list: List) -> Keyword {
    honoured(name, Shape::List(list))
}

const fn special(name: &'static str, parse: fn(Arguments<'_>) -> Result<Setting, Problem>) -> Keyword {
    honoured(name, Shape::Special(parse))
}

const fn noted(name: &'static str) -> Keyword {
    Keyword {
        name,
        class: Class::Noted,
    }
}

#[rustfmt::skip]
pub(super) static KEYWORDS: &[(&str, Keyword)] = &[
    ("host", Keyword { name: "Host", class: Class::Host }),
    ("match", Keyword { name: "Match", class: Class::Match }),
    ("include", Keyword { name: "Include", class: Class::Include }),

    // Where.
    ("hostname", text("HostName", Text::HostName)),
    ("port", special("Port", |a| a.port())),
    ("proxyjump", special("ProxyJump", |a| a.proxy_jump())),
    ("proxycommand", special("ProxyCommand", |a| a.proxy_command())),
    ("proxyusefdpass", flag("ProxyUseFdpass", Flag::ProxyUseFdpass)),
    ("addressfamily", special("AddressFamily", |a| a.address_family())),
    ("bindaddress", text("BindAddress", Text::BindAddress)),
    ("bindinterface", text("BindInterface", Text::BindInterface)),
    ("canonicalizehostname", special("CanonicalizeHostname", |a| a.canonicalize())),
    ("canonicaldomains", special("CanonicalDomains", |a| a.canonical_domains())),
    ("canonicalizefallbacklocal", flag("CanonicalizeFallbackLocal", Flag::CanonicalizeFallbackLocal)),
    ("canonicalizemaxdots", number("CanonicalizeMaxDots", Number::CanonicalizeMaxDots)),
    ("canonicalizepermittedcnames", special("CanonicalizePermittedCNAMEs", |a| a.permitted_cnames())),
    ("refuseconnection", special("RefuseConnection", |a| a.text().map(Setting::RefuseConnection))),
    ("connecttimeout", time("ConnectTimeout", Time::ConnectTimeout)),
    ("connectionattempts", number("ConnectionAttempts", Number::ConnectionAttempts)),
    ("serveraliveinterval", time("ServerAliveInterval", Time::ServerAliveInterval)),
    ("serveralivecountmax", number("ServerAliveCountMax", Number::ServerAliveCountMax)),
    ("tcpkeepalive", flag("TCPKeepAlive", Flag::TcpKeepAlive)),
    ("keepalive", flag("TCPKeepAlive", Flag::TcpKeepAlive)),

    // As whom.
    ("user", text("User", Text::User)),
    ("identityfile", special("IdentityFile", |a| a.identity_file())),
    ("identityfile2", special("IdentityFile", |a| a.identity_file())),
    ("certificatefile", special("CertificateFile", |a| a.certificate_file())),
    ("identitiesonly", flag("IdentitiesOnly", Flag::IdentitiesOnly)),
    ("identityagent", special("IdentityAgent", |a| a.identity_agent())),
    ("addkeystoagent", special("AddKeysToAgent", |a| a.add_keys_to_agent())),
    ("forwardagent", special("ForwardAgent", |a| a.forward_agent())),
    ("pkcs11provider", text("PKCS11Provider", Text::Pkcs11Provider)),
    ("smartcarddevice", text("PKCS11Provider", Text::Pkcs11Provider)),
    ("securitykeyprovider", text("SecurityKeyProvider", Text::SecurityKeyProvider)),
    ("preferredauthentications", text("PreferredAuthentications", Text::PreferredAuthentications)),
    ("pubkeyauthentication", special("PubkeyAuthentication", |a| a.pubkey_authentication())),
    ("dsaauthentication", special("PubkeyAuthentication", |a| a.pubkey_authentication())),
    ("passwordauthentication", flag("PasswordAuthentication", Flag::PasswordAuthentication)),
    ("kbdinteractiveauthentication", flag("KbdInteractiveAuthentication", Flag::KbdInteractiveAuthentication)),
    ("challengeresponseauthentication", flag("KbdInteractiveAuthentication", Flag::KbdInteractiveAuthentication)),
    ("skeyauthentication", flag("KbdInteractiveAuthentication", Flag::KbdInteractiveAuthentication)),
    ("tisauthentication", flag("KbdInteractiveAuthentication", Flag::KbdInteractiveAuthentication)),
    ("kbdinteractivedevices", text("KbdInteractiveDevices", Text::KbdInteractiveDevices)),
    ("hostbasedauthentication", flag("HostbasedAuthentication", Flag::HostbasedAuthentication)),
    ("enablesshkeysign", flag("EnableSSHKeysign", Flag::EnableSshKeysign)),
    ("gssapiauthentication", flag("GSSAPIAuthentication", Flag::GssapiAuthentication)),
    ("gssapidelegatecredentials", flag("GSSAPIDelegateCredentials", Flag::GssapiDelegateCredentials)),
    ("gssapikeyexchange", flag("GSSAPIKeyExchange", Flag::GssapiKeyExchange)),
    ("gssapirenewalforcesrekey", flag("GSSAPIRenewalForcesRekey", Flag::GssapiRenewalForcesRekey)),
    ("gssapitrustdns", flag("GSSAPITrustDns", Flag::GssapiTrustDns)),
    ("gssapiclientidentity", noted("GSSAPIClientIdentity")),
    ("gssapikexalgorithms", noted("GSSAPIKexAlgorithms")),
    ("gssapiserveridentity", noted("GSSAPIServerIdentity")),
    ("numberofpasswordprompts", number("NumberOfPasswordPrompts", Number::PasswordPrompts)),
    ("batchmode", flag("BatchMode", Flag::BatchMode)),

    // How safely.
    ("stricthostkeychecking", special("StrictHostKeyChecking", |a| a.strict_host_key_checking())),
    ("userknownhostsfile", list("UserKnownHostsFile", List::UserKnownHostsFile)),
    ("globalknownhostsfile", list("GlobalKnownHostsFile", List::GlobalKnownHostsFile)),
    ("knownhostscommand", command("KnownHostsCommand", Text::KnownHostsCommand)),
    ("revokedhostkeys", list("RevokedHostKeys", List::RevokedHostKeys)),
    ("hostkeyalias", text("HostKeyAlias", Text::HostKeyAlias)),
    ("hashknownhosts", flag("HashKnownHosts", Flag::HashKnownHosts)),
    ("checkhostip", flag("CheckHostIP", Flag::CheckHostIp)),
    ("updatehostkeys", special("UpdateHostKeys", |a| a.update_host_keys())),
    ("verifyhostkeydns", special("VerifyHostKeyDNS", |a| a.verify_host_key_dns())),
    ("nohostauthenticationforlocalhost",
        flag("NoHostAuthenticationForLocalhost", Flag::NoHostAuthenticationForLocalhost)),
    ("kexalgorithms", algorithms("KexAlgorithms", Text::KexAlgorithms)),
    ("hostkeyalgorithms", algorithms("HostKeyAlgorithms", Text::HostKeyAlgorithms)),
    ("ciphers", algorithms("Ciphers", Text::Ciphers)),
    ("macs", algorithms("MACs", Text::Macs)),
    ("pubkeyacceptedalgorithms", algorithms("PubkeyAcceptedAlgorithms", Text::PubkeyAcceptedAlgorithms)),
    ("pubkeyacceptedkeytypes", algorithms("PubkeyAcceptedAlgorithms", Text::PubkeyAcceptedAlgorithms)),
    ("hostbasedacceptedalgorithms", algorithms("HostbasedAcceptedAlgorithms", Text::HostbasedAcceptedAlgorithms)),
    ("hostbasedacceptedkeytypes", algorithms("HostbasedAcceptedAlgorithms", Text::HostbasedAcceptedAlgorithms)),
    ("hostbasedkeytypes", algorithms("HostbasedAcceptedAlgorithms", Text::HostbasedAcceptedAlgorithms)),
    ("casignaturealgorithms", algorithms("CASignatureAlgorithms", Text::CaSignatureAlgorithms)),
    ("requiredrsasize", number("RequiredRSASize", Number::RequiredRsaSize)),
    ("rsaminsize", number("RequiredRSASize", Number::RequiredRsaSize)),
    ("warnweakcrypto", noted("WarnWeakCrypto")),
    ("rekeylimit", special("RekeyLimit", |a| a.rekey_limit())),
    ("compression", flag("Compression", Flag::Compression)),

    // What is done there.
    ("sendenv", special("SendEnv", |a| a.send_env())),
    ("setenv", special("SetEnv", |a| a.set_env())),
    ("remotecommand", command("RemoteCommand", Text::RemoteCommand)),
    ("requesttty", special("RequestTTY", |a| a.request_tty())),
    ("sessiontype", special("SessionType", |a| a.session_type())),
    ("stdinnull", flag("StdinNull", Flag::StdinNull)),
    ("forkafterauthentication", flag("ForkAfterAuthentication", Flag::ForkAfterAuthentication)),
    ("permitlocalcommand", flag("PermitLocalCommand", Flag::PermitLocalCommand)),
    ("localcommand", command("LocalCommand", Text::LocalCommand)),

    // About the configuration and the messages.
    ("ignoreunknown", text("IgnoreUnknown", Text::IgnoreUnknown)),
    ("tag", text("Tag", Text::Tag)),
    ("loglevel", special("LogLevel", |a| a.log_level())),
    ("logverbose", list("LogVerbose", List::LogVerbose)),
    ("syslogfacility", noted("SyslogFacility")),
    ("visualhostkey", flag("VisualHostKey", Flag::VisualHostKey)),
    ("fingerprinthash", special("FingerprintHash", |a| a.fingerprint_hash())),
    ("versionaddendum", command("VersionAddendum", Text::VersionAddendum)),

    // Of interactive sessions, forwardings and shared connections, none of which there are.
    ("channeltimeout", list("ChannelTimeout", List::ChannelTimeout)),
    ("clearallforwardings", flag("ClearAllForwardings", Flag::ClearAllForwardings)),
    ("controlmaster", noted("ControlMaster")),
    ("controlpath", text("ControlPath", Text::ControlPath)),
    ("controlpersist", noted("ControlPersist")),
    ("dynamicforward", noted("DynamicForward")),
    ("enableescapecommandline", flag("EnableEscapeCommandline", Flag::EnableEscapeCommandline)),
    ("escapechar", noted("EscapeChar")),
    ("exitonforwardfailure", flag("ExitOnForwardFailure", Flag::ExitOnForwardFailure)),
    ("forwardx11", flag("ForwardX11", Flag::ForwardX11)),
    ("forwardx11timeout", time("ForwardX11Timeout", Time::ForwardX11Timeout)),
    ("forwardx11trusted", flag("ForwardX11Trusted", Flag::ForwardX11Trusted)),
    ("gatewayports", flag("GatewayPorts", Flag::GatewayPorts)),
    ("ipqos", noted("IPQoS")),
    ("localforward", noted("LocalForward")),
    ("obscurekeystroketiming", noted("ObscureKeystrokeTiming")),
    ("permitremoteopen", list("PermitRemoteOpen", List::PermitRemoteOpen)),
    ("remoteforward", noted("RemoteForward")),
    ("streamlocalbindmask", noted("StreamLocalBindMask")),
    ("streamlocalbindunlink", flag("StreamLocalBindUnlink", Flag::StreamLocalBindUnlink)),
    ("tunnel", noted("Tunnel")),
    ("tunneldevice", noted("TunnelDevice")),
    ("xauthlocation", text("XAuthLocation", Text::XAuthLocation)),

    // Of Debian's version: older names.
    ("protocolkeepalives", time("ServerAliveInterval", Time::ServerAliveInterval)),
    ("setuptimeout", time("ServerAliveInterval", Time::ServerAliveInterval)),

    // What OpenSSH itself has stopped honouring and still accepts.
    ("afstokenpassing", noted("AFSTokenPassing")),
    ("cipher", noted("Cipher")),
    ("compressionlevel", noted("CompressionLevel")),
    ("fallbacktorsh", noted("FallBackToRsh")),
    ("globalknownhostsfile2", noted("GlobalKnownHostsFile2")),
    ("kerberosauthentication", noted("KerberosAuthentication")),
    ("kerberostgtpassing", noted("KerberosTgtPassing")),
    ("protocol", noted("Protocol")),
    ("rhostsauthentication", noted("RhostsAuthentication")),
    ("rhostsrsaauthentication", noted("RhostsRSAAuthentication")),
    ("rsaauthentication", noted("RSAAuthentication")),
    ("useblacklistedkeys", noted("UseBlacklistedKeys")),
    ("userknownhostsfile2", noted("UserKnownHostsFile2")),
    ("useprivilegedport", noted("UsePrivilegedPort")),
    ("useroaming", noted("UseRoaming")),
    ("usersh", noted("UseRsh")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_in_lower_case_and_stands_once() {
        let mut seen = std::collections::HashSet::new();
        for (spelling, _) in KEYWORDS {
            assert_eq!(*spelling, spelling.to_ascii_lowercase());
            assert!(seen.insert(spelling), "{spelling} stands twice");
        }
    }
}
