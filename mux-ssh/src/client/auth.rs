//! The login (RFC 4252): which method and which identity is tried when, and what is signed.
//!
//! It signs nothing and asks nobody itself: signatures and answers are wanted by events. What may be sent ahead of an
//! answer is decided elsewhere; it only tells whether a signed request is out.

mod answers;
mod keys;
mod prompts;

use bytes::Bytes;

use super::events::Events;
use super::packet::Packet;
use super::userauth;
use super::{AuthMethod, Identity, Methods, QuestionId, SessionBinding};
use crate::Error;
use crate::algorithms::{PublicKeyAlgorithm, SignatureAlgorithm};

/// Banners of one login, all together: a page of legal text is 4 KiB.
const MAX_BANNER_BYTES: usize = 64 * 1024;

/// Banners of one login; PAM modules may each send one.
const MAX_BANNERS: u32 = 64;

/// Authentication methods that a server offers at a time; OpenSSH knows six.
const MAX_METHODS: usize = 32;

/// Methods that succeed one after the other; nobody's `AuthenticationMethods` wants more than three or four.
const MAX_PARTIAL: u32 = 16;

/// What is fixed for one login.
#[derive(Debug)]
pub(crate) struct AuthConfig {
    pub(crate) user: String,
    pub(crate) identities: Vec<Identity>,
    pub(crate) methods: Methods,
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
    /// Identities that were accepted where the server wants something else as well.
    accepted: Vec<usize>,
    /// Passwords that were refused.
    passwords: u32,
    /// Methods that are of no more use.
    exhausted: Vec<AuthMethod>,
    /// Times that the server had questions.
    rounds: u32,
    /// A person's answer was sent.
    answered: bool,
    none_tried: bool,
    /// What the last refusal said.
    refusal: Option<Refusal>,
    /// Methods that succeeded, and were not enough.
    partial: u32,
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
    Send(Request, Packet),
    /// The owner is signing. `data` begins with the session id, which is signed and not sent.
    Signing {
        question: QuestionId,
        identity: usize,
        algorithm: SignatureAlgorithm,
        data: Bytes,
    },
    /// The owner is asking somebody.
    Prompting { question: QuestionId, about: Prompting },
    /// The server is thinking.
    Asked(Request),
}

/// What somebody is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prompting {
    Password,
    /// So many questions of the server.
    Interactive(usize),
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
    /// Questions, or the answers to them; `answered`: there was something to answer.
    Interactive {
        answered: bool,
    },
    Password,
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
            accepted: Vec::new(),
            passwords: 0,
            exhausted: Vec::new(),
            rounds: 0,
            answered: false,
            none_tried: false,
            refusal: None,
            partial: 0,
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
            Step::Asked(
                Request::None | Request::Query { .. } | Request::Interactive { .. } | Request::Password,
            )
            | Step::Choose
            | Step::Send(..)
            | Step::Signing { .. }
            | Step::Prompting { .. } => None,
        }
    }

    /// The identity that the server has been asked about without an answer, unless that answer decides whether an earlier
    /// login went well.
    pub(crate) fn asked_about(&self) -> Option<usize> {
        let identity = match self.step {
            Step::Asked(Request::Query { identity, .. } | Request::Signed { identity }) => identity,
            Step::Asked(Request::None | Request::Interactive { .. } | Request::Password)
            | Step::Choose
            | Step::Send(..)
            | Step::Signing { .. }
            | Step::Prompting { .. } => return None,
        };
        Some(identity).filter(|identity| self.config.doubted != Some(*identity))
    }

    /// Whether something may be sent behind a signed request. Not once somebody has answered: where a refusal ends the
    /// connection, those answers would be lost with it, and nobody is asked twice.
    pub(crate) fn may_gamble(&self) -> bool {
        self.is_signed() && !self.answered
    }

    /// Whether somebody is being asked.
    pub(crate) fn is_prompting(&self) -> bool {
        matches!(self.step, Step::Prompting { .. })
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
        for at in 0..self.config.methods.order.len() {
            let method = self.config.methods.order.get(at).copied();
            if let Some(step) = method.and_then(|method| self.begin(method, events)) {
                self.step = step;
                return Ok(());
            }
        }
        if self.refusal.is_none() && !self.none_tried {
            // Nothing to offer: the refusal of `none` tells what the server would want instead.
            self.step = self.none();
            return Ok(());
        }
        Err(self.failure())
    }

    /// The next step of this method, if there is one.
    fn begin(&mut self, method: AuthMethod, events: &mut Events) -> Option<Step> {
        if !self.is_open(method) {
            return None;
        }
        match method {
            AuthMethod::PublicKey => self.next_key(events),
            // Nobody is asked for what the server has not said that it takes; `none` makes it say so.
            AuthMethod::KeyboardInteractive | AuthMethod::Password if self.refusal.is_none() => {
                (!self.none_tried).then(|| self.none())
            }
            AuthMethod::KeyboardInteractive => Some(self.interactive()),
            AuthMethod::Password => Some(self.password(events)),
        }
    }

    /// Whether this method may still lead to something.
    fn is_open(&self, method: AuthMethod) -> bool {
        let refusal = self.refusal.as_ref();
        let offered =
            refusal.is_none_or(|refusal| refusal.methods.iter().any(|offered| offered == method.name()));
        // While an earlier login may have run its command, nothing but its key is of interest.
        let idle =
            (self.config.doubted.is_some() || self.config.distrusted) && method != AuthMethod::PublicKey;
        let refused = method == AuthMethod::Password && self.passwords >= self.config.methods.passwords;
        offered && !idle && !refused && !self.exhausted.contains(&method)
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
        // Whoever has answered is not asked again by another connection.
        if self.has_more() && !self.answered {
            Error::EarlyAuthRefused {
                identity: self.refused,
            }
        } else {
            self.failure()
        }
    }

    /// Whether there is something left to try that the server offers.
    fn has_more(&self) -> bool {
        let behind = self.refused.map_or(0, |identity| identity + 1)..self.config.identities.len();
        let keys = behind
            .into_iter()
            .any(|identity| !self.accepted.contains(&identity));
        self.refusal.is_some()
            && self.config.methods.order.iter().any(|&method| match method {
                AuthMethod::PublicKey => self.is_open(method) && keys,
                AuthMethod::KeyboardInteractive | AuthMethod::Password => self.is_open(method),
            })
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
            Step::Send(request, packet) => {
                self.none_tried |= request == Request::None;
                self.step = Step::Asked(request);
                Some(packet)
            }
            other @ (Step::Choose | Step::Signing { .. } | Step::Prompting { .. } | Step::Asked(_)) => {
                self.step = other;
                None
            }
        }
    }

    fn none(&self) -> Step {
        Step::Send(Request::None, Packet::Userauth(userauth::none(&self.config.user)))
    }

    fn question(&mut self) -> QuestionId {
        self.questions += 1;
        QuestionId(self.questions)
    }
}
