//! What the outside of a hub has to know about a target: whose it is, how people call it, and what its host key has to
//! be. Decides nothing.

use std::sync::Arc;

use mux_ssh::algorithms::KeyType;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{Gone, HostId, Verdict};

use super::profile::Profile;
use super::settings::Prepared as Target;
use crate::state::Server;
use crate::targets::Target as Typed;

/// What the outside has to know about a target.
#[derive(Debug)]
pub(crate) struct Known {
    pub(super) host: HostId,
    pub(super) profile: Arc<Profile>,
    pub(super) server: Server,
    pub(super) user: String,
    /// As it was asked for.
    pub(super) shown: Typed,
    /// The key by which it was known, if that was no certificate.
    pub(super) accepted: Option<PublicKey>,
    /// Keys in its file that it does not have any more, as it says; it is still to prove that it has the others.
    pub(super) gone: Vec<Gone>,
    /// Keys that it has shown to somebody who wants to learn them all, and what is known of each.
    pub(super) seen: Vec<(PublicKey, Verdict)>,
    /// The types that it was asked for besides.
    pub(super) tried: Vec<KeyType>,
    /// Why one of its keys was not written down.
    pub(super) not_written: Option<String>,
    /// It is only on the way to others.
    pub(super) is_hop: bool,
    /// The types of host key that the server was asked for first, until it is asked for others.
    pub(super) asked_for: Option<Vec<KeyType>>,
}

impl Known {
    pub(crate) fn new(target: &Target, shown: &Typed) -> Self {
        let server = Server {
            address: target.request.address.clone(),
            port: target.request.port,
            way: target.way.clone(),
        };
        Self {
            host: target.host_key_name.clone(),
            profile: Arc::clone(&target.profile),
            server,
            user: target.request.user.clone(),
            shown: shown.clone(),
            accepted: None,
            gone: Vec::new(),
            seen: Vec::new(),
            tried: Vec::new(),
            not_written: None,
            is_hop: false,
            asked_for: None,
        }
    }

    /// Everything that people may call it.
    pub(super) fn names(&self) -> Vec<String> {
        let plain = [&self.shown.host, &self.server.address];
        let filed = plain.map(|name| HostId::new(name, self.server.port));
        let filed = filed.iter().chain([&self.host]).flat_map(HostId::names);
        let mut names: Vec<String> = filed.map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
