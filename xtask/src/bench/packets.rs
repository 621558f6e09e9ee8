//! How many SSH packets ours sends and receives: counted by `mux` itself, in a run that is not timed.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::clients::Client;
use super::fleet::Fleet;
use crate::command;

/// Packets of all connections of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packets {
    sent: u64,
    received: u64,
}

pub(super) fn of_one_run(fleet: &Fleet, state: &Path, remote: &str) -> Result<Packets> {
    let mut command = Client::Mux.command(fleet, state, remote);
    command.env("MUX_LOG", "mux_cli::run=debug");
    let log = command::stderr(&mut command)?;
    Packets::parse(&log).with_context(|| format!("mux logged no packets: {log}"))
}

impl Packets {
    pub(super) fn to_json(self) -> Value {
        json!({ "sent": self.sent, "received": self.received })
    }

    /// Finds `SSH packets: N sent, N received`.
    fn parse(log: &str) -> Option<Self> {
        let (_, rest) = log.rsplit_once("SSH packets: ")?;
        let (sent, rest) = rest.split_once(" sent, ")?;
        let (received, _) = rest.split_once(" received")?;
        Some(Self {
            sent: sent.parse().ok()?,
            received: received.parse().ok()?,
        })
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mux, SSH packets of all hosts: {} sent, {} received",
            self.sent, self.received
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_from_the_log() {
        let log = "[DEBUG mux_cli::run::net] SSH packets: 800 sent, 1100 received\n";
        assert_eq!(
            Packets::parse(log),
            Some(Packets {
                sent: 800,
                received: 1100
            })
        );
        assert_eq!(Packets::parse("noise"), None);
    }
}
