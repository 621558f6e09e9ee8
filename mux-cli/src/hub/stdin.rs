//! What a command reads, as far as the hub has to do with it: it asks the outside for the next bytes where there is
//! room for them, and says at the end how far a command has come. It keeps no byte and reads nothing.
//!
//! Every host has a pace of its own: nothing is asked for before the one before was answered and the server, or the
//! pipe of a local command, takes more.

use std::hash::Hash;

use bytes::Bytes;

use super::job::Job;
use super::phase::Phase;
use super::shared::Context;
use super::{Action, Links, Wish};

/// What is sent before a server has opened the session: mux-ssh sends no more ahead, and what was sent so far can be
/// asked for again if the login has to start over.
const AHEAD: usize = 16 * 1024;

/// What is asked for at once: half of what may wait on a channel, so that one half is on its way while the other is
/// fetched.
const PIECE: usize = 64 * 1024;

/// How far the input of a command has come.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// Bytes that it was given.
    given: u64,
    /// The outside was asked and has not answered.
    is_asked: bool,
    /// It was given the last byte.
    is_ended: bool,
    /// Its session is open: it can't start over.
    is_open: bool,
    /// Bytes that it was given and that had not left when it ended.
    pub(super) unsent: usize,
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// The session is open.
    pub(super) fn open_stdin<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        self.feed.is_open = true;
        self.want_stdin(cx);
    }

    /// Asks for more, if there is room for more.
    pub(super) fn want_stdin<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if !self.request.stdin || self.feed.is_asked || self.feed.is_ended || self.killing.is_some() {
            return;
        }
        let room = self.stdin_room(cx).min(PIECE);
        if room == 0 {
            return;
        }
        self.feed.is_asked = true;
        let wish = Wish {
            position: self.feed.given,
            room,
            may_restart: !self.feed.is_open,
        };
        self.ask(cx, Action::Feed(wish));
    }

    fn stdin_room<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>) -> usize {
        match &self.phase {
            Phase::Session(_) if !self.feed.is_open => {
                AHEAD.saturating_sub(usize::try_from(self.feed.given).unwrap_or(AHEAD))
            }
            Phase::Session(session) => {
                let client = cx.links.client(session.key).zip(session.channel);
                client.map_or(0, |(client, channel)| client.stdin_room(channel))
            }
            // Before the server runs the command, ssh would only keep it, and another try could not have it again.
            Phase::Local(_) if !self.feed.is_open => 0,
            Phase::Local(key) => cx.links.local_room(*key),
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => 0,
            Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => 0,
        }
    }

    /// The outside has more, at most what was asked for, or nothing: then that was all.
    pub(super) fn fed<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>, data: Bytes) {
        if !std::mem::take(&mut self.feed.is_asked) {
            return;
        }
        self.feed.given += data.len() as u64;
        self.feed.is_ended = data.is_empty();
        match &self.phase {
            Phase::Session(session) => {
                let Some(channel) = session.channel else { return };
                self.with_client(cx, |client| match data.is_empty() {
                    true => client.finish_stdin(channel),
                    false => {
                        // A command that is over takes nothing, and its end is on its way to us.
                        if let Err(error) = client.write_stdin(channel, data) {
                            log::debug!("standard input: {error}");
                        }
                    }
                });
            }
            Phase::Local(key) => cx.links.local_write(*key, data),
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => {}
            Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => {}
        }
        self.want_stdin(cx);
    }

    /// The command has ended: what it has not taken by now, it never will.
    pub(super) fn note_unsent<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if let Phase::Session(session) = &self.phase
            && let Some(client) = cx.links.client(session.key)
            && let Some(channel) = session.channel
        {
            self.feed.unsent = self.feed.unsent.max(client.stdin_unsent(channel));
        }
    }

    /// The end of the request, or of a try: says how far it has come.
    pub(super) fn close_stdin<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        if !self.request.stdin {
            return;
        }
        self.note_unsent(cx);
        let feed = std::mem::take(&mut self.feed);
        // What was sent ahead of a session that was never opened has reached no command.
        let action = Action::FeedOver {
            taken: match feed.is_open {
                true => feed.given.saturating_sub(feed.unsent as u64),
                false => 0,
            },
            whole: feed.is_open && feed.is_ended && feed.unsent == 0,
        };
        self.ask(cx, action);
    }
}
