//! Each algorithm that a server and we have in common, as the only one of its kind that we offer.

use std::collections::HashSet;

use mux_ssh::algorithms::{Algorithms, Cipher, HostKeyAlgorithm, Kex, Mac};

use crate::probe::{self, Offer};
use crate::servers::{Kind, Server};
use crate::told::noise;
use crate::visit::Visit;
use crate::{keys, with_each_server};

/// Several packets each way.
const INPUT: usize = 100_000;

/// One algorithm and the offer that leaves no other.
struct Choice {
    name: &'static str,
    algorithms: Algorithms,
}

fn only(name: &'static str, change: impl FnOnce(&mut Algorithms)) -> Choice {
    let mut algorithms = Algorithms::default();
    change(&mut algorithms);
    Choice { name, algorithms }
}

/// Everything that the server's lists and ours have in common.
fn common(theirs: &Offer) -> Vec<Vec<Choice>> {
    let has = |list: &[String], name: &str| list.iter().any(|theirs| theirs == name);
    let kex = Kex::ALL.iter().filter(|kex| has(&theirs.kex, kex.name()));
    let host_keys = HostKeyAlgorithm::ALL
        .iter()
        .filter(|algorithm| has(&theirs.host_keys, algorithm.name()));
    let ciphers = Cipher::ALL
        .iter()
        .filter(|cipher| has(&theirs.ciphers, cipher.name()));
    let macs = Mac::ALL.iter().filter(|mac| has(&theirs.macs, mac.name()));
    vec![
        kex.map(|kex| only(kex.name(), |offer| offer.kex = vec![*kex]))
            .collect(),
        host_keys
            .map(|algorithm| only(algorithm.name(), |offer| offer.host_keys = vec![*algorithm]))
            .collect(),
        ciphers
            .map(|cipher| only(cipher.name(), |offer| offer.ciphers = vec![*cipher]))
            .collect(),
        macs.map(|mac| only(mac.name(), |offer| offer.macs = vec![*mac]))
            .collect(),
    ]
}

/// Types of users' keys that a server takes, by the names of our files.
fn user_keys(kind: Kind) -> Vec<&'static str> {
    match kind {
        Kind::OpenSsh | Kind::Dropbear | Kind::AsyncSsh | Kind::Paramiko => keys::types(),
        Kind::TinySsh => vec!["ed25519"],
    }
}

with_each_server! {
    fn each_algorithm_that_both_have_carries_a_command(kind: Kind) {
        let input = noise(INPUT);
        let mut done = HashSet::new();
        for server in Server::with_every_host_key(kind) {
            let theirs = probe::offer(server.address);
            for choices in common(&theirs) {
                assert!(!choices.is_empty(), "nothing in common: {theirs:?}");
                for Choice { name, algorithms } in choices {
                    if !done.insert(name) {
                        continue;
                    }
                    let mut visit = Visit::new(&server);
                    visit.config.algorithms = algorithms;
                    let told = visit.run("cat; echo trouble >&2; exit 7", &input);
                    told.check(7, &input, b"trouble\n", || format!("{name}\n{}", server.log()));
                }
            }
        }
    }

    fn each_type_of_user_key_that_both_have_logs_in(kind: Kind) {
        let server = Server::new(kind);
        for name in user_keys(kind) {
            let told = Visit::new(&server).without_keys().with_key("user", name, true).run("exit 3", &"".into());
            told.check(3, b"", b"", || format!("{name}\n{}", server.log()));
            assert_eq!(told.accepted, Some(0));
        }
    }
}

/// What is common is found by asking; this is what keeps an empty answer from passing for a good one.
#[test]
fn each_of_our_algorithms_is_spoken_by_some_server() {
    let kinds = [
        Kind::OpenSsh,
        Kind::Dropbear,
        Kind::AsyncSsh,
        Kind::Paramiko,
        Kind::TinySsh,
    ];
    let servers = kinds.into_iter().flat_map(Server::with_every_host_key);
    let spoken: HashSet<&str> = servers
        .flat_map(|server| common(&probe::offer(server.address)))
        .flatten()
        .map(|choice| choice.name)
        .collect();
    let ours = Kex::ALL.iter().map(|kex| kex.name());
    // Those of certificates are spoken only to who trusts an authority: tests/run/certificates.rs. No server keeps its
    // key in a device that a person has to touch.
    let plain = HostKeyAlgorithm::ALL
        .iter()
        .filter(|algorithm| !algorithm.is_certificate() && !algorithm.key_type().is_security_key());
    let ours = ours.chain(plain.map(|algorithm| algorithm.name()));
    let ours = ours.chain(Cipher::ALL.iter().map(|cipher| cipher.name()));
    let ours = ours.chain(Mac::ALL.iter().map(|mac| mac.name()));
    let unspoken: Vec<&str> = ours.filter(|name| !spoken.contains(name)).collect();
    assert!(unspoken.is_empty(), "{unspoken:?}");
}
