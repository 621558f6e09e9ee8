//! How a running command is stopped: politely over its channel, then by force over a second one, then not at all and
//! said so. The only file that ends what runs.

use std::hash::Hash;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mux_proto::Protocol;
use mux_ssh::client::{ChannelId, Event, Exec, Stdin};

use super::happening::Kind;
use super::job::Job;
use super::phase::Phase;
use super::shared::Context;
use super::{Links, Reason, Stage, links};

/// How long a command has to end after `signal` TERM: OpenSSH ignores the request for root and forced commands, and
/// never says so.
const AFTER_SIGNAL: Duration = Duration::from_secs(1);

/// How long the second channel has. It is done after half a second where the server is idle, and everything is over
/// within 2 s then; a server that is busy with a whole fleet's worth of these takes longer to start them.
const AFTER_KILLER: Duration = Duration::from_secs(5);

/// How long the command has once the second channel has done its work: its channel closes at once if it is gone.
const AFTER_KILLED: Duration = Duration::from_millis(300);

/// Ends the process groups of the sessions that have the same sshd as their parent: TERM, then KILL half a second
/// later.
///
/// sshd starts every session as the leader of its own group, so that the group of a child of `$PPID` is one session.
/// That the parent is a server that serves one connection (OpenSSH, dropbear) is looked at first: a shell that starts
/// after its connection is gone is a child of init, and the other children of init, or of a server that serves all its
/// connections, are other people's work. `exec sh -c` makes it the same line for every login shell. `/proc`
/// first: small systems have no `ps`, or one without `ppid`. A `sleep` that takes no fractions is one that fails, and
/// then a whole second is waited.
pub const KILL_LINE: &str = concat!(
    r#"exec sh -c 'u=$PPID; [ "$u" -gt 1 ] || exit 1; "#,
    r#"if [ -r /proc/$u/comm ]; then read -r c </proc/$u/comm; else c=$(ps -o comm= -p "$u"); fi; "#,
    r#"case ${c##*/} in sshd*|dropbear*) ;; *) exit 1;; esac; "#,
    r#"g() { if [ -r /proc/self/stat ]; then "#,
    r#"for f in /proc/[0-9]*/stat; do read -r l <"$f" || continue; set -- "${l%% *}" ${l##*") "}; "#,
    r#"[ "$3" = "$u" ] && [ "$1" != "$$" ] && echo "$4"; done; "#,
    r#"else ps -A -o pid= -o ppid= -o pgid= | while read -r p q r; do "#,
    r#"[ "$q" = "$u" ] && [ "$p" != "$$" ] && echo "$r"; done; fi; }; "#,
    r#"for s in TERM KILL; do for p in $(g); do kill -"$s" "-$p"; done; "#,
    r#"[ $s = KILL ] || sleep 0.5 || sleep 1; done' 2>/dev/null"#,
);

/// A request that is being stopped.
#[derive(Debug)]
pub(super) struct Killing {
    pub(super) reason: Reason,
    step: Step,
    pub(super) next_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The command was asked to end.
    Asked,
    /// A second channel is at it.
    Forced(Option<ChannelId>),
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// Stops this job, whatever it is doing.
    pub(super) fn cancel<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, reason: Reason) {
        if self.killing.is_some() || matches!(self.phase, Phase::Over) {
            return;
        }
        self.flight.note(cx.now, Kind::Cancel.alone());
        let mut killing = Killing {
            reason,
            step: Step::Asked,
            next_at: cx.now + AFTER_SIGNAL,
        };
        if let Phase::Local(key) = self.phase {
            match self.child {
                None => cx.links.kill(key, links::Kill::Term),
                Some(_) if self.openssh_may_have_run() => {
                    // ssh has no way to pass a signal on.
                    cx.links.kill(key, links::Kill::Remote);
                    killing.step = Step::Forced(None);
                    killing.next_at = cx.now + AFTER_KILLER;
                }
                Some(_) => return self.cancelled(cx, reason),
            }
        } else if self.may_run() && self.may_have_begun(cx) {
            let Phase::Session(session) = &self.phase else {
                return;
            };
            let channel = session.channel;
            self.with_client(cx, |client| {
                channel
                    .into_iter()
                    .for_each(|channel| client.signal(channel, "TERM"));
            });
        } else {
            return self.cancelled(cx, reason);
        }
        self.drain(cx);
        self.killing = Some(killing);
    }

    /// Whether the server may have been told of the command: while a login waits for us, it was not.
    fn may_have_begun<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>) -> bool {
        let Phase::Session(session) = &self.phase else {
            return false;
        };
        let client = cx.links.client(session.key);
        let (Some(client), Some(channel)) = (client, session.channel) else {
            return true;
        };
        client.may_have_run(channel)
    }

    pub(super) fn continue_killing<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Some(killing) = &self.killing else { return };
        if killing.next_at > cx.now {
            return;
        }
        let (reason, step) = (killing.reason, killing.step);
        match step {
            Step::Asked if self.stage == Stage::Auth => {
                // A login that is not answered: whether the command went along with it, the client knows.
                let may_have_run = self.abandon(cx);
                self.finish_killed(cx, reason, !may_have_run);
            }
            Step::Asked => {
                let channel = self.force(cx);
                self.killing = Some(Killing {
                    reason,
                    step: Step::Forced(channel),
                    next_at: cx.now + AFTER_KILLER,
                });
            }
            Step::Forced(_) => self.finish_killed(cx, reason, false),
        }
    }

    /// Drops the connection; returns whether the server may run the command all the same.
    fn abandon<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>) -> bool {
        let Phase::Session(session) = &self.phase else {
            return false;
        };
        let Some(client) = cx.links.client(session.key) else {
            return true;
        };
        client.connection_lost();
        let mut may_have_run = false;
        while let Some(said) = client.poll_event() {
            if let Event::ChannelFailed {
                may_have_run: may, ..
            } = said
            {
                may_have_run |= may;
            }
        }
        cx.shared.by_link.remove(&session.key);
        cx.links.abort(session.key);
        may_have_run
    }

    fn force<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) -> Option<ChannelId> {
        match &self.phase {
            Phase::Local(key) => cx.links.kill(*key, links::Kill::Kill),
            Phase::Session(session) => {
                let now = cx.now;
                let command = Bytes::from_static(KILL_LINE.as_bytes());
                let client = cx.links.client(session.key)?;
                return Some(client.exec(
                    now,
                    Exec {
                        command,
                        env: Vec::new(),
                        stdin: Stdin::Closed,
                    },
                ));
            }
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => {}
            Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => {}
        }
        None
    }

    /// The second channel has done its work, or was refused: nothing more can be done.
    pub(super) fn killer_over(&mut self) {
        if let Some(Killing {
            step: Step::Forced(_),
            next_at,
            ..
        }) = &mut self.killing
        {
            *next_at = (*next_at).min(self.last_heard + AFTER_KILLED);
        }
    }

    /// The end of a stopped request; `gone` if the command is known to have ended.
    pub(super) fn finish_killed<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        reason: Reason,
        gone: bool,
    ) {
        // What it ended with says nothing about the command: some answer TERM with 0. It was stopped.
        self.ended.rc = None;
        if !gone {
            cx.shared.left_running.push(self.request.id);
        }
        self.say_dropped(cx);
        self.cancelled(cx, reason);
    }
}
