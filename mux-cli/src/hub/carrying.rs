//! A job that is a jump host: who rides on its connection, whose time it costs, and what its end means to them. It moves no
//! byte and runs no command.

use std::hash::Hash;

use mux_ssh::client::{ChannelFailure, ChannelId, DirectTcpip};

use super::countdown::Countdown;
use super::hop::{Note, Rider, Role};
use super::job::Job;
use super::phase::Phase;
use super::shared::Context;
use super::{Failure, Links, RequestId, Status};

impl<K: Copy + Eq + Hash> Job<K> {
    pub(super) fn is_hop(&self) -> bool {
        matches!(self.role, Role::Hop(_))
    }

    fn riders(&mut self) -> &mut [Rider] {
        match &mut self.role {
            Role::Hop(riders) => &mut riders.list,
            Role::Command => &mut [],
        }
    }

    pub(super) fn take_along<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        request: RequestId,
        to: DirectTcpip,
    ) {
        let Role::Hop(riders) = &mut self.role else {
            return;
        };
        cx.shared.notes.push_back((request, Note::Clock(riders.clock)));
        riders.list.push(Rider {
            request,
            to,
            channel: None,
            rides: false,
        });
        self.ask_for_channels(cx);
    }

    /// Asks for the channels of those that have none, as soon as there is a connection: the client knows when such a
    /// request may leave.
    pub(super) fn ask_for_channels<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let (Role::Hop(riders), Phase::Session(session)) = (&mut self.role, &self.phase) else {
            return;
        };
        let Some(client) = cx.links.client(session.key) else {
            return;
        };
        for rider in riders.list.iter_mut().filter(|rider| rider.channel.is_none()) {
            rider.channel = Some(client.direct_tcpip(cx.now, rider.to.clone()));
        }
    }

    /// The server has made the connection that a rider waits for.
    pub(super) fn channel_open<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, channel: ChannelId) {
        let Phase::Session(session) = &self.phase else {
            return;
        };
        let carrier = session.key;
        if let Some(rider) = self.rider_on(channel) {
            rider.rides = true;
            let note = Note::Boarded { carrier, channel };
            cx.shared.notes.push_back((rider.request, note));
        }
    }

    /// The server has not made it.
    pub(super) fn channel_refused<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        channel: ChannelId,
        reason: ChannelFailure,
    ) {
        if reason == ChannelFailure::ConnectionLost {
            // The end of the link follows and says why.
            return;
        }
        if let Some(rider) = self.rider_on(channel) {
            let request = rider.request;
            cx.shared.notes.push_back((request, Note::Refused(reason)));
            self.channel_over(channel);
        }
    }

    /// A channel is gone; what was inside knows.
    pub(super) fn channel_over(&mut self, channel: ChannelId) {
        if let Role::Hop(riders) = &mut self.role {
            riders.list.retain(|rider| rider.channel != Some(channel));
        }
    }

    fn rider_on(&mut self, channel: ChannelId) -> Option<&mut Rider> {
        self.riders()
            .iter_mut()
            .find(|rider| rider.channel == Some(channel))
    }

    /// A rider has left, or never got on.
    pub(super) fn forget<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, request: RequestId) {
        let Role::Hop(riders) = &mut self.role else {
            return;
        };
        let mut channels = Vec::new();
        riders.list.retain(|rider| {
            let leaves = rider.request == request;
            // A link inside ends its channel by itself.
            channels.extend(rider.channel.filter(|_| leaves && !rider.rides));
            !leaves
        });
        self.with_client(cx, |client| {
            channels
                .into_iter()
                .for_each(|channel| client.close_channel(channel));
        });
    }

    /// Tells those that wait whether the time that passes is theirs: not while this host asks a person, logs in, or
    /// waits for something of ours.
    pub(super) fn tell_clock<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let runs = matches!(self.connect, Countdown::Running(_));
        let is_ready = cx
            .shared
            .hops
            .get(&self.request.id)
            .is_some_and(|hop| hop.is_ready);
        let Role::Hop(riders) = &mut self.role else {
            return;
        };
        let clock = runs || is_ready;
        if std::mem::replace(&mut riders.clock, clock) != clock {
            let waiting = riders.list.iter().filter(|rider| !rider.rides);
            let notes = waiting.map(|rider| (rider.request, Note::Clock(clock)));
            cx.shared.notes.extend(notes);
        }
    }

    /// The login is complete: channels are opened from now on.
    pub(super) fn hop_ready<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.login.stop(cx.now);
        if let Some(hop) = cx.shared.hops.get_mut(&self.request.id) {
            hop.is_ready = true;
        }
    }

    /// The connection is gone or is about to be: whoever waits, waits for the next one.
    pub(super) fn disembark<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Some(hop) = cx.shared.hops.get_mut(&self.request.id) {
            hop.is_ready = false;
        }
        for rider in self.riders().iter_mut().filter(|rider| !rider.rides) {
            rider.channel = None;
        }
    }

    /// A jump host has come to its end by itself: what that means to its riders.
    pub(super) fn strand<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        failure: Failure,
        was_ready: bool,
    ) {
        let name = self.request.host.clone();
        let failure = Failure {
            // Its name is the same for all behind it.
            general: None,
            ..failure.at_hop(&name)
        };
        let lost = failure.words();
        for rider in std::mem::take(&mut self.role).into_riders() {
            let note = match rider.rides {
                true => Note::Lost(lost.clone()),
                false => Note::HopFailed {
                    status,
                    failure: failure.clone(),
                    is_final: !was_ready,
                },
            };
            cx.shared.notes.push_back((rider.request, note));
        }
        if let Some(hop) = cx.shared.hops.get_mut(&self.request.id)
            && !was_ready
        {
            hop.over = Some((status, failure));
        }
    }

    /// Nobody needs this jump host any more.
    pub(super) fn retire<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.release(cx);
        self.ask(cx, super::Action::SigningOver);
    }
}
