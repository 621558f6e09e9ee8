//! `cargo xtask interop`: our client against foreign servers; with `--debian SUITE` against the sshd of another Debian.
//!
//! It decides which sshd the tests start, and makes the directory tree that another Debian's needs, below `target/`.
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

/// What a foreign root needs besides a minimal Debian.
const PACKAGES: &str = "openssh-server";

/// Starts the sshd of `$0`, with the directories of tests where it expects them, in a namespace that ends with it. The
/// process stays the same, so that whoever started it can end it.
const IN_ROOT: &str = r#"for dir in "$TESTS" "$KEYS"; do
    mkdir -p "$0$dir" && mount --bind "$dir" "$0$dir" || exit
done
mount -t proc proc "$0/proc" && exec chroot "$0" /usr/sbin/sshd "$@""#;

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
        tests.env("MUX_TEST_SSHD", starter(&suite, &root)?);
        println!("{}", version(&root)?);
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

/// A program that takes sshd's arguments, beside the root.
fn starter(suite: &str, root: &Path) -> Result<PathBuf> {
    let path = root.with_file_name(format!("{suite}.sshd"));
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "sh", "-c", IN_ROOT])
        .arg(root)
        .env("TESTS", std::env::temp_dir())
        .env("KEYS", paths::target().join("tmp"));
    fs::write(
        &path,
        format!("#!/bin/sh\nexec env {} \"$@\"\n", command::line(&unshare)),
    )?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

fn version(root: &Path) -> Result<String> {
    let text = command::stderr(Command::new("chroot").arg(root).args(["/usr/sbin/sshd", "-V"]))?;
    Ok(text.trim().to_owned())
}
