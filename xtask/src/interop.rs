//! `cargo xtask interop`: our client against foreign servers; with `--debian SUITE` against the sshd of another Debian, and
//! our reading of ssh_config against its `ssh -G`.
//!
//! It decides which sshd the tests start and which ssh they ask, and makes the directory tree that another Debian's needs, below `target/`.
//! What is tested is the tests' own affair.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use lexopt::{Arg, ValueExt};
use nix::unistd::geteuid;

use crate::test::setup;
use crate::{command, paths};

/// What a foreign root needs besides a minimal Debian; ssh comes with it.
const PACKAGES: &str = "openssh-server";

/// Starts the sshd of `$0`, with the directories of tests where it expects them, in a namespace that ends with it. The
/// process stays the same, so that whoever started it can end it.
const IN_ROOT: &str = r#"for dir in "$TESTS" "$KEYS"; do
    mkdir -p "$0$dir" && mount --bind "$dir" "$0$dir" || exit
done
mount -t proc proc "$0/proc" && exec chroot "$0" /usr/sbin/sshd "$@""#;

/// Runs the ssh of `$0` with the same.
const SSH_IN_ROOT: &str = r#"mkdir -p "$0$TESTS" && mount --bind "$TESTS" "$0$TESTS" || exit
exec chroot "$0" /usr/bin/ssh "$@""#;

pub(crate) fn run(mut arguments: lexopt::Parser) -> Result<ExitCode> {
    let mut suite: Option<String> = None;
    let mut filters: Vec<String> = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("debian") => suite = Some(arguments.value()?.string()?),
            Arg::Value(filter) => filters.push(filter.string()?),
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
        }
    }
    setup::python_environment()?;
    let mut tests = command::cargo(["test", "--locked", "-p", "mux-cli", "--test", "interop", "--"]);
    tests.env("MUX_TEST_PYTHON", setup::python());
    if let Some(suite) = suite {
        let root = debian(&suite)?;
        println!("{}", version(&root)?);
        if filters.is_empty() {
            let mut oracle =
                command::cargo(["test", "--locked", "-p", "mux-ssh", "--test", "ssh_config_oracle"]);
            let ssh = starter(&root.with_file_name(format!("{suite}.ssh")), SSH_IN_ROOT, &root)?;
            command::run(oracle.env("SSH_CONFIG_SSH", ssh))?;
        }
        let sshd = starter(&root.with_file_name(format!("{suite}.sshd")), IN_ROOT, &root)?;
        tests.env("MUX_TEST_SSHD", sshd);
        // The other servers are no different from before.
        filters.push("openssh".to_owned());
    }
    command::run(tests.args(filters))?;
    Ok(ExitCode::SUCCESS)
}

/// The root directory of a minimal Debian with sshd, made where it is missing.
fn debian(suite: &str) -> Result<PathBuf> {
    ensure!(
        geteuid().is_root(),
        "only root can make a root directory and change to it; run: sudo cargo xtask interop --debian {suite}"
    );
    let root = paths::target().join("debian").join(suite);
    if !root.join("usr/sbin/sshd").exists() {
        ensure!(
            command::exists("debootstrap"),
            "it takes debootstrap; run: apt-get install --no-install-recommends debootstrap"
        );
        setup::announce(
            Command::new("debootstrap")
                .args(["--variant=minbase", &format!("--include={PACKAGES}"), suite])
                .arg(&root),
        )?;
    }
    fs::create_dir_all(root.join("run/sshd")).context("a directory for sshd to lock itself up in")?;
    Ok(root)
}

/// Makes a program that does `what` in the root, with whatever arguments it is given.
fn starter(path: &Path, what: &str, root: &Path) -> Result<PathBuf> {
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-c", what])
        .arg(root)
        .env("TESTS", std::env::temp_dir())
        .env("KEYS", paths::target().join("tmp"));
    fs::write(
        path,
        format!("#!/bin/sh\nexec env {} \"$@\"\n", command::line(&unshare)),
    )?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(path.to_owned())
}

fn version(root: &Path) -> Result<String> {
    let text = command::stderr(Command::new("chroot").arg(root).args(["/usr/sbin/sshd", "-V"]))?;
    Ok(text.trim().to_owned())
}
