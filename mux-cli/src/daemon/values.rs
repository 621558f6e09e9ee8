//! Which values clients and daemon exchange, and what is written of each. A table; it decides nothing.

use std::sync::Arc;

use bytes::Bytes;
use mux_ssh::Secret;
use mux_ssh::algorithms::{Algorithms, Cipher, HostKeyAlgorithm, Kex, KeyType, Mac, SignatureAlgorithm};
use mux_ssh::client::{AuthMethod, Field, Identity, Keepalive, Methods, Prompt, QuestionId, SessionBinding};
use mux_ssh::keys::{Certificate, CertificateError, KeyBlobError, PublicKey};
use mux_ssh::transport::{RekeyLimits, ServerMemory};
use zeroize::Zeroizing;

use super::codec::{Malformed, Reader, Value, Writer, enums, named, structs};
use crate::hub::{
    Action, Answer, Event, Failure, Family, Judgement, KeyId, Level, Likeness, MissingStatus, Offer, OpenSsh,
    Outcome, Prepared, Reason, RequestId, Source, SshOptions, Stage, Status, StreamKind, Ticket, Timings,
    Wish,
};

named!(
    Kex,
    KeyType,
    HostKeyAlgorithm,
    Cipher,
    Mac,
    SignatureAlgorithm,
    AuthMethod
);

structs! {
    Algorithms { kex, host_keys, ciphers, macs, kex_explicit, host_keys_explicit }
    Keepalive { idle, busy }
    Methods { order, algorithms, passwords, devices }
    RekeyLimits { bytes, packets, time }
    ServerMemory { ident, first_kex, first_host_key, post_quantum, one_session, none_first }
    SessionBinding { session_id, host_key, signature }
    Identity { key, certificate, proven, hardware }
    Field { text, echo }
    Source { line, addresses }
    SshOptions {
        algorithms, keepalive, family, source, methods, left_out, forward_agent, rekey, further_host_keys,
    }
    Likeness { digest, agent }
    Ticket { request, attempt }
    Wish { position, room, may_restart }
    Prepared { keys, known_host_key_types, known_authority, memory, skipped }
    Offer { identity, key, label }
    Outcome { status, rc, signal, error, timings, attempts, retries }
    Failure { via, stage, message, general }
    Timings { dns, tcp, kex, auth, run }
}

enums! {
    Family { 0 Any {} 1 V4 {} 2 V6 {} }
    MissingStatus { 0 Unknown {} 1 Ok {} }
    Level { 0 Warning {} 1 Verbose {} }
    StreamKind { 0 Stdout {} 1 Stderr {} }
    Reason { 0 Interrupted {} 1 TimedOut {} }
    Stage { 0 Dns {} 1 Tcp {} 2 Banner {} 3 Kex {} 4 HostKey {} 5 Auth {} 6 Channel {} 7 Command {} }
    Status {
        0 Ok {} 1 Failed {} 2 Timeout {} 3 Unreachable {} 4 Auth {} 5 HostKey {} 6 Unknown {} 7 Skipped {}
        8 Cancelled {}
    }
    Prompt {
        0 Password { refused: refused }
        1 Interactive { name: name, instruction: instruction, fields: fields }
    }
    KeyBlobError {
        0 Malformed {} 1 UnknownType {} 2 WrongLength {} 3 WrongCurve {} 4 RsaModulus { bits: bits }
        5 RsaExponent {}
    }
    CertificateError {
        0 TooLarge {} 1 Malformed {} 2 UnknownType {} 3 Kind { 0: kind } 4 Key { 0: error }
        5 TooManyPrincipals {} 6 AuthorityIsCertificate {} 7 Authority { 0: error }
        8 SignatureAlgorithm { 0: name } 9 Signature {}
    }
    Judgement {
        0 Accept {} 1 Distrust {} 2 Enough {} 3 Later {} 4 AskForOthers { 0: types } 5 Refuse { 0: reason }
    }
    Event {
        0 Stage { request: request, stage: stage }
        1 Output { request: request, stream: stream, data: data }
        2 ViaOpenSsh { request: request, reason: reason }
        3 EnvRefused { request: request, name: name }
        4 Finished { request: request, outcome: outcome }
        5 Notice { request: request, level: level, text: text }
    }
    Action {
        0 Prepare {}
        1 Resolve { host: host, port: port }
        2 JudgeHostKey { question: question, key: key, certificate: certificate, types: types, local: local }
        3 LookAtHostKeys { keys: keys }
        4 KeepHostKeys { keys: keys }
        5 Sign { question: question, key: key, algorithm: algorithm, data: data, binding: binding }
        6 Prompt { question: question, prompt: prompt }
        7 SigningOver {}
        8 Remember { 0: memory }
        9 RememberKey { 0: key }
        10 ForgetKey { 0: key }
        11 OtherWay {}
        12 Feed { 0: wish }
        13 FeedOver { taken: taken, whole: whole }
    }
    Answer {
        0 Prepared { 0: prepared }
        1 Resolved { 0: result }
        2 HostKey { question: question, judgement: judgement }
        3 ProveHostKeys { 0: keys }
        4 Signed { question: question, signature: signature }
        5 Prompted { question: question, answers: answers }
        6 OtherWay { 0: ssh }
        7 Fed { 0: data }
        8 Asking { 0: asking }
    }
}

macro_rules! numbers {
    ($($type:ident),*) => {$(
        impl Value for $type {
            fn put(&self, to: &mut Writer) {
                self.0.put(to);
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                Value::take(from).map(Self)
            }
        }
    )*};
}

numbers!(RequestId, KeyId);

impl Value for QuestionId {
    fn put(&self, to: &mut Writer) {
        self.number().put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        u32::take(from).map(Self::from_number)
    }
}

impl Value for PublicKey {
    fn put(&self, to: &mut Writer) {
        Bytes::copy_from_slice(self.blob()).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::parse(&Bytes::take(from)?).map_err(|_| Malformed)
    }
}

impl Value for Arc<Certificate> {
    fn put(&self, to: &mut Writer) {
        Bytes::copy_from_slice(self.blob()).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let certificate = Certificate::parse(&Bytes::take(from)?);
        certificate.map(Self::new).map_err(|_| Malformed)
    }
}

impl Value for Secret {
    fn put(&self, to: &mut Writer) {
        Bytes::copy_from_slice(self.expose()).put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::from(Zeroizing::new(Bytes::take(from)?.to_vec())))
    }
}

/// A way that a client goes by itself: the daemon starts no `ssh`, and to it there is none.
impl Value for Arc<OpenSsh> {
    fn put(&self, to: &mut Writer) {
        self.reason.clone().put(to);
    }

    fn take(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Err(Malformed)
    }
}
