//! The two halves of a key exchange, the host's proof and the keys that come of it, for both roles. It decides which
//! proof is good enough; whether the proven key is trusted is the owner's answer.

use bytes::Bytes;

use super::cipher::{CLIENT_TO_SERVER, Opener, SERVER_TO_CLIENT, Sealer};
use super::derive::{Secrets, SharedSecret, Transcript};
use super::host_key::HostKey;
use super::kexinit::{Negotiated, Side};
use super::phase::{ClientHalf, Keys, Phase};
use super::shown_key::ShownKey;
use super::{Incoming, Role, Session, Transport, ext_info, method};
use crate::message::{KEX_ECDH_REPLY, KEXINIT, NEWKEYS};
use crate::wire::Reader;
use crate::{Error, Violation};

impl Transport {
    /// Client: the server's half, its host key and its proof.
    pub(super) fn handle_reply(
        &mut self,
        half: ClientHalf,
        payload: &[u8],
    ) -> Result<Option<Incoming>, Error> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let host_key_blob = reader.string()?;
        let server_public = reader.string()?;
        let signature = reader.string()?;
        reader.finish()?;
        let (their_kexinit, negotiated) = self.their_kexinit()?;
        let shown = ShownKey::parse(host_key_blob, negotiated.host_key)?;
        if self
            .session
            .as_ref()
            .is_some_and(|session| *session.host_key != *host_key_blob)
        {
            return Err(Violation::HostKeyChanged.into());
        }
        let secret = half.offer.finish(server_public)?;
        let exchange_hash = self
            .transcript(&their_kexinit, host_key_blob, &half.public, server_public)?
            .hash(method::hash(negotiated.kex), &secret);
        let algorithm = negotiated.host_key.signature();
        shown.key.verify(algorithm, &exchange_hash, signature)?;
        let keys = self.derive(negotiated, &secret, &exchange_hash)?;
        if self.session.is_some() {
            self.agree(keys);
            return Ok(None);
        }
        self.session = Some(Box::new(Session {
            id: exchange_hash,
            host_key: Bytes::copy_from_slice(host_key_blob),
            host_signature: Bytes::copy_from_slice(signature),
        }));
        if let Some(exchange) = &mut self.exchange {
            exchange.phase = Phase::Asked(keys);
        }
        Ok(Some(Incoming::HostKey(shown)))
    }

    /// Server: the client's half; our half, proof and NEWKEYS go out at once.
    pub(super) fn handle_init(&mut self, payload: &[u8]) -> Result<Option<Incoming>, Error> {
        let mut reader = Reader::new(payload);
        reader.byte()?;
        let client_public = reader.string()?;
        reader.finish()?;
        let (their_kexinit, negotiated) = self.their_kexinit()?;
        let (server_public, secret) = method::respond(negotiated.kex, client_public)?;
        let host_key = self.host_key_for(negotiated)?.shown(negotiated.host_key);
        let exchange_hash = self
            .transcript(&their_kexinit, &host_key, client_public, &server_public)?
            .hash(method::hash(negotiated.kex), &secret);
        let signature = self
            .host_key_for(negotiated)?
            .sign(negotiated.host_key.signature(), &exchange_hash)?;
        let keys = self.derive(negotiated, &secret, &exchange_hash)?;
        self.control.push(|packet| {
            packet
                .byte(KEX_ECDH_REPLY)
                .string(&host_key)
                .string(&server_public)
                .string(&signature);
        });
        self.session.get_or_insert_with(|| {
            Box::new(Session {
                id: exchange_hash,
                host_key,
                host_signature: signature,
            })
        });
        self.agree(keys);
        Ok(None)
    }

    /// Queues NEWKEYS; what is queued behind it goes under the new keys.
    pub(super) fn agree(&mut self, keys: Keys) {
        self.control.push(|packet| {
            packet.byte(NEWKEYS);
        });
        self.next_sealer = Some(keys.sealer);
        if !self.peer.keyed && self.peer.takes_ext_info {
            match self.side() {
                Side::Client => self.control.push(ext_info::write_client),
                Side::Server => self.control.push(ext_info::write_server),
            }
        }
        if let Some(exchange) = &mut self.exchange {
            exchange.phase = Phase::Agreed(keys.opener);
        }
    }

    fn their_kexinit(&self) -> Result<(Bytes, Negotiated), Error> {
        let theirs = self
            .exchange
            .as_ref()
            .and_then(|exchange| exchange.their_kexinit.clone());
        Ok(theirs.ok_or(Violation::UnexpectedMessage(KEXINIT))?)
    }

    fn transcript<'a>(
        &'a self,
        their_kexinit: &'a [u8],
        host_key: &'a [u8],
        client_public: &'a [u8],
        server_public: &'a [u8],
    ) -> Result<Transcript<'a>, Error> {
        let ours = self.our_ident.as_bytes();
        let theirs = self
            .peer
            .ident
            .as_ref()
            .ok_or(Violation::IdentMalformed)?
            .as_bytes();
        let our_kexinit = &self
            .exchange
            .as_ref()
            .ok_or(Violation::UnexpectedMessage(KEXINIT))?
            .our_kexinit;
        let [client_ident, server_ident, client_kexinit, server_kexinit] = match self.side() {
            Side::Client => [ours, theirs, our_kexinit, their_kexinit],
            Side::Server => [theirs, ours, their_kexinit, our_kexinit],
        };
        Ok(Transcript {
            client_ident,
            server_ident,
            client_kexinit,
            server_kexinit,
            host_key,
            client_public,
            server_public,
        })
    }

    fn host_key_for(&self, negotiated: Negotiated) -> Result<&HostKey, Error> {
        let Role::Server { host_keys, .. } = &self.role else {
            return Err(Error::Crypto);
        };
        host_keys
            .iter()
            .find(|key| key.shows(negotiated.host_key))
            .ok_or(Error::Crypto)
    }

    fn derive(&self, negotiated: Negotiated, secret: &SharedSecret, hash: &[u8]) -> Result<Keys, Error> {
        let secrets = Secrets {
            hash: method::hash(negotiated.kex),
            secret,
            exchange_hash: hash,
            session_id: self.session_id().map_or(hash, |id| id),
        };
        let to_server = negotiated.client_to_server;
        let to_client = negotiated.server_to_client;
        Ok(match self.side() {
            Side::Client => Keys {
                sealer: Sealer::new(to_server, &secrets, CLIENT_TO_SERVER)?,
                opener: Opener::new(to_client, &secrets, SERVER_TO_CLIENT)?,
            },
            Side::Server => Keys {
                sealer: Sealer::new(to_client, &secrets, SERVER_TO_CLIENT)?,
                opener: Opener::new(to_server, &secrets, CLIENT_TO_SERVER)?,
            },
        })
    }
}
