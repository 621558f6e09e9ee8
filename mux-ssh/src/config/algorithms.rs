//! What a host's lists of algorithms leave of ours. Decides the offer; an empty one is an error that names the line.

use std::fmt;

use super::error::{ConfigError, Origin, Problem, Sourced};
use super::host_config::HostConfig;
use crate::algorithms::{Algorithms, Cipher, Kex, Mac, PublicKeyAlgorithm, SignatureAlgorithm};
use crate::keys::PublicKey;
use crate::printable::Printable;

/// A name in a list that is none of OpenSSH's: a slip, or newer than this build. The list counts without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm {
    /// Where the list stands.
    pub origin: Origin,
    /// The keyword, as the manual writes it.
    pub keyword: &'static str,
    /// As written.
    pub name: String,
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (origin, keyword, name) = (&self.origin, self.keyword, Printable::new(&self.name));
        write!(f, "{origin}: {keyword}: no algorithm is called {name}")
    }
}

impl HostConfig {
    /// What to offer the host: our algorithms, as `KexAlgorithms`, `HostKeyAlgorithms`, `Ciphers` and `MACs` change
    /// them. Names that this build lacks are passed over.
    ///
    /// # Errors
    /// A list leaves nothing.
    pub fn algorithms(&self) -> Result<Algorithms, ConfigError> {
        let mut algorithms = Algorithms::default();
        if let Some(list) = &self.kex_algorithms {
            algorithms
                .set_kex(&list.value)
                .map_err(|_| nothing_left("KexAlgorithms", list))?;
        }
        if let Some(list) = &self.host_key_algorithms {
            algorithms
                .set_host_keys(&list.value)
                .map_err(|_| nothing_left("HostKeyAlgorithms", list))?;
        }
        if let Some(list) = &self.ciphers {
            algorithms
                .set_ciphers(&list.value)
                .map_err(|_| nothing_left("Ciphers", list))?;
        }
        if let Some(list) = &self.macs {
            algorithms
                .set_macs(&list.value)
                .map_err(|_| nothing_left("MACs", list))?;
        }
        Ok(algorithms)
    }

    /// What keys may be shown and sign as to log in: ours, as `PubkeyAcceptedAlgorithms` changes and orders them.
    ///
    /// # Errors
    /// The list leaves nothing.
    pub fn signature_algorithms(&self) -> Result<Vec<PublicKeyAlgorithm>, ConfigError> {
        let Some(list) = &self.pubkey_accepted_algorithms else {
            return Ok(PublicKeyAlgorithm::ALL.to_vec());
        };
        PublicKeyAlgorithm::choose(&list.value).map_err(|_| nothing_left("PubkeyAcceptedAlgorithms", list))
    }

    /// What authorities may sign certificates with: ours, as `CASignatureAlgorithms` changes them.
    ///
    /// # Errors
    /// The list leaves nothing.
    pub fn authority_algorithms(&self) -> Result<Vec<SignatureAlgorithm>, ConfigError> {
        let Some(list) = &self.host_keys.ca_signature_algorithms else {
            return Ok(SignatureAlgorithm::ALL.to_vec());
        };
        SignatureAlgorithm::choose(&list.value).map_err(|_| nothing_left("CASignatureAlgorithms", list))
    }

    /// The names in all these lists that nobody knows. Those that OpenSSH has and this build lacks are none of them:
    /// the files of distributions are full of them.
    #[must_use]
    pub fn unknown_algorithms(&self) -> Vec<UnknownAlgorithm> {
        let lists = [
            of("KexAlgorithms", self.kex_algorithms.as_ref(), Kex::unknown),
            of(
                "HostKeyAlgorithms",
                self.host_key_algorithms.as_ref(),
                PublicKeyAlgorithm::unknown,
            ),
            of("Ciphers", self.ciphers.as_ref(), Cipher::unknown),
            of("MACs", self.macs.as_ref(), Mac::unknown),
            of(
                "PubkeyAcceptedAlgorithms",
                self.pubkey_accepted_algorithms.as_ref(),
                PublicKeyAlgorithm::unknown,
            ),
            of(
                "CASignatureAlgorithms",
                self.host_keys.ca_signature_algorithms.as_ref(),
                PublicKeyAlgorithm::unknown,
            ),
        ];
        lists.into_iter().flatten().collect()
    }

    /// Whether `RequiredRSASize` lets a key be used, the host's or the user's.
    ///
    /// # Errors
    /// It is an RSA key and too small.
    pub fn admits(&self, key: &PublicKey) -> Result<(), ConfigError> {
        let required = &self.required_rsa_size;
        match key.rsa_bits() {
            Some(bits) if usize::try_from(required.value).is_ok_and(|required| bits < required) => {
                let problem = Problem::RsaKeyTooSmall {
                    bits,
                    required: required.value,
                };
                Err(ConfigError {
                    origin: required.origin.clone(),
                    problem,
                })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// What `unknown` finds in one list.
fn of<'a, N: Iterator<Item = &'a str>>(
    keyword: &'static str,
    list: Option<&'a Sourced<String>>,
    unknown: impl FnOnce(&'a str) -> N,
) -> Vec<UnknownAlgorithm> {
    let Some(list) = list else { return Vec::new() };
    let named = unknown(&list.value).map(|name| UnknownAlgorithm {
        origin: list.origin.clone(),
        keyword,
        name: name.to_owned(),
    });
    named.collect()
}

fn nothing_left(keyword: &'static str, list: &Sourced<String>) -> ConfigError {
    let problem = Problem::NoAlgorithmLeft {
        keyword,
        value: list.value.clone(),
    };
    ConfigError {
        origin: list.origin.clone(),
        problem,
    }
}
