//! Every algorithm on both roles: the first key exchange, data, new keys started by either side, data again, with bytes
//! that arrive one at a time.

use std::sync::{Arc, LazyLock};

use super::pair::{Pair, key_for};
use crate::algorithms::{Cipher, HostKeyAlgorithm, Kex, KeyType, SignatureAlgorithm};
use crate::keys::PrivateKey;
use crate::keys::draft::Draft;
use crate::transport::cipher::Protection;
use crate::transport::{HostKey, ServerTransportConfig, TransportConfig};

/// One key of every type that is not inside a security key, with a certificate; RSA keys take long to make.
static KEYS: LazyLock<Arc<[HostKey]>> = LazyLock::new(|| {
    let types = KeyType::ALL.iter().filter(|key_type| !key_type.is_security_key());
    types
        .map(|key_type| certified(key_for(key_type.signature_algorithms()[0])))
        .collect()
});

fn certified(key: HostKey) -> HostKey {
    let authority = PrivateKey::from_ed25519_seed(&[9; 32]).unwrap();
    let certificate = Draft::of_host(&["web1"])
        .sign(key.public(), &authority, SignatureAlgorithm::Ed25519)
        .unwrap();
    key.with_certificate(&certificate)
}

fn signing() -> impl Iterator<Item = HostKeyAlgorithm> {
    let all = HostKeyAlgorithm::ALL.iter().copied();
    all.filter(|algorithm| !algorithm.key_type().is_security_key())
}

const GCM: Protection = Protection {
    cipher: Cipher::Aes128Gcm,
    mac: None,
};

fn check(kex: Kex, host_key: HostKeyAlgorithm, protection: Protection) {
    let mut client = TransportConfig::default();
    client.algorithms.kex = vec![kex];
    client.algorithms.host_keys = vec![host_key];
    client.algorithms.ciphers = vec![protection.cipher];
    client
        .algorithms
        .macs
        .retain(|&mac| protection.mac.is_none_or(|wanted| wanted == mac));
    let mut pair = Pair::new(client, ServerTransportConfig::new(KEYS.clone()));
    pair.step = 1;
    let mut session = None;
    for round in 0..3_u8 {
        // Not a multiple of anything, and long enough for several packets' worth of counter.
        let (up, down) = (vec![round; 1001], vec![!round; 777]);
        pair.client.send(&up);
        pair.server.send(&down);
        pair.run();
        pair.assert_healthy();
        let context = (kex, host_key, protection, round);
        assert_eq!(
            pair.server.packets().last().map(|data| &data[..]),
            Some(&up[..]),
            "{context:?}"
        );
        assert_eq!(
            pair.client.packets().last().map(|data| &data[..]),
            Some(&down[..]),
            "{context:?}"
        );
        assert_eq!(pair.client.new_keys(), usize::from(round) + 1, "{context:?}");
        let first = session.get_or_insert_with(|| pair.client.transport.session_id().cloned());
        assert_eq!(
            &pair.client.transport.session_id().cloned(),
            first,
            "the first hash stays"
        );
        if round == 0 {
            pair.client.transport.start_rekey(pair.now);
        } else {
            pair.server.transport.start_rekey(pair.now);
        }
    }
    assert_eq!(
        pair.client.transport.session_id(),
        pair.server.transport.session_id()
    );
    assert_eq!(
        pair.client.transport.host_key().cloned(),
        KEYS.iter()
            .find(|key| key.shows(host_key))
            .map(|key| key.shown(host_key))
    );
}

/// How keys come out depends on what the cipher wants and on the hash of the method: one method for each hash.
#[test]
fn every_cipher_and_mac_works_with_keys_from_every_hash() {
    for kex in [Kex::Curve25519, Kex::EcdhNistp384, Kex::EcdhNistp521] {
        for protection in Protection::all() {
            check(kex, HostKeyAlgorithm::Ed25519, protection);
        }
    }
}

#[test]
fn every_kex_works() {
    for &kex in Kex::ALL {
        check(kex, HostKeyAlgorithm::Ed25519, GCM);
    }
}

#[test]
fn every_host_key_algorithm_signs_what_every_hash_gives() {
    for kex in [Kex::Curve25519, Kex::EcdhNistp384, Kex::EcdhNistp521] {
        for host_key in signing() {
            check(kex, host_key, GCM);
        }
    }
}

#[test]
fn each_direction_may_have_a_cipher_and_a_mac_of_its_own() {
    use crate::algorithms::Mac;
    use crate::transport::kexinit::{KexInit, Side};
    use crate::wire::Writer;
    let mut payload = bytes::BytesMut::new();
    let mut writer = Writer::new(&mut payload);
    writer.byte(crate::message::KEXINIT).raw(&[0; 16]);
    for list in [
        "curve25519-sha256",
        "ssh-ed25519",
        "aes192-ctr",
        "chacha20-poly1305@openssh.com",
        "umac-64@openssh.com,hmac-sha2-512",
        "umac-64@openssh.com",
        "none",
        "none",
        "",
        "",
    ] {
        writer.string(list);
    }
    writer.boolean(false).uint32(0);
    let ours = TransportConfig::default().algorithms;
    let negotiated = KexInit::parse(&payload)
        .unwrap()
        .negotiate(Side::Client, &ours)
        .unwrap();
    assert_eq!(
        negotiated.client_to_server,
        Protection {
            cipher: Cipher::Aes192Ctr,
            mac: Some(Mac::HmacSha2_512)
        }
    );
    assert_eq!(
        negotiated.server_to_client,
        Protection {
            cipher: Cipher::ChaCha20Poly1305,
            mac: None
        }
    );
}
