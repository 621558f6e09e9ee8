//! What the end of a connection means: once more without a gamble that did not suit the server, one of the tries, or the
//! end of the request. Decides nothing while a connection lives.

use std::collections::VecDeque;
use std::hash::Hash;
use std::io::ErrorKind;

use mux_core::LinkError;
use mux_ssh::Error;

use super::job::Job;
use super::phase::{Phase, Session};
use super::shared::Context;
use super::{Action, Failure, Level, Links, Status, outcome, retry};

impl<K: Copy + Eq + Hash> Job<K> {
    /// The link of this job's session is gone.
    pub(super) fn closed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        key: K,
        result: Result<(), LinkError<Error>>,
    ) {
        match &self.phase {
            Phase::Session(session) if session.key == key => {}
            Phase::Connecting(_) => {
                let kind = match result {
                    Err(LinkError::Io(kind)) => kind,
                    Ok(()) | Err(LinkError::Protocol(_)) => ErrorKind::ConnectionAborted,
                };
                return self.connect_failed(cx, key, kind);
            }
            Phase::Session(_) | Phase::Preparing | Phase::Resolving => return,
            Phase::Local(_) | Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => return,
        }
        if self.lost_kept(cx) {
            return;
        }
        if !self.wait_for_password(cx, &result) && !self.connect_again(cx, &result) {
            self.lost(cx, &result);
        }
    }

    /// A gamble of ours did not suit the server: one more connection without it. Nothing ran and the server is not
    /// to blame, so this is no retry.
    fn connect_again<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        result: &Result<(), LinkError<Error>>,
    ) -> bool {
        let Phase::Session(Session { unanswered, lost, .. }) = self.phase else {
            return false;
        };
        let refused_early = matches!(result, Err(LinkError::Protocol(Error::EarlyAuthRefused { .. })));
        let caution = if *result == Err(LinkError::Protocol(Error::GuessRejected)) {
            &mut self.caution.no_guess
        } else if refused_early || unanswered.is_some() {
            &mut self.caution.step_by_step
        } else {
            return false;
        };
        if std::mem::replace(caution, true) || self.killing.is_some() {
            return false;
        }
        if lost == Some(true) {
            self.caution.doubted = unanswered;
        }
        if let Err(LinkError::Protocol(Error::EarlyAuthRefused { identity })) = result {
            // It hung up on the first request without an answer, as gateways do that want to be asked for the methods.
            self.caution.none_first |= identity.is_none() && !self.half_way;
            self.drop_identity(*identity);
        }
        self.start_over(cx)
    }

    /// Another connection in place of this one, which nothing has run on.
    pub(super) fn start_over<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) -> bool {
        let Phase::Session(Session { door, .. }) = &self.phase else {
            return false;
        };
        let door = *door;
        self.close_stdin(cx);
        self.release(cx);
        self.ask(cx, Action::SigningOver);
        self.attempt += 1;
        self.signing = None;
        self.login.stop(cx.now);
        self.race(cx, VecDeque::from([door]));
        true
    }

    /// A refused key is not offered again; that it was refused has been said already.
    fn drop_identity(&mut self, identity: Option<usize>) {
        if let Some(identity) = identity.filter(|identity| *identity < self.prepared.keys.len()) {
            self.prepared.keys.remove(identity);
        }
    }

    fn lost<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, result: &Result<(), LinkError<Error>>) {
        if let Some(killing) = &self.killing {
            let (reason, gone) = (killing.reason, self.has_ended());
            return self.finish_killed(cx, reason, gone);
        }
        if self.has_ended() {
            // Its result came first; some servers have no more manners than that.
            if !self.output_over {
                let text = "the connection ended before the command's output did: some may be missing";
                self.notice(cx, Level::Warning, text.to_owned());
            }
            return self.command_over(cx);
        }
        let lost = match &self.phase {
            Phase::Session(session) => session.lost,
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => None,
            Phase::Local(_) | Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => None,
        };
        let (status, failure): (Status, Failure) = outcome::lost(self, lost, result);
        if self.ask_other_way(cx, (status, &failure), result) {
            return;
        }
        if self.is_one_too_many(cx, result) {
            return self.turned_away(cx, status, failure);
        }
        match retry::may_pass(result) {
            true => self.fail_or_retry(cx, status, failure),
            false => self.finish(cx, status, Some(failure)),
        }
    }

    /// Whether the server has said how the command ended.
    fn has_ended(&self) -> bool {
        self.ended.rc.is_some() || self.ended.signal.is_some()
    }
}
