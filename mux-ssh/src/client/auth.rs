//! The login (RFC 4252): which identity is offered when, what is signed, and what each answer of the server means.
//!
//! It signs nothing itself: signatures are asked for by an event. What may be sent ahead of an answer is decided
//! elsewhere; it only tells whether a signed request is out.

mod answers;

use bytes::{Bytes, BytesMut};

use super::events::Events;
use super::packet::Packet;
use super::userauth;
use super::{Event, Identity, QuestionId, SessionBinding};
use crate::Error;
use crate::algorithms::{KeyType, PublicKeyAlgorithm, SignatureAlgorithm};
use crate::wire::{Reader, Writer};

/// Banners of one login, all together: a page of legal text is 4 KiB.
const MAX_BANNER_BYTES: usize = 64 * 1024;

/// Banners of one login; PAM modules may each send one.
const MAX_BANNERS: u32 = 64;

/// Authentication methods that a server offers at a time; OpenSSH knows six.
const MAX_METHODS: usize = 32;

/// What is fixed for one login.
#[derive(Debug)]
pub(crate) struct AuthConfig {
    pub(crate) user: String,
    pub(crate) identities: Vec<Identity>,
    /// One request at a time, after the answer to the one before.
    pub(crate) cautious: bool,
    /// Ask with `none` before anything else.
    pub(crate) none_first: bool,
    pub(crate) accept_none: bool,
    /// The server is not the one that it should be: it gets no password and no answer to its questions.
    pub(crate) distrusted: bool,
    /// Whether this identity is accepted decides whether an earlier login with it can have gone well.
    pub(crate) doubted: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Auth {
    config: AuthConfig,
    binding: SessionBinding,
    service: Service,
    step: Step,
    /// Identities before this one have been tried.
    next: usize,
    /// The identity that the server refused last; the one after it may be asked about already.
    refused: Option<usize>,
    none_tried: bool,
    /// What the last refusal said.
    refusal: Option<Refusal>,
    /// What the server accepts signatures with; `None` while it did not say.
    algorithms: Option<Vec<SignatureAlgorithm>>,
    questions: u32,
    banners: u32,
    banner_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Wanted,
    Asked,
    Accepted,
}

#[derive(Debug)]
enum Step {
    /// The next request is to be chosen.
    Choose,
    /// It waits to be sent.
    Send(Request, Bytes),
    /// The owner is signing. `data` begins with the session id, which is signed and not sent.
    Signing {
        question: QuestionId,
        identity: usize,
        algorithm: SignatureAlgorithm,
        data: Bytes,
    },
    /// The server is thinking.
    Asked(Request),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    None,
    Query {
        identity: usize,
        algorithm: PublicKeyAlgorithm,
    },
    Signed {
        identity: usize,
    },
}

#[derive(Debug)]
struct Refusal {
    methods: Vec<String>,
    partial: bool,
}

/// What a message meant for the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Waits,
    /// A request was refused; [`Auth::advance`] chooses the next.
    Refused,
    /// Logged in, by this identity.
    Success(Option<usize>),
}

impl Auth {
    pub(crate) fn new(config: AuthConfig, binding: SessionBinding) -> Self {
        Self {
            config,
            binding,
            service: Service::Wanted,
            step: Step::Choose,
            next: 0,
            refused: None,
            none_tried: false,
            refusal: None,
            algorithms: None,
            questions: 0,
            banners: 0,
            banner_bytes: 0,
        }
    }

    /// The server told what it accepts signatures with.
    pub(crate) fn set_algorithms(&mut self, algorithms: Option<Vec<SignatureAlgorithm>>) {
        if algorithms.is_some() {
            self.algorithms = algorithms;
        }
    }

    /// Whether a signed request is out: what is sent now is looked at after it was judged.
    pub(crate) fn is_signed(&self) -> bool {
        self.signed_by().is_some()
    }

    /// The identity whose signed request is out.
    pub(crate) fn signed_by(&self) -> Option<usize> {
        match self.step {
            Step::Asked(Request::Signed { identity }) => Some(identity),
            Step::Asked(Request::None | Request::Query { .. })
            | Step::Choose
            | Step::Send(..)
            | Step::Signing { .. } => None,
        }
    }

    /// Whether the server was asked and has not answered anything yet.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.step, Step::Asked(_)) && self.refusal.is_none()
    }

    /// Chooses the next request, if it is time to.
    ///
    /// # Errors
    /// Nothing is left to try.
    pub(crate) fn advance(&mut self, events: &mut Events) -> Result<(), Error> {
        if !matches!(self.step, Step::Choose) {
            return Ok(());
        }
        if self.config.none_first && !self.none_tried {
            self.step = self.none();
            return Ok(());
        }
        while let Some(identity) = self.config.identities.get(self.next) {
            let index = self.next;
            let early = identity.proven && !identity.hardware && !self.config.cautious;
            let algorithm = self.algorithm_for(identity);
            self.next += 1;
            match algorithm {
                None => events.push(Event::KeyRefused { identity: index }),
                Some(algorithm) if early => {
                    self.step = self.sign(index, algorithm, events);
                    return Ok(());
                }
                Some(algorithm) => {
                    self.step = self.query(index, algorithm);
                    return Ok(());
                }
            }
        }
        if self.refusal.is_none() && !self.none_tried {
            // Nothing to offer: the refusal of `none` tells what the server would want instead.
            self.step = self.none();
            return Ok(());
        }
        Err(self.failure())
    }

    /// What it means that no login came about.
    pub(crate) fn failure(&self) -> Error {
        match &self.refusal {
            Some(refusal) => Error::AuthFailed {
                methods: refusal.methods.clone(),
                partial: refusal.partial,
            },
            None => Error::AuthFailed {
                methods: Vec::new(),
                partial: false,
            },
        }
    }

    /// Whether a request was refused.
    pub(crate) fn was_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// What it means that the server ends the connection over a refused login that had more behind it.
    pub(crate) fn refused_early(&self) -> Error {
        let publickey = |refusal: &Refusal| refusal.methods.iter().any(|method| method == "publickey");
        let left = self.refused.map_or(0, |identity| identity + 1) < self.config.identities.len();
        if left && self.refusal.as_ref().is_some_and(publickey) {
            Error::EarlyAuthRefused {
                identity: self.refused,
            }
        } else {
            self.failure()
        }
    }

    pub(crate) fn next_packet(&mut self) -> Option<Packet> {
        if self.service == Service::Wanted {
            self.service = Service::Asked;
            return Some(Packet::ServiceRequest);
        }
        if self.config.cautious && self.service != Service::Accepted {
            return None;
        }
        match std::mem::replace(&mut self.step, Step::Choose) {
            Step::Send(request, payload) => {
                self.none_tried |= request == Request::None;
                self.step = Step::Asked(request);
                Some(Packet::Userauth(payload))
            }
            other @ (Step::Choose | Step::Signing { .. } | Step::Asked(_)) => {
                self.step = other;
                None
            }
        }
    }

    /// The owner has signed, or can't.
    pub(crate) fn answer(&mut self, question: QuestionId, signature: Option<&[u8]>) {
        let Step::Signing {
            question: open,
            identity,
            algorithm,
            ref data,
        } = self.step
        else {
            return;
        };
        if open != question {
            return;
        }
        // An agent that does not know the flags of rsa-sha2 signs with SHA-1: worthless to the server.
        let fitting = signature.filter(|signature| Reader::new(signature).text() == Ok(algorithm.name()));
        self.step = match fitting {
            None => Step::Choose,
            Some(signature) => {
                let sent = data.get(self.binding.session_id.len() + 4..).unwrap_or_default();
                let mut payload = BytesMut::with_capacity(sent.len() + 4 + signature.len());
                Writer::new(&mut payload).raw(sent).string(signature);
                Step::Send(Request::Signed { identity }, payload.freeze())
            }
        };
    }

    /// As what this key is shown and signs. Only RSA has a choice, and only there is the server's list asked (RFC 8332
    /// §3.3): some servers list nothing else. One that said nothing, or has not said it yet, gets what RFC 8332 §3
    /// recommends to all: dropbear has nothing above it.
    fn algorithm_for(&self, identity: &Identity) -> Option<PublicKeyAlgorithm> {
        let key_type = identity.key.key_type();
        let mut possible = PublicKeyAlgorithm::ALL.iter().copied().filter(|algorithm| {
            algorithm.key_type() == key_type && algorithm.is_certificate() == identity.certificate.is_some()
        });
        match &self.algorithms {
            Some(accepted) if key_type == KeyType::Rsa => {
                possible.find(|algorithm| accepted.contains(&algorithm.signature()))
            }
            None if key_type == KeyType::Rsa => {
                possible.find(|algorithm| algorithm.signature() == SignatureAlgorithm::RsaSha2_256)
            }
            Some(_) | None => possible.next(),
        }
    }

    fn none(&self) -> Step {
        Step::Send(Request::None, userauth::none(&self.config.user))
    }

    fn query(&self, identity: usize, algorithm: PublicKeyAlgorithm) -> Step {
        let mut payload = BytesMut::new();
        userauth::publickey(
            &mut payload,
            &self.config.user,
            self.key(identity),
            algorithm,
            false,
        );
        Step::Send(Request::Query { identity, algorithm }, payload.freeze())
    }

    /// Asks the owner to sign. RFC 4252 §7: what is signed is the session id and the request up to the key.
    fn sign(&mut self, identity: usize, algorithm: PublicKeyAlgorithm, events: &mut Events) -> Step {
        let mut data = BytesMut::new();
        Writer::new(&mut data).string(&self.binding.session_id);
        userauth::publickey(&mut data, &self.config.user, self.key(identity), algorithm, true);
        let data = data.freeze();
        let algorithm = algorithm.signature();
        self.questions += 1;
        let question = QuestionId(self.questions);
        let binding = self.binding.clone();
        events.push(Event::Sign {
            id: question,
            identity,
            algorithm,
            data: data.clone(),
            binding,
        });
        Step::Signing {
            question,
            identity,
            algorithm,
            data,
        }
    }

    /// What is shown of an identity.
    fn key(&self, identity: usize) -> &[u8] {
        self.config
            .identities
            .get(identity)
            .map(Identity::blob)
            .unwrap_or_default()
    }
}
