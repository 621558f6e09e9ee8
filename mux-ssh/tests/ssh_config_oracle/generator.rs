//! Configurations made up from a number: the same ones on every machine. Decides what they say; never what it means.

use crate::installed::knows;
use crate::random::Random;

/// Keywords with values that OpenSSH 9.2 takes, several of them in odd but legal spellings. What no run honours and
/// nothing depends on is there too: it must hurt nobody.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "HostName",
        &[
            "10.0.0.1",
            "%h.example.org",
            "Real.Example.ORG",
            "a%%b",
            "\"quoted.org\"",
            "10.1",
            "FE80::1",
            "vm",
        ],
    ),
    ("User", &["root", "joe", "\"j d\"", "a\\ b"]),
    ("Port", &["22", "2222", "65535", "\"80\""]),
    (
        "IdentityFile",
        &[
            "/k/1",
            "/k/2",
            "~/.ssh/x",
            "\"/k/with blank\"",
            "none",
            "/k/%h-%r",
            "${HOME}/k",
        ],
    ),
    ("IdentitiesOnly", &["yes", "no", "TRUE", "False"]),
    (
        "IdentityAgent",
        &[
            "/run/agent",
            "none",
            "SSH_AUTH_SOCK",
            "~/a-%p",
            "$SSH_AUTH_SOCK",
            "${HOME}/agent",
        ],
    ),
    ("CertificateFile", &["/c/1", "/c/2", "~/c-%d", "none"]),
    (
        "AddKeysToAgent",
        &["yes", "no", "ask", "confirm", "confirm 5m", "1h", "30"],
    ),
    (
        "ForwardAgent",
        &[
            "yes",
            "no",
            "/run/agent",
            "~/agent",
            "$SSH_AUTH_SOCK",
            "${HOME}/x",
        ],
    ),
    (
        "UserKnownHostsFile",
        &[
            "/u/1",
            "/u/1 \"/u/2 3\"",
            "/u/a /u/b /u/c",
            "none",
            "~/known-%k",
            "/u/%n-%h",
        ],
    ),
    ("GlobalKnownHostsFile", &["/g/1", "/g/1 /g/2", "none"]),
    (
        "StrictHostKeyChecking",
        &["yes", "ask", "accept-new", "no", "off", "True", "false"],
    ),
    ("HostKeyAlias", &["alias1", "Alias2"]),
    (
        "ConnectTimeout",
        &["10", "1m", "1h30m", "2M5", "none", "1w2d", "0"],
    ),
    ("ServerAliveInterval", &["15", "1m30s", "0"]),
    ("ServerAliveCountMax", &["1", "7", "0"]),
    ("BatchMode", &["yes", "no"]),
    ("PubkeyAuthentication", &["yes", "no", "unbound", "host-bound"]),
    ("PasswordAuthentication", &["yes", "no"]),
    ("KbdInteractiveAuthentication", &["yes", "no"]),
    ("ChallengeResponseAuthentication", &["no"]),
    ("KbdInteractiveDevices", &["pam", "bsdauth,pam"]),
    ("NumberOfPasswordPrompts", &["1", "5"]),
    ("HostbasedAuthentication", &["yes", "no"]),
    ("GSSAPIAuthentication", &["yes", "no"]),
    ("GSSAPIDelegateCredentials", &["yes"]),
    ("PreferredAuthentications", &["publickey", "publickey,password"]),
    ("PKCS11Provider", &["/lib/p11.so", "none"]),
    ("SecurityKeyProvider", &["/lib/sk.so"]),
    (
        "KexAlgorithms",
        &[
            "curve25519-sha256",
            "ecdh-sha2-nistp256,curve25519-sha256",
            "-ecdh*",
            "^ecdh-sha2-nistp521",
        ],
    ),
    (
        "HostKeyAlgorithms",
        &[
            "ssh-ed25519",
            "rsa-sha2-512,ssh-ed25519",
            "-rsa*",
            "+ssh-rsa",
            "^rsa-sha2-256",
        ],
    ),
    (
        "Ciphers",
        &[
            "aes128-ctr",
            "aes256-gcm@openssh.com,aes128-ctr",
            "-aes*",
            "+3des-cbc",
            "^aes192-ctr",
        ],
    ),
    (
        "MACs",
        &[
            "hmac-sha2-256",
            "hmac-sha2-512,hmac-sha2-256",
            "-hmac-sha2-512*",
            "^hmac-sha2-512",
        ],
    ),
    (
        "PubkeyAcceptedAlgorithms",
        &[
            "ssh-ed25519",
            "rsa-sha2-256,ssh-ed25519",
            "-ecdsa*",
            "^rsa-sha2-512",
        ],
    ),
    ("PubkeyAcceptedKeyTypes", &["rsa-sha2-512"]),
    ("HostbasedAcceptedAlgorithms", &["ssh-ed25519"]),
    ("CASignatureAlgorithms", &["ssh-ed25519,rsa-sha2-512"]),
    ("RequiredRSASize", &["2048", "3072"]),
    ("CheckHostIP", &["yes", "no"]),
    ("UpdateHostKeys", &["yes", "no", "ask"]),
    ("VerifyHostKeyDNS", &["yes", "no", "ask"]),
    (
        "KnownHostsCommand",
        &["/bin/keys %H", "/bin/keys \"a b\"  c", "none"],
    ),
    ("RevokedHostKeys", &["/r/1", "none"]),
    ("NoHostAuthenticationForLocalhost", &["yes", "no"]),
    ("HashKnownHosts", &["yes", "no"]),
    ("FingerprintHash", &["md5", "SHA256"]),
    ("VisualHostKey", &["yes"]),
    ("LogLevel", &["QUIET", "error", "Debug", "DEBUG3", "verbose"]),
    ("AddressFamily", &["any", "inet", "inet6"]),
    ("BindAddress", &["127.0.0.1", "localhost"]),
    ("BindInterface", &["lo"]),
    (
        "ProxyJump",
        &[
            "none",
            "a",
            "joe@b:33",
            "a,b:22,joe@[::1]:44",
            "ssh://joe@c:55",
            "10.0.0.1 # why",
        ],
    ),
    (
        "ProxyCommand",
        &["none", "nc %h %p", "ssh -W \"%h:%p\"  x", "= x"],
    ),
    ("ProxyUseFdpass", &["yes", "no"]),
    ("SendEnv", &["LANG LC_*", "A", "-LC*", "-LANG B"]),
    ("SetEnv", &["A=1", "A=1 B=\"x y\" A=2", "C="]),
    (
        "RekeyLimit",
        &["1G", "1.5K 1h", "default none", "512M none", "16 10"],
    ),
    ("Compression", &["yes", "no"]),
    (
        "RemoteCommand",
        &["none", "echo \"%h\"  ${HOME} # x", "tmux attach"],
    ),
    ("LocalCommand", &["none", "echo %h"]),
    ("PermitLocalCommand", &["yes"]),
    ("RequestTTY", &["no", "force", "auto"]),
    ("SessionType", &["none", "subsystem", "default"]),
    ("StdinNull", &["yes"]),
    ("TCPKeepAlive", &["no"]),
    ("KeepAlive", &["yes"]),
    ("ConnectionAttempts", &["3"]),
    ("ControlPath", &["~/.ssh/c-%r", "none", "/tmp/%r@%h:%p-%l-%L-%i"]),
    ("ControlMaster", &["auto"]),
    ("ControlPersist", &["10m"]),
    ("CanonicalizeFallbackLocal", &["yes"]),
    ("CanonicalizeMaxDots", &["0", "2"]),
    // With others `ssh -G` wants each name to have an address.
    ("CanonicalizePermittedCNAMEs", &["none"]),
    ("CanonicalDomains", &["none", "x.invalid", "X.Invalid y.invalid."]),
    ("ClearAllForwardings", &["yes"]),
    ("ExitOnForwardFailure", &["no"]),
    ("GatewayPorts", &["yes"]),
    ("EnableEscapeCommandline", &["yes"]),
    ("EscapeChar", &["none", "^x"]),
    ("LocalForward", &["8080 web:80"]),
    ("DynamicForward", &["1080"]),
    ("ForwardX11Trusted", &["yes"]),
    ("IPQoS", &["none"]),
    ("Tunnel", &["no"]),
    ("IgnoreUnknown", &["Foo*", "Foo*,bar"]),
];

/// What OpenSSH 10.0 takes besides.
const NEWER_SETTINGS: &[(&str, &[&str])] = &[
    ("Tag", &["one", "two", "\"two\"", "%n-x", "none"]),
    (
        "ChannelTimeout",
        &["session=5m", "session=1h direct-tcpip=10s", "*=0", "none"],
    ),
    ("ObscureKeystrokeTiming", &["yes", "no", "interval:80"]),
    ("VersionAddendum", &["none", "me", "two words"]),
    ("User", &["%n-${HOME}", "%u", "x%%y", "\"%n\""]),
    ("SetEnv", &["A=%n B=${HOME}", "A=${HOME}"]),
    (
        "Include",
        &[
            "/missing/%n",
            "~/missing-%r",
            "${HOME}/missing-*.conf",
            "${NO_SUCH_VARIABLE}",
            "~no-such-user/x",
        ],
    ),
    ("CertificateFile", &["%d/%n", "${HOME}/c"]),
    ("ProxyJump", &["%n@x", "a.b-c_d", "joe@b:22,[::1]"]),
    ("RevokedHostKeys", &["/r/%n", "~/r"]),
    ("GSSAPIKeyExchange", &["yes"]),
    ("HostKeyAlgorithms", &["^ssh-ed25519,rsa-sha2-256", "-*nistp*"]),
    (
        "KexAlgorithms",
        &["mlkem768x25519-sha256", "-mlkem*", "^curve25519-sha256"],
    ),
    ("CanonicalDomains", &["none", "y.invalid"]),
    (
        "Ciphers",
        &["^aes256-gcm@openssh.com,chacha20-poly1305@openssh.com"],
    ),
];

/// The same for lines that are wrong.
const NEWER_WRONG: &[&str] = &[
    "Match tagged",
    "Match localnetwork x",
    "Match localnetwork 10.0.0.1/8",
    "Match version",
    "Match sessiontype",
    "Match command",
    "Tag",
    "Tag a b",
    "ChannelTimeout none session=1m",
    "VersionAddendum",
    "User %z",
    "User a\"b",
    "User ${NO_SUCH_VARIABLE}",
    "SetEnv A=${NO_SUCH_VARIABLE}",
    "Include /missing/%z",
    "Match invalid-user",
    "Match host a=b user",
];

const NEWER_BLOCKS: &[&str] = &[
    "Match tagged one",
    "Match tagged=tw?,!two host web1",
    "Match !tagged \"\"",
    "Match tagged \"\"",
    "Match tagged ",
    "Match localnetwork 127.0.0.0/8",
    "Match localnetwork 203.0.113.0/24,2001:db8::/32",
    "Match !localnetwork 203.0.113.7",
    "Match version OpenSSH_1*",
    "Match version OpenSSH_9.* host web1",
    "Match !version *9.9*",
    "Match sessiontype shell",
    "Match sessiontype exec,none",
    "Match !sessiontype subsystem",
    "Match command uptime*",
    "Match command \"uptime -p\"",
    "Match command \"\"",
    "Match !command \"\" sessiontype exec",
    "Match command=*,!uptime*",
    "Match exec \"test %j = x\"",
    "Match \"host\" \"web1\"",
    "Match host \"web1,other\" # comment",
];

/// Lines that OpenSSH refuses, or takes only after `IgnoreUnknown`.
const WRONG: &[&str] = &[
    "Foo bar",
    "Bar yes",
    "Port 0",
    "Port x",
    "User",
    "User a b",
    "BatchMode maybe",
    "User \"a",
    "LogLevel loud",
    "ConnectTimeout 1x",
    "ServerAliveCountMax -1",
    "Host \"\"",
    "Ciphers a,,b",
    "HostName a%z",
    "IdentityAgent $A-B",
    "UserKnownHostsFile /a none",
    "RequiredRSASize many",
    "Match",
    "Match host",
    "Match all host a",
    "Match hosts a",
    "ProxyJump a,,b",
    "ProxyJump a:99999",
    "RekeyLimit 15",
    "RekeyLimit 1X",
    "AddKeysToAgent ask 5m",
    "SetEnv A",
    "SendEnv A=b",
    "AddressFamily inet5",
    "SessionType shell",
    "CanonicalDomains a..b",
    "CanonicalizePermittedCNAMEs a",
    "StrictHostKeyChecking maybe",
    "UserKnownHostsFile \"\"",
];

const BLOCKS: &[&str] = &[
    "Host web*",
    "Host *",
    "Host web1 db*",
    "Host !web1 *",
    "Host db.example.org",
    "Host WEB1",
    "host=other",
    "Host 10.0.0.1",
    "Host *.example.org",
    "Host real.*",
    "Host w?b1 !WEB?",
    "Host \"other\" # comment",
    "Host !*",
    "Match all",
    "Match final all",
    "Match final",
    "match ALL",
    "Match host web*",
    "Match host=WEB1 user root",
    "Match !host db* originalhost *",
    "Match originalhost web1,other",
    "Match user joe",
    "Match !user root",
    "Match user=j*,!joe",
    "Match localuser *",
    "Match !localuser nobody host *.org,w*",
    "Match exec true",
    "Match !exec \"test %n = web1\"",
    "Match exec \"test %h = real.example.org -a %p = 22\" host *",
    "Match host other exec \"test '%r' = joe\"",
    "Match exec \"test %k-%L-%u-%i = x\" user root",
    "Match canonical",
    "Match !final",
    "Match !canonical host *",
    "Match final host *.example.org",
    "Match host other all",
    "Match !all",
];

/// A file of a few blocks; `includes` are what it may include, and `wrong`: a line in forty is none.
pub(crate) fn file(random: &mut Random, includes: &[&str], wrong: bool) -> String {
    let mut text = String::new();
    let newer = knows(10, 0);
    for _ in 0..random.below(16) {
        let line = match random.below(if wrong { 40 } else { 39 }) {
            0..4 if newer => random.pick(NEWER_BLOCKS).to_owned(),
            0..9 => random.pick(BLOCKS).to_owned(),
            9..12 if !includes.is_empty() => format!("Include {}", random.pick(includes)),
            12 => "# comment".to_owned(),
            // Names take their time: not in every file.
            13 if random.below(6) == 0 => {
                format!("CanonicalizeHostname {}", random.pick(&["yes", "always", "no"]))
            }
            39 if newer && random.below(2) == 0 => random.pick(NEWER_WRONG).to_owned(),
            39 => random.pick(WRONG).to_owned(),
            30.. if newer => setting(random, NEWER_SETTINGS),
            _ => setting(random, SETTINGS),
        };
        text.push_str(random.pick(&["", "  ", "\t"]));
        text.push_str(&line);
        text.push_str(random.pick(&["\n", "\n", " \n", "\n\n", "\r\n"]));
    }
    text
}

fn setting(random: &mut Random, settings: &[(&str, &[&str])]) -> String {
    let (keyword, values) = settings
        .get(random.below(settings.len()))
        .expect("below its length");
    let value = random.pick(values);
    // What is for a shell goes to the end of its line.
    let takes_comment = !keyword.ends_with("Command") && *keyword != "ProxyJump";
    match random.below(5) {
        0 => format!("{}={value}", keyword.to_uppercase()),
        1 if takes_comment => format!("{} = {value} # why", keyword.to_lowercase()),
        2 => format!("\"{keyword}\" {value}"),
        _ => format!("{keyword} {value}"),
    }
}
