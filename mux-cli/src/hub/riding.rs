//! A job that is reached through a jump host: its way onto that, and what it means if there is none. What it does once its
//! connection stands is as for any other.

use std::hash::Hash;

use mux_ssh::client::{ChannelFailure, ChannelId, DirectTcpip};

use super::happening::Kind;
use super::hop::Note;
use super::job::Job;
use super::pace::Door;
use super::phase::Phase;
use super::shared::Context;
use super::{Failure, Links, Route, Stage, Status, outcome};

impl<K: Copy + Eq + Hash> Job<K> {
    /// Asks the jump host for a channel.
    pub(super) fn ask_for_ride<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, door: Door) {
        let (Phase::Connecting(race), Route::Jump(hop)) = (&mut self.phase, &self.request.route) else {
            return;
        };
        race.boarding = Some((door, cx.now));
        let to = DirectTcpip {
            host: self.request.address.clone(),
            port: self.request.port,
        };
        let note = Note::Board(self.request.id, to);
        cx.shared.notes.push_back((*hop, note));
    }

    pub(super) fn clock<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, on: bool) {
        if matches!(&self.phase, Phase::Connecting(race) if race.boarding.is_some()) {
            match on {
                true => self.connect.start(cx.now),
                false => self.connect.stop(cx.now),
            }
        }
    }

    /// The channel is open: the connection begins.
    pub(super) fn boarded<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        carrier: K,
        channel: ChannelId,
    ) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let Some((door, since)) = race.boarding.take() else {
            return;
        };
        let (client, command) = self.client(cx);
        self.tries += 1;
        match cx.links.ride(carrier, channel, client) {
            Ok(key) => {
                self.flight.note(cx.now, Kind::Ride.alone());
                cx.shared.by_link.insert(key, self.request.id);
                self.connect.start(cx.now);
                self.establish(cx, key, door, command, since);
            }
            Err(why) => {
                cx.shared.endpoints.leave(door);
                let failure = Failure::new(Stage::Tcp, why.to_string());
                self.fail_or_retry(cx, Status::Unreachable, failure);
            }
        }
    }

    pub(super) fn not_boarded<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, reason: ChannelFailure) {
        let Phase::Connecting(race) = &mut self.phase else {
            return;
        };
        let Some((door, _)) = race.boarding.take() else {
            return;
        };
        cx.shared.endpoints.leave(door);
        self.tries += 1;
        let failure = outcome::not_forwarded(&self.request, &self.carrier(cx), reason);
        self.fail_or_retry(cx, Status::Unreachable, failure);
    }

    pub(super) fn hop_failed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        failure: Failure,
        is_final: bool,
    ) {
        if !matches!(&self.phase, Phase::Connecting(race) if race.boarding.is_some()) {
            return;
        }
        match is_final {
            // The jump host has had its retries.
            true => self.finish(cx, status, Some(failure)),
            false => self.fail_or_retry(cx, status, failure),
        }
    }

    /// The name of the jump host right before this one.
    fn carrier<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> String {
        let hop = match self.request.route {
            Route::Jump(hop) => cx.shared.hops.get(&hop),
            Route::Direct | Route::Command(_) => None,
        };
        hop.map(|hop| hop.request.host.clone()).unwrap_or_default()
    }

    /// What it means that time is over while the jump host has not come as far as to open channels.
    pub(super) fn late_hop<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> Option<Failure> {
        let (Phase::Connecting(race), Route::Jump(hop)) = (&self.phase, self.request.route.clone()) else {
            return None;
        };
        let mut hop = cx.shared.hops.get(&hop).filter(|_| race.boarding.is_some())?;
        if hop.is_ready {
            return None;
        }
        // It may be waiting for another one itself.
        while hop.stage == Stage::Tcp
            && let Route::Jump(next) = hop.request.route
            && let Some(next) = cx.shared.hops.get(&next).filter(|next| !next.is_ready)
        {
            hop = next;
        }
        let failure = outcome::hop_too_late(hop.stage, self.request.connect_timeout);
        Some(failure.at_hop(&hop.request.host))
    }
}
