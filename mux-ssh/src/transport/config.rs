//! What the owner of a connection decides about its transport, as plain values.

use std::sync::Arc;
use std::time::Duration;

use super::guess::GuessRule;
use super::host_key::HostKey;
use super::ident::OUR_IDENT;
use crate::algorithms::{Algorithms, KeyType};

/// When a new key exchange is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RekeyLimits {
    /// Bytes under one key, in either direction.
    pub bytes: u64,
    /// Packets under one key, in either direction.
    pub packets: u32,
    /// Time under one key.
    pub time: Duration,
}

impl Default for RekeyLimits {
    /// RFC 4253 §9 asks for a gigabyte or an hour; 2^28 packets keep GCM far from its limit and the sequence
    /// number from wrapping under one key.
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            packets: 1 << 28,
            time: Duration::from_secs(3600),
        }
    }
}

/// What is known about a server from an earlier connection whose host key was verified. Losing it costs a round trip
/// and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerMemory {
    /// Its identification, up to the first space.
    pub ident: String,
    /// The first name of its key exchange list.
    pub first_kex: String,
    /// The first name of its host key list.
    pub first_host_key: String,
    /// Its key exchange list has a post-quantum name that we offer.
    pub post_quantum: bool,
    /// It allows one session a connection.
    pub one_session: bool,
    /// It wants the method `none` before any other.
    pub none_first: bool,
}

/// The transport of a client.
#[derive(Clone, Debug, Default)]
pub struct TransportConfig {
    /// What is offered.
    pub algorithms: Algorithms,
    /// The types of host key that known_hosts has for this host: preferred, as OpenSSH does.
    pub known_host_key_types: Vec<KeyType>,
    /// known_hosts has an authority that may vouch for this host: certificates are asked for, before anything else.
    pub known_authority: bool,
    /// What is known about the server.
    pub memory: Option<ServerMemory>,
    /// When keys are renewed.
    pub rekey: RekeyLimits,
}

/// The transport of a server.
#[derive(Clone, Debug)]
pub struct ServerTransportConfig {
    /// What is offered; host key algorithms without a key are left out.
    pub algorithms: Algorithms,
    /// The keys, one of each type; shared by all connections.
    pub host_keys: Arc<[HostKey]>,
    /// The identification, without CR and LF.
    pub ident: String,
    /// How a client's guess is judged.
    pub guess_rule: GuessRule,
    /// When keys are renewed.
    pub rekey: RekeyLimits,
}

impl ServerTransportConfig {
    /// A server with these keys and everything else as in this build.
    #[must_use]
    pub fn new(host_keys: Arc<[HostKey]>) -> Self {
        Self {
            algorithms: Algorithms::default(),
            host_keys,
            ident: OUR_IDENT.to_owned(),
            guess_rule: GuessRule::Rfc,
            rekey: RekeyLimits::default(),
        }
    }
}
