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

/// A signature that waits for a passphrase.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) ticket: Ticket,
    pub(super) question: QuestionId,
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) data: Bytes,
    pub(super) binding: SessionBinding,
}

impl Outside {
    pub(super) fn sign(&mut self, now: Instant, net: &mut Net, key: KeyId, wanted: Waiting) {
        let Waiting {
            ticket,
            question,
            algorithm,
            ..
        } = wanted;
        match self.keyring.sign(key, algorithm, &wanted.data) {
            Signing::Done(signature) => {
                if let Err(reason) = &signature {
                    self.unusable(ticket, key, reason);
                }
                self.answer(ticket, Answer::Signed { question, signature });
            }
            Signing::Agent(socket) => {
                let Some(public) = self.keyring.public(key).cloned() else {
                    return;
                };
                let Waiting { data, binding, .. } = wanted;
                let wanted = Wanted {
                    ticket,
                    question,
                    socket,
                    key: public,
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

    fn wait_for_passphrase(
        &mut self,
        now: Instant,
        net: &mut Net,
        key: KeyId,
        file: Arc<KeyFile>,
        wanted: Waiting,
    ) {
        let batch = self
            .targets
            .get(&wanted.ticket.request)
            .is_some_and(|known| known.profile.batch);
        if batch {
            let reason = "needs a passphrase, and BatchMode forbids to ask";
            self.unusable(wanted.ticket, key, reason);
            return self.no_passphrase(&wanted, reason);
        }
        if self.asks_no_more {
            return self.no_passphrase(&wanted, NOT_ASKED);
        }
        self.answer(wanted.ticket, Answer::Asking(true));
        let waiting = self.locked.entry(key).or_default();
        waiting.push(wanted);
        if waiting.len() == 1 {
            self.questions.push(Question::Passphrase(key, file));
        }
        self.ask_next(now, net);
    }

    fn no_passphrase(&mut self, wanted: &Waiting, reason: &str) {
        let signature = Err(reason.to_owned());
        let question = wanted.question;
        self.answer(wanted.ticket, Answer::Signed { question, signature });
    }

    /// Requests that wait until somebody has typed a passphrase.
    pub(super) fn waiting_for_passphrase(&self) -> impl Iterator<Item = RequestId> {
        let waiting = self.locked.values().flatten();
        waiting.map(|waiting| waiting.ticket.request)
    }

    /// Whoever waits for a passphrase goes without.
    pub(super) fn give_up_passphrases(&mut self) {
        for (key, waiting) in std::mem::take(&mut self.locked) {
            self.keyring.unlocked(key, Err(NOT_ASKED.to_owned()));
            for waiting in waiting {
                self.answer(waiting.ticket, Answer::Asking(false));
                self.no_passphrase(&waiting, NOT_ASKED);
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
            self.answer(waiting.ticket, Answer::Asking(false));
            self.sign(now, net, key, waiting);
        }
    }
}
