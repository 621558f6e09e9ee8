//! The guessed key exchange packet on real servers, which judge it by three different rules: right, wrong, and
//! remembered from a time when the server was another. Whatever becomes of it, the command runs.

use mux_ssh::Error;
use mux_ssh::algorithms::{HostKeyAlgorithm, Kex, KeyType};
use mux_ssh::transport::ServerMemory;

use crate::probe::{self, Offer};
use crate::servers::{Kind, Server};
use crate::told::Told;
use crate::visit::Visit;
use crate::with_each_server;

/// What becomes of a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Not made.
    None,
    /// The server answered it.
    Used,
    /// The server dropped it, and we sent another packet.
    Dropped,
    /// Connected again without.
    Rejected,
}

impl Fate {
    fn of(told: &Told) -> Self {
        // KEXINIT is one packet, a guess another; what follows it before the host key is a replacement.
        match (told.detours.as_slice(), told.first_flight, told.before_host_key) {
            ([], 1, 2) => Self::None,
            ([], 2, 2) => Self::Used,
            ([], 2, 3) => Self::Dropped,
            ([Error::GuessRejected], 1, 2) => Self::Rejected,
            _ => panic!("{told:?}"),
        }
    }

    /// What servers do by what was measured of them (never what our code thinks), and we by our own rule: nothing
    /// classical where both have a post-quantum method.
    fn expected(kind: Kind, theirs: &Offer, kex: Kex, host_key: HostKeyAlgorithm) -> Self {
        let post_quantum =
            |kex: &Kex| kex.is_post_quantum() && theirs.kex.iter().any(|name| name == kex.name());
        if !kex.is_post_quantum() && Kex::ALL.iter().any(post_quantum) {
            return Self::Rejected;
        }
        let used_if = |used: bool, otherwise| if used { Self::Used } else { otherwise };
        let has_kex = theirs.kex.iter().any(|name| name == kex.name());
        let first = |list: &[String], name: &str| list.first().is_some_and(|first| first == name);
        match kind {
            Kind::OpenSsh | Kind::Dropbear => {
                let both_first = first(&theirs.kex, kex.name()) && first(&theirs.host_keys, host_key.name());
                used_if(both_first, Self::Dropped)
            }
            Kind::AsyncSsh | Kind::TinySsh => used_if(has_kex, Self::Dropped),
            Kind::Paramiko => used_if(has_kex, Self::Rejected),
        }
    }
}

/// Host key algorithms to guess: the one that the server names first, and one that it doesn't.
fn host_keys(theirs: &Offer) -> Vec<HostKeyAlgorithm> {
    let is_first = |algorithm: &&HostKeyAlgorithm| {
        theirs
            .host_keys
            .first()
            .is_some_and(|name| name == algorithm.name())
    };
    let first = HostKeyAlgorithm::ALL.iter().find(is_first);
    let other = HostKeyAlgorithm::ALL
        .iter()
        .find(|algorithm| !is_first(algorithm) && !algorithm.is_certificate());
    first.into_iter().chain(other).copied().collect()
}

with_each_server! {
    fn each_guess_has_the_fate_that_the_servers_rule_gives_it(kind: Kind) {
        let server = Server::new(kind);
        let theirs = probe::offer(server.address);
        for kex in Kex::ALL {
            for host_key in host_keys(&theirs) {
                let mut visit = Visit::new(&server);
                // Of a type that is not known none is ever guessed.
                visit.config.known_host_key_types = KeyType::ALL.to_vec();
                visit.config.memory = Some(ServerMemory {
                    first_kex: kex.name().to_owned(),
                    first_host_key: host_key.name().to_owned(),
                    post_quantum: kex.is_post_quantum(),
                    ..ServerMemory::default()
                });
                let told = visit.run("exit 5", &"".into());
                let context = || format!("{} {} {theirs:?}\n{}", kex.name(), host_key.name(), server.log());
                told.check(5, b"", b"", context);
                assert_eq!(Fate::of(&told), Fate::expected(kind, &theirs, *kex, host_key), "{}", context());
            }
        }
    }

    fn what_a_first_visit_teaches_is_right_on_the_second(kind: Kind) {
        let server = Server::new(kind);
        let first = Visit::new(&server).run("exit 5", &"".into());
        first.check(5, b"", b"", || server.log());
        assert_eq!(Fate::of(&first), Fate::None);
        let mut again = Visit::new(&server);
        again.config.memory.clone_from(&first.memory);
        let told = again.run("exit 5", &"".into());
        told.check(5, b"", b"", || server.log());
        let expected = match kind {
            Kind::OpenSsh | Kind::Dropbear | Kind::AsyncSsh | Kind::Paramiko => Fate::Used,
            // It prefers a classical method to the post-quantum one that it has.
            Kind::TinySsh => Fate::None,
        };
        assert_eq!(Fate::of(&told), expected, "{:?}", first.memory);
    }
}
