//! What becomes of every keyword of ssh_config(5), in words for users: `SSH_CONFIG.md`. Decides nothing about a
//! configuration; a test holds it to the table by which lines are read.

use std::fmt::Write as _;

use super::effective;
use super::keyword::KEYWORDS;

/// What becomes of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It does what ssh_config(5) says; with a remark, if there is one to make.
    Honoured(&'static str),
    /// It is accepted, checked as far as it decides anything, and changes nothing; and why that is safe.
    NoEffect(&'static str),
    /// The host is reached through the system's `ssh`.
    OpenSsh(&'static str),
}

use Fate::{Honoured, NoEffect, OpenSsh};

/// How long lines of text are.
const LINE: usize = 110;

const NO_FORWARDING: &str = "nothing is forwarded here but the agent, so less is open than asked for";
const NO_TERMINAL: &str = "commands have no terminal and no escape characters";
const NO_SHARING: &str = "no connection is shared with other processes; each run keeps its own";
const NO_GSSAPI: &str = "a part of GSSAPI, which native logins don't use";
const OBSOLETE: &str = "OpenSSH accepts it without effect too";

#[rustfmt::skip]
const FATES: &[(&str, Fate)] = &[
    ("Host", Honoured("")),
    ("Match", Honoured("all criteria; `exec` lines that are the same once a run, each for at most 30 s; `version` is that of the `ssh` in PATH")),
    ("Include", Honoured("anywhere, with patterns, tokens, `~user` and `${NAME}`; 16 levels")),
    ("HostName", Honoured("")),
    ("Port", Honoured("numbers only")),
    ("ProxyJump", Honoured("in this process, any depth; one connection a stop for all targets behind it")),
    ("ProxyCommand", Honoured("a process a connection, bounded in number")),
    ("ProxyUseFdpass", OpenSsh("with a ProxyCommand; without one it changes nothing")),
    ("AddressFamily", Honoured("`-4` and `-6` win")),
    ("BindAddress", Honoured("of several addresses of a name the first of the server's family")),
    ("BindInterface", Honoured("an address of it, as OpenSSH takes it; not with `BindAddress`")),
    ("CanonicalizeHostname", Honoured("")),
    ("CanonicalDomains", Honoured("")),
    ("CanonicalizeFallbackLocal", Honoured("")),
    ("CanonicalizeMaxDots", Honoured("")),
    ("CanonicalizePermittedCNAMEs", Honoured("")),
    ("RefuseConnection", Honoured("the host fails with the text")),
    ("ConnectTimeout", Honoured("covers the name and the key exchange too; 10 s without it")),
    ("ConnectionAttempts", NoEffect("`--retries` says how often; fewer tries than asked for end in the same error")),
    ("ServerAliveInterval", Honoured("")),
    ("ServerAliveCountMax", Honoured("")),
    ("TCPKeepAlive", NoEffect("the server is asked over SSH instead, more often")),
    ("User", Honoured("with tokens")),
    (
        "IdentityFile",
        Honoured(
            "of the defaults, `id_dsa` and `id_xmss` are not looked for; with a security key (`-sk`) only an agent signs, \
             the file names it",
        ),
    ),
    ("CertificateFile", Honoured("")),
    ("IdentitiesOnly", Honoured("")),
    ("IdentityAgent", Honoured("")),
    ("AddKeysToAgent", Honoured("but for `ask`, which counts as `no`")),
    ("ForwardAgent", Honoured("with `-A`, or by itself for one host; for more with `--forward-agent-to-all`")),
    ("PKCS11Provider", OpenSsh("")),
    ("SecurityKeyProvider", OpenSsh("unless there is an agent, which asks the device itself")),
    ("PreferredAuthentications", Honoured("")),
    ("PubkeyAuthentication", Honoured("`unbound` and `host-bound` as `yes`")),
    ("PasswordAuthentication", Honoured("")),
    ("KbdInteractiveAuthentication", Honoured("")),
    ("KbdInteractiveDevices", Honoured("")),
    ("HostbasedAuthentication", OpenSsh("")),
    ("EnableSSHKeysign", NoEffect("a part of HostbasedAuthentication, which the system's `ssh` does")),
    ("GSSAPIAuthentication", NoEffect("the native methods are tried; `--transport openssh` uses tickets")),
    ("GSSAPIDelegateCredentials", NoEffect(NO_GSSAPI)),
    ("GSSAPIKeyExchange", NoEffect(NO_GSSAPI)),
    ("GSSAPIRenewalForcesRekey", NoEffect(NO_GSSAPI)),
    ("GSSAPITrustDns", NoEffect(NO_GSSAPI)),
    ("GSSAPIClientIdentity", NoEffect(NO_GSSAPI)),
    ("GSSAPIKexAlgorithms", NoEffect(NO_GSSAPI)),
    ("GSSAPIServerIdentity", NoEffect(NO_GSSAPI)),
    ("NumberOfPasswordPrompts", Honoured("")),
    ("BatchMode", Honoured("")),
    ("StrictHostKeyChecking", Honoured("`ask` gathers the unknown keys of all hosts into one question")),
    ("UserKnownHostsFile", Honoured("")),
    ("GlobalKnownHostsFile", Honoured("")),
    ("KnownHostsCommand", Honoured("it has 10 seconds, in which no time of the host runs")),
    ("RevokedHostKeys", Honoured("lists of public keys and key revocation lists")),
    ("HostKeyAlias", Honoured("")),
    ("HashKnownHosts", Honoured("")),
    ("CheckHostIP", NoEffect("the key under the name is verified all the same")),
    ("UpdateHostKeys", Honoured("keys are added to and removed from the first `UserKnownHostsFile` only; `ask` counts as `no`, which `-v` says")),
    ("VerifyHostKeyDNS", NoEffect("a key that only the DNS vouches for counts as unknown: stricter than asked")),
    ("NoHostAuthenticationForLocalhost", Honoured("")),
    ("KexAlgorithms", Honoured("what this program has of them")),
    ("HostKeyAlgorithms", Honoured("what this program has of them")),
    ("Ciphers", Honoured("what this program has of them")),
    ("MACs", Honoured("what this program has of them")),
    ("PubkeyAcceptedAlgorithms", Honoured("what this program has of them")),
    ("HostbasedAcceptedAlgorithms", NoEffect("a part of HostbasedAuthentication, which the system's `ssh` does")),
    ("CASignatureAlgorithms", Honoured("what this program has of them")),
    ("RequiredRSASize", Honoured("")),
    ("WarnWeakCrypto", NoEffect("there is no such warning to suppress")),
    ("RekeyLimit", Honoured("between 16K and 64G; hourly without a time")),
    ("Compression", NoEffect("data goes uncompressed, which every server takes")),
    ("SendEnv", Honoured("")),
    ("SetEnv", Honoured("with tokens; `--env` wins")),
    ("RemoteCommand", NoEffect("the command of the run is the one that runs")),
    ("RequestTTY", NoEffect(NO_TERMINAL)),
    ("SessionType", NoEffect("a command is what runs")),
    ("StdinNull", NoEffect("commands read nothing unless `--stdin` is given")),
    ("ForkAfterAuthentication", NoEffect("a run stays in front until all hosts are done")),
    ("PermitLocalCommand", NoEffect("no command runs here for each host")),
    ("LocalCommand", NoEffect("no command runs here for each host")),
    ("IgnoreUnknown", Honoured("")),
    ("Tag", Honoured("")),
    ("LogLevel", Honoured("for what is said of it; `-v` and `-q` decide the rest")),
    ("LogVerbose", NoEffect("names places in OpenSSH's source; `MUX_LOG` is ours")),
    ("SyslogFacility", NoEffect("nothing is written to syslog")),
    ("VisualHostKey", NoEffect("fingerprints are printed as text")),
    ("FingerprintHash", NoEffect("fingerprints are printed as SHA256, as OpenSSH does by default")),
    ("VersionAddendum", NoEffect("only adds to what we call ourselves")),
    ("ChannelTimeout", NoEffect("`--timeout` and the probes decide")),
    ("ClearAllForwardings", NoEffect(NO_FORWARDING)),
    ("ControlMaster", NoEffect(NO_SHARING)),
    ("ControlPath", NoEffect(NO_SHARING)),
    ("ControlPersist", NoEffect(NO_SHARING)),
    ("DynamicForward", NoEffect(NO_FORWARDING)),
    ("EnableEscapeCommandline", NoEffect(NO_TERMINAL)),
    ("EscapeChar", NoEffect(NO_TERMINAL)),
    ("ExitOnForwardFailure", NoEffect(NO_FORWARDING)),
    ("ForwardX11", NoEffect(NO_FORWARDING)),
    ("ForwardX11Timeout", NoEffect(NO_FORWARDING)),
    ("ForwardX11Trusted", NoEffect(NO_FORWARDING)),
    ("GatewayPorts", NoEffect(NO_FORWARDING)),
    ("IPQoS", NoEffect("a hint for routers")),
    ("LocalForward", NoEffect(NO_FORWARDING)),
    ("ObscureKeystrokeTiming", NoEffect(NO_TERMINAL)),
    ("PermitRemoteOpen", NoEffect(NO_FORWARDING)),
    ("RemoteForward", NoEffect(NO_FORWARDING)),
    ("StreamLocalBindMask", NoEffect(NO_FORWARDING)),
    ("StreamLocalBindUnlink", NoEffect(NO_FORWARDING)),
    ("Tunnel", NoEffect(NO_FORWARDING)),
    ("TunnelDevice", NoEffect(NO_FORWARDING)),
    ("XAuthLocation", NoEffect(NO_FORWARDING)),
    ("AFSTokenPassing", NoEffect(OBSOLETE)),
    ("Cipher", NoEffect(OBSOLETE)),
    ("CompressionLevel", NoEffect(OBSOLETE)),
    ("FallBackToRsh", NoEffect(OBSOLETE)),
    ("GlobalKnownHostsFile2", NoEffect(OBSOLETE)),
    ("KerberosAuthentication", NoEffect(OBSOLETE)),
    ("KerberosTgtPassing", NoEffect(OBSOLETE)),
    ("Protocol", NoEffect(OBSOLETE)),
    ("RhostsAuthentication", NoEffect(OBSOLETE)),
    ("RhostsRSAAuthentication", NoEffect(OBSOLETE)),
    ("RSAAuthentication", NoEffect(OBSOLETE)),
    ("UseBlacklistedKeys", NoEffect(OBSOLETE)),
    ("UserKnownHostsFile2", NoEffect(OBSOLETE)),
    ("UsePrivilegedPort", NoEffect(OBSOLETE)),
    ("UseRoaming", NoEffect(OBSOLETE)),
    ("UseRsh", NoEffect(OBSOLETE)),
];

const HEAD: &str = "\
# Keywords of ssh_config(5)

What becomes of each keyword that OpenSSH 9.2 to 10.x knows. `mux config -G HOST` shows what a host's configuration
comes to, `--origin` also where each value stands. This file is what `mux config --keywords` prints.

`mux config -G` prints what `ssh -G` prints, in its form, but for this: lists of algorithms hold those that this program
has, and defaults are its own; HostbasedAcceptedAlgorithms, SecurityKeyProvider and XAuthLocation have none; and these keywords, which it reads and does nothing about, are left out whatever is written:
UNSHOWN.

- **honoured**: it does what ssh_config(5) says.
- **no effect**: it is accepted and changes nothing; the last column says why that is safe. `-v` names the lines.
- **openssh**: a host for which it is set is reached through the system's `ssh` (`--transport openssh`); without one
  that host fails, by file and line.

A keyword that is none of these fails every host, as in OpenSSH, unless `IgnoreUnknown` names it.

| keyword | other spellings | what becomes of it | remark |
| --- | --- | --- | --- |
";

/// The table, in Markdown.
#[must_use]
pub fn keywords() -> String {
    let mut text = HEAD.replace("UNSHOWN", &wrapped(&unshown()));
    for (name, fate) in FATES {
        let spellings = KEYWORDS.iter().filter(|(_, keyword)| keyword.name == *name);
        let others = spellings.filter(|(spelling, _)| *spelling != name.to_ascii_lowercase());
        let others: Vec<&str> = others.map(|(spelling, _)| *spelling).collect();
        let (what, remark) = match fate {
            Honoured(remark) => ("honoured", remark),
            NoEffect(remark) => ("no effect", remark),
            OpenSsh(remark) => ("openssh", remark),
        };
        let _infallible = writeln!(text, "| {name} | {} | {what} | {remark} |", others.join(", "));
    }
    text
}

/// What `ssh -G` prints and we don't. Lines that begin a block are nobody's values, and what OpenSSH itself does nothing
/// about it does not print.
fn unshown() -> Vec<&'static str> {
    let is_expected = |(name, fate): &&(&str, Fate)| match fate {
        NoEffect(why) => *why != OBSOLETE && !effective::is_shown(name),
        Honoured(_) | OpenSsh(_) => false,
    };
    FATES.iter().filter(is_expected).map(|(name, _)| *name).collect()
}

/// Names behind each other, on lines of readable length.
fn wrapped(names: &[&str]) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            let is_full = width + name.len() > LINE;
            text.push_str(if is_full { ",\n" } else { ", " });
            width = if is_full { 0 } else { width + 2 };
        }
        text.push_str(name);
        width += name.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_keyword_that_is_read_has_its_line_and_no_other_has() {
        let read: BTreeSet<&str> = KEYWORDS.iter().map(|(_, keyword)| keyword.name).collect();
        let told: BTreeSet<&str> = FATES.iter().map(|(name, _)| *name).collect();
        assert_eq!(read, told);
        assert_eq!(told.len(), FATES.len(), "a keyword stands twice");
    }

    #[test]
    fn what_has_no_effect_says_why_that_is_safe() {
        for (name, fate) in FATES {
            assert!(!matches!(fate, NoEffect("")), "{name}");
        }
    }

    #[test]
    fn the_file_says_what_the_table_says() {
        let file = include_str!("../../SSH_CONFIG.md");
        assert!(
            file == keywords(),
            "SSH_CONFIG.md is out of date: mux config --keywords > mux-ssh/SSH_CONFIG.md"
        );
    }
}
