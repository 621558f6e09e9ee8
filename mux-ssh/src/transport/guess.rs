//! The guessed key exchange packet (RFC 4253 §7): when it is sent, and what became of it. It decides from memory and
//! from the server's implementation, never from hope: a guess judged by the wrong rule ends the connection.

use super::config::{ServerMemory, TransportConfig};
use super::ident::{Family, Ident};
use super::kexinit::{KexInit, Negotiated};
use crate::algorithms::{Algorithms, HostKeyAlgorithm, Kex};

/// When a client's guess counts as right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuessRule {
    /// RFC 4253 §7: both sides name the same key exchange and the same host key algorithm first.
    Rfc,
    /// The client's first key exchange is the negotiated one.
    Negotiated,
    /// Always: the flag is not looked at.
    Ignored,
}

/// The two names that a guess stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    pub(super) kex: Kex,
    pub(super) host_key: HostKeyAlgorithm,
}

/// What the server does with our guessed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answers it.
    Used,
    /// It drops it; send another.
    Dropped,
    /// Unknown or fatal; connect again.
    Rejected,
}

/// Puts known host key types first and, if a guess is sound, its names before all others.
pub(super) fn plan(config: &mut TransportConfig) -> Option<Guess> {
    prefer_known(config);
    let guess = sound(config.memory.as_ref()?, config)?;
    move_first(&mut config.algorithms.kex, guess.kex);
    move_first(&mut config.algorithms.host_keys, guess.host_key);
    Some(guess)
}

/// OpenSSH's order: unless the first algorithm is one of a known type anyway, those of known types come first, and all
/// certificates where an authority is known. So a listener learns that an unusual type is known, and nothing otherwise
/// (CVE-2020-14145). Unlike OpenSSH we don't ask for certificates that nobody could vouch for: the key inside is what
/// would count, and without them our first name can be the server's.
fn prefer_known(config: &mut TransportConfig) {
    let Algorithms {
        host_keys,
        host_keys_explicit,
        ..
    } = &mut config.algorithms;
    if *host_keys_explicit {
        return;
    }
    if !config.known_authority && host_keys.iter().any(|algorithm| !algorithm.is_certificate()) {
        host_keys.retain(|algorithm| !algorithm.is_certificate());
    }
    let known = &config.known_host_key_types;
    let is_known = |algorithm: &HostKeyAlgorithm| known.contains(&algorithm.key_type());
    if host_keys.first().is_none_or(is_known) {
        return;
    }
    host_keys.sort_by_key(|algorithm| !(is_known(algorithm) || algorithm.is_certificate()));
}

/// The guess that memory allows. Never a classical method before a post-quantum one that both have, never against an
/// order that someone chose, never a host key type that is not known: it would have to be asked about.
fn sound(memory: &ServerMemory, config: &TransportConfig) -> Option<Guess> {
    let offer = &config.algorithms;
    let kex = Kex::from_name(&memory.first_kex).filter(|kex| offer.kex.contains(kex))?;
    let host_key = HostKeyAlgorithm::from_name(&memory.first_host_key)
        .filter(|algorithm| offer.host_keys.contains(algorithm))
        .filter(|algorithm| is_expected(*algorithm, config))?;
    let downgrade = memory.post_quantum && !kex.is_post_quantum();
    let kex_fixed = offer.kex_explicit && offer.kex.first() != Some(&kex);
    let host_key_fixed = offer.host_keys_explicit && offer.host_keys.first() != Some(&host_key);
    (!downgrade && !kex_fixed && !host_key_fixed).then_some(Guess { kex, host_key })
}

/// Whether a host is likely to be known by what it would show. Where an authority is known its certificate is wanted, and
/// no guess puts a plain key before it; OpenSSH's servers list the plain key first, so that this costs a round trip.
fn is_expected(algorithm: HostKeyAlgorithm, config: &TransportConfig) -> bool {
    if config.known_authority {
        return algorithm.is_certificate();
    }
    config.known_host_key_types.contains(&algorithm.key_type())
}

fn move_first<A: PartialEq>(list: &mut [A], first: A) {
    if let Some(place) = list.iter().position(|candidate| *candidate == first) {
        // Everything before it moves back by one, the rest keeps its order.
        if let Some(head) = list.get_mut(..=place) {
            head.rotate_right(1);
        }
    }
}

/// What the server, by its identification, does with the guess.
pub(super) fn judge(
    guess: Guess,
    ident: &Ident,
    theirs: &KexInit<'_>,
    negotiated: &Negotiated,
    offer: &Algorithms,
) -> Verdict {
    // The server has learned a post-quantum method since: our order, made for the guess, would hide it.
    if !guess.kex.is_post_quantum() && theirs.has_post_quantum(&offer.kex) && !offer.kex_explicit {
        return Verdict::Rejected;
    }
    let exact = is_exact(guess.kex.name(), guess.host_key.name(), theirs);
    let same_kex = negotiated.kex == guess.kex;
    match ident.family() {
        Family::OpenSsh | Family::Dropbear | Family::Mux => used_if(exact, Verdict::Dropped),
        Family::AsyncSsh | Family::TinySsh => used_if(same_kex, Verdict::Dropped),
        Family::Paramiko => used_if(same_kex, Verdict::Rejected),
        // All rules agree on an exact guess and on nothing else.
        Family::Unknown => used_if(exact, Verdict::Rejected),
    }
}

/// RFC 4253 §7: the same names come first.
pub(super) fn is_exact(kex: &str, host_key: &str, theirs: &KexInit<'_>) -> bool {
    theirs.kex.first() == Some(kex) && theirs.host_keys.first() == Some(host_key)
}

fn used_if(used: bool, otherwise: Verdict) -> Verdict {
    if used { Verdict::Used } else { otherwise }
}
