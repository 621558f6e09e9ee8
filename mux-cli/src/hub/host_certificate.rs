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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use mux_ssh::keys::PrivateKey;
    use mux_ssh::known_hosts::Place;
    use mux_ssh::server::Draft;

    use super::*;

    fn shown(draft: &Draft, signer: &PrivateKey) -> Shown {
        let key = PrivateKey::generate(mux_ssh::algorithms::KeyType::Ed25519).unwrap();
        let blob = draft
            .sign(key.public(), signer, SignatureAlgorithm::Ed25519)
            .unwrap();
        Certificate::parse(&blob).map(Arc::new)
    }

    fn place() -> Place {
        Place {
            file: "known_hosts".into(),
            line: 3,
        }
    }

    /// Judges a certificate of `web1` that holds in the seconds from 1,000 to 1,999 on port 2222.
    fn check(authority: Authority, now: u64) -> (Vouching, String) {
        let signer = PrivateKey::generate(mux_ssh::algorithms::KeyType::Ed25519).unwrap();
        let draft = Draft {
            valid_after: 1000,
            valid_before: 2000,
            ..Draft::of_host(&["web1"])
        };
        let host = HostId::new("web1", 2222);
        let shown = shown(&draft, &signer);
        let vouching = vouching(&host, &shown, |_| authority, now, SignatureAlgorithm::ALL);
        (vouching, signer.public().fingerprint_sha256())
    }

    #[test]
    fn a_certificate_by_a_known_authority_is_enough() {
        assert_eq!(check(Authority::Trusted(place()), 1500).0, Vouching::Accept);
    }

    #[test]
    fn one_that_does_not_hold_leaves_it_to_the_key_and_says_why() {
        let (vouching, _) = check(Authority::Trusted(place()), 2000);
        let why = "host certificate expired 1970-01-01 00:33 UTC (authority of known_hosts:3)";
        assert_eq!(vouching, Vouching::Nothing(Some(why.to_owned())));
    }

    #[test]
    fn one_by_nobody_known_leaves_it_to_the_key_and_says_whose_it_is() {
        let (vouching, signer) = check(Authority::Unknown, 1500);
        let why = format!("host showed a certificate by an authority that is not known for it ({signer})");
        assert_eq!(vouching, Vouching::Nothing(Some(why)));
    }

    #[test]
    fn one_that_was_revoked_is_refused_whatever_the_key() {
        let (vouching, signer) = check(Authority::Revoked(place()), 1500);
        let Vouching::Refuse(reason) = vouching else {
            unreachable!("{vouching:?}")
        };
        assert!(
            reason.starts_with("host certificate revoked (known_hosts:3 names "),
            "{reason}"
        );
        assert!(reason.contains(&signer), "{reason}");
    }
}
