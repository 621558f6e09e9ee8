//! `bench knownhosts`: what hashed names in known_hosts cost a run on many hosts, against the same run with the names in
//! plain text. Keys of three types a host, in no order, with the configuration that this machine's distribution ships.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::cost::{self, Run};
use super::embedded::{self, Targets};
use super::options::Options;
use super::scale::verdict;
use super::statistics::Summary;
use super::table;
use crate::cleanup::Directory;
use crate::{command, paths, style};

const HOSTS: usize = 3_000;
const REMOTE: &str = "hostname";

/// Milliseconds of processor time that hashed names may add.
const MOST: f64 = 50.0;

/// What the distribution of this machine says to every client.
const DISTRIBUTION: &str = "/etc/ssh/ssh_config";

/// Whether a run knows what the last one found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    None,
    Kept,
}

/// One kind of run.
#[derive(Debug)]
struct Case {
    name: &'static str,
    known_hosts: PathBuf,
    memory: Memory,
    runs: Vec<Run>,
}

pub(super) fn run(options: &Options) -> Result<Value> {
    let directory = Directory::new("mux-bench-")?;
    let targets = embedded::start(&directory, HOSTS, 64)?;
    let plain = directory.join("known_hosts.plain");
    let hashed = directory.join("known_hosts.hashed");
    let lines = write_known_hosts(&targets, &plain, &hashed)?;
    println!(
        "{}",
        style::bold(&format!(
            "\nknownhosts: `{REMOTE}` on {HOSTS} targets in one process, {lines} lines, median [range] of {} runs",
            options.runs
        ))
    );
    let case = |name, known_hosts: &Path, memory| Case {
        name,
        known_hosts: known_hosts.to_owned(),
        memory,
        runs: Vec::new(),
    };
    let mut cases = [
        case("plain, first run", &plain, Memory::None),
        case("hashed, first run", &hashed, Memory::None),
        case("plain, with memory", &plain, Memory::Kept),
        case("hashed, with memory", &hashed, Memory::Kept),
    ];
    // One round more than asked for: the first warms caches and fills memories, and is thrown away.
    for round in 0..=options.runs {
        for case in &mut cases {
            let run = once(&directory, &targets, case)?;
            if round > 0 {
                case.runs.push(run);
            }
        }
    }
    show(&cases)
}

fn show(cases: &[Case; 4]) -> Result<Value> {
    let mut rows = vec![
        ["run", "wall ms", "CPU ms", "peak MiB"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut results = Map::new();
    for case in cases {
        let wanted = ["wall ms", "CPU ms", "peak MiB"];
        let metrics = cost::METRICS
            .iter()
            .filter(|metric| wanted.contains(&metric.title));
        let cell = |metric: &cost::Metric| metric.summary(&case.runs).map(|summary| metric.show(summary));
        let cells = metrics.map(|metric| cell(metric).unwrap_or_default());
        rows.push(std::iter::once(case.name.to_owned()).chain(cells).collect());
        results.insert(case.name.to_owned(), cost::to_json(&case.runs));
    }
    table::print(&rows);
    let [plain_first, hashed_first, plain, hashed] = cases;
    for (name, plain, hashed) in [
        ("with memory", plain, hashed),
        ("on the first run", plain_first, hashed_first),
    ] {
        let added = cpu(hashed)? - cpu(plain)?;
        verdict(
            added <= MOST,
            &format!("hashed names add {added:.0} ms of processor time {name} (at most {MOST})"),
        );
        results.insert(format!("added ms {name}"), json!(added));
    }
    Ok(Value::Object(results))
}

fn cpu(case: &Case) -> Result<f64> {
    let summary = Summary::of(case.runs.iter().filter_map(Run::cpu_ms));
    Ok(summary.context("nothing was measured")?.median)
}

fn once(directory: &Directory, targets: &Targets, case: &Case) -> Result<Run> {
    let config = directory.join("config");
    std::fs::write(
        &config,
        format!(
            "User demo\nPort {}\nIdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile {}\n\
             GlobalKnownHostsFile /dev/null\nInclude {DISTRIBUTION}\n",
            targets.port,
            targets.key.display(),
            case.known_hosts.display()
        ),
    )?;
    let names = directory.join("addresses");
    let mut addresses = String::new();
    for index in 0..HOSTS {
        writeln!(addresses, "{}", Targets::address(index)?)?;
    }
    std::fs::write(&names, addresses)?;
    let fresh = tempfile::tempdir_in(directory.path())?;
    let state = match case.memory {
        Memory::None => fresh.path().to_owned(),
        Memory::Kept => case.known_hosts.with_extension("state"),
    };
    let mut command = Command::new(paths::release("mux"));
    command.arg("run").arg("-F").arg(config).arg("--hosts").arg(names);
    command
        .args(["--", REMOTE])
        .env("XDG_STATE_HOME", state)
        .env_remove("SSH_AUTH_SOCK");
    let run = cost::measure(directory.path(), &command)?;
    let answers = run.stdout.lines().count();
    ensure!(
        answers == HOSTS,
        "{answers} of {HOSTS} targets answered\n{}",
        run.stderr
    );
    Ok(run)
}

/// Two files of the same lines: each target's key, and keys of two other types, as a scan of a fleet leaves them.
/// OpenSSH's own tool hashes the second.
fn write_known_hosts(targets: &Targets, plain: &Path, hashed: &Path) -> Result<usize> {
    let known = std::fs::read_to_string(&targets.known_hosts)?;
    let mut numbers = Numbers(1);
    let mut lines = Vec::new();
    for line in known.lines() {
        let (name, _) = line.split_once(' ').context("a line without a key")?;
        lines.push(line.to_owned());
        lines.push(format!("{name} {}", numbers.rsa()));
        lines.push(format!("{name} {}", numbers.ecdsa()));
    }
    // No order that would help anybody (Fisher and Yates).
    for at in (1..lines.len()).rev() {
        lines.swap(at, numbers.below(at + 1));
    }
    let text = lines.join("\n") + "\n";
    std::fs::write(plain, &text)?;
    std::fs::write(hashed, &text)?;
    command::run_quietly(Command::new("ssh-keygen").args(["-q", "-H", "-f"]).arg(hashed))?;
    let check = std::fs::read_to_string(hashed)?;
    ensure!(
        check.lines().all(|line| line.starts_with("|1|")),
        "ssh-keygen left names in plain text"
    );
    Ok(lines.len())
}

/// Numbers without any meaning, the same in every run (SplitMix64).
#[derive(Debug)]
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).expect("a length fits 64 bits");
        usize::try_from(self.next() % limit).expect("it is below a length")
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    /// RSA of 3072 bits; nobody has its other half.
    fn rsa(&mut self) -> String {
        let mut modulus = self.bytes(384);
        if let [first, .., last] = modulus.as_mut_slice() {
            *first |= 0x80;
            *last |= 1;
        }
        // An mpint is positive: a zero goes before a high bit.
        modulus.insert(0, 0);
        line("ssh-rsa", &[&[1, 0, 1], &modulus])
    }

    fn ecdsa(&mut self) -> String {
        let mut point = self.bytes(65);
        if let Some(first) = point.first_mut() {
            // Uncompressed.
            *first = 4;
        }
        line("ecdsa-sha2-nistp256", &[b"nistp256", &point])
    }
}

/// `type base64`, of a blob with these fields behind the type.
fn line(name: &str, fields: &[&[u8]]) -> String {
    let mut blob = Vec::new();
    for field in std::iter::once(&name.as_bytes()).chain(fields) {
        let length = u32::try_from(field.len()).expect("keys are short");
        blob.extend_from_slice(&length.to_be_bytes());
        blob.extend_from_slice(field);
    }
    format!("{name} {}", base64(&blob))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |bits: u32| char::from(LETTERS.get(bits as usize % 64).copied().unwrap_or(b'='));
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            if at <= chunk.len() {
                text.push(letter(bits >> (18 - 6 * at)));
            } else {
                text.push('=');
            }
        }
    }
    text
}
