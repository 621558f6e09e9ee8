//! Connections on their way to one target: which doors are left, at which one has a place, and what is held meanwhile.
//! Gives back what it holds; when the next step is taken is decided in `connect`.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Instant;

use mux_ssh::client::ChannelId;

use super::hop::Note;
use super::pace::Door;
use super::shared::Context;
use super::{Failure, Links, Request, Route};

/// Connections that race to be the first that stands.
#[derive(Debug)]
pub(super) struct Race<K> {
    /// Doors not tried yet.
    pub(super) doors: VecDeque<Door>,
    /// The door in whose queue we wait.
    pub(super) waiting: Option<Door>,
    /// The door at which we have a place, and when to use it.
    pub(super) starting: Option<(Instant, Door)>,
    /// The door at which we have a place, and since when the jump host before it is to open it.
    pub(super) boarding: Option<(Door, Instant)>,
    /// On their way.
    pub(super) runners: Vec<Runner<K>>,
    /// When the next address gets its chance although the last has not failed.
    pub(super) next_at: Option<Instant>,
    /// What the last failed address said.
    pub(super) failure: Option<Failure>,
}

/// One connection with the command already on it, if it is for one.
#[derive(Debug)]
pub(super) struct Runner<K> {
    pub(super) key: K,
    pub(super) door: Door,
    pub(super) channel: Option<ChannelId>,
    pub(super) since: Instant,
}

impl<K: Copy + Eq + Hash> Race<K> {
    pub(super) fn new(doors: VecDeque<Door>) -> Self {
        Self {
            doors,
            waiting: None,
            starting: None,
            boarding: None,
            runners: Vec::new(),
            next_at: None,
            failure: None,
        }
    }

    /// Gives everything back that `request` holds here.
    pub(super) fn release<L: Links<Key = K>>(self, cx: &mut Context<'_, L>, request: &Request) {
        for runner in self.runners {
            runner.abort(cx);
        }
        if let Some(door) = self.waiting {
            cx.shared.endpoints.give_up(door, request.id);
        }
        if let Some((_, door)) = self.starting {
            cx.shared.endpoints.leave(door);
        }
        if let Some((door, _)) = self.boarding {
            cx.shared.endpoints.leave(door);
            if let Route::Jump(hop) = request.route {
                cx.shared.notes.push_back((hop, Note::Leave(request.id)));
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Runner<K> {
    pub(super) fn abort<L: Links<Key = K>>(self, cx: &mut Context<'_, L>) {
        cx.shared.endpoints.leave(self.door);
        cx.shared.by_link.remove(&self.key);
        cx.links.abort(self.key);
    }
}
