//! `cargo xtask fuzz`: builds the fuzz binary with coverage instrumentation on a stable compiler and runs its targets.
//!
//! It decides flags, time and where findings go. The targets are listed by the binary itself, fuzz/src/main.rs.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lexopt::{Arg, ValueExt};

use crate::{command, paths, style};

/// What cargo-fuzz passes, less the sanitizer, which needs a nightly compiler and finds what `forbid(unsafe_code)` rules out.
const INSTRUMENTATION: &str = "--cfg fuzzing -C codegen-units=1 -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares";

/// Enough to run through every seed and some way beyond, in CI too.
pub(crate) const DEFAULT_SECONDS: u64 = 20;
/// One per core of the smallest machine that we care for.
const AT_ONCE: usize = 2;
/// The target that must fail, see fuzz/src/main.rs; found in under a second, usually.
const CANARY: &str = "canary";
const CANARY_SECONDS: u64 = 60;
/// Any number but 0, which stands for "draw one".
const TEST_SEED: u32 = 1;
/// Inputs up to this size are kept in the repository: larger ones find little that small ones don't, and cost every clone.
const MAX_KEPT: u64 = 512;
/// A decoder that needs longer than this for 4 KiB is a finding, even on a busy machine.
const INPUT_TIMEOUT_SECONDS: u64 = 10;

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    let mut seconds = DEFAULT_SECONDS;
    let mut seed = None;
    let mut wanted = Vec::new();
    let (mut only_list, mut keep) = (false, false);
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("seconds") => seconds = arguments.value()?.parse()?,
            Arg::Long("seed") => seed = Some(arguments.value()?.parse()?),
            Arg::Long("list") => only_list = true,
            Arg::Long("keep") => keep = true,
            Arg::Value(name) => wanted.push(name.string()?),
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
        }
    }
    let fuzzer = Fuzzer::build()?;
    if only_list {
        fuzzer.targets.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = wanted.iter().find(|name| !fuzzer.targets.contains(name)) {
        bail!("no target `{unknown}`; there are {}", fuzzer.targets.join(", "));
    }
    let targets = if wanted.is_empty() {
        fuzzer.targets.clone()
    } else {
        wanted
    };
    if keep {
        targets.iter().try_for_each(|target| fuzzer.keep(target))?;
    } else {
        fuzzer.fuzz(&targets, seconds, seed)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All targets for `seconds` each. Part of `cargo xtask test`: what passed once for a commit has to pass again, so each
/// target starts from the same seed. The search for what no run has seen is `cargo xtask fuzz`, which draws one.
pub(crate) fn all(seconds: u64) -> Result<()> {
    let fuzzer = Fuzzer::build()?;
    fuzzer.fuzz(&fuzzer.targets, seconds, Some(TEST_SEED))
}

struct Fuzzer {
    binary: PathBuf,
    /// Where corpora grow and findings are kept; survives runs.
    directory: PathBuf,
    /// Without the canary.
    targets: Vec<String>,
}

impl Fuzzer {
    fn build() -> Result<Self> {
        let directory = paths::target().join("fuzz");
        let host = host()?;
        // With an explicit target the flags apply to the code under test and not to build scripts.
        command::run(
            command::cargo([
                "build",
                "--quiet",
                "--release",
                "--manifest-path",
                "fuzz/Cargo.toml",
                "--target",
                &host,
                "--target-dir",
            ])
            .arg(&directory)
            .env("RUSTFLAGS", INSTRUMENTATION),
        )?;
        let binary = directory.join(host).join("release/mux-fuzz");
        let names = command::output(&mut Command::new(&binary))?;
        let targets = names
            .lines()
            .filter(|name| *name != CANARY)
            .map(str::to_owned)
            .collect();
        Ok(Self {
            binary,
            directory,
            targets,
        })
    }

    fn fuzz(&self, targets: &[String], seconds: u64, seed: Option<u32>) -> Result<()> {
        self.prove_itself()?;
        let queue = Mutex::new(targets.iter());
        let next = || queue.lock().expect("no holder of this lock can panic").next();
        let worker = || -> Result<()> {
            while let Some(target) = next() {
                println!("{target:<16} {}", self.fuzz_one(target, seconds, seed)?);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("a worker returns its errors"))
        })
    }

    /// A fuzzer that finds nothing must first show that it could.
    fn prove_itself(&self) -> Result<()> {
        // From nothing each time: a corpus of near misses would find it without coverage.
        std::fs::remove_dir_all(self.below("corpus", CANARY)?)?;
        let log = self.log(CANARY)?;
        let status = self.command(CANARY, CANARY_SECONDS, None, &log)?.status()?;
        let text = read(&log)?;
        ensure!(
            !status.success() && text.contains("the canary was found"),
            "the canary was not found: coverage does not work\n{text}"
        );
        Ok(())
    }

    fn fuzz_one(&self, target: &str, seconds: u64, seed: Option<u32>) -> Result<String> {
        let log = self.log(target)?;
        let mut command = self.command(target, seconds, seed, &log)?;
        let status = command.status().with_context(|| command::line(&command))?;
        let text = read(&log)?;
        if !status.success() {
            let lines: Vec<&str> = text.lines().collect();
            let tail = lines
                .get(lines.len().saturating_sub(40)..)
                .unwrap_or_default()
                .join("\n");
            bail!(
                "fuzz target {target} failed; its input is named below, give it to\n  MUX_FUZZ_TARGET={target} {} FILE\n{tail}",
                self.binary.display()
            );
        }
        let statistic = |name: &str| last_number_after(&text, name).unwrap_or_default();
        Ok(format!(
            "{} runs, {} edges, {} MiB, {}",
            statistic("stat::number_of_executed_units:"),
            statistic(" cov: "),
            statistic("stat::peak_rss_mb:"),
            style::duration(Duration::from_secs(seconds)),
        ))
    }

    /// Renews the inputs that the repository keeps: of all that were found, the smallest set that reaches as much.
    fn keep(&self, target: &str) -> Result<()> {
        let merged = self.below("merged", target)?;
        std::fs::remove_dir_all(&merged)?;
        let merged = self.below("merged", target)?;
        let kept = paths::root().join("fuzz/corpus").join(target);
        let mut command = Command::new(&self.binary);
        command
            .env("MUX_FUZZ_TARGET", target)
            .arg("-merge=1")
            // Which code is reached, not how often: the repository keeps hundreds of inputs, not thousands.
            .arg("-use_counters=0")
            .arg(format!("-max_len={MAX_KEPT}"))
            .args([&merged, &self.below("corpus", target)?])
            .args(inputs(target));
        command::run_quietly(&mut command)?;
        if kept.exists() {
            std::fs::remove_dir_all(&kept)?;
        }
        std::fs::create_dir_all(&kept).with_context(|| kept.display().to_string())?;
        let (mut files, mut bytes) = (0, 0);
        for entry in std::fs::read_dir(&merged)? {
            let entry = entry?;
            bytes += std::fs::copy(entry.path(), kept.join(entry.file_name()))?;
            files += 1;
        }
        println!("{target:<16} {files} inputs, {bytes} bytes");
        Ok(())
    }

    fn command(&self, target: &str, seconds: u64, seed: Option<u32>, log: &Path) -> Result<Command> {
        let corpus = self.below("corpus", target)?;
        let findings = self.below("findings", target)?;
        let log = std::fs::File::create(log)?;
        let mut command = Command::new(&self.binary);
        command
            .env("MUX_FUZZ_TARGET", target)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={INPUT_TIMEOUT_SECONDS}"))
            .arg(format!("-artifact_prefix={}/", findings.display()))
            .arg("-print_final_stats=1")
            .args(seed.map(|seed| format!("-seed={seed}")))
            .arg(corpus)
            .args(inputs(target))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    fn log(&self, target: &str) -> Result<PathBuf> {
        Ok(self.below("logs", "")?.join(target))
    }

    fn below(&self, kind: &str, target: &str) -> Result<PathBuf> {
        let path = self.directory.join(kind).join(target);
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// What the repository has for a target: inputs that people wrote, and those that fuzzing has found.
fn inputs(target: &str) -> Vec<PathBuf> {
    let below = |kind| paths::root().join("fuzz").join(kind).join(target);
    ["seeds", "corpus"]
        .map(below)
        .into_iter()
        .filter(|directory| directory.exists())
        .collect()
}

/// The triple that this machine's compiler builds for.
fn host() -> Result<String> {
    let version = command::output(Command::new("rustc").arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("`rustc -vV` names no host")?;
    Ok(host.to_owned())
}

/// Panic messages echo input, so a log need not be UTF-8.
fn read(log: &Path) -> Result<String> {
    let bytes = std::fs::read(log).with_context(|| log.display().to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn last_number_after(text: &str, name: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(name)?;
    let digits: String = rest
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_from_the_last_line_that_has_them() {
        assert_eq!(
            last_number_after("#1 cov: 10 ft: 1\n#2 cov: 11 ft: 2\n", " cov: "),
            Some(11)
        );
    }
}
