//! Logins that need a person: passes the questions on and the answers back, and keeps what came of them for the error.
//! Asks nobody, and sees no answer for longer than it takes to hand it over.

use std::hash::Hash;

use mux_core::LinkError;
use mux_ssh::client::{AuthMethod, Prompt, QuestionId};
use mux_ssh::{Error, Printable, Secret};

use super::countdown::Countdown;
use super::job::Job;
use super::phase::Phase;
use super::shared::Context;
use super::{Action, Level, Links, Stage, Status, retry};

impl<K: Copy + Eq + Hash> Job<K> {
    pub(super) fn prompt<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        question: QuestionId,
        prompt: Prompt,
    ) {
        self.wants_password = matches!(prompt, Prompt::Password { .. });
        self.ask(cx, Action::Prompt { question, prompt });
    }

    /// Somebody has answered, or there are no answers, for a reason that names the method.
    pub(super) fn prompted<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        question: QuestionId,
        answers: Result<Vec<Secret>, String>,
    ) {
        self.wants_password = false;
        if matches!(self.phase, Phase::Parked(_)) {
            return self.password_known(cx, answers.map(|_| ()));
        }
        self.heard(cx);
        self.answered |= answers.is_ok();
        let answers = answers.map_err(|reason| self.tried.push(reason)).ok();
        self.with_client(cx, |client| client.answer_prompt(question, answers.as_deref()));
    }

    /// The connection is gone while somebody is asked for a password: a person takes longer than a server waits for a
    /// login. Nothing was said yet, so the host waits without a connection. Questions of a server are its own, and go
    /// with it.
    pub(super) fn wait_for_password<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        result: &Result<(), LinkError<Error>>,
    ) -> bool {
        let waits =
            self.wants_password && !self.answered && self.killing.is_none() && retry::may_pass(result);
        if waits {
            self.park(cx);
        }
        waits
    }

    /// Somebody has answered whom this host waited for: the next connection is given the password when it asks.
    fn password_known<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, known: Result<(), String>) {
        if let Err(reason) = known {
            let message = format!("the server did not wait for an answer; {reason}");
            return self.fail(cx, Status::Auth, Stage::Auth, message);
        }
        self.login = Countdown::Stopped(self.request.login_timeout);
        self.tried = Vec::new();
        self.half_way = false;
        self.return_to(cx);
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
