//! Keys that targets show: judged by what known_hosts says, and written down where a new one is taken. Decides when a host
//! is asked for another key; the judgement itself is the hub's, and how files are written to is for `lessons`.

use std::path::Path;
use std::time::Instant;

use mux_ssh::Printable;
use mux_ssh::algorithms::KeyType;
use mux_ssh::client::QuestionId;
use mux_ssh::config::HostKeyPolicy;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::KnownHosts;

use super::gathering::Unknown;
use super::hosts::TOLD_BY_COMMAND;
use super::key_command;
use super::learning::{self, Found};
use super::lessons::{Asks, Batch, Lesson, Written};
use super::limits;
use super::net::Net;
use super::outside::Outside;
use super::questions::Question;
use super::task::Task;
use crate::files::{self, FileError};
use crate::hub::{Answer, Decision, Judgement, Shown, Ticket, Vouching};

/// A key that a target has shown.
#[derive(Debug)]
pub(crate) struct ShownKey {
    pub(crate) ticket: Ticket,
    pub(crate) question: QuestionId,
    pub(crate) key: PublicKey,
    pub(crate) certificate: Option<Shown>,
    /// The types of key that the server has, of those that it was offered.
    pub(crate) types: Vec<KeyType>,
    /// By a server on this machine.
    pub(crate) local: bool,
}

impl Outside {
    /// Judges a key that a target has shown, or has it written down first.
    pub(super) fn judge(&mut self, now: Instant, shown: ShownKey) {
        let ShownKey { ticket, question, .. } = shown;
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let minimum = known.profile.rsa_bits;
        if let Some(bits) = shown.key.rsa_bits().filter(|bits| *bits < minimum) {
            let reason = format!("RSA host key of {bits} bits, and RequiredRSASize is {minimum}");
            // A host of which all keys are to be learned is known by the others.
            if self.learning.is_some() && !known.seen.is_empty() {
                self.hosts
                    .warn(&known.shown.text, &format!("host key not written: {reason}"));
                return self.look_further(now, (ticket, question), None, &shown.types, None);
            }
            return self.refuse(ticket, question, reason);
        }
        if shown.local && known.profile.trusts_localhost {
            return self.accept(ticket, question, &shown.key, Found::Known);
        }
        let Some(command) = &known.profile.key_command else {
            return self.judge_with(now, shown, None, false);
        };
        let arguments = key_command::arguments(command, &known.host, &shown.key);
        // From here on the host waits for us.
        self.answer(ticket, Answer::Asking(true));
        let shown = Box::new(shown);
        let task = Task::AskForKeys {
            shown,
            arguments,
            wanted: self.key_commands.clone(),
        };
        if let Err(error) = self.pool.submit(now, task) {
            self.answer(ticket, Answer::Asking(false));
            let reason = limits::missing("start a thread", &error);
            self.refuse(ticket, question, format!("KnownHostsCommand: {reason}"));
        }
    }

    /// A `KnownHostsCommand` has said which keys the host is known by.
    pub(super) fn keys_told(&mut self, now: Instant, shown: ShownKey, printed: Result<Vec<u8>, String>) {
        self.answer(shown.ticket, Answer::Asking(false));
        match printed {
            Ok(printed) => {
                let told = KnownHosts::parse([(TOLD_BY_COMMAND, printed.as_slice())]);
                if let (Some(warning), Some(known)) =
                    (told.warnings().first(), self.targets.get(&shown.ticket.request))
                {
                    self.hosts.warn(&known.shown.text, &warning.to_string());
                }
                self.judge_with(now, shown, Some(told), false);
            }
            Err(reason) => self.refuse(shown.ticket, shown.question, reason),
        }
    }

    /// Judges a key by the files, once they were `searched` if that is more than a glance, and by what a command has `told`.
    pub(super) fn judge_with(
        &mut self,
        now: Instant,
        shown: ShownKey,
        told: Option<KnownHosts>,
        searched: bool,
    ) {
        if !searched
            && let Some(known) = self.targets.get(&shown.ticket.request)
            && let Some(scan) = self.hosts.scan_for(&known.profile, &known.host, &shown.key)
        {
            return self.search(now, shown, told, scan);
        }
        let ShownKey {
            ticket,
            question,
            key,
            certificate,
            types,
            ..
        } = shown;
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        let (certificate, told) = (certificate.as_ref(), told.as_ref());
        let note = match self
            .hosts
            .vouching(&known.profile, &known.host, &key, certificate, told)
        {
            Vouching::Accept => return self.accept(ticket, question, &key, Found::Known),
            Vouching::Refuse(reason) => return self.refuse(ticket, question, reason),
            Vouching::Nothing(note) => note.map(|note| format!("{note}; ")).unwrap_or_default(),
        };
        if self.learning.is_some() && !known.is_hop {
            return self.look_further(now, (ticket, question), Some(key), &types, told);
        }
        let decision = self
            .hosts
            .judge(&known.profile, &known.host, &known.shown.text, &key, told);
        if decision != Decision::Accept
            && let Some(asked_for) = known.asked_for.take()
            && let Some(types) = self
                .hosts
                .other_types(&known.profile, &known.host, &key, &asked_for)
        {
            let judgement = Judgement::AskForOthers(types);
            return self.answer(ticket, Answer::HostKey { question, judgement });
        }
        // What a command knows is its own affair.
        let to_remember = told.is_none();
        self.decided(now, (ticket, question, key), decision, note, to_remember);
    }

    fn decided(
        &mut self,
        now: Instant,
        (ticket, question, key): (Ticket, QuestionId, PublicKey),
        decision: Decision,
        note: String,
        to_remember: bool,
    ) {
        match decision {
            Decision::Refuse(reason) => self.refuse(ticket, question, note + &reason),
            Decision::Accept => {
                if let Some(known) = self.targets.get_mut(&ticket.request) {
                    known.accepted = to_remember.then(|| key.clone());
                }
                self.accept(ticket, question, &key, Found::Known);
            }
            Decision::Learn => self.learn(now, ticket, question, vec![key]),
            Decision::Ask { refusal } => {
                let unknown = Unknown {
                    ticket,
                    question,
                    keys: vec![key],
                };
                self.gather(now, unknown, note + &refusal);
            }
            Decision::Distrust(warning) => {
                if let Some(known) = self.targets.get(&ticket.request) {
                    self.hosts.warn(&known.shown.text, &warning);
                }
                let judgement = Judgement::Distrust;
                self.answer(ticket, Answer::HostKey { question, judgement });
            }
        }
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, question: QuestionId, reason: String) {
        let judgement = Judgement::Refuse(reason);
        self.answer(ticket, Answer::HostKey { question, judgement });
    }

    /// The key is the host's: where that was all that anybody wanted to know, the host is done.
    pub(super) fn accept(&mut self, ticket: Ticket, question: QuestionId, key: &PublicKey, found: Found) {
        let known = self.targets.get(&ticket.request);
        let is_hop = known.is_some_and(|known| known.is_hop);
        let judgement = match &mut self.learning {
            Some(learning) if !is_hop => {
                learning.found(ticket.request, key, found);
                Judgement::Enough
            }
            // There is no other way to those behind a jump host than through it.
            Some(_) | None => Judgement::Accept,
        };
        self.answer(ticket, Answer::HostKey { question, judgement });
    }

    /// Has keys of a host written down that it waits for.
    pub(super) fn learn(
        &mut self,
        now: Instant,
        ticket: Ticket,
        question: QuestionId,
        mut keys: Vec<PublicKey>,
    ) {
        let Some(key) = keys.pop() else { return };
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let file = known.profile.user_known_hosts.first().cloned();
        let Some(file) = file.filter(|file| self.learning.is_none() || !files::is_null(Path::new(file)))
        else {
            if self.learning.is_some() {
                let named = known.profile.user_known_hosts.first();
                let named = named.map_or("none", String::as_str);
                let reason = format!(
                    "host key not written: UserKnownHostsFile is {}",
                    Printable::new(named)
                );
                return self.refuse(ticket, question, reason);
            }
            // Nothing is to be kept.
            return self.accept(ticket, question, &key, Found::Learned);
        };
        let beside = match known.profile.policy {
            HostKeyPolicy::Ask | HostKeyPolicy::Off => true,
            HostKeyPolicy::Strict | HostKeyPolicy::AcceptNew => self.learning.is_some(),
        };
        // The last one answers: it waits for the others of its host.
        let further = keys.into_iter().map(|key| (key, Asks::Further));
        for (key, asks) in further.chain([(key, Asks::First { question, beside })]) {
            let lesson = Lesson {
                ticket,
                asks,
                host: known.host.clone(),
                key,
                hash: known.profile.hash_known_hosts,
            };
            self.hosts.lessons.add(&file, lesson);
        }
        // From here on the host waits for us.
        self.answer(ticket, Answer::Asking(true));
        self.write_lessons(now, &file);
    }

    /// Has everything written that waits for `file`, unless it is being written to.
    pub(super) fn write_lessons(&mut self, now: Instant, file: &str) {
        let mut new = Vec::new();
        for lesson in self.hosts.lessons.take(file) {
            let Some(known) = self.targets.get(&lesson.ticket.request) else {
                continue;
            };
            // Another target of the same name may have taught it meanwhile. Somebody has looked at what is new, where that
            // was necessary.
            let (profile, target) = (&known.profile, &known.shown.text);
            if lesson.asks == Asks::Gone
                || lesson.is_new(&self.hosts.verdict(profile, &lesson.host, &lesson.key, None))
            {
                new.push(lesson);
                continue;
            }
            let decision = self.hosts.judge(profile, &lesson.host, target, &lesson.key, None);
            match decision {
                Decision::Learn | Decision::Ask { .. } => new.push(lesson),
                Decision::Accept => self.close_lesson(&lesson, Ok(Found::Known)),
                Decision::Refuse(reason) | Decision::Distrust(reason) => {
                    self.close_lesson(&lesson, Err(reason))
                }
            }
        }
        let Some(batch) = self.hosts.lessons.batch(file, new) else {
            return;
        };
        let lessons = batch.lessons.clone();
        if let Err(error) = self.pool.submit(now, Task::Learn(batch)) {
            let why = limits::missing("start a thread", &error);
            for lesson in lessons {
                self.close_lesson(&lesson, Err(format!("host key not kept: {why}")));
            }
            self.hosts.lessons.written(file, &Err(error.into()));
        }
    }

    /// Somebody is to be asked about a key, together with whatever else turns up; `refusal` is why it is not taken if
    /// nobody can be.
    pub(super) fn gather(&mut self, now: Instant, unknown: Unknown, refusal: String) {
        let Unknown { ticket, question, .. } = unknown;
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let (batch, is_hop) = (known.profile.batch, known.is_hop);
        if batch || self.asks_no_more || !self.questions.has_terminal() {
            let refusal = match &self.learning {
                Some(_) => learning::not_confirmed(&unknown.keys),
                None => refusal,
            };
            return self.refuse(ticket, question, refusal);
        }
        self.gathering.add(now, unknown, is_hop);
        let judgement = Judgement::Later;
        self.answer(ticket, Answer::HostKey { question, judgement });
    }

    /// When the question about the keys that have been gathered is due.
    pub(super) fn host_keys_due(&self) -> Option<Instant> {
        self.gathering
            .due()
            .filter(|_| !self.questions.is_about_host_keys())
    }

    /// Time to ask about the keys that have been gathered, if there are any.
    pub(super) fn ask_about_host_keys(&mut self, now: Instant, net: &mut Net) {
        if !self.gathering.is_empty() {
            self.questions.push(Question::HostKeys);
            self.ask_next(now, net);
        }
    }

    /// The answer about the keys that were asked about.
    pub(super) fn confirmed(&mut self, now: Instant, yes: bool) {
        for unknown in std::mem::take(&mut self.asked) {
            let Unknown {
                ticket,
                question,
                keys,
            } = unknown;
            if yes {
                self.learn(now, ticket, question, keys);
            } else {
                let reason = format!("host key not accepted ({})", learning::list(&keys));
                self.refuse(ticket, question, reason);
            }
        }
    }

    /// Nobody is asked any more.
    pub(super) fn give_up_host_keys(&mut self) {
        let gathered = self.gathering.take();
        for unknown in std::mem::take(&mut self.asked).into_iter().chain(gathered) {
            let keys = learning::list(&unknown.keys);
            let reason = format!("host key not known ({keys}), and nobody was asked");
            self.refuse(unknown.ticket, unknown.question, reason);
        }
    }

    /// Keys were written down, or not: those who wait for it go on.
    pub(super) fn learned(&mut self, now: Instant, batch: &Batch, result: Result<Written, FileError>) {
        self.hosts.lessons.written(&batch.file, &result);
        for (at, lesson) in batch.lessons.iter().enumerate() {
            let verdict = match &result {
                Ok(written) if lesson.asks == Asks::Gone => {
                    let was_there = written.forgotten.contains(&at);
                    self.forgotten(lesson, was_there);
                    continue;
                }
                Ok(written) => written.verdicts.get(at).cloned().expect("one for each lesson"),
                Err(error) if self.learning.is_some() || !lesson.is_first() => {
                    let file = Printable::new(&batch.file);
                    let reason = format!("host key not written: {file}: {error}");
                    self.close_lesson(lesson, Err(reason));
                    continue;
                }
                Err(error) => self.hosts.not_stored(&batch.file, lesson, *error),
            };
            let found = self.hosts.learned(&batch.file, lesson, &verdict);
            self.close_lesson(lesson, found);
        }
        self.write_lessons(now, &batch.file);
    }

    fn close_lesson(&mut self, lesson: &Lesson, found: Result<Found, String>) {
        let Asks::First { question, .. } = lesson.asks else {
            return self.further_key_written(lesson, found);
        };
        self.answer(lesson.ticket, Answer::Asking(false));
        let further = self
            .targets
            .get_mut(&lesson.ticket.request)
            .and_then(|known| known.not_written.take());
        match further.map_or(found, Err) {
            Ok(found) => self.accept(lesson.ticket, question, &lesson.key, found),
            Err(reason) => self.refuse(lesson.ticket, question, reason),
        }
    }
}
