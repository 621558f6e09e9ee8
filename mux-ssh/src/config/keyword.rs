//! Every keyword of ssh_config and what becomes of it: the one table. Decides honoured, noted or refused; never
//! reads a value of a keyword that is only noted.
//!
//! A keyword is **refused** if it decides where, as whom or how safely a connection is made and is not honoured:
//! leaving it out would connect somewhere else, as someone else or less safely than the configuration says.

use super::error::Problem;
use super::value::{Arguments, Setting};

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
    Honoured(fn(Arguments<'_>) -> Result<Setting, Problem>),
    /// Accepted without effect, and said so on request.
    Noted,
    /// The host fails unless the value is one of `harmless`, with which the keyword changes nothing.
    Refused {
        /// Keywords of one slot compete: the first one written is the one that counts.
        slot: &'static str,
        harmless: &'static [&'static str],
    },
}

use Class::{Honoured, Noted};

/// The keyword of a name in lower case.
pub(super) fn lookup(name: &str) -> Option<&'static Keyword> {
    KEYWORDS
        .iter()
        .find(|(spelling, _)| *spelling == name)
        .map(|(_, keyword)| keyword)
}

const fn honoured(name: &'static str, parse: fn(Arguments<'_>) -> Result<Setting, Problem>) -> Keyword {
    Keyword {
        name,
        class: Honoured(parse),
    }
}

const fn noted(name: &'static str) -> Keyword {
    Keyword { name, class: Noted }
}

const fn refused(name: &'static str, harmless: &'static [&'static str]) -> Keyword {
    Keyword {
        name,
        class: Class::Refused { slot: name, harmless },
    }
}

/// `ProxyJump` and `ProxyCommand` share a slot: whichever comes first disables the other, `none` included.
const fn proxy(name: &'static str) -> Keyword {
    Keyword {
        name,
        class: Class::Refused {
            slot: "Proxy",
            harmless: &["none"],
        },
    }
}

const NO: &[&str] = &["no", "false"];
const NONE: &[&str] = &["none"];

#[rustfmt::skip]
static KEYWORDS: &[(&str, Keyword)] = &[
    ("host", Keyword { name: "Host", class: Class::Host }),
    ("match", Keyword { name: "Match", class: Class::Match }),
    ("include", Keyword { name: "Include", class: Class::Include }),

    ("hostname", honoured("HostName", |a| a.text().map(Setting::HostName))),
    ("user", honoured("User", |a| a.text().map(Setting::User))),
    ("port", honoured("Port", |a| a.port().map(Setting::Port))),
    ("identityfile", honoured("IdentityFile", |a| a.text().map(Setting::IdentityFile))),
    ("identityfile2", honoured("IdentityFile", |a| a.text().map(Setting::IdentityFile))),
    ("identitiesonly", honoured("IdentitiesOnly", |a| a.flag().map(Setting::IdentitiesOnly))),
    ("identityagent", honoured("IdentityAgent", |a| a.identity_agent().map(Setting::IdentityAgent))),
    ("userknownhostsfile", honoured("UserKnownHostsFile", |a| a.known_hosts_files().map(Setting::UserKnownHostsFile))),
    ("globalknownhostsfile", honoured("GlobalKnownHostsFile", |a| a.known_hosts_files().map(Setting::GlobalKnownHostsFile))),
    ("stricthostkeychecking", honoured("StrictHostKeyChecking", |a| a.strictness().map(Setting::StrictHostKeyChecking))),
    ("hostkeyalias", honoured("HostKeyAlias", |a| a.text().map(Setting::HostKeyAlias))),
    ("connecttimeout", honoured("ConnectTimeout", |a| a.time().map(Setting::ConnectTimeout))),
    ("serveraliveinterval", honoured("ServerAliveInterval", |a| a.time().map(Setting::ServerAliveInterval))),
    ("serveralivecountmax", honoured("ServerAliveCountMax", |a| a.number().map(Setting::ServerAliveCountMax))),
    ("batchmode", honoured("BatchMode", |a| a.flag().map(Setting::BatchMode))),
    ("pubkeyauthentication", honoured("PubkeyAuthentication", |a| a.pubkey_authentication().map(Setting::PubkeyAuthentication))),
    ("dsaauthentication", honoured("PubkeyAuthentication", |a| a.pubkey_authentication().map(Setting::PubkeyAuthentication))),
    ("preferredauthentications", honoured("PreferredAuthentications", |a| a.text().map(Setting::PreferredAuthentications))),
    ("kexalgorithms", honoured("KexAlgorithms", |a| a.algorithms().map(Setting::KexAlgorithms))),
    ("hostkeyalgorithms", honoured("HostKeyAlgorithms", |a| a.algorithms().map(Setting::HostKeyAlgorithms))),
    ("ciphers", honoured("Ciphers", |a| a.algorithms().map(Setting::Ciphers))),
    ("macs", honoured("MACs", |a| a.algorithms().map(Setting::Macs))),
    ("pubkeyacceptedalgorithms", honoured("PubkeyAcceptedAlgorithms", |a| a.algorithms().map(Setting::PubkeyAcceptedAlgorithms))),
    ("pubkeyacceptedkeytypes", honoured("PubkeyAcceptedAlgorithms", |a| a.algorithms().map(Setting::PubkeyAcceptedAlgorithms))),
    ("requiredrsasize", honoured("RequiredRSASize", |a| a.number().map(Setting::RequiredRsaSize))),
    ("rsaminsize", honoured("RequiredRSASize", |a| a.number().map(Setting::RequiredRsaSize))),
    ("loglevel", honoured("LogLevel", |a| a.log_level().map(Setting::LogLevel))),
    ("hashknownhosts", honoured("HashKnownHosts", |a| a.flag().map(Setting::HashKnownHosts))),
    ("ignoreunknown", honoured("IgnoreUnknown", |a| a.text().map(Setting::IgnoreUnknown))),

    // Where.
    ("proxyjump", proxy("ProxyJump")),
    ("proxycommand", proxy("ProxyCommand")),
    ("addressfamily", refused("AddressFamily", &["any"])),
    ("bindaddress", refused("BindAddress", &[])),
    ("bindinterface", refused("BindInterface", &[])),
    ("canonicalizehostname", refused("CanonicalizeHostname", &["no", "false", "none"])),
    ("refuseconnection", refused("RefuseConnection", &[])),
    // As whom.
    ("certificatefile", refused("CertificateFile", NONE)),
    ("pkcs11provider", refused("PKCS11Provider", NONE)),
    ("smartcarddevice", refused("PKCS11Provider", NONE)),
    // How safely.
    ("checkhostip", refused("CheckHostIP", NO)),
    ("knownhostscommand", refused("KnownHostsCommand", NONE)),
    ("revokedhostkeys", refused("RevokedHostKeys", NONE)),
    ("verifyhostkeydns", refused("VerifyHostKeyDNS", NO)),

    ("addkeystoagent", noted("AddKeysToAgent")),
    ("canonicaldomains", noted("CanonicalDomains")),
    ("canonicalizefallbacklocal", noted("CanonicalizeFallbackLocal")),
    ("canonicalizemaxdots", noted("CanonicalizeMaxDots")),
    ("canonicalizepermittedcnames", noted("CanonicalizePermittedCNAMEs")),
    ("casignaturealgorithms", noted("CASignatureAlgorithms")),
    ("challengeresponseauthentication", noted("KbdInteractiveAuthentication")),
    ("channeltimeout", noted("ChannelTimeout")),
    ("clearallforwardings", noted("ClearAllForwardings")),
    ("compression", noted("Compression")),
    ("connectionattempts", noted("ConnectionAttempts")),
    ("controlmaster", noted("ControlMaster")),
    ("controlpath", noted("ControlPath")),
    ("controlpersist", noted("ControlPersist")),
    ("dynamicforward", noted("DynamicForward")),
    ("enableescapecommandline", noted("EnableEscapeCommandline")),
    ("enablesshkeysign", noted("EnableSSHKeysign")),
    ("escapechar", noted("EscapeChar")),
    ("exitonforwardfailure", noted("ExitOnForwardFailure")),
    ("fingerprinthash", noted("FingerprintHash")),
    ("forkafterauthentication", noted("ForkAfterAuthentication")),
    ("forwardagent", noted("ForwardAgent")),
    ("forwardx11", noted("ForwardX11")),
    ("forwardx11timeout", noted("ForwardX11Timeout")),
    ("forwardx11trusted", noted("ForwardX11Trusted")),
    ("gatewayports", noted("GatewayPorts")),
    ("gssapiauthentication", noted("GSSAPIAuthentication")),
    ("gssapiclientidentity", noted("GSSAPIClientIdentity")),
    ("gssapidelegatecredentials", noted("GSSAPIDelegateCredentials")),
    ("gssapikexalgorithms", noted("GSSAPIKexAlgorithms")),
    ("gssapikeyexchange", noted("GSSAPIKeyExchange")),
    ("gssapirenewalforcesrekey", noted("GSSAPIRenewalForcesRekey")),
    ("gssapiserveridentity", noted("GSSAPIServerIdentity")),
    ("gssapitrustdns", noted("GSSAPITrustDns")),
    ("hostbasedacceptedalgorithms", noted("HostbasedAcceptedAlgorithms")),
    ("hostbasedacceptedkeytypes", noted("HostbasedAcceptedAlgorithms")),
    ("hostbasedkeytypes", noted("HostbasedAcceptedAlgorithms")),
    ("hostbasedauthentication", noted("HostbasedAuthentication")),
    ("ipqos", noted("IPQoS")),
    ("kbdinteractiveauthentication", noted("KbdInteractiveAuthentication")),
    ("kbdinteractivedevices", noted("KbdInteractiveDevices")),
    ("keepalive", noted("TCPKeepAlive")),
    ("localcommand", noted("LocalCommand")),
    ("localforward", noted("LocalForward")),
    ("logverbose", noted("LogVerbose")),
    // Without it localhost's key is verified like any other: stricter than asked, never laxer.
    ("nohostauthenticationforlocalhost", noted("NoHostAuthenticationForLocalhost")),
    ("numberofpasswordprompts", noted("NumberOfPasswordPrompts")),
    ("obscurekeystroketiming", noted("ObscureKeystrokeTiming")),
    ("passwordauthentication", noted("PasswordAuthentication")),
    ("permitlocalcommand", noted("PermitLocalCommand")),
    ("permitremoteopen", noted("PermitRemoteOpen")),
    ("protocolkeepalives", noted("ProtocolKeepAlives")),
    ("proxyusefdpass", noted("ProxyUseFdpass")),
    ("rekeylimit", noted("RekeyLimit")),
    ("remotecommand", noted("RemoteCommand")),
    ("remoteforward", noted("RemoteForward")),
    ("requesttty", noted("RequestTTY")),
    ("securitykeyprovider", noted("SecurityKeyProvider")),
    ("sendenv", noted("SendEnv")),
    ("sessiontype", noted("SessionType")),
    ("setenv", noted("SetEnv")),
    ("setuptimeout", noted("SetupTimeOut")),
    ("skeyauthentication", noted("KbdInteractiveAuthentication")),
    ("stdinnull", noted("StdinNull")),
    ("streamlocalbindmask", noted("StreamLocalBindMask")),
    ("streamlocalbindunlink", noted("StreamLocalBindUnlink")),
    ("syslogfacility", noted("SyslogFacility")),
    ("tag", noted("Tag")),
    ("tcpkeepalive", noted("TCPKeepAlive")),
    ("tisauthentication", noted("KbdInteractiveAuthentication")),
    ("tunnel", noted("Tunnel")),
    ("tunneldevice", noted("TunnelDevice")),
    ("updatehostkeys", noted("UpdateHostKeys")),
    ("versionaddendum", noted("VersionAddendum")),
    ("visualhostkey", noted("VisualHostKey")),
    ("warnweakcrypto", noted("WarnWeakCrypto")),
    ("xauthlocation", noted("XAuthLocation")),

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
