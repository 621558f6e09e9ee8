//! What an RSA key signs with: the only kind of key that has a choice.

use bytes::{Bytes, BytesMut};

use crate::Error;
use crate::algorithms::{PublicKeyAlgorithm, SignatureAlgorithm};
use crate::client::Methods;
use crate::client::auth::{Auth, AuthConfig};
use crate::client::events::Events;
use crate::client::{Event, Identity, SessionBinding};
use crate::keys::PublicKey;
use crate::wire::Writer;

/// A key of 2048 bits that nobody holds.
fn rsa() -> PublicKey {
    let mut modulus = [0xa5; 256];
    modulus[255] = 1;
    let mut blob = BytesMut::new();
    Writer::new(&mut blob)
        .string("ssh-rsa")
        .mpint(&[1, 0, 1])
        .mpint(&modulus);
    PublicKey::parse(&blob).unwrap()
}

/// What the first identity is asked to sign with, by a server that says this about its algorithms.
fn asked(accepted: Option<Vec<SignatureAlgorithm>>) -> (Result<(), Error>, Option<SignatureAlgorithm>, bool) {
    asked_of(PublicKeyAlgorithm::ALL, accepted)
}

/// The same of a client that may use these only, in this order.
fn asked_of(
    ours: &[PublicKeyAlgorithm],
    accepted: Option<Vec<SignatureAlgorithm>>,
) -> (Result<(), Error>, Option<SignatureAlgorithm>, bool) {
    let identity = Identity {
        key: rsa(),
        certificate: None,
        proven: true,
        hardware: false,
    };
    let config = AuthConfig {
        distrusted: false,
        user: "root".to_owned(),
        identities: vec![identity],
        methods: Methods {
            algorithms: ours.to_vec(),
            ..Methods::default()
        },
        cautious: false,
        doubted: None,
        none_first: false,
        accept_none: false,
    };
    let binding = SessionBinding {
        session_id: Bytes::new(),
        host_key: Bytes::new(),
        signature: Bytes::new(),
    };
    let mut auth = Auth::new(config, binding);
    auth.set_algorithms(accepted);
    let mut events = Events::default();
    let result = auth.advance(&mut events);
    let (mut algorithm, mut refused) = (None, false);
    while let Some(event) = events.pop() {
        match event {
            Event::Sign { algorithm: asked, .. } => algorithm = Some(asked),
            Event::KeyRefused { identity: 0 } => refused = true,
            other => panic!("{other:?}"),
        }
    }
    (result, algorithm, refused)
}

#[test]
fn a_server_that_does_not_say_gets_what_all_should_have() {
    assert_eq!(
        asked(None),
        (Ok(()), Some(SignatureAlgorithm::RsaSha2_256), false)
    );
}

#[test]
fn a_server_that_says_gets_what_it_takes() {
    let both = vec![SignatureAlgorithm::RsaSha2_256, SignatureAlgorithm::RsaSha2_512];
    assert_eq!(
        asked(Some(both)),
        (Ok(()), Some(SignatureAlgorithm::RsaSha2_512), false)
    );
    let weaker = vec![SignatureAlgorithm::RsaSha2_256];
    assert_eq!(
        asked(Some(weaker)),
        (Ok(()), Some(SignatureAlgorithm::RsaSha2_256), false)
    );
}

#[test]
fn a_server_that_takes_no_rsa_is_not_offered_any() {
    for nothing in [vec![], vec![SignatureAlgorithm::Ed25519]] {
        let (result, algorithm, refused) = asked(Some(nothing));
        // What is left is to ask for the methods.
        assert_eq!((result, algorithm, refused), (Ok(()), None, true));
    }
}

#[test]
fn what_the_configuration_allows_counts_in_its_order_and_whatever_the_server_says() {
    use SignatureAlgorithm::{RsaSha2_256, RsaSha2_512};
    let both = Some(vec![RsaSha2_512, RsaSha2_256]);
    for (ours, accepted, expected) in [
        (&[PublicKeyAlgorithm::RsaSha2_256][..], &both, Some(RsaSha2_256)),
        (&[PublicKeyAlgorithm::RsaSha2_512], &both, Some(RsaSha2_512)),
        (
            &[PublicKeyAlgorithm::RsaSha2_256, PublicKeyAlgorithm::RsaSha2_512],
            &both,
            Some(RsaSha2_256),
        ),
        (&[PublicKeyAlgorithm::RsaSha2_256Cert], &both, None),
        (&[PublicKeyAlgorithm::RsaSha2_512], &Some(vec![RsaSha2_256]), None),
        (&[PublicKeyAlgorithm::RsaSha2_512], &None, Some(RsaSha2_512)),
        (
            &[PublicKeyAlgorithm::RsaSha2_512, PublicKeyAlgorithm::RsaSha2_256],
            &None,
            Some(RsaSha2_256),
        ),
    ] {
        let (result, algorithm, refused) = asked_of(ours, accepted.clone());
        assert_eq!(
            (result, algorithm, refused),
            (Ok(()), expected, expected.is_none()),
            "{ours:?} {accepted:?}"
        );
    }
}
