//! The lists of algorithms that one connection offers, and OpenSSH's syntax for changing them
//! (`ssh_config(5)`, `KexAlgorithms` and its siblings). It never adds a name that this build lacks.

use super::{Cipher, HostKeyAlgorithm, Kex, Mac, PublicKeyAlgorithm, SignatureAlgorithm};
use crate::Misuse;

/// What a connection offers, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithms {
    /// Key exchanges.
    pub kex: Vec<Kex>,
    /// Host key algorithms.
    pub host_keys: Vec<HostKeyAlgorithm>,
    /// Ciphers, the same both ways.
    pub ciphers: Vec<Cipher>,
    /// MACs, the same both ways.
    pub macs: Vec<Mac>,
    /// Someone chose the key exchanges: their order is never changed.
    pub kex_explicit: bool,
    /// Someone chose the order of the host key algorithms: it is never changed. A list that only adds or removes some
    /// chooses none, as in OpenSSH.
    pub host_keys_explicit: bool,
}

impl Default for Algorithms {
    fn default() -> Self {
        Self {
            kex: Kex::ALL.to_vec(),
            host_keys: HostKeyAlgorithm::ALL.to_vec(),
            ciphers: Cipher::default_order(),
            macs: Mac::ALL.to_vec(),
            kex_explicit: false,
            host_keys_explicit: false,
        }
    }
}

impl Algorithms {
    /// Applies a `KexAlgorithms` value.
    ///
    /// # Errors
    /// [`Misuse::NoAlgorithmLeft`]
    pub fn set_kex(&mut self, list: &str) -> Result<(), Misuse> {
        self.kex = apply(list, &self.kex, Kex::ALL, Kex::name)?;
        self.kex_explicit = true;
        Ok(())
    }

    /// Applies a `HostKeyAlgorithms` value.
    ///
    /// # Errors
    /// [`Misuse::NoAlgorithmLeft`]
    pub fn set_host_keys(&mut self, list: &str) -> Result<(), Misuse> {
        self.host_keys = apply(
            list,
            &self.host_keys,
            HostKeyAlgorithm::ALL,
            HostKeyAlgorithm::name,
        )?;
        self.host_keys_explicit |= !matches!(mode(list).0, b'+' | b'-');
        Ok(())
    }

    /// Applies a `Ciphers` value.
    ///
    /// # Errors
    /// [`Misuse::NoAlgorithmLeft`]
    pub fn set_ciphers(&mut self, list: &str) -> Result<(), Misuse> {
        self.ciphers = apply(list, &self.ciphers, Cipher::ALL, Cipher::name)?;
        Ok(())
    }

    /// Applies a `MACs` value, behind `Ciphers`. A list that leaves no MAC leaves the ciphers that need none; the names
    /// stay in the offer, unused, because some peers want an overlap whatever the cipher.
    ///
    /// # Errors
    /// [`Misuse::NoAlgorithmLeft`]: every cipher needs a MAC.
    pub fn set_macs(&mut self, list: &str) -> Result<(), Misuse> {
        let nothing_left = match apply(list, &self.macs, Mac::ALL, Mac::name) {
            Ok(macs) => {
                self.macs = macs;
                return Ok(());
            }
            Err(nothing_left) => nothing_left,
        };
        if !self.ciphers.iter().any(|cipher| cipher.is_authenticated()) {
            return Err(nothing_left);
        }
        self.ciphers.retain(|cipher| cipher.is_authenticated());
        Ok(())
    }
}

impl PublicKeyAlgorithm {
    /// Applies a `PubkeyAcceptedAlgorithms` value to all.
    ///
    /// # Errors
    /// [`Misuse::NoAlgorithmLeft`]
    pub fn choose(list: &str) -> Result<Vec<Self>, Misuse> {
        apply(list, Self::ALL, Self::ALL, Self::name)
    }
}

impl SignatureAlgorithm {
    /// Applies a `CASignatureAlgorithms` value to all.
    ///
    /// # Errors
    /// [`Misuse::NoAlgorithmLeft`]
    pub fn choose(list: &str) -> Result<Vec<Self>, Misuse> {
        apply(list, Self::ALL, Self::ALL, Self::name)
    }
}

/// `+` appends, `-` removes, `^` puts first, anything else replaces, each with wildcards. Names that this build lacks
/// are passed over: lists are written for OpenSSH, which has more.
fn apply<A: Copy + PartialEq>(
    list: &str,
    default: &[A],
    all: &[A],
    name: fn(A) -> &'static str,
) -> Result<Vec<A>, Misuse> {
    let (mode, names) = mode(list);
    let patterns = || names.split(',').map(str::trim);
    let matching = |pattern| {
        all.iter()
            .copied()
            .filter(move |&one| matches(pattern, name(one)))
    };
    let named = || patterns().flat_map(matching);
    let candidates: Vec<A> = match mode {
        b'+' => default.iter().copied().chain(named()).collect(),
        b'^' => named().chain(default.iter().copied()).collect(),
        b'-' => {
            let removed = |algorithm: &A| patterns().any(|pattern| matches(pattern, name(*algorithm)));
            default
                .iter()
                .copied()
                .filter(|algorithm| !removed(algorithm))
                .collect()
        }
        _ => named().collect(),
    };
    let mut chosen = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if !chosen.contains(&candidate) {
            chosen.push(candidate);
        }
    }
    if chosen.is_empty() {
        Err(Misuse::NoAlgorithmLeft)
    } else {
        Ok(chosen)
    }
}

/// What a list does, `=` if it replaces, and its names.
pub(super) fn mode(list: &str) -> (u8, &str) {
    match list.as_bytes().first() {
        Some(mode @ (b'+' | b'-' | b'^')) => (*mode, list.get(1..).unwrap_or_default()),
        _ => (b'=', list),
    }
}

/// OpenSSH's patterns: `*` and `?`. Steps back to the last `*` only, so the time is the product of the lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut retry = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || name.get(n) == Some(byte) => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    retry = Some((after_star, from + 1));
                    p = after_star;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|&byte| byte == b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, expected: Result<&[Kex], Misuse>) {
        let mut algorithms = Algorithms::default();
        let result = algorithms.set_kex(list).map(|()| algorithms.kex.as_slice());
        assert_eq!(result, expected, "{list}");
    }

    #[test]
    fn a_plain_list_replaces_and_keeps_its_order() {
        check(
            "ecdh-sha2-nistp256,curve25519-sha256",
            Ok(&[Kex::EcdhNistp256, Kex::Curve25519]),
        );
    }

    #[test]
    fn unknown_and_repeated_names_are_passed_over() {
        check(
            "diffie-hellman-group14-sha256,curve25519-sha256,curve25519-sha256",
            Ok(&[Kex::Curve25519]),
        );
    }

    #[test]
    fn a_list_that_leaves_nothing_is_an_error() {
        check("diffie-hellman-group14-sha256", Err(Misuse::NoAlgorithmLeft));
        check("-*", Err(Misuse::NoAlgorithmLeft));
    }

    #[test]
    fn minus_removes_by_wildcard() {
        check("-*x25519*,*@libssh.org,ecdh-*", Ok(&[Kex::Curve25519]));
    }

    #[test]
    fn wildcards_name_all_that_they_match_wherever_they_stand() {
        check(
            "curve25519-sha256,ecdh-*,*nistp384",
            Ok(&[
                Kex::Curve25519,
                Kex::EcdhNistp256,
                Kex::EcdhNistp384,
                Kex::EcdhNistp521,
            ]),
        );
        assert_eq!(
            SignatureAlgorithm::choose("rsa-sha2-???,ssh-dss*"),
            Ok(vec![
                SignatureAlgorithm::RsaSha2_512,
                SignatureAlgorithm::RsaSha2_256
            ])
        );
        let mut algorithms = Algorithms::default();
        assert_eq!(algorithms.set_kex("^ecdh-*521"), Ok(()));
        assert_eq!(algorithms.kex.first(), Some(&Kex::EcdhNistp521));
    }

    #[test]
    fn caret_puts_first() {
        let mut algorithms = Algorithms::default();
        assert_eq!(algorithms.set_kex("^curve25519-sha256"), Ok(()));
        assert_eq!(algorithms.kex.first(), Some(&Kex::Curve25519));
        assert_eq!(algorithms.kex.len(), Kex::ALL.len());
        assert!(algorithms.kex_explicit);
    }

    #[test]
    fn plus_appends_what_is_missing() {
        let mut algorithms = Algorithms::default();
        assert_eq!(algorithms.set_ciphers("aes256-gcm@openssh.com"), Ok(()));
        assert_eq!(
            algorithms.set_ciphers("+aes256-gcm@openssh.com,chacha20-poly1305@openssh.com"),
            Ok(())
        );
        assert_eq!(algorithms.ciphers, [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305]);
    }

    #[test]
    fn macs_that_this_build_lacks_leave_the_ciphers_that_need_none() {
        let mut algorithms = Algorithms::default();
        assert_eq!(algorithms.set_macs("hmac-sha2-512,umac-64@openssh.com"), Ok(()));
        assert_eq!(algorithms.macs, [Mac::HmacSha2_512]);
        assert_eq!(algorithms.ciphers.len(), Cipher::ALL.len());

        let mut algorithms = Algorithms::default();
        assert_eq!(algorithms.set_macs("umac-64@openssh.com"), Ok(()));
        assert!(algorithms.ciphers.iter().all(|cipher| cipher.is_authenticated()));
        assert_eq!(algorithms.ciphers.len(), 3);

        let mut algorithms = Algorithms::default();
        assert_eq!(algorithms.set_ciphers("aes128-ctr"), Ok(()));
        assert_eq!(
            algorithms.set_macs("umac-64@openssh.com"),
            Err(Misuse::NoAlgorithmLeft)
        );
    }

    #[test]
    fn patterns_match_as_in_openssh_and_never_take_exponential_time() {
        assert!(matches("a?c*", "abc"));
        assert!(!matches("a?c", "ac"));
        assert!(matches("*", ""));
        assert!(!matches("", "a"));
        assert!(!matches(&"a*".repeat(200), &"a".repeat(190)));
    }
}
