//! `--transport local`: the command in a shell on this machine. The same events as over SSH, without a connection.

use std::hash::Hash;

use bytes::Bytes;

use super::happening::Kind;
use super::job::{Ended, Job};
use super::phase::Phase;
use super::shared::Context;
use super::{Links, Stage, Status, StreamKind, Transport, outcome};

impl<K: Copy + Eq + Hash> Job<K> {
    pub(super) fn begin_local<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        match cx.links.spawn(&self.request) {
            Ok(key) => {
                self.flight.note(cx.now, Kind::Spawn.alone());
                cx.shared.by_link.insert(key, self.request.id);
                self.tries = 1;
                self.lacking = None;
                self.phase = Phase::Local(key);
                self.reach(cx, Stage::Command);
                self.command_deadline = self.request.command_timeout.map(|limit| cx.now + limit);
                self.open_stdin(cx);
            }
            // Those that run end sooner or later, and then there is room.
            Err(what) if what.is_shortage() && !cx.shared.by_link.is_empty() => {
                self.lacks(cx, what);
            }
            Err(why) => {
                let message = format!("could not start a shell: {why}");
                self.fail(cx, Status::Unreachable, Stage::Command, message);
            }
        }
    }

    /// Tries again what could not be started.
    pub(super) fn continue_local<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let due = self.lacking.is_some_and(|(_, at)| at <= cx.now);
        if !due || !matches!(self.phase, Phase::Preparing) {
            return;
        }
        match &self.request.transport {
            Transport::Local => self.begin_local(cx),
            Transport::OpenSsh(_) => self.spawn_openssh(cx),
            Transport::Ssh(_) => {}
        }
    }

    pub(super) fn local_output<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        stream: StreamKind,
        data: Bytes,
    ) {
        match self.child {
            Some(_) => self.openssh_output(cx, stream, data),
            None => self.pass_on(cx, stream, data),
        }
    }

    pub(super) fn local_exit<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        (rc, signal): (Option<i32>, Option<i32>),
        unsent: usize,
    ) {
        self.feed.unsent = unsent;
        if self.child.is_some() {
            return self.openssh_exit(cx, (rc, signal));
        }
        self.timings.run = Some(cx.now.saturating_duration_since(self.stage_since));
        self.ended = Ended {
            rc,
            signal: signal.map(outcome::signal_name),
        };
        if let Some(killing) = &self.killing {
            let reason = killing.reason;
            return self.finish_killed(cx, reason, true);
        }
        let (status, error) = outcome::ended(&self.ended, self.request.missing_status);
        self.finish(cx, status, error);
    }
}
