//! Further keys of a host that is known, as `UpdateHostKeys` wants them kept. Decides which of them are new, and whether
//! there is anything about the lines of the host that forbids to write others beside them: as OpenSSH, only lines that
//! programs write are added to and taken away, never what a person has arranged.

use std::collections::HashMap;

use super::entry::{Entry, Marker};
use super::hashed::{KeyTail, tail};
use super::{HostId, KnownHosts, Memo, Place};
use crate::keys::PublicKey;

/// What follows from the keys that a host says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Further {
    /// Nothing: the host has the keys by which it is known.
    Same,
    /// The lines of the host are to follow its keys.
    Differ {
        /// Keys that are not known yet.
        new: Vec<PublicKey>,
        /// Keys by which it is known in the file that is written to, and which it does not have any more.
        gone: Vec<Gone>,
    },
    /// Nothing: the line by which the host is known is not in one of the files that are written to.
    Elsewhere,
    /// Nothing: this line of the host has several names, patterns or a marker.
    Arranged(Place),
    /// Nothing: on this line another name has one of the keys.
    Shared(Place),
}

/// A key that a host does not have any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Where it stands.
    pub place: Place,
    /// Which.
    pub key: PublicKey,
}

impl KnownHosts {
    /// What is known about the `keys` that `host` says it has besides `accepted`, by which it is known in `files`.
    pub fn further_keys(
        &mut self,
        memo: &mut Memo,
        host: &HostId,
        accepted: &PublicKey,
        keys: &[PublicKey],
        files: &[String],
    ) -> Further {
        let name = host.name();
        if !self.is_known_in(memo, name, accepted, files) {
            return Further::Elsewhere;
        }
        let unknown = keys
            .iter()
            .filter(|key| !self.is_known_in(memo, name, key, files));
        let new: Vec<PublicKey> = unknown.cloned().collect();
        let gone = self.gone(memo, name, accepted, keys, files);
        if new.is_empty() && gone.is_empty() {
            return Further::Same;
        }
        let hashed = self.remembered(memo, name).unwrap_or_default();
        let entries = self.unhashed(name).into_iter().chain(hashed);
        let mut entries = entries.filter(|entry| is_in(entry, files));
        if let Some(odd) = entries.find(|entry| entry.marker != Marker::None || !entry.is_plain) {
            return Further::Arranged(odd.place.clone());
        }
        if self.by_key.is_none() {
            self.by_key = Some(self.keys_of_unhashed());
        }
        let all = keys.iter().chain(gone.iter().map(|gone| &gone.key));
        let mut others = all.filter_map(|key| self.other_with_key(name, key, files));
        match others.next() {
            Some(other) => Further::Shared(other.place.clone()),
            None => Further::Differ { new, gone },
        }
    }

    /// Keys that the host did not name, in the first of the files. A list without the key that was just shown is not the
    /// list of its keys, and what this build can't read may still be one of them.
    fn gone(
        &self,
        memo: &mut Memo,
        name: &str,
        accepted: &PublicKey,
        keys: &[PublicKey],
        files: &[String],
    ) -> Vec<Gone> {
        if !keys.contains(accepted) {
            return Vec::new();
        }
        let hashed = self.remembered(memo, name).unwrap_or_default();
        let own = self.unhashed(name).into_iter().chain(hashed);
        let first = files.get(..1).unwrap_or_default();
        let own = own.filter(|entry| entry.marker == Marker::None && is_in(entry, first));
        let gone = own.filter_map(|entry| {
            let key = PublicKey::parse(&entry.blob).ok()?;
            (!keys.contains(&key)).then(|| Gone {
                place: entry.place.clone(),
                key,
            })
        });
        gone.collect()
    }

    fn is_known_in(&self, memo: &mut Memo, name: &str, key: &PublicKey, files: &[String]) -> bool {
        let mut unhashed = self.unhashed(name).into_iter();
        let is_it = |entry: &&Entry| entry.vouches_for(key) && is_in(entry, files);
        unhashed.any(|entry| is_it(&entry))
            || self
                .hashed_with_key(memo, name, key)
                .is_some_and(|entry| is_it(&entry))
    }

    /// A line of one of the files on which another name has this key.
    fn other_with_key(&self, name: &str, key: &PublicKey, files: &[String]) -> Option<&Entry> {
        let hashed = self.hashed.with_key(key.blob(), 0);
        let hashed = hashed.filter(|(_, hashed)| !hashed.is_of(name));
        let hashed = hashed.filter_map(|(_, hashed)| self.entry(hashed.entry));
        let own = self.unhashed(name);
        let places = self
            .by_key
            .as_ref()
            .and_then(|by_key| by_key.get(&tail(key.blob())));
        let unhashed = places
            .into_iter()
            .flatten()
            .filter_map(|index| self.entry(*index));
        let unhashed = unhashed.filter(|entry| !own.iter().any(|own| std::ptr::eq(*own, *entry)));
        let mut others = hashed.chain(unhashed);
        others.find(|entry| *entry.blob == *key.blob() && is_in(entry, files))
    }

    fn keys_of_unhashed(&self) -> HashMap<KeyTail, Vec<u32>> {
        let literal = self.literal.values().flatten();
        let indices = literal
            .chain(self.patterns.iter().map(|(_, index)| index))
            .copied();
        let mut by_key: HashMap<_, Vec<u32>> = HashMap::new();
        for index in indices {
            if let Some(entry) = self.entry(index) {
                by_key.entry(tail(&entry.blob)).or_default().push(index);
            }
        }
        by_key
    }

    /// A line that is added later is found by its key too.
    pub(super) fn index_key(&mut self, index: u32, entry: &Entry) {
        if let Some(by_key) = &mut self.by_key {
            by_key.entry(tail(&entry.blob)).or_default().push(index);
        }
    }
}

fn is_in(entry: &Entry, files: &[String]) -> bool {
    files.iter().any(|file| **file == *entry.place.file)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    const THIRD: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK+2YX1q7uhAN1tpdzw4tPc/SUJlk2F2dY/Ljsvhe1sp";

    fn new_other() -> Further {
        Further::Differ {
            new: vec![key(OTHER)],
            gone: Vec::new(),
        }
    }

    fn key(text: &str) -> PublicKey {
        PublicKey::parse_line(text).unwrap().key
    }

    fn place(file: &str, line: u32) -> Place {
        Place {
            file: file.into(),
            line,
        }
    }

    /// What follows if `web1` is known by [`KEY`] and says that it has [`OTHER`] too; `user` and `global` are what the
    /// files say.
    fn check(user: &str, global: &str, expected: &Further) {
        let lines = |text: &str| {
            let text = text.replace("KEY", KEY).replace("OTHER", OTHER);
            text.replace("THIRD", THIRD)
        };
        let (user, global) = (lines(user), lines(global));
        let files = [("user", user.as_bytes()), ("global", global.as_bytes())];
        let mut known = KnownHosts::parse(files);
        let host = HostId::new("web1", 22);
        let keys = [key(KEY), key(OTHER)];
        let files = ["user".to_owned()];
        let further = known.further_keys(&mut Memo::default(), &host, &keys[0], &keys, &files);
        assert_eq!(further, *expected, "{user}{global}");
    }

    fn hashed(name: &str, key_text: &str) -> String {
        super::super::format_entry(&HostId::new(name, 22), &key(key_text), true).unwrap()
    }

    #[test]
    fn what_is_not_known_yet_is_new() {
        let new = new_other();
        check("web1 KEY\n", "", &new);
        check(
            "web1 KEY\nweb2 ssh-ed448 AAAACXNzaC1lZDQ0OA==\n",
            "web1 OTHER",
            &new,
        );
        check(&hashed("web1", KEY), "", &new);
        check("web1 KEY\nweb1 OTHER\n", "", &Further::Same);
        check(&(hashed("web1", KEY) + "web1 OTHER\n"), "", &Further::Same);
        check(
            &(hashed("web1", KEY) + &hashed("web1", OTHER)),
            "",
            &Further::Same,
        );
    }

    #[test]
    fn what_the_host_does_not_name_in_the_file_that_is_written_to_is_gone() {
        let third = |line| Gone {
            place: place("user", line),
            key: key(THIRD),
        };
        let gone = |new: &[&str], gone| Further::Differ {
            new: new.iter().map(|text| key(text)).collect(),
            gone,
        };
        check("web1 KEY\nweb1 THIRD\n", "", &gone(&[OTHER], vec![third(2)]));
        check(
            "web1 THIRD\nweb1 KEY\nweb1 OTHER\n",
            "",
            &gone(&[], vec![third(1)]),
        );
        check(
            &(hashed("web1", KEY) + &hashed("web1", THIRD) + "web1 OTHER\n"),
            "",
            &gone(&[], vec![third(2)]),
        );
        // What this build can't read may be one that was named; what others have, or a person has arranged, stays.
        let all = "web1 KEY\nweb1 OTHER\n";
        check(
            &format!("{all}web1 ssh-ed448 AAAACXNzaC1lZDQ0OA==\n"),
            "",
            &Further::Same,
        );
        check(all, "web1 THIRD\n", &Further::Same);
        check(
            &format!("{all}web1 THIRD\nweb2 THIRD\n"),
            "",
            &Further::Shared(place("user", 4)),
        );
        check(
            &format!("{all}web1,web2 THIRD\n"),
            "",
            &Further::Arranged(place("user", 3)),
        );
    }

    #[test]
    fn a_list_without_the_key_that_was_shown_takes_nothing_away() {
        let content = format!("web1 {KEY}\nweb1 {THIRD}\nweb1 {OTHER}\n");
        let mut known = KnownHosts::parse([("user", content.as_bytes())]);
        let host = HostId::new("web1", 22);
        let mut further = |keys: &[PublicKey]| {
            let files = ["user".to_owned()];
            known.further_keys(&mut Memo::default(), &host, &key(KEY), keys, &files)
        };
        assert_eq!(further(&[key(OTHER)]), Further::Same);
        assert_ne!(further(&[key(OTHER), key(KEY)]), Further::Same);
    }

    #[test]
    fn a_key_of_the_systems_file_brings_no_others() {
        check("", "web1 KEY\n", &Further::Elsewhere);
        check("web2 KEY\n", "web1 KEY\n", &Further::Elsewhere);
        check("@cert-authority web1 KEY\n", "", &Further::Elsewhere);
    }

    #[test]
    fn lines_that_a_person_has_arranged_are_not_added_to() {
        for line in [
            "web1,10.0.0.1 KEY\n",
            "web* KEY\n",
            "web1 KEY\n@revoked web1 OTHER\n",
            "web1 KEY\nweb*,!web2 ssh-ed448 AAAACXNzaC1lZDQ0OA==\n",
        ] {
            let at = u32::try_from(line.lines().count()).unwrap();
            check(line, "", &Further::Arranged(place("user", at)));
        }
    }

    #[test]
    fn a_key_that_another_name_has_is_shared() {
        for (line, at) in [
            ("web1 KEY\nweb2 KEY\n".to_owned(), 2),
            ("web2 OTHER\nweb1 KEY\n".to_owned(), 1),
            ("web2* OTHER\nweb1 KEY\n".to_owned(), 1),
            (hashed("web2", KEY) + "web1 KEY\n", 1),
            (hashed("web1", KEY) + &hashed("web2", OTHER), 2),
        ] {
            check(&line, "", &Further::Shared(place("user", at)));
        }
        check("web1 KEY\n", "web2 OTHER\n", &new_other());
    }
}
