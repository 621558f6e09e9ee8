//! The user's keys of a run: each file read once as long as it stays the same, each locked one opened once. Decides which
//! key signs for which; never who is offered what, and never asks anybody.

mod load;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::Printable;
use mux_ssh::agent::AgentIdentity;
use mux_ssh::algorithms::SignatureAlgorithm;
use mux_ssh::keys::{Certificate, KeyFile, PrivateKey, PublicKey};

use self::load::{Loaded, Seen};
use crate::hub::KeyId;

/// Why a key can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is no such file: worth a word only if somebody named it.
    Missing(String),
    /// Any other reason, without the name of the file.
    Because(String),
}

/// What came of asking for a signature.
#[derive(Debug)]
pub enum Signing {
    /// The signature, or why there is none.
    Done(Result<Bytes, String>),
    /// The key has to be opened first: see [`Keyring::unlocked`].
    Locked(Arc<KeyFile>),
    /// The agent behind this socket has it.
    Agent(Arc<str>),
}

/// All keys of a run.
#[derive(Debug, Default)]
pub struct Keyring {
    keys: Vec<Entry>,
    files: HashMap<String, Read<KeyId>>,
    certificates: HashMap<String, Read<Arc<Certificate>>>,
    in_agents: HashMap<(Arc<str>, Bytes), KeyId>,
    certified: HashMap<(Bytes, KeyId), KeyId>,
}

/// What came of reading a file, as it was then.
#[derive(Debug)]
struct Read<T> {
    seen: Seen,
    result: Result<T, Unusable>,
}

#[derive(Debug)]
struct Entry {
    /// `None`: it is locked up with the private half.
    public: Option<PublicKey>,
    /// Shown in place of the public half.
    certificate: Option<Arc<Certificate>>,
    /// Asked for at every login.
    fingerprint: String,
    label: Arc<str>,
    source: Source,
}

/// Where the private half is.
#[derive(Debug)]
enum Source {
    /// In a file that needs no passphrase and was not needed yet: an RSA key takes a while to check.
    Closed(Arc<KeyFile>),
    /// In a file that needs one.
    Locked(Arc<KeyFile>),
    Open(PrivateKey),
    /// Nowhere: the file can't be opened.
    Failed(String),
    Agent(Arc<str>),
    /// In no file: only the public half is here, for an agent that has the other.
    PublicOnly,
    /// Inside a security key, which only an agent can ask.
    SecurityKey,
    /// It is another key's: this one is its certificate.
    Of(KeyId),
}

impl Keyring {
    /// The key of a file, which is read at the first call and whenever it has changed since.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn file(&mut self, path: &str) -> Result<KeyId, Unusable> {
        let seen = Seen::of(path);
        if let Some(known) = self.files.get(path).filter(|known| known.seen == seen) {
            return known.result.clone();
        }
        let label = Printable::new(path).to_string();
        let result = load::key(path).map(|(public, loaded)| self.add(public, None, &label, loaded.into()));
        let read = Read {
            seen,
            result: result.clone(),
        };
        self.files.insert(path.to_owned(), read);
        result
    }

    /// The user's certificate in a file, which is read like a key's.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn certificate_file(&mut self, path: &str) -> Result<Arc<Certificate>, Unusable> {
        let seen = Seen::of(path);
        if let Some(known) = self.certificates.get(path).filter(|known| known.seen == seen) {
            return known.result.clone();
        }
        let result = load::certificate(path).map(Arc::new);
        let read = Read {
            seen,
            result: result.clone(),
        };
        self.certificates.insert(path.to_owned(), read);
        result
    }

    /// Whether a file that was read has changed since.
    #[must_use]
    pub fn has_changed(&self, path: &str) -> bool {
        let key = self.files.get(path).map(|read| &read.seen);
        let certificate = self.certificates.get(path).map(|read| &read.seen);
        let mut seen = key.into_iter().chain(certificate).peekable();
        seen.peek().is_some() && {
            let now = Seen::of(path);
            seen.any(|seen| *seen != now)
        }
    }

    /// A key that an agent holds, or a certificate. `file` is its name if it also is in a file.
    pub fn agent(&mut self, socket: &Arc<str>, identity: &AgentIdentity, file: Option<&str>) -> KeyId {
        let name = (Arc::clone(socket), Bytes::copy_from_slice(identity.blob()));
        if let Some(&known) = self.in_agents.get(&name) {
            return known;
        }
        let label = match file {
            Some(file) => format!("{} (by the agent)", Printable::new(file)),
            None if identity.comment.is_empty() => format!("agent key {}", identity.key.fingerprint_sha256()),
            // Comments are no names: a machine calls all its keys alike.
            None => format!(
                "agent key {} ({})",
                Printable::new(&identity.comment),
                identity.key.fingerprint_sha256()
            ),
        };
        let certificate = identity.certificate.clone();
        let source = Source::Agent(Arc::clone(socket));
        let key = self.add(Some(identity.key.clone()), certificate, &label, source);
        self.in_agents.insert(name, key);
        key
    }

    /// A certificate for `key`, which signs for it.
    pub fn certified(&mut self, certificate: &Arc<Certificate>, key: KeyId, label: &str) -> KeyId {
        let name = (Bytes::copy_from_slice(certificate.blob()), key);
        if let Some(&known) = self.certified.get(&name) {
            return known;
        }
        let public = Some(certificate.key().clone());
        let id = self.add(public, Some(Arc::clone(certificate)), label, Source::Of(key));
        self.certified.insert(name, id);
        id
    }

    fn add(
        &mut self,
        public: Option<PublicKey>,
        certificate: Option<Arc<Certificate>>,
        label: &str,
        source: Source,
    ) -> KeyId {
        let id = KeyId(u32::try_from(self.keys.len()).expect("fewer than 4 G keys"));
        self.keys.push(Entry {
            fingerprint: fingerprint(public.as_ref(), certificate.is_some()),
            public,
            certificate,
            label: label.into(),
            source,
        });
        id
    }

    /// The public half; `None` if it is not known before the key is opened.
    #[must_use]
    pub fn public(&self, key: KeyId) -> Option<&PublicKey> {
        self.entry(key)?.public.as_ref()
    }

    /// The certificate that is shown in place of the public half.
    #[must_use]
    pub fn certificate(&self, key: KeyId) -> Option<&Arc<Certificate>> {
        self.entry(key)?.certificate.as_ref()
    }

    /// What is shown of it: its certificate, or the public half.
    #[must_use]
    pub fn blob(&self, key: KeyId) -> Option<&[u8]> {
        let entry = self.entry(key)?;
        match &entry.certificate {
            Some(certificate) => Some(certificate.blob()),
            None => Some(entry.public.as_ref()?.blob()),
        }
    }

    /// By what it is remembered: the fingerprint of the public half as OpenSSH prints it, and whether it was certified. A
    /// certificate may be renewed every hour; it stays the same identity.
    #[must_use]
    pub fn fingerprint(&self, key: KeyId) -> Option<&str> {
        self.entry(key).map(|entry| entry.fingerprint.as_str())
    }

    /// What people know the key as.
    #[must_use]
    pub fn label(&self, key: KeyId) -> Arc<str> {
        self.entry(key)
            .map_or_else(|| "key".into(), |entry| Arc::clone(&entry.label))
    }

    /// The key that signs: of a certificate, the one that it is about.
    #[must_use]
    pub fn signer(&self, key: KeyId) -> KeyId {
        match self.entry(key).map(|entry| &entry.source) {
            Some(Source::Of(signer)) => *signer,
            Some(
                Source::Closed(_)
                | Source::Locked(_)
                | Source::Open(_)
                | Source::Failed(_)
                | Source::Agent(_)
                | Source::PublicOnly
                | Source::SecurityKey,
            )
            | None => key,
        }
    }

    /// Whether the key signs without asking anybody.
    #[must_use]
    pub fn signs_at_once(&self, key: KeyId) -> bool {
        let signer = self.entry(self.signer(key));
        signer.is_some_and(|entry| matches!(entry.source, Source::Closed(_) | Source::Open(_)))
    }

    /// Whether a passphrase is needed first.
    #[must_use]
    pub fn is_locked(&self, key: KeyId) -> bool {
        self.locked_file(key).is_some()
    }

    /// The file that needs a passphrase first.
    #[must_use]
    pub fn locked_file(&self, key: KeyId) -> Option<&Arc<KeyFile>> {
        match &self.entry(self.signer(key))?.source {
            Source::Locked(file) => Some(file),
            Source::Closed(_)
            | Source::Open(_)
            | Source::Failed(_)
            | Source::Agent(_)
            | Source::PublicOnly
            | Source::SecurityKey
            | Source::Of(_) => None,
        }
    }

    /// Why a key of which at most the public half is here can't sign, if it is one.
    #[must_use]
    pub fn lacks(&self, key: KeyId) -> Option<String> {
        let entry = self.entry(self.signer(key))?;
        match &entry.source {
            Source::PublicOnly => Some("only the public half, and no agent has the other".to_owned()),
            Source::SecurityKey => Some(
                "security key, with which only an agent can sign; ssh-add it, or use --transport openssh"
                    .to_owned(),
            ),
            Source::Failed(reason) if entry.public.is_none() => Some(reason.clone()),
            Source::Closed(_)
            | Source::Locked(_)
            | Source::Open(_)
            | Source::Failed(_)
            | Source::Agent(_)
            | Source::Of(_) => None,
        }
    }

    /// Signs, or says who else has to act. `key` is a [`signer`](Self::signer).
    pub fn sign(&mut self, key: KeyId, algorithm: SignatureAlgorithm, data: &[u8]) -> Signing {
        let Some(entry) = self.entry_mut(key) else {
            return Signing::Done(Err("no such key".to_owned()));
        };
        if let Source::Closed(file) = &entry.source {
            entry.source = opened(file.unlock(None).map_err(|error| error.to_string()));
        }
        match &entry.source {
            Source::Open(private) => {
                Signing::Done(private.sign(algorithm, data).map_err(|error| error.to_string()))
            }
            Source::Locked(file) => Signing::Locked(Arc::clone(file)),
            Source::Agent(socket) => Signing::Agent(Arc::clone(socket)),
            Source::Failed(reason) => Signing::Done(Err(reason.clone())),
            Source::PublicOnly | Source::SecurityKey => Signing::Done(Err("no private key file".to_owned())),
            Source::Closed(_) | Source::Of(_) => Signing::Done(Err("not opened".to_owned())),
        }
    }

    /// The open private half of a key in a file.
    #[must_use]
    pub fn private(&self, key: KeyId) -> Option<&PrivateKey> {
        match &self.entry(key)?.source {
            Source::Open(private) => Some(private),
            Source::Closed(_)
            | Source::Locked(_)
            | Source::Failed(_)
            | Source::Agent(_)
            | Source::PublicOnly
            | Source::SecurityKey
            | Source::Of(_) => None,
        }
    }

    /// What came of opening a locked key.
    pub fn unlocked(&mut self, key: KeyId, result: Result<PrivateKey, String>) {
        if let Some(entry) = self.entry_mut(key) {
            if let (Ok(private), None) = (&result, &entry.public) {
                entry.fingerprint = fingerprint(Some(private.public()), false);
                entry.public = Some(private.public().clone());
            }
            entry.source = opened(result);
        }
    }

    fn entry(&self, key: KeyId) -> Option<&Entry> {
        self.keys.get(usize::try_from(key.0).ok()?)
    }

    fn entry_mut(&mut self, key: KeyId) -> Option<&mut Entry> {
        self.keys.get_mut(usize::try_from(key.0).ok()?)
    }
}

fn opened(result: Result<PrivateKey, String>) -> Source {
    result.map_or_else(Source::Failed, Source::Open)
}

fn fingerprint(public: Option<&PublicKey>, certified: bool) -> String {
    let print = public.map(PublicKey::fingerprint_sha256).unwrap_or_default();
    if certified { format!("{print}+cert") } else { print }
}

impl From<Loaded> for Source {
    fn from(loaded: Loaded) -> Self {
        match loaded {
            Loaded::Closed(file) => Self::Closed(file),
            Loaded::Locked(file) => Self::Locked(file),
            Loaded::PublicOnly => Self::PublicOnly,
            Loaded::SecurityKey => Self::SecurityKey,
        }
    }
}
