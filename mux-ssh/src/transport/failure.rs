//! How a connection ends in an error. It decides what the peer is told; which error it is was decided where it arose.

use super::Transport;
use crate::{Error, Violation, message};

impl Transport {
    /// Remembers the first error and says goodbye for it.
    pub(super) fn fail(&mut self, error: Error) -> Error {
        if let Some(first) = &self.error {
            return first.clone();
        }
        let error = self.blame_guess(error);
        self.services.clear();
        self.exchange = None;
        if let Some((code, text)) = goodbye(&error) {
            self.disconnect(code, &text);
        }
        self.error = Some(error.clone());
        error
    }
}

/// What the peer is told. `None`: it is gone or has said goodbye itself.
fn goodbye(error: &Error) -> Option<(u32, String)> {
    use message::disconnect::{
        BY_APPLICATION, HOST_KEY_NOT_VERIFIABLE, KEY_EXCHANGE_FAILED, MAC_ERROR, PROTOCOL_ERROR,
    };
    match error {
        // Where the length is encrypted, whoever changed it must not learn from our answer what came out.
        Error::Violation(Violation::Tag | Violation::PacketLength(_)) => Some((MAC_ERROR, String::new())),
        Error::Violation(violation) => Some((PROTOCOL_ERROR, violation.to_string())),
        Error::Incompatible(_) | Error::RekeyTimeout | Error::Crypto => {
            Some((KEY_EXCHANGE_FAILED, String::new()))
        }
        Error::HostKeyRejected => Some((HOST_KEY_NOT_VERIFIABLE, String::new())),
        Error::Misuse(_) | Error::GuessRejected => Some((BY_APPLICATION, String::new())),
        Error::Disconnected { .. } | Error::UnexpectedEof => None,
        // Errors of the login and of the connection: whoever found them says goodbye.
        Error::AuthFailed { .. } | Error::EarlyAuthRefused { .. } | Error::MayHaveRun | Error::Silent => None,
    }
}
