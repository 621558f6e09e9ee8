//! The method `publickey` (RFC 4252 §7): which identity is next, and what its signature is made over. Signs nothing
//! itself.

use bytes::BytesMut;

use super::{Auth, Request, Step};
use crate::algorithms::{KeyType, PublicKeyAlgorithm, SignatureAlgorithm};
use crate::client::events::Events;
use crate::client::packet::Packet;
use crate::client::{Event, Identity, QuestionId, userauth};
use crate::wire::{Reader, Writer};

impl Auth {
    pub(super) fn next_key(&mut self, events: &mut Events) -> Option<Step> {
        while let Some(identity) = self.config.identities.get(self.next) {
            let index = self.next;
            let early = identity.proven && !identity.hardware && !self.config.cautious;
            let algorithm = self.algorithm_for(identity);
            self.next += 1;
            match algorithm {
                _ if self.accepted.contains(&index) => {}
                None => events.push(Event::KeyRefused { identity: index }),
                Some(algorithm) if early => return Some(self.sign(index, algorithm, events)),
                Some(algorithm) => return Some(self.query(index, algorithm)),
            }
        }
        None
    }

    /// The owner has signed, or can't.
    pub(crate) fn answer(&mut self, question: QuestionId, signature: Option<&[u8]>) {
        let Step::Signing {
            question: open,
            identity,
            algorithm,
            ref data,
        } = self.step
        else {
            return;
        };
        if open != question {
            return;
        }
        // An agent that does not know the flags of rsa-sha2 signs with SHA-1: worthless to the server.
        let fitting = signature.filter(|signature| Reader::new(signature).text() == Ok(algorithm.name()));
        self.step = match fitting {
            None => Step::Choose,
            Some(signature) => {
                let sent = data.get(self.binding.session_id.len() + 4..).unwrap_or_default();
                let mut payload = BytesMut::with_capacity(sent.len() + 4 + signature.len());
                Writer::new(&mut payload).raw(sent).string(signature);
                Step::Send(Request::Signed { identity }, Packet::Userauth(payload.freeze()))
            }
        };
    }

    /// As what this key is shown and signs: the first that the owner allows, and for RSA the server as well. Only RSA has
    /// a choice, and only there is the server's list asked (RFC 8332 §3.3): some servers list nothing else. One that said
    /// nothing, or has not said it yet, gets what RFC 8332 §3 recommends to all, if that is allowed: dropbear has nothing
    /// above it.
    fn algorithm_for(&self, identity: &Identity) -> Option<PublicKeyAlgorithm> {
        let key_type = identity.key.key_type();
        let allowed = self.config.methods.algorithms.iter().copied();
        let mut possible = allowed.filter(|algorithm| {
            algorithm.key_type() == key_type && algorithm.is_certificate() == identity.certificate.is_some()
        });
        match &self.algorithms {
            Some(accepted) if key_type == KeyType::Rsa => {
                possible.find(|algorithm| accepted.contains(&algorithm.signature()))
            }
            None if key_type == KeyType::Rsa => {
                possible.min_by_key(|algorithm| algorithm.signature() != SignatureAlgorithm::RsaSha2_256)
            }
            Some(_) | None => possible.next(),
        }
    }

    fn query(&self, identity: usize, algorithm: PublicKeyAlgorithm) -> Step {
        let mut payload = BytesMut::with_capacity(userauth::ROOM);
        userauth::publickey(
            &mut payload,
            &self.config.user,
            self.key(identity),
            algorithm,
            false,
        );
        Step::Send(
            Request::Query { identity, algorithm },
            Packet::Userauth(payload.freeze()),
        )
    }

    /// Asks the owner to sign. RFC 4252 §7: what is signed is the session id and the request up to the key.
    pub(super) fn sign(
        &mut self,
        identity: usize,
        algorithm: PublicKeyAlgorithm,
        events: &mut Events,
    ) -> Step {
        let mut data = BytesMut::with_capacity(userauth::ROOM);
        Writer::new(&mut data).string(&self.binding.session_id);
        userauth::publickey(&mut data, &self.config.user, self.key(identity), algorithm, true);
        let data = data.freeze();
        let algorithm = algorithm.signature();
        let question = self.question();
        let binding = self.binding.clone();
        events.push(Event::Sign {
            id: question,
            identity,
            algorithm,
            data: data.clone(),
            binding,
        });
        Step::Signing {
            question,
            identity,
            algorithm,
            data,
        }
    }

    /// What is shown of an identity.
    pub(super) fn key(&self, identity: usize) -> &[u8] {
        self.config
            .identities
            .get(identity)
            .map(Identity::blob)
            .unwrap_or_default()
    }
}
