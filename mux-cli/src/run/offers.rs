//! Which keys are offered to a target, in which order: files and agent put together as ssh does it. Decides order and
//! what is left out; reads files only through the keyring and asks the agent through its listing.

use std::sync::Arc;

use mux_ssh::Printable;
use mux_ssh::algorithms::{KeyType, PublicKeyAlgorithm};
use mux_ssh::client::Identity;
use mux_ssh::config::{Origin, Sourced};
use mux_ssh::keys::PublicKey;

use super::agents::Held;
use super::settings::Profile;
use crate::hub::{KeyId, Offer};
use crate::keyring::{Keyring, Unusable};

/// The keys of all targets with one profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    keys: Vec<KeyId>,
    pub(crate) skipped: Vec<String>,
    /// What is wrong with files that somebody named: to be said even if another key works.
    pub(crate) complaints: Vec<String>,
    /// The same of files that may well be nowhere: an agent that has such a key is enough, and without it the login
    /// fails and says so.
    pub(crate) remarks: Vec<String>,
    /// Keys in files that somebody named, and how to call them if they turn out to be of no use.
    named: Vec<(KeyId, String)>,
}

impl Offers {
    /// As `pubkey_prepare` of OpenSSH orders them: keys of the agent that are also named, in the agent's order; its
    /// others; named ones that it does not have.
    pub(crate) fn new(profile: &Profile, agent: Option<(&Arc<str>, &Held)>, keyring: &mut Keyring) -> Self {
        let mut offers = Self::default();
        if let Some(reason) = &profile.keys_off {
            offers.skipped.push(reason.clone());
            return offers;
        }
        let mut files = offers.files(profile, keyring);
        let mut others = Vec::new();
        match agent {
            Some((socket, Ok(identities))) => {
                for identity in identities {
                    let named = files
                        .iter()
                        .position(|(key, _)| keyring.public(*key) == Some(&identity.key));
                    match named {
                        Some(at) => {
                            let (_, path) = files.remove(at);
                            offers.keys.push(keyring.agent(socket, identity, Some(path)));
                        }
                        None if !profile.identities_only => {
                            others.push(keyring.agent(socket, identity, None))
                        }
                        None => {}
                    }
                }
            }
            Some((_, Err(reason))) => offers.skipped.push(reason.clone()),
            None => {}
        }
        offers.keys.append(&mut others);
        for (key, _) in files {
            if keyring.is_public_only(key) {
                offers.skip(key, keyring, "only the public half, and no agent has the other");
            } else {
                offers.keys.push(key);
            }
        }
        offers.leave_out(profile, keyring);
        offers
    }

    fn files<'a>(&mut self, profile: &'a Profile, keyring: &mut Keyring) -> Vec<(KeyId, &'a str)> {
        let mut files = Vec::new();
        let mut all_defaults = true;
        for file in &profile.identity_files {
            let name = called(file);
            all_defaults &= name.is_none();
            match keyring.file(&file.value) {
                Ok(key) if files.iter().all(|(known, _)| *known != key) => {
                    files.push((key, file.value.as_str()));
                    self.named.extend(name.map(|name| (key, name)));
                }
                Ok(_) => {}
                Err(Unusable::Missing(_)) if name.is_none() => {}
                Err(why) => {
                    let is_remark = matches!(why, Unusable::Missing(_)) && file.origin != Origin::CommandLine;
                    let (Unusable::Missing(reason) | Unusable::Because(reason)) = why;
                    let list = match is_remark {
                        true => &mut self.remarks,
                        false => &mut self.complaints,
                    };
                    list.extend(name.map(|name| format!("{name} not used: {reason}")));
                    let path = Printable::new(&file.value);
                    self.skipped.push(format!("{path}: {reason}"));
                }
            }
        }
        if all_defaults {
            // Nobody has chosen an order, and an RSA signature costs fifty times one by Ed25519.
            files.sort_by_key(|(key, _)| {
                keyring
                    .public(*key)
                    .is_some_and(|key| key.key_type() == KeyType::Rsa)
            });
        }
        files
    }

    fn leave_out(&mut self, profile: &Profile, keyring: &Keyring) {
        for key in std::mem::take(&mut self.keys) {
            match keyring.public(key).map(|public| reason_against(public, profile)) {
                Some(Some(reason)) => self.skip(key, keyring, &reason),
                Some(None) => self.keys.push(key),
                None => {}
            }
        }
    }

    fn skip(&mut self, key: KeyId, keyring: &Keyring, reason: &str) {
        self.skipped.push(format!("{}: {reason}", keyring.label(key)));
        self.complaints.extend(self.complaint(key, reason));
    }

    /// What to say about a key in a file that somebody named and that turns out to be of no use.
    pub(crate) fn complaint(&self, key: KeyId, reason: &str) -> Option<String> {
        let (_, name) = self.named.iter().find(|(known, _)| *known == key)?;
        Some(format!("{name} not used: {reason}"))
    }

    /// The keys for one target; `worked` is the fingerprint of the one that it took last time, which goes first and
    /// signs without asking. So does the only key, if it can sign without anybody's help.
    pub(crate) fn for_target(&self, worked: Option<&str>, keyring: &Keyring) -> Vec<Offer> {
        let mut offers: Vec<Offer> = self
            .keys
            .iter()
            .filter_map(|key| offer(*key, worked, keyring))
            .collect();
        if let [only] = offers.as_mut_slice() {
            only.identity.proven |= keyring.signs_at_once(only.key);
        }
        offers.sort_by_key(|offer| !offer.identity.proven);
        offers
    }
}

/// What a file is called if it is of no use, with the line that names it; `None`: it is a default, nobody named it.
fn called(file: &Sourced<String>) -> Option<String> {
    let path = Printable::new(&file.value);
    match &file.origin {
        Origin::Default => None,
        Origin::CommandLine => Some(format!("identity file {path}")),
        Origin::File { .. } => Some(format!("{}: identity file {path}", file.origin)),
    }
}

fn offer(key: KeyId, worked: Option<&str>, keyring: &Keyring) -> Option<Offer> {
    let public = keyring.public(key)?;
    let proven = worked.is_some() && worked == keyring.fingerprint(key);
    let identity = Identity {
        key: public.clone(),
        certificate: None,
        proven,
        hardware: false,
    };
    Some(Offer {
        identity,
        key,
        label: keyring.label(key),
    })
}

/// Why the configuration forbids a key, if it does.
fn reason_against(key: &PublicKey, profile: &Profile) -> Option<String> {
    let accepts = |algorithm: &PublicKeyAlgorithm| algorithm.key_type() == key.key_type();
    if !profile.accepted.iter().any(accepts) {
        return Some("not among PubkeyAcceptedAlgorithms".to_owned());
    }
    let bits = key.rsa_bits().filter(|bits| *bits < profile.rsa_bits)?;
    Some(format!(
        "{bits} bits, and RequiredRSASize is {}",
        profile.rsa_bits
    ))
}
