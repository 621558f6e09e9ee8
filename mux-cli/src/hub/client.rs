//! The client of a connection: what it is told before it has said a word, from the request, from what is known about the
//! target, and from what an earlier connection has taught. Decides nothing that happens later.

use std::hash::Hash;

use mux_ssh::Client;
use mux_ssh::client::{ChannelId, ClientConfig, Exec, Stdin};

use super::job::Job;
use super::shared::Context;
use super::{Links, SshOptions, Transport};

impl<K: Copy + Eq + Hash> Job<K> {
    /// A client that has said nothing, and the channel of the command, if it is for one.
    pub(super) fn client<L: Links<Key = K>>(&self, cx: &Context<'_, L>) -> (Client, Option<ChannelId>) {
        let none;
        let options: &SshOptions = match &self.request.transport {
            Transport::Ssh(options) => options,
            Transport::Local | Transport::OpenSsh(_) => {
                none = SshOptions::default();
                &none
            }
        };
        let caution = self.caution;
        let identities = self.prepared.keys.iter().map(|offer| {
            let mut identity = offer.identity.clone();
            identity.proven &= !caution.step_by_step;
            identity
        });
        let mut client = Client::new(ClientConfig {
            user: self.request.user.clone(),
            algorithms: options.algorithms.clone(),
            known_host_key_types: self.prepared.known_host_key_types.clone(),
            known_authority: self.prepared.known_authority,
            identities: identities.collect(),
            methods: options.methods.clone(),
            memory: if caution.no_guess {
                None
            } else {
                self.prepared.memory.clone()
            },
            keepalive: options.keepalive,
            rekey: options.rekey,
            spare: self.request.like.is_some(),
            cautious: caution.step_by_step,
            doubted: caution.doubted,
            host_keys: options.further_host_keys,
            accept_none: true,
        });
        client.limit_windows(cx.shared.max_window);
        if self.is_hop() {
            return (client, None);
        }
        let channel = client.exec(cx.now, self.exec());
        (client, Some(channel))
    }

    /// The command, as a client wants it.
    pub(super) fn exec(&self) -> Exec {
        Exec {
            command: self.request.command.clone(),
            env: [&*self.request.env, &*self.request.env_by_habit].concat(),
            stdin: match self.request.stdin {
                true => Stdin::Open,
                false => Stdin::Closed,
            },
        }
    }
}
