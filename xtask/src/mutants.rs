//! `cargo xtask mutants`: breaks the product in the places where a fault would be a hole, and shows that tests notice.
//!
//! It decides how a mutation is made, built and judged. What is broken, and which tests must fail for it, stands in
//! `table.rs`. The work tree is not touched: mutations are made in a copy below the target directory.

mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use lexopt::{Arg, ValueExt};

use self::table::{MUTATIONS, Mutation, Suite};
use crate::{command, paths, style};

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    let mut wanted = Vec::new();
    let mut only_list = false;
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("list") => only_list = true,
            Arg::Value(name) => wanted.push(name.string()?),
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
        }
    }
    let all = || MUTATIONS.iter().map(|mutation| mutation.name);
    if only_list {
        all().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = wanted.iter().find(|name| !all().any(|known| known == *name)) {
        bail!(
            "no mutation `{unknown}`; there are {}",
            all().collect::<Vec<_>>().join(", ")
        );
    }
    let chosen: Vec<&Mutation> = MUTATIONS
        .iter()
        .filter(|mutation| wanted.is_empty() || wanted.iter().any(|name| name == mutation.name))
        .collect();
    let tree = Tree::copy()?;
    tree.prove_itself(&chosen)?;
    let mut survivors = Vec::new();
    for mutation in chosen {
        if !tree.is_caught(mutation)? {
            survivors.push(mutation.name);
        }
    }
    ensure!(
        survivors.is_empty(),
        "no test notices, or not all that should: {}",
        survivors.join(", ")
    );
    Ok(ExitCode::SUCCESS)
}

/// A copy of everything that git knows of or would take.
struct Tree {
    root: PathBuf,
    /// Not the workspace's: to cargo both copies of a crate are the same, and a broken one must never pass for it.
    target: PathBuf,
}

impl Tree {
    fn copy() -> Result<Self> {
        let directory = paths::target().join("mutants");
        let root = directory.join("tree");
        if root.exists() {
            std::fs::remove_dir_all(&root).with_context(|| root.display().to_string())?;
        }
        let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let files = command::output(Command::new("git").args(listing).current_dir(paths::root()))?;
        for file in files.split('\0').filter(|file| !file.is_empty()) {
            let (from, to) = (paths::root().join(file), root.join(file));
            // What was deleted and not committed is still listed.
            if from.is_file() {
                copy(&from, &to).with_context(|| to.display().to_string())?;
            }
        }
        let target = directory.join("target");
        Ok(Self { root, target })
    }

    /// The tests that are to notice must pass while nothing is broken.
    fn prove_itself(&self, mutations: &[&Mutation]) -> Result<()> {
        let suites: BTreeSet<Suite> = mutations.iter().map(|mutation| mutation.suite).collect();
        for suite in suites {
            let tests: BTreeSet<&str> = mutations
                .iter()
                .filter(|mutation| mutation.suite == suite)
                .flat_map(|mutation| mutation.caught_by)
                .copied()
                .collect();
            let tests: Vec<&str> = tests.into_iter().collect();
            self.build(suite)?;
            let outcome = self.test(suite, &tests)?;
            ensure!(
                outcome.failed.is_empty() && outcome.passed.len() == tests.len(),
                "of {tests:?} {:?} fail, and {} are there, before anything is broken",
                outcome.failed,
                outcome.passed.len() + outcome.failed.len()
            );
        }
        Ok(())
    }

    /// Breaks one thing, runs the tests that should notice, and mends it again.
    fn is_caught(&self, mutation: &Mutation) -> Result<bool> {
        let mut originals = Vec::new();
        for edit in mutation.edits {
            let path = self.root.join(edit.file);
            let original = read(&path)?;
            let count = original.matches(edit.from).count();
            ensure!(
                count == 1,
                "{}: the text to change stands {count} times in {}",
                mutation.name,
                edit.file
            );
            write(&path, &original.replace(edit.from, edit.to))?;
            originals.push((path, original));
        }
        let outcome = self
            .build(mutation.suite)
            .and_then(|()| self.test(mutation.suite, mutation.caught_by));
        // The last edit first: two may change one file.
        for (path, original) in originals.into_iter().rev() {
            write(&path, &original)?;
        }
        let outcome = outcome.with_context(|| format!("mutation {}", mutation.name))?;
        let all = outcome.failed.len() == mutation.caught_by.len();
        let word = if all {
            style::good("caught")
        } else {
            style::bad("survived")
        };
        println!("{word} {}: {}", mutation.name, outcome.failed.join(", "));
        for test in &outcome.passed {
            println!("       not noticed by {test}");
        }
        Ok(all)
    }

    fn build(&self, suite: Suite) -> Result<()> {
        command::run_quietly(self.cargo(suite).arg("--no-run"))
    }

    fn test(&self, suite: Suite, tests: &[&str]) -> Result<Outcome> {
        let mut command = self.cargo(suite);
        command
            .args(["--no-fail-fast", "--", "--exact"])
            .args(tests)
            .stdin(Stdio::null());
        // It fails where it should: what it prints is looked at instead.
        let output = command.output().with_context(|| command::line(&command))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Outcome::read(&text))
    }

    fn cargo(&self, suite: Suite) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(["test", "--locked"])
            .args(suite.arguments())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("RUST_BACKTRACE", "0")
            .current_dir(&self.root);
        command
    }
}

/// Which tests passed and which failed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    passed: Vec<String>,
    failed: Vec<String>,
}

impl Outcome {
    fn read(text: &str) -> Self {
        let mut outcome = Self::default();
        for line in text.lines() {
            let Some((name, result)) = line
                .strip_prefix("test ")
                .and_then(|rest| rest.split_once(" ... "))
            else {
                continue;
            };
            match result {
                "ok" => outcome.passed.push(name.to_owned()),
                _ => outcome.failed.push(name.to_owned()),
            }
        }
        outcome
    }
}

/// With the present time: cargo must build what may last have been built broken.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(directory) = to.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::copy(from, to).map(drop)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_and_failed_tests_are_told_apart() {
        let text = "\nrunning 2 tests\ntest a::b ... ok\ntest c has been running for over 60 seconds\ntest c ... FAILED\n";
        let expected = Outcome {
            passed: vec!["a::b".to_owned()],
            failed: vec!["c".to_owned()],
        };
        assert_eq!(Outcome::read(text), expected);
    }

    #[test]
    fn every_text_to_change_stands_in_its_file_once() {
        let edits = MUTATIONS.iter().flat_map(|mutation| {
            assert!(!mutation.caught_by.is_empty(), "{}", mutation.name);
            mutation.edits.iter().map(|edit| (mutation.name, edit))
        });
        let stale: Vec<_> = edits
            .filter(|(_, edit)| {
                let text = read(&paths::root().join(edit.file)).expect("the file is there");
                text.matches(edit.from).count() != 1
            })
            .map(|(name, edit)| format!("{name}: not once in {}: {}", edit.file, edit.from))
            .collect();
        assert_eq!(stale, Vec::<String>::new());
    }
}
