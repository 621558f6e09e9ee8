//! What ssh-audit finds wrong with our offer, which is what `mux-ssh/README.md` justifies and nothing else.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use mux_core::{Driver, Event};
use mux_ssh::client::{Client, ClientConfig};
use serde_json::Value;

use crate::servers::{Process, interpreter, script};

/// Where the findings stand and why each is accepted.
const README: &str = include_str!("../../../mux-ssh/README.md");
const HEADING: &str = "## Our offer, audited";

/// A finding: name, level and what ssh-audit says.
type Finding = (String, String, String);

/// The report about a client that offers what it offers by default.
fn report() -> Value {
    let mut command = Command::new(interpreter());
    command.arg(script("client_audit.py")).stderr(Stdio::null());
    let (mut audit, port) = Process::listening(command);
    let port = port.expect("ssh-audit does not start: cargo xtask test --only setup");
    let mut driver = Driver::new().unwrap();
    let client = Client::new(ClientConfig::default());
    driver
        .connect(SocketAddr::from(([127, 0, 0, 1], port)), client)
        .unwrap();
    'over: loop {
        driver.turn(None).unwrap();
        while let Some(event) = driver.poll_event() {
            // It hangs up when it has read enough.
            if let Event::Closed(..) = event {
                break 'over;
            }
        }
    }
    let mut text = String::new();
    audit
        .0
        .stdout
        .as_mut()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn found(report: &Value) -> BTreeSet<Finding> {
    let mut findings = BTreeSet::new();
    for list in ["kex", "key", "enc", "mac"] {
        let algorithms = report[list].as_array().unwrap();
        assert!(!algorithms.is_empty(), "{report}");
        for algorithm in algorithms {
            for level in ["fail", "warn"] {
                for note in algorithm["notes"][level].as_array().into_iter().flatten() {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    findings.insert((text(&algorithm["algorithm"]), level.to_owned(), text(note)));
                }
            }
        }
    }
    findings
}

/// The rows of the table: names, level, finding and justification.
fn justified() -> BTreeSet<Finding> {
    let (_, section) = README.split_once(HEADING).expect("the section is there");
    let section = section
        .split_once("\n## ")
        .map_or(section, |(section, _)| section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [names, level, finding, why] = cells.as_slice() else {
            panic!("not a row of four cells: {row}");
        };
        assert!(!why.is_empty(), "{row}");
        let finding = |name: &str| {
            (
                name.trim_matches('`').to_owned(),
                (*level).to_owned(),
                (*finding).to_owned(),
            )
        };
        names.split(", ").map(finding).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_finding_is_justified_and_every_justification_is_needed() {
    let report = report();
    let (found, justified) = (found(&report), justified());
    let missing: Vec<_> = found.difference(&justified).collect();
    let stale: Vec<_> = justified.difference(&found).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "mux-ssh/README.md, {HEADING}: no reason is given for {missing:#?}, and nobody finds {stale:#?}"
    );
    assert_eq!(report["cves"], Value::Array(Vec::new()));
}
