//! Host keys: judged by what is on file, and written there where a new one is to be kept. Ties known_hosts and the pool
//! to the hub; decides nothing about a key.

use std::time::Instant;

use mux_ssh::client::QuestionId;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::Verdict;

use super::hosts::Lesson;
use super::outside::Outside;
use super::task::Task;
use crate::files::FileError;
use crate::hub::{Answer, Decision, Judgement, Ticket};

impl Outside {
    pub(super) fn judge(&mut self, now: Instant, ticket: Ticket, question: QuestionId, key: PublicKey) {
        let Some(known) = self.targets.get(&ticket.request) else {
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
        let judgement = match self.hosts.judge(&known.profile, &known.host, &key) {
            Decision::Accept => Judgement::Accept,
            Decision::Refuse(reason) => Judgement::Refuse(reason),
            Decision::Learn => return self.learn(now, ticket, question, key),
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
            host: known.host.clone(),
            key,
            file,
            hash: known.profile.hash_known_hosts,
        };
        if let Err(error) = self.pool.submit(
            now,
            Task::Learn {
                ticket,
                question,
                lesson,
            },
        ) {
            let judgement = Judgement::Refuse(format!("host key not kept: {error}"));
            self.answer(ticket, Answer::HostKey { question, judgement });
        }
    }

    /// The file was written, or not.
    pub(super) fn learned(
        &mut self,
        ticket: Ticket,
        question: QuestionId,
        lesson: &Lesson,
        result: Result<Verdict, FileError>,
    ) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let judgement = self.hosts.learned(&known.profile, lesson, result);
        self.answer(ticket, Answer::HostKey { question, judgement });
    }
}
