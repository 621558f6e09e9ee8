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
use super::task::Task;
use super::terminal;
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
        if waiting.len() == 1 && !self.to_ask.iter().any(|(known, _)| *known == key) {
            self.to_ask.push_back((key, file));
        }
        self.ask_next(now, net);
    }

    fn no_passphrase(&mut self, wanted: &Waiting, reason: &str) {
        let signature = Err(reason.to_owned());
        let question = wanted.question;
        self.answer(wanted.ticket, Answer::Signed { question, signature });
    }

    /// Asks for one passphrase at a time: there is one terminal.
    pub(super) fn ask_next(&mut self, now: Instant, net: &mut Net) {
        while self.asking.is_none()
            && let Some((key, file)) = self.to_ask.pop_front()
        {
            if !self.keyring.is_locked(key) {
                // Queued while it was being asked for.
                continue;
            }
            let label = self.keyring.label(key);
            let started = terminal::open().and_then(|(prompt, asker)| {
                self.pool.submit(
                    now,
                    Task::Unlock {
                        key,
                        label,
                        file,
                        asker,
                    },
                )?;
                Ok(prompt)
            });
            match started {
                Ok(prompt) => {
                    // Without them the terminal would be left silent; the question is asked all the same.
                    if let Err(error) = net.watch_job_control() {
                        log::warn!("signals of the terminal are not heard: {error}");
                    }
                    self.asking = Some(prompt);
                }
                Err(_) => {
                    let reason = "needs a passphrase, and there is no terminal to ask on";
                    self.unlocked(now, net, key, Err(reason.to_owned()));
                }
            }
        }
    }

    /// Requests that wait until somebody has typed a passphrase.
    pub(super) fn waiting_for_passphrase(&self) -> Vec<RequestId> {
        let waiting = self.locked.values().flatten();
        waiting.map(|waiting| waiting.ticket.request).collect()
    }

    /// Nobody is asked any more: the run is to end.
    pub(super) fn ask_no_more(&mut self) {
        self.asks_no_more = true;
        self.to_ask.clear();
        if let Some(prompt) = self.asking.take() {
            prompt.give_up();
        }
        for (key, waiting) in std::mem::take(&mut self.locked) {
            self.keyring.unlocked(key, Err(NOT_ASKED.to_owned()));
            for waiting in waiting {
                self.answer(waiting.ticket, Answer::Asking(false));
                self.no_passphrase(&waiting, NOT_ASKED);
            }
        }
    }

    /// The process is to stop for a while: the terminal is given back until it goes on.
    pub(super) fn suspend(&self) {
        if let Some(prompt) = &self.asking {
            prompt.restore();
        }
        terminal::suspend();
        self.continued();
    }

    /// The process goes on.
    pub(super) fn continued(&self) {
        if let Some(prompt) = &self.asking {
            prompt.ask_again();
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
