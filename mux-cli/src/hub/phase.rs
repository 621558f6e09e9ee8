//! Where a request is on its way, and what it holds there: places, links, a session. Gives back what it holds; decides
//! nothing else.

use std::hash::Hash;

use mux_ssh::client::ChannelId;

use super::Links;
use super::pace::Door;
use super::parked::Parked;
use super::race::Race;
use super::retry::Pause;
use super::shared::Context;

/// `SSH_DISCONNECT_BY_APPLICATION` (RFC 4253, section 11.1).
const BY_APPLICATION: u32 = 11;

/// Where a job is.
#[derive(Debug)]
pub(super) enum Phase<K> {
    /// The outside gathers keys and memory.
    Preparing,
    /// The outside looks the name up.
    Resolving,
    /// TCP connections are on their way to one address or several.
    Connecting(Race<K>),
    /// One connection stands.
    Session(Session<K>),
    /// A shell on this machine.
    Local(K),
    /// A person looks at the host's key.
    Parked(Parked),
    /// It failed, and is tried again after a pause.
    Pausing(Pause),
    /// Finished.
    Over,
}

/// The connection that won.
#[derive(Debug)]
pub(super) struct Session<K> {
    pub(super) key: K,
    pub(super) door: Door,
    /// The command's; a connection for others has none.
    pub(super) channel: Option<ChannelId>,
    /// Still counts as an unauthenticated handshake of its endpoint.
    pub(super) unauthenticated: bool,
    /// Whether the command may have run, once the client has said that the connection took it along.
    pub(super) lost: Option<bool>,
    /// The key that signed, with the command behind it, and had no answer.
    pub(super) unanswered: Option<usize>,
    /// The server was asked to prove that it has further host keys, and has not answered.
    pub(super) proving: bool,
}

impl<K: Copy + Eq + Hash> Session<K> {
    /// Says goodbye if there still is somebody to say it to.
    pub(super) fn release<L: Links<Key = K>>(self, cx: &mut Context<'_, L>) {
        if self.unauthenticated {
            cx.shared.endpoints.leave(self.door);
        } else {
            cx.shared.endpoints.end(self.door);
        }
        if cx.shared.by_link.remove(&self.key).is_some() {
            say_goodbye(cx.links, self.key);
        }
    }
}

/// Ends a connection that nobody needs any more.
pub(crate) fn say_goodbye<L: Links>(links: &mut L, key: L::Key) {
    if let Some(client) = links.client(key) {
        client.disconnect(BY_APPLICATION, "");
    }
}
