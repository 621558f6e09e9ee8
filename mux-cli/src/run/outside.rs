//! Everything that the hub asks for: keys and signatures, host keys, names, memory. Ties keyring, agents,
//! known_hosts, state and pool together; decides nothing that one of them decides.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_core::Mailbox;

use super::agents::{Agents, Listing};
use super::complaints::Complaints;
use super::gathering::{Gathering, Unknown};
use super::host_keys::ShownKey;
use super::hosts::Hosts;
use super::input::Input;
use super::known::Known;
use super::learning::Learning;
use super::limits;
use super::net::{Heard, Net};
use super::offers::Offers;
use super::other_ways::OtherWays;
use super::profile::Profile;
use super::prompting::Prompting;
use super::questions::Questions;
use super::settings::Prepared as Target;
use super::signing::{Waiter, Waiting};
use super::task::{Done, Task};
use super::wall_clock;
use crate::hub::ids::IdMap;
use crate::hub::{Action, Answer, KeyId, Level, Prepared, RequestId, Ticket};
use crate::keyring::Keyring;
use crate::pool::Pool;
use crate::state::State;
use crate::targets::Target as Typed;

/// The outside of a hub.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(super) targets: IdMap<RequestId, Known>,
    offers: IdMap<usize, (Arc<Profile>, Arc<Offers>)>,
    pub(super) keyring: Keyring,
    pub(super) agents: Agents,
    pub(super) hosts: Hosts,
    /// Keys are all that is wanted of the hosts.
    pub(super) learning: Option<Learning>,
    state: State,
    pub(super) pool: Pool<Task>,
    done: Mailbox<Done>,
    answers: VecDeque<(Ticket, Answer)>,
    /// Attempts that wait for the list of an agent.
    unprepared: Vec<Ticket>,
    /// Signatures that wait for a passphrase, by key.
    pub(super) locked: HashMap<KeyId, Vec<Waiter>>,
    /// What a person is asked.
    pub(super) questions: Questions,
    /// What servers want to know.
    pub(super) prompting: Prompting,
    /// Unknown host keys for the next question, and those of the one that is being asked.
    pub(super) gathering: Gathering,
    pub(super) asked: Vec<Unknown>,
    /// The run is to end: whatever needs an answer goes without.
    pub(super) asks_no_more: bool,
    pub(super) input: Option<Input>,
    pub(super) other_ways: OtherWays,
    complaints: Complaints,
    /// What is said with `-v`.
    remarks: Complaints,
}

impl Outside {
    pub(crate) fn new(
        hosts: Hosts,
        state: State,
        (pool, done): (Pool<Task>, Mailbox<Done>),
        input: Option<Input>,
        learning: Option<Learning>,
    ) -> Self {
        let gathering = match &learning {
            Some(_) => Gathering::for_all(),
            None => Gathering::default(),
        };
        Self {
            targets: IdMap::default(),
            offers: IdMap::default(),
            keyring: Keyring::default(),
            agents: Agents::default(),
            hosts,
            learning,
            state,
            pool,
            done,
            answers: VecDeque::new(),
            unprepared: Vec::new(),
            locked: HashMap::new(),
            questions: Questions::default(),
            prompting: Prompting::default(),
            gathering,
            asked: Vec::new(),
            asks_no_more: false,
            input,
            other_ways: OtherWays::default(),
            complaints: Complaints::default(),
            remarks: Complaints::default(),
        }
    }

    /// Hears of a target, which is shown to people as `shown`.
    pub(crate) fn add(&mut self, target: &Target, shown: &Typed) {
        self.prompting.add(&target.request.user);
        if let Some(ssh) = &target.other_way {
            self.other_ways.add(target.request.id, Arc::clone(ssh));
        }
        self.targets.insert(target.request.id, Known::new(target, shown));
    }

    /// Hears of a jump host.
    pub(crate) fn add_hop(&mut self, hop: &Target) {
        let shown = Typed::new(None, hop.request.host.clone(), None);
        let known = Known {
            is_hop: true,
            ..Known::new(hop, &shown)
        };
        self.targets.insert(hop.request.id, known);
    }

    /// Does what the hub asks for, or starts it.
    pub(crate) fn act(&mut self, now: Instant, net: &mut Net, ticket: Ticket, action: Action) {
        match action {
            Action::Prepare => self.prepare(now, net, ticket),
            Action::Resolve { host, port } => self.resolve(now, ticket, host, port),
            Action::JudgeHostKey {
                question,
                key,
                certificate,
                types,
                local,
            } => {
                let shown = ShownKey {
                    ticket,
                    question,
                    key,
                    certificate,
                    types,
                    local,
                };
                self.judge(now, shown);
            }
            Action::LookAtHostKeys { keys } => self.look_at_host_keys(now, ticket, &keys),
            Action::KeepHostKeys { keys } => self.keep_host_keys(now, ticket, keys),
            Action::Sign {
                question,
                key,
                algorithm,
                data,
                binding,
            } => {
                let waiting = Waiting {
                    ticket,
                    question,
                    algorithm,
                    data,
                    binding,
                };
                self.sign(now, net, key, waiting);
            }
            Action::Prompt { question, prompt } => {
                self.prompt(now, net, ticket, (question, prompt));
            }
            Action::SigningOver => self.login_over(now, net, ticket),
            Action::OtherWay => self.other_way(now, ticket),
            Action::Feed(wish) => self.feed(now, ticket, wish),
            Action::FeedOver { taken, whole } => self.feed_over(ticket, taken, whole),
            Action::Remember(memory) => self.remember(ticket, |known, state| {
                state.learn_server(&known.server, &memory);
            }),
            Action::RememberKey(key) => self.remember_key(ticket, key),
            Action::ForgetKey(_) => self.remember(ticket, |known, state| {
                state.forget_key(&known.server, &known.user);
            }),
        }
    }

    fn resolve(&mut self, now: Instant, ticket: Ticket, host: String, port: u16) {
        if let Err(error) = self.pool.submit(now, Task::Resolve { ticket, host, port }) {
            let why = limits::missing("start a thread", &error);
            self.answer(ticket, Answer::Resolved(Err(why)));
        }
    }

    fn remember_key(&mut self, ticket: Ticket, key: KeyId) {
        if let Some(print) = self.keyring.fingerprint(key).map(str::to_owned) {
            self.remember(ticket, |known, state| {
                state.learn_key(&known.server, &known.user, print);
            });
        }
    }

    /// An attempt needs no signature and no answer any more.
    fn login_over(&mut self, now: Instant, net: &mut Net, ticket: Ticket) {
        self.agents.over(net, ticket);
        self.prompting.forget(ticket);
        for waiting in self.locked.values_mut() {
            waiting.retain(|waiting| waiting.ticket() != ticket);
        }
        self.collect(now, net);
    }

    fn remember(&mut self, ticket: Ticket, learn: impl FnOnce(&Known, &mut State)) {
        if let Some(known) = self.targets.get(&ticket.request) {
            learn(known, &mut self.state);
        }
    }

    /// The next answer to the hub.
    pub(crate) fn poll_answer(&mut self) -> Option<(Ticket, Answer)> {
        self.answers.pop_front()
    }

    /// Whether somebody is being asked something.
    pub(crate) fn is_asking(&self) -> bool {
        self.questions.asking.is_some()
    }

    /// Nothing of ours is left on the terminal, or on its way there.
    pub(crate) fn terminal_is_free(&mut self) {
        if let Some(prompt) = &mut self.questions.asking {
            prompt.may_show();
        }
    }

    /// What is to be said about files, since the last call.
    pub(crate) fn notices(&mut self) -> Vec<(Level, String)> {
        let mut warnings = self.hosts.warnings();
        warnings.extend(self.input.iter_mut().flat_map(Input::warnings));
        warnings.append(&mut self.complaints.waiting);
        let warnings = warnings.into_iter().map(|text| (Level::Warning, text));
        let given = self.agents.remarks().into_iter();
        let kept = self.hosts.remarks().into_iter();
        let remarks = self.remarks.waiting.drain(..).chain(given).chain(kept);
        warnings
            .chain(remarks.map(|text| (Level::Verbose, text)))
            .collect()
    }

    /// Something that concerns agents or the pool was heard.
    pub(crate) fn heard(&mut self, now: Instant, net: &mut Net, heard: Heard) {
        match heard {
            Heard::Agent(key, event) => self.agents.heard(net, key, event),
            Heard::AgentClosed(key, kind) => self.agents.closed(net, key, kind),
            Heard::Woken => {
                while let Some(done) = self.done.take() {
                    self.done(now, net, done);
                }
            }
            Heard::Link(..) | Heard::Signal(_) => {}
        }
        self.collect(now, net);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let questions = [self.host_keys_due(), self.prompts_due()];
        let questions = questions.into_iter().flatten().min();
        [self.pool.poll_timeout(), self.agents.poll_timeout(), questions]
            .into_iter()
            .flatten()
            .min()
    }

    /// The loop came round so much later than it was due; what others are given moves by it.
    pub(crate) fn stood_still(&mut self, late: Duration) {
        self.agents.stood_still(late);
        self.gathering.stood_still(late);
        self.prompting.stood_still(late);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant, net: &mut Net) {
        self.pool.handle_timeout(now);
        self.agents.handle_timeout(now, net);
        if self.host_keys_due().is_some_and(|at| at <= now) {
            self.ask_about_host_keys(now, net);
        }
        if self.prompts_due().is_some_and(|at| at <= now) {
            self.ask_prompts(now, net);
        }
        self.collect(now, net);
    }

    /// The end: memory is written, and the terminal is as it was.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if let Some(prompt) = self.questions.asking.take() {
            prompt.give_up();
        }
        self.hosts.keep(&mut self.state);
        self.state.save()
    }

    pub(super) fn collect(&mut self, now: Instant, net: &mut Net) {
        self.answers.extend(self.agents.take_answers());
        if self.agents.take_listed() {
            for ticket in std::mem::take(&mut self.unprepared) {
                self.prepare(now, net, ticket);
            }
        }
    }

    pub(super) fn answer(&mut self, ticket: Ticket, answer: Answer) {
        self.answers.push_back((ticket, answer));
    }

    pub(super) fn prepare(&mut self, now: Instant, net: &mut Net, ticket: Ticket) {
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let profile = Arc::clone(&known.profile);
        let Some(offers) = self.offers(now, net, &profile) else {
            return self.unprepared.push(ticket);
        };
        if let Some(key) = offers.to_open_first()
            && self.has_to_be_opened(now, net, key, ticket)
        {
            return;
        }
        let Some(known) = self.targets.get_mut(&ticket.request) else {
            return;
        };
        let mut known_by = self.hosts.key_types(&known.profile, &known.host, &self.state);
        let expected = self.learning.as_mut().map(|learning| learning.key_types(known));
        if let Some(expected) = expected.filter(|expected| !expected.is_empty()) {
            known_by.types = expected;
        }
        known.asked_for = Some(known_by.types.clone());
        let worked = self.state.key(&known.server, &known.user);
        let prepared = Prepared {
            keys: offers.for_target(worked, &self.keyring),
            known_host_key_types: known_by.types,
            known_authority: known_by.authority,
            memory: self.state.server(&known.server),
            skipped: offers.skipped.clone(),
        };
        self.answer(ticket, Answer::Prepared(prepared));
    }

    /// The keys of a profile; `None` while its agent is being asked.
    fn offers(&mut self, now: Instant, net: &mut Net, profile: &Arc<Profile>) -> Option<Arc<Offers>> {
        // The profile is kept beside its offers, so that its address names no other one.
        let name = Arc::as_ptr(profile).addr();
        if let Some((_, offers)) = self.offers.get(&name)
            && offers.is_fresh(&self.keyring)
        {
            return Some(Arc::clone(offers));
        }
        let socket: Option<Arc<str>> = profile.agent.as_deref().map(Arc::from);
        let listing = match &socket {
            Some(socket) if profile.keys_off.is_none() => match self.agents.listing(now, net, socket) {
                Listing::Pending => return None,
                Listing::Known(listing) => Some(listing),
            },
            Some(_) | None => None,
        };
        let agent = socket.as_ref().zip(listing.as_deref());
        let offers = Arc::new(Offers::new(
            profile,
            agent,
            &mut self.keyring,
            wall_clock::unix_seconds(),
        ));
        offers
            .complaints
            .iter()
            .for_each(|text| self.complaints.add(text));
        offers.remarks.iter().for_each(|text| self.remarks.add(text));
        self.offers
            .insert(name, (Arc::clone(profile), Arc::clone(&offers)));
        Some(offers)
    }

    /// A key can't sign for a host.
    pub(super) fn unusable(&mut self, ticket: Ticket, key: KeyId, reason: &str) {
        let known = self.targets.get(&ticket.request);
        let offers = known.and_then(|known| self.offers.get(&Arc::as_ptr(&known.profile).addr()));
        if let Some(text) = offers.and_then(|(_, offers)| offers.complaint(key, reason)) {
            self.complaints.add(&text);
        }
    }

    fn done(&mut self, now: Instant, net: &mut Net, done: Done) {
        match done {
            Done::Resolved { ticket, result } => self.answer(ticket, Answer::Resolved(result)),
            Done::Learned { batch, result } => self.learned(now, &batch, result),
            Done::Read { ticket, result } => self.fed(ticket, result),
            Done::FoundTicket(is_there) => self.found_ticket(now, is_there),
            Done::Arrived(arrival) => self.arrived(now, arrival),
            // Nobody asks any more if it was given up meanwhile.
            Done::Unlocked { .. } | Done::Answered { .. } | Done::Confirmed(_)
                if self.questions.asking.take().is_none() => {}
            Done::Unlocked { key, result } => {
                self.unlocked(now, net, key, result);
                self.ask_next(now, net);
            }
            Done::Answered { subject, answers } => {
                self.answered(&subject, answers);
                self.ask_next(now, net);
            }
            Done::KeysTold { shown, printed } => self.keys_told(now, *shown, printed),
            Done::Confirmed(yes) => {
                self.confirmed(now, yes);
                self.ask_next(now, net);
            }
        }
    }
}
