//! Keys of hosts and users, one of each type that ssh-keygen writes. Made once for a target directory: RSA takes its
//! time, and no test changes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use mux_ssh::keys::PrivateKey;

/// Name of the file and arguments of ssh-keygen.
const TYPES: [(&str, &[&str]); 5] = [
    ("ed25519", &["-t", "ed25519"]),
    ("ecdsa256", &["-t", "ecdsa", "-b", "256"]),
    ("ecdsa384", &["-t", "ecdsa", "-b", "384"]),
    ("ecdsa521", &["-t", "ecdsa", "-b", "521"]),
    ("rsa", &["-t", "rsa", "-b", "3072"]),
];

/// Hosts, users that servers let in, and one that none does.
const OWNERS: [&str; 3] = ["host", "user", "stranger"];

static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let ready = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop-keys");
    if !ready.exists() {
        let fresh = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        generate(fresh.path());
        // Another process may have been quicker, and its keys are as good.
        if fs::rename(fresh.path(), &ready).is_ok() {
            let _ = fresh.keep();
        }
    }
    ready
});

fn generate(directory: &Path) {
    let mut authorized = String::new();
    for owner in OWNERS {
        for (name, arguments) in TYPES {
            let file = directory.join(format!("{owner}_{name}"));
            let made = Command::new("ssh-keygen")
                .args(["-q", "-N", "", "-C", owner, "-f"])
                .arg(&file)
                .args(arguments)
                .status();
            assert!(
                made.expect("no ssh-keygen: apt-get install openssh-client")
                    .success()
            );
            if owner == "user" {
                authorized.push_str(&fs::read_to_string(file.with_extension("pub")).unwrap());
            }
        }
    }
    fs::write(directory.join("authorized_keys"), authorized).unwrap();
}

/// A private key's file, by owner and type.
pub(crate) fn file(owner: &str, name: &str) -> PathBuf {
    DIRECTORY.join(format!("{owner}_{name}"))
}

/// The keys that servers let in.
pub(crate) fn authorized() -> PathBuf {
    DIRECTORY.join("authorized_keys")
}

/// The names of all types.
pub(crate) fn types() -> Vec<&'static str> {
    TYPES.iter().map(|(name, _)| *name).collect()
}

/// What stands in the file's public half.
pub(crate) fn public(file: &Path) -> String {
    fs::read_to_string(file.with_extension("pub")).unwrap()
}

pub(crate) fn private(owner: &str, name: &str) -> PrivateKey {
    PrivateKey::parse(&fs::read(file(owner, name)).unwrap(), None).unwrap()
}
