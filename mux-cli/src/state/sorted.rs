//! A text of sorted lines in which one is found without reading the others. Decides how lines are ordered, found and
//! merged; never what they mean.
//!
//! A run on one host must not pay for the ten thousand that other runs have met: nothing is parsed until it is asked
//! for, and a look-up reads as many lines as the text's length has binary digits.

use std::collections::BTreeMap;

/// More lines are not kept. A memory that is full is begun anew with what the last run has learned: half of it would
/// be no better, and losing it costs a round trip a host.
const MAX_LINES: usize = 200_000;

/// Changes to a text: the start of a line, up to and with the tab behind its name, and its rest. `None` removes it.
pub(super) type Changes = BTreeMap<String, Option<String>>;

/// What stands behind `prefix` in the line that starts with it. The order of the lines is not checked: in a damaged
/// text a line may not be found, and a line that is found is whole.
pub(super) fn find<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    // `low` and `high` are starts of lines; the line that is looked for starts at or behind `low`, before `high`.
    let (mut low, mut high) = (0, text.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = text
            .as_bytes()
            .get(..middle)?
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let start = start.max(low);
        let line = text.get(start..)?.split('\n').next()?;
        if let Some(rest) = line.strip_prefix(prefix) {
            return Some(rest);
        }
        if line < prefix {
            low = start + line.len() + 1;
        } else {
            high = start;
        }
    }
    None
}

/// The text with the changes made, in order. Lines that are out of order are dropped: they could not be found.
pub(super) fn merge(text: &str, changes: &Changes) -> String {
    if text.len() / 2 > MAX_LINES
        && text.bytes().filter(|byte| *byte == b'\n').count() + changes.len() > MAX_LINES
    {
        return merge("", changes);
    }
    let mut merged = String::with_capacity(text.len() + changes.len() * 100);
    let mut changes = changes.iter().peekable();
    let (mut last, mut replaced) = ("", None::<&str>);
    for line in text.lines() {
        if line <= last {
            continue;
        }
        last = line;
        while let Some((prefix, rest)) = changes.next_if(|(prefix, _)| prefix.as_str() <= line) {
            if line.starts_with(prefix.as_str()) {
                replaced = Some(prefix.as_str());
            }
            append(&mut merged, prefix, rest.as_deref());
        }
        // In a damaged text a name may have several lines: one that stayed could be found instead of the new one.
        if replaced.is_none_or(|prefix| !line.starts_with(prefix)) {
            append(&mut merged, line, Some(""));
        }
    }
    for (prefix, rest) in changes {
        append(&mut merged, prefix, rest.as_deref());
    }
    merged
}

fn append(text: &mut String, prefix: &str, rest: Option<&str>) {
    if let Some(rest) = rest {
        text.push_str(prefix);
        text.push_str(rest);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A small generator with a seed: the same cases in every run.
    fn next(seed: &mut u64) -> u64 {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    }

    #[test]
    fn changes_and_look_ups_agree_with_a_map() {
        let mut seed = 0x5eed_u64;
        let (mut text, mut model) = (String::new(), BTreeMap::new());
        for round in 0..300 {
            let mut changes = Changes::new();
            for _ in 0..next(&mut seed) % 8 {
                let name = format!("k\th{}\t", next(&mut seed) % 60);
                let rest = (!next(&mut seed).is_multiple_of(4)).then(|| format!("v{round}"));
                match &rest {
                    Some(rest) => model.insert(name.clone(), rest.clone()),
                    None => model.remove(&name),
                };
                changes.insert(name, rest);
            }
            text = merge(&text, &changes);
            for host in 0..60 {
                let name = format!("k\th{host}\t");
                assert_eq!(
                    find(&text, &name),
                    model.get(&name).map(String::as_str),
                    "{name:?} in {text:?}"
                );
            }
        }
        assert_eq!(text.lines().count(), model.len());
    }

    #[test]
    fn lines_out_of_order_do_no_harm_and_go_with_the_next_change() {
        let damaged = "b\t1\na\t2\nb\t1\nc\t3\n";
        let merged = merge(
            damaged,
            &Changes::from([("d\t".to_owned(), Some("4".to_owned()))]),
        );
        assert_eq!(merged, "b\t1\nc\t3\nd\t4\n");
        assert_eq!(find(&merged, "c\t"), Some("3"));
        assert_eq!(find("no newline at all", "x"), None);
        assert_eq!(find("\n\n\n", "x"), None);
    }

    #[test]
    fn a_name_with_several_lines_has_one_after_it_was_changed() {
        let damaged = "a\t0\na\t1\na\t2\nb\t3\n";
        let change = |rest: Option<&str>| Changes::from([("a\t".to_owned(), rest.map(str::to_owned))]);
        assert_eq!(merge(damaged, &change(Some("7"))), "a\t7\nb\t3\n");
        assert_eq!(merge(damaged, &change(None)), "b\t3\n");
    }

    #[test]
    fn a_full_text_is_begun_anew() {
        let mut text = String::new();
        for line in 0..MAX_LINES {
            append(&mut text, &format!("{line:06}\t"), Some(""));
        }
        let change = Changes::from([("x\t".to_owned(), Some("y".to_owned()))]);
        assert_eq!(merge(&text, &change), "x\ty\n");
    }
}
