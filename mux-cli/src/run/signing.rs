//! Signatures with the user's keys: at once, by an agent, or after a passphrase, which is asked for once a key. Decides
//! whom to ask and in which order; signs nothing itself.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mux_ssh::algorithms::SignatureAlgorithm;
use mux_ssh::client::{QuestionId, SessionBinding};
use mux_ssh::keys::{KeyFile, PrivateKey};

use super::agents::Wanted;
use super::net::Net;
use super::outside::Outside;
use super::questions::Question;
use crate::hub::{Answer, KeyId, RequestId, Ticket};
use crate::keyring::Signing;

/// What a key is given up with when the run ends before its passphrase was typed.
const NOT_ASKED: &str = "no passphrase given";

const FORBIDDEN: &str = "needs a passphrase, and BatchMode forbids to ask";

/// A signature that waits for a passphrase.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) question: QuestionId,
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) data: Bytes,
    pub(super) binding: SessionBinding,
}

/// Who waits for a passphrase.
#[derive(Debug)]
pub(super) enum Waiter {
    Signature(Waiting),
    /// An attempt that can't begin: nothing is known of the key, not even its public half.
    Attempt(Ticket),
}

impl Waiter {
    pub(super) fn ticket(&self) -> Ticket {
        match self {
            Self::Signature(waiting) => waiting.ticket,
            Self::Attempt(ticket) => *ticket,
        }
    }
}

impl Outside {
    pub(super) fn sign(&mut self, now: Instant, net: &mut Net, key: KeyId, wanted: Waiting) {
        let key = self.keyring.signer(key);
        let Waiting {
            ticket,
            question,
            algorithm,
            ..
        } = wanted;
        match self.keyring.sign(key, algorithm, &wanted.data) {
            Signing::Done(signature) => {
                match &signature {
                    Ok(_) => self.give_to_agent(net, ticket, key),
                    Err(reason) => self.unusable(ticket, key, reason),
                }
                self.answer(ticket, Answer::Signed { question, signature });
            }
            Signing::Agent(socket) => {
                let held = self.keyring.blob(key).map(Bytes::copy_from_slice);
                let public = self.keyring.public(key);
                let (Some(held), Some(public)) = (held, public) else {
                    return;
                };
                let touch = public.key_type().is_security_key();
                let Waiting { data, binding, .. } = wanted;
                let wanted = Wanted {
                    ticket,
                    question,
                    socket,
                    key: held,
                    touch,
                    algorithm,
                    data,
                    binding,
                };
                self.agents.sign(net, wanted);
                self.collect(now, net);
            }
            Signing::Locked(file) => self.wait_for_passphrase(now, net, key, file, wanted),
        }
    }

    /// `AddKeysToAgent`: a key that signs here is one that was opened here.
    fn give_to_agent(&mut self, net: &mut Net, ticket: Ticket, key: KeyId) {
        let known = self.targets.get(&ticket.request);
        let Some(profile) = known.map(|known| &known.profile) else {
            return;
        };
        let (Some(keep), Some(socket)) = (profile.give_to_agent, &profile.agent) else {
            return;
        };
        let label = self.keyring.label(key);
        if let Some(private) = self.keyring.private(key) {
            let socket = Arc::from(socket.as_str());
            self.agents.give(net, &socket, (key, &label), private, keep);
        }
    }

    fn wait_for_passphrase(
        &mut self,
        now: Instant,
        net: &mut Net,
        key: KeyId,
        file: Arc<KeyFile>,
        wanted: Waiting,
    ) {
        if self.is_batch(wanted.ticket) {
            self.unusable(wanted.ticket, key, FORBIDDEN);
            return self.no_passphrase(&wanted, FORBIDDEN);
        }
        if self.asks_no_more {
            return self.no_passphrase(&wanted, NOT_ASKED);
        }
        self.wait_to_open(now, net, key, file, Waiter::Signature(wanted));
    }

    fn wait_to_open(&mut self, now: Instant, net: &mut Net, key: KeyId, file: Arc<KeyFile>, waiter: Waiter) {
        self.answer(waiter.ticket(), Answer::Asking(true));
        let waiting = self.locked.entry(key).or_default();
        waiting.push(waiter);
        if waiting.len() == 1 {
            self.questions.push(Question::Passphrase(key, file));
        }
        self.ask_next(now, net);
    }

    /// Whether an attempt has to wait until this key is open, because nothing of it can be offered before.
    pub(super) fn has_to_be_opened(
        &mut self,
        now: Instant,
        net: &mut Net,
        key: KeyId,
        ticket: Ticket,
    ) -> bool {
        let Some(file) = self.keyring.locked_file(key).cloned() else {
            return false;
        };
        if self.is_batch(ticket) {
            self.unusable(ticket, key, FORBIDDEN);
            return false;
        }
        if self.asks_no_more {
            return false;
        }
        self.wait_to_open(now, net, key, file, Waiter::Attempt(ticket));
        true
    }

    fn is_batch(&self, ticket: Ticket) -> bool {
        let known = self.targets.get(&ticket.request);
        known.is_some_and(|known| known.profile.batch)
    }

    fn no_passphrase(&mut self, wanted: &Waiting, reason: &str) {
        let signature = Err(reason.to_owned());
        let question = wanted.question;
        self.answer(wanted.ticket, Answer::Signed { question, signature });
    }

    /// Requests that wait until somebody has typed a passphrase.
    pub(super) fn waiting_for_passphrase(&self) -> impl Iterator<Item = RequestId> {
        let waiting = self.locked.values().flatten();
        waiting.map(|waiting| waiting.ticket().request)
    }

    /// Whoever waits for a passphrase goes without.
    pub(super) fn give_up_passphrases(&mut self) {
        for (key, waiting) in std::mem::take(&mut self.locked) {
            self.keyring.unlocked(key, Err(NOT_ASKED.to_owned()));
            for waiting in waiting {
                self.answer(waiting.ticket(), Answer::Asking(false));
                match waiting {
                    Waiter::Signature(waiting) => self.no_passphrase(&waiting, NOT_ASKED),
                    // The run is to end: it begins no more.
                    Waiter::Attempt(_) => {}
                }
            }
        }
    }

    pub(super) fn unlocked(
        &mut self,
        now: Instant,
        net: &mut Net,
        key: KeyId,
        result: Result<PrivateKey, String>,
    ) {
        self.keyring.unlocked(key, result);
        for waiting in self.locked.remove(&key).unwrap_or_default() {
            self.answer(waiting.ticket(), Answer::Asking(false));
            match waiting {
                Waiter::Signature(waiting) => self.sign(now, net, key, waiting),
                Waiter::Attempt(ticket) => self.prepare(now, net, ticket),
            }
        }
    }
}
