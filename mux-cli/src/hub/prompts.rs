//! Logins that need a person: passes the questions on and the answers back, and keeps what came of them for the error.
//! Asks nobody, and sees no answer for longer than it takes to hand it over.

use std::hash::Hash;

use mux_ssh::client::{AuthMethod, Prompt, QuestionId};
use mux_ssh::{Printable, Secret};

use super::job::{Context, Job};
use super::{Action, Level, Links};

impl<K: Copy + Eq + Hash> Job<K> {
    pub(super) fn prompt<L: Links<Key = K>>(
        &self,
        cx: &mut Context<'_, L>,
        question: QuestionId,
        prompt: Prompt,
    ) {
        self.ask(cx, Action::Prompt { question, prompt });
    }

    /// Somebody has answered, or there are no answers, for a reason that names the method.
    pub(super) fn prompted<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        question: QuestionId,
        answers: Result<Vec<Secret>, String>,
    ) {
        self.heard(cx);
        let answers = answers.map_err(|reason| self.tried.push(reason)).ok();
        self.with_client(cx, |client| client.answer_prompt(question, answers.as_deref()));
    }

    pub(super) fn method_refused(&mut self, method: AuthMethod) {
        self.tried.push(format!("{}: not accepted", method.name()));
    }

    /// Right, and not enough. The key is as good as one that lets us in.
    pub(super) fn half_way<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        method: AuthMethod,
        identity: Option<usize>,
    ) {
        self.half_way = true;
        let offer = identity.and_then(|index| self.prepared.keys.get(index));
        let label = offer.map_or(method.name(), |offer| &*offer.label);
        let accepted = format!("{label}: accepted, and not enough");
        let key = offer.map(|offer| offer.key);
        self.notice(cx, Level::Verbose, accepted.clone());
        self.tried.push(accepted);
        if let Some(key) = key {
            self.ask(cx, Action::RememberKey(key));
        }
    }

    pub(super) fn password_expired(&mut self, words: &str) {
        let words = words.trim();
        let said = match words.is_empty() {
            true => String::new(),
            false => format!(" (it said: {})", Printable::new(words)),
        };
        self.tried.push(format!(
            "password: expired{said}; to change it: ssh {}@{}",
            Printable::new(&self.request.user),
            Printable::new(&self.request.host)
        ));
    }
}
