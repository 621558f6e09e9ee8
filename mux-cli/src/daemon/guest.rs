//! A client of the daemon, and the hub that runs what it asked for. Decides what its messages do; whoever is gone has
//! everything stopped. Connections belong to the daemon as a whole: a guest borrows them through [`Lender`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::Key;
use mux_proto::body::{Reset, ResetCode};
use mux_proto::connection::ChannelId;
use mux_ssh::Client;

use super::codec::Malformed;
use super::message::{Down, Messages, Terms, Up};
use super::warm::Warm;
use crate::hub::ids::IdMap;
use crate::hub::{
    Event, Hub, Kept, Kill, Likeness, LinkEvent, Links, NoLink, Reason, Request, RequestId, SshOptions,
    Stage, StreamKind, say_goodbye,
};
use crate::run::net::Net;

/// Requests of one client: as many as a fleet has hosts that anybody has heard of, and a bound for a client gone wild.
const MAX_REQUESTS: u32 = 1_000_000;

/// What all guests share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) net: Net,
    pub(super) warm: Warm<Key>,
    /// Whose links are whose.
    pub(super) owners: IdMap<Key, Key>,
    /// Requests that ended, by how.
    pub(super) finished: u64,
    /// Requests for which there was a connection.
    pub(super) reused: u64,
}

/// The links of one guest.
struct Lender<'a> {
    common: &'a mut Common,
    guest: Key,
    fresh: bool,
    now: Instant,
}

/// One client.
#[derive(Debug)]
pub(super) struct Guest {
    /// The link to it.
    key: Key,
    channel: ChannelId,
    hub: Hub<Key>,
    messages: Messages,
    shared: Option<(Arc<SshOptions>, Bytes)>,
    /// What runs, as people call it.
    names: IdMap<RequestId, String>,
    submitted: u32,
    told_idle: u32,
    waits: bool,
    /// No connection is good enough that stood before.
    fresh: bool,
    /// Nobody listens any more.
    is_gone: bool,
}

impl Guest {
    pub(super) fn new(key: Key, channel: ChannelId, terms: Terms) -> Self {
        Self {
            key,
            channel,
            hub: Hub::new(terms.fanout, terms.expected.min(MAX_REQUESTS as usize)),
            messages: Messages::default(),
            shared: None,
            names: IdMap::default(),
            submitted: 0,
            told_idle: 0,
            waits: false,
            fresh: terms.fresh,
            is_gone: false,
        }
    }

    pub(super) fn channel(&self) -> ChannelId {
        self.channel
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_gone && self.hub.is_idle()
    }

    /// What runs: names, stages and since when.
    pub(super) fn running(&self) -> impl Iterator<Item = (&str, Stage, Instant, Option<Key>)> {
        let links: IdMap<RequestId, Key> = self.hub.links().collect();
        let running = self.hub.running().into_iter();
        running.map(move |(id, stage, since)| {
            let name = self.names.get(&id).map_or("", String::as_str);
            (name, stage, since, links.get(&id).copied())
        })
    }

    pub(super) fn queued(&self) -> usize {
        self.hub.queued()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.hub.poll_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, common: &mut Common) {
        let mut lender = common.lend(self.key, self.fresh, now);
        self.hub.handle_timeout(now, &mut lender);
    }

    pub(super) fn stood_still(&mut self, now: Instant, common: &mut Common, late: Duration) {
        let mut lender = common.lend(self.key, self.fresh, now);
        self.hub.stood_still(now, &mut lender, late);
    }

    pub(super) fn handle_link(&mut self, now: Instant, common: &mut Common, key: Key, event: LinkEvent) {
        let mut lender = common.lend(self.key, self.fresh, now);
        self.hub.handle_link(now, &mut lender, key, event);
    }

    /// The client is gone, or breaks its word: what it started is stopped.
    pub(super) fn leave(&mut self, now: Instant, common: &mut Common) {
        self.is_gone = true;
        self.stop(now, common);
    }

    /// Everything is stopped.
    pub(super) fn stop(&mut self, now: Instant, common: &mut Common) {
        let mut lender = common.lend(self.key, self.fresh, now);
        self.hub.cancel_all(now, &mut lender, Reason::Interrupted);
    }

    /// Bytes came from the client.
    pub(super) fn heard(&mut self, now: Instant, common: &mut Common, data: &Bytes) {
        if self.is_gone {
            return;
        }
        if let Some(connection) = common.net.node(self.key) {
            connection.consume(self.channel, data.len());
        }
        self.messages.take_in(data);
        loop {
            match self.messages.next() {
                Ok(Some(up)) => {
                    if self.obey(now, common, up).is_err() {
                        return self.refuse(now, common);
                    }
                }
                Ok(None) => return,
                Err(Malformed) => return self.refuse(now, common),
            }
        }
    }

    fn refuse(&mut self, now: Instant, common: &mut Common) {
        if let Some(connection) = common.net.node(self.key) {
            let reset = Reset::new(ResetCode::Malformed);
            // Nothing to reset: the channel has ended by itself.
            let _ = connection.reset(self.channel, &reset);
        }
        self.leave(now, common);
    }

    fn obey(&mut self, now: Instant, common: &mut Common, up: Up) -> Result<(), Malformed> {
        let mut lender = common.lend(self.key, self.fresh, now);
        match up {
            Up::Common(options, command) => self.shared = Some((Arc::new(options), command)),
            Up::Submit(order) => {
                let (options, command) = self.shared.clone().ok_or(Malformed)?;
                let request = order.into_request(options, command);
                let is_known = self.names.contains_key(&request.id);
                self.submitted += 1;
                if is_known || self.submitted > MAX_REQUESTS {
                    return Err(Malformed);
                }
                self.names.insert(request.id, name(&request));
                self.hub.submit(now, &mut lender, request);
            }
            Up::Answer(ticket, answer) => self.hub.answer(now, &mut lender, ticket, answer),
            Up::Consume(request, stream, count) => {
                self.hub.consume(now, &mut lender, request, stream, count);
            }
            Up::Cancel(request, reason) => self.hub.cancel(now, &mut lender, request, reason),
            Up::CancelAll(reason) => self.hub.cancel_all(now, &mut lender, reason),
            Up::Hold => self.hub.hold(now, &mut lender),
        }
        Ok(())
    }

    /// Tells the client what there is to tell.
    pub(super) fn settle(&mut self, common: &mut Common) {
        while let Some((ticket, action)) = self.hub.poll_action() {
            if !self.is_gone {
                self.messages.say(&Down::Action(ticket, action));
            }
        }
        while let Some(event) = self.hub.poll_event() {
            if let Event::Finished { request, .. } = &event {
                self.names.remove(request);
                common.finished += 1;
            }
            if !self.is_gone {
                self.messages.say(&Down::Event(event));
            }
        }
        if self.is_gone {
            return;
        }
        let waits = self.hub.waits_for_judgements();
        if std::mem::replace(&mut self.waits, waits) != waits {
            self.messages.say(&Down::Waits(waits));
        }
        if self.hub.is_idle() && self.told_idle != self.submitted {
            self.told_idle = self.submitted;
            let left = self.hub.left_running().to_vec();
            self.messages.say(&Down::Idle(self.submitted, left));
        }
        self.flush(common);
    }

    pub(super) fn flush(&mut self, common: &mut Common) {
        if let Some(connection) = common.net.node(self.key)
            && self.messages.flush(connection, self.channel).is_err()
        {
            // The end of the channel, or of the link, follows as an event.
            log::debug!("nobody takes the messages of {:?}", self.channel);
        }
    }
}

fn name(request: &Request) -> String {
    format!("{}@{}:{}", request.user, request.host, request.port)
}

impl Common {
    fn lend(&mut self, guest: Key, fresh: bool, now: Instant) -> Lender<'_> {
        Lender {
            common: self,
            guest,
            fresh,
            now,
        }
    }

    /// Ends connections.
    pub(super) fn close(&mut self, keys: &[Key]) {
        for key in keys {
            say_goodbye(&mut self.net, *key);
        }
    }
}

impl Lender<'_> {
    fn own(&mut self, key: Result<Key, NoLink>) -> Result<Key, NoLink> {
        if let Ok(key) = key {
            self.common.owners.insert(key, self.guest);
        }
        key
    }
}

impl Links for Lender<'_> {
    type Key = Key;

    fn connect(&mut self, to: SocketAddr, from: Option<SocketAddr>, client: Client) -> Result<Key, NoLink> {
        let key = self.common.net.connect(to, from, client);
        self.own(key)
    }

    fn ride(
        &mut self,
        carrier: Key,
        channel: mux_ssh::client::ChannelId,
        client: Client,
    ) -> Result<Key, NoLink> {
        let key = self.common.net.ride(carrier, channel, client);
        self.own(key)
    }

    fn proxy(&mut self, _: &str, _: Client) -> Result<Key, NoLink> {
        // Processes belong to the clients: they have the environment and the terminal.
        Err(NoLink::Io(std::io::ErrorKind::Unsupported))
    }

    fn spawn(&mut self, _: &Request) -> Result<Key, NoLink> {
        Err(NoLink::Io(std::io::ErrorKind::Unsupported))
    }

    fn client(&mut self, key: Key) -> Option<&mut Client> {
        self.common.net.client(key)
    }

    fn consume(&mut self, key: Key, stream: StreamKind, count: usize) {
        Links::consume(&mut self.common.net, key, stream, count);
    }

    fn forward_agent(&mut self, key: Key, channel: mux_ssh::client::ChannelId, socket: &str) {
        self.common.net.forward_agent(key, channel, socket);
    }

    fn kill(&mut self, key: Key, signal: Kill) {
        self.common.net.kill(key, signal);
    }

    fn local_room(&mut self, key: Key) -> usize {
        self.common.net.local_room(key)
    }

    fn local_write(&mut self, key: Key, data: Bytes) {
        self.common.net.local_write(key, data);
    }

    fn take_kept(&mut self, like: &Likeness) -> Option<Key> {
        if self.fresh {
            let replaced = self.common.warm.drain(|connection| connection.kept.like == *like);
            self.common.close(&replaced);
            return None;
        }
        let key = self.common.warm.take(self.now, like)?;
        self.common.owners.insert(key, self.guest);
        self.common.reused += 1;
        Some(key)
    }

    fn keep(&mut self, kept: Kept<Key>) -> bool {
        self.common.owners.remove(&kept.key);
        self.common.warm.keep(self.now, kept);
        true
    }

    fn abort(&mut self, key: Key) {
        self.common.owners.remove(&key);
        self.common.warm.closed(key);
        self.common.net.abort(key);
    }
}
