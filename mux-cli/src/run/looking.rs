//! All keys of a host that somebody wants to learn: it is asked for one type after the other, a connection each, as
//! `ssh-keyscan` does it. Decides which type is next and, once there is none, which of the keys are written down; the
//! judgement of each is the hub's, and `lessons` writes.

use std::time::Instant;

use mux_ssh::algorithms::KeyType;
use mux_ssh::client::QuestionId;
use mux_ssh::config::HostKeyPolicy;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{KnownHosts, Verdict};

use super::gathering::Unknown;
use super::learning::Found;
use super::outside::Outside;
use crate::hub::{Answer, Decision, Judgement, Ticket};

impl Outside {
    /// A host has shown this key (none: one that is of no use), and has keys of these `types`.
    pub(super) fn look_further(
        &mut self,
        now: Instant,
        (ticket, question): (Ticket, QuestionId),
        key: Option<PublicKey>,
        types: &[KeyType],
        told: Option<&KnownHosts>,
    ) {
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        if let Some(key) = key.filter(|key| known.seen.iter().all(|(seen, _)| seen != key)) {
            let verdict = self.hosts.verdict(&known.profile, &known.host, &key, told);
            known.tried.push(key.key_type());
            known.seen.push((key, verdict));
        }
        // Each type is asked for once, so that a host that shows another one has an end too.
        let next = types.iter().find(|next| !known.tried.contains(next));
        match next {
            Some(&next) => {
                known.tried.push(next);
                let judgement = Judgement::AskForOthers(vec![next]);
                self.answer(ticket, Answer::HostKey { question, judgement });
            }
            None => match self.sort_out(ticket) {
                Ok(keys) => self.take_all(now, ticket, question, keys),
                Err(reason) => self.refuse(ticket, question, reason),
            },
        }
    }

    /// Which keys of a host are known, and which are new.
    ///
    /// # Errors
    /// One of them says that it is not the host.
    fn sort_out(&mut self, ticket: Ticket) -> Result<Sorted, String> {
        let mut sorted = Sorted::default();
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return Ok(sorted);
        };
        let seen = std::mem::take(&mut known.seen);
        known.tried.clear();
        let is_known = seen
            .iter()
            .any(|(_, verdict)| matches!(verdict, Verdict::Known(_)));
        let mut unexpected = Vec::new();
        for (key, verdict) in seen {
            let objection = self
                .learning
                .as_mut()
                .and_then(|learning| learning.objection(known, &key));
            // A host that has shown one of the keys by which it is known may have others of other types.
            let is_further = matches!(&verdict, Verdict::Changed(others)
                if others.iter().all(|other| other.key_type != Some(key.key_type())));
            let verdict = match is_known && is_further {
                true => Verdict::Unknown { authority: None },
                false => verdict,
            };
            let target = &known.shown.text;
            match (
                self.hosts
                    .decide(&known.profile, &known.host, target, &key, &verdict),
                objection,
            ) {
                (Decision::Refuse(reason) | Decision::Distrust(reason), _) => return Err(reason),
                (_, Some(objection)) => unexpected.push(objection),
                (Decision::Accept, None) => sorted.known.push(key),
                (Decision::Learn | Decision::Ask { .. }, None) => sorted.new.push(key),
            }
        }
        let nothing = sorted.known.is_empty() && sorted.new.is_empty();
        for objection in unexpected {
            if nothing || objection.is_of_its_type {
                return Err(objection.reason);
            }
            self.hosts.warn(&known.shown.text, &objection.reason);
        }
        Ok(sorted)
    }

    /// Goes on with what was found.
    fn take_all(&mut self, now: Instant, ticket: Ticket, question: QuestionId, keys: Sorted) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let asks = known.profile.policy == HostKeyPolicy::Ask;
        let Sorted { known: mut old, new } = keys;
        let last = if new.is_empty() { old.pop() } else { None };
        if let Some(learning) = &mut self.learning {
            old.iter()
                .for_each(|key| learning.found(ticket.request, key, Found::Known));
        }
        match last {
            Some(key) => self.accept(ticket, question, &key, Found::Known),
            None if asks => {
                let unknown = Unknown {
                    ticket,
                    question,
                    keys: new,
                };
                self.gather(now, unknown, String::new());
            }
            None => self.learn(now, ticket, question, new),
        }
    }
}

/// The keys of a host.
#[derive(Debug, Default)]
struct Sorted {
    known: Vec<PublicKey>,
    new: Vec<PublicKey>,
}
