//! The SSH transport of RFC 4253 for both roles: identification, key exchange, packets, renewal of keys. It decides
//! what goes on the wire below the services; it never decides whether a host key is trusted, and holds no private
//! key of a user.

mod config;
mod ident;

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::SendQueue;

pub use self::config::{RekeyLimits, ServerMemory, TransportConfig};
pub use self::ident::{Family, Ident, OUR_IDENT};
use crate::Error;
use crate::algorithms::SignatureAlgorithm;
use crate::keys::PublicKey;
use crate::wire::Writer;

/// A peer's words in DISCONNECT are cut to this many bytes: they go to a terminal and a log.
pub const MAX_DESCRIPTION: usize = 1024;

/// One step of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The peer's identification was read.
    Ident,
    /// The peer's first KEXINIT was read and something common was found.
    KexInit,
    /// Client: the server has proved that it holds this key. Nothing more is read until
    /// [`Transport::answer_host_key`] was called. Only in the first key exchange; later ones must show the same key.
    HostKey(PublicKey),
    /// The peer's packets go under new keys; so do ours.
    NewKeys {
        /// It was the first key exchange.
        first: bool,
    },
    /// The peer's extensions.
    ExtInfo(ExtInfo),
    /// A packet for a service: message numbers 5, 6 and 50 to 127. Never empty.
    Packet(Bytes),
    /// The peer did not know what we sent with this sequence number.
    Unimplemented(u32),
}

/// What EXT_INFO (RFC 8308) told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtInfo {
    /// `server-sig-algs`: what a user may sign with, names that this build lacks left out. `None`: not said.
    pub server_sig_algs: Option<Vec<SignatureAlgorithm>>,
}

/// The transport of a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerTransportConfig {
    /// What is offered; host key algorithms without a key are left out.
    pub algorithms: crate::algorithms::Algorithms,
    /// The keys.
    pub host_keys: Arc<[HostKey]>,
    /// The identification, without CR and LF.
    pub ident: String,
    /// How a client's guess is judged.
    pub guess_rule: GuessRule,
    /// When keys are renewed.
    pub rekey: RekeyLimits,
}

/// A private key of a host.
#[derive(Debug)]
pub struct HostKey(());

/// When a client's guess counts as right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuessRule {
    /// RFC 4253 §7: both sides name the same key exchange and the same host key algorithm first.
    Rfc,
    /// The client's first key exchange is the negotiated one.
    Negotiated,
    /// Always: the flag is not looked at.
    Ignored,
}

/// The transport of one connection.
#[derive(Debug)]
pub(crate) struct Transport {}

impl Transport {
    /// A client, ready to send its first flight.
    pub(crate) fn client(_config: TransportConfig) -> Self {
        todo!()
    }

    /// A server.
    pub(crate) fn server(_config: ServerTransportConfig) -> Self {
        todo!()
    }

    /// Reads from the front of `input` until one thing happened. `None`: more bytes are needed, or an answer
    /// ([`Self::waits_for_answer`]). Errors are sticky.
    pub(crate) fn handle_input(
        &mut self,
        _now: Instant,
        _input: &mut BytesMut,
    ) -> Result<Option<Incoming>, Error> {
        todo!()
    }

    /// The error that the end of input means.
    pub(crate) fn handle_eof(&mut self) -> Error {
        todo!()
    }

    /// Starts a key exchange that is due; fails if one was not answered in time.
    pub(crate) fn handle_timeout(&mut self, _now: Instant) -> Result<(), Error> {
        todo!()
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// Encrypts what is queued, as far as the key exchange allows.
    pub(crate) fn poll_transmit(&mut self, _now: Instant, _out: &mut SendQueue) {
        todo!()
    }

    /// Queues a packet of a service. It leaves with [`Self::poll_transmit`], behind NEWKEYS if a key exchange is
    /// under way. The caller bounds its size: 256 KiB is what OpenSSH accepts, 32 KiB what everyone must.
    pub(crate) fn send(&mut self, _write: impl FnOnce(&mut Writer<'_>)) {
        todo!()
    }

    /// Encrypts a packet of a service straight into `out`, without a copy. Only while [`Self::can_send_now`]; call
    /// [`Self::poll_transmit`] before, so that what was queued earlier leaves first.
    pub(crate) fn send_now(&mut self, _out: &mut SendQueue, _write: impl FnOnce(&mut Writer<'_>)) {
        todo!()
    }

    /// Whether packets of services leave now: keys are in use, no key exchange is under way, nothing is queued.
    pub(crate) fn can_send_now(&self) -> bool {
        todo!()
    }

    /// Bytes of packets that are queued and not yet encrypted.
    pub(crate) fn queued(&self) -> usize {
        todo!()
    }

    /// Answers [`Incoming::HostKey`]. Accepted: NEWKEYS is queued, and all that is sent after it leaves under the new
    /// keys in the same flight. Not accepted: a DISCONNECT is queued and the next step is
    /// [`Error::HostKeyRejected`].
    pub(crate) fn answer_host_key(&mut self, _accept: bool) {
        todo!()
    }

    /// Whether input stands still until [`Self::answer_host_key`]; the owner's `wants_input` is false then.
    pub(crate) fn waits_for_answer(&self) -> bool {
        todo!()
    }

    /// Answers the packet that was handed out last with UNIMPLEMENTED.
    ///
    /// # Errors
    /// The peer has sent too many such packets.
    pub(crate) fn reject_packet(&mut self) -> Result<(), Error> {
        todo!()
    }

    /// Queues DISCONNECT. Nothing is sent after it.
    pub(crate) fn disconnect(&mut self, _code: u32, _description: &str) {
        todo!()
    }

    /// EXT_INFO from now on is a violation: the login is complete.
    pub(crate) fn forbid_ext_info(&mut self) {
        todo!()
    }

    /// Starts a key exchange, unless one is under way.
    pub(crate) fn start_rekey(&mut self, _now: Instant) {
        todo!()
    }

    /// Whether a key exchange is under way, the first one included.
    pub(crate) fn is_rekeying(&self) -> bool {
        todo!()
    }

    /// The sequence number of the next packet that leaves, if nothing but what is queued by [`Self::send`] comes
    /// before it: for matching [`Incoming::Unimplemented`]. Valid from the first NEWKEYS on.
    pub(crate) fn next_send_sequence(&self) -> u32 {
        todo!()
    }

    /// The hash of the first exchange; set when the host key is asked.
    pub(crate) fn session_id(&self) -> Option<&Bytes> {
        todo!()
    }

    /// The host's signature over the first exchange hash: what an agent's session-bind wants.
    pub(crate) fn host_signature(&self) -> Option<&Bytes> {
        todo!()
    }

    /// The peer's identification, once it was read.
    pub(crate) fn peer_ident(&self) -> Option<&Ident> {
        todo!()
    }

    /// Whether strict key exchange is in force; known from the peer's KEXINIT on.
    pub(crate) fn is_strict(&self) -> bool {
        todo!()
    }

    /// Whether the peer takes EXT_INFO; known from the peer's KEXINIT on.
    pub(crate) fn peer_takes_ext_info(&self) -> bool {
        todo!()
    }

    /// What is worth remembering about this server, once its KEXINIT was read. `one_session` is for others to fill in.
    pub(crate) fn learned(&self) -> Option<ServerMemory> {
        todo!()
    }

    /// The host key, once the peer has proved that it holds it.
    pub(crate) fn host_key(&self) -> Option<&PublicKey> {
        todo!()
    }

    /// Packets and bytes, both ways.
    pub(crate) fn counters(&self) -> Counters {
        todo!()
    }
}

/// What went over the wire, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes sent, identification included.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
}
