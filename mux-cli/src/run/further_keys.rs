//! `UpdateHostKeys`: further keys of hosts that are known, kept once the host has proved that it holds them, so that it can
//! change its keys without anybody being asked. Decides which are asked about and what is said; how a file is written to
//! is for `lessons`.

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
    pub(super) fn look_at_host_keys(&mut self, ticket: Ticket, keys: &[PublicKey]) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        // Whoever was let in for another reason has not shown that it is the host.
        let Some(accepted) = &known.accepted else { return };
        let (profile, shown) = (&known.profile, &known.shown.text);
        let strong = |key: &&PublicKey| key.rsa_bits().is_none_or(|bits| bits >= profile.rsa_bits);
        let keys: Vec<PublicKey> = keys.iter().filter(strong).cloned().collect();
        let why = match self.hosts.further_keys(profile, &known.host, accepted, &keys) {
            Further::New(new) if new.is_empty() => return,
            Further::Elsewhere => return,
            Further::New(new) => match profile.update {
                YesNoAsk::Yes => return self.answer(ticket, Answer::ProveHostKeys(new)),
                YesNoAsk::Ask => "UpdateHostKeys is ask, and nobody is asked about them".to_owned(),
                YesNoAsk::No => return,
            },
            Further::Arranged(place) => format!("{place} has several names, patterns or a marker"),
            Further::Shared(place) => format!("{place} has one of them under another name"),
        };
        self.hosts
            .remark(format!("{shown}: further host keys not written down: {why}"));
    }

    /// A host has proved that it holds these keys.
    pub(super) fn keep_host_keys(&mut self, now: Instant, ticket: Ticket, keys: Vec<PublicKey>) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let Some(file) = known.profile.user_known_hosts.first().cloned() else {
            return;
        };
        for key in keys {
            let lesson = Lesson {
                ticket,
                asks: Asks::Further,
                host: known.host.clone(),
                key,
                hash: known.profile.hash_known_hosts,
            };
            self.hosts.lessons.add(&file, lesson);
        }
        self.write_lessons(now, &file);
    }

    /// One of them stands in the file, or does not.
    pub(super) fn further_key_written(&mut self, lesson: &Lesson, found: Result<Found, String>) {
        let Some(known) = self.targets.get(&lesson.ticket.request) else {
            return;
        };
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
