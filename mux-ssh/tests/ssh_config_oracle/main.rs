//! Generated configurations against the installed `ssh -G`: what it says about a host, we say too, and what it
//! refuses, we refuse. (`apt install openssh-client` provides it.) `SSH_CONFIG_CASES=20000` asks for as many questions
//! instead of a few hundred, `SSH_CONFIG_SEED=7` begins with that seed, `SSH_CONFIG_SSH=/path/to/ssh` asks another `ssh`:
//! what a newer one knows is asked of it, too (`cargo xtask interop --debian trixie` does that).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod compare;
mod generator;
mod installed;
mod random;

use std::fs;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compare::{Values, compare};
use installed::{AGENT, VERSION, knows, oracle};
use mux_ssh::config::{ConfigError, ConfigFiles, Effective, Facts, Local, Need, Purpose, Resolver, Step};
use random::Random;

const QUESTIONS: u64 = 400;
const HOSTS: [&str; 4] = ["web1", "db.example.org", "WEB1", "other"];

/// This machine and user as `ssh` sees them.
fn here() -> Local {
    let defaults = oracle(&["-F", "none", "-o", "ControlPath=/%l/%i", "host"]).expect("ssh -G works at all");
    let first = |keyword: &str| defaults.get(keyword).unwrap().first().unwrap().clone();
    let known = first("userknownhostsfile");
    let control = first("controlpath");
    let (machine, uid) = control.strip_prefix('/').unwrap().rsplit_once('/').unwrap();
    let home = known.split_once("/.ssh/known_hosts").unwrap().0.to_owned();
    let variables = [
        ("SSH_AUTH_SOCK".to_owned(), AGENT.to_owned()),
        ("HOME".to_owned(), std::env::var("HOME").unwrap()),
    ];
    Local {
        home,
        user: first("user"),
        uid: uid.parse().unwrap(),
        host: machine.to_owned(),
        variables: variables.into(),
        ..Local::default()
    }
}

/// Answers one question of the resolver as this machine would.
fn answer(resolver: &mut Resolver, need: Need) {
    match need {
        Need::File(path) => {
            let content = fs::read(&path).map_err(|error| error.kind());
            resolver.supply_file(path, content.as_deref().map_err(|&kind| kind));
        }
        Need::Glob(pattern) => {
            let (start, suffix) = pattern.split_once('*').unwrap();
            let (directory, _) = start.rsplit_once('/').unwrap();
            let entries = fs::read_dir(directory).unwrap();
            let paths = entries.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned());
            let found = paths
                .filter(|path| path.starts_with(start) && path.ends_with(suffix))
                .collect();
            resolver.supply_glob(pattern, found);
        }
        Need::Exec(command) => {
            let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
            let mut command_line = Command::new(shell);
            command_line
                .args(["-c", &command])
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            let status = command_line.stderr(Stdio::null()).status().unwrap();
            resolver.supply_exec(command, Ok(status.success()));
        }
        Need::Lookup(name) => {
            let found = (name.as_str(), 0)
                .to_socket_addrs()
                .ok()
                .and_then(|mut found| found.next());
            let canonical = found.map(|_| name.clone());
            resolver.supply_lookup(name, canonical);
        }
        Need::Version => resolver.supply_version(Some(VERSION.clone())),
        // The one interface that is everywhere.
        Need::Addresses => resolver.supply_addresses(vec!["127.0.0.1".parse().unwrap()]),
        other @ Need::Home(_) => resolver.decline(other),
    }
}

/// What we say.
fn ours(resolver: &mut Resolver, host: &str, command: &[&str]) -> Result<Vec<Effective>, ConfigError> {
    let facts = Facts {
        host: host.to_owned(),
        purpose: match command {
            [] => Purpose::Shell,
            words => Purpose::Command(words.join(" ").into()),
        },
        ..Facts::default()
    };
    loop {
        match resolver.effective(&facts)? {
            Step::Done(lines) => return Ok(lines),
            Step::Need(need) => answer(resolver, need),
        }
    }
}

/// Files and options that belong together.
struct Case {
    directory: Directory,
    options: Vec<String>,
    command: &'static [&'static str],
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let directory = Directory::new(seed);
        let at = |name: &str| directory.path.join(name).to_str().unwrap().to_owned();
        let (one, two, all, env) = (at("one.conf"), at("two.conf"), at("*.conf"), at("three"));
        let wrong = seed.is_multiple_of(4);
        // A command is nothing to an older version.
        let command: &[&str] = match seed % 3 {
            0 if knows(10, 0) => &["uptime", "-p"],
            _ => &[],
        };
        let write = |path: &str, text: String| fs::write(path, text).unwrap();
        write(&env, generator::file(&mut random, &[], false));
        write(&two, generator::file(&mut random, &[&env], wrong));
        write(
            &one,
            generator::file(&mut random, &[&two, "/missing/file"], wrong),
        );
        let includes = [one.as_str(), &two, &all, &env, "/missing/file"];
        write(&at("main"), generator::file(&mut random, &includes, wrong));
        let options: &[&str] = match random.below(6) {
            0 => &["Port=77", "User joe"],
            1 => &["hostname = %h.opt", "IdentityFile=/k/o"],
            2 => &["ProxyJump=x", "SendEnv=OPTION"],
            3 if wrong => &["Foo=1"],
            _ => &[],
        };
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Self {
            directory,
            options,
            command,
        }
    }

    fn main(&self) -> String {
        self.directory.path.join("main").to_str().unwrap().to_owned()
    }

    fn resolver(&self, here: &Local) -> Resolver {
        Resolver::new(Local {
            files: ConfigFiles::Only(self.main()),
            options: self.options.clone(),
            ..here.clone()
        })
    }

    fn theirs(&self, host: &str) -> Option<Values> {
        let main = self.main();
        let mut arguments = vec!["-F", &main];
        arguments.extend(self.options.iter().flat_map(|option| ["-o", option]));
        arguments.push(host);
        arguments.extend(self.command);
        oracle(&arguments)
    }

    /// Everything that is needed to see a difference again.
    fn context(&self, seed: u64, host: &str) -> String {
        let mut text = format!(
            "for {host}, seed {seed}, options {:?}, command {:?}",
            self.options, self.command
        );
        for name in ["main", "one.conf", "two.conf", "three"] {
            let content = fs::read_to_string(self.directory.path.join(name)).unwrap();
            text.push_str(&format!("\n--- {name}\n{content}"));
        }
        text
    }
}

fn has(lines: &[Effective], keyword: &str) -> bool {
    lines.iter().any(|line| line.keyword == keyword)
}

/// Compares the answers about each host; how many agreed, and how many were refused on both sides.
fn check(seed: u64, here: &Local, defaults: &[Effective]) -> (u64, u64) {
    let case = Case::new(seed);
    let mut resolver = case.resolver(here);
    let (mut agreed, mut refused) = (0, 0);
    for host in HOSTS {
        let context = case.context(seed, host);
        match (ours(&mut resolver, host, case.command), case.theirs(host)) {
            (Ok(lines), Some(theirs)) => {
                compare(&lines, &theirs, defaults, &context);
                agreed += 1;
            }
            (Err(_), None) => refused += 1,
            // Of two commands `ssh` runs none; here the one that was typed wins.
            (Ok(lines), None) if !case.command.is_empty() && has(&lines, "remotecommand") => {}
            (Ok(_), None) => panic!("OpenSSH refuses what we take {context}"),
            (Err(error), Some(_)) => panic!("we refuse what OpenSSH takes: {error} {context}"),
        }
    }
    (agreed, refused)
}

#[test]
fn generated_configurations_mean_what_openssh_says_they_mean() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let questions = number("SSH_CONFIG_CASES").unwrap_or(QUESTIONS);
    let first = number("SSH_CONFIG_SEED").unwrap_or(1);
    let here = here();
    let mut resolver = Resolver::new(Local {
        files: ConfigFiles::None,
        ..here.clone()
    });
    let defaults = ours(&mut resolver, "host", &[]).unwrap();
    let (mut agreed, mut refused) = (0, 0);
    for seed in first..first + questions.div_ceil(HOSTS.len() as u64) {
        let (agreeing, refusing) = check(seed, &here, &defaults);
        agreed += agreeing;
        refused += refusing;
    }
    // Neither side of the comparison may be empty.
    assert!(
        agreed > questions / 2 && refused > questions / 50,
        "{agreed} agreed, {refused} refused"
    );
}

/// A directory of its own, removed at the end.
struct Directory {
    path: PathBuf,
}

impl Directory {
    fn new(seed: u64) -> Self {
        let name = format!("ssh-config-oracle-{}-{seed}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self { path }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _best_effort: Result<(), std::io::Error> = fs::remove_dir_all(Path::new(&self.path));
    }
}
