//! `--transport openssh`: the system's `ssh` as a process of its own, with the deadlines, the stages and the ends of a
//! connection of this program. Decides when it may start and what its log means for the request; how it is called is
//! decided outside.

mod log;
mod verdict;

use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mux_ssh::Printable;

use super::job::{Ended, Job};
use super::phase::Phase;
use super::shared::Context;
use super::{Event, Level, Links, OpenSsh, Stage, Status, StreamKind, Transport};
pub use log::LOG_VERBOSE;
use log::Log;
use verdict::About;

/// What ssh and its proxy write to standard error before there is a session, and what is kept of it for the reason of a
/// failure: the end, since programs say last why they end.
const MAX_HELD: usize = 8 * 1024;

/// What a sentence about a lost connection may have: two names and some words.
const MAX_LAST_WORDS: usize = 600;

/// The system's `ssh`, as far as the hub knows about it.
#[derive(Debug)]
pub(super) struct Child {
    door: Arc<str>,
    log: Log,
    pid: u32,
    /// It has a place among those that run; otherwise it waits for one.
    is_placed: bool,
    logged_in: bool,
    /// What came on standard error before there was a session, and when.
    held: VecDeque<(Instant, Bytes)>,
    held_len: usize,
    /// The last line there, if it may be ssh's own: of a lost connection it speaks to people, not to its log.
    last_words: Bytes,
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// The first step: waits for a place.
    pub(super) fn begin_openssh<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, options: &OpenSsh) {
        cx.shared.events.push_back(Event::ViaOpenSsh {
            request: self.request.id,
            reason: options.reason.clone(),
        });
        let is_placed = cx.shared.children.enter(self.request.id, &options.door);
        self.child = Some(Child {
            door: Arc::clone(&options.door),
            log: Log::default(),
            pid: 0,
            is_placed,
            logged_in: false,
            held: VecDeque::new(),
            held_len: 0,
            last_words: Bytes::new(),
        });
        if is_placed {
            self.spawn_openssh(cx);
        }
    }

    /// A place has become free for this job.
    pub(super) fn granted_child<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Some(child) = &mut self.child {
            child.is_placed = true;
            self.spawn_openssh(cx);
        }
    }

    pub(super) fn spawn_openssh<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        match cx.links.spawn(&self.request) {
            Ok(key) => {
                cx.shared.by_link.insert(key, self.request.id);
                self.tries += 1;
                self.lacking = None;
                self.phase = Phase::Local(key);
                self.heard(cx);
                self.stage_since = cx.now;
                self.connect.start(cx.now);
            }
            // Those that run end sooner or later, and then there is room.
            Err(what) if what.is_shortage() && !cx.shared.by_link.is_empty() => self.lacks(cx, what),
            Err(why) => {
                let message = format!("could not start ssh: {why}");
                self.fail(cx, Status::Unreachable, Stage::Tcp, message);
            }
        }
    }

    /// More of ssh's log.
    pub(super) fn openssh_log<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, pid: u32, data: &[u8]) {
        self.heard(cx);
        let Some(child) = &mut self.child else { return };
        child.pid = pid;
        let was_sent = child.log.sent;
        child.log.read(pid, data);
        if child.log.sent && !was_sent {
            self.session_begins(cx);
        }
        self.follow_log(cx);
    }

    /// Goes where the log says that ssh is.
    fn follow_log<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Some(stage) = self.child.as_ref().and_then(|child| child.log.stage) else {
            return;
        };
        while self.stage < stage {
            let next = match self.stage {
                Stage::Dns => Stage::Tcp,
                Stage::Tcp => Stage::Banner,
                Stage::Banner => Stage::Kex,
                // ssh judges the key by itself, and then asks for the login.
                Stage::Kex | Stage::HostKey => Stage::Auth,
                Stage::Auth => Stage::Channel,
                Stage::Channel | Stage::Command => Stage::Command,
            };
            let took = self.reach(cx, next);
            match next {
                Stage::Dns | Stage::HostKey => {}
                Stage::Tcp => self.timings.dns = Some(took),
                Stage::Banner => self.timings.tcp = Some(took),
                Stage::Kex => {
                    self.timings.kex = Some(took);
                    if let Some(child) = &self.child {
                        cx.shared.children.answered(&child.door);
                    }
                }
                Stage::Auth => {
                    self.timings.kex = Some(self.timings.kex.unwrap_or_default() + took);
                    self.connect.stop(cx.now);
                    self.login.start(cx.now);
                }
                Stage::Channel => {
                    self.timings.auth = Some(took);
                    self.child_logged_in(cx);
                }
                Stage::Command => self.openssh_begun(cx),
            }
        }
    }

    fn child_logged_in<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Some(child) = &mut self.child
            && !std::mem::replace(&mut child.logged_in, true)
        {
            cx.shared.children.logged_in(&child.door);
        }
    }

    /// The server runs the command: from here on its own time counts.
    fn openssh_begun<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.login.stop(cx.now);
        self.command_deadline = self.request.command_timeout.map(|limit| cx.now + limit);
        self.pass_held(cx);
        self.open_stdin(cx);
    }

    /// The command is handed over just now: what was read on standard error before is none of its output. What was read
    /// with the log itself may be; in which order both were written can't be seen.
    fn session_begins<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Some(child) = &mut self.child else { return };
        let earlier = child.held.iter().take_while(|(at, _)| *at < cx.now).count();
        let earlier = child.held.drain(..earlier).map(|(_, data)| data).collect();
        self.noise(cx, earlier);
    }

    /// What ssh or its proxy said beside the connection: nothing that the command wrote.
    fn noise<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, pieces: Vec<Bytes>) {
        let text = pieces.concat();
        // The pipe may have as much again.
        self.allow(cx, StreamKind::Stderr, text.len());
        if let Some(child) = &mut self.child {
            child.held_len = child.held_len.saturating_sub(text.len());
        }
        for line in lines(&text) {
            self.notice(cx, Level::Verbose, format!("ssh: {line}"));
        }
    }

    /// ssh, or the command through it, wrote something.
    pub(super) fn openssh_output<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        stream: StreamKind,
        data: Bytes,
    ) {
        let Some(child) = &mut self.child else { return };
        match stream {
            // Nobody but a command writes there, whatever the log says.
            StreamKind::Stdout => child.log.sent = true,
            StreamKind::Stderr if self.stage < Stage::Command => {
                child.held_len += data.len();
                child.held.push_back((cx.now, data));
                return self.bound_held(cx);
            }
            StreamKind::Stderr => return self.openssh_stderr(cx, data),
        }
        self.pass_on(cx, stream, data);
    }

    /// Holds no more than is needed. What was read at this moment may be the command's, whose start would be read at this
    /// moment too: it is kept, which a moment's reading bounds.
    fn bound_held<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Some(child) = &mut self.child else { return };
        let was_sent = child.log.sent;
        let mut excess = Vec::new();
        let mut left = child.held_len;
        while left > MAX_HELD
            && let Some((_, piece)) = child.held.pop_front_if(|(at, _)| was_sent || *at < cx.now)
        {
            left -= piece.len();
            excess.push(piece);
        }
        if !was_sent {
            return self.noise(cx, excess);
        }
        child.held_len = left;
        for piece in excess {
            self.openssh_stderr(cx, piece);
        }
    }

    /// Passes on what the command wrote, but for a last line that may be ssh's.
    fn openssh_stderr<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, mut data: Bytes) {
        self.pass_last_words(cx);
        let kept = data.split_off(last_words(&data));
        if let Some(child) = &mut self.child {
            child.last_words = kept;
        }
        if !data.is_empty() {
            self.pass_on(cx, StreamKind::Stderr, data);
        }
    }

    fn pass_last_words<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let kept = self
            .child
            .as_mut()
            .map(|child| std::mem::take(&mut child.last_words));
        if let Some(kept) = kept.filter(|kept| !kept.is_empty()) {
            self.pass_on(cx, StreamKind::Stderr, kept);
        }
    }

    fn pass_held<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let held = self.child.as_mut().map(|child| std::mem::take(&mut child.held));
        for (_, data) in held.unwrap_or_default() {
            self.openssh_stderr(cx, data);
        }
    }

    /// ssh has ended, and all that it wrote was read.
    pub(super) fn openssh_exit<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        (rc, signal): (Option<i32>, Option<i32>),
    ) {
        let Some(child) = &mut self.child else { return };
        child.log.finish(child.pid);
        self.follow_log(cx);
        let Some(child) = &mut self.child else { return };
        let is_known = child.log.end.is_some();
        let was_sent = child.log.sent;
        if was_sent {
            self.pass_held(cx);
        }
        if is_known {
            // It was the command's, since ssh has nothing to complain about.
            self.pass_last_words(cx);
        }
        if let Some(killing) = &self.killing {
            let (reason, gone) = (killing.reason, is_known || !was_sent);
            return self.finish_killed(cx, reason, gone);
        }
        let Some(child) = &mut self.child else { return };
        let held = match was_sent {
            true => child.last_words.to_vec(),
            false => child.held.iter().flat_map(|(_, data)| data).copied().collect(),
        };
        let said = lines(&held);
        let notes: Vec<String> = said.iter().chain(&child.log.words).cloned().collect();
        let about = About {
            host: &self.request.host,
            asks_nobody: matches!(&self.request.transport, Transport::OpenSsh(ssh) if ssh.asks_nobody),
            missing: self.request.missing_status,
        };
        let verdict = verdict::verdict(&child.log, (rc, signal), &said, &about);
        if self.stage == Stage::Command {
            self.timings.run = Some(cx.now.saturating_duration_since(self.stage_since));
        }
        self.ended = Ended {
            rc: verdict.rc,
            signal: None,
        };
        // The message has the last of them.
        for line in notes {
            self.notice(cx, Level::Verbose, format!("ssh: {line}"));
        }
        let is_one_too_many = self.is_one_child_too_many(cx);
        match verdict.error {
            Some(failure) if verdict.may_pass && is_one_too_many => {
                self.turned_away(cx, verdict.status, failure);
            }
            Some(failure) if verdict.may_pass => self.fail_or_retry(cx, verdict.status, failure),
            error => self.finish(cx, verdict.status, error),
        }
    }

    /// Whether ssh was turned away at a door that is crowded by us. Of a connection that is another process nobody knows who
    /// ended it.
    fn is_one_child_too_many<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> bool {
        self.child.as_ref().is_some_and(|child| {
            let log = &child.log;
            let is_proxied = log.words.iter().any(|word| word.contains("UNKNOWN port"));
            let times = self.turned_away + 1;
            let children = &cx.shared.children;
            log.turned_away && !is_proxied && children.is_crowded(&child.door, log.says_too_many, times)
        })
    }

    /// The process is given up or has ended: its place is free.
    pub(super) fn release_child<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let Some(child) = self.child.take() else { return };
        if !child.is_placed {
            return cx.shared.children.give_up(self.request.id);
        }
        if !child.logged_in {
            cx.shared.children.logged_in(&child.door);
        }
        cx.shared.children.leave();
    }

    /// What was to end the command on its server has done its work, or was refused.
    pub(super) fn openssh_killer_over<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.heard(cx);
        self.killer_over();
    }

    /// Whether the server may have been told of the command.
    pub(super) fn openssh_may_have_run(&self) -> bool {
        self.child.as_ref().is_some_and(|child| child.log.sent)
    }
}

/// Where the last line begins, if it is one of those that ssh writes to standard error when it loses a connection; the
/// end otherwise. Its log says nothing then; of a command that writes the same, the end is known.
fn last_words(stderr: &[u8]) -> usize {
    let end = stderr.trim_ascii_end();
    let start = memchr::memrchr(b'\n', end).map_or(0, |at| at + 1);
    let line = stderr.get(start..).unwrap_or_default();
    let is_ssh = line.starts_with(b"Connection to ") || line.starts_with(b"Shared connection to ");
    match is_ssh && line.len() <= MAX_LAST_WORDS {
        true => start,
        false => stderr.len(),
    }
}

/// Lines as they can be shown, without empty ones.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| Printable::new(line).to_string()).collect()
}
