//! Entry points for fuzz targets: each takes foreign bytes to one decoder of the transport. A panic, a hang or growth
//! beyond the input is the finding; results are thrown away.

use std::time::Instant;

use aws_lc_rs::digest;
use bytes::{Bytes, BytesMut};
use mux_proto::SendQueue;

use super::cipher::{LENGTH, Opener, Protection, SERVER_TO_CLIENT, Sealer};
use super::derive::{Secrets, SharedSecret};
use super::ext_info::ExtInfo;
use super::ident::IdentReader;
use super::kexinit::{KexInit, Side};
use super::packet::{Inbound, Outbound};
use super::{Transport, TransportConfig, kexinit, method};
use crate::algorithms::{Algorithms, Kex, SignatureAlgorithm};
use crate::keys::PublicKey;
use crate::message::KEX_ECDH_REPLY;
use crate::wire::{Reader, Writer};

/// The identification exchange, in both roles.
pub fn identification(data: &[u8]) {
    for mut reader in [IdentReader::of_server(), IdentReader::of_client()] {
        let mut input = BytesMut::from(data);
        let _ = reader.read(&mut input);
    }
}

/// KEXINIT and what comes of it, in both roles.
pub fn kexinit(data: &[u8]) {
    let Ok(theirs) = KexInit::parse(data) else { return };
    for side in [Side::Client, Side::Server] {
        let _ = theirs.negotiate(side, &Algorithms::default());
    }
}

/// Packets: the first byte picks cipher and MAC; beyond the last, there are no keys yet.
pub fn packet(data: &[u8]) {
    let Some((_, mut inbound, data)) = chosen(data) else {
        return;
    };
    let mut input = BytesMut::from(data);
    while let Ok(Some(_)) = inbound.open(&mut input) {}
}

/// One packet whose length and padding fields say what they like under a tag that is good.
pub fn sealed_packet(data: &[u8]) {
    let Some((mut sealer, mut inbound, data)) = chosen(data) else {
        return;
    };
    if data.len() < LENGTH {
        return;
    }
    let mut wire = BytesMut::from(data);
    sealer.seal(0, &mut wire, 0);
    if let Ok(Some(payload)) = inbound.open(&mut wire) {
        assert!(!payload.is_empty());
    }
}

/// Both ends of one direction under the cipher and MAC that the first byte names, and the bytes behind it.
fn chosen(data: &[u8]) -> Option<(Sealer, Inbound, &[u8])> {
    let (&choice, data) = data.split_first()?;
    let mut inbound = Inbound::new();
    let secret = SharedSecret::string(&[0; 32]);
    let secrets = Secrets {
        hash: &digest::SHA256,
        secret: &secret,
        exchange_hash: &[0; 32],
        session_id: &[0; 32],
    };
    let Some(&protection) = Protection::all().get(usize::from(choice)) else {
        return Some((Sealer::Plain, inbound, data));
    };
    let sealer = Sealer::new(protection, &secrets, SERVER_TO_CLIENT).ok()?;
    inbound.rekey(Opener::new(protection, &secrets, SERVER_TO_CLIENT).ok()?, true);
    Some((sealer, inbound, data))
}

/// The peer's public value, in both roles: the first byte picks the method.
pub fn kex_value(data: &[u8]) {
    let Some((&choice, value)) = data.split_first() else {
        return;
    };
    let Some(&kex) = Kex::ALL.get(usize::from(choice)) else {
        return;
    };
    let _ = method::respond(kex, value);
    if let Ok((offer, _)) = method::Offer::new(kex) {
        let _ = offer.finish(value);
    }
}

/// The server's half of a key exchange, as the client reads it.
pub fn kex_reply(now: Instant, data: &[u8]) {
    let mut stream = BytesMut::from(&b"SSH-2.0-OpenSSH_9.2p1\r\n"[..]);
    let offer = Algorithms {
        kex: vec![Kex::Curve25519],
        ..Algorithms::default()
    };
    let Ok(theirs) = kexinit::build(Side::Server, &offer, true, false) else {
        return;
    };
    let mut outbound = Outbound::new();
    outbound.seal(&mut stream, |packet| {
        packet.raw(&theirs);
    });
    outbound.seal(&mut stream, |packet| {
        packet.byte(KEX_ECDH_REPLY).raw(data);
    });
    run(
        now,
        TransportConfig {
            algorithms: offer,
            ..TransportConfig::default()
        },
        stream,
    );
}

/// A whole connection of a client, before it has keys.
pub fn transport(now: Instant, data: &[u8]) {
    run(now, TransportConfig::default(), BytesMut::from(data));
}

/// Key blobs and, if one can be read, a signature of arbitrary bytes by it.
pub fn public_key(data: &[u8]) {
    let mut reader = Reader::new(data);
    let (Ok(blob), Ok(signature)) = (reader.string(), reader.string()) else {
        return;
    };
    let Ok(key) = PublicKey::parse(blob) else { return };
    for &algorithm in SignatureAlgorithm::ALL {
        let mut named = BytesMut::new();
        Writer::new(&mut named).string(algorithm.name()).string(signature);
        let _ = key.verify(algorithm, b"data", signature);
        let _ = key.verify(algorithm, b"data", &named);
    }
}

/// EXT_INFO.
pub fn ext_info(data: &[u8]) {
    let _ = ExtInfo::parse(&Bytes::copy_from_slice(data));
}

fn run(now: Instant, config: TransportConfig, mut stream: BytesMut) {
    let mut client = Transport::client(config);
    client.poll_transmit(now, &mut SendQueue::new());
    while let Ok(Some(_)) = client.handle_input(now, &mut stream) {
        client.answer_host_key(true);
    }
}
