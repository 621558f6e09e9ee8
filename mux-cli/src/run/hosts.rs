//! The known_hosts files of a run: each set read once, asked many times. Decides nothing about a key; that is the hub's
//! `judge`. Writes nothing; that is for `lessons`.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use mux_ssh::Printable;
use mux_ssh::algorithms::KeyType;
use mux_ssh::config::HostKeyPolicy;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{Authority, Further, HostId, KeyTypes, KnownHosts, Memo, Place, Verdict};

use super::learning::Found;
use super::lessons::{Lesson, Lessons, Stamp};
use super::profile::Profile;
use super::revoked::Revoked;
use super::wall_clock;
use crate::files::{self, FileError};
use crate::hub::{Decision, KeptIn, Shown, Vouching, judge, vouching};
use crate::state::State;

/// Nine thousand hosts are a megabyte; more than this is no known_hosts file.
pub(crate) const MAX_FILE: u64 = 64 * 1024 * 1024;

/// What lines are called that a `KnownHostsCommand` has printed.
pub(crate) const TOLD_BY_COMMAND: &str = "KnownHostsCommand";

/// The files of one kind of target.
#[derive(Debug)]
struct Set {
    files: Vec<String>,
    known: KnownHosts,
    memo: Memo,
}

/// All known_hosts files that a run has to do with.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    sets: Vec<Set>,
    by_files: HashMap<Vec<String>, usize>,
    /// The set that was asked last: mostly the next is the same, and it is asked three times for each target.
    last: usize,
    default_file: String,
    pub(crate) lessons: Lessons,
    revoked: Revoked,
    warnings: Vec<String>,
    /// What is said with `-v`.
    remarks: Vec<String>,
}

impl Hosts {
    /// `default_file` is the one that `ssh-keygen` changes if no other is named.
    pub(crate) fn new(default_file: String) -> Self {
        Self {
            default_file,
            ..Self::default()
        }
    }

    /// By which types of key a host is known, or likely to be.
    pub(crate) fn key_types(&mut self, profile: &Profile, host: &HostId, state: &State) -> KeyTypes {
        let set = self.set(profile);
        for name in host.names().filter(|_| set.known.has_hashed_names()) {
            if set.memo.salts(name).is_none() {
                set.memo.remember(name, state.salts(name));
            }
        }
        set.known.key_types(&mut set.memo, host)
    }

    /// Decides about a key that a host proved to have.
    /// It was asked for as `target`.
    pub(crate) fn judge(
        &mut self,
        profile: &Profile,
        host: &HostId,
        target: &str,
        key: &PublicKey,
        told: Option<&KnownHosts>,
    ) -> Decision {
        let verdict = self.verdict(profile, host, key, told);
        self.decide(profile, host, target, key, &verdict)
    }

    /// Decides about a key of which this is known.
    pub(crate) fn decide(
        &self,
        profile: &Profile,
        host: &HostId,
        target: &str,
        key: &PublicKey,
        verdict: &Verdict,
    ) -> Decision {
        judge(host, profile.policy, verdict, key, self.kept(target))
    }

    /// What the files, and a command, say about a key.
    pub(crate) fn verdict(
        &mut self,
        profile: &Profile,
        host: &HostId,
        key: &PublicKey,
        told: Option<&KnownHosts>,
    ) -> Verdict {
        let set = self.set(profile);
        let verdict = set.known.lookup(&mut set.memo, host, key);
        match told {
            Some(told) => both(verdict, told.lookup(&mut Memo::default(), host, key)),
            None => verdict,
        }
    }

    /// Whether a certificate, or a list of revoked keys, decides about a host before its key does.
    pub(crate) fn vouching(
        &mut self,
        profile: &Profile,
        host: &HostId,
        key: &PublicKey,
        certificate: Option<&Shown>,
        told: Option<&KnownHosts>,
    ) -> Vouching {
        if let Some(reason) = self.revoked.refuse(&profile.revoked_host_keys, key, certificate) {
            return Vouching::Refuse(reason);
        }
        let Some(certificate) = certificate else {
            return Vouching::Nothing(None);
        };
        let set = self.set(profile);
        let authority = |certificate: &_| {
            let by_files = set.known.authority(&mut set.memo, host, certificate);
            let by_command = told.map(|told| told.authority(&mut Memo::default(), host, certificate));
            match (by_files, by_command) {
                (Authority::Trusted(_) | Authority::Unknown, Some(revoked @ Authority::Revoked(_))) => {
                    revoked
                }
                (Authority::Unknown, Some(by_command)) => by_command,
                (by_files, _) => by_files,
            }
        };
        vouching(
            host,
            certificate,
            authority,
            wall_clock::unix_seconds(),
            &profile.authority_algorithms,
        )
    }

    /// Which types of key a host is asked for whose key was not accepted: those by which it is known, if it has not shown
    /// one of them and might if asked differently than for those that were `asked_for`; or those that ssh would have asked
    /// for before the one that it has shown, which a guess has put first.
    pub(crate) fn other_types(
        &mut self,
        profile: &Profile,
        host: &HostId,
        key: &PublicKey,
        asked_for: &[KeyType],
    ) -> Option<Vec<KeyType>> {
        let set = self.set(profile);
        // The verdict has looked at every line, so that nothing has to be assumed here.
        let KeyTypes {
            mut types, assumed, ..
        } = set.known.key_types(&mut set.memo, host);
        if types.contains(&key.key_type()) {
            let place = |of: KeyType| KeyType::ALL.iter().position(|other| *other == of);
            types.retain(|known| place(*known) < place(key.key_type()));
            return (!assumed && !types.is_empty()).then_some(types);
        }
        let new = types.iter().any(|known| !asked_for.contains(known));
        (!assumed && new).then_some(types)
    }

    /// Everything that was found out about hashed names goes into `state`.
    pub(crate) fn keep(&self, state: &mut State) {
        for (name, salts) in self.sets.iter().flat_map(|set| set.memo.iter()) {
            state.learn_salts(name, salts);
        }
    }

    /// As ssh: the key of an unknown host is taken although it can't be kept.
    pub(crate) fn not_stored(&mut self, file: &str, lesson: &Lesson, error: FileError) -> Verdict {
        let (host, file) = (lesson.host.name(), Printable::new(file));
        self.warnings
            .push(format!("{host}: host key taken, but not stored: {file}: {error}"));
        Verdict::Unknown { authority: None }
    }

    /// Which of the `keys` that a host says it has, besides the one that was accepted, are to be written down.
    pub(crate) fn further_keys(
        &mut self,
        profile: &Profile,
        host: &HostId,
        accepted: &PublicKey,
        keys: &[PublicKey],
    ) -> Further {
        let files = &profile.user_known_hosts;
        let set = self.set(profile);
        set.known.further_keys(&mut set.memo, host, accepted, keys, files)
    }

    /// A key of a host stands in `file` now.
    pub(crate) fn add(&mut self, file: &str, host: &HostId, key: &PublicKey) {
        let place = Place {
            file: Arc::from(file),
            line: 0,
        };
        let sets = self.sets.iter_mut();
        for set in sets.filter(|set| set.files.iter().any(|other| other == file)) {
            set.known.add(host, key, place.clone());
        }
    }

    /// What came of writing a new key to `file`, which said so about it before.
    ///
    /// # Errors
    /// Somebody else has written another key meanwhile.
    pub(crate) fn learned(
        &mut self,
        file: &str,
        lesson: &Lesson,
        verdict: &Verdict,
    ) -> Result<Found, String> {
        let found = match lesson.is_new(verdict) {
            true => Found::Learned,
            false => match judge(
                &lesson.host,
                HostKeyPolicy::Strict,
                verdict,
                &lesson.key,
                self.kept(""),
            ) {
                Decision::Accept => Found::Known,
                Decision::Refuse(reason) | Decision::Distrust(reason) => return Err(reason),
                Decision::Learn | Decision::Ask { .. } => Found::Learned,
            },
        };
        self.add(file, &lesson.host, &lesson.key);
        Ok(found)
    }

    /// What was done to the files, since the last call.
    pub(crate) fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    pub(crate) fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    /// What was wrong with the files, since the last call.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Something to be said about the key of a host that is let through all the same.
    pub(crate) fn warn(&mut self, target: &str, warning: &str) {
        self.warnings.push(format!("{target}: {warning}"));
    }

    fn kept<'a>(&'a self, target: &'a str) -> KeptIn<'a> {
        KeptIn {
            target,
            default_file: &self.default_file,
        }
    }

    fn set(&mut self, profile: &Profile) -> &mut Set {
        let files = || profile.user_known_hosts.iter().chain(&profile.global_known_hosts);
        let same = self
            .sets
            .get(self.last)
            .is_some_and(|set| set.files.iter().eq(files()));
        if !same {
            let files: Vec<String> = files().cloned().collect();
            self.last = match self.by_files.get(&files) {
                Some(&at) => at,
                None => self.read(files),
            };
        }
        self.sets.get_mut(self.last).expect("it was found or read")
    }

    /// Reads a set of files; its place.
    fn read(&mut self, files: Vec<String>) -> usize {
        let (warnings, lessons) = (&mut self.warnings, &mut self.lessons);
        let contents = files
            .iter()
            .filter_map(|file| Some((file.as_str(), content(file, lessons, warnings)?)));
        let contents: Vec<(&str, Vec<u8>)> = contents.collect();
        let known = KnownHosts::parse(contents.iter().map(|(file, content)| (*file, content.as_slice())));
        warnings.extend(known.warnings().iter().map(ToString::to_string));
        let at = self.sets.len();
        self.by_files.insert(files.clone(), at);
        self.sets.push(Set {
            files,
            known,
            memo: Memo::default(),
        });
        at
    }
}

/// What two sources together say: nothing makes up for a revocation, and one line that vouches is enough.
fn both(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (revoked @ Verdict::Revoked(_), _) | (_, revoked @ Verdict::Revoked(_)) => revoked,
        (known @ Verdict::Known(_), _) | (_, known @ Verdict::Known(_)) => known,
        (Verdict::Changed(one), Verdict::Changed(other)) => Verdict::Changed([one, other].concat()),
        (changed @ Verdict::Changed(_), _) | (_, changed @ Verdict::Changed(_)) => changed,
        (Verdict::Unknown { authority }, Verdict::Unknown { authority: other }) => Verdict::Unknown {
            authority: authority.or(other),
        },
    }
}

fn content(file: &str, lessons: &mut Lessons, warnings: &mut Vec<String>) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let read = files::open(OpenOptions::new().read(true), Path::new(file)).and_then(|opened| {
        // Before it is read: what others write meanwhile must not pass for read.
        let stamp = Stamp::of(&opened).ok();
        files::read_into(opened, MAX_FILE, &mut content)?;
        lessons.file_was_read(file, stamp);
        Ok(())
    });
    match read {
        Ok(()) => Some(content),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            warnings.push(format!("{}: {error}", Printable::new(file)));
            None
        }
    }
}
