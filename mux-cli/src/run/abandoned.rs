//! Directories of the system's `ssh` whose owner is gone without having removed them, as after SIGKILL. Decides which those
//! are, by a lock that ends with the process which holds it; touches nothing of other users and follows no symbolic link.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::{Builder, TempDir};

/// What the names of the directories begin with.
const PREFIX: &str = "mux-ssh-";

/// The file whose lock says that somebody is there.
const LOCK: &str = "lock";

/// Its name before it is locked: under the name above there is none that waits for its owner.
const UNLOCKED: &str = "lock.new";

/// A directory that only its owner may enter, and the lock that says that he lives, for as long as it is open. Those beside
/// it that are abandoned go.
pub(super) fn create(parent: &Path) -> io::Result<(TempDir, File)> {
    let private = Permissions::from_mode(0o700);
    let directory = Builder::new()
        .prefix(PREFIX)
        .permissions(private)
        .tempdir_in(parent)?;
    let lock = occupy(directory.path())?;
    sweep(parent);
    Ok((directory, lock))
}

fn occupy(directory: &Path) -> io::Result<File> {
    let unlocked = directory.join(UNLOCKED);
    let file = OpenOptions::new().write(true).create_new(true).open(&unlocked)?;
    file.lock()?;
    fs::rename(&unlocked, directory.join(LOCK))?;
    Ok(file)
}

/// Removes the directories in `parent` that have lost their owner. What can't be removed stays for the next one.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.filter_map(Result::ok) {
        let is_named = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        // Of the entry itself: a link to a directory is none.
        let is_ours = is_named
            && entry.metadata().is_ok_and(|meta| {
                let is_private = meta.mode() & 0o077 == 0;
                meta.is_dir() && is_private && meta.uid() == rustix::process::geteuid().as_raw()
            });
        if is_ours && let Some(_held) = abandoned(&entry.path()) {
            let _next_time = fs::remove_dir_all(entry.path());
        }
    }
}

/// The lock of a directory that nobody else holds. One without a lock may be just being made.
fn abandoned(directory: &Path) -> Option<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let mut how = OpenOptions::new();
    let lock = how
        .write(true)
        .custom_flags(flags)
        .open(directory.join(LOCK))
        .ok()?;
    lock.try_lock().is_ok().then_some(lock)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    fn directory(parent: &TempDir) -> (PathBuf, File) {
        let (made, lock) = create(parent.path()).unwrap();
        (made.keep(), lock)
    }

    /// A child of another test may hold a lock for the moment before it becomes another program.
    fn wait_until_swept(parent: &TempDir, gone: &Path) {
        while gone.exists() {
            sweep(parent.path());
            std::thread::yield_now();
        }
    }

    #[test]
    fn only_directories_of_owners_that_are_gone_are_removed() {
        let (parent, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (held, _lock) = directory(&parent);
        let (unlocked, _) = directory(&parent);
        fs::remove_file(unlocked.join(LOCK)).unwrap();
        let (gone, lock) = directory(&parent);
        fs::write(gone.join("0.s"), "").unwrap();
        sweep(parent.path());
        assert!(gone.exists());
        assert_eq!(fs::metadata(&gone).unwrap().mode() & 0o777, 0o700);
        drop(lock);
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        drop(occupy(&other).unwrap());
        drop(occupy(elsewhere.path()).unwrap());
        let link = parent.path().join("mux-ssh-link");
        symlink(elsewhere.path(), &link).unwrap();
        wait_until_swept(&parent, &gone);
        for kept in [&held, &unlocked, &other, &link, &elsewhere.path().join(LOCK)] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn a_lock_that_is_a_link_is_no_lock() {
        let (parent, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        drop(occupy(elsewhere.path()).unwrap());
        let (made, _) = directory(&parent);
        fs::remove_file(made.join(LOCK)).unwrap();
        symlink(elsewhere.path().join(LOCK), made.join(LOCK)).unwrap();
        sweep(parent.path());
        assert!(made.exists());
    }
}
