//! The bytes of USERAUTH_REQUEST (RFC 4252 §5). They exist before they are sent, because they are what gets signed.

use bytes::{Bytes, BytesMut};

use crate::algorithms::PublicKeyAlgorithm;
use crate::message;
use crate::wire::Writer;

/// The service that is asked for (RFC 4252 §4).
pub(crate) const USERAUTH: &str = "ssh-userauth";

/// The service that runs after it (RFC 4252 §5).
const CONNECTION: &str = "ssh-connection";

/// What most requests and what is signed of them take: a session id, names and an elliptic key.
pub(crate) const ROOM: usize = 256;

/// The method `none`: asks what methods there are.
pub(crate) fn none(user: &str) -> Bytes {
    let mut payload = BytesMut::with_capacity(ROOM);
    head(&mut payload, user).string("none");
    payload.freeze()
}

/// The method `publickey` (RFC 4252 §7): asks whether the key, or the certificate in its place, would do, or, with `signed`, what the signature is made
/// over and goes behind.
pub(crate) fn publickey(
    to: &mut BytesMut,
    user: &str,
    key: &[u8],
    algorithm: PublicKeyAlgorithm,
    signed: bool,
) {
    head(to, user)
        .string("publickey")
        .boolean(signed)
        .string(algorithm.name())
        .string(key);
}

fn head<'w>(to: &'w mut BytesMut, user: &str) -> Writer<'w> {
    let mut writer = Writer::new(to);
    writer
        .byte(message::USERAUTH_REQUEST)
        .string(user)
        .string(CONNECTION);
    writer
}
