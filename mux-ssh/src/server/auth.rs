//! The server's side of RFC 4252: who may come in. Decides the answer to each authentication request; never sends
//! it. `none` is always refused.

use super::config::{Authorized, Proofs, Round, ServerConfig};
use crate::Violation;
use crate::algorithms::SignatureAlgorithm;
use crate::client::AuthMethod;
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
    /// `SSH_MSG_USERAUTH_INFO_REQUEST`: the round of this number.
    Ask(usize),
    /// `SSH_MSG_USERAUTH_PASSWD_CHANGEREQ`.
    Expired,
    /// `SSH_MSG_USERAUTH_FAILURE`; `partial`: the method itself succeeded.
    Failure { partial: bool },
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
    /// Methods that have succeeded.
    done: Vec<AuthMethod>,
    /// Who is being asked, in which round.
    asking: Option<(String, usize)>,
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

    /// Whether answers to questions are waited for.
    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// The methods that may come next.
    pub(super) fn methods(&self, proofs: &Proofs) -> Vec<&'static str> {
        let mut names: Vec<_> = proofs.next(&self.done).map(AuthMethod::name).collect();
        names.dedup();
        names
    }

    /// Answers the `SSH_MSG_USERAUTH_REQUEST` in `payload`.
    pub(super) fn request(
        &mut self,
        payload: &[u8],
        session: &[u8],
        config: &ServerConfig,
    ) -> Result<Answer, Violation> {
        if self.success {
            return Ok(Answer::Silence);
        }
        // A new request ends questions that were not answered (RFC 4256 §3.1).
        self.asking = None;
        let request = Request::parse(payload)?;
        self.answered = true;
        let decision = match request.proof.method() {
            Some(method) if config.proofs.next(&self.done).any(|next| next == method) => {
                request.decide(session, config)
            }
            Some(_) | None => Decision::Refuse,
        };
        Ok(match decision {
            Decision::Accept(method) => self.accept(request.user, method, config),
            Decision::AskForSignature { algorithm, key } => Answer::PkOk {
                algorithm: algorithm.to_owned(),
                key: key.to_vec(),
            },
            Decision::Question => self.ask(request.user.to_owned(), 0, config),
            Decision::Expired => Answer::Expired,
            // `none` is how a client asks for the methods; it costs no try, as in OpenSSH.
            Decision::Refuse if request.proof.method().is_none() => Answer::Failure { partial: false },
            Decision::Refuse => self.refuse(config),
        })
    }

    /// Answers the `SSH_MSG_USERAUTH_INFO_RESPONSE` in `payload`.
    pub(super) fn response(&mut self, payload: &[u8], config: &ServerConfig) -> Result<Answer, Violation> {
        let Some((user, at)) = self.asking.take() else {
            return Ok(Answer::Silence);
        };
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let mut answers = Vec::new();
        for _ in 0..reader.uint32()? {
            answers.push(reader.text()?);
        }
        reader.finish()?;
        match config.proofs.rounds.get(at) {
            Some(round) if round.answers == answers => Ok(self.ask(user, at + 1, config)),
            Some(_) | None => Ok(self.refuse(config)),
        }
    }

    /// The next round, or the end of them.
    fn ask(&mut self, user: String, at: usize, config: &ServerConfig) -> Answer {
        if at < config.proofs.rounds.len() {
            self.asking = Some((user, at));
            return Answer::Ask(at);
        }
        self.accept(&user, AuthMethod::KeyboardInteractive, config)
    }

    fn accept(&mut self, user: &str, method: AuthMethod, config: &ServerConfig) -> Answer {
        self.done.push(method);
        if config.proofs.ways.contains(&self.done) {
            self.success = true;
            return Answer::Success {
                user: user.to_owned(),
            };
        }
        Answer::Failure { partial: true }
    }

    fn refuse(&mut self, config: &ServerConfig) -> Answer {
        self.failures += 1;
        if self.failures >= config.max_auth_tries {
            Answer::TooMany
        } else {
            Answer::Failure { partial: false }
        }
    }
}

/// One request, as far as it is understood.
#[derive(Debug)]
struct Request<'a> {
    user: &'a str,
    connection: bool,
    proof: Proof<'a>,
    /// The fields ahead of the signature, which it covers.
    signed: &'a [u8],
}

#[derive(Debug)]
enum Proof<'a> {
    None,
    Key(KeyRequest<'a>),
    Password(&'a str),
    Questions,
}

impl Proof<'_> {
    fn method(&self) -> Option<AuthMethod> {
        match self {
            Self::None => None,
            Self::Key(_) => Some(AuthMethod::PublicKey),
            Self::Password(_) => Some(AuthMethod::Password),
            Self::Questions => Some(AuthMethod::KeyboardInteractive),
        }
    }
}

#[derive(Debug)]
struct KeyRequest<'a> {
    algorithm: &'a str,
    blob: &'a [u8],
    signature: Option<&'a [u8]>,
}

enum Decision<'a> {
    Accept(AuthMethod),
    AskForSignature { algorithm: &'a str, key: &'a [u8] },
    Question,
    Expired,
    Refuse,
}

impl<'a> Request<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self, Violation> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let user = reader.text()?;
        let connection = reader.string()? == b"ssh-connection";
        let method = reader.text()?;
        let mut request = Self {
            user,
            connection,
            proof: Proof::None,
            signed: &[],
        };
        match AuthMethod::from_name(method) {
            Some(AuthMethod::PublicKey) => {
                let has_signature = reader.boolean()?;
                let algorithm = reader.text()?;
                let blob = reader.string()?;
                let behind = reader.rest().len();
                request.signed = payload.get(..payload.len() - behind).unwrap_or_default();
                let signature = match has_signature {
                    true => Some(reader.string()?),
                    false => None,
                };
                reader.finish()?;
                request.proof = Proof::Key(KeyRequest {
                    algorithm,
                    blob,
                    signature,
                });
            }
            Some(AuthMethod::Password) => {
                reader.boolean()?;
                request.proof = Proof::Password(reader.text()?);
            }
            Some(AuthMethod::KeyboardInteractive) => request.proof = Proof::Questions,
            None => {}
        }
        Ok(request)
    }

    fn decide(&self, session: &[u8], config: &ServerConfig) -> Decision<'a> {
        if !self.connection {
            return Decision::Refuse;
        }
        match &self.proof {
            Proof::None => Decision::Refuse,
            Proof::Key(key) => self.decide_key(key, session, &config.authorized),
            Proof::Password(password) if *password != config.proofs.password => Decision::Refuse,
            Proof::Password(_) if config.proofs.expired => Decision::Expired,
            Proof::Password(_) => Decision::Accept(AuthMethod::Password),
            Proof::Questions => Decision::Question,
        }
    }

    fn decide_key(&self, key: &KeyRequest<'a>, session: &[u8], authorized: &Authorized) -> Decision<'a> {
        let Ok(public) = PublicKey::parse(key.blob) else {
            return Decision::Refuse;
        };
        if !authorized.accepts(&public) {
            return Decision::Refuse;
        }
        let Some(signature) = key.signature else {
            return Decision::AskForSignature {
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
            Ok(()) => Decision::Accept(AuthMethod::PublicKey),
            Err(_) => Decision::Refuse,
        }
    }
}

/// `SSH_MSG_USERAUTH_FAILURE` with the methods that there are.
pub(super) fn write_failure(out: &mut Writer<'_>, methods: &[&str], partial: bool) {
    out.byte(message::USERAUTH_FAILURE)
        .name_list(methods.iter().copied())
        .boolean(partial);
}

/// `SSH_MSG_USERAUTH_INFO_REQUEST`.
pub(super) fn write_round(out: &mut Writer<'_>, round: &Round) {
    let count = u32::try_from(round.fields.len()).unwrap_or(u32::MAX);
    out.byte(message::USERAUTH_INFO_REQUEST)
        .string(&round.name)
        .string(&round.instruction)
        .string("")
        .uint32(count);
    for field in &round.fields {
        out.string(&field.text).boolean(field.echo);
    }
}

/// `SSH_MSG_USERAUTH_PASSWD_CHANGEREQ`.
pub(super) fn write_expired(out: &mut Writer<'_>) {
    out.byte(message::USERAUTH_PASSWD_CHANGEREQ)
        .string("Your password has expired.")
        .string("");
}

/// `SSH_MSG_USERAUTH_PK_OK`.
pub(super) fn write_pk_ok(out: &mut Writer<'_>, algorithm: &str, key: &[u8]) {
    out.byte(message::USERAUTH_PK_OK).string(algorithm).string(key);
}

/// `SSH_MSG_USERAUTH_BANNER`.
pub(super) fn write_banner(out: &mut Writer<'_>, text: &str) {
    out.byte(message::USERAUTH_BANNER).string(text).string("");
}
