//! New host keys on their way into known_hosts: one writer a file at a time, with everything that has come up meanwhile,
//! so that ten thousand new hosts do not mean ten thousand readings of a file that grows. Decides when a file is written
//! to and whether it has to be read before; never whether a key is taken.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use mux_ssh::client::QuestionId;
use mux_ssh::keys::PublicKey;
use mux_ssh::known_hosts::{HostId, KnownHosts, Memo, Verdict, format_entry, without_key};

use super::hosts::MAX_FILE;
use crate::files::{self, FileError};
use crate::hub::Ticket;

/// How often a file that another process has locked is tried again, and how long it is left alone in between: ten
/// seconds in all. Who holds it longer has been stopped, and hosts wait.
const LOCK_TRIES: u32 = 2000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// A key to be written down, and the question that is answered then.
#[derive(Clone, Debug)]
pub(crate) struct Lesson {
    pub(crate) ticket: Ticket,
    pub(crate) asks: Asks,
    pub(crate) host: HostId,
    pub(crate) key: PublicKey,
    pub(crate) hash: bool,
}

/// What waits for a key to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A host whose key is not known, and this question about it.
    First {
        question: QuestionId,
        /// Keys of other types may stand in the file.
        beside: bool,
    },
    /// Nothing: the host is known by other keys, and has this one too.
    Further,
    /// Nothing: the host does not have this key any more, and its line goes.
    Gone,
}

/// Tells a file that has been written to from one that has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            changed: (meta.mtime(), meta.mtime_nsec()),
        })
    }
}

/// Keys of different hosts for one file.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) file: String,
    pub(crate) lessons: Vec<Lesson>,
    /// If this still holds, everything in the file is known, and none of these hosts is in it.
    known: Option<Stamp>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Written {
    /// What the file said about each key before.
    pub(crate) verdicts: Vec<Verdict>,
    /// Which lessons have taken a line away, by their places in the batch.
    pub(crate) forgotten: Vec<usize>,
    /// The file as it is now, unless somebody else has written to it.
    known: Option<Stamp>,
}

/// The lessons of a run.
#[derive(Debug, Default)]
pub(crate) struct Lessons {
    files: HashMap<String, Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    waiting: Vec<Lesson>,
    /// A batch is on its way.
    writing: bool,
    known: Option<Stamp>,
}

impl Lessons {
    /// The file was read when it was as `stamp` says. What was read later is not what the first reader knows.
    pub(crate) fn file_was_read(&mut self, file: &str, stamp: Option<Stamp>) {
        if !self.files.contains_key(file) {
            let pending = Pending {
                known: stamp,
                ..Pending::default()
            };
            self.files.insert(file.to_owned(), pending);
        }
    }

    pub(crate) fn add(&mut self, file: &str, lesson: Lesson) {
        self.files
            .entry(file.to_owned())
            .or_default()
            .waiting
            .push(lesson);
    }

    /// What waits for a file to which nobody writes. Each may be known by now: judge it again.
    pub(crate) fn take(&mut self, file: &str) -> Vec<Lesson> {
        match self.files.get_mut(file) {
            Some(pending) if !pending.writing => std::mem::take(&mut pending.waiting),
            Some(_) | None => Vec::new(),
        }
    }

    /// Makes a batch of lessons that were taken: one for each host, the others wait for what it says.
    pub(crate) fn batch(&mut self, file: &str, lessons: Vec<Lesson>) -> Option<Batch> {
        let pending = self.files.get_mut(file)?;
        let mut batch: Vec<Lesson> = Vec::with_capacity(lessons.len());
        for lesson in lessons {
            let waits = |other: &Lesson| match lesson.asks {
                Asks::First { .. } => other.host == lesson.host,
                Asks::Further | Asks::Gone => other.host == lesson.host && other.key == lesson.key,
            };
            if batch.iter().any(waits) {
                pending.waiting.push(lesson);
            } else {
                batch.push(lesson);
            }
        }
        pending.writing = !batch.is_empty();
        pending.writing.then(|| Batch {
            file: file.to_owned(),
            lessons: batch,
            known: pending.known,
        })
    }

    /// Something waits to be written, or is.
    pub(crate) fn is_writing(&self) -> bool {
        self.files
            .values()
            .any(|pending| pending.writing || !pending.waiting.is_empty())
    }

    /// A batch is over.
    pub(crate) fn written(&mut self, file: &str, result: &Result<Written, FileError>) {
        if let Some(pending) = self.files.get_mut(file) {
            pending.writing = false;
            pending.known = result.as_ref().ok().and_then(|written| written.known);
        }
    }
}

impl Lesson {
    /// Somebody waits for it to be written.
    pub(crate) fn is_first(&self) -> bool {
        matches!(self.asks, Asks::First { .. })
    }

    /// Whether the key is to be written to a file that says this about it.
    pub(crate) fn is_new(&self, verdict: &Verdict) -> bool {
        match (verdict, self.asks) {
            (_, Asks::Gone) => false,
            (Verdict::Unknown { .. }, _) | (Verdict::Changed(_), Asks::Further) => true,
            (Verdict::Changed(others), Asks::First { beside, .. }) => {
                let type_of_key = Some(self.key.key_type());
                beside && others.iter().all(|other| other.key_type != type_of_key)
            }
            (Verdict::Known(_) | Verdict::Revoked(_), _) => false,
        }
    }
}

impl Batch {
    /// Appends the keys under a lock, but those that another process has written meanwhile. Blocks.
    ///
    /// # Errors
    /// The file can't be read or written.
    pub(crate) fn write(&self) -> Result<Written, FileError> {
        let path = Path::new(&self.file);
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            fs::DirBuilder::new().mode(0o700).create(directory)?;
        }
        let mut file = open_locked(path, LOCK_TRIES)?;
        let now = Stamp::of(&file)?;
        let untouched = now.length == 0 || self.known == Some(now);
        let verdicts = if untouched {
            vec![Verdict::Unknown { authority: None }; self.lessons.len()]
        } else {
            self.look_up(&file)?
        };
        let mut text = String::new();
        for (lesson, verdict) in self.lessons.iter().zip(&verdicts) {
            let is_new = lesson.is_new(verdict);
            if is_new {
                let line = format_entry(&lesson.host, &lesson.key, lesson.hash);
                text += &line.map_err(|_| io::Error::from(ErrorKind::Other))?;
            }
        }
        // Somebody's editor may have left the last line open.
        if !text.is_empty() && !ends_with_newline(&file, now.length)? {
            text.insert(0, '\n');
        }
        append(&mut file, text.as_bytes(), now.length)?;
        let forgotten = self.forget(path, &mut file)?;
        let known = if untouched { Some(Stamp::of(&file)?) } else { None };
        Ok(Written {
            verdicts,
            forgotten,
            known,
        })
    }

    /// Takes the lines of keys away that hosts do not have any more. `file` is then the one that has taken the place of the
    /// old one, which stays as `.old`, as ssh leaves it.
    fn forget(&self, path: &Path, file: &mut File) -> Result<Vec<usize>, FileError> {
        let gone = self.lessons.iter().enumerate();
        let mut gone = gone.filter(|(_, lesson)| lesson.asks == Asks::Gone).peekable();
        let mut forgotten = Vec::new();
        if gone.peek().is_none() {
            return Ok(forgotten);
        }
        let mut content = Vec::new();
        file.rewind()?;
        files::read_into(&*file, MAX_FILE, &mut content)?;
        for (at, lesson) in gone {
            if let Some(left) = without_key(&content, &lesson.host, &lesson.key) {
                content = left;
                forgotten.push(at);
            }
        }
        if !forgotten.is_empty() {
            *file = replace(path, file, &content)?;
        }
        Ok(forgotten)
    }

    fn look_up(&self, file: &File) -> Result<Vec<Verdict>, FileError> {
        let mut content = Vec::new();
        files::read_into(file, MAX_FILE, &mut content)?;
        let known = KnownHosts::parse([(self.file.as_str(), content.as_slice())]);
        let mut memo = Memo::default();
        let lessons = self.lessons.iter();
        Ok(lessons
            .map(|lesson| known.lookup(&mut memo, &lesson.host, &lesson.key))
            .collect())
    }
}

/// Opens a file that nobody else who locks it writes to until it is closed.
fn open_locked(path: &Path, tries: u32) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut tries = 0..tries;
    loop {
        let file = files::open(&mut options, path)?;
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock if tries.next().is_some() => thread::sleep(LOCK_PAUSE),
                TryLockError::WouldBlock => return Err(FileError::Locked),
                TryLockError::Error(error) => return Err(error.into()),
            }
        }
        // `ssh-keygen -R` and editors put a new file in the place of the old one, to which nobody should write any more.
        let meta = fs::metadata(path);
        let here = Stamp::of(&file)?;
        if meta.is_ok_and(|there| (there.dev(), there.ino()) == (here.device, here.inode)) {
            return Ok(file);
        }
    }
}

/// Puts a file with this content in the place of another, of which a copy stays behind; the new one. A link to a file
/// elsewhere stays one.
fn replace(path: &Path, old: &File, content: &[u8]) -> io::Result<File> {
    let path = fs::canonicalize(path)?;
    let beside = |suffix: &str| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        name
    };
    let (new, backup) = (beside(&format!(".mux.{}", std::process::id())), beside(".old"));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut file = options.open(&new)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.set_permissions(old.metadata()?.permissions()))
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            // A copy is of use only to people: that there is none stops nobody.
            let _ = fs::remove_file(&backup);
            let _ = fs::hard_link(&path, &backup);
            fs::rename(&new, &path)
        });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map(|()| file)
}

/// Writes `text` behind the `length` bytes that there are, in one call, so that nothing of others, who may not lock, comes
/// in between. Half of a line is worse than none.
fn append(file: &mut File, text: &[u8], length: u64) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    file.seek(SeekFrom::End(0))?;
    let result = file.write(text);
    let written = result.as_ref().copied().unwrap_or_default();
    if written == text.len() {
        return Ok(());
    }
    if file.metadata()?.len() == length + written as u64 {
        file.set_len(length)?;
    }
    Err(result.err().unwrap_or_else(|| ErrorKind::StorageFull.into()))
}

/// An empty file does, in this sense.
fn ends_with_newline(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use mux_ssh::keys::PrivateKey;
    use mux_ssh::server::key_file::Seed;

    use super::*;
    use crate::hub::RequestId;

    fn key() -> PublicKey {
        let file = Seed::generate().unwrap().to_openssh().unwrap();
        PrivateKey::parse(file.as_bytes(), None).unwrap().public().clone()
    }

    fn lesson(host: &str, key: &PublicKey) -> Lesson {
        Lesson {
            ticket: Ticket {
                request: RequestId(0),
                attempt: 1,
            },
            asks: Asks::First {
                question: QuestionId::default(),
                beside: false,
            },
            host: HostId::new(host, 22),
            key: key.clone(),
            hash: false,
        }
    }

    /// A file with this text, and lessons that know it.
    fn begin(text: &str) -> (tempfile::TempDir, String, Lessons) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("known_hosts");
        fs::write(&path, text).unwrap();
        let mut lessons = Lessons::default();
        let file = path.to_str().unwrap().to_owned();
        lessons.file_was_read(&file, Stamp::of(&File::open(&path).unwrap()).ok());
        (directory, file, lessons)
    }

    /// Writes what waits, in one batch; how many were new.
    fn write(lessons: &mut Lessons, file: &str) -> usize {
        let taken = lessons.take(file);
        let batch = lessons.batch(file, taken).unwrap();
        let written = batch.write();
        lessons.written(file, &written);
        let verdicts = written.unwrap().verdicts;
        verdicts
            .iter()
            .filter(|verdict| matches!(verdict, Verdict::Unknown { .. }))
            .count()
    }

    #[test]
    fn what_comes_while_a_file_is_written_to_waits_and_goes_together() {
        let (_directory, file, mut lessons) = begin("");
        let key = key();
        lessons.add(&file, lesson("a", &key));
        let taken = lessons.take(&file);
        let batch = lessons.batch(&file, taken).unwrap();
        for host in ["b", "c", "b"] {
            lessons.add(&file, lesson(host, &key));
        }
        assert!(lessons.take(&file).is_empty());
        lessons.written(&file, &batch.write());
        assert_eq!(write(&mut lessons, &file), 2);
        // The second of the same host is to be judged again before.
        assert_eq!(lessons.take(&file).len(), 1);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
    }

    #[test]
    fn a_file_that_nobody_else_wrote_to_is_not_read_again() {
        let (_directory, file, mut lessons) = begin("");
        let key = key();
        for host in ["a", "b", "c"] {
            lessons.add(&file, lesson(host, &key));
            assert_eq!(write(&mut lessons, &file), 1);
            let pending = lessons.files.get(&file).unwrap();
            assert_eq!(pending.known, Stamp::of(&File::open(&file).unwrap()).ok());
        }
    }

    #[test]
    fn a_lock_that_is_not_given_back_is_said() {
        let (_directory, file, _) = begin("");
        let path = Path::new(&file);
        let held = open_locked(path, 1).unwrap();
        let error = open_locked(path, 3).unwrap_err();
        assert_eq!(error, FileError::Locked);
        assert_eq!(error.to_string(), "another program holds its lock");
        drop(held);
        open_locked(path, 1).unwrap();
    }

    #[test]
    fn what_another_process_wrote_meanwhile_counts() {
        let (_directory, file, mut lessons) = begin("");
        let (mine, theirs) = (key(), key());
        let line = format_entry(&HostId::new("a", 22), &theirs, false).unwrap();
        // Without a newline, as editors leave it.
        fs::write(&file, line.trim_end()).unwrap();
        for host in ["a", "b"] {
            lessons.add(&file, lesson(host, &mine));
        }
        assert_eq!(write(&mut lessons, &file), 1);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.starts_with(&line), "{text}");
        // From now on the file is read each time: what stands in it was never looked at as a whole.
        assert_eq!(lessons.files.get(&file).unwrap().known, None);
        lessons.add(&file, lesson("a", &theirs));
        assert_eq!(write(&mut lessons, &file), 0);
    }
}
