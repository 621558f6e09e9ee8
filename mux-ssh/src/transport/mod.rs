//! The SSH transport of RFC 4253 for both roles: identification, key exchange, packets, renewal of keys. It decides
//! what goes on the wire below the services; it never decides whether a host key is trusted, and holds no private
//! key of a user.
//!
//! ```text
//!  input ─ IdentReader ─ Inbound ─ receive.rs ─┬─ exchange.rs (20 to 49)
//!                                              └─ Incoming: packets of services, questions
//!  output ─ ident, control frames (1 to 49), service frames (held back during a key exchange) ─ Outbound
//! ```

mod cipher;
mod config;
mod ctr;
mod derive;
mod exchange;
mod ext_info;
mod failure;
mod frames;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod guess;
mod host_key;
mod ident;
mod kexinit;
mod method;
mod packet;
mod phase;
mod proof;
mod random;
mod receive;
mod send;
mod shown_key;
#[cfg(feature = "server")]
mod tapped;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

pub use self::config::{RekeyLimits, ServerMemory, ServerTransportConfig, TransportConfig};
pub use self::ext_info::{ExtInfo, MAX_EXTENSIONS};
use self::frames::Frames;
use self::guess::Guess;
pub use self::guess::GuessRule;
pub use self::host_key::HostKey;
use self::ident::IdentReader;
pub use self::ident::{Family, Ident, MAX_BANNER_LINE, MAX_BANNER_LINES, MAX_GREETING, MAX_IDENT, OUR_IDENT};
pub use self::kexinit::MAX_NAMES;
use self::kexinit::Side;
use self::packet::{Inbound, Outbound};
pub use self::packet::{MAX_PACKET, MAX_PLAIN_PACKET};
use self::phase::Exchange;
pub use self::receive::{MAX_DESCRIPTION, MAX_IGNORED_BEFORE_KEYS, MAX_OWED, MAX_PING, MAX_UNKNOWN_MESSAGES};
pub(crate) use self::shown_key::ShownKey;
use crate::Error;
use crate::algorithms::{Algorithms, KeyType};

/// One step of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The peer's identification was read.
    Ident,
    /// The peer's first KEXINIT was read and something common was found.
    KexInit,
    /// Client: the server has proved that it holds this key. Nothing more is read until
    /// [`Transport::answer_host_key`] was called. Only in the first key exchange; later ones must show the same key.
    HostKey(ShownKey),
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

/// What went over the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes sent, identification included.
    pub bytes_sent: u64,
    /// Bytes received, identification included.
    pub bytes_received: u64,
    /// Key exchanges that were completed, the first one included.
    pub key_exchanges: u64,
}

/// The transport of one connection.
#[derive(Debug)]
pub(crate) struct Transport {
    role: Role,
    our_ident: Cow<'static, str>,
    offer: Algorithms,
    rekey: RekeyLimits,
    peer: Peer,
    inbound: Inbound,
    outbound: Outbound,
    /// Messages 1 to 49, which a key exchange does not hold back.
    control: Frames,
    /// Everything else.
    services: Frames,
    /// The key exchange that is under way.
    exchange: Option<Box<Exchange>>,
    /// Takes over behind the NEWKEYS that waits in `control`.
    next_sealer: Option<cipher::Sealer>,
    /// What the first key exchange fixed for good.
    session: Option<Box<Session>>,
    sending: Sending,
    /// When the present keys are too old.
    rekey_at: Option<Instant>,
    /// DISCONNECT, which leaves last.
    goodbye: Option<Bytes>,
    error: Option<Error>,
}

#[derive(Debug)]
enum Role {
    Client {
        /// What the first flight will gamble on.
        guess: Option<Guess>,
        /// It has gambled.
        guessed: bool,
        /// The server names other algorithms first than those of the guess.
        doubtful: bool,
    },
    Server {
        host_keys: Arc<[HostKey]>,
        rule: GuessRule,
    },
}

/// What may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// Nothing has left yet.
    Unstarted,
    /// Our KEXINIT has left and our NEWKEYS has not: control frames only.
    Exchange,
    /// Everything.
    Open,
    /// DISCONNECT has left.
    Over,
}

/// What was learned about the peer, and how often it tried our patience.
#[derive(Debug)]
struct Peer {
    /// `None` once the identification was read.
    ident_reader: Option<IdentReader>,
    ident: Option<Ident>,
    strict: bool,
    takes_ext_info: bool,
    learned: Option<Box<ServerMemory>>,
    /// The types of host key that a server lists, of those that were offered.
    host_key_types: Vec<KeyType>,
    /// Its first NEWKEYS has come.
    keyed: bool,
    ignored: u32,
    unknown: u32,
    ext_infos: u8,
    /// The login is complete, whichever side logged in.
    logged_in: bool,
}

/// What the first key exchange fixed.
#[derive(Debug)]
struct Session {
    id: Bytes,
    host_key: Bytes,
    host_signature: Bytes,
}

impl Transport {
    /// A client, ready to send its first flight.
    pub(crate) fn client(mut config: TransportConfig) -> Self {
        let guess = guess::plan(&mut config);
        let role = Role::Client {
            guess,
            guessed: false,
            doubtful: false,
        };
        Self::new(
            role,
            Cow::Borrowed(OUR_IDENT),
            config.algorithms,
            config.rekey,
            IdentReader::of_server(),
        )
    }

    /// A server, ready to send its first flight.
    #[cfg_attr(
        not(any(test, feature = "server")),
        expect(
            dead_code,
            reason = "one state machine serves both roles; a client alone starts no server"
        )
    )]
    pub(crate) fn server(config: ServerTransportConfig) -> Self {
        let mut offer = config.algorithms;
        let keys = &config.host_keys;
        offer
            .host_keys
            .retain(|algorithm| keys.iter().any(|key| key.shows(*algorithm)));
        let role = Role::Server {
            host_keys: config.host_keys,
            rule: config.guess_rule,
        };
        Self::new(
            role,
            Cow::Owned(config.ident),
            offer,
            config.rekey,
            IdentReader::of_client(),
        )
    }

    fn new(
        role: Role,
        our_ident: Cow<'static, str>,
        offer: Algorithms,
        rekey: RekeyLimits,
        ident_reader: IdentReader,
    ) -> Self {
        let peer = Peer {
            ident_reader: Some(ident_reader),
            ident: None,
            strict: false,
            takes_ext_info: false,
            learned: None,
            host_key_types: Vec::new(),
            keyed: false,
            ignored: 0,
            unknown: 0,
            ext_infos: 0,
            logged_in: false,
        };
        Self {
            role,
            our_ident,
            offer,
            rekey,
            peer,
            inbound: Inbound::new(),
            outbound: Outbound::new(),
            control: Frames::default(),
            services: Frames::default(),
            exchange: None,
            next_sealer: None,
            session: None,
            sending: Sending::Unstarted,
            rekey_at: None,
            goodbye: None,
            error: None,
        }
    }

    /// The error that the end of input means.
    pub(crate) fn handle_eof(&mut self) -> Error {
        self.fail(Error::UnexpectedEof)
    }

    /// Starts a key exchange that is due; fails if one was not answered in time.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Result<(), Error> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let late = self
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.is_late(now));
        if late {
            return Err(self.fail(Error::RekeyTimeout));
        }
        if self.rekey_due(now) {
            self.start_rekey(now);
        }
        Ok(())
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.error.is_some() {
            return None;
        }
        match &self.exchange {
            Some(exchange) => exchange.deadline,
            None => self.rekey_at,
        }
    }

    /// The login is complete: EXT_INFO from now on is a violation, PING is answered.
    pub(crate) fn login_done(&mut self) {
        self.peer.logged_in = true;
    }

    /// Starts a key exchange, unless one is under way or the first has not happened.
    pub(crate) fn start_rekey(&mut self, now: Instant) {
        if self.exchange.is_none()
            && self.peer.keyed
            && self.error.is_none()
            && let Err(error) = self.begin_exchange(now)
        {
            self.fail(error);
        }
    }

    /// The hash of the first exchange; set when the host key is asked about.
    pub(crate) fn session_id(&self) -> Option<&Bytes> {
        self.session.as_ref().map(|session| &session.id)
    }

    /// The host key as it was shown, or the certificate for it, once the peer has proved that it holds it.
    pub(crate) fn host_key(&self) -> Option<&Bytes> {
        self.session.as_ref().map(|session| &session.host_key)
    }

    /// The host's signature over the first exchange hash: what an agent's session-bind wants.
    pub(crate) fn host_signature(&self) -> Option<&Bytes> {
        self.session.as_ref().map(|session| &session.host_signature)
    }

    /// The peer's identification, once it was read.
    pub(crate) fn peer_ident(&self) -> Option<&Ident> {
        self.peer.ident.as_ref()
    }

    /// What is worth remembering about this server, once its KEXINIT was read. `one_session` is for others to fill
    /// in.
    pub(crate) fn learned(&self) -> Option<&ServerMemory> {
        self.peer.learned.as_deref()
    }

    /// Which types of host key the server has by its own word, of those that it was offered.
    pub(crate) fn host_key_types(&self) -> &[KeyType] {
        &self.peer.host_key_types
    }

    /// What went over the wire so far.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            packets_sent: self.outbound.packets,
            packets_received: self.inbound.packets,
            bytes_sent: self.outbound.bytes,
            bytes_received: self.inbound.bytes,
            key_exchanges: self.inbound.rekeyed,
        }
    }

    /// Whether a key exchange is under way, the first one included.
    #[cfg(test)]
    pub(crate) fn is_rekeying(&self) -> bool {
        self.exchange.is_some() || self.sending != Sending::Open
    }

    fn side(&self) -> Side {
        match self.role {
            Role::Client { .. } => Side::Client,
            Role::Server { .. } => Side::Server,
        }
    }

    fn rekey_due(&self, now: Instant) -> bool {
        // Until our own NEWKEYS has left, what was counted belongs to the keys that it ends.
        let settled = self.exchange.is_none() && self.sending == Sending::Open;
        settled && (self.is_used_up() || self.rekey_at.is_some_and(|due| now >= due))
    }

    /// The keys have carried as much as they may.
    fn is_used_up(&self) -> bool {
        [&self.inbound.usage, &self.outbound.usage]
            .iter()
            .any(|usage| usage.bytes >= self.rekey.bytes || usage.packets >= self.rekey.packets)
            && self.peer.keyed
    }
}
