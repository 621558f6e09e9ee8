//! What a person is asked while a run is under way: passphrases of keys, and whether host keys are right. Decides who is
//! asked next, as there is one terminal, and what becomes of those who wait when nobody is asked any more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use mux_ssh::keys::KeyFile;

use super::asking::{self, Asker, Prompt};
use super::gathering::wording;
use super::net::Net;
use super::outside::Outside;
use super::prompting::Subject;
use super::task::Task;
use super::terminal;
use crate::hub::{KeyId, RequestId};
use crate::targets::fold;

/// Why a key can't be unlocked.
const NO_TERMINAL: &str = "needs a passphrase, and there is no terminal to ask on";

/// Something to be asked.
#[derive(Debug)]
pub(super) enum Question {
    /// The passphrase of a key.
    Passphrase(KeyId, Arc<KeyFile>),
    /// What servers want to know.
    Prompt(Subject),
    /// Whether the host keys are right that were gathered until then.
    HostKeys,
}

/// What is asked now, and what next.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pub(super) asking: Option<Prompt>,
    next: VecDeque<Question>,
    /// Whether there is anybody to ask, once that was looked for.
    possible: Option<bool>,
}

impl Questions {
    /// To be asked when it is its turn, if it does not wait for that already.
    pub(super) fn push(&mut self, question: Question) {
        let is_there = self.next.iter().any(|other| match (other, &question) {
            (Question::Passphrase(one, _), Question::Passphrase(other, _)) => one == other,
            (Question::HostKeys, Question::HostKeys) => true,
            (Question::Prompt(one), Question::Prompt(other)) => one == other,
            (Question::Passphrase(..) | Question::Prompt(_) | Question::HostKeys, _) => false,
        });
        if !is_there {
            self.next.push_back(question);
        }
    }

    /// Host keys are to be asked about when it is their turn.
    pub(super) fn is_about_host_keys(&self) -> bool {
        self.next.iter().any(|next| matches!(next, Question::HostKeys))
    }

    /// Whether there is anybody to ask.
    pub(super) fn has_terminal(&mut self) -> bool {
        *self.possible.get_or_insert_with(asking::is_possible)
    }
}

impl Outside {
    /// Whether somebody is being asked on the terminal.
    pub(super) fn asks_on_terminal(&self) -> bool {
        matches!(self.questions.asking, Some(Prompt::Terminal(_)))
    }

    /// Asks one thing at a time.
    pub(super) fn ask_next(&mut self, now: Instant, net: &mut Net) {
        while self.questions.asking.is_none()
            && let Some(question) = self.questions.next.pop_front()
        {
            match question {
                Question::Prompt(subject) => {
                    let Some(asked) = self.asked(&subject) else {
                        // Whoever comes later asks for itself.
                        self.nobody_waits(&subject);
                        continue;
                    };
                    let about = subject.clone();
                    let task = |asker| Task::Ask {
                        subject: about,
                        asked,
                        asker,
                    };
                    if !self.start_asking(now, net, task) {
                        self.nobody_to_ask(&subject);
                    }
                }
                // Queued while it was being asked for.
                Question::Passphrase(key, _) if !self.keyring.is_locked(key) => {}
                Question::Passphrase(key, file) => {
                    let label = self.keyring.label(key);
                    let task = |asker| Task::Unlock {
                        key,
                        label,
                        file,
                        asker,
                    };
                    if !self.start_asking(now, net, task) {
                        self.unlocked(now, net, key, Err(NO_TERMINAL.to_owned()));
                    }
                }
                Question::HostKeys => {
                    self.asked = self.gathering.take();
                    let names = |requests: &[RequestId]| self.names(requests);
                    let wording = wording(&self.asked, names, self.learning.is_none());
                    if !self.start_asking(now, net, |asker| Task::Confirm { wording, asker }) {
                        self.confirmed(now, false);
                    }
                }
            }
        }
    }

    /// The folded names of targets, as they were asked for.
    pub(super) fn names(&self, requests: &[RequestId]) -> String {
        let known = requests.iter().filter_map(|request| self.targets.get(request));
        fold(known.map(|known| &known.shown))
    }

    /// Finds somebody to ask and hands them to a thread; false: there is nobody.
    fn start_asking(&mut self, now: Instant, net: &mut Net, task: impl FnOnce(Asker) -> Task) -> bool {
        let started = asking::open().and_then(|(prompt, asker)| {
            self.pool.submit(now, task(asker))?;
            Ok(prompt)
        });
        let Ok(prompt) = started else { return false };
        // Without them the terminal would be left silent; the question is asked all the same.
        if let Err(error) = net.watch_job_control() {
            log::warn!("signals of the terminal are not heard: {error}");
        }
        self.questions.asking = Some(prompt);
        true
    }

    /// Requests that wait for an answer of somebody.
    pub(super) fn waiting_for_answers(&self) -> Vec<RequestId> {
        let host_keys = self.gathering.waiting().chain(&self.asked);
        let host_keys = host_keys.map(|unknown| unknown.ticket.request);
        let prompts = self.prompting.waiting();
        self.waiting_for_passphrase()
            .chain(host_keys)
            .chain(prompts)
            .collect()
    }

    /// Nobody is asked any more: the run is to end.
    pub(super) fn ask_no_more(&mut self) {
        self.asks_no_more = true;
        self.questions.next.clear();
        if let Some(prompt) = self.questions.asking.take() {
            prompt.give_up();
        }
        self.give_up_passphrases();
        self.give_up_host_keys();
        self.give_up_prompts();
    }

    /// The process is to stop for a while: the terminal is given back until it goes on.
    pub(super) fn suspend(&self) {
        if let Some(prompt) = &self.questions.asking {
            prompt.restore();
        }
        terminal::suspend();
        self.continued();
    }

    /// The process goes on.
    pub(super) fn continued(&self) {
        if let Some(prompt) = &self.questions.asking {
            prompt.ask_again();
        }
    }
}
