//! Generated configurations against the installed `ssh -G`: what it says about a host, we say too, and what it
//! refuses, we refuse. (`apt install openssh-client` provides it.)

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mux_ssh::config::{
    ConfigError, ConfigFiles, Facts, HostConfig, HostKeyPolicy, Local, LogLevel, Need, Origin, Resolver,
    Sourced, Step,
};

const CONFIGURATIONS: u64 = 250;
const HOSTS: [&str; 4] = ["web1", "db.example.org", "WEB1", "other"];

/// xorshift64*: the same configurations on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.get(self.below(from.len())).unwrap()
    }
}

/// Keywords with values that OpenSSH takes, several of them in odd but legal spellings.
const SETTINGS: &[(&str, &[&str])] = &[
    (
        "HostName",
        &[
            "10.0.0.1",
            "%h.example.org",
            "Real.Example.ORG",
            "a%%b",
            "\"quoted.org\"",
        ],
    ),
    ("User", &["root", "joe", "\"j d\"", "a\\ b"]),
    ("Port", &["22", "2222", "65535", "\"80\""]),
    (
        "IdentityFile",
        &["/k/1", "/k/2", "~/.ssh/x", "\"/k/with blank\"", "none"],
    ),
    ("IdentitiesOnly", &["yes", "no", "TRUE", "False"]),
    ("IdentityAgent", &["/run/agent", "none", "SSH_AUTH_SOCK"]),
    (
        "UserKnownHostsFile",
        &["/u/1", "/u/1 \"/u/2 3\"", "/u/a /u/b /u/c"],
    ),
    ("GlobalKnownHostsFile", &["/g/1", "/g/1 /g/2"]),
    (
        "StrictHostKeyChecking",
        &["yes", "ask", "accept-new", "no", "off"],
    ),
    ("HostKeyAlias", &["alias1", "alias2"]),
    (
        "ConnectTimeout",
        &["10", "1m", "1h30m", "2M5", "none", "1w2d", "0"],
    ),
    ("ServerAliveInterval", &["15", "1m30s", "0"]),
    ("ServerAliveCountMax", &["1", "7", "0"]),
    ("BatchMode", &["yes", "no"]),
    ("PubkeyAuthentication", &["yes", "no", "unbound", "host-bound"]),
    ("PreferredAuthentications", &["publickey", "publickey,password"]),
    (
        "KexAlgorithms",
        &["curve25519-sha256", "ecdh-sha2-nistp256,curve25519-sha256"],
    ),
    ("HostKeyAlgorithms", &["ssh-ed25519", "rsa-sha2-512,ssh-ed25519"]),
    ("Ciphers", &["aes128-ctr", "aes256-gcm@openssh.com,aes128-ctr"]),
    ("MACs", &["hmac-sha2-256", "hmac-sha2-512,hmac-sha2-256"]),
    (
        "PubkeyAcceptedAlgorithms",
        &["ssh-ed25519", "rsa-sha2-256,ssh-ed25519"],
    ),
    ("PubkeyAcceptedKeyTypes", &["rsa-sha2-512"]),
    ("RequiredRSASize", &["2048", "3072"]),
    ("LogLevel", &["QUIET", "error", "Debug", "DEBUG3", "verbose"]),
    ("HashKnownHosts", &["yes", "no"]),
    ("SendEnv", &["LANG LC_*"]),
    ("ProxyJump", &["none"]),
    ("GSSAPIAuthentication", &["yes"]),
    ("ForwardX11Trusted", &["yes"]),
    ("IgnoreUnknown", &["Foo*", "Foo*,bar"]),
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
    "UserKnownHostsFile",
    "RequiredRSASize many",
];

const HOST_LINES: &[&str] = &[
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
    "Match all",
    "Match final all",
    "Match final",
    "match ALL",
    "Host \"other\" # comment",
    "Host !*",
    "Match host web*",
    "Match host=WEB1 user root",
    "Match !host db* originalhost *",
    "Match originalhost web1,other",
    "Match user joe",
    "Match !user root",
    "Match localuser *",
    "Match exec true",
    "Match !exec \"test %n = web1\"",
    "Match exec \"test %h = real.example.org -a %p = 22\" host *",
    "Match host other exec \"test %r = joe\"",
    "Match canonical",
    "Match !final",
    "Match final host *.example.org",
    "Match host other all",
    "Match !all",
];

/// A file of a few blocks; `includes` are what it may include.
fn file(random: &mut Random, includes: &[&str], wrong: bool) -> String {
    let mut text = String::new();
    for _ in 0..random.below(14) {
        let line = match random.below(if wrong { 40 } else { 39 }) {
            0..9 => random.pick(HOST_LINES).to_owned(),
            9..12 if !includes.is_empty() => format!("Include {}", random.pick(includes)),
            12 => "# comment".to_owned(),
            39 => random.pick(WRONG).to_owned(),
            _ => {
                let (keyword, values) = SETTINGS.get(random.below(SETTINGS.len())).unwrap();
                let value = random.pick(values);
                match random.below(4) {
                    0 => format!("{}={value}", keyword.to_uppercase()),
                    1 => format!("{} = {value} # why", keyword.to_lowercase()),
                    _ => format!("{keyword} {value}"),
                }
            }
        };
        text.push_str(random.pick(&["", "  ", "\t"]));
        text.push_str(&line);
        text.push_str(random.pick(&["\n", "\n", " \n", "\n\n", "\r\n"]));
    }
    text
}

/// What `ssh -G` prints, by keyword; `None` if it fails.
fn oracle(arguments: &[&str]) -> Option<BTreeMap<String, Vec<String>>> {
    let output = Command::new("ssh")
        .arg("-G")
        .args(arguments)
        .env("SSH_AUTH_SOCK", "/run/test-agent")
        .output()
        .unwrap_or_else(|error| panic!("ssh cannot be run ({error}): apt install openssh-client"));
    output.status.success().then(|| {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
            values
                .entry(keyword.to_owned())
                .or_default()
                .push(value.to_owned());
        }
        values
    })
}

/// The user's name and home as `ssh` sees them.
fn user_and_home() -> (String, String) {
    let defaults = oracle(&["-F", "none", "host"]).expect("ssh -G works at all");
    let first = |keyword: &str| defaults.get(keyword).unwrap().first().unwrap().clone();
    let known = first("userknownhostsfile");
    (
        first("user"),
        known.split_once("/.ssh/known_hosts").unwrap().0.to_owned(),
    )
}

struct Case<'a> {
    main: &'a Path,
    options: Vec<String>,
    user: &'a str,
    home: &'a str,
}

impl Case<'_> {
    fn resolver(&self) -> Resolver {
        Resolver::new(Local {
            home: self.home.to_owned(),
            user: self.user.to_owned(),
            variables: [("SSH_AUTH_SOCK".to_owned(), "/run/test-agent".to_owned())].into(),
            files: ConfigFiles::Only(self.main.to_str().unwrap().to_owned()),
            options: self.options.clone(),
            ..Local::default()
        })
    }

    fn ours(&self, resolver: &mut Resolver, host: &str) -> Result<HostConfig, ConfigError> {
        let facts = Facts {
            host: host.to_owned(),
            ..Facts::default()
        };
        loop {
            match resolver.resolve(&facts)? {
                Step::Done(config) => return Ok(config),
                Step::Need(Need::File(path)) => {
                    let content = fs::read(&path).map_err(|error| error.kind());
                    resolver.supply_file(path, content.as_deref().map_err(|&kind| kind));
                }
                Step::Need(Need::Glob(pattern)) => {
                    let (directory, suffix) = pattern.split_once("/*").unwrap();
                    let entries = fs::read_dir(directory).unwrap();
                    let paths = entries.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned());
                    let found = paths.filter(|path| path.ends_with(suffix)).collect();
                    resolver.supply_glob(pattern, found);
                }
                Step::Need(Need::Exec(command)) => {
                    let status = Command::new("sh").args(["-c", &command]).status();
                    resolver.supply_exec(command, Ok(status.unwrap().success()));
                }
                Step::Need(other @ (Need::Home(_) | Need::Addresses | Need::Version | Need::Lookup(_))) => {
                    resolver.decline(other)
                }
            }
        }
    }

    fn theirs(&self, host: &str) -> Option<BTreeMap<String, Vec<String>>> {
        let mut arguments = vec!["-F", self.main.to_str().unwrap()];
        arguments.extend(self.options.iter().flat_map(|option| ["-o", option]));
        arguments.push(host);
        oracle(&arguments)
    }

    /// What our answer looks like in the words of `ssh -G`; keywords that it leaves out are empty.
    fn in_their_words(&self, config: &HostConfig) -> Vec<(&'static str, String)> {
        let yes_no = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
        let list =
            |list: &Option<Sourced<String>>| list.as_ref().map_or(String::new(), |list| list.value.clone());
        let level = config
            .log_level
            .as_ref()
            .map_or("INFO", |level| match level.value {
                LogLevel::Quiet => "SILENT",
                LogLevel::Fatal => "FATAL",
                LogLevel::Error => "ERROR",
                LogLevel::Info => "INFO",
                LogLevel::Verbose => "VERBOSE",
                LogLevel::Debug1 => "DEBUG",
                LogLevel::Debug2 => "DEBUG2",
                LogLevel::Debug3 => "DEBUG3",
            });
        let policy = match config.host_key_policy.value {
            HostKeyPolicy::Strict | HostKeyPolicy::Ask => "strict",
            HostKeyPolicy::AcceptNew => "accept-new",
            HostKeyPolicy::Off => "false",
        };
        vec![
            ("hostname", config.hostname.value.clone()),
            ("user", config.user.value.clone()),
            ("port", config.port.value.to_string()),
            ("identitiesonly", yes_no(config.identities_only)),
            (
                "userknownhostsfile",
                config.user_known_hosts_files.value.join(" "),
            ),
            (
                "globalknownhostsfile",
                config.global_known_hosts_files.value.join(" "),
            ),
            ("stricthostkeychecking", policy.to_owned()),
            ("hostkeyalias", list(&config.host_key_alias)),
            (
                "connecttimeout",
                config
                    .connect_timeout
                    .value
                    .map_or(0, |time| time.as_secs())
                    .to_string(),
            ),
            (
                "serveraliveinterval",
                config.server_alive_interval.value.as_secs().to_string(),
            ),
            (
                "serveralivecountmax",
                config.server_alive_count_max.value.to_string(),
            ),
            ("batchmode", yes_no(config.batch_mode)),
            ("pubkeyauthentication", yes_no(config.pubkey_authentication.value)),
            (
                "preferredauthentications",
                list(&config.preferred_authentications),
            ),
            ("kexalgorithms", list(&config.kex_algorithms)),
            ("hostkeyalgorithms", list(&config.host_key_algorithms)),
            ("ciphers", list(&config.ciphers)),
            ("macs", list(&config.macs)),
            (
                "pubkeyacceptedalgorithms",
                list(&config.pubkey_accepted_algorithms),
            ),
            ("requiredrsasize", config.required_rsa_size.value.to_string()),
            ("loglevel", level.to_owned()),
            ("hashknownhosts", yes_no(config.hash_known_hosts)),
        ]
    }

    fn compare(&self, config: &HostConfig, theirs: &BTreeMap<String, Vec<String>>, context: &str) {
        for (keyword, ours) in self.in_their_words(config) {
            let theirs = theirs
                .get(keyword)
                .and_then(|values| values.first())
                .cloned()
                .unwrap_or_default();
            let theirs = match (keyword, theirs.as_str()) {
                ("stricthostkeychecking", "ask" | "true") => "strict".to_owned(),
                ("pubkeyauthentication", "false") => "no".to_owned(),
                ("pubkeyauthentication", _) => "yes".to_owned(),
                ("connecttimeout", "none") => "0".to_owned(),
                // Debian's default for BatchMode.
                ("serveraliveinterval", "300") if config.batch_mode && ours == "0" => ours.clone(),
                // Lists that nobody set are printed with OpenSSH's defaults.
                (
                    "kexalgorithms" | "hostkeyalgorithms" | "ciphers" | "macs" | "pubkeyacceptedalgorithms",
                    _,
                ) if ours.is_empty() => String::new(),
                _ => theirs,
            };
            assert_eq!(ours, theirs, "{keyword} {context}");
        }
        self.compare_identities(config, theirs, context);
    }

    fn compare_identities(&self, config: &HostConfig, theirs: &BTreeMap<String, Vec<String>>, context: &str) {
        let named = theirs.get("identityfile").map(Vec::as_slice).unwrap_or_default();
        let theirs_agent = theirs.get("identityagent").and_then(|values| values.first());
        let agent = match theirs_agent.map(String::as_str) {
            None | Some("SSH_AUTH_SOCK") => Some("/run/test-agent"),
            Some("none") => None,
            path => path,
        };
        assert_eq!(
            config.identity_agent.value.as_deref(),
            agent,
            "identityagent {context}"
        );
        let named = named
            .iter()
            .filter(|file| *file != "none")
            .map(|file| match file.strip_prefix('~') {
                Some(rest) => format!("{}{rest}", self.home),
                None => file.clone(),
            });
        let named: Vec<String> = named.collect();
        let ours: Vec<String> = config
            .identity_files
            .iter()
            .map(|file| file.value.clone())
            .collect();
        if config
            .identity_files
            .first()
            .is_some_and(|file| file.origin == Origin::Default)
        {
            assert!(
                ours.iter().all(|file| named.contains(file)),
                "{ours:?} of {named:?} {context}"
            );
        } else {
            assert_eq!(ours, named, "identityfile {context}");
        }
    }
}

#[test]
fn generated_configurations_mean_what_openssh_says_they_mean() {
    let directory = Directory::new();
    let (user, home) = user_and_home();
    let (mut agreed, mut refused) = (0, 0);
    for seed in 1..=CONFIGURATIONS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let at = |name: &str| directory.path.join(name).to_str().unwrap().to_owned();
        let (one, two, all) = (at("one.conf"), at("two.conf"), at("*.conf"));
        let wrong = seed % 3 == 0;
        fs::write(&one, file(&mut random, &[&two, "/missing/file"], wrong)).unwrap();
        fs::write(&two, file(&mut random, &[], wrong)).unwrap();
        let main = directory.path.join("main");
        fs::write(
            &main,
            file(&mut random, &[&one, &two, &all, "/missing/file"], wrong),
        )
        .unwrap();
        let options: &[&str] = match random.below(4) {
            0 => &["Port=77", "User joe"],
            1 => &["hostname = %h.opt", "IdentityFile=/k/o"],
            2 if wrong => &["Foo=1"],
            _ => &[],
        };
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let case = Case {
            main: &main,
            options,
            user: &user,
            home: &home,
        };
        let mut resolver = case.resolver();
        for host in HOSTS {
            let read = |path: &str| fs::read_to_string(path).unwrap();
            let context = format!(
                "for {host}, seed {seed}, options {:?}\n--- main\n{}\n--- one\n{}\n--- two\n{}",
                case.options,
                read(main.to_str().unwrap()),
                read(&one),
                read(&two)
            );
            match (case.ours(&mut resolver, host), case.theirs(host)) {
                (Ok(config), Some(theirs)) => {
                    case.compare(&config, &theirs, &context);
                    agreed += 1;
                }
                (Err(_), None) => refused += 1,
                (Ok(_), None) => panic!("OpenSSH refuses what we take {context}"),
                (Err(error), Some(_)) => panic!("we refuse what OpenSSH takes: {error} {context}"),
            }
        }
    }
    // Neither side of the comparison may be empty.
    assert!(agreed > 500 && refused > 20, "{agreed} agreed, {refused} refused");
}

/// A directory of its own, removed at the end.
struct Directory {
    path: PathBuf,
}

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("ssh-config-oracle-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).unwrap();
    }
}
