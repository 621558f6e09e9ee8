//! Terminal escapes made visible.

use super::super::escape::neutralise;
use super::*;

/// `raw` is shown as `expected`, wherever it is cut.
fn check(raw: &[u8], expected: &str) {
    assert_eq!(neutralise(raw), expected);
    for cut in 0..=raw.len() {
        let mut filter = Neutraliser::default();
        let mut shown = filter.push(&raw[..cut]);
        shown += &filter.push(&raw[cut..]);
        shown += &filter.finish();
        assert_eq!(shown, expected, "cut at {cut}");
    }
}

#[test]
fn controls_and_wrong_bytes_are_made_visible_and_text_is_not_touched() {
    check(b"plain\ttext\n", "plain\ttext\n");
    check("für €5 \u{1f600}".as_bytes(), "für €5 \u{1f600}");
    check(b"\x1b[31mred\x1b[0m", "^[[31mred^[[0m");
    check(b"\x1b]0;title\x07", "^[]0;title^G");
    check(b"\0\x7f\x08", "^@^?^H");
    check("\u{9b}31m".as_bytes(), "\\u{9b}31m");
    check(b"\x9b31m\xff", "\\x9b31m\\xff");
    check(b"\xe2\x82", "\\xe2\\x82");
    check(b"\xe2\x82\n", "\\xe2\\x82\n");
}

#[test]
fn a_return_is_shown_unless_it_ends_a_line() {
    check(b"dos\r\nline\r\n", "dos\nline\n");
    check(b"10%\r20%\r\n", "10%^M20%\n");
    check(b"end\r", "end^M");
    check(b"\r\r\n", "^M\n");
    check(b"\r\xff", "^M\\xff");
}
