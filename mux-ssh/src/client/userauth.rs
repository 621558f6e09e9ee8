//! The bytes of USERAUTH_REQUEST (RFC 4252 §5) and of the answers that belong to one. They exist before they are sent,
//! because they are what gets signed; those with secrets in them are wiped.

use bytes::{Bytes, BytesMut};

use crate::Secret;
use crate::algorithms::PublicKeyAlgorithm;
use crate::message;
use crate::wire::Writer;

/// The service that is asked for (RFC 4252 §4).
pub(crate) const USERAUTH: &str = "ssh-userauth";

/// The service that runs after it (RFC 4252 §5).
const CONNECTION: &str = "ssh-connection";

/// More than the fixed fields of any request take.
const FIXED: usize = 64;

/// What most requests and what is signed of them take: a session id, names and an elliptic key.
pub(crate) const ROOM: usize = 256;

/// The method `none`: asks what methods there are.
pub(crate) fn none(user: &str) -> Bytes {
    let mut payload = BytesMut::with_capacity(ROOM);
    head(&mut Writer::new(&mut payload), user).string("none");
    payload.freeze()
}

/// The method `publickey` (RFC 4252 §7): asks whether the key, or the certificate in its place, would do, or, with
/// `signed`, what the signature is made over and goes behind.
pub(crate) fn publickey(
    to: &mut BytesMut,
    user: &str,
    key: &[u8],
    algorithm: PublicKeyAlgorithm,
    signed: bool,
) {
    head(&mut Writer::new(to), user)
        .string("publickey")
        .boolean(signed)
        .string(algorithm.name())
        .string(key);
}

/// The method `keyboard-interactive` (RFC 4256 §3.1): no language, and a hint of what to ask.
pub(crate) fn keyboard_interactive(user: &str, devices: &str) -> Bytes {
    let mut payload = BytesMut::with_capacity(ROOM);
    head(&mut Writer::new(&mut payload), user)
        .string("keyboard-interactive")
        .string("")
        .string(devices);
    payload.freeze()
}

/// What the server's questions are answered with (RFC 4256 §3.4).
pub(crate) fn responses(answers: &[Secret]) -> Secret {
    let length: usize = answers.iter().map(|answer| 4 + answer.expose().len()).sum();
    Secret::message(FIXED + length, |to| {
        let count = u32::try_from(answers.len()).expect("as many as there were questions, which are few");
        to.byte(message::USERAUTH_INFO_RESPONSE).uint32(count);
        for answer in answers {
            to.string(answer.expose());
        }
    })
}

/// The method `password` (RFC 4252 §8).
pub(crate) fn password(user: &str, password: &Secret) -> Secret {
    let length = FIXED + user.len() + password.expose().len();
    Secret::message(length, |to| {
        head(to, user)
            .string("password")
            .boolean(false)
            .string(password.expose());
    })
}

fn head<'w, 'a>(to: &'w mut Writer<'a>, user: &str) -> &'w mut Writer<'a> {
    to.byte(message::USERAUTH_REQUEST).string(user).string(CONNECTION)
}
