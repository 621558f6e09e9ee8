//! The known_hosts files of a run: each set read once, asked many times, added to under a lock. Decides nothing about
//! a key; that is the hub's `judge`.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use mux_ssh::Printable;
use mux_ssh::algorithms::KeyType;
use mux_ssh::config::HostKeyPolicy;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Place, Verdict, format_entry};

use super::settings::Profile;
use crate::files::{self, FileError};
use crate::hub::{Decision, Judgement, KeptIn, judge};

/// Nine thousand hosts are a megabyte; more than this is no known_hosts file.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// The files of one kind of target.
#[derive(Debug)]
struct Set {
    known: KnownHosts,
    memo: Memo,
}

/// All known_hosts files that a run has to do with.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    sets: HashMap<Vec<String>, Set>,
    default_file: String,
    warnings: Vec<String>,
}

impl Hosts {
    /// `default_file` is the one that `ssh-keygen` changes if no other is named.
    pub(crate) fn new(default_file: String) -> Self {
        Self {
            default_file,
            ..Self::default()
        }
    }

    /// By which types of key a host is known.
    pub(crate) fn key_types(&mut self, profile: &Profile, host: &HostId) -> Vec<KeyType> {
        let set = self.set(profile);
        set.known.key_types(&mut set.memo, host)
    }

    /// Decides about a key that a host proved to have.
    pub(crate) fn judge(&mut self, profile: &Profile, host: &HostId, key: &PublicKey) -> Decision {
        let set = self.set(profile);
        let verdict = set.known.lookup(&mut set.memo, host, key);
        judge(host, profile.policy, &verdict, key, self.kept(profile))
    }

    /// What came of writing a new key down.
    pub(crate) fn learned(
        &mut self,
        profile: &Profile,
        lesson: &Lesson,
        result: Result<Verdict, FileError>,
    ) -> Judgement {
        let verdict = match result {
            Ok(verdict) => verdict,
            Err(error) => {
                // As ssh: the key of an unknown host is taken although it can't be kept.
                let (host, file) = (lesson.host.name(), Printable::new(&lesson.file));
                self.warnings
                    .push(format!("{host}: host key not kept: {file}: {error}"));
                Verdict::Unknown { authority: None }
            }
        };
        match judge(
            &lesson.host,
            HostKeyPolicy::AcceptNew,
            &verdict,
            &lesson.key,
            self.kept(profile),
        ) {
            Decision::Accept | Decision::Learn => {
                let place = Place {
                    file: Arc::from(lesson.file.as_str()),
                    line: 0,
                };
                self.set(profile).known.add(&lesson.host, &lesson.key, place);
                Judgement::Accept
            }
            Decision::Refuse(reason) => Judgement::Refuse(reason),
        }
    }

    /// What was wrong with the files, since the last call.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn kept<'a>(&self, profile: &'a Profile) -> KeptIn<'a> {
        let file = profile
            .user_known_hosts
            .first()
            .map_or("known_hosts", String::as_str);
        KeptIn {
            file,
            is_default: file == self.default_file,
        }
    }

    fn set(&mut self, profile: &Profile) -> &mut Set {
        let files: Vec<String> = profile
            .user_known_hosts
            .iter()
            .chain(&profile.global_known_hosts)
            .cloned()
            .collect();
        let warnings = &mut self.warnings;
        self.sets.entry(files).or_insert_with_key(|files| {
            let contents = files
                .iter()
                .filter_map(|file| Some((file.as_str(), content(file, warnings)?)));
            let contents: Vec<(&str, Vec<u8>)> = contents.collect();
            let known = KnownHosts::parse(contents.iter().map(|(file, content)| (*file, content.as_slice())));
            warnings.extend(known.warnings().iter().map(ToString::to_string));
            Set {
                known,
                memo: Memo::default(),
            }
        })
    }
}

fn content(file: &str, warnings: &mut Vec<String>) -> Option<Vec<u8>> {
    match files::read(Path::new(file), MAX_FILE) {
        Ok(content) => Some(content),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => {
            warnings.push(format!("{}: {error}", Printable::new(file)));
            None
        }
    }
}

/// A key to be written down.
#[derive(Clone, Debug)]
pub(crate) struct Lesson {
    pub(crate) host: HostId,
    pub(crate) key: PublicKey,
    pub(crate) file: String,
    pub(crate) hash: bool,
}

impl Lesson {
    /// Appends the key under a lock, unless another process has been faster. Blocks.
    ///
    /// # Errors
    /// The file can't be read or written.
    pub(crate) fn write(&self) -> Result<Verdict, FileError> {
        let path = Path::new(&self.file);
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            fs::DirBuilder::new().mode(0o700).create(directory)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut file = files::open(&mut options, path)?;
        file.lock()?;
        let mut content = Vec::new();
        files::read_into(&file, MAX_FILE, &mut content)?;
        let known = KnownHosts::parse([(self.file.as_str(), content.as_slice())]);
        let verdict = known.lookup(&mut Memo::default(), &self.host, &self.key);
        if !matches!(verdict, Verdict::Unknown { .. }) {
            return Ok(verdict);
        }
        let line =
            format_entry(&self.host, &self.key, self.hash).map_err(|_| io::Error::from(ErrorKind::Other))?;
        // Somebody's editor may have left the last line open.
        let gap = if content.last().is_none_or(|last| *last == b'\n') {
            ""
        } else {
            "\n"
        };
        file.seek(SeekFrom::End(0))?;
        file.write_all(format!("{gap}{line}").as_bytes())?;
        Ok(verdict)
    }
}
