//! Agents: which keys they hold, and one socket for each connection that signs with one. Decides how many sockets are
//! open at once; when an agent has taken too long is the hub's to say.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_core::Key;
use mux_ssh::agent::{AgentEvent, AgentIdentity, AgentRequest, Keep};
use mux_ssh::algorithms::SignatureAlgorithm;
use mux_ssh::client::{QuestionId, SessionBinding};
use mux_ssh::keys::PrivateKey;

use super::net::Net;
use crate::hub::{Answer, KeyId, Ticket};

/// Sockets at once: agents fall over near a thousand, and sixteen already keep one busy.
const MAX_SOCKETS: usize = 16;

/// Bytes of a socket's path: what `sun_path` has room for, less the zero at its end (108 on Linux, 104 on macOS).
const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// An agent that has not listed its keys by then is left out: nobody is asked for a list, so nothing but a broken
/// agent takes that long, also one forwarded around the world.
const LISTING: Duration = Duration::from_secs(5);

/// The keys of an agent, or why there are none.
pub(crate) type Held = Result<Vec<AgentIdentity>, String>;

/// What an agent holds.
#[derive(Clone, Debug)]
pub(crate) enum Listing {
    /// Being asked.
    Pending,
    /// It has answered, or never will.
    Known(Arc<Held>),
}

/// A signature that is wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) ticket: Ticket,
    pub(crate) question: QuestionId,
    pub(crate) socket: Arc<str>,
    /// What the agent knows the key by.
    pub(crate) key: Bytes,
    /// Somebody has to touch something first: no deadline runs meanwhile.
    pub(crate) touch: bool,
    pub(crate) algorithm: SignatureAlgorithm,
    pub(crate) data: Bytes,
    pub(crate) binding: SessionBinding,
}

/// What a socket is for.
#[derive(Debug)]
enum Use {
    Listing(Arc<str>),
    /// It is given this key.
    Adding(Arc<str>),
    Signing {
        ticket: Ticket,
        question: Option<Asked>,
        socket: Arc<str>,
    },
}

/// A question of the client that the agent is answering.
#[derive(Clone, Copy, Debug)]
struct Asked {
    question: QuestionId,
    touch: bool,
}

/// All agents of a run.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    listings: HashMap<Arc<str>, (Listing, Instant)>,
    links: HashMap<Key, Use>,
    by_ticket: HashMap<Ticket, Key>,
    queue: VecDeque<Wanted>,
    answers: Vec<(Ticket, Answer)>,
    listed: bool,
    given: HashSet<(Arc<str>, KeyId)>,
    remarks: Vec<String>,
    warnings: Vec<String>,
}

impl Agents {
    /// What the agent behind `socket` holds; asks it at the first call.
    pub(crate) fn listing(&mut self, now: Instant, net: &mut Net, socket: &Arc<str>) -> Listing {
        if let Some((listing, _)) = self.listings.get(socket) {
            return listing.clone();
        }
        let listing = match net.connect_agent(Path::new(&**socket)) {
            Ok(key) => {
                if let Some(agent) = net.agent(key) {
                    agent.request_identities();
                }
                self.links.insert(key, Use::Listing(Arc::clone(socket)));
                Listing::Pending
            }
            Err(error) => failed(socket, error.kind()),
        };
        self.listings
            .insert(Arc::clone(socket), (listing.clone(), now + LISTING));
        listing
    }

    /// Whether a listing has become known since the last call: those who wait for one may ask again.
    pub(crate) fn take_listed(&mut self) -> bool {
        std::mem::take(&mut self.listed)
    }

    /// Asks for a signature; the answer comes with [`Self::take_answers`].
    pub(crate) fn sign(&mut self, net: &mut Net, wanted: Wanted) {
        self.queue.push_back(wanted);
        self.fill(net);
    }

    /// Gives the agent a key that was opened here, once a run and unless it has it.
    pub(crate) fn give(
        &mut self,
        net: &mut Net,
        socket: &Arc<str>,
        (key, label): (KeyId, &Arc<str>),
        private: &PrivateKey,
        keep: Keep,
    ) {
        let has_it = match self.listings.get(socket) {
            Some((Listing::Known(held), _)) => match &**held {
                Ok(identities) => identities
                    .iter()
                    .any(|held| held.blob() == private.public().blob()),
                // What is wrong with it has been said.
                Err(_) => true,
            },
            Some((Listing::Pending, _)) | None => false,
        };
        if has_it || !self.given.insert((Arc::clone(socket), key)) {
            return;
        }
        let comment = match private.comment() {
            "" => label,
            comment => comment,
        };
        let given = net.connect_agent(Path::new(&**socket)).and_then(|link| {
            self.links.insert(link, Use::Adding(Arc::clone(label)));
            let agent = net.agent(link).ok_or(ErrorKind::NotConnected)?;
            agent.add(private, comment, keep).map_err(io::Error::other)
        });
        if let Err(error) = given {
            let why = words(socket, error.kind());
            self.remarks
                .push(format!("{label} not added to the agent: {why}"));
        }
    }

    /// What is said with `-v`, since the last call.
    pub(crate) fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// What is said in any case, since the last call.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// This attempt signs no more.
    pub(crate) fn over(&mut self, net: &mut Net, ticket: Ticket) {
        self.queue.retain(|wanted| wanted.ticket != ticket);
        if let Some(key) = self.by_ticket.remove(&ticket) {
            self.links.remove(&key);
            net.drop_agent(key);
        }
        self.fill(net);
    }

    pub(crate) fn take_answers(&mut self) -> Vec<(Ticket, Answer)> {
        std::mem::take(&mut self.answers)
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let pending = self
            .listings
            .values()
            .filter(|(listing, _)| matches!(listing, Listing::Pending));
        pending.map(|(_, until)| *until).min()
    }

    /// Nobody could be heard for so long.
    pub(crate) fn stood_still(&mut self, late: Duration) {
        for (_, until) in self.listings.values_mut() {
            *until += late;
        }
    }

    /// Gives up on agents that don't list their keys.
    pub(crate) fn handle_timeout(&mut self, now: Instant, net: &mut Net) {
        let late = self.links.iter().filter_map(|(key, purpose)| match purpose {
            Use::Listing(socket) if self.listings.get(socket).is_some_and(|(_, until)| *until <= now) => {
                Some(*key)
            }
            Use::Listing(_) | Use::Signing { .. } | Use::Adding(_) => None,
        });
        for key in late.collect::<Vec<_>>() {
            net.drop_agent(key);
            if let Some(Use::Listing(socket)) = self.links.get(&key) {
                // Every host has waited for it, also where a key in a file is enough.
                let within = LISTING.as_secs();
                self.warnings.push(format!(
                    "agent {socket} has not listed its keys within {within}s and is left out; see whether ssh-add -l \
                     answers, or do without it: -o IdentityAgent=none"
                ));
            }
            self.closed(net, key, Some(ErrorKind::TimedOut));
        }
    }

    pub(crate) fn heard(&mut self, net: &mut Net, key: Key, event: AgentEvent) {
        match event {
            AgentEvent::Identities { identities, .. } => {
                if let Some(Use::Listing(socket)) = self.links.remove(&key) {
                    net.drop_agent(key);
                    self.list(&socket, Ok(identities));
                }
            }
            AgentEvent::Signature(signature) => self.signed(net, key, Ok(signature)),
            AgentEvent::Refused(AgentRequest::Sign(_)) => {
                self.signed(net, key, Err("the agent refused to sign".to_owned()))
            }
            AgentEvent::Refused(AgentRequest::Identities) => {
                net.drop_agent(key);
                self.closed(net, key, Some(ErrorKind::PermissionDenied));
            }
            // An old agent does not know the request, and signs all the same.
            AgentEvent::Bound | AgentEvent::Refused(AgentRequest::BindSession) => {}
            AgentEvent::Added => {
                self.links.remove(&key);
                net.drop_agent(key);
            }
            AgentEvent::Refused(AgentRequest::Add) => {
                net.drop_agent(key);
                self.closed(net, key, Some(ErrorKind::PermissionDenied));
            }
        }
    }

    /// An agent's socket is gone, or could not be reached.
    pub(crate) fn closed(&mut self, net: &mut Net, key: Key, kind: Option<ErrorKind>) {
        let kind = kind.unwrap_or(ErrorKind::UnexpectedEof);
        match self.links.remove(&key) {
            Some(Use::Listing(socket)) => {
                self.list(&socket, Err(format!("agent {socket}: {}", words(&socket, kind))));
            }
            Some(Use::Adding(label)) => self
                .remarks
                .push(format!("{label} not added to the agent: {}", words("", kind))),
            Some(Use::Signing {
                ticket,
                question,
                socket,
            }) => {
                self.by_ticket.remove(&ticket);
                if let Some(asked) = question {
                    let signature = Err(format!("agent {socket}: {}", words(&socket, kind)));
                    self.answer(ticket, asked, signature);
                }
                self.fill(net);
            }
            None => {}
        }
    }

    fn list(&mut self, socket: &Arc<str>, identities: Held) {
        if let Some((listing, _)) = self.listings.get_mut(socket) {
            *listing = Listing::Known(Arc::new(identities));
            self.listed = true;
        }
    }

    fn signed(&mut self, net: &mut Net, key: Key, signature: Result<Bytes, String>) {
        if let Some(Use::Signing { ticket, question, .. }) = self.links.get_mut(&key)
            && let Some(asked) = question.take()
        {
            let ticket = *ticket;
            self.answer(ticket, asked, signature);
        }
        self.fill(net);
    }

    fn answer(&mut self, ticket: Ticket, asked: Asked, signature: Result<Bytes, String>) {
        let Asked { question, touch } = asked;
        if touch {
            self.answers.push((ticket, Answer::Asking(false)));
        }
        self.answers
            .push((ticket, Answer::Signed { question, signature }));
    }

    /// Gives waiting signatures a socket, as long as there may be more.
    fn fill(&mut self, net: &mut Net) {
        let mut passed = VecDeque::new();
        while let Some(wanted) = self.queue.pop_front() {
            let known = self.by_ticket.get(&wanted.ticket).copied();
            match known {
                Some(key) => self.ask(net, key, &wanted),
                None if self.by_ticket.len() < MAX_SOCKETS || self.close_idle(net) => self.open(net, wanted),
                None => passed.push_back(wanted),
            }
        }
        self.queue = passed;
    }

    /// Takes the socket of a connection that has its signature and may need another one, or never: a server that stalls
    /// in authentication must not keep others from signing.
    fn close_idle(&mut self, net: &mut Net) -> bool {
        let idle = self.links.iter().find_map(|(key, purpose)| match purpose {
            Use::Signing {
                ticket,
                question: None,
                ..
            } => Some((*key, *ticket)),
            Use::Signing { .. } | Use::Listing(_) | Use::Adding(_) => None,
        });
        let Some((key, ticket)) = idle else {
            return false;
        };
        self.links.remove(&key);
        self.by_ticket.remove(&ticket);
        net.drop_agent(key);
        true
    }

    /// One socket for each connection: binding a session binds the whole socket.
    fn open(&mut self, net: &mut Net, wanted: Wanted) {
        match net.connect_agent(Path::new(&*wanted.socket)) {
            Ok(key) => {
                let SessionBinding {
                    session_id,
                    host_key,
                    signature,
                } = &wanted.binding;
                if let Some(agent) = net.agent(key) {
                    agent.bind_session(host_key, session_id, signature);
                }
                let socket = Arc::clone(&wanted.socket);
                self.links.insert(
                    key,
                    Use::Signing {
                        ticket: wanted.ticket,
                        question: None,
                        socket,
                    },
                );
                self.by_ticket.insert(wanted.ticket, key);
                self.ask(net, key, &wanted);
            }
            Err(error) => {
                let signature = Err(format!(
                    "agent {}: {}",
                    wanted.socket,
                    words(&wanted.socket, error.kind())
                ));
                self.answers.push((
                    wanted.ticket,
                    Answer::Signed {
                        question: wanted.question,
                        signature,
                    },
                ));
            }
        }
    }

    fn ask(&mut self, net: &mut Net, key: Key, wanted: &Wanted) {
        if let Some(Use::Signing { question, .. }) = self.links.get_mut(&key) {
            *question = Some(Asked {
                question: wanted.question,
                touch: wanted.touch,
            });
        }
        if wanted.touch {
            self.answers.push((wanted.ticket, Answer::Asking(true)));
        }
        if let Some(agent) = net.agent(key) {
            agent.sign(&wanted.key, wanted.algorithm, &wanted.data);
        }
    }
}

fn failed(socket: &str, kind: ErrorKind) -> Listing {
    Listing::Known(Arc::new(Err(format!("agent {socket}: {}", words(socket, kind)))))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list is the standard library's and grows"
)]
fn words(socket: &str, kind: ErrorKind) -> String {
    match kind {
        ErrorKind::InvalidInput if socket.len() > MAX_PATH => format!(
            "path too long for a socket: {} bytes, at most {MAX_PATH}",
            socket.len()
        ),
        ErrorKind::TimedOut => "does not answer".to_owned(),
        ErrorKind::NotFound => "no such socket".to_owned(),
        ErrorKind::ConnectionRefused => "nobody listens on its socket".to_owned(),
        ErrorKind::InvalidData => "breaks its protocol".to_owned(),
        ErrorKind::UnexpectedEof => "hung up".to_owned(),
        ErrorKind::PermissionDenied => "refused".to_owned(),
        other => other.to_string(),
    }
}
