//! The ways to log in that a client knows, and what a server may ask of a person in them. Values; which is used when is
//! decided by the login.

use crate::algorithms::PublicKeyAlgorithm;

/// A way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthMethod {
    /// A signature (RFC 4252 §7).
    PublicKey,
    /// Questions of the server's choice (RFC 4256).
    KeyboardInteractive,
    /// A password (RFC 4252 §8).
    Password,
}

impl AuthMethod {
    /// All of them, in the order of OpenSSH's `PreferredAuthentications`.
    pub const ALL: [Self; 3] = [Self::PublicKey, Self::KeyboardInteractive, Self::Password];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PublicKey => "publickey",
            Self::KeyboardInteractive => "keyboard-interactive",
            Self::Password => "password",
        }
    }

    /// The method of this name, if it is one of ours.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// Which ways to log in are tried, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Methods {
    /// In this order, as far as the server offers them; what is not in it is never tried.
    pub order: Vec<AuthMethod>,
    /// As what keys may be shown and proved (`PubkeyAcceptedAlgorithms`). An RSA key has a choice, and takes the first
    /// that the server takes too; a key that has none here is not shown.
    pub algorithms: Vec<PublicKeyAlgorithm>,
    /// How many passwords the server may refuse before the next method is tried (`NumberOfPasswordPrompts`).
    /// Questions are answered once in any case: many a server locks out who is wrong twice.
    pub passwords: u32,
    /// What the server's questions should be about, separated by commas (`KbdInteractiveDevices`); empty: whatever it
    /// likes.
    pub devices: String,
}

impl Default for Methods {
    /// Keys alone: whoever wants the others has to answer [`Event::Prompt`](super::Event::Prompt).
    fn default() -> Self {
        Self {
            order: vec![AuthMethod::PublicKey],
            algorithms: PublicKeyAlgorithm::ALL.to_vec(),
            passwords: 1,
            devices: String::new(),
        }
    }
}

/// What a person is to be asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Prompt {
    /// The user's password; one answer.
    Password {
        /// How many were refused on this connection.
        refused: u32,
    },
    /// The server's questions; as many answers as there are fields. All text is bounded and not yet safe to print.
    Interactive {
        /// A title; often empty.
        name: String,
        /// What to know before; often empty.
        instruction: String,
        /// The questions; at least one.
        fields: Vec<Field>,
    },
}

impl Prompt {
    /// The method that it belongs to.
    #[must_use]
    pub fn method(&self) -> AuthMethod {
        match self {
            Self::Password { .. } => AuthMethod::Password,
            Self::Interactive { .. } => AuthMethod::KeyboardInteractive,
        }
    }
}

/// One question of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field {
    /// Its words.
    pub text: String,
    /// Whether what is typed may be seen.
    pub echo: bool,
}
