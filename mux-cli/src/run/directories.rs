//! The directories that output is to go into: made if they are missing, and looked at before anything is connected to.
//! What is written there is the writer's.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use mux_ssh::Printable;
use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::files::FileError;
use crate::plan::SavePlan;

/// Makes the directories ready, or says in one line what is wrong with them.
pub(super) fn prepare(plan: &SavePlan) -> Result<(), String> {
    let out = plan
        .outdir
        .as_deref()
        .map(|path| directory("--outdir", path))
        .transpose()?;
    let err = plan
        .errdir
        .as_deref()
        .map(|path| directory("--errdir", path))
        .transpose()?;
    if out.is_some() && out == err {
        return Err(
            "--outdir and --errdir are the same directory, where a host has one file; name another for one of them".to_owned(),
        );
    }
    Ok(())
}

/// Its device and number.
fn directory(flag: &str, path: &Path) -> Result<(u64, u64), String> {
    made(path).map_err(|error| {
        let path = path.to_string_lossy();
        format!("{flag} {}: {}", Printable::new(&path), FileError::from(error))
    })
}

fn made(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(path)?;
            fs::metadata(path)?
        }
        other => other?,
    };
    if !metadata.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    access(path, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok((metadata.dev(), metadata.ino()))
}
