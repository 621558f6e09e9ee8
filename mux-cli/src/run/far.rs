//! The requests of a run that the daemon carries out: the hub's far end. Decides what becomes of them when the daemon does
//! not want them or is gone; what the daemon asks, this run answers as it answers its own hub.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mux_core::{Key, Stream};
use mux_proto::Connection;
use mux_proto::body::GoodbyeCode;
use mux_proto::connection::{ChannelId, Event as Said};
use mux_proto::frame::NodeId;
use mux_ssh::Printable;

use super::net::Net;
use crate::daemon::call::{self, NoDaemon};
use crate::daemon::message::{Down, HUB, Messages, Order, Terms, Up};
use crate::daemon::place::Place;
use crate::daemon::{Life, codec};
use crate::hub::{
    Action, Answer, Event, Failure, Judgement, Level, Likeness, Outcome, Reason, Request, RequestId, Route,
    SshOptions, Stage, Status, StreamKind, Ticket, Transport,
};
use crate::plan::Sharing;

/// How far the link to the daemon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not said hello.
    Greeting,
    /// Requests may be handed over.
    Open(ChannelId),
    /// It has none of ours any more.
    Gone,
}

/// A request that was handed over and has not ended.
#[derive(Debug)]
struct UnderWay {
    stage: Stage,
    since: Instant,
    /// It began with nothing: the daemon had no connection for it.
    is_cold: bool,
    /// The host's key was accepted: from then on the command may be on its way.
    is_judged: bool,
    is_heard_of: bool,
}

/// The link to the daemon and what it has of ours.
#[derive(Debug)]
pub(super) struct Far {
    key: Key,
    phase: Phase,
    terms: Terms,
    messages: Messages,
    waiting: VecDeque<Request>,
    under_way: BTreeMap<RequestId, UnderWay>,
    shared: Option<(Arc<SshOptions>, Bytes)>,
    /// Something came over the channel, so that it was accepted.
    is_accepted: bool,
    /// Handed over and not yet known to be accepted.
    unaccepted: Vec<Request>,
    submitted: u32,
    /// Of how many nothing is left to do.
    idle: u32,
    left_running: Vec<RequestId>,
    waits: bool,
    actions: VecDeque<(Ticket, Action)>,
    events: VecDeque<Event>,
    /// To be carried out here instead.
    returned: VecDeque<Request>,
}

impl Far {
    /// The daemon, if there is one, or one is wanted; or what there is to be said about it.
    pub(super) fn reach(
        now: Instant,
        net: &mut Net,
        sharing: Sharing,
        terms: Terms,
    ) -> Result<Option<Self>, String> {
        let place = crate::daemon::place().map_err(|error| format!("socket: {error}"))?;
        let without = |error: NoDaemon| error.to_string();
        let stream = match (call::reach(&place), sharing.persist) {
            (Err(NoDaemon::None), Some(idle)) => {
                begin(&place, idle)?;
                call::reach(&place).map_err(without)?
            }
            (Err(NoDaemon::None), None) => return Ok(None),
            (reached, _) => reached.map_err(without)?,
        };
        let stream = Stream::Unix(mio::net::UnixStream::from_std(stream));
        let key = net
            .add_node(stream, Connection::new(now, call::config()))
            .map_err(|error| error.to_string())?;
        Ok(Some(Self {
            key,
            phase: Phase::Greeting,
            terms,
            messages: Messages::default(),
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            shared: None,
            is_accepted: false,
            unaccepted: Vec::new(),
            submitted: 0,
            idle: 0,
            left_running: Vec::new(),
            waits: false,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            returned: VecDeque::new(),
        }))
    }

    /// Whether the daemon can carry out such a request. Processes and agents belong to this run, and so does everything
    /// that is reached through them.
    pub(super) fn suits(request: &Request) -> bool {
        match (&request.transport, &request.route) {
            (Transport::Ssh(options), Route::Direct) => options.forward_agent.is_none(),
            (Transport::Ssh(_) | Transport::Local | Transport::OpenSsh(_), _) => false,
        }
    }

    pub(super) fn takes(&self, request: &Request) -> bool {
        self.phase != Phase::Gone && Self::suits(request)
    }

    pub(super) fn push(&mut self, request: Request) {
        self.waiting.push_back(request);
    }

    /// The next request that could be handed over.
    pub(super) fn next_waiting(&self) -> Option<&Request> {
        match self.phase {
            Phase::Open(_) => self.waiting.front(),
            Phase::Greeting | Phase::Gone => None,
        }
    }

    /// Hands it over.
    pub(super) fn submit(&mut self, now: Instant, like: Option<Likeness>) {
        let Some(mut request) = self.waiting.pop_front() else {
            return;
        };
        let Transport::Ssh(options) = &request.transport else {
            return self.returned.push_back(request);
        };
        let is_shared = self
            .shared
            .as_ref()
            .is_some_and(|(known, command)| Arc::ptr_eq(known, options) && *command == request.command);
        if !is_shared {
            let shared = (Arc::clone(options), request.command.clone());
            self.messages
                .say(&Up::Common(SshOptions::clone(options), shared.1.clone()));
            self.shared = Some(shared);
        }
        request.like = like;
        self.messages.say(&Up::Submit(Order::of(&request)));
        self.submitted += 1;
        let under_way = UnderWay {
            stage: Stage::Dns,
            since: now,
            is_cold: false,
            is_judged: false,
            is_heard_of: false,
        };
        self.under_way.insert(request.id, under_way);
        if !self.is_accepted {
            request.like = None;
            self.unaccepted.push(request);
        }
    }

    pub(super) fn owns(&self, request: RequestId) -> bool {
        self.under_way.contains_key(&request)
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        if let Answer::HostKey {
            judgement: Judgement::Accept | Judgement::Distrust,
            ..
        } = &answer
            && let Some(under_way) = self.under_way.get_mut(&ticket.request)
        {
            under_way.is_judged = true;
        }
        self.messages.say(&Up::Answer(ticket, answer));
    }

    pub(super) fn consume(&mut self, request: RequestId, stream: StreamKind, count: usize) {
        self.messages.say(&Up::Consume(request, stream, count));
    }

    pub(super) fn cancel(&mut self, request: RequestId, reason: Reason) {
        let at = self.waiting.iter().position(|waiting| waiting.id == request);
        if at.and_then(|at| self.waiting.remove(at)).is_some() {
            self.skip(request);
        } else if self.owns(request) {
            self.messages.say(&Up::Cancel(request, reason));
        }
    }

    pub(super) fn cancel_all(&mut self, reason: Reason) {
        self.skip_waiting();
        if !self.under_way.is_empty() {
            self.messages.say(&Up::CancelAll(reason));
        }
    }

    pub(super) fn hold(&mut self) {
        self.skip_waiting();
        if !self.under_way.is_empty() {
            self.messages.say(&Up::Hold);
        }
    }

    fn skip_waiting(&mut self) {
        for request in std::mem::take(&mut self.waiting) {
            self.skip(request.id);
        }
    }

    fn skip(&mut self, request: RequestId) {
        let outcome = Outcome::untried(Status::Skipped, None);
        self.events.push_back(Event::Finished { request, outcome });
    }

    pub(super) fn is_idle(&self) -> bool {
        let is_told = self.phase == Phase::Gone || self.idle == self.submitted;
        self.waiting.is_empty() && self.returned.is_empty() && self.under_way.is_empty() && is_told
    }

    /// Nothing goes on there before host keys were judged.
    pub(super) fn waits_for_judgements(&self) -> bool {
        self.waits
    }

    /// Nobody there has said anything yet.
    pub(super) fn queued(&self) -> usize {
        let silent = self.under_way.values().filter(|under_way| !under_way.is_heard_of);
        self.waiting.len() + silent.count()
    }

    pub(super) fn running(&self) -> impl Iterator<Item = (RequestId, Stage, Instant)> {
        let heard_of = self
            .under_way
            .iter()
            .filter(|(_, under_way)| under_way.is_heard_of);
        heard_of.map(|(id, under_way)| (*id, under_way.stage, under_way.since))
    }

    pub(super) fn left_running(&self) -> &[RequestId] {
        &self.left_running
    }

    pub(super) fn poll_action(&mut self) -> Option<(Ticket, Action)> {
        self.actions.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next request that has to be carried out here.
    pub(super) fn poll_returned(&mut self) -> Option<Request> {
        self.returned.pop_front()
    }

    /// Sends what there is to say.
    pub(super) fn flush(&mut self, net: &mut Net) {
        if let Phase::Open(channel) = self.phase
            && self.messages.has_output()
            && let Some(connection) = net.node(self.key)
            && self.messages.flush(connection, channel).is_err()
        {
            // The end of the channel, or of the link, follows as an event.
            log::debug!("the daemon takes nothing more");
        }
    }

    /// The run is over.
    pub(super) fn part(&mut self, net: &mut Net) {
        if let Some(connection) = net.node(self.key) {
            connection.goodbye(GoodbyeCode::Done, "");
        }
    }

    /// The daemon has said something. What there is to be said about it, if that is the end.
    pub(super) fn heard(&mut self, now: Instant, net: &mut Net, said: Said) -> Option<(Level, String)> {
        match said {
            Said::Hello(hello) => {
                let ours = call::config().software;
                if hello.software != ours {
                    let theirs = Printable::new(&hello.software);
                    return self.lose(&format!("it is {theirs}, this is {ours}; mux daemon restart"));
                }
                let connection = net.node(self.key)?;
                let terms = codec::encode(&self.terms);
                match connection.open(NodeId::NEIGHBOUR, HUB, terms.into()) {
                    Ok(channel) => self.phase = Phase::Open(channel),
                    Err(misuse) => return self.lose(&misuse.to_string()),
                }
            }
            Said::Data { channel, data, .. } => {
                if let Some(connection) = net.node(self.key) {
                    connection.consume(channel, data.len());
                }
                self.messages.take_in(&data);
                loop {
                    match self.messages.next() {
                        Ok(Some(down)) => self.told(now, down),
                        Ok(None) => return None,
                        Err(codec::Malformed) => return self.lose("it says what nobody understands"),
                    }
                }
            }
            Said::Reset(_, reset) => {
                let why = call::words(reset);
                return self.lose(&why);
            }
            Said::Result(..) => return self.lose("it has ended the run"),
            Said::Goodbye(goodbye) => return self.lose(&format!("it has ended: {}", goodbye.code)),
            Said::Writable(_) | Said::Finished(_) | Said::Opened { .. } => {}
            Said::Route(_) | Said::Log(_) | Said::Transit(_) => {}
        }
        None
    }

    fn told(&mut self, now: Instant, down: Down) {
        self.is_accepted = true;
        self.unaccepted.clear();
        match down {
            Down::Action(ticket, action) => {
                if let Some(under_way) = self.under_way.get_mut(&ticket.request) {
                    under_way.is_heard_of = true;
                    under_way.is_cold |= matches!(action, Action::Prepare);
                }
                self.actions.push_back((ticket, action));
            }
            Down::Event(event) => {
                match &event {
                    Event::Stage { request, stage } => {
                        if let Some(under_way) = self.under_way.get_mut(request) {
                            under_way.is_heard_of = true;
                            under_way.stage = *stage;
                            under_way.since = now;
                        }
                    }
                    Event::Finished { request, .. } => drop(self.under_way.remove(request)),
                    Event::Output { .. }
                    | Event::ViaOpenSsh { .. }
                    | Event::EnvRefused { .. }
                    | Event::Notice { .. } => {}
                }
                self.events.push_back(event);
            }
            Down::Idle(submitted, left_running) => {
                self.idle = submitted;
                self.left_running = left_running;
            }
            Down::Waits(waits) => self.waits = waits,
        }
    }

    /// The daemon is gone, or of no use. What it never began is done here, and what it may have done is said.
    pub(super) fn lose(&mut self, why: &str) -> Option<(Level, String)> {
        if self.phase == Phase::Gone {
            return None;
        }
        self.phase = Phase::Gone;
        self.waits = false;
        self.actions.clear();
        for request in std::mem::take(&mut self.unaccepted) {
            self.under_way.remove(&request.id);
            self.returned.push_back(request);
        }
        self.returned.extend(std::mem::take(&mut self.waiting));
        let lost = std::mem::take(&mut self.under_way);
        let is_loss = !lost.is_empty();
        for (request, under_way) in lost {
            let outcome = under_way.lost(why);
            self.events.push_back(Event::Finished { request, outcome });
        }
        let level = if is_loss { Level::Warning } else { Level::Verbose };
        Some((level, format!("without the daemon: {why}")))
    }
}

impl UnderWay {
    fn lost(&self, why: &str) -> Outcome {
        // A command goes along with the login at the earliest, and that follows the judgement of the host's key.
        let has_not_run = self.is_cold && !self.is_judged;
        let status = if has_not_run {
            Status::Unreachable
        } else {
            Status::Unknown
        };
        let consequence = if has_not_run {
            "nothing was run"
        } else {
            "the command may have run"
        };
        let failure = Failure::new(self.stage, format!("the daemon: {why}; {consequence}"));
        Outcome::untried(status, Some(failure))
    }
}

/// Starts a daemon that stays so long.
fn begin(place: &Place, idle: std::time::Duration) -> Result<(), String> {
    let life = Life {
        idle: Some(idle),
        detached: true,
    };
    crate::daemon::start(place, life).map(drop)
}
