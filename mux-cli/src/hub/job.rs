//! One request on its way: which phase it is in, what time it has left, and how it ends. The steps of each phase are
//! in `connect`, `session` and `kill`; this file never talks to a link but to end it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_ssh::keys::Certificate;

use super::caution::Caution;
use super::countdown::Countdown;
use super::drain::Unread;
use super::hop::{Note, Role};
use super::kill::Killing;
use super::openssh::Child;
use super::phase::{Phase, Session};
use super::shared::Context;
use super::stdin::Feed;
use super::{
    Action, Event, Failure, Flight, Level, Links, NoLink, Outcome, Prepared, Request, Route, Stage, Status,
    Ticket,
};
use super::{Timings, outcome};

/// A host that says nothing for this long in connect or authentication stops counting against the fanout: a healthy
/// one needs a few round trips, and no round trip on Earth takes a second.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

/// How the command itself ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Ended {
    pub(super) rc: Option<i32>,
    pub(super) signal: Option<String>,
}

/// One request that has left the queue.
#[derive(Debug)]
pub(super) struct Job<K> {
    pub(super) request: Request,
    pub(super) role: Role,
    pub(super) phase: Phase<K>,
    pub(super) stage: Stage,
    pub(super) stage_since: Instant,
    pub(super) timings: Timings,
    pub(super) attempt: u32,
    pub(super) tries: u32,
    /// How often it was tried again after a failure.
    pub(super) retried: u32,
    /// How often a server had enough logins already.
    pub(super) turned_away: u32,
    pub(super) connect: Countdown,
    pub(super) login: Countdown,
    pub(super) command_deadline: Option<Instant>,
    pub(super) prepared: Prepared,
    pub(super) caution: Caution,
    /// Which key is signing right now.
    pub(super) signing: Option<Arc<str>>,
    /// A person is being asked.
    pub(super) asking: bool,
    /// Why keys and answers were not accepted, in order.
    pub(super) tried: Vec<String>,
    /// Something was accepted, and not enough.
    pub(super) half_way: bool,
    /// Somebody is asked for a password.
    pub(super) wants_password: bool,
    /// Somebody has answered the server.
    pub(super) answered: bool,
    /// The connection was there before.
    pub(super) is_kept: bool,
    /// The certificate that let us in.
    pub(super) certificate: Option<Arc<Certificate>>,
    /// What the server said as it ended the connection.
    pub(super) farewell: Option<String>,
    /// Lines that the server said instead of its identification; bounded by the client.
    pub(super) greeting: Vec<String>,
    /// Why the connection that this one rides on is gone.
    pub(super) carrier_lost: Option<String>,
    /// What the process that is the connection has said; bounded.
    pub(super) proxy_said: Vec<String>,
    pub(super) ended: Ended,
    /// All of the command's output has come.
    pub(super) output_over: bool,
    pub(super) feed: Feed,
    pub(super) killing: Option<Killing>,
    /// What was lacking when a link was to be started, and when that is tried again.
    pub(super) lacking: Option<(NoLink, Instant)>,
    pub(super) unread: Unread,
    /// Whether there is another way in was asked.
    pub(super) other_way_asked: bool,
    /// The system's `ssh`, where that is the transport.
    pub(super) child: Option<Child>,
    pub(super) flight: Flight,
    pub(super) last_heard: Instant,
    pub(super) silent: bool,
    pub(super) wake: Option<Instant>,
}

impl<K: Copy + Eq + std::hash::Hash> Job<K> {
    pub(super) fn new(request: Request, role: Role, now: Instant) -> Self {
        Self {
            role,
            phase: Phase::Preparing,
            stage: Stage::Dns,
            stage_since: now,
            timings: Timings::default(),
            attempt: 1,
            tries: 0,
            retried: 0,
            turned_away: 0,
            connect: Countdown::Stopped(request.connect_timeout),
            login: Countdown::Stopped(request.login_timeout),
            command_deadline: None,
            prepared: Prepared::default(),
            caution: Caution::default(),
            signing: None,
            asking: false,
            tried: Vec::new(),
            half_way: false,
            wants_password: false,
            answered: false,
            is_kept: false,
            certificate: None,
            farewell: None,
            greeting: Vec::new(),
            carrier_lost: None,
            proxy_said: Vec::new(),
            ended: Ended::default(),
            output_over: false,
            feed: Feed::default(),
            killing: None,
            lacking: None,
            unread: Unread::default(),
            other_way_asked: false,
            child: None,
            flight: Flight::new(now),
            last_heard: now,
            silent: false,
            wake: None,
            request,
        }
    }

    pub(super) fn ticket(&self) -> Ticket {
        Ticket {
            request: self.request.id,
            attempt: self.attempt,
        }
    }

    pub(super) fn ask<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, action: Action) {
        cx.shared.actions.push_back((self.ticket(), action));
    }

    pub(super) fn notice<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, level: Level, text: String) {
        let event = match &self.role {
            Role::Command => Event::Notice {
                request: Some(self.request.id),
                level,
                text,
            },
            Role::Hop(_) => Event::Notice {
                request: None,
                level,
                text: format!("{}: {text}", self.request.host),
            },
        };
        cx.shared.events.push_back(event);
    }

    /// Enters `stage` and returns how long the one before took.
    pub(super) fn reach<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, stage: Stage) -> Duration {
        let took = cx.now.saturating_duration_since(self.stage_since);
        self.stage = stage;
        self.stage_since = cx.now;
        match cx.shared.hops.get_mut(&self.request.id) {
            Some(hop) => hop.stage = stage,
            None => cx.shared.events.push_back(Event::Stage {
                request: self.request.id,
                stage,
            }),
        }
        took
    }

    /// The other side has said something.
    pub(super) fn heard<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.last_heard = cx.now;
        if std::mem::take(&mut self.silent) {
            cx.shared.fanout.speak_again();
        }
    }

    /// A person is asked, or has answered: what measures the other side stands still meanwhile.
    pub(super) fn asking<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, asking: bool) {
        if matches!(self.phase, Phase::Parked(_)) {
            return;
        }
        self.asking = asking;
        self.heard(cx);
        let running = match self.stage {
            Stage::Dns | Stage::Tcp | Stage::Banner | Stage::Kex | Stage::HostKey => &mut self.connect,
            Stage::Auth => &mut self.login,
            Stage::Channel | Stage::Command => return,
        };
        if asking {
            running.stop(cx.now)
        } else {
            running.start(cx.now)
        }
    }

    /// When this job falls silent, if it can.
    fn silent_at(&self) -> Option<Instant> {
        let counts = match &self.phase {
            // What is lacking here is nothing that the host could say.
            Phase::Resolving | Phase::Connecting(_) if self.lacking.is_some() => false,
            Phase::Resolving | Phase::Connecting(_) => true,
            Phase::Session(session) => session.unauthenticated && self.signing.is_none() && !self.asking,
            Phase::Local(_) => self.child.is_some() && self.stage < Stage::Channel,
            Phase::Preparing | Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => false,
        };
        (counts && !self.silent && !self.is_hop()).then(|| self.last_heard + SILENCE)
    }

    /// Files the job under the moment at which it next has something to do.
    pub(super) fn schedule<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let race = match &self.phase {
            Phase::Connecting(race) => [race.next_at, race.starting.map(|(at, _)| at)],
            Phase::Preparing => [self.lacking.map(|(_, at)| at), None],
            Phase::Pausing(pause) => [Some(pause.until), None],
            Phase::Resolving | Phase::Session(_) | Phase::Local(_) => [None, None],
            Phase::Parked(_) | Phase::Over => [None, None],
        };
        let next = race
            .into_iter()
            .chain([
                self.connect.deadline(),
                self.login.deadline(),
                self.command_deadline,
                self.silent_at(),
            ])
            .chain([self.killing.as_ref().map(|killing| killing.next_at)])
            .flatten()
            .min()
            .filter(|_| !matches!(self.phase, Phase::Over));
        // One that is filed too early stays: it costs one look at the clock, and most deadlines of a host that answers
        // are put off many times and never come due.
        let keep = match (self.wake, next) {
            (Some(filed), Some(next)) => filed <= next,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if keep {
            return;
        }
        let id = self.request.id;
        if let Some(old) = self.wake.take() {
            cx.shared.timers.remove(&(old, id));
        }
        if let Some(at) = next {
            cx.shared.timers.insert((at, id));
        }
        self.wake = next;
    }

    /// Something came due.
    pub(super) fn on_timer<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if self.connect.is_over(cx.now) || self.login.is_over(cx.now) {
            return self.out_of_time(cx);
        }
        if self.command_deadline.is_some_and(|at| at <= cx.now) {
            self.command_deadline = None;
            self.cancel(cx, super::Reason::TimedOut);
        }
        self.continue_killing(cx);
        self.continue_race(cx);
        self.continue_pause(cx);
        self.continue_local(cx);
        if self.silent_at().is_some_and(|at| at <= cx.now) {
            self.silent = true;
            cx.shared.fanout.fall_silent();
        }
    }

    fn out_of_time<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Some(killing) = &self.killing {
            let reason = killing.reason;
            return self.finish_killed(cx, reason, false);
        }
        if let Some(failure) = self.late_hop(cx) {
            return self.fail_or_retry(cx, Status::Unreachable, failure);
        }
        let ran = match &self.phase {
            Phase::Session(Session {
                key,
                channel: Some(channel),
                ..
            }) => cx
                .links
                .client(*key)
                .is_some_and(|client| client.may_have_run(*channel)),
            Phase::Session(_) | Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => false,
            Phase::Local(_) => self.openssh_may_have_run(),
            Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => false,
        };
        let (status, failure) = outcome::out_of_time(self, ran);
        self.fail_or_retry(cx, status, failure);
    }

    pub(super) fn fail<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        stage: Stage,
        message: String,
    ) {
        self.finish(cx, status, Some(Failure::new(stage, message)));
    }

    /// The end: gives everything back and says how it went.
    pub(super) fn finish<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        error: Option<Failure>,
    ) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        if error.is_some() {
            self.show_flight(cx);
        }
        let (status, error) = match self.caution.doubted {
            Some(_) => outcome::in_doubt(status, error),
            None => (status, error),
        };
        let was_ready = self.is_hop() && self.stage >= Stage::Channel;
        let is_parked = matches!(self.phase, Phase::Parked(_));
        self.close_stdin(cx);
        self.release(cx);
        if is_parked {
            cx.shared.parking.end(self.request.id);
        } else if !self.is_hop() {
            cx.shared.fanout.leave(std::mem::take(&mut self.silent));
        }
        self.ask(cx, Action::SigningOver);
        if self.is_hop() {
            let failure = error.unwrap_or_else(|| Failure::new(self.stage, "closed"));
            self.strand(cx, status, failure, was_ready);
            return self.schedule(cx);
        }
        if let Route::Jump(hop) = self.request.route {
            cx.shared.notes.push_back((hop, Note::Done(self.request.id)));
        }
        let outcome = Outcome {
            status,
            rc: self.ended.rc,
            signal: self.ended.signal.take(),
            error,
            timings: self.timings,
            attempts: self.tries,
            retries: self.retried,
        };
        cx.shared.events.push_back(Event::Finished {
            request: self.request.id,
            outcome,
        });
        self.schedule(cx);
    }

    /// Something failed: what went before may be wanted, once.
    pub(super) fn show_flight<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if self.flight.take_news()
            && let Some(flights) = &mut cx.shared.flights
        {
            let Request { id, host, .. } = &self.request;
            flights.push_back((*id, host.clone(), self.flight.clone()));
        }
    }

    /// Gives back links and places, and leaves the phase.
    pub(super) fn release<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.disembark(cx);
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Connecting(race) => race.release(cx, &self.request),
            Phase::Session(session) => session.release(cx),
            Phase::Local(key) => {
                // A shell that outlives SIGKILL has nothing more to be told; ssh is of no use without its request.
                if cx.shared.by_link.remove(&key).is_some() && self.child.is_some() {
                    cx.links.abort(key);
                }
            }
            Phase::Preparing | Phase::Resolving | Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => {}
        }
        self.release_child(cx);
    }
}
