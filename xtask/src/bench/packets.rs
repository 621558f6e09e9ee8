//! How many SSH packets ours sends and receives: counted by `mux` itself, in a run that is not timed.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::clients::Client;
use super::fleet::Fleet;
use crate::command;

/// Packets of all connections of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packets {
    sent: u64,
    received: u64,
    connections: u64,
}

impl Packets {
    pub(super) fn to_json(self) -> Value {
        json!({ "sent": self.sent, "received": self.received, "connections": self.connections })
    }

    /// Adds up the log lines that have `packets sent=N received=N` in them, one a connection.
    fn parse(log: &str) -> Self {
        let mut sum = Self {
            sent: 0,
            received: 0,
            connections: 0,
        };
        for line in log.lines() {
            if let (Some(sent), Some(received)) = (
                number_after(line, "packets sent="),
                number_after(line, " received="),
            ) {
                sum.sent += sent;
                sum.received += received;
                sum.connections += 1;
            }
        }
        sum
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            sent,
            received,
            connections,
        } = self;
        write!(
            f,
            "mux, SSH packets: {sent} sent, {received} received on {connections} connections"
        )
    }
}

pub(super) fn of_one_run(fleet: &Fleet, state: &Path, remote: &str) -> Result<Packets> {
    let mut command = Client::Mux.command(fleet, state, remote);
    command.env("MUX_LOG", "mux::stats=info");
    Ok(Packets::parse(&command::stderr(&mut command)?))
}

fn number_after(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(key)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_all_connections_are_added_up() {
        let log = "[INFO mux::stats] a: packets sent=7 received=9\nnoise\n[INFO mux::stats] b: packets sent=1 received=2 bytes=3\n";
        assert_eq!(
            Packets::parse(log),
            Packets {
                sent: 8,
                received: 11,
                connections: 2
            }
        );
    }
}
