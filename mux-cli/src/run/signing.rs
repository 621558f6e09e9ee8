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
use super::terminal::Terminal;
use crate::hub::{Answer, KeyId, Ticket};
use crate::keyring::Signing;

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
            let signature = Err(reason.to_owned());
            return self.answer(
                wanted.ticket,
                Answer::Signed {
                    question: wanted.question,
                    signature,
                },
            );
        }
        self.answer(wanted.ticket, Answer::Asking(true));
        let waiting = self.locked.entry(key).or_default();
        waiting.push(wanted);
        if waiting.len() == 1 && !self.to_ask.iter().any(|(known, _)| *known == key) {
            self.to_ask.push_back((key, file));
        }
        self.ask_next(now, net);
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
            let started = Terminal::open().and_then(|terminal| {
                let theirs = terminal.try_clone()?;
                self.pool.submit(
                    now,
                    Task::Unlock {
                        key,
                        label,
                        file,
                        terminal: theirs,
                    },
                )?;
                Ok(terminal)
            });
            match started {
                Ok(terminal) => self.asking = Some(terminal),
                Err(_) => {
                    let reason = "needs a passphrase, and there is no terminal to ask on";
                    self.unlocked(now, net, key, Err(reason.to_owned()));
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
            self.answer(waiting.ticket, Answer::Asking(false));
            self.sign(now, net, key, waiting);
        }
    }
}
