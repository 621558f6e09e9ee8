//! What tests need from the machine, installed where it is missing: as root through apt, the rest below `target/`.
//!
//! It never changes what is there already, and as another user it only says what to run.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;

use crate::{command, paths};

/// A program, and the Debian package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("ssh-agent", "openssh-client"),
    ("dropbear", "dropbear-bin"),
    ("tinysshd", "tinysshd"),
    ("python3", "python3"),
    ("g++", "g++"),
    ("git", "git"),
    ("ps", "procps"),
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
];

/// Foreign servers and an auditor that are Python packages. Pinned: tests say what exactly these versions do and find.
const PYTHON_PACKAGES: &[&str] = &["asyncssh==2.24.1", "paramiko==5.1.0", "ssh-audit==3.9.0"];

/// Fails unless each package is there in its version.
const CHECK_PACKAGES: &str = "import sys; from importlib.metadata import version; \
     sys.exit(any(version(name) != wanted for name, wanted in (arg.split('==') for arg in sys.argv[1:])))";

/// sshd refuses to start without its empty directory, which only a boot or a service would make.
const SSHD_DIRECTORY: &str = "/run/sshd";

pub(super) fn run() -> Result<()> {
    rust_components()?;
    debian_packages()?;
    sshd_directory()?;
    python_environment()?;
    install_cargo_deny()
}

/// The interpreter that has these packages. Tests get it as `MUX_TEST_PYTHON`.
pub(crate) fn python() -> PathBuf {
    paths::target().join("venv/bin/python")
}

/// The one on PATH, else our own.
pub(super) fn cargo_deny() -> PathBuf {
    command::find("cargo-deny").unwrap_or_else(|| paths::target().join("tools/bin/cargo-deny"))
}

fn rust_components() -> Result<()> {
    for (verb, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if command::run_quietly(&mut command::cargo([verb, "--version"])).is_err() {
            announce(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

fn debian_packages() -> Result<()> {
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !command::exists(program))
        .map(|(_, package)| *package)
        .collect();
    // The module is there without the package, but can't make an environment.
    if !python_can(Path::new("python3"), "import venv, ensurepip", &[]) {
        missing.push("python3-venv");
    }
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !command::exists("apt-get") {
        bail!("tests need what Debian's packages {packages} contain; install it and try again");
    }
    if !geteuid().is_root() {
        bail!("tests need more programs; run: sudo apt-get install --no-install-recommends {packages}");
    }
    announce(Command::new("apt-get").args(["update", "--quiet"]))?;
    announce(
        Command::new("apt-get")
            .args(["install", "--quiet", "--yes", "--no-install-recommends"])
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn sshd_directory() -> Result<()> {
    if Path::new(SSHD_DIRECTORY).exists() || !geteuid().is_root() {
        return Ok(());
    }
    println!("mkdir {SSHD_DIRECTORY}");
    std::fs::DirBuilder::new()
        .mode(0o755)
        .create(SSHD_DIRECTORY)
        .context(SSHD_DIRECTORY)
}

pub(crate) fn python_environment() -> Result<()> {
    let python = python();
    if python_can(&python, CHECK_PACKAGES, PYTHON_PACKAGES) {
        return Ok(());
    }
    if !python_can(&python, "import pip", &[]) {
        // One that was moved here, or whose interpreter went away, is of no use.
        announce(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(paths::target().join("venv")),
        )?;
    }
    announce(
        Command::new(python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(PYTHON_PACKAGES),
    )
}

fn python_can(python: &Path, code: &str, arguments: &[&str]) -> bool {
    let status = Command::new(python)
        .args(["-c", code])
        .args(arguments)
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn install_cargo_deny() -> Result<()> {
    if cargo_deny().exists() {
        return Ok(());
    }
    let root = paths::target().join("tools");
    // Unoptimised: it runs for half a second, and builds in half the time.
    announce(
        command::cargo([
            "install",
            "--quiet",
            "--locked",
            "--debug",
            "cargo-deny",
            "--version",
            "^0.20",
            "--root",
        ])
        .arg(&root)
        .env("CARGO_TARGET_DIR", root.join("build")),
    )?;
    std::fs::remove_dir_all(root.join("build")).context("cargo-deny's build directory")
}

/// Says what it runs: an installation takes minutes, and changes the machine.
pub(crate) fn announce(command: &mut Command) -> Result<()> {
    println!("{}", command::line(command));
    command::run(command)
}
