//! What is tried again: a request whose command can't have started, for a reason that may pass. Decides whether and
//! when; a login that was refused, a wrong host key and a command that may have run are never tried again.

use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mux_core::LinkError;
use mux_ssh::Error;

use super::countdown::Countdown;
use super::job::{Ended, Job};
use super::phase::Phase;
use super::shared::Context;
use super::{
    Action, Failure, Level, Links, OpenSsh, Reason, RequestId, Stage, Status, Timings, Transport, outcome,
    pace,
};

/// About how long the first pause is; each one after it is twice as long. A sshd that is over `MaxStartups` has let
/// go of most logins after a second.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// No pause is longer: a host that restarts is back within minutes, and somebody waits for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// About how long the first pause is of one that was turned away because too many log in at once; each one after it is
/// twice as long. A stock sshd lets a few in every tenth of a second.
const FIRST_WAY_BACK: Duration = Duration::from_millis(250);

/// No such pause is longer.
const LONGEST_WAY_BACK: Duration = Duration::from_secs(4);

/// So often is a crowd waited for, about half a minute in all: it is of our own making and passes. If it does not, the
/// reason is another one.
const MAX_TURNED_AWAY: u32 = 10;

/// A request between two tries.
#[derive(Debug)]
pub(super) struct Pause {
    pub(super) until: Instant,
    /// How the last try ended, in case that there is no other.
    status: Status,
    failure: Failure,
    /// It is asked whether there is another way in; what does not come in time is none.
    is_question: bool,
}

/// Whether a connection that ended like this may fare better another time: what the peer said was not wrong, it was
/// only too little.
pub(super) fn may_pass(result: &Result<(), LinkError<Error>>) -> bool {
    match result {
        Ok(()) | Err(LinkError::Io(_)) => true,
        Err(LinkError::Protocol(error)) => {
            matches!(
                error,
                Error::UnexpectedEof | Error::Disconnected { .. } | Error::Silent
            )
        }
    }
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// The end of a try for a reason that may pass. The last one, unless there are tries left and the command can't
    /// have started.
    pub(super) fn fail_or_retry<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        failure: Failure,
    ) {
        if self.retried >= self.request.retries || !self.may_come_back(cx, status) {
            return self.finish(cx, status, Some(failure));
        }
        self.retried += 1;
        let pause = pause((FIRST_PAUSE, LONGEST_PAUSE), self.request.id, self.retried);
        self.notice(
            cx,
            Level::Verbose,
            format!(
                "{}: {}; retry {} of {} in {:.1}s",
                failure.stage,
                failure.message,
                self.retried,
                self.request.retries,
                pause.as_secs_f64()
            ),
        );
        self.pause(cx, pause, status, failure);
    }

    /// The end of a try at a door where others of ours get in, before the server had said who it is: it has enough logins
    /// for now. That is our doing and no failure of the host's, so that another try costs none of its own.
    pub(super) fn turned_away<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        status: Status,
        failure: Failure,
    ) {
        let failure = failure.too_many_logins();
        if self.turned_away >= MAX_TURNED_AWAY || !self.may_come_back(cx, status) {
            return self.fail_or_retry(cx, status, failure);
        }
        self.turned_away += 1;
        let bounds = (FIRST_WAY_BACK, LONGEST_WAY_BACK);
        let pause = pause(bounds, self.request.id, self.turned_away);
        self.notice(
            cx,
            Level::Verbose,
            format!(
                "{}: {}; again in {:.1}s",
                failure.stage,
                failure.message,
                pause.as_secs_f64()
            ),
        );
        self.pause(cx, pause, status, failure);
    }

    /// Whether this connection was turned away at a door that is crowded by us.
    pub(super) fn is_one_too_many<L: Links<Key = K>>(
        &self,
        cx: &Context<'_, L>,
        result: &Result<(), LinkError<Error>>,
    ) -> bool {
        let was_closed = matches!(
            result,
            Ok(()) | Err(LinkError::Io(_) | LinkError::Protocol(Error::UnexpectedEof))
        );
        // Other words mean something else, of which a ban is the worst.
        let says_so = outcome::says_too_many(&self.greeting);
        let says_nothing = self.greeting.is_empty();
        let is_early = self.stage == Stage::Banner && self.carrier_lost.is_none();
        let is_crowded = match &self.phase {
            Phase::Session(session) => {
                let times = self.turned_away + 1;
                cx.shared.endpoints.is_crowded(session.door, says_so, times)
            }
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) | Phase::Local(_) => false,
            Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => false,
        };
        was_closed && (says_so || says_nothing) && is_early && is_crowded
    }

    fn may_come_back<L: Links<Key = K>>(&self, cx: &Context<'_, L>, status: Status) -> bool {
        let is_over = self.killing.is_some() || cx.shared.held || self.caution.doubted.is_some();
        !is_over && status == Status::Unreachable
    }

    fn pause<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        pause: Duration,
        status: Status,
        failure: Failure,
    ) {
        self.close_stdin(cx);
        self.release(cx);
        self.ask(cx, Action::SigningOver);
        self.connect = Countdown::Stopped(self.request.connect_timeout);
        self.login = Countdown::Stopped(self.request.login_timeout);
        // Meanwhile others may go.
        if !self.is_hop() && !std::mem::replace(&mut self.silent, true) {
            cx.shared.fanout.fall_silent();
        }
        self.phase = Phase::Pausing(Pause {
            until: cx.now + pause,
            status,
            failure,
            is_question: false,
        });
    }

    /// No login was taken. Asks, once, whether the system's `ssh` has one that we don't, and waits for the answer as
    /// between two tries; this is none, since nothing is tried twice. False: that is no case for it.
    pub(super) fn ask_other_way<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        (status, failure): (Status, &Failure),
        result: &Result<(), LinkError<Error>>,
    ) -> bool {
        let is_refused = matches!(result, Err(LinkError::Protocol(Error::AuthFailed { .. })));
        let is_over = self.killing.is_some() || cx.shared.held || self.caution.doubted.is_some();
        if !is_refused || is_over || self.is_hop() || std::mem::replace(&mut self.other_way_asked, true) {
            return false;
        }
        self.close_stdin(cx);
        self.release(cx);
        self.ask(cx, Action::SigningOver);
        self.connect = Countdown::Stopped(self.request.connect_timeout);
        self.login = Countdown::Stopped(self.request.login_timeout);
        self.phase = Phase::Pausing(Pause {
            until: cx.now + LONGEST_PAUSE,
            status,
            failure: failure.clone(),
            is_question: true,
        });
        self.ask(cx, Action::OtherWay);
        true
    }

    /// There is another way in, or there is none.
    pub(super) fn other_way<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        ssh: Option<Arc<OpenSsh>>,
    ) {
        let Phase::Pausing(pause) = &self.phase else {
            return;
        };
        match ssh {
            Some(ssh) => {
                let failure = &pause.failure;
                let text = format!("{}: {}; trying the system's ssh", failure.stage, failure.message);
                self.notice(cx, Level::Verbose, text);
                self.request.transport = Transport::OpenSsh(ssh);
                self.start_again(cx);
            }
            None => self.end_pause(cx),
        }
    }

    /// Begins the next try if the pause is over.
    pub(super) fn continue_pause<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        match &self.phase {
            Phase::Pausing(pause) if pause.until > cx.now => return,
            Phase::Pausing(pause) if pause.is_question => return self.end_pause(cx),
            Phase::Pausing(_) => {}
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) | Phase::Session(_) => return,
            Phase::Local(_) | Phase::Parked(_) | Phase::Over => return,
        }
        self.start_again(cx);
    }

    fn start_again<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.heard(cx);
        self.attempt += 1;
        self.timings = Timings::default();
        self.signing = None;
        self.asking = false;
        self.tried = Vec::new();
        self.half_way = false;
        self.farewell = None;
        self.ended = Ended::default();
        self.reach(cx, Stage::Dns);
        self.phase = Phase::Preparing;
        self.begin(cx);
    }

    /// There will be no other connection.
    pub(super) fn end_pause<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Phase::Pausing(pause) = &self.phase {
            let (status, failure) = (pause.status, pause.failure.clone());
            self.finish(cx, status, Some(failure));
        }
        if matches!(self.phase, Phase::Parked(_)) {
            self.cancelled(cx, Reason::Interrupted);
        }
    }
}

/// How long to wait before a retry: at least half of what its number says, and spread over the other half, so that
/// hosts that failed together don't come back together.
fn pause((first, longest): (Duration, Duration), request: RequestId, retry: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(retry.saturating_sub(1));
    let whole = first.saturating_mul(doubled).min(longest);
    whole / 2 + pace::spread(whole / 2, request, retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_spread() {
        for (retry, seconds) in [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (100, 30)] {
            let whole = Duration::from_secs(seconds);
            let pauses = (0..1000).map(|id| pause((FIRST_PAUSE, LONGEST_PAUSE), RequestId(id), retry));
            let (mut least, mut most) = (whole, Duration::ZERO);
            for pause in pauses {
                (least, most) = (least.min(pause), most.max(pause));
            }
            assert!(
                least >= whole / 2 && most < whole,
                "{retry}: {least:?} to {most:?}"
            );
            assert!(most - least > whole / 4, "{retry}: {least:?} to {most:?}");
        }
    }
}
