//! The files under a rule's eye, with what every rule needs to know of them: which lines are tests or tables,
//! where functions begin and end, which paths are named. It knows tokens, not types.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;

use super::scan;

/// All files that rules look at.
#[derive(Debug)]
pub(super) struct Tree {
    files: Vec<File>,
}

/// A Rust file or a manifest, by its path from the workspace's root.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
    /// Empty for manifests and for what is no Rust.
    pub(super) code: Code,
    is_test: bool,
}

/// What the tokens of a Rust file say.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) functions: Vec<Function>,
    pub(super) names: Vec<Name>,
    /// Lines of items under `#[cfg(test)]` or `#[test]`.
    pub(super) tests: Vec<RangeInclusive<usize>>,
    /// Lines of constants that hold an array, and of `match` tables.
    pub(super) tables: Vec<RangeInclusive<usize>>,
    /// Modules declared as `#[cfg(test)] mod name;`.
    pub(super) test_modules: Vec<String>,
    /// The file is not made of balanced tokens; the compiler says more about it than we could.
    pub(super) is_broken: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) lines: RangeInclusive<usize>,
}

/// A path as written, with `use` groups multiplied out: `std::net::TcpStream`. Methods keep their dot: `.elapsed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) path: String,
    pub(super) line: usize,
}

impl Tree {
    pub(super) fn new(mut files: Vec<File>) -> Self {
        let tests: Vec<String> = files.iter().flat_map(File::test_module_paths).collect();
        for file in &mut files {
            let stem = file.path.trim_end_matches(".rs");
            let declared = tests
                .iter()
                .any(|test| stem == test || stem.starts_with(&format!("{test}/")));
            file.is_test |= declared;
        }
        Self { files }
    }

    pub(super) fn files(&self) -> &[File] {
        &self.files
    }

    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    pub(super) fn manifests(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with("Cargo.toml"))
    }
}

impl File {
    pub(super) fn parse(path: String, text: String) -> Self {
        let code = match text.parse::<TokenStream>() {
            _ if !path.ends_with(".rs") => Code::default(),
            Ok(tokens) => scan::code(tokens),
            Err(_) => Code {
                is_broken: true,
                ..Code::default()
            },
        };
        let is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs");
        Self {
            path,
            text,
            code,
            is_test,
        }
    }

    /// The crate's directory.
    pub(super) fn package(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// Part of a library or binary as opposed to its tests and examples.
    pub(super) fn is_product(&self) -> bool {
        self.package().starts_with("mux-") && self.path.contains("/src/") && !self.is_test
    }

    pub(super) fn is_test(&self) -> bool {
        self.is_test
    }

    /// Whether the path below `src/` is one of these modules: `link` means `link.rs` and `link/…`.
    pub(super) fn is_in_module(&self, modules: &[&str]) -> bool {
        let inner = self.path.split_once("/src/").map_or("", |(_, inner)| inner);
        let matches = |module: &&str| {
            inner
                .strip_prefix(*module)
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        modules.iter().any(matches)
    }

    /// Names outside of test items.
    pub(super) fn product_names(&self) -> impl Iterator<Item = &Name> {
        self.code
            .names
            .iter()
            .filter(|name| !covers(&self.code.tests, name.line))
    }

    /// The function around a line.
    pub(super) fn function_at(&self, line: usize) -> Option<&Function> {
        self.code
            .functions
            .iter()
            .rfind(|function| function.lines.contains(&line))
    }

    fn test_module_paths(&self) -> Vec<String> {
        let (dir, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let owner = match name {
            "lib.rs" | "main.rs" | "mod.rs" => dir.to_owned(),
            other => format!("{dir}/{}", other.trim_end_matches(".rs")),
        };
        self.code
            .test_modules
            .iter()
            .map(|module| format!("{owner}/{module}"))
            .collect()
    }
}

pub(super) fn covers(ranges: &[RangeInclusive<usize>], line: usize) -> bool {
    ranges.iter().any(|range| range.contains(&line))
}
