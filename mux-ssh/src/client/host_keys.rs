//! Further keys of the host, which it tells once somebody has logged in, and its proof that it holds them (OpenSSH
//! PROTOCOL, `hostkeys-00@openssh.com` and `hostkeys-prove-00@openssh.com`). Decides which are told to the owner and
//! which are proven; never which are wanted.

use bytes::{Bytes, BytesMut};

use crate::algorithms::SignatureAlgorithm;
use crate::keys::PublicKey;
use crate::message;
use crate::wire::{Reader, Writer};

/// What a server tells its keys with.
pub(crate) const TOLD: &[u8] = b"hostkeys-00@openssh.com";

/// What it is asked for a proof with, and what the proof is made over.
pub(crate) const PROVE: &str = "hostkeys-prove-00@openssh.com";

/// Keys of a host, at most. A server has one of each type, and two while it changes them; one that tells of more than
/// this is not worth listening to.
pub const MAX_HOST_KEYS: usize = 32;

/// What is known of the host's further keys.
#[derive(Debug, Default)]
pub(crate) struct HostKeys {
    /// The owner wants to hear of them, and has not.
    is_wanted: bool,
    /// To be asked about.
    wanted: Vec<PublicKey>,
    asked: Option<Asked>,
}

/// A proof that the server owes.
#[derive(Debug)]
struct Asked {
    /// Requests of ours that it answers before.
    behind: u32,
    keys: Vec<PublicKey>,
}

impl HostKeys {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            ..Self::default()
        }
    }

    /// The owner does not want to hear of them any more.
    pub(crate) fn ignore(&mut self) {
        self.is_wanted = false;
    }

    /// The keys that a server tells of: only once, only those of a type that this build knows, and none if there is
    /// anything odd about them. The rest of a list that is too long is not even read.
    pub(crate) fn told(&mut self, mut reader: Reader<'_>) -> Option<Vec<PublicKey>> {
        if !std::mem::take(&mut self.is_wanted) {
            return None;
        }
        let mut keys = Vec::new();
        for count in 0.. {
            if reader.is_empty() {
                break;
            }
            let blob = reader.string().ok().filter(|_| count < MAX_HOST_KEYS)?;
            if let Ok(key) = PublicKey::parse(blob) {
                if keys.contains(&key) {
                    return None;
                }
                keys.push(key);
            }
        }
        (!keys.is_empty()).then_some(keys)
    }

    /// Asks for a proof of these.
    pub(crate) fn ask(&mut self, keys: Vec<PublicKey>) {
        if self.asked.is_none() {
            self.wanted = keys;
        }
    }

    /// The blobs of keys that the server is to be asked about now, with `unanswered` requests before it.
    pub(crate) fn next(&mut self, unanswered: u32) -> Option<Vec<Bytes>> {
        if self.wanted.is_empty() {
            return None;
        }
        let keys = std::mem::take(&mut self.wanted);
        let blobs = keys.iter().map(|key| Bytes::copy_from_slice(key.blob()));
        let blobs = blobs.collect();
        self.asked = Some(Asked {
            behind: unanswered,
            keys,
        });
        Some(blobs)
    }

    /// A global request of ours was answered; the keys that were asked about, if it was the one for a proof.
    pub(crate) fn answered(&mut self) -> Option<Vec<PublicKey>> {
        let asked = self.asked.as_mut()?;
        match asked.behind.checked_sub(1) {
            Some(behind) => {
                asked.behind = behind;
                None
            }
            None => self.asked.take().map(|asked| asked.keys),
        }
    }
}

/// The keys, if the server proved in the session with this id that it holds each of them; otherwise none.
pub(crate) fn proven(session_id: &[u8], keys: Vec<PublicKey>, reply: &[u8]) -> Vec<PublicKey> {
    let mut reader = Reader::new(reply);
    let is_success = reader.byte() == Ok(message::REQUEST_SUCCESS);
    let all = is_success
        && keys
            .iter()
            .all(|key| is_proven(session_id, key, &mut reader).is_some());
    match all && reader.finish().is_ok() {
        true => keys,
        false => Vec::new(),
    }
}

fn is_proven(session_id: &[u8], key: &PublicKey, reader: &mut Reader<'_>) -> Option<()> {
    let signature = reader.string().ok()?;
    let name = Reader::new(signature).text().ok()?;
    let algorithm = SignatureAlgorithm::from_name(name)?;
    let mut data = BytesMut::new();
    Writer::new(&mut data)
        .string(PROVE)
        .string(session_id)
        .string(key.blob());
    key.verify(algorithm, &data, signature).ok()
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by panicking"
    )]

    use super::*;
    use crate::algorithms::KeyType;
    use crate::keys::PrivateKey;

    const SESSION: &[u8] = b"the hash of the first exchange";

    fn keys() -> Vec<PrivateKey> {
        let types = [KeyType::Ed25519, KeyType::EcdsaNistp256, KeyType::Rsa];
        types
            .map(|key_type| PrivateKey::generate(key_type).unwrap())
            .into()
    }

    fn public(keys: &[PrivateKey]) -> Vec<PublicKey> {
        keys.iter().map(|key| key.public().clone()).collect()
    }

    fn list(keys: &[PublicKey]) -> BytesMut {
        let mut list = BytesMut::new();
        for key in keys {
            Writer::new(&mut list).string(key.blob());
        }
        list
    }

    /// A proof over `purpose` and `session`.
    fn proof(keys: &[PrivateKey], purpose: &str, session: &[u8]) -> BytesMut {
        let mut reply = BytesMut::new();
        Writer::new(&mut reply).byte(message::REQUEST_SUCCESS);
        for key in keys {
            let key_type = key.public().key_type();
            let algorithm = if key_type == KeyType::Rsa {
                SignatureAlgorithm::RsaSha2_512
            } else {
                SignatureAlgorithm::from_name(key_type.name()).unwrap()
            };
            let mut data = BytesMut::new();
            let blob = key.public().blob();
            Writer::new(&mut data)
                .string(purpose)
                .string(session)
                .string(blob);
            let signature = key.sign(algorithm, &data).unwrap();
            Writer::new(&mut reply).string(signature);
        }
        reply
    }

    #[test]
    fn keys_are_told_once_and_only_where_they_are_wanted() {
        let keys = public(&keys());
        let mut list = list(&keys);
        Writer::new(&mut list).string(b"\0\0\0\x0bssh-unknown");
        let mut host_keys = HostKeys::new(true);
        assert_eq!(host_keys.told(Reader::new(&list)), Some(keys));
        assert_eq!(host_keys.told(Reader::new(&list)), None);
        assert_eq!(HostKeys::new(false).told(Reader::new(&list)), None);
        let mut ignored = HostKeys::new(true);
        ignored.ignore();
        assert_eq!(ignored.told(Reader::new(&list)), None);
    }

    #[test]
    fn a_list_that_is_odd_is_not_told() {
        let keys = public(&keys());
        let told = |list: &[u8]| HostKeys::new(true).told(Reader::new(list));
        assert_eq!(told(b""), None);
        assert_eq!(told(&list(&[keys.clone(), keys.clone()].concat())), None);
        assert_eq!(told(&list(&keys)[1..]), None);
        let mut cut = list(&keys);
        cut.truncate(cut.len() - 1);
        assert_eq!(told(&cut), None);
        let mut many = BytesMut::new();
        for _ in 0..MAX_HOST_KEYS {
            Writer::new(&mut many).string(b"\0\0\0\x0bssh-unknown");
        }
        many.extend(list(&keys));
        assert_eq!(told(&many), None);
    }

    #[test]
    fn a_proof_must_be_one_of_this_session_for_every_key() {
        let keys = keys();
        let check = |reply: &[u8]| proven(SESSION, public(&keys), reply);
        let good = proof(&keys, PROVE, SESSION);
        assert_eq!(check(&good), public(&keys));
        assert_eq!(check(&proof(&keys, PROVE, b"another session")), []);
        assert_eq!(check(&proof(&keys, "another purpose", SESSION)), []);
        assert_eq!(check(&proof(&keys[1..], PROVE, SESSION)), []);
        assert_eq!(check(&[message::REQUEST_FAILURE]), []);
        assert_eq!(check(&[message::REQUEST_SUCCESS]), []);
        assert_eq!(check(&[&good[..], b"more"].concat()), []);
        for at in 0..good.len() {
            let mut wrong = good.clone();
            wrong[at] ^= 1;
            assert_eq!(check(&wrong), [], "byte {at}");
        }
    }

    #[test]
    fn the_answer_comes_after_those_to_what_was_asked_before() {
        let keys = public(&keys());
        let mut host_keys = HostKeys::new(true);
        host_keys.ask(keys.clone());
        assert_eq!(host_keys.answered(), None);
        assert_eq!(host_keys.next(2).unwrap().len(), 3);
        assert_eq!(host_keys.next(2), None);
        assert_eq!((host_keys.answered(), host_keys.answered()), (None, None));
        assert_eq!(host_keys.answered(), Some(keys));
        assert_eq!(host_keys.answered(), None);
    }
}
