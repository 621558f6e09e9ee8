//! Whether a host's command may use the user's agent. Decides by what was asked for and how many hosts there are; never
//! opens a socket.
//!
//! Whoever rules a host that an agent is forwarded to can use every key in it while the command runs. With one host that
//! was named this is what was asked for; with a set it is hardly ever what was meant.

use std::sync::Arc;

use mux_ssh::config::{ForwardAgent, HostConfig};

use crate::plan::Connection;

/// The agent for a host's command, and what is to be said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Forwarding {
    /// Its socket; none: the command has no agent.
    pub(super) socket: Option<Arc<str>>,
    /// Why there is none although one was asked for.
    pub(super) warning: Option<String>,
}

/// # Errors
/// `-A` for a set of hosts; one line.
pub(super) fn check(connection: &Connection, hosts: usize) -> Result<(), String> {
    match connection.forward_agent && hosts > 1 && !connection.forward_to_all {
        true => Err(format!(
            "-A: each of the {hosts} hosts could use all keys of the agent while its command runs; if that is meant, add \
             --forward-agent-to-all"
        )),
        false => Ok(()),
    }
}

/// Decides about one host of `hosts`.
pub(super) fn decide(config: &HostConfig, connection: &Connection, hosts: usize) -> Forwarding {
    let agent = config.identity_agent.value.as_deref();
    let line = &config.login.forward_agent;
    let (socket, asked_by) = match (&line.value, connection.forward_agent) {
        (_, true) => (agent, "-A".to_owned()),
        (ForwardAgent::No, false) => return Forwarding::default(),
        (ForwardAgent::Yes, false) => (agent, format!("{}: ForwardAgent", line.origin)),
        (ForwardAgent::Socket(path), false) => {
            (Some(path.as_str()), format!("{}: ForwardAgent", line.origin))
        }
    };
    let why_not = match socket {
        _ if hosts > 1 && !connection.forward_to_all => {
            "without effect for a set of hosts, unless --forward-agent-to-all is given"
        }
        None => "there is no agent (SSH_AUTH_SOCK, IdentityAgent)",
        Some(socket) => {
            return Forwarding {
                socket: Some(Arc::from(socket)),
                warning: None,
            };
        }
    };
    Forwarding {
        socket: None,
        warning: Some(format!("{asked_by}: {why_not}")),
    }
}
