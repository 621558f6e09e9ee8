//! Where things lie: the workspace's root and its target directory. Nothing here creates or reads a file.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Asked of cargo, which starts us: check-outs that share a target directory also share this binary.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest)
        .parent()
        .expect("xtask is a member of a workspace and lies one level below its root")
        .to_owned()
});

/// The root of the workspace: the directory above this crate.
pub(crate) fn root() -> &'static Path {
    &ROOT
}

/// Cargo's target directory, as cargo itself finds it.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// A release binary or example of the workspace.
pub(crate) fn release(name: &str) -> PathBuf {
    target().join("release").join(name)
}
