//! What `cargo test` said, added up over its many binaries. It reads the result lines and nothing else.

use std::fmt;

/// Numbers of tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    binaries: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Tally {
    /// `test result: ok. 3 passed; 0 failed; 0 ignored; …` counts, any other line doesn't.
    pub(super) fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        self.binaries += 1;
        for part in result.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(kind)) = (words.next().map(str::parse::<u32>), words.next()) else {
                continue;
            };
            match kind {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            binaries,
            passed,
            failed,
            ignored,
        } = self;
        let verdict = if *failed == 0 { "ok" } else { "FAILED" };
        write!(
            f,
            "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored, in {binaries} test binaries"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_binaries_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.50s",
        ] {
            tally.add(line);
        }
        assert_eq!(
            tally.to_string(),
            "test result: FAILED. 4 passed; 2 failed; 0 ignored, in 2 test binaries"
        );
    }
}
