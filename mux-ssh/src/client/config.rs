//! What the owner decides before a connection begins. Values with defaults; nothing here acts.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Methods;
use crate::algorithms::{Algorithms, KeyType};
use crate::keys::{Certificate, PublicKey};
use crate::transport::{RekeyLimits, ServerMemory};

/// Everything that a [`Client`](super::Client) has to know about one connection.
#[derive(Clone, Debug, Default)]
pub struct ClientConfig {
    /// The user to log in as.
    pub user: String,
    /// What to offer in the key exchange, in order of preference.
    pub algorithms: Algorithms,
    /// Types of host key that are known for this host: they are preferred, and only they are guessed.
    pub known_host_key_types: Vec<KeyType>,
    /// known_hosts has an authority that may vouch for this host: certificates are asked for, before anything else.
    pub known_authority: bool,
    /// Keys to log in with, in this order.
    pub identities: Vec<Identity>,
    /// Which ways to log in are tried, and in which order.
    pub methods: Methods,
    /// What an earlier connection learned about this server. `None`: nothing is guessed.
    pub memory: Option<ServerMemory>,
    /// When to ask a silent server whether it is still there.
    pub keepalive: Keepalive,
    /// When to change keys.
    pub rekey: RekeyLimits,
    /// Keep one session channel open in advance, so that the next command takes one round trip.
    pub spare: bool,
    /// Nothing before its time: one request at a time, `none` first, as the `ssh` program does it.
    /// For the one reconnect after [`Error::EarlyAuthRefused`](crate::Error::EarlyAuthRefused).
    pub cautious: bool,
    /// This identity signed in an earlier connection, with the command behind it, and was not answered
    /// ([`Event::LoginUnanswered`](super::Event::LoginUnanswered)). If the server refuses it now, it refused it then,
    /// and the command did not run. Unless it does, nothing is sent again: the connection ends with
    /// [`Error::MayHaveRun`](crate::Error::MayHaveRun). For use with `cautious`, under which it is asked about.
    pub doubted: Option<usize>,
    /// Whether to tell which further keys the host says that it has.
    pub host_keys: bool,
    /// Whether a server that asks for no proof of who we are is to be trusted with commands.
    pub accept_none: bool,
}

/// A key that may log us in. The private half stays with the owner, who answers [`Event::Sign`](super::Event::Sign).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The public key.
    pub key: PublicKey,
    /// A certificate for it, which is shown in its place.
    pub certificate: Option<Arc<Certificate>>,
    /// The server is known to accept it, or it is the only one there is: sign without asking first.
    pub proven: bool,
    /// Signing takes a touch or a confirmation: never sign before the server said that it wants this key.
    pub hardware: bool,
}

impl Identity {
    /// A plain key of which nothing more is known.
    #[must_use]
    pub fn of(key: PublicKey) -> Self {
        Self {
            key,
            certificate: None,
            proven: false,
            hardware: false,
        }
    }

    /// What is shown to the server.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        match &self.certificate {
            Some(certificate) => certificate.blob(),
            None => self.key.blob(),
        }
    }
}

/// When to probe a server that says nothing, and after how many unanswered probes it is dead.
/// A zero duration never probes. Anything at all that was read counts as an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// While no command runs.
    pub idle: (Duration, u32),
    /// While one does.
    pub busy: (Duration, u32),
}

impl Default for Keepalive {
    /// 15 s and 3 probes while a command runs, 60 s and 2 while idle: a NAT box forgets a quiet connection after some
    /// minutes, and a dead server is noticed within one.
    fn default() -> Self {
        Self {
            idle: (Duration::from_secs(60), 2),
            busy: (Duration::from_secs(15), 3),
        }
    }
}

/// A command to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    /// Handed to the user's shell on the server, byte for byte.
    pub command: Bytes,
    /// Variables to set first. Servers refuse most: see [`Event::EnvRefused`](super::Event::EnvRefused).
    pub env: Vec<(Bytes, Bytes)>,
    /// Whether standard input follows.
    pub stdin: Stdin,
}

/// A TCP connection that the server is asked to make on our behalf (RFC 4254 §7.2): the way to the next host of a jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectTcpip {
    /// Name or address, as the server understands it.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// What a command's standard input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Empty: its end is sent right behind the command.
    #[default]
    Closed,
    /// What [`Client::write_stdin`](super::Client::write_stdin) gives, until
    /// [`Client::finish_stdin`](super::Client::finish_stdin).
    Open,
}
