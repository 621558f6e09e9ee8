//! Colour for terminals, and durations for people. It decides nothing: without a terminal, text stays as it is.

use std::io::IsTerminal;
use std::time::Duration;

/// A heading or a name that the eye should find.
pub(crate) fn bold(text: &str) -> String {
    paint("1", text)
}

/// What went well.
pub(crate) fn good(text: &str) -> String {
    paint("32", text)
}

/// What did not.
pub(crate) fn bad(text: &str) -> String {
    paint("31;1", text)
}

/// What may be skipped in reading.
pub(crate) fn dim(text: &str) -> String {
    paint("2", text)
}

fn paint(code: &str, text: &str) -> String {
    if coloured() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// <https://no-color.org>, and terminals only: a log file keeps its bytes plain.
fn coloured() -> bool {
    let unset = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let capable = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    unset && capable && std::io::stdout().is_terminal()
}

/// `340 ms`, `12.3 s`, `2 min 05 s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}
