//! `--transport openssh`: the system's `ssh` as a process of its own, with the deadlines, the stages and the ends of a
//! connection of this program. Decides when it may start and what its log means for the request; how it is called is
//! decided outside.

mod log;
mod verdict;

use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::Printable;

use super::job::{Ended, Job};
use super::phase::Phase;
use super::shared::Context;
use super::{Event, Level, Links, OpenSsh, Stage, Status, StreamKind};
pub use log::LOG_VERBOSE;
use log::Log;

/// What ssh may write to standard error before it has a session and still be asked for the reason of its failure; more
/// is a proxy that chatters, and is passed on as what it is.
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
    /// What came on standard error before there was a session.
    held: Vec<Bytes>,
    held_len: usize,
    /// The end of what came there: of a lost connection ssh speaks to people, not to its log.
    last_words: Vec<u8>,
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
            held: Vec::new(),
            held_len: 0,
            last_words: Vec::new(),
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
                self.fail(cx, Status::Unreachable, Stage::Dns, message);
            }
        }
    }

    /// More of ssh's log.
    pub(super) fn openssh_log<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, pid: u32, data: &[u8]) {
        self.heard(cx);
        let Some(child) = &mut self.child else { return };
        child.pid = pid;
        child.log.read(pid, data);
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
                Stage::Kex => self.timings.kex = Some(took),
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

    /// ssh, or the command through it, wrote something.
    pub(super) fn openssh_output<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        stream: StreamKind,
        data: Bytes,
    ) {
        if let Some(child) = &mut self.child
            && stream == StreamKind::Stderr
        {
            child.last_words.extend_from_slice(&data);
            let excess = child.last_words.len().saturating_sub(MAX_LAST_WORDS);
            child.last_words.drain(..excess);
        }
        let is_before = self.stage < Stage::Command && stream == StreamKind::Stderr;
        if let Some(child) = &mut self.child
            && is_before
            && child.held_len < MAX_HELD
        {
            child.held_len += data.len();
            child.held.push(data);
            return;
        }
        self.pass_held(cx);
        self.pass_on(cx, stream, data);
    }

    fn pass_held<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let held = self.child.as_mut().map(|child| std::mem::take(&mut child.held));
        for data in held.unwrap_or_default() {
            self.pass_on(cx, StreamKind::Stderr, data);
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
        if let Some(killing) = &self.killing {
            let (reason, gone) = (killing.reason, is_known || !child.log.sent);
            return self.finish_killed(cx, reason, gone);
        }
        if child.log.sent {
            // Of a session that was never opened there is nothing on standard error but ssh's words.
            self.pass_held(cx);
        }
        let Some(child) = &mut self.child else { return };
        let held = match child.log.sent {
            true => last_words(&child.last_words).to_vec(),
            false => child.held.concat(),
        };
        let lines = String::from_utf8_lossy(&held);
        let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
        let said: Vec<String> = lines.map(|line| Printable::new(line).to_string()).collect();
        let notes: Vec<String> = said.iter().chain(&child.log.words).cloned().collect();
        let verdict = verdict::verdict(&child.log, (rc, signal), &said, self.request.missing_status);
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
        match verdict.error {
            Some(failure) if verdict.may_pass => self.fail_or_retry(cx, verdict.status, failure),
            error => self.finish(cx, verdict.status, error),
        }
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

/// The last line, if it is one of those that ssh writes to standard error when it loses a connection. Its log says
/// nothing then; a command that writes the same before it is lost is hardly told apart, and nothing depends on it.
fn last_words(stderr: &[u8]) -> &[u8] {
    let end = stderr.trim_ascii_end();
    let start = memchr::memrchr(b'\n', end).map_or(0, |at| at + 1);
    let line = end.get(start..).unwrap_or_default();
    match line.starts_with(b"Connection to ") || line.starts_with(b"Shared connection to ") {
        true => line,
        false => &[],
    }
}
