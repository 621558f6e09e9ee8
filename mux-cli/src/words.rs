//! What this program itself says, as it reaches standard error: the one place in front of the terminal. It decides that
//! each line begins with `mux: `, holds nothing that a terminal obeys and ends somewhere; never what is said.

use mux_ssh::Printable;

/// Characters of one line. Thousands of folded names fit, which must not be cut; foreign texts in it were cut by
/// [`Printable`] to much less.
const MAX_LINE: usize = 256 * 1024;

/// Characters of a line of usage text, and lines of it: what is wrong stands at the beginning, and an argument that
/// somebody pasted by mistake fills no screen.
const MAX_USAGE_LINE: usize = 2000;
const MAX_USAGE_LINES: usize = 100;

/// One line, whatever is in `text`: a server's words must not be able to look like ours.
pub(crate) fn line(text: &str) -> String {
    format!("mux: {}\n", Printable::within(text, MAX_LINE))
}

/// Several lines that were written as such; only the first says whose they are.
pub(crate) fn lines(text: &str) -> String {
    let lines = text.trim_end().lines().take(MAX_USAGE_LINES);
    let lines = lines.map(|line| format!("{}\n", Printable::within(line, MAX_USAGE_LINE)));
    format!("mux: {}", lines.collect::<String>())
}

/// A text inside another one, as long as it likes to be.
pub(crate) fn printable(text: &str) -> String {
    Printable::within(text, MAX_LINE).to_string()
}
