//! What a host's lists of algorithms leave of ours. Decides the offer; an empty one is an error that names the line.

use super::error::{ConfigError, Problem, Sourced};
use super::host_config::HostConfig;
use crate::algorithms::{Algorithms, SignatureAlgorithm};
use crate::keys::PublicKey;

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

    /// What keys may sign with to log in: ours, as `PubkeyAcceptedAlgorithms` changes them, best first.
    ///
    /// # Errors
    /// The list leaves nothing.
    pub fn signature_algorithms(&self) -> Result<Vec<SignatureAlgorithm>, ConfigError> {
        let Some(list) = &self.pubkey_accepted_algorithms else {
            return Ok(SignatureAlgorithm::ALL.to_vec());
        };
        SignatureAlgorithm::choose(&list.value).map_err(|_| nothing_left("PubkeyAcceptedAlgorithms", list))
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
