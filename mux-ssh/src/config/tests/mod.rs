//! The configuration of hosts against tables of files: one world of files, one `check`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod canonical;
mod distributions;
mod errors;
mod fields;
mod index;
mod lines;
mod matching;
mod random;
mod tokens;

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;

use super::*;

/// Files by path, as a machine would have them. The user is `me`, at home in `/home/me`.
#[derive(Default)]
pub(super) struct World {
    pub(super) files: BTreeMap<String, Result<Vec<u8>, ErrorKind>>,
    pub(super) local: Local,
    /// Commands that succeed; all others fail.
    pub(super) succeeding: Vec<&'static str>,
    /// Names that have an address, and where they lead.
    pub(super) names: BTreeMap<&'static str, &'static str>,
}

impl World {
    /// A machine on which the user's file says this.
    pub(super) fn user(config: &str) -> Self {
        Self::default().with("/home/me/.ssh/config", config)
    }

    pub(super) fn with(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.insert(path.to_owned(), Ok(content.as_ref().to_vec()));
        self
    }

    pub(super) fn without(mut self, path: &str, kind: ErrorKind) -> Self {
        self.files.insert(path.to_owned(), Err(kind));
        self
    }

    pub(super) fn options(mut self, options: &[&str]) -> Self {
        self.local.options = options.iter().map(|&option| option.to_owned()).collect();
        self
    }

    pub(super) fn resolver(&self) -> Resolver {
        let variables = [
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("NAME", "value"),
            ("EMPTY", ""),
            ("MINE", "/mine"),
        ];
        Resolver::new(Local {
            home: "/home/me".to_owned(),
            user: "me".to_owned(),
            uid: 1000,
            host: "here.example.org".to_owned(),
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ..self.local.clone()
        })
    }

    /// Answers one need and says which it was.
    pub(super) fn answer(&self, resolver: &mut Resolver, need: Need) {
        match need {
            Need::File(path) => {
                let content =
                    self.files
                        .get(&path)
                        .map_or(Err(ErrorKind::NotFound), |content| match content {
                            Ok(content) => Ok(content.as_slice()),
                            Err(kind) => Err(*kind),
                        });
                resolver.supply_file(path.clone(), content);
            }
            Need::Glob(pattern) => {
                let matches = |path: &&String| {
                    crate::pattern::matches(
                        path.as_bytes(),
                        pattern.as_bytes(),
                        crate::pattern::Case::Sensitive,
                    )
                };
                // In the wrong order on purpose: sorting is the resolver's.
                let found = self.files.keys().rev().filter(matches).cloned().collect();
                resolver.supply_glob(pattern.clone(), found);
            }
            Need::Exec(command) => {
                let succeeded = match command.as_str() {
                    "kill -9 $$" => Err(ExecFailure::Killed),
                    command => Ok(self.succeeding.contains(&command)),
                };
                resolver.supply_exec(command, succeeded);
            }
            Need::Home(user) => {
                let home = (user == "joe").then(|| "/home/joe".to_owned());
                resolver.supply_home(user, home);
            }
            Need::Addresses => {
                let addresses = ["127.0.0.1", "192.168.7.2", "2001:db8::7"];
                resolver.supply_addresses(addresses.map(|address| address.parse().unwrap()).to_vec());
            }
            Need::Version => resolver.supply_version(Some("OpenSSH_9.2p1".to_owned())),
            Need::Lookup(name) => {
                let found = self.names.get(name.as_str()).map(|&name| name.to_owned());
                resolver.supply_lookup(name, found);
            }
        }
    }

    pub(super) fn resolve_with(
        &self,
        resolver: &mut Resolver,
        facts: &Facts,
    ) -> Result<HostConfig, ConfigError> {
        loop {
            match resolver.resolve(facts)? {
                Step::Done(config) => return Ok(config),
                Step::Need(need) => self.answer(resolver, need),
            }
        }
    }

    pub(super) fn resolve(&self, host: &str) -> Result<HostConfig, ConfigError> {
        self.resolve_with(
            &mut self.resolver(),
            &Facts {
                host: host.to_owned(),
                ..Facts::default()
            },
        )
    }
}

/// The values of a host, one a keyword.
fn values(config: &HostConfig) -> Vec<(&'static str, String)> {
    let text =
        |list: &Option<Sourced<String>>| list.as_ref().map_or(String::new(), |list| list.value.clone());
    let identities: Vec<&str> = config
        .identity_files
        .iter()
        .map(|file| file.value.as_str())
        .collect();
    let seconds = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_secs()).to_string();
    let level = config
        .log_level
        .as_ref()
        .map(|level| format!("{:?}", level.value));
    vec![
        ("hostname", config.hostname.value.clone()),
        ("user", config.user.value.clone()),
        ("port", config.port.value.to_string()),
        ("identity", identities.join(" ")),
        ("identitiesonly", config.identities_only.to_string()),
        (
            "agent",
            config.identity_agent.value.clone().unwrap_or("none".to_owned()),
        ),
        ("known", config.user_known_hosts_files.value.join(" ")),
        ("globalknown", config.global_known_hosts_files.value.join(" ")),
        ("policy", format!("{:?}", config.host_key_policy.value)),
        ("alias", text(&config.host_key_alias)),
        ("connect", seconds(config.connect_timeout.value)),
        ("alive", seconds(Some(config.server_alive_interval.value))),
        ("alivemax", config.server_alive_count_max.value.to_string()),
        ("batch", config.batch_mode.to_string()),
        ("pubkey", config.pubkey_authentication.value.to_string()),
        ("methods", text(&config.preferred_authentications)),
        ("kex", text(&config.kex_algorithms)),
        ("hostkeys", text(&config.host_key_algorithms)),
        ("ciphers", text(&config.ciphers)),
        ("macs", text(&config.macs)),
        ("accepted", text(&config.pubkey_accepted_algorithms)),
        ("rsasize", config.required_rsa_size.value.to_string()),
        ("log", level.unwrap_or_default()),
        ("hash", config.hash_known_hosts.to_string()),
    ]
}

/// Everything that differs from the defaults, one `keyword value` a line.
fn summary(config: &HostConfig) -> Vec<String> {
    let default = values(&World::default().resolve(&config.host).unwrap());
    let differing = values(config)
        .into_iter()
        .zip(default)
        .filter(|(value, default)| value != default);
    differing
        .map(|((keyword, value), _)| format!("{keyword} {value}"))
        .collect()
}

/// Resolves `host` and compares what differs from the defaults.
pub(super) fn check(world: &World, host: &str, expected: &[&str]) {
    match world.resolve(host) {
        Ok(config) => assert_eq!(summary(&config), expected, "for {host}"),
        Err(error) => panic!("{host}: {error}"),
    }
}

/// Resolves `host` and compares the error's text.
pub(super) fn check_error(world: &World, host: &str, expected: &str) {
    match world.resolve(host) {
        Ok(config) => panic!("{host}: {config:?} instead of {expected}"),
        Err(error) => assert_eq!(error.to_string(), expected, "for {host}"),
    }
}

#[test]
fn each_file_is_asked_for_once_and_reused_for_all_hosts() {
    let world = World::user("Include conf.d/*\nHost *\n  User root\n")
        .with("/home/me/.ssh/conf.d/a", "Host a\n  Port 1\n")
        .with("/home/me/.ssh/conf.d/b", "Host b\n  Port 2\n");
    let mut resolver = world.resolver();
    let mut asked: HashMap<Need, u32> = HashMap::new();
    for host in ["a", "b", "c"] {
        let facts = Facts {
            host: host.to_owned(),
            ..Facts::default()
        };
        while let Step::Need(need) = resolver.resolve(&facts).unwrap() {
            *asked.entry(need.clone()).or_default() += 1;
            world.answer(&mut resolver, need);
        }
    }
    assert_eq!(asked.len(), 5, "{asked:?}");
    assert!(asked.values().all(|&count| count == 1), "{asked:?}");
}

#[test]
fn ten_thousand_hosts_resolve_in_microseconds_each() {
    let blocks: String = (0..200)
        .map(|i| format!("Host web{i} www{i}.example.org\n  Port {}\n", i + 1))
        .collect();
    let world = World::user(&format!(
        "{blocks}Host *\n  User root\n  IdentityFile ~/.ssh/%h\n"
    ));
    let mut resolver = world.resolver();
    let resolve = |resolver: &mut Resolver, i: u32| {
        world
            .resolve_with(
                resolver,
                &Facts {
                    host: format!("web{i}"),
                    ..Facts::default()
                },
            )
            .unwrap()
    };
    resolve(&mut resolver, 0);
    let before = std::time::Instant::now();
    for i in 0..10_000 {
        let config = resolve(&mut resolver, i);
        assert_eq!(
            config.port.value,
            u16::try_from(if i < 200 { i + 1 } else { 22 }).unwrap()
        );
    }
    // Unoptimised and on a busy machine: two orders of magnitude above what it takes.
    assert!(before.elapsed().as_secs() < 60, "{:?}", before.elapsed());
}

#[test]
fn literal_names_are_those_without_wildcards_from_all_files() {
    let world = World::user("Host a b* !c\nInclude more\nHost d\nMatch all\n")
        .with("/home/me/.ssh/more", "Host e\n Include more\n")
        .with("/etc/ssh/ssh_config", "Host f ?\n");
    let mut resolver = world.resolver();
    let names = loop {
        match resolver.literal_names().unwrap() {
            Step::Done(names) => break names,
            Step::Need(need) => world.answer(&mut resolver, need),
        }
    };
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "d", "e", "f"]);
}
