//! Which keys are offered to a target, in which order: files and agent put together as ssh does it. Decides order and
//! what is left out; reads files only through the keyring and asks the agent through its listing.

use std::sync::Arc;

use mux_ssh::Printable;
use mux_ssh::agent::AgentIdentity;
use mux_ssh::algorithms::{KeyType, PublicKeyAlgorithm};
use mux_ssh::client::Identity;
use mux_ssh::config::{Origin, Sourced};
use mux_ssh::keys::{Certificate, PublicKey};

use super::agents::Held;
use super::profile::Profile;
use super::worked::Worked;
use crate::hub::{KeyId, Offer};
use crate::keyring::{Keyring, Unusable};

/// The keys of all targets with one profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    keys: Vec<KeyId>,
    /// Locked keys whose public half is not known: nothing can be offered of them before they are opened.
    hidden: Vec<KeyId>,
    pub(crate) skipped: Vec<String>,
    /// What is wrong with files that somebody named: to be said even if another key works.
    pub(crate) complaints: Vec<String>,
    /// The same of files that may well be nowhere: an agent that has such a key is enough, and without it the login
    /// fails and says so.
    pub(crate) remarks: Vec<String>,
    /// Keys in files that somebody named, and how to call them if they turn out to be of no use.
    named: Vec<(KeyId, String)>,
    /// The files that all this comes from.
    files: Vec<String>,
}

/// Something in a file that may be offered: a key, or the certificate of one.
struct Candidate {
    /// `None` where only a certificate was found.
    key: Option<KeyId>,
    certificate: Option<Arc<Certificate>>,
    path: String,
}

impl Candidate {
    fn blob<'a>(&'a self, keyring: &'a Keyring) -> Option<&'a [u8]> {
        match &self.certificate {
            Some(certificate) => Some(certificate.blob()),
            None => keyring.blob(self.key?),
        }
    }

    fn is_of(&self, key: &PublicKey, keyring: &Keyring) -> bool {
        let plain = self.key.filter(|_| self.certificate.is_none());
        plain.and_then(|plain| keyring.public(plain)) == Some(key)
    }
}

impl Offers {
    /// As `pubkey_prepare` of OpenSSH orders them: certificates that the configuration names; keys of the agent that are
    /// also named, in the agent's order; its others; named ones that it does not have, each with the certificate beside it.
    /// `now` is in seconds since 1970.
    pub(crate) fn new(
        profile: &Profile,
        agent: Option<(&Arc<str>, &Held)>,
        keyring: &mut Keyring,
        now: u64,
    ) -> Self {
        let mut offers = Self::default();
        if let Some(reason) = &profile.keys_off {
            offers.skipped.push(reason.clone());
            return offers;
        }
        let certificates = offers.certificates(profile, keyring);
        let mut files = offers.files(profile, keyring);
        match agent {
            Some((socket, Ok(identities))) => {
                let ours = |identity: &&AgentIdentity| {
                    let blob = Some(identity.blob());
                    certificates.iter().all(|named| named.blob(keyring) != blob)
                };
                let identities: Vec<&AgentIdentity> = identities.iter().filter(ours).collect();
                offers.of_agent(profile, (socket, &identities), &mut files, keyring);
            }
            Some((_, Err(reason))) => offers.skipped.push(reason.clone()),
            None => {}
        }
        for candidate in &files {
            offers.add_file(candidate, &files, keyring, now);
        }
        let behind = offers.keys.split_off(0);
        for candidate in &certificates {
            offers.add_certified(candidate, &behind, &files, keyring, now);
        }
        offers.keys.extend(behind);
        offers.leave_out(profile, keyring);
        offers
    }

    /// Takes what the agent has too out of `files`.
    fn of_agent(
        &mut self,
        profile: &Profile,
        (socket, identities): (&Arc<str>, &[&AgentIdentity]),
        files: &mut Vec<Candidate>,
        keyring: &mut Keyring,
    ) {
        let mut others = Vec::new();
        for identity in identities {
            let blob = Some(identity.blob());
            match files.iter().position(|file| file.blob(keyring) == blob) {
                Some(at) => {
                    let file = files.remove(at);
                    self.keys.push(keyring.agent(socket, identity, Some(&file.path)));
                }
                None if !profile.identities_only => others.push(keyring.agent(socket, identity, None)),
                None => {}
            }
        }
        self.keys.append(&mut others);
    }

    fn add_file(&mut self, file: &Candidate, files: &[Candidate], keyring: &mut Keyring, now: u64) {
        match (&file.certificate, file.key) {
            (Some(_), _) => {
                let agent = self.keys.clone();
                self.add_certified(file, &agent, files, keyring, now);
            }
            (None, Some(key)) => match keyring.lacks(key) {
                Some(reason) => self.skip(key, keyring, &reason),
                None if keyring.public(key).is_none() => {
                    let path = Printable::new(&file.path);
                    self.skipped.push(format!(
                        "{path}: encrypted, its public half too; ssh-keygen -y -f {path} > {path}.pub writes it beside"
                    ));
                    self.hidden.push(key);
                }
                None => self.keys.push(key),
            },
            (None, None) => {}
        }
    }

    /// Adds a certificate, if there is a key that can sign for it: one of those that are offered by themselves, as with
    /// ssh, or the one beside it.
    fn add_certified(
        &mut self,
        file: &Candidate,
        offered: &[KeyId],
        files: &[Candidate],
        keyring: &mut Keyring,
        now: u64,
    ) {
        let Some(certificate) = &file.certificate else {
            return;
        };
        let path = Printable::new(&file.path);
        let is_its = |key: &&KeyId| {
            keyring.certificate(**key).is_none() && keyring.public(**key) == Some(certificate.key())
        };
        let beside = || {
            files
                .iter()
                .find(|file| file.is_of(certificate.key(), keyring))?
                .key
        };
        let signer = offered.iter().find(is_its).copied().or_else(beside);
        let signer = signer.filter(|signer| keyring.lacks(*signer).is_none());
        let Some(signer) = signer else {
            return self
                .skipped
                .push(format!("{path}: no key that can sign for this certificate"));
        };
        let label = match certificate.check_time(now) {
            Ok(()) => path.to_string(),
            Err(refusal) => format!("{path} ({refusal})"),
        };
        self.keys.push(keyring.certified(certificate, signer, &label));
    }

    /// The certificates that the configuration names.
    fn certificates(&mut self, profile: &Profile, keyring: &mut Keyring) -> Vec<Candidate> {
        let mut certificates: Vec<Candidate> = Vec::new();
        for file in &profile.certificate_files {
            self.files.push(file.value.clone());
            match keyring.certificate_file(&file.value) {
                Ok(certificate) => certificates.push(Candidate {
                    key: None,
                    certificate: Some(certificate),
                    path: file.value.clone(),
                }),
                Err(why) => self.unusable(file, "certificate", why),
            }
        }
        certificates
    }

    fn files(&mut self, profile: &Profile, keyring: &mut Keyring) -> Vec<Candidate> {
        let mut files: Vec<Candidate> = Vec::new();
        let mut all_defaults = true;
        for file in &profile.identity_files {
            let name = called(file, "identity file");
            all_defaults &= name.is_none();
            self.files.push(file.value.clone());
            let key = match keyring.file(&file.value) {
                Ok(key) if files.iter().any(|known| known.key == Some(key)) => continue,
                Ok(key) => {
                    self.named.extend(name.map(|name| (key, name)));
                    Some(key)
                }
                Err(Unusable::Missing(_)) if name.is_none() => None,
                Err(why) => {
                    self.unusable(file, "identity file", why);
                    None
                }
            };
            files.extend(key.map(|key| Candidate {
                key: Some(key),
                certificate: None,
                path: file.value.clone(),
            }));
            if profile.certificate_files.is_empty() {
                files.extend(self.beside(&file.value, key, keyring));
            }
        }
        if all_defaults {
            // Nobody has chosen an order: certificates first, as ssh does it, and RSA last, of which a signature costs
            // fifty times one by Ed25519.
            files.sort_by_key(|file| {
                let key = file.key.and_then(|key| keyring.public(key));
                let is_rsa = key.is_some_and(|key| key.key_type() == KeyType::Rsa);
                (file.certificate.is_none(), is_rsa)
            });
        }
        files
    }

    /// The certificate beside a key, `-cert.pub` for which nobody has to name it.
    fn beside(&mut self, path: &str, key: Option<KeyId>, keyring: &mut Keyring) -> Option<Candidate> {
        let path = format!("{path}-cert.pub");
        let read = keyring.certificate_file(&path);
        self.files.push(path.clone());
        match read {
            Ok(certificate) => Some(Candidate {
                key,
                certificate: Some(certificate),
                path,
            }),
            Err(Unusable::Missing(_)) => None,
            Err(Unusable::Because(reason)) => {
                let path = Printable::new(&path);
                self.complaints.push(format!("{path} not used: {reason}"));
                self.skipped.push(format!("{path}: {reason}"));
                None
            }
        }
    }

    /// A file that is of no use.
    fn unusable(&mut self, file: &Sourced<String>, what: &str, why: Unusable) {
        let is_remark = matches!(why, Unusable::Missing(_)) && file.origin != Origin::CommandLine;
        let (Unusable::Missing(reason) | Unusable::Because(reason)) = why;
        let list = match is_remark {
            true => &mut self.remarks,
            false => &mut self.complaints,
        };
        list.extend(called(file, what).map(|name| format!("{name} not used: {reason}")));
        let path = Printable::new(&file.value);
        self.skipped.push(format!("{path}: {reason}"));
    }

    /// Whether a key has been opened since, so that there is more to offer.
    pub(crate) fn has_opened(&self, keyring: &Keyring) -> bool {
        self.hidden.iter().any(|key| !keyring.is_locked(*key))
    }

    /// Whether all this is still what the files say. Asks the system for each of them.
    pub(crate) fn is_as_on_disk(&self, keyring: &Keyring) -> bool {
        !self.files.iter().any(|path| keyring.has_changed(path))
    }

    /// A key that has to be opened before anything can be offered of it, if it is the only one or one that somebody named.
    pub(crate) fn to_open_first(&self) -> Option<KeyId> {
        let is_wanted =
            |key: &&KeyId| self.keys.is_empty() || self.named.iter().any(|(named, _)| named == *key);
        self.hidden.iter().find(is_wanted).copied()
    }

    fn leave_out(&mut self, profile: &Profile, keyring: &Keyring) {
        let mut refused = Vec::new();
        for key in std::mem::take(&mut self.keys) {
            let certified = keyring.certificate(key).is_some();
            match keyring
                .public(key)
                .map(|public| reason_against(public, certified, profile))
            {
                Some(Some(reason)) => refused.push((key, reason)),
                Some(None) => self.keys.push(key),
                None => {}
            }
        }
        for (key, reason) in refused {
            // It is of use all the same if it signs for a certificate of its own.
            let signs = |other: &KeyId| *other != key && keyring.signer(*other) == key;
            match self.keys.iter().any(signs) {
                true => self.skipped.push(format!("{}: {reason}", keyring.label(key))),
                false => self.skip(key, keyring, &reason),
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

    /// The keys for one target; `worked` is what was remembered of the one that it took last time. If the target has
    /// refused all that would be shown before that one, it goes first and signs without asking. So does the only key, if it
    /// can sign without anybody's help.
    pub(crate) fn for_target(&self, worked: Option<&str>, keyring: &Keyring) -> Vec<Offer> {
        let proven = worked.and_then(|worked| self.proven(&Worked::parse(worked), keyring));
        let mut offers: Vec<Offer> = self
            .keys
            .iter()
            .filter_map(|key| offer(*key, proven, keyring))
            .collect();
        if let [only] = offers.as_mut_slice() {
            only.identity.proven |= keyring.signs_at_once(only.key);
        }
        offers.sort_by_key(|offer| !offer.identity.proven);
        offers
    }

    /// What to remember of a key that worked.
    pub(crate) fn remembered(&self, key: KeyId, keyring: &Keyring) -> Option<String> {
        let ahead = self.keys.iter().take_while(|other| **other != key);
        let ahead = ahead.map(|other| keyring.fingerprint(*other).unwrap_or_default());
        Worked::new(keyring.fingerprint(key)?, ahead).map(|worked| worked.to_string())
    }

    /// The key that is sure to be the first that the target takes, by what was remembered.
    fn proven(&self, worked: &Worked, keyring: &Keyring) -> Option<KeyId> {
        let is_it = |key: &KeyId| keyring.fingerprint(*key) == Some(&worked.print);
        let at = self.keys.iter().position(is_it)?;
        let was_refused = |key: &KeyId| {
            keyring
                .fingerprint(*key)
                .is_some_and(|print| worked.came_after(print))
        };
        self.keys.iter().take(at).all(was_refused).then_some(())?;
        self.keys.get(at).copied()
    }
}

/// What a file is called if it is of no use, with the line that names it; `None`: it is a default, nobody named it.
fn called(file: &Sourced<String>, what: &str) -> Option<String> {
    let path = Printable::new(&file.value);
    match &file.origin {
        Origin::Default => None,
        Origin::CommandLine => Some(format!("{what} {path}")),
        Origin::File { .. } => Some(format!("{}: {what} {path}", file.origin)),
    }
}

fn offer(key: KeyId, proven: Option<KeyId>, keyring: &Keyring) -> Option<Offer> {
    let public = keyring.public(key)?;
    let identity = Identity {
        key: public.clone(),
        certificate: keyring.certificate(key).cloned(),
        proven: proven == Some(key),
        hardware: public.key_type().is_security_key(),
    };
    Some(Offer {
        identity,
        key,
        label: keyring.label(key),
    })
}

/// Why the configuration forbids a key, if it does.
fn reason_against(key: &PublicKey, certified: bool, profile: &Profile) -> Option<String> {
    let accepts = |algorithm: &PublicKeyAlgorithm| {
        algorithm.key_type() == key.key_type() && algorithm.is_certificate() == certified
    };
    if !profile.accepted.iter().any(accepts) {
        return Some("not among PubkeyAcceptedAlgorithms".to_owned());
    }
    let bits = key.rsa_bits().filter(|bits| *bits < profile.rsa_bits)?;
    Some(format!(
        "{bits} bits, and RequiredRSASize is {}",
        profile.rsa_bits
    ))
}
