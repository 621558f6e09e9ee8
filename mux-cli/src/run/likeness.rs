//! Whether one connection can stand for another: everything that decides how a host is reached, who logs in with what, and
//! what its key has to be, as one digest. Decides what belongs to it: all of it, so that a laxer policy, another key or
//! another agent never shares.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::digest::{Context, SHA256};

use super::agents::Listing;
use super::net::Net;
use super::outside::Outside;
use super::profile::Profile;
use crate::hub::{Likeness, Request, SshOptions, Transport};

/// What is the same for many hosts, each worked out once: by the addresses of what is kept beside.
#[derive(Debug, Default)]
pub(super) struct Commons {
    by_place: HashMap<(usize, usize), Common>,
}

#[derive(Debug)]
struct Common {
    /// Kept, so that its address names no other one. The profile is kept beside its offers.
    _options: Arc<SshOptions>,
    digest: Vec<u8>,
    agent: Option<Arc<str>>,
}

impl Outside {
    /// Whom the connection of a request may serve besides; `None` while its agent is asked what it holds.
    pub(super) fn likeness(
        &mut self,
        now: Instant,
        net: &mut Net,
        request: &Request,
    ) -> Option<Option<Likeness>> {
        let (Some(known), Transport::Ssh(options)) = (self.targets.get(&request.id), &request.transport)
        else {
            return Some(None);
        };
        let profile = Arc::clone(&known.profile);
        let place = (Arc::as_ptr(&profile).addr(), Arc::as_ptr(options).addr());
        if !self.commons.by_place.contains_key(&place) {
            let common = self.common(now, net, &profile, options)?;
            self.commons.by_place.insert(place, common);
        }
        let (Some(common), Some(known)) = (self.commons.by_place.get(&place), self.targets.get(&request.id))
        else {
            return Some(None);
        };
        let mut all = Context::new(&SHA256);
        all.update(&common.digest);
        let own = (&request.host, &request.address, request.port, &request.user);
        all.update(format!("{own:?} {:?} {:?}", known.host, known.server.way).as_bytes());
        let digest = all.finish().as_ref().try_into().expect("SHA-256 has 32 bytes");
        let agent = common.agent.clone();
        Some(Some(Likeness { digest, agent }))
    }

    fn common(
        &mut self,
        now: Instant,
        net: &mut Net,
        profile: &Arc<Profile>,
        options: &Arc<SshOptions>,
    ) -> Option<Common> {
        let offers = self.offers(now, net, profile)?;
        let mut all = Context::new(&SHA256);
        // Whatever is in them tells two connections apart: nothing is forgotten when one of them gets another field.
        all.update(format!("{profile:?} {options:?}").as_bytes());
        for offer in offers.for_target(None, &self.keyring) {
            let blob = offer.identity.blob();
            all.update(&(blob.len() as u64).to_be_bytes());
            all.update(blob);
        }
        all.update(format!("{:?}", offers.skipped).as_bytes());
        Some(Common {
            _options: Arc::clone(options),
            digest: all.finish().as_ref().to_vec(),
            agent: self.answering_agent(now, net, profile),
        })
    }

    /// The agent of a profile, if it has told what it holds.
    fn answering_agent(&mut self, now: Instant, net: &mut Net, profile: &Profile) -> Option<Arc<str>> {
        let socket: Arc<str> = profile.agent.as_deref().map(Arc::from)?;
        if profile.keys_off.is_some() {
            return None;
        }
        match self.agents.listing(now, net, &socket) {
            Listing::Known(held) if held.is_ok() => Some(socket),
            Listing::Known(_) | Listing::Pending => None,
        }
    }
}
