//! Output of a command on its way to whoever reads it. While the command runs, a reader that stands still slows it
//! down; once it is being stopped, nothing that nobody reads may hide that it has ended. Decides what is passed on
//! then; what is not is counted, and said when the request is over.

use std::hash::Hash;

use bytes::Bytes;
use mux_ssh::client;

use super::job::Job;
use super::phase::Phase;
use super::shared::Context;
use super::{Event, Level, Links, StreamKind};

/// Bytes that were passed on and not consumed, and those that were not passed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    stdout: usize,
    stderr: usize,
    dropped: u64,
}

impl Unread {
    fn of(&mut self, stream: StreamKind) -> &mut usize {
        match stream {
            StreamKind::Stdout => &mut self.stdout,
            StreamKind::Stderr => &mut self.stderr,
        }
    }
}

impl<K: Copy + Eq + Hash> Job<K> {
    /// The command wrote something.
    pub(super) fn pass_on<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        stream: StreamKind,
        data: Bytes,
    ) {
        if self.killing.is_some() {
            self.allow(cx, stream, data.len());
            // As much again as could be under way when it was stopped: what a server still holds of a command that is
            // gone is less, except of one that writes until it is killed.
            let most = usize::try_from(cx.shared.max_window).unwrap_or(usize::MAX);
            if self.unread.stdout + self.unread.stderr >= most.saturating_mul(2) {
                self.unread.dropped += data.len() as u64;
                return;
            }
        }
        *self.unread.of(stream) += data.len();
        cx.shared.events.push_back(Event::Output {
            request: self.request.id,
            stream,
            data,
        });
    }

    /// `count` bytes of output have found their place.
    pub(super) fn consume<L: Links<Key = K>>(
        &mut self,
        cx: &mut Context<'_, L>,
        stream: StreamKind,
        count: usize,
    ) {
        let unread = self.unread.of(stream);
        *unread = unread.saturating_sub(count);
        // What is being stopped was allowed them as they arrived.
        if self.killing.is_none() {
            self.allow(cx, stream, count);
        }
    }

    /// From now on everything that arrives is taken at once, so that its end arrives, too.
    pub(super) fn drain<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>) {
        self.allow(cx, StreamKind::Stdout, self.unread.stdout);
        self.allow(cx, StreamKind::Stderr, self.unread.stderr);
    }

    /// As many bytes may follow.
    pub(super) fn allow<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>, stream: StreamKind, count: usize) {
        match &self.phase {
            Phase::Session(session) => {
                let kind = match stream {
                    StreamKind::Stdout => client::StreamKind::Stdout,
                    StreamKind::Stderr => client::StreamKind::Stderr,
                };
                let channel = session.channel;
                self.with_client(cx, |client| {
                    channel
                        .into_iter()
                        .for_each(|channel| client.consume(channel, kind, count));
                });
            }
            Phase::Local(key) => cx.links.consume(*key, stream, count),
            Phase::Preparing | Phase::Resolving | Phase::Connecting(_) => {}
            Phase::Parked(_) | Phase::Pausing(_) | Phase::Over => {}
        }
    }

    /// Says what was not passed on.
    pub(super) fn say_dropped<L: Links<Key = K>>(&mut self, cx: &mut Context<'_, L>) {
        let dropped = std::mem::take(&mut self.unread.dropped);
        if dropped > 0 {
            let text = format!(
                "{dropped} bytes that it wrote while it was being stopped were dropped: nobody read them"
            );
            self.notice(cx, Level::Warning, text);
        }
    }
}
