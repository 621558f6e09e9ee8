//! Makes visible what a terminal would obey: control characters, escape sequences, bytes that are not UTF-8. Hosts
//! decide what they print, never what happens to the terminal. Only used where the output is a terminal.

use std::fmt::Write as _;

/// A filter over a stream of bytes, cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Neutraliser {
    /// The beginning of a character whose end has not come yet; at most 3 bytes.
    partial: Vec<u8>,
    /// A carriage return that is part of a line's end if a newline follows.
    held_return: bool,
}

/// All of `bytes` at once.
pub(crate) fn neutralise(bytes: &[u8]) -> String {
    let mut filter = Neutraliser::default();
    let mut out = filter.push(bytes);
    out += &filter.finish();
    out
}

impl Neutraliser {
    /// What is known to be shown for the stream so far.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut input = std::mem::take(&mut self.partial);
        input.extend_from_slice(bytes);
        let mut out = String::with_capacity(input.len());
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            let (valid, wrong) = match str::from_utf8(rest) {
                Ok(text) => (text.len(), Some(0)),
                Err(error) => (error.valid_up_to(), error.error_len()),
            };
            let (text, after) = rest.split_at(valid);
            let text = str::from_utf8(text).expect("was just found valid");
            text.chars().for_each(|c| self.show(c, &mut out));
            let Some(wrong) = wrong else {
                self.partial = after.to_vec();
                break;
            };
            let (wrong, after) = after.split_at(wrong);
            self.show_bytes(wrong, &mut out);
            rest = after;
        }
        out
    }

    /// What is shown for the end of the stream.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        let partial = std::mem::take(&mut self.partial);
        self.show_bytes(&partial, &mut out);
        self.release_return(&mut out);
        out
    }

    fn show(&mut self, c: char, out: &mut String) {
        if c == '\n' {
            self.held_return = false;
        }
        self.release_return(out);
        match c {
            '\r' => self.held_return = true,
            '\n' | '\t' => out.push(c),
            '\0'..='\x1f' | '\x7f' => {
                out.push('^');
                // Caret notation: the letter 64 places away.
                out.push(char::from(u8::try_from(c).expect("is ASCII") ^ 0x40));
            }
            '\u{80}'..='\u{9f}' => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("a String takes all"),
            c => out.push(c),
        }
    }

    fn show_bytes(&mut self, bytes: &[u8], out: &mut String) {
        for byte in bytes {
            self.release_return(out);
            write!(out, "\\x{byte:02x}").expect("a String takes all");
        }
    }

    fn release_return(&mut self, out: &mut String) {
        if std::mem::take(&mut self.held_return) {
            out.push_str("^M");
        }
    }
}
