//! Keys that targets show: judged by what known_hosts says, and written down where a new one is taken. Decides when a host
//! is asked for another key; the judgement itself is the hub's, and how files are written to is for `lessons`.

use std::time::Instant;

use mux_ssh::client::QuestionId;
use mux_ssh::keys::PublicKey;

use super::lessons::{Batch, Lesson, Written};
use super::limits;
use super::outside::Outside;
use super::task::Task;
use crate::files::FileError;
use crate::hub::{Answer, Decision, Judgement, Shown, Ticket, Vouching};

impl Outside {
    /// Judges a key that a target has shown, or has it written down first.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        ticket: Ticket,
        question: QuestionId,
        key: PublicKey,
        certificate: Option<Shown>,
    ) {
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        if let Some(bits) = key.rsa_bits().filter(|bits| *bits < known.profile.rsa_bits) {
            let reason = format!(
                "RSA host key of {bits} bits, and RequiredRSASize is {}",
                known.profile.rsa_bits
            );
            let judgement = Judgement::Refuse(reason);
            return self.answer(ticket, Answer::HostKey { question, judgement });
        }
        let note = match self
            .hosts
            .vouching(&known.profile, &known.host, &key, certificate.as_ref())
        {
            Vouching::Accept => {
                let judgement = Judgement::Accept;
                return self.answer(ticket, Answer::HostKey { question, judgement });
            }
            Vouching::Refuse(reason) => {
                let judgement = Judgement::Refuse(reason);
                return self.answer(ticket, Answer::HostKey { question, judgement });
            }
            Vouching::Nothing(note) => note,
        };
        let decision = self.hosts.judge(&known.profile, &known.host, &key);
        let others = match (&decision, known.asked_for.take()) {
            (Decision::Accept, _) | (_, None) => None,
            (Decision::Refuse(_) | Decision::Learn, Some(asked_for)) => {
                self.hosts
                    .other_types(&known.profile, &known.host, &key, &asked_for)
            }
        };
        let judgement = match (decision, others) {
            (_, Some(types)) => Judgement::AskForOthers(types),
            (Decision::Accept, None) => Judgement::Accept,
            (Decision::Refuse(reason), None) => Judgement::Refuse(match note {
                Some(note) => format!("{note}; {reason}"),
                None => reason,
            }),
            (Decision::Learn, None) => return self.learn(now, ticket, question, key),
        };
        self.answer(ticket, Answer::HostKey { question, judgement });
    }

    fn learn(&mut self, now: Instant, ticket: Ticket, question: QuestionId, key: PublicKey) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let Some(file) = known.profile.user_known_hosts.first().cloned() else {
            // `UserKnownHostsFile none`: nothing is to be kept.
            return self.answer(
                ticket,
                Answer::HostKey {
                    question,
                    judgement: Judgement::Accept,
                },
            );
        };
        let lesson = Lesson {
            ticket,
            question,
            host: known.host.clone(),
            key,
            hash: known.profile.hash_known_hosts,
        };
        self.hosts.lessons.add(&file, lesson);
        self.write_lessons(now, &file);
    }

    /// Has everything written that waits for `file`, unless it is being written to.
    fn write_lessons(&mut self, now: Instant, file: &str) {
        let mut new = Vec::new();
        for lesson in self.hosts.lessons.take(file) {
            let Some(known) = self.targets.get(&lesson.ticket.request) else {
                continue;
            };
            // Another target of the same name may have taught it meanwhile.
            match self.hosts.judge(&known.profile, &lesson.host, &lesson.key) {
                Decision::Learn => new.push(lesson),
                Decision::Accept => self.answer_lesson(&lesson, Judgement::Accept),
                Decision::Refuse(reason) => self.answer_lesson(&lesson, Judgement::Refuse(reason)),
            }
        }
        let Some(batch) = self.hosts.lessons.batch(file, new) else {
            return;
        };
        let lessons = batch.lessons.clone();
        if let Err(error) = self.pool.submit(now, Task::Learn(batch)) {
            let why = limits::missing("start a thread", &error);
            for lesson in lessons {
                self.answer_lesson(&lesson, Judgement::Refuse(format!("host key not kept: {why}")));
            }
            self.hosts.lessons.written(file, &Err(error.into()));
        }
    }

    /// Keys were written down, or not: those who wait for it go on.
    pub(super) fn learned(&mut self, now: Instant, batch: &Batch, result: Result<Written, FileError>) {
        self.hosts.lessons.written(&batch.file, &result);
        for (at, lesson) in batch.lessons.iter().enumerate() {
            let Some(known) = self.targets.get(&lesson.ticket.request) else {
                continue;
            };
            let verdict = match &result {
                Ok(written) => Ok(written.verdicts.get(at).cloned().expect("one for each lesson")),
                Err(error) => Err(*error),
            };
            let judgement = self.hosts.learned(&known.profile, &batch.file, lesson, verdict);
            self.answer_lesson(lesson, judgement);
        }
        self.write_lessons(now, &batch.file);
    }

    fn answer_lesson(&mut self, lesson: &Lesson, judgement: Judgement) {
        let question = lesson.question;
        self.answer(lesson.ticket, Answer::HostKey { question, judgement });
    }
}
