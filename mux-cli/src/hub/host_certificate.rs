//! Whether a certificate vouches for a host, and what is said if it does not. One that doesn't is as good as none, as in
//! OpenSSH: the key in it counts as if it had been shown alone. Never reads a file or a clock.

use std::sync::Arc;

use mux_ssh::algorithms::SignatureAlgorithm;
use mux_ssh::keys::{Certificate, CertificateError};
use mux_ssh::known_hosts::{Authority, HostId};

/// A certificate that a host has shown, or what is wrong with it.
pub type Shown = Result<Arc<Certificate>, CertificateError>;

/// What a certificate decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vouching {
    /// Go on: somebody who may has vouched for the host.
    Accept,
    /// Close, for this reason.
    Refuse(String),
    /// Nothing: the key decides. What is to be said of the certificate if it decides against the host.
    Nothing(Option<String>),
}

/// Decides about what `host` has shown, at `now`, in seconds since 1970. `authority` tells what known_hosts says about
/// the one who signed it, `accepted` what authorities may sign with.
pub fn vouching(
    host: &HostId,
    shown: &Shown,
    authority: impl FnOnce(&Certificate) -> Authority,
    now: u64,
    accepted: &[SignatureAlgorithm],
) -> Vouching {
    let certificate = match shown {
        Ok(certificate) => certificate,
        Err(error) => return Vouching::Nothing(Some(format!("host showed a {error}"))),
    };
    let signer = || certificate.authority().fingerprint_sha256();
    match authority(certificate) {
        Authority::Revoked(place) => {
            let key = certificate.key().fingerprint_sha256();
            let signer = signer();
            Vouching::Refuse(format!(
                "host certificate revoked ({place} names its key {key} or its authority {signer})"
            ))
        }
        Authority::Unknown => Vouching::Nothing(Some(format!(
            "host showed a certificate by an authority that is not known for it ({})",
            signer()
        ))),
        Authority::Trusted(place) => match certificate.check_host(host.principal(), now, accepted) {
            Ok(()) => Vouching::Accept,
            Err(refusal) => Vouching::Nothing(Some(format!("host {refusal} (authority of {place})"))),
        },
    }
}
