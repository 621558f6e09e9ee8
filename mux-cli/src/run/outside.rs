//! Everything that the hub asks for: keys and signatures, host keys, names, memory. Ties keyring, agents,
//! known_hosts, state and pool together; decides nothing that one of them decides.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_core::Mailbox;

use super::agents::Agents;
use super::complaints::Complaints;
use super::gathering::{Gathering, Unknown};
use super::host_keys::ShownKey;
use super::hosts::Hosts;
use super::input::Input;
use super::key_command;
use super::known::Known;
use super::learning::Learning;
use super::likeness::Commons;
use super::limits;
use super::net::{Heard, Net};
use super::other_ways::OtherWays;
use super::preparing::Offered;
use super::prompting::Prompting;
use super::questions::Questions;
use super::searches::Searches;
use super::settings::Prepared as Target;
use super::signing::{Waiter, Waiting};
use super::task::{Done, Task};
use crate::hub::ids::IdMap;
use crate::hub::{Action, Answer, KeyId, Level, RequestId, Ticket};
use crate::keyring::Keyring;
use crate::pool::Pool;
use crate::state::State;
use crate::targets::Target as Typed;

/// The outside of a hub.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(super) targets: IdMap<RequestId, Known>,
    pub(super) offers: IdMap<usize, Offered>,
    pub(super) keyring: Keyring,
    pub(super) agents: Agents,
    pub(super) hosts: Hosts,
    /// Keys are all that is wanted of the hosts.
    pub(super) learning: Option<Learning>,
    pub(super) state: State,
    pub(super) pool: Pool<Task>,
    done: Mailbox<Done>,
    answers: VecDeque<(Ticket, Answer)>,
    /// Attempts that wait for the list of an agent.
    pub(super) unprepared: Vec<Ticket>,
    /// Signatures that wait for a passphrase, by key.
    pub(super) locked: HashMap<KeyId, Vec<Waiter>>,
    /// What a person is asked.
    pub(super) questions: Questions,
    /// What servers want to know.
    pub(super) prompting: Prompting,
    /// Unknown host keys for the next question, and those of the one that is being asked.
    pub(super) gathering: Gathering,
    pub(super) asked: Vec<Unknown>,
    pub(super) searches: Searches,
    pub(super) commons: Commons,
    /// The run is to end: whatever needs an answer goes without.
    pub(super) asks_no_more: bool,
    pub(super) input: Option<Input>,
    pub(super) other_ways: OtherWays,
    /// Programs that say which keys hosts have.
    pub(super) key_commands: key_command::Wanted,
    pub(super) complaints: Complaints,
    /// What is said with `-v`.
    pub(super) remarks: Complaints,
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
            searches: Searches::default(),
            commons: Commons::default(),
            asks_no_more: false,
            input,
            other_ways: OtherWays::default(),
            key_commands: key_command::Wanted::default(),
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
        let Some(known) = self.targets.get(&ticket.request) else {
            return;
        };
        let offers = self.offers.get(&Arc::as_ptr(&known.profile).addr());
        if let Some(worked) = offers.and_then(|offered| offered.offers.remembered(key, &self.keyring)) {
            self.remember(ticket, |known, state| {
                state.learn_key(&known.server, &known.user, worked);
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
        warnings.append(&mut self.agents.warnings());
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
            Heard::Node(..) | Heard::NodeClosed(..) | Heard::Accepted(_) => {}
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
        self.key_commands.end();
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
            Done::Searched(found) => self.searched(now, found),
            Done::KeysTold { shown, printed } => self.keys_told(now, *shown, printed),
            Done::Confirmed(yes) => {
                self.confirmed(now, yes);
                self.ask_next(now, net);
            }
        }
    }
}
