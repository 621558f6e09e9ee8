//! A network that exists only in memory, with a clock that moves only when nothing else can: a hub, its clients, and
//! embedded servers a given distance away. Decides nothing; every test says how its addresses behave.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use mux_cli::hub::{
    Action, Answer, Event, Hub, Judgement, KeyId, Kill, LinkEvent, Links, MissingStatus, NoLink, Offer,
    Outcome, Prepared, Request, RequestId, Route, SshOptions, StreamKind, Ticket, Transport, Wish,
};
use mux_core::LinkError;
use mux_proto::{Close, Protocol, SendQueue};
use mux_ssh::Client;
use mux_ssh::Secret;
use mux_ssh::algorithms::KeyType;
use mux_ssh::client::{ChannelId, Event as Said, Identity, Methods, Prompt, QuestionId};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::key_file::Seed;
use mux_ssh::server::{Authorized, Plan, ServerConfig};
use mux_ssh::transport::ServerMemory;

use super::children::Children;
use super::far::{Far, World};

/// From here to every server and back.
pub(crate) const RTT: Duration = Duration::from_millis(20);

/// How an address behaves.
#[derive(Clone)]
pub(crate) enum Behaviour {
    /// Nothing comes back.
    Dropping,
    /// The connection is refused after a round trip.
    Refusing,
    /// The connection stands and nothing is said on it.
    Mute,
    /// A server, and what it does with a command.
    Serving(Arc<ServerConfig>, Plan, Commands),
}

/// What a server does with a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commands {
    /// Prints it and ends with this status.
    Echo(u32),
    /// Prints so many bytes and ends well.
    Print(usize),
    /// Ends when it is told TERM.
    UntilTerm,
    /// Ignores TERM; a second command ends it.
    UntilSecond,
    /// Ends never.
    Forever,
    /// Ends without saying how.
    NoStatus,
    /// The connection breaks while it runs.
    Breaks,
}

/// What happened, and when.
pub(crate) type Log = Vec<(Duration, Event)>;

struct Link {
    address: SocketAddr,
    client: Client,
    server: Option<Far>,
    /// The link and the channel on it that carry this one.
    carrier: Option<(usize, ChannelId)>,
    /// What the carrier has brought and the client was not ready to see.
    unseen: usize,
    /// The carrier has brought the end.
    eof: bool,
    to_server: VecDeque<(Instant, Bytes)>,
    to_client: VecDeque<(Instant, Option<Bytes>)>,
    input: BytesMut,
    connected_at: Option<(Instant, Result<(), ErrorKind>)>,
    failed: Option<Result<(), LinkError<mux_ssh::Error>>>,
}

/// The links of a simulated network.
#[derive(Default)]
pub(crate) struct Network {
    now: Option<Instant>,
    behaviours: HashMap<SocketAddr, Behaviour>,
    links: BTreeMap<usize, Link>,
    next: usize,
    /// How many links there can be at once; those that are being closed count.
    pub(crate) most_links: Option<usize>,
    /// Every connection that was started.
    pub(crate) connects: Vec<(Duration, SocketAddr)>,
    /// Commands that servers were given, in order.
    pub(crate) commands: Vec<Bytes>,
    /// Connections that servers made for their clients.
    pub(crate) forwarded: Vec<SocketAddr>,
    /// Processes of the system's `ssh`.
    pub(crate) children: Children,
    start: Option<Instant>,
    open_by_address: HashMap<SocketAddr, usize>,
    /// The most unauthenticated connections that an address had at once.
    pub(crate) most_open: usize,
}

/// A hub in its network.
pub(crate) struct Sim {
    pub(crate) hub: Hub<usize>,
    pub(crate) net: Network,
    pub(crate) now: Instant,
    pub(crate) start: Instant,
    pub(crate) log: Log,
    /// Names and what they resolve to; an empty list never resolves.
    pub(crate) names: HashMap<String, Vec<SocketAddr>>,
    pub(crate) keys: Vec<Arc<PrivateKey>>,
    /// The first key is offered as one that is known to work.
    pub(crate) proven: bool,
    pub(crate) memory: Option<ServerMemory>,
    pub(crate) known_types: Vec<KeyType>,
    pub(crate) judgement: Judgement,
    /// What comes before it, one for each key that is shown.
    pub(crate) first_judgements: VecDeque<Judgement>,
    /// The types of the host keys that were shown.
    pub(crate) shown: Vec<KeyType>,
    /// Keys that somebody is to look at later.
    pub(crate) looked_at_later: Vec<(Ticket, QuestionId)>,
    /// Signatures are never given; tickets and questions that wait are here.
    pub(crate) agent_hangs: bool,
    pub(crate) waiting: Vec<Ticket>,
    /// What somebody was asked.
    pub(crate) prompts: Vec<(Ticket, QuestionId, Prompt)>,
    /// What somebody says, one after the other; nobody answers behind the last.
    pub(crate) prompt_answers: VecDeque<Result<&'static str, &'static str>>,
    /// Requests whose output nobody takes, and what waits to be taken.
    pub(crate) paused: Vec<u32>,
    untaken: Vec<(RequestId, StreamKind, usize)>,
    /// How requests log in.
    pub(crate) methods: Methods,
    /// What commands read, once they ask for it; none: nothing comes, and no end.
    pub(crate) input: Option<Vec<u8>>,
    /// Which attempts asked for how much from where, and whether they might start over.
    pub(crate) wishes: Vec<(Ticket, Wish)>,
    /// How far each request came.
    pub(crate) taken: Vec<(RequestId, u64, bool)>,
    /// What was to be remembered.
    pub(crate) remembered: Vec<ServerMemory>,
    pub(crate) forgotten: Vec<KeyId>,
}

pub(crate) fn key() -> Arc<PrivateKey> {
    let file = Seed::generate().unwrap().to_openssh().unwrap();
    Arc::new(PrivateKey::parse(file.as_bytes(), None).unwrap())
}

pub(crate) fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 22))
}

/// A server that lets everybody in.
pub(crate) fn server() -> ServerConfig {
    ServerConfig::new(Seed::generate().unwrap().host_key().unwrap(), Authorized::AnyKey)
}

/// A server that behaves.
pub(crate) fn good() -> Behaviour {
    Behaviour::Serving(Arc::new(server()), Plan::new(), Commands::Echo(0))
}

impl Sim {
    pub(crate) fn new(fanout: usize, expected: usize) -> Self {
        let now = Instant::now();
        Self {
            hub: Hub::new(fanout, expected),
            net: Network {
                start: Some(now),
                now: Some(now),
                ..Network::default()
            },
            now,
            start: now,
            log: Vec::new(),
            names: HashMap::new(),
            keys: vec![key()],
            proven: true,
            memory: None,
            known_types: Vec::new(),
            judgement: Judgement::Accept,
            first_judgements: VecDeque::new(),
            shown: Vec::new(),
            looked_at_later: Vec::new(),
            agent_hangs: false,
            waiting: Vec::new(),
            prompts: Vec::new(),
            prompt_answers: VecDeque::new(),
            paused: Vec::new(),
            untaken: Vec::new(),
            methods: Methods::default(),
            input: None,
            wishes: Vec::new(),
            taken: Vec::new(),
            remembered: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// Puts `behaviour` at an address and asks for a command there.
    pub(crate) fn host(&mut self, id: u32, behaviour: Behaviour) {
        let address = address(u8::try_from(id).unwrap());
        self.net.behaviours.insert(address, behaviour);
        let request = self.request(id, &address.ip().to_string());
        self.submit(request);
    }

    pub(crate) fn behave(&mut self, address: SocketAddr, behaviour: Behaviour) {
        self.net.behaviours.insert(address, behaviour);
    }

    pub(crate) fn request(&self, id: u32, address: &str) -> Request {
        Request {
            id: RequestId(id),
            host: format!("host{id}"),
            address: address.to_owned(),
            port: 22,
            user: "me".to_owned(),
            transport: Transport::Ssh(Arc::new(SshOptions {
                methods: self.methods.clone(),
                ..SshOptions::default()
            })),
            route: Route::Direct,
            command: Bytes::from_static(b"hostname"),
            env: Vec::new(),
            env_by_habit: Vec::new(),
            stdin: false,
            retries: 0,
            missing_status: MissingStatus::Unknown,
            connect_timeout: Duration::from_secs(10),
            login_timeout: Duration::from_secs(60),
            command_timeout: None,
            like: None,
        }
    }

    pub(crate) fn submit(&mut self, request: Request) {
        self.hub.submit(self.now, &mut self.net, request);
        self.settle();
    }

    /// Runs until nothing more happens, or until `limit` has passed.
    pub(crate) fn run_for(&mut self, limit: Duration) {
        let end = self.now + limit;
        loop {
            self.settle();
            let Some(next) = self.next().filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            self.net.now = Some(self.now);
            self.hub.handle_timeout(self.now, &mut self.net);
            self.step();
        }
        if self.hub.is_idle() {
            return;
        }
        self.now = end;
        self.net.now = Some(end);
    }

    /// Time goes by and nobody looks.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.net.now = Some(self.now);
    }

    /// Judges all keys that somebody was to look at later.
    pub(crate) fn look_now(&mut self, judgement: impl Fn(u32) -> Judgement) {
        for (ticket, question) in std::mem::take(&mut self.looked_at_later) {
            let judgement = judgement(ticket.request.0);
            let answer = Answer::HostKey { question, judgement };
            self.hub.answer(self.now, &mut self.net, ticket, answer);
        }
    }

    /// How many connections there are.
    pub(crate) fn connections(&self) -> usize {
        self.net.links.len()
    }

    /// Runs until every request has ended.
    pub(crate) fn run(&mut self) {
        self.run_for(Duration::from_secs(3600));
        assert!(self.hub.is_idle(), "still running: {:?}", self.hub.running());
    }

    pub(crate) fn outcome(&self, id: u32) -> &Outcome {
        self.finished(id).1
    }

    /// When a request ended, and how.
    pub(crate) fn finished(&self, id: u32) -> (Duration, &Outcome) {
        let ends = self.log.iter().filter_map(|(at, event)| match event {
            Event::Finished { request, outcome } if request.0 == id => Some((*at, outcome)),
            _ => None,
        });
        let ends: Vec<_> = ends.collect();
        assert_eq!(
            ends.len(),
            1,
            "request {id} must end exactly once: {:?}",
            self.log
        );
        ends[0]
    }

    pub(crate) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.hub.answer(self.now, &mut self.net, ticket, answer);
        self.settle();
    }

    fn next(&self) -> Option<Instant> {
        let links = self.net.links.values().flat_map(Link::due);
        let children = self.net.children.due();
        links.chain(children).chain(self.hub.poll_timeout()).min()
    }

    fn settle(&mut self) {
        loop {
            while let Some((ticket, action)) = self.hub.poll_action() {
                self.act(ticket, action);
            }
            while let Some(event) = self.hub.poll_event() {
                if let Event::Output {
                    request,
                    stream,
                    data,
                } = &event
                {
                    match self.paused.contains(&request.0) {
                        true => self.untaken.push((*request, *stream, data.len())),
                        false => self
                            .hub
                            .consume(self.now, &mut self.net, *request, *stream, data.len()),
                    }
                }
                self.log.push((self.now - self.start, event));
            }
            let Some((key, event)) = self.net.poll() else {
                break;
            };
            self.hub.handle_link(self.now, &mut self.net, key, event);
        }
    }

    /// All output is taken from now on, that which waits first.
    pub(crate) fn take_all(&mut self) {
        self.paused.clear();
        for (request, stream, count) in std::mem::take(&mut self.untaken) {
            self.hub.consume(self.now, &mut self.net, request, stream, count);
        }
        self.settle();
    }

    /// How much a request has printed.
    pub(crate) fn printed(&self, id: u32) -> usize {
        let printed = self.log.iter().filter_map(|(_, event)| match event {
            Event::Output { request, data, .. } if request.0 == id => Some(data.len()),
            _ => None,
        });
        printed.sum()
    }

    /// Somebody answers the last question at last.
    pub(crate) fn answer_prompt(&mut self, said: &'static str) {
        let (ticket, question, _) = self.prompts.last().unwrap().clone();
        for answer in [Answer::Asking(false), prompted(question, Ok(said))] {
            self.hub.answer(self.now, &mut self.net, ticket, answer);
        }
        self.settle();
    }

    fn act(&mut self, ticket: Ticket, action: Action) {
        let answer = match action {
            Action::Prepare => Answer::Prepared(self.prepared()),
            Action::Resolve { host, .. } => match self.names.get(&host) {
                Some(addresses) if addresses.is_empty() => return,
                Some(addresses) => Answer::Resolved(Ok(addresses.clone())),
                None => Answer::Resolved(Err("Name or service not known".to_owned())),
            },
            Action::JudgeHostKey { question, key, .. } => {
                self.shown.push(key.key_type());
                let first = self.first_judgements.pop_front();
                let judgement = first.unwrap_or_else(|| self.judgement.clone());
                if judgement == Judgement::Later {
                    self.looked_at_later.push((ticket, question));
                }
                Answer::HostKey { question, judgement }
            }
            Action::Sign { .. } if self.agent_hangs => return self.waiting.push(ticket),
            Action::Sign {
                question,
                key,
                algorithm,
                data,
                ..
            } => {
                let key = &self.keys[usize::try_from(key.0).unwrap()];
                Answer::Signed {
                    question,
                    signature: key.sign(algorithm, &data).map_err(|e| e.to_string()),
                }
            }
            Action::Prompt { question, prompt } => {
                self.prompts.push((ticket, question, prompt));
                match self.prompt_answers.pop_front() {
                    Some(said) => prompted(question, said),
                    None => Answer::Asking(true),
                }
            }
            Action::LookAtHostKeys { .. } | Action::KeepHostKeys { .. } => return,
            Action::SigningOver | Action::RememberKey(_) => return,
            Action::OtherWay => Answer::OtherWay(None),
            Action::Feed(wish) => {
                self.wishes.push((ticket, wish));
                let place = usize::try_from(wish.position).unwrap();
                let Some(input) = self.input.as_ref().map(|input| &input[place..]) else {
                    return;
                };
                Answer::Fed(Bytes::copy_from_slice(&input[..input.len().min(wish.room)]))
            }
            Action::FeedOver { taken, whole } => return self.taken.push((ticket.request, taken, whole)),
            Action::Remember(memory) => return self.remembered.push(memory),
            Action::ForgetKey(key) => return self.forgotten.push(key),
        };
        self.hub.answer(self.now, &mut self.net, ticket, answer);
    }

    fn prepared(&self) -> Prepared {
        let keys = (0..).zip(&self.keys).map(|(index, key)| Offer {
            identity: Identity {
                key: key.public().clone(),
                certificate: None,
                proven: self.proven && index == 0,
                hardware: false,
            },
            key: KeyId(index),
            label: format!("key{index}").into(),
        });
        Prepared {
            keys: keys.collect(),
            memory: self.memory.clone(),
            known_host_key_types: self.known_types.clone(),
            known_authority: false,
            skipped: Vec::new(),
        }
    }

    /// Moves what is due on every link.
    fn step(&mut self) {
        let keys: Vec<usize> = self.net.links.keys().copied().collect();
        for key in keys {
            if let Some((connected, result)) = self.net.arrive(key) {
                let event = match result {
                    Ok(()) => LinkEvent::Connected,
                    Err(kind) => LinkEvent::Closed(Err(LinkError::Io(kind))),
                };
                self.hub.handle_link(self.now, &mut self.net, connected, event);
            }
            self.settle();
            self.net.serve(key);
            self.settle();
        }
    }
}

impl Link {
    fn due(&self) -> Option<Instant> {
        let connected = self.connected_at.as_ref().map(|(at, _)| *at);
        let server = self.to_server.front().map(|(at, _)| *at);
        let client = self.to_client.front().map(|(at, _)| *at);
        let timeout = if connected.is_none() {
            self.client.poll_timeout()
        } else {
            None
        };
        [connected, server, client, timeout].into_iter().flatten().min()
    }
}

impl Network {
    fn now(&self) -> Instant {
        self.now.unwrap()
    }

    /// The connection of a link stands or has failed.
    fn arrive(&mut self, key: usize) -> Option<(usize, Result<(), ErrorKind>)> {
        let now = self.now();
        let link = self.links.get_mut(&key)?;
        let (_, result) = link.connected_at.take_if(|(at, _)| *at <= now)?;
        let address = link.address;
        match result {
            Err(_) => {
                self.links.remove(&key);
            }
            Ok(()) => {
                let open = self.open_by_address.entry(address).or_default();
                *open += 1;
                self.most_open = self.most_open.max(*open);
            }
        }
        Some((key, result))
    }

    /// Hands over what has arrived at both ends, and sends what both ends want to say.
    fn serve(&mut self, key: usize) {
        let now = self.now();
        let Some(link) = self.links.get_mut(&key) else {
            return;
        };
        if link.connected_at.is_some() || link.failed.is_some() {
            return;
        }
        let mut arrived = BytesMut::new();
        while let Some((_, data)) = link.to_server.pop_front_if(|(at, _)| *at <= now) {
            arrived.extend_from_slice(&data);
        }
        let mut authenticated = false;
        if let Some(far) = &mut link.server {
            far.input.extend_from_slice(&arrived);
            authenticated = far.drive(
                now,
                &mut World {
                    behaviours: &self.behaviours,
                    commands: &mut self.commands,
                    forwarded: &mut self.forwarded,
                },
            );
            let sent = transmit(&mut far.server, now);
            let at = now + RTT / 2;
            link.to_client
                .extend((!sent.is_empty()).then_some((at, Some(sent))));
            if far.server.poll_close() == Some(Close::Both) || far.breaks() {
                link.to_client.push_back((at, None));
                link.server = None;
            }
        }
        if authenticated {
            *self.open_by_address.get_mut(&link.address).unwrap() -= 1;
        }
        let mut result = Ok(());
        while let Some((_, data)) = link.to_client.pop_front_if(|(at, _)| *at <= now) {
            match data {
                Some(data) => {
                    link.input.extend_from_slice(&data);
                    result = result.and(read(&mut link.client, now, &mut link.input));
                }
                None => result = result.and_then(|()| link.client.handle_eof(now)),
            }
        }
        if link.client.poll_timeout().is_some_and(|at| at <= now) {
            result = result.and_then(|()| link.client.handle_timeout(now));
        }
        if let Err(error) = result {
            link.failed = Some(Err(LinkError::Protocol(error)));
        }
    }

    /// The next thing that a client says; sends what clients want to send once they have nothing more to say.
    fn poll(&mut self) -> Option<(usize, LinkEvent)> {
        let now = self.now();
        if let Some(said) = self.children.poll(now) {
            return Some(said);
        }
        while let Some((key, said)) = self.said() {
            if let Some(said) = self.relay(key, said) {
                return Some((key, LinkEvent::Client(said)));
            }
        }
        let ended = self
            .links
            .iter_mut()
            .find_map(|(key, link)| Some((*key, link.failed.take()?)));
        if let Some((key, result)) = ended {
            self.remove(key);
            return Some((key, LinkEvent::Closed(result)));
        }
        let mut closed = None;
        let mut carried = Vec::new();
        let mut consumed = Vec::new();
        for (key, link) in &mut self.links {
            if link.connected_at.is_some() {
                continue;
            }
            let mut input = std::mem::take(&mut link.input);
            let mut result = match input.is_empty() {
                true => Ok(()),
                false => read(&mut link.client, now, &mut input),
            };
            // What a link inside does not want yet stays in the window of the channel that carries it.
            let unseen = match link.client.wants_input() {
                true => 0,
                false => input.len().min(link.unseen),
            };
            let seen = std::mem::replace(&mut link.unseen, unseen) - unseen;
            consumed.extend(link.carrier.map(|carrier| (carrier, seen)));
            if std::mem::take(&mut link.eof) {
                result = result.and_then(|()| link.client.handle_eof(now));
            }
            if let Err(error) = result {
                link.failed = Some(Err(LinkError::Protocol(error)));
            }
            link.input = input;
            let sent = transmit(&mut link.client, now);
            match link.carrier {
                Some(carrier) => carried.extend((!sent.is_empty()).then_some((carrier, sent))),
                None => link
                    .to_server
                    .extend((!sent.is_empty()).then_some((now + RTT / 2, sent))),
            }
            if link.client.poll_close() == Some(Close::Both) && link.failed.is_none() {
                closed = Some(*key);
            }
        }
        consumed.retain(|(_, count)| *count > 0);
        let any_carried = !carried.is_empty() || !consumed.is_empty();
        for ((carrier, channel), count) in consumed {
            if let Some(link) = self.links.get_mut(&carrier) {
                link.client
                    .consume(channel, mux_ssh::client::StreamKind::Stdout, count);
            }
        }
        for ((carrier, channel), sent) in carried {
            if let Some(link) = self.links.get_mut(&carrier) {
                // A channel that is gone takes nothing.
                let _ = link.client.write_stdin(channel, sent);
            }
        }
        if let Some(key) = closed {
            self.remove(key);
            return Some((key, LinkEvent::Closed(Ok(()))));
        }
        let waits = |link: &Link| link.failed.is_some();
        if any_carried || self.links.values().any(waits) {
            self.poll()
        } else {
            None
        }
    }
}

impl Network {
    /// The connections to this address break.
    pub(crate) fn cut(&mut self, address: SocketAddr) {
        let now = self.now();
        let there = |link: &&mut Link| link.address == address && link.carrier.is_none();
        for link in self.links.values_mut().filter(there) {
            link.server = None;
            link.to_client.push_back((now, None));
        }
    }

    /// The servers at this address say nothing any more, and nobody hears why.
    pub(crate) fn mute(&mut self, address: SocketAddr) {
        let there = |link: &&mut Link| link.address == address && link.carrier.is_none();
        for link in self.links.values_mut().filter(there) {
            link.server = None;
        }
    }

    /// Links that there are.
    pub(crate) fn open(&self) -> usize {
        self.links.len()
    }

    /// The next thing that a client says.
    fn said(&mut self) -> Option<(usize, Said)> {
        let mut connected = self
            .links
            .iter_mut()
            .filter(|(_, link)| link.connected_at.is_none());
        connected.find_map(|(key, link)| Some((*key, link.client.poll_event()?)))
    }

    /// What is for a link inside a channel goes there.
    fn relay(&mut self, key: usize, said: Said) -> Option<Said> {
        let channel = match &said {
            Said::Output { channel, .. }
            | Said::Eof { channel }
            | Said::ChannelClosed { channel }
            | Said::ChannelFailed { channel, .. } => *channel,
            _ => return Some(said),
        };
        let mut links = self.links.values_mut();
        let Some(rider) = links.find(|link| link.carrier == Some((key, channel))) else {
            return Some(said);
        };
        match said {
            Said::Output { data, .. } => {
                rider.input.extend_from_slice(&data);
                rider.unseen += data.len();
                None
            }
            Said::Eof { .. } => {
                rider.eof = true;
                None
            }
            said => {
                rider.eof = true;
                rider.carrier = Some((usize::MAX, channel));
                Some(said)
            }
        }
    }

    /// A link is gone, and with it its channel and those that rode on it.
    fn remove(&mut self, key: usize) {
        let Some(link) = self.links.remove(&key) else {
            return;
        };
        if let Some((carrier, channel)) = link.carrier
            && let Some(carrier) = self.links.get_mut(&carrier)
        {
            carrier.client.close_channel(channel);
        }
        for link in self.links.values_mut() {
            link.eof |= link.carrier.is_some_and(|(carrier, _)| carrier == key);
        }
    }
}

pub(crate) fn drive<P: Protocol>(end: &mut P, now: Instant, input: &mut BytesMut) {
    let _ = read(end, now, input);
    if end.poll_timeout().is_some_and(|at| at <= now) {
        let _ = end.handle_timeout(now);
    }
}

/// As the loop does it: until nothing is consumed any more.
fn read<P: Protocol>(end: &mut P, now: Instant, input: &mut BytesMut) -> Result<(), P::Error> {
    while end.wants_input() && !input.is_empty() {
        let before = input.len();
        end.handle_input(now, input)?;
        if input.len() == before {
            break;
        }
    }
    Ok(())
}

pub(crate) fn transmit<P: Protocol>(end: &mut P, now: Instant) -> Bytes {
    let mut all = BytesMut::new();
    loop {
        let mut queue = SendQueue::new();
        end.poll_transmit(now, &mut queue);
        if queue.is_empty() {
            return all.freeze();
        }
        while !queue.is_empty() {
            all.extend_from_slice(&queue.take(usize::MAX));
        }
    }
}

impl Links for Network {
    type Key = usize;

    fn connect(
        &mut self,
        to: SocketAddr,
        _from: Option<SocketAddr>,
        client: Client,
    ) -> Result<usize, NoLink> {
        if self.links.len() >= self.most_links.unwrap_or(usize::MAX) {
            return Err(NoLink::Descriptors);
        }
        let now = self.now();
        self.connects.push((now - self.start.unwrap(), to));
        let behaviour = self.behaviours.get(&to).cloned().unwrap_or(Behaviour::Dropping);
        let connected_at = match behaviour {
            Behaviour::Dropping => (now + Duration::from_secs(100_000), Err(ErrorKind::TimedOut)),
            Behaviour::Refusing => (now + RTT, Err(ErrorKind::ConnectionRefused)),
            Behaviour::Mute | Behaviour::Serving(..) => (now + RTT, Ok(())),
        };
        let server = match behaviour {
            Behaviour::Serving(config, plan, commands) => Some(Far::new(config, plan, commands)),
            Behaviour::Dropping | Behaviour::Refusing | Behaviour::Mute => None,
        };
        let key = self.next;
        self.next += 1;
        let link = Link {
            address: to,
            client,
            server,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            input: BytesMut::new(),
            carrier: None,
            unseen: 0,
            eof: false,
            connected_at: Some(connected_at),
            failed: None,
        };
        self.links.insert(key, link);
        Ok(key)
    }

    fn forward_agent(&mut self, _key: usize, _channel: mux_ssh::client::ChannelId, _socket: &str) {}
    fn ride(&mut self, carrier: usize, channel: ChannelId, client: Client) -> Result<usize, NoLink> {
        let key = self.next;
        self.next += 1;
        let link = Link {
            address: address(0),
            client,
            server: None,
            carrier: Some((carrier, channel)),
            unseen: 0,
            eof: false,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            input: BytesMut::new(),
            connected_at: None,
            failed: None,
        };
        self.links.insert(key, link);
        Ok(key)
    }

    fn proxy(&mut self, _command: &str, _client: Client) -> Result<usize, NoLink> {
        Err(NoLink::Io(ErrorKind::Unsupported))
    }

    fn spawn(&mut self, request: &Request) -> Result<usize, NoLink> {
        let (now, key) = (self.now(), self.next);
        self.next += 1;
        self.children.spawn(now, key, request).map(|()| key)
    }

    fn local_room(&mut self, _key: usize) -> usize {
        0
    }

    fn local_write(&mut self, _key: usize, _data: Bytes) {}

    fn client(&mut self, key: usize) -> Option<&mut Client> {
        self.links.get_mut(&key).map(|link| &mut link.client)
    }

    fn consume(&mut self, _key: usize, _stream: StreamKind, _count: usize) {}

    fn kill(&mut self, key: usize, signal: Kill) {
        self.children.kill(self.now(), key, signal);
    }

    fn abort(&mut self, key: usize) {
        self.children.abort(key);
        self.remove(key);
    }
}

/// One answer, or why there is none.
fn prompted(question: QuestionId, said: Result<&str, &str>) -> Answer {
    let answers = said.map(|text| vec![Secret::from(text.to_owned())]);
    Answer::Prompted {
        question,
        answers: answers.map_err(ToOwned::to_owned),
    }
}
