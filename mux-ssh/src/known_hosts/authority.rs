//! Who may vouch for a host by a certificate: `@cert-authority` lines, and `@revoked` ones that name the authority or the
//! key. Decides nothing about what the certificate says.

use super::entry::{Entry, Marker};
use super::{HostId, KnownHosts, Memo, Place};
use crate::keys::{Certificate, PublicKey};

/// What the files say about the one who signed a host's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// May sign for the host.
    Trusted(Place),
    /// The authority, or the key that it signed, was declared void; this overrules everything else.
    Revoked(Place),
    /// No line about this host names it.
    Unknown,
}

impl KnownHosts {
    /// Whether `certificate`, shown by `host`, is signed by somebody who may.
    #[must_use]
    pub fn authority(&self, memo: &mut Memo, host: &HostId, certificate: &Certificate) -> Authority {
        let keys = [certificate.key(), certificate.authority()];
        // A line without a port vouches for (or revokes) on any port, as it does for keys. Unlike OpenSSH, which leaves it
        // at the first name that has an authority, whatever any line revokes is void.
        if let Some(place) = host.names().find_map(|name| self.revoking(name, &keys)) {
            return Authority::Revoked(place);
        }
        let vouching = host
            .names()
            .find_map(|name| self.vouching(memo, name, certificate));
        vouching.map_or(Authority::Unknown, Authority::Trusted)
    }

    fn vouching(&self, memo: &mut Memo, name: &str, certificate: &Certificate) -> Option<Place> {
        let vouches = |entry: &&Entry| {
            entry.marker == Marker::CertAuthority && *entry.blob == *certificate.authority().blob()
        };
        let found = self.unhashed(name).into_iter().find(vouches);
        // An authority with its host hashed is rare, so every such line is tried only where nothing else vouches.
        let found = found.or_else(|| self.scan(memo, name).into_iter().find(vouches));
        found.map(|entry| entry.place.clone())
    }

    fn revoking(&self, name: &str, keys: &[&PublicKey]) -> Option<Place> {
        let revokes = |entry: &&Entry| {
            entry.marker == Marker::Revoked && keys.iter().any(|key| *entry.blob == *key.blob())
        };
        let unhashed = self.unhashed(name).into_iter().find(revokes);
        let mut hashed = keys.iter().flat_map(|key| self.revoked_hashed(name, key));
        unhashed
            .or_else(|| hashed.next())
            .map(|entry| entry.place.clone())
    }
}
