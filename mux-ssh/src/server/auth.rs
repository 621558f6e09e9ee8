//! The server's side of RFC 4252: who may come in. Decides the answer to each authentication request; never sends
//! it, and knows no methods but `none` (always refused) and `publickey`.

use super::config::Authorized;
use crate::Violation;
use crate::algorithms::SignatureAlgorithm;
use crate::keys::PublicKey;
use crate::message;
use crate::wire::{Reader, Writer};

/// The answer to one request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// `SSH_MSG_USERAUTH_SUCCESS`.
    Success { user: String },
    /// `SSH_MSG_USERAUTH_PK_OK` for this algorithm and key blob.
    PkOk { algorithm: String, key: Vec<u8> },
    /// `SSH_MSG_USERAUTH_FAILURE`.
    Failure,
    /// As many failures as allowed: disconnect.
    TooMany,
    /// Nothing: requests after success are ignored (RFC 4252 §5.1).
    Silence,
}

/// What has been decided so far on one connection.
#[derive(Debug, Default)]
pub(super) struct Auth {
    answered: bool,
    failures: u32,
    success: bool,
}

impl Auth {
    /// Whether the client is in.
    pub(super) fn is_authenticated(&self) -> bool {
        self.success
    }

    /// Whether a request was answered before.
    pub(super) fn has_answered(&self) -> bool {
        self.answered
    }

    /// Answers the `SSH_MSG_USERAUTH_REQUEST` in `payload`.
    pub(super) fn request(
        &mut self,
        payload: &[u8],
        session: &[u8],
        authorized: &Authorized,
        max_tries: u32,
    ) -> Result<Answer, Violation> {
        if self.success {
            return Ok(Answer::Silence);
        }
        let request = Request::parse(payload)?;
        self.answered = true;
        let answer = match request.decide(session, authorized) {
            Decision::Accept => {
                self.success = true;
                Answer::Success {
                    user: request.user.to_owned(),
                }
            }
            Decision::Ask { algorithm, key } => Answer::PkOk {
                algorithm: algorithm.to_owned(),
                key: key.to_vec(),
            },
            // `none` is how a client asks for the methods; it costs no try, as in OpenSSH.
            Decision::Refuse if request.key.is_none() => Answer::Failure,
            Decision::Refuse => {
                self.failures += 1;
                if self.failures >= max_tries {
                    Answer::TooMany
                } else {
                    Answer::Failure
                }
            }
        };
        Ok(answer)
    }
}

/// One request, as far as it is understood.
#[derive(Debug)]
struct Request<'a> {
    user: &'a str,
    connection: bool,
    key: Option<KeyRequest<'a>>,
    /// The fields ahead of the signature, which it covers.
    signed: &'a [u8],
}

#[derive(Debug)]
struct KeyRequest<'a> {
    algorithm: &'a str,
    blob: &'a [u8],
    signature: Option<&'a [u8]>,
}

enum Decision<'a> {
    Accept,
    Ask { algorithm: &'a str, key: &'a [u8] },
    Refuse,
}

impl<'a> Request<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self, Violation> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let user = reader.text()?;
        let connection = reader.string()? == b"ssh-connection";
        let method = reader.string()?;
        let mut request = Self {
            user,
            connection,
            key: None,
            signed: &[],
        };
        if method == b"publickey" {
            let has_signature = reader.boolean()?;
            let algorithm = reader.text()?;
            let blob = reader.string()?;
            let behind = reader.rest().len();
            request.signed = payload.get(..payload.len() - behind).unwrap_or_default();
            let signature = if has_signature {
                Some(reader.string()?)
            } else {
                None
            };
            reader.finish()?;
            request.key = Some(KeyRequest {
                algorithm,
                blob,
                signature,
            });
        }
        Ok(request)
    }

    fn decide(&self, session: &[u8], authorized: &Authorized) -> Decision<'a> {
        let Some(key) = self.key.as_ref().filter(|_| self.connection) else {
            return Decision::Refuse;
        };
        let Ok(public) = PublicKey::parse(key.blob) else {
            return Decision::Refuse;
        };
        if !authorized.accepts(&public) {
            return Decision::Refuse;
        }
        let Some(signature) = key.signature else {
            return Decision::Ask {
                algorithm: key.algorithm,
                key: key.blob,
            };
        };
        let Some(algorithm) = SignatureAlgorithm::from_name(key.algorithm) else {
            return Decision::Refuse;
        };
        // RFC 4252 §7: the session identifier as a string, then the request up to the key.
        let mut data = bytes::BytesMut::new();
        Writer::new(&mut data).string(session).raw(self.signed);
        match public.verify(algorithm, &data, signature) {
            Ok(()) => Decision::Accept,
            Err(_) => Decision::Refuse,
        }
    }
}

/// `SSH_MSG_USERAUTH_FAILURE` with the one method there is.
pub(super) fn write_failure(out: &mut Writer<'_>) {
    out.byte(message::USERAUTH_FAILURE)
        .name_list(["publickey"])
        .boolean(false);
}

/// `SSH_MSG_USERAUTH_PK_OK`.
pub(super) fn write_pk_ok(out: &mut Writer<'_>, algorithm: &str, key: &[u8]) {
    out.byte(message::USERAUTH_PK_OK).string(algorithm).string(key);
}

/// `SSH_MSG_USERAUTH_BANNER`.
pub(super) fn write_banner(out: &mut Writer<'_>, text: &str) {
    out.byte(message::USERAUTH_BANNER).string(text).string("");
}
