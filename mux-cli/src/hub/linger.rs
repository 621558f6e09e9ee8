//! Connections whose command is over, and which wait for one more answer: the server's proof that it has further host keys.
//! It is asked for once a host, and takes the round trip that a short command does not. Decides how long that may take;
//! nothing that was asked for waits for it.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use mux_ssh::client::Event as Said;
use mux_ssh::keys::PublicKey;

use super::job::{Context, Job};
use super::pace::Door;
use super::phase::{self, Phase, Session};
use super::{Action, Hub, LinkEvent, Links, Ticket, Transport};

/// Longer than a round trip takes anywhere, and nothing that anybody notices where it takes that long.
const LINGER: Duration = Duration::from_secs(1);

/// The connections, whose they were, and until when they are kept.
pub(super) type Lingering<K> = HashMap<K, (Ticket, Instant)>;

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
            let until = cx.now + LINGER;
            cx.shared.lingering.insert(key, (self.ticket(), until));
        }
    }
}

impl<K: Copy + Eq + Hash> Hub<K> {
    /// Something happened on a link that no job has.
    pub(super) fn handle_lingering<L: Links<Key = K>>(&mut self, links: &mut L, key: K, event: LinkEvent) {
        match event {
            LinkEvent::Client(Said::HostKeysProven(keys)) => {
                if let Some((ticket, _)) = self.shared.lingering.remove(&key) {
                    let action = Action::KeepHostKeys { keys };
                    self.shared.actions.push_back((ticket, action));
                    phase::say_goodbye(links, key);
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
        self.shared.lingering.retain(|key, (_, until)| {
            let stays = now.is_some_and(|now| *until > now);
            if !stays {
                phase::say_goodbye(links, *key);
            }
            stays
        });
    }

    pub(super) fn linger_timeout(&self) -> Option<Instant> {
        self.shared.lingering.values().map(|(_, until)| *until).min()
    }
}
