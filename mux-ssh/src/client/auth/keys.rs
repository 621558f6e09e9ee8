//! The method `publickey` (RFC 4252 §7): which identity is next, and what its signature is made over. Signs nothing
//! itself.

use bytes::BytesMut;

use super::{Auth, Request, Step};
use crate::algorithms::{KeyType, SignatureAlgorithm};
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

    /// What this key signs with. Only RSA has a choice, and only there is the server's list asked (RFC 8332 §3.3):
    /// some servers list nothing else. One that said nothing, or has not said it yet, gets what RFC 8332 §3 recommends
    /// to all: dropbear has nothing above it.
    fn algorithm_for(&self, identity: &Identity) -> Option<SignatureAlgorithm> {
        let key_type = identity.key.key_type();
        let mut possible = key_type.signature_algorithms().iter().copied();
        match &self.algorithms {
            Some(accepted) if key_type == KeyType::Rsa => {
                possible.find(|algorithm| accepted.contains(algorithm))
            }
            None if key_type == KeyType::Rsa => Some(SignatureAlgorithm::RsaSha2_256),
            Some(_) | None => possible.next(),
        }
    }

    fn query(&self, identity: usize, algorithm: SignatureAlgorithm) -> Step {
        let mut payload = BytesMut::new();
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
        algorithm: SignatureAlgorithm,
        events: &mut Events,
    ) -> Step {
        let mut data = BytesMut::new();
        Writer::new(&mut data).string(&self.binding.session_id);
        userauth::publickey(&mut data, &self.config.user, self.key(identity), algorithm, true);
        let data = data.freeze();
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

    pub(super) fn key(&self, identity: usize) -> &[u8] {
        self.config
            .identities
            .get(identity)
            .map(|identity| identity.key.blob())
            .unwrap_or_default()
    }
}
