//! Connections that outlive their command: which may be used again, what begins on one, and what happens if it turns out
//! to be of no use. Who holds them meanwhile, and how long, is for [`Links`] to say.

use std::hash::Hash;

use super::countdown::Countdown;
use super::job::Job;
use super::pace::Door;
use super::phase::{self, Phase, Session};
use super::shared::Context;
use super::{Action, Kept, Links, Stage};

impl<K: Copy + Eq + Hash> Job<K> {
    /// Sends the command over a connection that stands, if there is one for it.
    pub(super) fn begin_kept<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) -> bool {
        let Some(key) = self
            .request
            .like
            .as_ref()
            .and_then(|like| cx.links.take_kept(like))
        else {
            return false;
        };
        let exec = self.exec();
        let Some(client) = cx.links.client(key) else {
            return false;
        };
        client.limit_windows(cx.shared.max_window);
        let channel = client.exec(cx.now, exec);
        let is_open = client.is_open(channel);
        cx.shared.by_link.insert(key, self.request.id);
        self.is_kept = true;
        self.tries += 1;
        self.phase = Phase::Session(Session {
            key,
            door: Door::Kept,
            channel: Some(channel),
            unauthenticated: false,
            lost: None,
            unanswered: None,
            proving: false,
        });
        self.reach(cx, Stage::Channel);
        // The server is there, as far as anybody knows: it has as long to answer as one that is connected to.
        self.login = Countdown::Stopped(self.request.connect_timeout);
        self.login.start(cx.now);
        self.heard(cx);
        if is_open {
            self.command_begun(cx);
        }
        self.want_stdin(cx);
        true
    }

    /// A connection that was kept has no use for another session, and the server has said so: a new one is made.
    pub(super) fn leave_kept<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) -> bool {
        let is_kept = self.is_kept && self.killing.is_none();
        if is_kept {
            self.begin_anew(cx);
        }
        is_kept
    }

    /// A connection that was kept is gone. Unless the command may have run on it, nobody needs to know.
    pub(super) fn lost_kept<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) -> bool {
        let is_unharmed = match &self.phase {
            Phase::Session(session) => session.lost != Some(true),
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => false,
            Phase::Local(_) | Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => false,
        };
        let has_run = self.ended.rc.is_some() || self.ended.signal.is_some() || self.stage > Stage::Channel;
        is_unharmed && !has_run && self.leave_kept(cx)
    }

    fn begin_anew<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.close_stdin(cx);
        self.release(cx);
        self.is_kept = false;
        self.attempt += 1;
        self.login = Countdown::Stopped(self.request.login_timeout);
        self.phase = Phase::Preparing;
        self.reach(cx, Stage::Dns);
        self.ask(cx, Action::Prepare);
    }

    /// The command is over, and its connection may serve others.
    pub(super) fn keep<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Phase::Session(Session { key, .. }) = self.phase else {
            return;
        };
        if !cx.shared.by_link.contains_key(&key) {
            return;
        }
        if let Some(kept) = self.to_keep(cx, key) {
            cx.shared.by_link.remove(&key);
            if !cx.links.keep(kept) {
                phase::say_goodbye(cx.links, key);
            }
        }
    }

    /// What there is to keep of a connection. Not one that somebody had to answer questions for, who may have meant this
    /// command alone, and none to a host that is not known to be the right one.
    pub(super) fn to_keep<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, key: K) -> Option<Kept<K>> {
        let like = self.request.like.clone()?;
        let is_clean = !self.answered && !self.caution.distrusted && self.killing.is_none();
        if !is_clean || !cx.links.client(key)?.is_idle() {
            return None;
        }
        let request = &self.request;
        Some(Kept {
            key,
            like,
            name: format!("{}@{}:{}", request.user, request.host, request.port),
            certificate: self.certificate.clone(),
            rtt: self.timings.tcp,
        })
    }
}
