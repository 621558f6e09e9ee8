//! The first key exchange, as it should go.

use std::sync::Arc;

use super::pair::{Pair, key_for, offer, server_config};
use crate::algorithms::{Cipher, Kex, SignatureAlgorithm};
use crate::transport::{Incoming, ServerTransportConfig, TransportConfig};

/// Runs a whole exchange and a packet each way with these three algorithms.
fn check(kex: Kex, host_key: SignatureAlgorithm, cipher: Cipher, step: usize) {
    let client = offer(|ours| {
        ours.kex = vec![kex];
        ours.host_keys = vec![host_key];
        ours.ciphers = vec![cipher];
    });
    let mut pair = Pair::new(client, ServerTransportConfig::new(Arc::from([key_for(host_key)])));
    pair.step = step;
    pair.client.send(b"from the client");
    pair.server.send(b"from the server");
    pair.run();
    pair.assert_healthy();
    assert_eq!(pair.server.packets(), [&b"from the client"[..]]);
    assert_eq!(pair.client.packets(), [&b"from the server"[..]]);
    assert_eq!(
        pair.client.transport.session_id(),
        pair.server.transport.session_id()
    );
}

#[test]
fn every_kex_works() {
    for &kex in Kex::ALL {
        check(kex, SignatureAlgorithm::Ed25519, Cipher::Aes128Gcm, usize::MAX);
    }
}

#[test]
fn one_byte_at_a_time() {
    let mut pair = Pair::new(TransportConfig::default(), server_config());
    pair.step = 1;
    pair.run();
    pair.assert_healthy();
    assert_eq!(pair.client.incoming[0], Incoming::Ident);
}
