//! `cargo xtask tidy`: the project's own rules, which no other tool knows. Findings read `file:line: [rule] message`.
//!
//! It decides which files are looked at; `tidy/rules.rs` holds the rules. It never changes a file.

mod layout;
mod manifests;
mod rules;
mod scan;
mod source;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{paths, style};
use source::{File, Tree};

/// Where rules look. Everything else (target directories, notes, other people's check-outs) is none of their business.
const ROOTS: &[&str] = &[
    "Cargo.toml",
    "mux-proto",
    "mux-core",
    "mux-ssh",
    "mux-cli",
    "xtask",
    "fuzz",
];

/// What a rule has to say about a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    file: String,
    line: usize,
    message: String,
}

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    if let Some(argument) = arguments.next()? {
        return Err(argument.unexpected().into());
    }
    let tree = read_tree(paths::root())?;
    let mut count = 0;
    for rule in rules::RULES {
        for Finding { file, line, message } in rule.findings(&tree) {
            count += 1;
            println!(
                "{file}:{line}: {} {message}",
                style::bad(&format!("[{}]", rule.name))
            );
        }
    }
    if count > 0 {
        println!("{count} findings in {} files", tree.files().len());
        return Ok(ExitCode::FAILURE);
    }
    println!(
        "{} rules hold in {} files",
        rules::RULES.len(),
        tree.files().len()
    );
    Ok(ExitCode::SUCCESS)
}

fn read_tree(root: &Path) -> Result<Tree> {
    let mut files = Vec::new();
    for name in ROOTS {
        let path = root.join(name);
        if path.exists() {
            read_below(root, &path, &mut files)?;
        }
    }
    files.sort_by(|a: &File, b| a.path.cmp(&b.path));
    Ok(Tree::new(files))
}

fn read_below(root: &Path, path: &Path, files: &mut Vec<File>) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if path.is_dir() {
        if name == "target" || name == "corpus" || name == "seeds" {
            return Ok(());
        }
        for entry in path.read_dir().with_context(|| path.display().to_string())? {
            read_below(root, &entry?.path(), files)?;
        }
    } else if name.ends_with(".rs") || name == "Cargo.toml" {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let relative = path
            .strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned();
        files.push(File::parse(relative, text));
    }
    Ok(())
}
