//! What a server is told before it starts. Plain values; shared by all connections of a process, so that 10,000 of
//! them hold one copy.

use std::sync::Arc;

use crate::algorithms::Algorithms;
use crate::client::{AuthMethod, Field};
use crate::keys::PublicKey;
use crate::transport::{GuessRule, HostKey, OUR_IDENT, RekeyLimits, ServerTransportConfig};

/// Everything that connections of one server have in common.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The identification line without its line end. Another implementation's name here makes clients treat the
    /// server as that implementation.
    pub ident: String,
    /// What is offered; host key algorithms without a key are left out.
    pub algorithms: Algorithms,
    /// What to sign key exchanges with.
    pub host_keys: Arc<[HostKey]>,
    /// Misbehaviour: the host keys of every key exchange but the first.
    pub rekey_host_keys: Option<Arc<[HostKey]>>,
    /// How a client's guess is judged.
    pub guess_rule: GuessRule,
    /// Whose key may log in.
    pub authorized: Authorized,
    /// What else it takes, or does instead.
    pub proofs: Arc<Proofs>,
    /// Shown before the answer to the first authentication request.
    pub banner: Option<String>,
    /// Failed authentications after which the server disconnects; `MaxAuthTries` of OpenSSH.
    pub max_auth_tries: u32,
    /// Channels and their windows.
    pub sessions: SessionLimits,
    /// Whether clients may ask for TCP connections; `AllowTcpForwarding` of OpenSSH. Its owner makes them:
    /// [`Event::DirectTcpip`](super::Event::DirectTcpip).
    pub forwards: bool,
    /// When to start a new key exchange.
    pub rekey: RekeyLimits,
}

/// Channels and their windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Sessions open at once; `MaxSessions` of OpenSSH, whose default is 10. TCP connections don't count.
    pub max_sessions: usize,
    /// Bytes of stdin that a client may have on its way to one command.
    pub window: u32,
    /// Whether the window is 0 until the exec, as in OpenSSH.
    pub window_after_exec: bool,
    /// Largest data packet in either direction, in bytes.
    pub max_packet: u32,
}

impl Default for SessionLimits {
    /// The values of OpenSSH, but for a window that suits thousands of servers in one process.
    fn default() -> Self {
        Self {
            max_sessions: 10,
            window: 128 * 1024,
            window_after_exec: true,
            max_packet: 32 * 1024,
        }
    }
}

/// Who may log in, as whom ever.
#[derive(Clone, Debug)]
pub enum Authorized {
    /// Everyone who can sign with the key that they show.
    AnyKey,
    /// The owners of these keys.
    Keys(Vec<PublicKey>),
    /// Nobody.
    Nobody,
}

/// The ways in, and what is right in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proofs {
    /// Methods that must all succeed, in this order: a list of `AuthenticationMethods` of OpenSSH. Any of these ways
    /// will do.
    pub ways: Vec<Vec<AuthMethod>>,
    /// The password of every user.
    pub password: String,
    /// The right password is answered with the wish for a new one.
    pub expired: bool,
    /// What keyboard-interactive asks, one round after the other.
    pub rounds: Vec<Round>,
}

/// One round of questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Its title.
    pub name: String,
    /// What to know before.
    pub instruction: String,
    /// The questions.
    pub fields: Vec<Field>,
    /// The right answers.
    pub answers: Vec<String>,
}

impl Proofs {
    /// Each of these methods is a way in.
    #[must_use]
    pub fn any_of(methods: &[AuthMethod]) -> Self {
        Self {
            ways: methods.iter().map(|method| vec![*method]).collect(),
            ..Self::default()
        }
    }

    /// All of these methods together, in this order.
    #[must_use]
    pub fn all_of(methods: &[AuthMethod]) -> Self {
        Self {
            ways: vec![methods.to_vec()],
            ..Self::default()
        }
    }

    /// The methods that may come next, once those in `done` have succeeded.
    pub(super) fn next<'a>(&'a self, done: &'a [AuthMethod]) -> impl Iterator<Item = AuthMethod> + 'a {
        let behind = self.ways.iter().filter_map(|way| way.strip_prefix(done));
        behind.filter_map(|rest| rest.first().copied())
    }
}

impl Default for Proofs {
    /// A key; where another method is allowed, one question for the password `secret`.
    fn default() -> Self {
        let field = Field {
            text: "Password: ".to_owned(),
            echo: false,
        };
        Self {
            ways: vec![vec![AuthMethod::PublicKey]],
            password: "secret".to_owned(),
            expired: false,
            rounds: vec![Round {
                fields: vec![field],
                answers: vec!["secret".to_owned()],
                ..Round::default()
            }],
        }
    }
}

impl Authorized {
    /// Whether this key opens the door.
    #[must_use]
    pub fn accepts(&self, key: &PublicKey) -> bool {
        match self {
            Self::AnyKey => true,
            Self::Keys(keys) => keys.iter().any(|known| known.blob() == key.blob()),
            Self::Nobody => false,
        }
    }
}

impl ServerConfig {
    /// A server with this host key that lets `authorized` in and is like OpenSSH in everything else but its name.
    #[must_use]
    pub fn new(host_key: HostKey, authorized: Authorized) -> Self {
        Self {
            ident: OUR_IDENT.to_owned(),
            algorithms: Algorithms::default(),
            host_keys: Arc::from([host_key]),
            rekey_host_keys: None,
            guess_rule: GuessRule::Rfc,
            authorized,
            proofs: Arc::default(),
            banner: None,
            max_auth_tries: 6,
            sessions: SessionLimits::default(),
            forwards: false,
            rekey: RekeyLimits::default(),
        }
    }

    pub(super) fn transport(&self) -> ServerTransportConfig {
        ServerTransportConfig {
            algorithms: self.algorithms.clone(),
            host_keys: Arc::clone(&self.host_keys),
            ident: self.ident.clone(),
            guess_rule: self.guess_rule,
            rekey: self.rekey,
        }
    }
}
