//! A run has a hub of its own and, if there is a daemon, its far end. Decides to which of the two something goes: a request
//! is in one of them, and what is said of all goes to both.

use std::time::Instant;

use mux_proto::connection::Event as Said;

use super::engine::Engine;
use super::far::Far;
use crate::daemon::message::Terms;
use crate::hub::{Answer, Level, Reason, Request, RequestId, Stage, Ticket};
use crate::output::Credit;
use crate::plan::{Action, Plan, Sharing};

impl Engine {
    /// Whether there is a daemon that this run can use, for so many of so many requests.
    pub(super) fn look_for_daemon(&mut self, now: Instant, plan: &Plan, (suitable, all): (usize, usize)) {
        let Sharing {
            never,
            fresh,
            persist,
        } = plan.sharing;
        if !matches!(plan.action, Action::Run(_)) || never || suitable == 0 {
            return;
        }
        let terms = Terms {
            fanout: plan.fanout,
            expected: suitable,
            fresh,
        };
        let far = match suitable < all && plan.fanout < all {
            // Two hubs would each have as many hosts at once as both may have together.
            true => {
                Err("some targets go by ways that are this run's own, and -f counts all of them".to_owned())
            }
            false => Far::reach(now, &mut self.net, plan.sharing, terms),
        };
        match far {
            Ok(far) => self.far = far,
            Err(why) => {
                let level = match persist {
                    Some(_) => Level::Warning,
                    None => Level::Verbose,
                };
                self.say(level, format!("without the daemon: {why}"));
            }
        }
    }

    /// Hands a request to whom it suits. One that may have to be tried through `ssh` stays here.
    pub(super) fn hand_in(&mut self, now: Instant, request: Request, stays: bool) {
        match &mut self.far {
            Some(far) if !stays && far.takes(&request) => far.push(request),
            Some(_) | None => self.hub.submit(now, &mut self.net, request),
        }
    }

    /// One step of what the far end has to say; false: nothing.
    pub(super) fn settle_far(&mut self, now: Instant) -> bool {
        let Some(far) = &mut self.far else { return false };
        if let Some((ticket, action)) = far.poll_action() {
            self.outside.act(now, &mut self.net, ticket, action);
        } else if let Some(event) = far.poll_event() {
            self.tell(event);
        } else if let Some(request) = far.poll_returned() {
            self.hub.submit(now, &mut self.net, request);
        } else if let Some(request) = far.next_waiting()
            && let Some(like) = self.outside.likeness(now, &mut self.net, request)
        {
            far.submit(now, like);
        } else {
            return false;
        }
        true
    }

    pub(super) fn heard_far(&mut self, now: Instant, said: Said) {
        let word = self
            .far
            .as_mut()
            .and_then(|far| far.heard(now, &mut self.net, said));
        self.say_of_far(word);
    }

    pub(super) fn lost_far(&mut self, why: &str) {
        let word = self.far.as_mut().and_then(|far| far.lose(why));
        self.say_of_far(word);
    }

    fn say_of_far(&mut self, word: Option<(Level, String)>) {
        if let Some((level, text)) = word {
            self.say(level, text);
        }
    }

    pub(super) fn flush_far(&mut self) {
        if let Some(far) = &mut self.far {
            far.flush(&mut self.net);
        }
    }

    pub(super) fn part_from_far(&mut self) {
        if let Some(far) = &mut self.far {
            far.part(&mut self.net);
        }
    }

    pub(super) fn answer(&mut self, now: Instant, ticket: Ticket, answer: Answer) {
        match &mut self.far {
            Some(far) if far.owns(ticket.request) => far.answer(ticket, answer),
            Some(_) | None => self.hub.answer(now, &mut self.net, ticket, answer),
        }
    }

    pub(super) fn consume(&mut self, now: Instant, credit: Credit) {
        let Credit {
            request,
            stream,
            bytes,
        } = credit;
        match &mut self.far {
            Some(far) if far.owns(request) => far.consume(request, stream, bytes),
            Some(_) | None => self.hub.consume(now, &mut self.net, request, stream, bytes),
        }
    }

    pub(super) fn cancel(&mut self, now: Instant, request: RequestId, reason: Reason) {
        if let Some(far) = &mut self.far {
            far.cancel(request, reason);
        }
        self.hub.cancel(now, &mut self.net, request, reason);
    }

    pub(super) fn cancel_all(&mut self, now: Instant, reason: Reason) {
        if let Some(far) = &mut self.far {
            far.cancel_all(reason);
        }
        self.hub.cancel_all(now, &mut self.net, reason);
    }

    pub(super) fn hold_all(&mut self, now: Instant) {
        if let Some(far) = &mut self.far {
            far.hold();
        }
        self.hub.hold(now, &mut self.net);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.hub.is_idle() && self.far.as_ref().is_none_or(Far::is_idle)
    }

    /// Nothing goes on before host keys were judged that nobody was asked about.
    pub(super) fn waits_for_judgements(&self) -> bool {
        let near = self.hub.waits_for_judgements();
        match &self.far {
            None => near,
            Some(far) => {
                let distant = far.waits_for_judgements();
                (near || distant && self.hub.is_idle()) && (distant || far.is_idle())
            }
        }
    }

    pub(super) fn queued(&self) -> usize {
        self.hub.queued() + self.far.as_ref().map_or(0, Far::queued)
    }

    pub(super) fn running(&self) -> Vec<(RequestId, Stage, Instant)> {
        let mut running = self.hub.running();
        running.extend(self.far.iter().flat_map(Far::running));
        running.sort_unstable();
        running
    }

    pub(super) fn left_running(&self) -> Vec<RequestId> {
        let far = self.far.iter().flat_map(Far::left_running);
        self.hub.left_running().iter().chain(far).copied().collect()
    }
}
