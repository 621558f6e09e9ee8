//! What the hub wants to know before an attempt: keys to offer, host keys on file, the server's habits. Ties offers,
//! agents, known_hosts and memory together; decides nothing that one of them decides.

use std::sync::Arc;
use std::time::Instant;

use super::agents::Listing;
use super::net::Net;
use super::offers::Offers;
use super::outside::Outside;
use super::profile::Profile;
use super::wall_clock;
use crate::hub::{Answer, KeyId, Prepared, Ticket};
use crate::keyring::Keyring;

/// What is offered for a profile.
#[derive(Debug)]
pub(super) struct Offered {
    /// Kept beside its offers, so that its address names no other one.
    _profile: Arc<Profile>,
    pub(super) offers: Arc<Offers>,
    /// The turn in which the files were last looked at.
    looked: Instant,
}

impl Offered {
    fn new(now: Instant, profile: &Arc<Profile>, offers: &Arc<Offers>) -> Self {
        Self {
            _profile: Arc::clone(profile),
            offers: Arc::clone(offers),
            looked: now,
        }
    }

    /// Whether it still holds.
    fn is_fresh(&mut self, now: Instant, keyring: &Keyring) -> bool {
        if self.offers.has_opened(keyring) {
            return false;
        }
        // With the default ones, a look at the files is two dozen system calls: the hosts of one turn share it.
        std::mem::replace(&mut self.looked, now) == now || self.offers.is_as_on_disk(keyring)
    }
}

impl Outside {
    pub(super) fn prepare(&mut self, now: Instant, net: &mut Net, ticket: Ticket) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let profile = Arc::clone(&known.profile);
        let Some(offers) = self.offers(now, net, &profile) else {
            return self.unprepared.push(ticket);
        };
        if let Some(key) = offers.to_open_first()
            && self.has_to_be_opened(now, net, key, ticket)
        {
            return;
        }
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        let mut known_by = self.hosts.key_types(&known.profile, &known.host, &self.state);
        let expected = self.learning.as_mut().map(|learning| learning.key_types(known));
        if let Some(expected) = expected.filter(|expected| !expected.is_empty()) {
            known_by.types = expected;
        }
        known.asked_for = Some(known_by.types.clone());
        let worked = self.state.key(&known.server, &known.user);
        let prepared = Prepared {
            keys: offers.for_target(worked, &self.keyring),
            known_host_key_types: known_by.types,
            known_authority: known_by.authority,
            memory: self.state.server(&known.server),
            skipped: offers.skipped.clone(),
        };
        self.answer(ticket, Answer::Prepared(prepared));
    }

    /// The keys of a profile; `None` while its agent is being asked.
    pub(super) fn offers(
        &mut self,
        now: Instant,
        net: &mut Net,
        profile: &Arc<Profile>,
    ) -> Option<Arc<Offers>> {
        let name = Arc::as_ptr(profile).addr();
        if let Some(known) = self.offers.get_mut(&name)
            && known.is_fresh(now, &self.keyring)
        {
            return Some(Arc::clone(&known.offers));
        }
        let socket: Option<Arc<str>> = profile.agent.as_deref().map(Arc::from);
        let listing = match &socket {
            Some(socket) if profile.keys_off.is_none() => match self.agents.listing(now, net, socket) {
                Listing::Pending => return None,
                Listing::Known(listing) => Some(listing),
            },
            Some(_) | None => None,
        };
        let agent = socket.as_ref().zip(listing.as_deref());
        let offers = Arc::new(Offers::new(
            profile,
            agent,
            &mut self.keyring,
            wall_clock::unix_seconds(),
        ));
        offers
            .complaints
            .iter()
            .for_each(|text| self.complaints.add(text));
        offers.remarks.iter().for_each(|text| self.remarks.add(text));
        self.offers.insert(name, Offered::new(now, profile, &offers));
        Some(offers)
    }

    /// A key can't sign for a host.
    pub(super) fn unusable(&mut self, ticket: Ticket, key: KeyId, reason: &str) {
        let known = self.targets.get(&ticket.request);
        let offers = known.and_then(|known| self.offers.get(&Arc::as_ptr(&known.profile).addr()));
        if let Some(text) = offers.and_then(|offered| offered.offers.complaint(key, reason)) {
            self.complaints.add(&text);
        }
    }
}
