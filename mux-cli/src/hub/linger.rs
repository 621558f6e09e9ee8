//! Connections whose command is over, and which wait for one more answer: the server's proof that it has further host keys.
//! It is asked for once a host, and takes the round trip that a short command does not. Decides how long that may take;
//! nothing that was asked for waits for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use mux_ssh::client::Event as Said;
use mux_ssh::keys::PublicKey;

use super::job::Job;
use super::pace::Door;
use super::phase::{self, Phase, Session};
use super::shared::Context;
use super::{Action, Hub, Kept, LinkEvent, Links, Ticket, Transport};

/// Longer than a round trip takes anywhere, and nothing that anybody notices where it takes that long.
const LINGER: Duration = Duration::from_secs(1);

/// The connections, by link.
pub(super) type Lingering<K> = HashMap<K, Waiting<K>>;

/// One of them.
#[derive(Debug)]
pub(super) struct Waiting<K> {
    ticket: Ticket,
    until: Instant,
    /// What becomes of it then, if it is of use to others.
    kept: Option<Kept<K>>,
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// Nothing goes on before somebody has judged the host's key.
    pub(super) fn ask_about_host_key<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, said: Said) {
        let Said::HostKey {
            id: question,
            key,
            certificate,
            types,
        } = said
        else {
            return;
        };
        let local = match &self.phase {
            Phase::Session(session) => {
                matches!(session.door, Door::Address(address) if address.ip().is_loopback())
            }
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) | Phase::Parked(_) => false,
            Phase::Local(_) | Phase::Pausing(_) | Phase::Over => false,
        };
        let action = Action::JudgeHostKey {
            question,
            key,
            certificate,
            types,
            local,
        };
        self.ask(cx, action);
    }

    /// The server says which keys it has. Only those count that it may show at the beginning.
    pub(super) fn host_keys_told<L: Links<Key = K>>(
        &self,
        cx: &mut Context<'_, L>,
        mut keys: Vec<PublicKey>,
    ) {
        if let Transport::Ssh(options) = &self.request.transport {
            let allowed = &options.algorithms.host_keys;
            keys.retain(|key| {
                allowed
                    .iter()
                    .any(|algorithm| algorithm.key_type() == key.key_type())
            });
            self.ask(cx, Action::LookAtHostKeys { keys });
        }
    }

    /// The outside wants to know whether the server has these.
    pub(super) fn prove_host_keys<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        keys: Vec<PublicKey>,
    ) {
        self.with_client(cx, |client| client.prove_host_keys(keys));
        if let Phase::Session(session) = &mut self.phase {
            session.proving = true;
        }
    }

    pub(super) fn host_keys_proven<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        keys: Vec<PublicKey>,
    ) {
        if let Phase::Session(session) = &mut self.phase {
            session.proving = false;
        }
        if !keys.is_empty() {
            self.ask(cx, Action::KeepHostKeys { keys });
        }
    }

    /// The command is over: keeps the connection if there is something to wait for.
    pub(super) fn linger<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Session(Session {
            key, proving: true, ..
        }) = self.phase
        else {
            return;
        };
        if cx.shared.by_link.remove(&key).is_some() {
            let waiting = Waiting {
                ticket: self.ticket(),
                until: cx.now + LINGER,
                kept: self.to_keep(cx, key),
            };
            cx.shared.lingering.insert(key, waiting);
        }
    }
}

impl<K: Copy + Eq + Hash> Hub<K> {
    /// Something happened on a link that no job has.
    pub(super) fn handle_lingering<L: Links<Key = K>>(&mut self, links: &mut L, key: K, event: LinkEvent) {
        match event {
            LinkEvent::Client(Said::HostKeysProven(keys)) => {
                if let Some(waiting) = self.shared.lingering.remove(&key) {
                    let action = Action::KeepHostKeys { keys };
                    self.shared.actions.push_back((waiting.ticket, action));
                    waiting.over(links, key);
                }
            }
            LinkEvent::Closed(_) => drop(self.shared.lingering.remove(&key)),
            LinkEvent::Connected
            | LinkEvent::Client(_)
            | LinkEvent::Output(..)
            | LinkEvent::Room
            | LinkEvent::Log { .. }
            | LinkEvent::KillerOver
            | LinkEvent::ProxySaid(_)
            | LinkEvent::Exited { .. } => {}
        }
    }

    /// Lets those go that have waited long enough, or all.
    pub(super) fn stop_lingering<L: Links<Key = K>>(&mut self, links: &mut L, now: Option<Instant>) {
        let is_over = |_: &K, waiting: &mut Waiting<K>| now.is_none_or(|now| waiting.until <= now);
        for (key, waiting) in self.shared.lingering.extract_if(is_over) {
            waiting.over(links, key);
        }
    }

    pub(super) fn linger_timeout(&self) -> Option<Instant> {
        self.shared.lingering.values().map(|waiting| waiting.until).min()
    }
}

impl<K: Copy + Eq + Hash> Waiting<K> {
    /// Nothing is waited for any more.
    fn over<L: Links<Key = K>>(self, links: &mut L, key: K) {
        if !self.kept.is_some_and(|kept| links.keep(kept)) {
            phase::say_goodbye(links, key);
        }
    }
}
