//! The rules as a table. Each row carries what it is for and a sample that breaks it: a rule that can't fail protects nothing.

use super::source::{File, Tree};
use super::{Finding, layout, manifests};

/// A rule, and a file that breaks it.
pub(super) struct Rule {
    pub(super) name: &'static str,
    check: fn(&Tree, &mut Vec<Finding>),
    /// Path and text of a file in which the rule finds something. Read by the self-test.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the self-test breaks rules"))]
    bad: (&'static str, &'static str),
    /// The nearest thing that is allowed.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the self-test breaks rules"))]
    good: (&'static str, &'static str),
}

impl Rule {
    /// In order of file and line.
    pub(super) fn findings(&self, tree: &Tree) -> Vec<Finding> {
        let mut found = Vec::new();
        (self.check)(tree, &mut found);
        found.sort();
        found
    }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "opening",
        check: layout::opening,
        bad: ("mux-core/src/a.rs", "use x::y;\n"),
        good: ("mux-core/src/a.rs", "//! Decides this, never that.\n"),
    },
    Rule {
        name: "file-length",
        check: layout::file_length,
        bad: (
            "mux-core/src/a.rs",
            concat!("//! Long.\n", include_str!("samples/600-lines.txt")),
        ),
        good: (
            "mux-core/src/a.rs",
            concat!(
                "//! Long.\n#[cfg(test)]\nmod tests {\n",
                include_str!("samples/600-lines.txt"),
                "}\n"
            ),
        ),
    },
    Rule {
        name: "function-length",
        check: layout::function_length,
        bad: (
            "mux-core/src/a.rs",
            concat!("fn long() {\n", include_str!("samples/61-lines.txt"), "}\n"),
        ),
        good: (
            "mux-core/tests/a.rs",
            concat!("fn long() {\n", include_str!("samples/61-lines.txt"), "}\n"),
        ),
    },
    Rule {
        name: "pure",
        check: pure,
        bad: ("mux-ssh/src/a.rs", "use std::{fmt, net::TcpStream};\n"),
        good: (
            "mux-ssh/src/a.rs",
            "use core::net::IpAddr;\n#[cfg(test)]\nmod tests { use std::fs; }\n",
        ),
    },
    Rule {
        name: "pure-module",
        check: pure_modules,
        bad: ("mux-cli/src/hub/job.rs", "use std::fs::File;\n"),
        good: ("mux-cli/src/pool.rs", "use std::fs::File;\n"),
    },
    Rule {
        name: "clock",
        check: clock,
        bad: (
            "mux-core/src/reactor.rs",
            "fn other() { let t = Instant::now(); }\n",
        ),
        good: (
            "mux-core/src/reactor.rs",
            "fn turn() { let t = Instant::now(); }\n",
        ),
    },
    Rule {
        name: "hidden-clock",
        check: hidden_clock,
        bad: ("mux-cli/src/a.rs", "fn f(start: Instant) { start.elapsed(); }\n"),
        good: (
            "mux-cli/src/a.rs",
            "fn f(start: Instant, now: Instant) { now.duration_since(start); }\n",
        ),
    },
    Rule {
        name: "sharing",
        check: sharing,
        bad: ("mux-cli/src/a.rs", "struct S { m: std::sync::Mutex<u8> }\n"),
        good: ("mux-cli/src/pool.rs", "struct S { m: std::sync::Mutex<u8> }\n"),
    },
    Rule {
        name: "descriptors",
        check: descriptors,
        bad: ("mux-core/src/timers.rs", "use mio::net::TcpStream;\n"),
        good: ("mux-core/src/link/read.rs", "use mio::net::TcpStream;\n"),
    },
    Rule {
        name: "layers",
        check: manifests::layers,
        bad: (
            "mux-core/Cargo.toml",
            "[lints]\nworkspace = true\n[dependencies]\nmux-ssh.workspace = true\n",
        ),
        good: (
            "mux-core/Cargo.toml",
            "[lints]\nworkspace = true\n[dependencies]\nmux-proto.workspace = true\n",
        ),
    },
    Rule {
        name: "dependency-reason",
        check: manifests::dependency_reasons,
        bad: (
            "Cargo.toml",
            "[workspace.dependencies]\n# Why.\na = \"1\"\nb = \"1\"\n",
        ),
        good: (
            "Cargo.toml",
            "[workspace.dependencies]\n# Why.\na = { version = \"1\", features = [\n  \"x\",\n] }\n# Why.\nb = \"1\"\n",
        ),
    },
    Rule {
        name: "lint-reason",
        check: manifests::lint_reasons,
        bad: ("Cargo.toml", "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"),
        good: (
            "Cargo.toml",
            "[workspace.lints.rust]\n# Why, for both.\na = \"warn\"\nb = \"warn\"\n",
        ),
    },
    Rule {
        name: "workspace-lints",
        check: manifests::workspace_lints,
        bad: ("mux-ssh/Cargo.toml", "[package]\nname = \"mux-ssh\"\n"),
        good: (
            "mux-ssh/Cargo.toml",
            "[package]\nname = \"mux-ssh\"\n[lints]\nworkspace = true\n",
        ),
    },
    Rule {
        name: "left-over",
        check: layout::left_overs,
        bad: ("mux-ssh/src/a.rs", concat!("// TO", "DO: later\n")),
        good: ("mux-ssh/src/a.rs", "// Todos are not left in the code.\n"),
    },
    Rule {
        name: "ignored-test",
        check: layout::ignored_tests,
        bad: (
            "mux-ssh/tests/a.rs",
            concat!("#[test]\n#[ig", "nore]\nfn f() {}\n"),
        ),
        good: ("mux-ssh/tests/a.rs", "#[test]\nfn f() {}\n"),
    },
];

/// Crates whose code sees bytes and instants only.
const PURE: &[&str] = &["mux-proto", "mux-ssh"];

/// Modules of mux-cli that decide and render; its blocking pool, its writer and its loop do.
const PURE_MODULES: &[&str] = &["hub", "targets", "plan", "output"];

/// Modules of mux-core that touch descriptors; the rest works on values. `stdio` opens inherited ones again.
const DESCRIPTOR_MODULES: &[&str] = &["reactor", "stream", "stdio", "link", "driver", "child", "signal"];

/// Where a clock is read: both loops' `turn`, and the part of it that turns a deadline into a timeout.
const CLOCK_READERS: &[(&str, &str)] = &[("reactor", "turn"), ("reactor", "wait"), ("driver", "turn")];

/// Where the date is read, which certificates want to know: nothing that waits asks it.
const CALENDAR_READER: (&str, &str) = ("run/wall_clock", "unix_seconds");

/// Modules that hand values between threads: the mailbox of mux-core, the blocking pool of mux-cli.
const SHARING_MODULES: &[&str] = &["mailbox", "pool"];

fn pure(tree: &Tree, found: &mut Vec<Finding>) {
    const FORBIDDEN: &[&str] = &[
        "std::net",
        "std::fs",
        "std::process",
        "std::thread",
        "std::os",
        "std::env",
        "std::io::stdin",
    ];
    let files = tree
        .rust()
        .filter(|file| file.is_product() && PURE.contains(&file.package()));
    names(files, FORBIDDEN, found, |name| {
        format!("`{name}`: this crate takes and gives values (an address is in `core::net`)")
    });
}

fn pure_modules(tree: &Tree, found: &mut Vec<Finding>) {
    const FORBIDDEN: &[&str] = &[
        "std::fs",
        "std::process::Command",
        "std::process::Child",
        "std::thread",
        "std::os::fd",
        "std::os::unix::fs",
        "std::os::unix::net",
        "std::net::TcpStream",
        "rustix",
        "mio",
    ];
    let files = tree
        .rust()
        .filter(|file| file.package() == "mux-cli" && file.is_product());
    names(
        files.filter(|file| file.is_in_module(PURE_MODULES)),
        FORBIDDEN,
        found,
        |name| format!("`{name}`: {} work on values", PURE_MODULES.join(", ")),
    );
}

fn clock(tree: &Tree, found: &mut Vec<Finding>) {
    const CLOCKS: &[&str] = &["Instant::now", "SystemTime::now"];
    for file in tree.rust().filter(|file| file.is_product()) {
        for name in file.product_names() {
            let reads = CLOCKS
                .iter()
                .any(|clock| name.path == *clock || name.path.ends_with(&format!("::{clock}")));
            let function = file.function_at(name.line).map(|function| function.name.as_str());
            let is_turn = file.package() == "mux-core"
                && CLOCK_READERS
                    .iter()
                    .any(|(module, reader)| file.is_in_module(&[module]) && function == Some(reader));
            let is_calendar = file.package() == "mux-cli"
                && name.path.ends_with("SystemTime::now")
                && file.is_in_module(&[CALENDAR_READER.0])
                && function == Some(CALENDAR_READER.1);
            if reads && !is_turn && !is_calendar {
                found.push(finding(
                    file,
                    name.line,
                    format!(
                        "`{}`: only the reactor's `turn` reads a clock; take `now`",
                        name.path
                    ),
                ));
            }
        }
    }
}

fn hidden_clock(tree: &Tree, found: &mut Vec<Finding>) {
    names(
        tree.rust().filter(|file| file.is_product()),
        &[".elapsed"],
        found,
        |_| "`.elapsed()` reads a clock; use `now.duration_since(…)`".to_owned(),
    );
}

fn sharing(tree: &Tree, found: &mut Vec<Finding>) {
    const SHARED: &[&str] = &["Rc", "RefCell", "Mutex", "RwLock", "Cell"];
    for file in tree
        .rust()
        .filter(|file| file.is_product() && !file.is_in_module(SHARING_MODULES))
    {
        for name in file.product_names() {
            let last = name
                .path
                .rsplit("::")
                .find(|part| part.starts_with(char::is_uppercase));
            if last.is_some_and(|last| SHARED.contains(&last)) {
                found.push(finding(
                    file,
                    name.line,
                    format!(
                        "`{}`: one owner each; only the mailbox and the blocking pool share",
                        name.path
                    ),
                ));
            }
        }
    }
}

fn descriptors(tree: &Tree, found: &mut Vec<Finding>) {
    const FORBIDDEN: &[&str] = &[
        "std::net::TcpStream",
        "std::net::TcpListener",
        "std::net::UdpSocket",
        "std::fs",
        "std::process::Command",
        "std::process::Child",
        "std::thread",
        "std::os",
        "mio::net",
        "mio::unix",
        "mio::Poll",
        "rustix",
    ];
    let files = tree
        .rust()
        .filter(|file| file.package() == "mux-core" && file.is_product());
    names(
        files.filter(|file| !file.is_in_module(DESCRIPTOR_MODULES)),
        FORBIDDEN,
        found,
        |name| {
            format!(
                "`{name}`: descriptors belong to {}",
                DESCRIPTOR_MODULES.join(", ")
            )
        },
    );
}

/// Reports every name that is, or lies below, one of these.
fn names<'a>(
    files: impl Iterator<Item = &'a File>,
    forbidden: &[&str],
    found: &mut Vec<Finding>,
    message: impl Fn(&str) -> String,
) {
    for file in files {
        for name in file.product_names() {
            let below = |root: &str| {
                name.path
                    .strip_prefix(root)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            };
            if forbidden.iter().any(|root| below(root)) {
                found.push(finding(file, name.line, message(&name.path)));
            }
        }
    }
}

pub(super) fn finding(file: &File, line: usize, message: String) -> Finding {
    Finding {
        file: file.path.clone(),
        line,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: &Rule, (path, text): (&str, &str)) -> Vec<Finding> {
        rule.findings(&Tree::new(vec![File::parse(path.to_owned(), text.to_owned())]))
    }

    #[test]
    fn every_rule_fails_on_its_bad_sample() {
        for rule in RULES {
            assert!(!check(rule, rule.bad).is_empty(), "{} finds nothing", rule.name);
        }
    }

    #[test]
    fn no_rule_fails_on_what_is_allowed() {
        for rule in RULES {
            assert_eq!(check(rule, rule.good), [], "{}", rule.name);
        }
    }

    #[test]
    fn findings_name_the_line() {
        let rule = RULES
            .iter()
            .find(|rule| rule.name == "pure")
            .expect("listed above");
        let lines: Vec<usize> = check(rule, ("mux-proto/src/a.rs", "//! A.\n\nuse std::fs;\n"))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [3]);
    }

    #[test]
    fn a_module_declared_for_tests_is_a_test_wherever_it_lies() {
        let owner = File::parse(
            "mux-ssh/src/a.rs".to_owned(),
            "#[cfg(test)]\nmod fixtures;\n".to_owned(),
        );
        let module = File::parse(
            "mux-ssh/src/a/fixtures.rs".to_owned(),
            "use std::fs;\n".to_owned(),
        );
        let rule = RULES
            .iter()
            .find(|rule| rule.name == "pure")
            .expect("listed above");
        assert_eq!(rule.findings(&Tree::new(vec![owner, module])), []);
    }
}
