//! A search through hashed names that somebody else may do: line by line, a hash each, which for thousands of lines takes
//! too long for whoever has other things to do. Decides when there is one to be done; never who does it.

use std::sync::Arc;

use super::hashed::HashedName;
use super::{HostId, KnownHosts, Memo, Salt};
use crate::keys::PublicKey;

/// Hashes that are not worth handing to somebody else: an eighth of a millisecond.
const MAX_AT_ONCE: usize = 1000;

/// What is to be searched for, and where. It stands alone, so that it may be done anywhere.
#[derive(Clone, Debug)]
pub struct Scan {
    names: Vec<String>,
    hashed: Arc<Vec<HashedName>>,
    stamp: u64,
}

/// What a search has found, for [`Memo::take`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    pub(super) salts: Vec<(String, Vec<Salt>)>,
    pub(super) stamp: u64,
}

impl KnownHosts {
    /// The search that [`lookup`](Self::lookup) would do for this key. `None`: it gets along without, or with a small one.
    #[must_use]
    pub fn scan_for(&self, memo: &mut Memo, host: &HostId, key: &PublicKey) -> Option<Scan> {
        if self.hashed.len() <= MAX_AT_ONCE {
            return None;
        }
        let stamp = self.hashed.stamp();
        let unsearched = host.names().filter(|name| !memo.is_complete(name, stamp));
        let names: Vec<String> = unsearched.map(str::to_owned).collect();
        if names.is_empty()
            || host
                .names()
                .any(|name| self.by_key_alone(memo, name, key).is_some())
        {
            return None;
        }
        Some(Scan {
            names,
            hashed: self.hashed.shared(),
            stamp,
        })
    }
}

impl Scan {
    /// Does it. A thousand lines take an eighth of a millisecond for each name.
    #[must_use]
    pub fn run(&self) -> Scanned {
        let salts = |name: &String| {
            let found = self.hashed.iter().filter(|hashed| hashed.is_of(name));
            (name.clone(), found.map(|hashed| hashed.salt).collect())
        };
        Scanned {
            salts: self.names.iter().map(salts).collect(),
            stamp: self.stamp,
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::known_hosts::{Place, Verdict, format_entry};

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn key(text: &str) -> PublicKey {
        PublicKey::parse_line(text).unwrap().key
    }

    /// Hosts `web1`, `web2`… under hashed names, all with one key; so many lines.
    fn hosts(lines: usize) -> KnownHosts {
        let lines = 1..=lines;
        let lines = lines
            .map(|number| format_entry(&HostId::new(&format!("web{number}"), 22), &key(KEY), true).unwrap());
        KnownHosts::parse([("file", lines.collect::<String>().as_bytes())])
    }

    #[test]
    fn what_somebody_else_has_searched_for_is_what_a_lookup_finds() {
        let hosts = hosts(MAX_AT_ONCE + 1);
        for (name, port, sent) in [
            ("web7", 22, OTHER),
            ("web7", 2222, OTHER),
            ("db", 22, KEY),
            ("db", 2222, OTHER),
        ] {
            let (host, sent) = (HostId::new(name, port), key(sent));
            let mut memo = Memo::default();
            let scan = hosts.scan_for(&mut memo, &host, &sent).unwrap();
            memo.take(&scan.run());
            assert!(hosts.scan_for(&mut memo, &host, &sent).is_none());
            let expected = hosts.lookup(&mut Memo::default(), &host, &sent);
            assert_eq!(hosts.lookup(&mut memo, &host, &sent), expected, "{name} {port}");
        }
        // A search for one name, of which the memo then knows all, does not look at any other line again.
        let (host, sent) = (HostId::new("web7", 22), key(OTHER));
        let mut memo = Memo::default();
        let scan = hosts.scan_for(&mut memo, &host, &sent).unwrap();
        memo.take(&scan.run());
        let place = Place {
            file: "file".into(),
            line: 7,
        };
        let known = hosts.lookup(&mut memo, &host, &key(KEY));
        assert_eq!(known, Verdict::Known(place));
    }

    #[test]
    fn known_hosts_and_short_files_need_no_search() {
        let long = hosts(MAX_AT_ONCE + 1);
        let needs = |hosts: &KnownHosts, name: &str| {
            let (host, sent) = (HostId::new(name, 22), key(KEY));
            hosts.scan_for(&mut Memo::default(), &host, &sent).is_some()
        };
        assert!(!needs(&long, "web1") && !needs(&long, "web900"));
        assert!(needs(&long, "db"));
        assert!(!needs(&hosts(MAX_AT_ONCE), "db"));
    }
}
