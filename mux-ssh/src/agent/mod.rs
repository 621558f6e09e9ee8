//! The client's side of the agent protocol (draft-ietf-sshm-ssh-agent, OpenSSH PROTOCOL.agent).
//!
//! Decides what is asked of an agent and what an agent may answer. Never opens a socket, never waits: deadlines and
//! the order of keys are the owner's.

mod client;
mod codec;
mod error;
mod tunnel;

#[cfg(test)]
mod tests;

pub use client::{AgentClient, AgentEvent, AgentRequest};
pub use codec::{AgentIdentity, Keep, MAX_FRAME, MAX_IDENTITIES};
pub use error::{AgentError, AgentViolation};
pub use tunnel::{AgentTunnel, TunnelEvent};
