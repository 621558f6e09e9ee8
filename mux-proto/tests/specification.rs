//! `PROTOCOL.md` against the code: numbers that are written in both are the same.

#![expect(clippy::indexing_slicing, reason = "a test fails by panicking")]

use mux_proto::body::{GoodbyeCode, MAX_DEPTH, MAX_FIELDS, MAX_NAME, MAX_ROUTE_NODES, MAX_TEXT, ResetCode};
use mux_proto::connection::{INITIAL_CREDIT, MAX_CREDIT, MAX_ROUTES};
use mux_proto::frame::{HEADER_LEN, Kind, MAX_BODY, MAX_NOTE};

const TEXT: &str = include_str!("../PROTOCOL.md");

/// Cells of the table rows of a section.
fn rows(section: &str) -> Vec<Vec<&'static str>> {
    let (_, after) = TEXT.split_once(&format!("\n## {section}")).unwrap_or_default();
    let inside = after.split("\n## ").next().unwrap_or_default();
    let rows = inside.lines().filter(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// Numbers in the first cells of the rows.
fn numbers(section: &str) -> Vec<u16> {
    rows(section)
        .iter()
        .filter_map(|cells| cells.first()?.parse().ok())
        .collect()
}

#[test]
fn it_has_every_kind_with_its_number() {
    use Kind::*;
    let kinds = [
        Hello, Ping, Pong, Route, Log, Goodbye, Open, Data, Credit, Finish, Result, Reset,
    ];
    let expected: Vec<(String, String)> = kinds
        .map(|kind| (kind.number().to_string(), format!("{kind:?}")))
        .into();
    let table: Vec<(String, String)> = rows("2. Frames")
        .into_iter()
        .filter_map(|cells| match cells[..] {
            [number, name, _, _, _] if number.parse::<u8>().is_ok() && name.parse::<u8>().is_err() => {
                Some((number.to_owned(), name.to_owned()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(table, expected);
}

#[test]
fn it_has_every_reason() {
    let resets: Vec<u16> = ResetCode::ALL.iter().map(|code| code.number()).collect();
    assert_eq!(numbers("9. Refusals"), resets);
    let goodbyes: Vec<u16> = GoodbyeCode::ALL.iter().map(|code| code.number()).collect();
    assert_eq!(numbers("8. Life"), goodbyes);
}

#[test]
fn its_limits_are_ours() {
    let limits = [
        ("header", HEADER_LEN),
        ("body", MAX_BODY),
        ("body of Hello", MAX_NOTE),
        ("text for people", MAX_TEXT),
        ("`software`", MAX_NAME),
        ("arrays and maps", MAX_DEPTH),
        ("keys of a map", MAX_FIELDS),
        ("first credit", INITIAL_CREDIT as usize),
        ("credit at a time", MAX_CREDIT as usize),
        ("nodes in a Route", MAX_ROUTE_NODES),
        ("nodes beneath a link", MAX_ROUTES),
    ];
    let table = rows("10. Limits");
    for (name, limit) in limits {
        let row = table
            .iter()
            .find(|cells| cells[0].starts_with(name))
            .expect("it is in the table");
        let digits: String = row[1]
            .chars()
            .take_while(|c| *c != ' ')
            .filter(char::is_ascii_digit)
            .collect();
        assert_eq!(digits, limit.to_string(), "{name}");
    }
}

#[test]
fn its_example_is_the_golden_frame() {
    let bytes = |line: &str| -> Vec<u8> {
        let words = line.split_whitespace().take_while(|word| word.len() == 2);
        words
            .map_while(|word| u8::from_str_radix(word, 16).ok())
            .collect()
    };
    let (_, after) = TEXT
        .split_once("For example `open-exec-shell.hex`:\n\n```\n")
        .expect("it is there");
    let example = after.split("```").next().unwrap_or_default();
    let golden = include_str!("../golden/open-exec-shell.hex");
    let golden = golden.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(
        example.lines().flat_map(bytes).collect::<Vec<u8>>(),
        golden.flat_map(bytes).collect::<Vec<u8>>()
    );
}
