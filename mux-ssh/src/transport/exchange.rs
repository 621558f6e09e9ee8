//! The key exchange, from our KEXINIT to the peer's NEWKEYS, for both roles. It decides what comes when and what becomes
//! of guesses; which proof is good enough is `proof.rs`'s, whether the proven key is trusted the owner's answer.

use std::mem;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::guess::{self, GuessRule, Verdict};
use super::kexinit::{self, KexInit, Negotiated, Side};
use super::method::Offer;
use super::phase::{ClientHalf, Exchange, Phase};
use super::{Incoming, Role, ServerMemory, Transport};
use crate::algorithms::{HostKeyAlgorithm, Kex};
use crate::message::{KEX_ECDH_INIT, KEX_ECDH_REPLY, KEXINIT, NEWKEYS};
use crate::{Error, Violation};

/// A peer that does not finish a new key exchange in this time leaves us mute for good. The first one is under the
/// deadline of the login.
pub(super) const REKEY_TIMEOUT: Duration = Duration::from_secs(120);

impl Transport {
    /// Answers [`Incoming::HostKey`]. Accepted: NEWKEYS is queued, and all that is sent after it leaves under the new
    /// keys in the same flight. Not accepted: a DISCONNECT is queued and the next step is
    /// [`Error::HostKeyRejected`]. Does nothing where nothing was asked.
    pub(crate) fn answer_host_key(&mut self, accept: bool) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if !matches!(exchange.phase, Phase::Asked(_)) {
            return;
        }
        let Phase::Asked(keys) = mem::replace(&mut exchange.phase, Phase::Failed) else {
            return;
        };
        if accept {
            self.agree(keys);
        } else {
            self.fail(Error::HostKeyRejected);
        }
    }

    /// Whether input stands still until [`Self::answer_host_key`]; the owner's `wants_input` is false then.
    pub(crate) fn waits_for_answer(&self) -> bool {
        self.exchange
            .as_ref()
            .is_some_and(|exchange| matches!(exchange.phase, Phase::Asked(_)))
    }

    /// Queues our KEXINIT, and the guess if there is one.
    pub(super) fn begin_exchange(&mut self, now: Instant) -> Result<(), Error> {
        let first = self.session.is_none();
        let guess = match &mut self.role {
            Role::Client { guess, guessed, .. } => {
                *guessed |= guess.is_some();
                guess.take()
            }
            Role::Server { .. } => None,
        };
        let our_kexinit = kexinit::build(self.side(), &self.offer, first, guess.is_some())?;
        self.control.push_bytes(&our_kexinit);
        let guessed = match guess {
            Some(guess) => Some((guess, self.offer_half(guess.kex)?)),
            None => None,
        };
        self.exchange = Some(Box::new(Exchange {
            our_kexinit,
            their_kexinit: None,
            drop_next: false,
            deadline: (!first).then(|| now + REKEY_TIMEOUT),
            phase: Phase::Opened(guessed),
        }));
        Ok(())
    }

    pub(super) fn handle_kexinit(&mut self, now: Instant, payload: Bytes) -> Result<Option<Incoming>, Error> {
        if self.exchange.is_none() {
            self.begin_exchange(now)?;
        }
        let mut exchange = self.exchange.take().ok_or(Error::Crypto)?;
        if exchange.has_their_kexinit() {
            return Err(Violation::UnexpectedMessage(KEXINIT).into());
        }
        let theirs = KexInit::parse(&payload)?;
        let first = self.session.is_none();
        if first {
            self.learn(&theirs)?;
        }
        let negotiated = theirs.negotiate(self.side(), &self.offer)?;
        exchange.drop_next = self.is_wrong_guess(&theirs, negotiated);
        exchange.phase = self.open_phase(exchange.phase, &theirs, negotiated)?;
        exchange.their_kexinit = Some((payload.clone(), negotiated));
        self.exchange = Some(exchange);
        Ok(first.then_some(Incoming::KexInit))
    }

    pub(super) fn handle_kex_message(
        &mut self,
        number: u8,
        payload: &[u8],
    ) -> Result<Option<Incoming>, Error> {
        let unexpected = Violation::UnexpectedMessage(number);
        let exchange = self.exchange.as_mut().ok_or(unexpected)?;
        if mem::take(&mut exchange.drop_next) {
            return Ok(None);
        }
        match mem::replace(&mut exchange.phase, Phase::Failed) {
            Phase::Offered(half) if number == KEX_ECDH_REPLY => self.handle_reply(half, payload),
            Phase::Awaiting if number == KEX_ECDH_INIT => self.handle_init(payload),
            Phase::Opened(_)
            | Phase::Offered(_)
            | Phase::Awaiting
            | Phase::Asked(_)
            | Phase::Agreed(_)
            | Phase::Failed => Err(unexpected.into()),
        }
    }

    pub(super) fn handle_newkeys(&mut self, now: Instant, payload: &[u8]) -> Result<Option<Incoming>, Error> {
        if payload.len() != 1 {
            return Err(Violation::TrailingBytes.into());
        }
        let exchange = self
            .exchange
            .take()
            .ok_or(Violation::UnexpectedMessage(NEWKEYS))?;
        let Phase::Agreed(opener) = exchange.phase else {
            return Err(Violation::UnexpectedMessage(NEWKEYS).into());
        };
        self.inbound.rekey(opener, self.peer.strict);
        self.rekey_at = now.checked_add(self.rekey.time);
        self.peer.unknown = 0;
        let first = !mem::replace(&mut self.peer.keyed, true);
        Ok(Some(Incoming::NewKeys { first }))
    }

    /// A guess that did not suit shows itself as the end of the connection or as an answer at the wrong time.
    pub(super) fn blame_guess(&self, error: Error) -> Error {
        let guessed = matches!(self.role, Role::Client { guessed: true, .. }) && self.session.is_none();
        let symptom = matches!(
            error,
            Error::UnexpectedEof
                | Error::Disconnected { .. }
                | Error::Violation(Violation::UnexpectedMessage(_))
        );
        // A server that judges a guess otherwise than its kind does answers another offer of ours than the one that we
        // go by. Where the guess was what it names first, all kinds judge alike, and a wrong proof is one.
        let doubtful = matches!(self.role, Role::Client { doubtful: true, .. });
        let wrong_proof = matches!(
            error,
            Error::Violation(Violation::Signature | Violation::KexValue)
        );
        if guessed && (symptom || (doubtful && wrong_proof)) && self.peer.ident.is_some() {
            Error::GuessRejected
        } else {
            error
        }
    }

    /// Keeps what the peer's first KEXINIT tells for the whole connection.
    fn learn(&mut self, theirs: &KexInit<'_>) -> Result<(), Violation> {
        let peer_side = self.side().peer();
        self.peer.strict = theirs.is_strict(peer_side);
        self.peer.takes_ext_info = theirs.takes_ext_info(peer_side);
        if self.peer.strict && self.inbound.packets != 1 {
            return Err(Violation::StrictFirstPacket);
        }
        if let (Side::Server, Some(ident)) = (peer_side, &self.peer.ident) {
            self.peer.learned = Some(Box::new(ServerMemory {
                ident: ident.stable(),
                first_kex: kexinit::first_name(theirs.kex),
                first_host_key: kexinit::first_name(theirs.host_keys),
                post_quantum: theirs.has_post_quantum(&self.offer.kex),
                one_session: false,
                none_first: false,
            }));
            let named = theirs.host_keys.iter().filter_map(HostKeyAlgorithm::from_name);
            for algorithm in named.filter(|algorithm| self.offer.host_keys.contains(algorithm)) {
                let types = &mut self.peer.host_key_types;
                if !types.contains(&algorithm.key_type()) {
                    types.push(algorithm.key_type());
                }
            }
        }
        Ok(())
    }

    /// Whether the peer announced a guess that must be dropped.
    fn is_wrong_guess(&self, theirs: &KexInit<'_>, negotiated: Negotiated) -> bool {
        let rule = match self.role {
            Role::Client { .. } => GuessRule::Rfc,
            Role::Server { rule, .. } => rule,
        };
        let ours = self.offer.kex.first().zip(self.offer.host_keys.first());
        theirs.packet_follows
            && match rule {
                GuessRule::Rfc => {
                    ours.is_none_or(|(kex, host_key)| !guess::is_exact(kex.name(), host_key.name(), theirs))
                }
                GuessRule::Negotiated => theirs.kex.first() != Some(negotiated.kex.name()),
                GuessRule::Ignored => false,
            }
    }

    /// Both KEXINITs are known: the client sends its half, unless the guess was it.
    fn open_phase(
        &mut self,
        phase: Phase,
        theirs: &KexInit<'_>,
        negotiated: Negotiated,
    ) -> Result<Phase, Error> {
        let Phase::Opened(guessed) = phase else {
            return Err(Violation::UnexpectedMessage(KEXINIT).into());
        };
        if self.side() == Side::Server {
            return Ok(Phase::Awaiting);
        }
        if let Some((guess, half)) = guessed {
            if let Role::Client { doubtful, .. } = &mut self.role {
                *doubtful = !guess::is_exact(guess.kex.name(), guess.host_key.name(), theirs);
            }
            let ident = self.peer.ident.as_ref().ok_or(Violation::IdentMalformed)?;
            match guess::judge(guess, ident, theirs, &negotiated, &self.offer) {
                Verdict::Used => return Ok(Phase::Offered(half)),
                Verdict::Rejected => return Err(Error::GuessRejected),
                Verdict::Dropped => {}
            }
        }
        Ok(Phase::Offered(self.offer_half(negotiated.kex)?))
    }

    fn offer_half(&mut self, kex: Kex) -> Result<ClientHalf, Error> {
        let (offer, public) = Offer::new(kex)?;
        self.control.push(|packet| {
            packet.byte(KEX_ECDH_INIT).string(&public);
        });
        Ok(ClientHalf { offer, public })
    }
}
