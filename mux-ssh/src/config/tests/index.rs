//! The index of a file's blocks: it leaves out only what cannot matter.

use super::super::condition::{Condition, host_matches};
use super::super::file::ParsedFile;
use super::World;

fn parse(text: &str) -> ParsedFile {
    ParsedFile::parse("config", text.as_bytes())
}

/// The lines on which the blocks begin that are looked at for `host`.
fn lines(file: &ParsedFile, host: &str) -> Vec<String> {
    file.blocks_for(host)
        .map(|block| block.origin.to_string().replace("config line ", ""))
        .collect()
}

#[test]
fn of_ten_thousand_hosts_a_host_meets_its_own_block_and_those_for_all() {
    let blocks: String = (0..10_000)
        .map(|i| format!("Host web{i} www{i}\n  Port 1\n"))
        .collect();
    let file = parse(&format!("User root\n{blocks}Host *\n  User me\n"));
    assert_eq!(lines(&file, "web7777"), ["config", "15556", "20002"]);
    assert_eq!(lines(&file, "www7777"), ["config", "15556", "20002"]);
    assert_eq!(lines(&file, "db1"), ["config", "20002"]);
}

#[test]
fn what_counts_where_it_does_not_apply_is_looked_at_for_every_host() {
    // Lines 1, 3 and 5 hold an Include, an unknown keyword and a mistake; line 7 asks for a second pass.
    let file =
        parse("Host a\nInclude x\nHost b\nFoo y\nHost c\nPort z\nMatch final\nPort 1\nHost d\nPort 2\n");
    assert_eq!(lines(&file, "e"), ["config", "1", "3", "5", "7"]);
    assert_eq!(lines(&file, "d"), ["config", "1", "3", "5", "7", "9"]);
}

#[test]
fn the_order_of_the_file_holds_between_named_blocks_and_others() {
    let world = World::user(
        "Host a*\n Port 1\nHost a a\n Port 2\n User one\nHost *\n User two\nHost a\n LogLevel quiet\n",
    );
    super::check(&world, "a", &["user one", "port 1", "log Quiet"]);
}

#[test]
fn no_block_that_applies_is_left_out() {
    let words = ["a", "b", "a*", "!a", "!b", "?", "!*", "ab"];
    for seed in 0..4096_usize {
        // Three words of the eight on each of four lines.
        let word = |at: usize| {
            words
                .get((seed * 7 + at * at * 5 + (seed >> at)) % words.len())
                .copied()
        };
        let text: String = (0..12)
            .filter_map(|at| {
                Some(format!(
                    "{}{}",
                    if at % 3 == 0 { "\nHost " } else { " " },
                    word(at)?
                ))
            })
            .collect();
        let file = parse(&text);
        for host in ["a", "b", "ab", "c", ""] {
            let applies = |condition: &Condition| match condition {
                Condition::Host(patterns) => host_matches(patterns, host),
                Condition::Always | Condition::Match(_) | Condition::Wrong(_) => true,
            };
            let found: Vec<_> = file
                .blocks_for(host)
                .filter(|block| applies(&block.condition))
                .map(|block| &block.origin)
                .collect();
            let all: Vec<_> = file
                .blocks()
                .filter(|block| applies(&block.condition))
                .map(|block| &block.origin)
                .collect();
            assert_eq!(found, all, "{host:?} in {text}");
        }
    }
}
