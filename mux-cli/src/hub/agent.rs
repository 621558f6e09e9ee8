//! The user's agent at the command's disposal: asked for once the host's key is known to be the right one, and connected
//! when the server wants it. Decides whether; moves no byte.

use std::hash::Hash;
use std::sync::Arc;

use mux_ssh::client::ChannelId;

use super::job::Job;
use super::phase::Phase;
use super::shared::Context;
use super::{Level, Links, Transport};

impl<K: Copy + Eq + Hash> Job<K> {
    /// The host is who it should be: its command may use the agent, if that was asked for.
    pub(super) fn forward_agent<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>) {
        // Nothing runs on a jump host.
        if let Phase::Session(session) = &self.phase
            && !self.is_hop()
            && let Some(channel) = session.channel
            && self.forwarded().is_some()
        {
            self.with_client(cx, |client| client.forward_agent(channel));
        }
    }

    /// Nobody knows who that host is: it gets no agent, whatever was asked for.
    pub(super) fn withhold_agent<L: Links<Key = K>>(&self, cx: &mut Context<'_, L>) {
        if self.forwarded().is_some() {
            let text = "the agent is not forwarded: the host key is not the one that is known";
            self.notice(cx, Level::Warning, text.to_owned());
        }
    }

    /// The server has opened a channel to the agent, which it could only because it may.
    pub(super) fn agent_opened<L: Links<Key = K>>(
        &self,
        cx: &mut Context<'_, L>,
        key: K,
        channel: ChannelId,
    ) {
        match self.forwarded() {
            Some(socket) => cx.links.forward_agent(key, channel, &socket),
            None => self.with_client(cx, |client| client.close_channel(channel)),
        }
    }

    /// The socket of the agent that the command may use.
    fn forwarded(&self) -> Option<Arc<str>> {
        match &self.request.transport {
            Transport::Ssh(options) => options.forward_agent.clone(),
            Transport::Local | Transport::OpenSsh(_) => None,
        }
    }
}
