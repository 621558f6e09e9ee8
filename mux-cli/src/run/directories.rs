//! The directories that output is to go into: made if they are missing, and looked at before anything is connected to.
//! What is written there is the writer's.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, access};

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
    let wrong = |error: &dyn std::fmt::Display| format!("{flag} {}: {error}", path.display());
    std::fs::create_dir_all(path).map_err(|error| wrong(&error))?;
    let metadata = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    access(path, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| wrong(&std::io::Error::from(error)))?;
    Ok((metadata.dev(), metadata.ino()))
}
