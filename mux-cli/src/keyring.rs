//! The user's keys of a run: each file read once, each locked one opened once. Decides which files can't be used and
//! why; never who is offered what, and never asks anybody.

use std::collections::HashMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::Printable;
use mux_ssh::agent::AgentIdentity;
use mux_ssh::algorithms::SignatureAlgorithm;
use mux_ssh::keys::{KeyFile, KeyFileError, PrivateKey, PublicKey};
use nix::unistd::Uid;

use crate::files::{self, FileError};
use crate::hub::KeyId;

/// No key file is larger; the parser has a limit of its own, this one bounds what is read.
const MAX_FILE: u64 = 1024 * 1024;

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
    files: HashMap<String, Result<KeyId, Unusable>>,
    in_agents: HashMap<(Arc<str>, PublicKey), KeyId>,
}

#[derive(Debug)]
struct Entry {
    public: PublicKey,
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
}

impl Keyring {
    /// The key of a file, which is read at the first call.
    ///
    /// # Errors
    /// Why it can't be used.
    pub fn file(&mut self, path: &str) -> Result<KeyId, Unusable> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let label = Printable::new(path).to_string();
        let result = load(path).map(|(public, source)| self.add(public, &label, source));
        self.files.insert(path.to_owned(), result.clone());
        result
    }

    /// A key that an agent holds. `file` is its name if it also is in a file.
    pub fn agent(&mut self, socket: &Arc<str>, identity: &AgentIdentity, file: Option<&str>) -> KeyId {
        let name = (Arc::clone(socket), identity.key.clone());
        if let Some(&known) = self.in_agents.get(&name) {
            return known;
        }
        let label = match file {
            Some(file) => format!("{} (by the agent)", Printable::new(file)),
            None if identity.comment.is_empty() => format!("agent key {}", identity.key.fingerprint_sha256()),
            None => format!("agent key {}", Printable::new(&identity.comment)),
        };
        let key = self.add(identity.key.clone(), &label, Source::Agent(Arc::clone(socket)));
        self.in_agents.insert(name, key);
        key
    }

    fn add(&mut self, public: PublicKey, label: &str, source: Source) -> KeyId {
        let id = KeyId(u32::try_from(self.keys.len()).expect("fewer than 4 G keys"));
        self.keys.push(Entry {
            fingerprint: public.fingerprint_sha256(),
            public,
            label: label.into(),
            source,
        });
        id
    }

    /// The public half.
    #[must_use]
    pub fn public(&self, key: KeyId) -> Option<&PublicKey> {
        self.entry(key).map(|entry| &entry.public)
    }

    /// The fingerprint of the public half, as OpenSSH prints it.
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

    /// Whether the key signs without asking anybody.
    #[must_use]
    pub fn signs_at_once(&self, key: KeyId) -> bool {
        self.entry(key)
            .is_some_and(|entry| matches!(entry.source, Source::Closed(_) | Source::Open(_)))
    }

    /// Whether a passphrase is needed first.
    #[must_use]
    pub fn is_locked(&self, key: KeyId) -> bool {
        self.entry(key)
            .is_some_and(|entry| matches!(entry.source, Source::Locked(_)))
    }

    /// Whether only the public half is here.
    #[must_use]
    pub fn is_public_only(&self, key: KeyId) -> bool {
        self.entry(key)
            .is_some_and(|entry| matches!(entry.source, Source::PublicOnly))
    }

    /// Signs, or says who else has to act.
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
            Source::PublicOnly => Signing::Done(Err("no private key file".to_owned())),
            Source::Closed(_) => Signing::Done(Err("not opened".to_owned())),
        }
    }

    /// What came of opening a locked key.
    pub fn unlocked(&mut self, key: KeyId, result: Result<PrivateKey, String>) {
        if let Some(entry) = self.entry_mut(key) {
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

/// Reads a key file, or the public half if only that is there.
fn load(path: &str) -> Result<(PublicKey, Source), Unusable> {
    let because = |reason: &dyn fmt::Display| Unusable::Because(reason.to_string());
    let content = match read(path) {
        Ok(content) => content,
        Err(Refusal::File(error)) if error.kind() == ErrorKind::NotFound => {
            let missing = || Unusable::Missing(error.to_string());
            return Ok((public_beside(path).ok_or_else(missing)?, Source::PublicOnly));
        }
        Err(Refusal::File(error)) => return Err(because(&error)),
        Err(Refusal::Mode(mode)) => {
            let path = Printable::new(path);
            let advice = format!("mode {mode:04o} lets others read it; chmod 600 {path}");
            return Err(Unusable::Because(advice));
        }
    };
    match KeyFile::parse(&content) {
        Ok(file) => private(path, file),
        // `-i key.pub` names a key of the agent.
        Err(KeyFileError::Malformed) => match public_line(&content) {
            Some(public) => Ok((public, Source::PublicOnly)),
            None => Err(because(&KeyFileError::Malformed)),
        },
        Err(error) => Err(because(&error)),
    }
}

/// A key can only be offered by its public half, which encrypted PKCS #8 hides.
fn private(path: &str, file: KeyFile) -> Result<(PublicKey, Source), Unusable> {
    let public = file.public().cloned().or_else(|| public_beside(path));
    let Some(public) = public else {
        let path = Printable::new(path);
        let advice =
            format!("encrypted, its public half too; ssh-keygen -y -f {path} > {path}.pub writes it beside");
        return Err(Unusable::Because(advice));
    };
    let locked = file.is_encrypted();
    let file = Arc::new(file.with_public(public.clone()));
    let source = if locked {
        Source::Locked(file)
    } else {
        Source::Closed(file)
    };
    Ok((public, source))
}

enum Refusal {
    File(FileError),
    Mode(u32),
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// As ssh: a private key of ours that others may read is no longer one.
fn read(path: &str) -> Result<zeroize::Zeroizing<Vec<u8>>, Refusal> {
    let file = files::open(OpenOptions::new().read(true), Path::new(path))?;
    let meta = file.metadata().map_err(FileError::from)?;
    let mut content = zeroize::Zeroizing::new(Vec::new());
    files::read_into(&file, MAX_FILE, &mut content)?;
    let mode = meta.mode() & 0o7777;
    let readable = meta.is_file() && meta.uid() == Uid::current().as_raw() && mode & 0o077 != 0;
    if readable && public_line(&content).is_none() {
        return Err(Refusal::Mode(mode));
    }
    Ok(content)
}

fn public_beside(path: &str) -> Option<PublicKey> {
    public_line(&files::read(Path::new(&format!("{path}.pub")), MAX_FILE).ok()?)
}

fn public_line(content: &[u8]) -> Option<PublicKey> {
    let text = std::str::from_utf8(content).ok()?;
    PublicKey::parse_line(text).ok().map(|line| line.key)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Ed25519 in PKCS #8 under the passphrase `secret`, as `openssl pkcs8 -topk8` writes it.
    const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAihBpAxRtLtnwICCAAw\n\
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECH3NbMicIyIi+hI6j7BlVcEQLmm\n\
H6RHlcs+b/3hN4oniPd3NmozrbulXluoVrLAgIxYsOckFcDgVMpIuF8tdcsb1U/G\n\
nUmHhlFAgW47oFwyeeY=\n\
-----END ENCRYPTED PRIVATE KEY-----";
    const ITS_PUBLIC: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM/obwTPJI4uf0e5HVQt9Q/Ix0JjXVhMlKJMSjRbDhIy";
    const ANOTHERS_PUBLIC: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMBDTf5F9Yd0Eeh+LF/lCb/K9LEjAFTT9SPY+Kh+msxu";

    /// What becomes of an encrypted key beside which this public half lies.
    fn load_beside(public: Option<&str>) -> (String, Keyring, Result<KeyId, Unusable>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("id");
        fs::write(&path, ENCRYPTED).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if let Some(public) = public {
            fs::write(path.with_extension("pub"), public).unwrap();
        }
        let path = path.to_str().unwrap().to_owned();
        let mut keyring = Keyring::default();
        let result = keyring.file(&path);
        (path, keyring, result)
    }

    fn unlock(keyring: &mut Keyring, key: KeyId) -> Result<PrivateKey, KeyFileError> {
        assert!(keyring.is_locked(key));
        match keyring.sign(key, SignatureAlgorithm::Ed25519, b"data") {
            Signing::Locked(file) => file.unlock(Some(b"secret")),
            other @ (Signing::Done(_) | Signing::Agent(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_key_that_hides_its_public_half_is_offered_by_the_pub_file_beside_it() {
        let (_, mut keyring, result) = load_beside(Some(ITS_PUBLIC));
        let key = result.unwrap();
        let private = unlock(&mut keyring, key).unwrap();
        assert_eq!(keyring.public(key), Some(private.public()));
    }

    #[test]
    fn a_key_that_hides_its_public_half_and_has_no_pub_file_is_told_how_to_get_one() {
        let (path, _, result) = load_beside(None);
        let Err(Unusable::Because(reason)) = result else {
            panic!("{result:?}")
        };
        assert_eq!(
            reason,
            format!("encrypted, its public half too; ssh-keygen -y -f {path} > {path}.pub writes it beside")
        );
    }

    #[test]
    fn the_pub_file_of_another_key_is_noticed_when_the_key_is_opened() {
        let (_, mut keyring, result) = load_beside(Some(ANOTHERS_PUBLIC));
        assert_eq!(
            unlock(&mut keyring, result.unwrap()).unwrap_err(),
            KeyFileError::PublicMismatch
        );
    }
}
