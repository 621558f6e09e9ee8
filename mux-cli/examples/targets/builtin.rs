//! Commands that a target answers without a process, so that thousands answer at once. Decides what they print;
//! never sends it.

use std::time::Duration;

use bytes::Bytes;

/// What to do about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// Print this and end with that status.
    Print(Bytes, u32),
    /// Print this on standard error and end with that status.
    Complain(Bytes, u32),
    /// Print lines of `y`: this many bytes, or without end.
    Bulk(Option<u64>),
    /// End after this time.
    Sleep(Duration),
    /// Print the input, end with it.
    Cat,
}

/// Finds out what `command` asks for, on the target with this name.
pub(crate) fn parse(command: &[u8], name: &str) -> Builtin {
    let text = String::from_utf8_lossy(command);
    let words: Vec<&str> = text.split_whitespace().collect();
    match *words.as_slice() {
        ["hostname" | "uname", ..] => print(format!("{name}\n"), 0),
        ["true"] => print(String::new(), 0),
        ["false"] => print(String::new(), 1),
        ["exit", status] => print(String::new(), status.parse().unwrap_or(2)),
        ["uptime"] => print(
            " 12:00:00 up 42 days,  1:02,  0 users,  load average: 0.01, 0.02, 0.00\n".to_owned(),
            0,
        ),
        ["echo", ..] => print(
            format!(
                "{}\n",
                text.trim_start().strip_prefix("echo").unwrap_or_default().trim()
            ),
            0,
        ),
        ["cat"] => Builtin::Cat,
        ["yes"] => Builtin::Bulk(None),
        ["mux-bulk", bytes] => bytes
            .parse()
            .map_or_else(|_| unknown(&text), |bytes| Builtin::Bulk(Some(bytes))),
        ["sleep", seconds] => {
            let time = seconds
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            time.map_or_else(|| unknown(&text), Builtin::Sleep)
        }
        _ => unknown(&text),
    }
}

fn print(text: String, status: u32) -> Builtin {
    Builtin::Print(Bytes::from(text), status)
}

fn unknown(text: &str) -> Builtin {
    Builtin::Complain(
        Bytes::from(format!("targets: no such command here: {text}\n")),
        127,
    )
}
