//! `UpdateHostKeys`: further keys of hosts that are known, kept once the host has proved that it holds them, so that it can
//! change its keys without anybody being asked; those that it does not have any more are forgotten. Decides which are asked
//! about and what is said; how a file is written to is for `lessons`.

use std::time::Instant;

use mux_ssh::Printable;
use mux_ssh::config::YesNoAsk;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::Further;

use super::learning::Found;
use super::lessons::{Asks, Lesson};
use super::outside::Outside;
use crate::hub::{Answer, Ticket};

impl Outside {
    /// A host says which keys it has.
    pub(super) fn look_at_host_keys(&mut self, now: Instant, ticket: Ticket, told: &[PublicKey]) {
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        // Whoever was let in for another reason has not shown that it is the host.
        let Some(accepted) = &known.accepted else { return };
        let (profile, shown) = (&known.profile, &known.shown.text);
        let further = self.hosts.further_keys(profile, &known.host, accepted, told);
        let why = match (further, profile.update) {
            (Further::Same | Further::Elsewhere, _) | (_, YesNoAsk::No) => return,
            (Further::Differ { new, gone }, YesNoAsk::Yes) => {
                let strong = |key: &PublicKey| key.rsa_bits().is_none_or(|bits| bits >= profile.rsa_bits);
                known.gone = gone;
                // Before anything is forgotten, the host has to prove all that it has named.
                let mut keys = if known.gone.is_empty() { new } else { told.to_vec() };
                keys.retain(|key| key != accepted && strong(key));
                return match (keys.is_empty(), known.gone.is_empty()) {
                    (false, _) => self.answer(ticket, Answer::ProveHostKeys(keys)),
                    (true, false) => self.keep_host_keys(now, ticket, Vec::new()),
                    (true, true) => {}
                };
            }
            (Further::Differ { .. }, YesNoAsk::Ask) => {
                "UpdateHostKeys is ask, and nobody is asked about them; -o UpdateHostKeys=yes takes them"
                    .to_owned()
            }
            (Further::Arranged(place), _) => format!("{place} has several names, patterns or a marker"),
            (Further::Shared(place), _) => format!("{place} has one of them under another name"),
        };
        self.hosts
            .remark(format!("{shown}: host keys not brought up to date: {why}"));
    }

    /// A host has proved that it holds these keys.
    pub(super) fn keep_host_keys(&mut self, now: Instant, ticket: Ticket, keys: Vec<PublicKey>) {
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        let gone = std::mem::take(&mut known.gone);
        let Some(file) = known.profile.user_known_hosts.first().cloned() else {
            return;
        };
        let keys = keys.into_iter().map(|key| (key, Asks::Further));
        for (key, asks) in keys.chain(gone.into_iter().map(|gone| (gone.key, Asks::Gone))) {
            let lesson = Lesson {
                ticket,
                asks,
                host: known.host.clone(),
                key,
                hash: known.profile.hash_known_hosts,
            };
            self.hosts.lessons.add(&file, lesson);
        }
        self.write_lessons(now, &file);
    }

    /// The file does not have a key any more that the host has not, or never had it.
    pub(super) fn forgotten(&mut self, lesson: &Lesson, was_there: bool) {
        if let Some(known) = self.targets.get(&lesson.ticket.request).filter(|_| was_there) {
            let file = known.profile.user_known_hosts.first().map_or("", String::as_str);
            let (shown, file) = (&known.shown.text, Printable::new(file));
            let (algorithm, print) = (lesson.key.algorithm(), lesson.key.fingerprint_sha256());
            self.hosts.remark(format!(
                "{shown}: host key removed from {file}, as the host has it no more: {algorithm} {print}"
            ));
        }
    }

    /// One of them stands in the file, or does not.
    pub(super) fn further_key_written(&mut self, lesson: &Lesson, found: Result<Found, String>) {
        let Some(known) = self.targets.get_mut(&lesson.ticket.request) else {
            return;
        };
        if let Some(learning) = &mut self.learning {
            return match found {
                Ok(found) => learning.found(lesson.ticket.request, &lesson.key, found),
                Err(reason) => known.not_written = Some(reason),
            };
        }
        let (shown, algorithm) = (&known.shown.text, lesson.key.algorithm());
        let print = lesson.key.fingerprint_sha256();
        match found {
            Ok(Found::Learned) => {
                let file = known.profile.user_known_hosts.first().map_or("", String::as_str);
                let file = Printable::new(file);
                self.hosts.remark(format!(
                    "{shown}: further host key written to {file}: {algorithm} {print}"
                ));
            }
            Ok(Found::Known) => {}
            Err(reason) => self.hosts.remark(format!("{shown}: {reason}")),
        }
    }

    /// Keys are being written down.
    pub(crate) fn is_writing(&self) -> bool {
        self.hosts.lessons.is_writing()
    }
}
