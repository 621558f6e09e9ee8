//! Foreign text made fit for a terminal, a log and a line: what peers, files and arguments say stands in many errors,
//! and none of it may move the cursor, forge a line or fill the screen. It decides how such text looks; never whether
//! it is said.

use std::fmt::{self, Write as _};

/// Characters of one foreign text that are shown: a path or a server's sentence fits, a file in a line does not.
pub const MAX_PRINTED: usize = 300;

/// Foreign text whose `Display` is one line of characters that a terminal only shows, at most [`MAX_PRINTED`] of them.
///
/// ```
/// use mux_ssh::Printable;
///
/// assert_eq!(Printable::new("a\u{1b}[31mb\nc").to_string(), "a^[[31mb c");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a> {
    text: &'a str,
    limit: usize,
}

impl<'a> Printable<'a> {
    /// This text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self::within(text, MAX_PRINTED)
    }

    /// This text, cut to another number of characters.
    #[must_use]
    pub fn within(text: &'a str, limit: usize) -> Self {
        Self {
            text: text.trim_end_matches(['\n', '\r']),
            limit,
        }
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.text.chars();
        for c in chars.by_ref().take(self.limit) {
            show(c, f)?;
        }
        match chars.next() {
            Some(_) => f.write_char('…'),
            None => Ok(()),
        }
    }
}

fn show(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match c {
        '\n' | '\r' | '\t' => f.write_char(' '),
        '\0'..='\x1f' | '\x7f' => {
            f.write_char('^')?;
            // Caret notation: the letter 64 places away.
            f.write_char(char::from(u8::try_from(c).unwrap_or(b'?') ^ 0x40))
        }
        // C1 controls; line and paragraph separators; what turns the direction of writing around (UAX #9).
        '\u{80}'..='\u{9f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{61c}' => write!(f, "\\u{{{:x}}}", u32::from(c)),
        c => f.write_char(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(Printable::new(text).to_string(), expected, "{text:?}");
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        check("", "");
        check("/home/ü/id \"x\" 日本", "/home/ü/id \"x\" 日本");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        check("\x1b]0;x\x07\x7f\0", "^[]0;x^G^?^@");
        check("\u{9b}31m", "\\u{9b}31m");
        check("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}");
    }

    #[test]
    fn it_is_one_line() {
        check("a\nmux: b\r\n\tc\r\n", "a mux: b   c");
    }

    #[test]
    fn it_ends_somewhere() {
        let long = "\x1b".repeat(MAX_PRINTED + 1);
        check(&long, &format!("{}…", "^[".repeat(MAX_PRINTED)));
        check(&"x".repeat(MAX_PRINTED), &"x".repeat(MAX_PRINTED));
    }
}
