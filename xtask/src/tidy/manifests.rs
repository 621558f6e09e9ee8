//! Rules on manifests: who may depend on whom, and that every dependency and lint says why it is there.

use super::Finding;
use super::rules::finding;
use super::source::{File, Tree};

/// What each crate may know of the others. Tests may know more: only `[dependencies]` counts.
const LAYERS: &[(&str, &[&str])] = &[
    ("mux-proto", &[]),
    ("mux-core", &["mux-proto"]),
    ("mux-ssh", &["mux-proto"]),
    ("mux-cli", &["mux-proto", "mux-core", "mux-ssh"]),
    ("xtask", &[]),
];

/// A line `name = …` or `name.key = …` of a manifest.
struct Entry<'a> {
    section: &'a str,
    name: &'a str,
    value: &'a str,
    line: usize,
    /// A comment stands right above.
    has_comment: bool,
    /// A comment stands above the run of entries that this one is part of.
    has_run_comment: bool,
}

pub(super) fn layers(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.manifests() {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == file.package()) else {
            continue;
        };
        let ours = |entry: &Entry<'_>| {
            entry.section == "dependencies" && LAYERS.iter().any(|(name, _)| *name == entry.name)
        };
        for entry in entries(file).into_iter().filter(ours) {
            if !allowed.contains(&entry.name) {
                found.push(finding(
                    file,
                    entry.line,
                    format!("{} must not depend on {}", file.package(), entry.name),
                ));
            }
        }
    }
}

pub(super) fn dependency_reasons(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.manifests() {
        for entry in entries(file) {
            let is_dependency = entry.section.ends_with("dependencies");
            let is_explained_above =
                entry.value.contains("workspace = true") || entry.name.contains(".workspace");
            let is_ours = entry.value.contains("path = ");
            if is_dependency && !is_explained_above && !is_ours && !entry.has_comment {
                found.push(finding(
                    file,
                    entry.line,
                    format!("no comment says why `{}` is needed", entry.name),
                ));
            }
        }
    }
}

pub(super) fn lint_reasons(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.manifests() {
        for entry in entries(file) {
            if entry.section.contains("lints.") && !entry.has_run_comment {
                found.push(finding(
                    file,
                    entry.line,
                    format!("no comment says why `{}` is set", entry.name),
                ));
            }
        }
    }
}

/// A member without them escapes every lint, `forbid(unsafe_code)` included. fuzz/ is a workspace of its own, and what lies
/// deeper are peers of benchmarks.
pub(super) fn workspace_lints(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.manifests().filter(|file| {
        LAYERS
            .iter()
            .any(|(name, _)| file.path == format!("{name}/Cargo.toml"))
    }) {
        let inherits = |entry: &Entry<'_>| {
            entry.section == "lints" && entry.name == "workspace" && entry.value == "true"
        };
        if !entries(file).iter().any(inherits) {
            found.push(finding(
                file,
                1,
                "does not inherit the workspace's lints".to_owned(),
            ));
        }
    }
}

/// The entries of a manifest. Continuation lines of a value (indented, or a closing bracket) are none.
fn entries(file: &File) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    let mut section = "";
    let (mut has_comment, mut has_run_comment) = (false, false);
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with('#') {
            (has_comment, has_run_comment) = (true, true);
        } else if let Some(header) = line.strip_prefix('[').filter(|_| line.ends_with(']')) {
            section = header.trim_matches(['[', ']']);
            (has_comment, has_run_comment) = (false, false);
        } else if line.is_empty() {
            (has_comment, has_run_comment) = (false, false);
        } else if let Some((key, value)) = line
            .split_once('=')
            .filter(|_| line.starts_with(|c: char| c.is_ascii_alphabetic()))
        {
            let key = key.trim();
            let name = key.strip_suffix(".workspace").unwrap_or(key);
            let value = if name == key {
                value.trim()
            } else {
                "workspace = true"
            };
            entries.push(Entry {
                section,
                name,
                value,
                line: index + 1,
                has_comment,
                has_run_comment,
            });
            has_comment = false;
        }
    }
    entries
}
