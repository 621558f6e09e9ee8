//! Rules on the shape of files: how they open, how long they are, what must not stay in them.

use super::Finding;
use super::rules::finding;
use super::source::{Tree, covers};

/// The aim is 400; what is over this has two reasons to change.
const FILE_LINES: usize = 500;
/// The aim is 50.
const FUNCTION_LINES: usize = 60;

pub(super) fn opening(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust() {
        if !file.text.starts_with("//! ") {
            found.push(finding(
                file,
                1,
                "does not open with `//!`: what it decides, what it never does".to_owned(),
            ));
        }
        if file.code.is_broken {
            found.push(finding(file, 1, "has unbalanced brackets or quotes".to_owned()));
        }
    }
}

/// Tests and tables are read one entry at a time and don't count.
pub(super) fn file_length(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust().filter(|file| !file.is_test()) {
        let counts = |line: &usize| !covers(&file.code.tests, *line) && !covers(&file.code.tables, *line);
        let lines = (1..=file.text.lines().count()).filter(counts).count();
        if lines > FILE_LINES {
            found.push(finding(
                file,
                1,
                format!("{lines} lines, over {FILE_LINES}: split it by reason to change"),
            ));
        }
    }
}

pub(super) fn function_length(tree: &Tree, found: &mut Vec<Finding>) {
    for file in tree.rust().filter(|file| !file.is_test()) {
        for function in &file.code.functions {
            let (start, end) = (*function.lines.start(), *function.lines.end());
            let lines = end - start + 1;
            let is_exempt = covers(&file.code.tests, start) || covers(&file.code.tables, start);
            if lines > FUNCTION_LINES && !is_exempt {
                found.push(finding(
                    file,
                    start,
                    format!("`{}` has {lines} lines, over {FUNCTION_LINES}", function.name),
                ));
            }
        }
    }
}

pub(super) fn left_overs(tree: &Tree, found: &mut Vec<Finding>) {
    const WORDS: &[&str] = &[
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("dbg", "!("),
        concat!("todo", "!("),
    ];
    text(tree, WORDS, found, "is finished or not written");
}

pub(super) fn ignored_tests(tree: &Tree, found: &mut Vec<Finding>) {
    text(
        tree,
        &[concat!("#[ig", "nore")],
        found,
        "a test that doesn't run protects nothing",
    );
}

fn text(tree: &Tree, words: &[&str], found: &mut Vec<Finding>, reason: &str) {
    for file in tree.rust() {
        for (index, line) in file.text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                found.push(finding(file, index + 1, format!("`{word}`: {reason}")));
            }
        }
    }
}
