//! The clients that are compared, each run as its users would: one command line for the whole fleet.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::fleet::Fleet;
use crate::test::setup;
use crate::{command, paths};

/// How many hosts each client works on at once: the default of ours, and set for all.
pub(super) const FANOUT: &str = "64";

/// The version whose command line is known to work here.
const BSSH: &str = "bssh@2.2.3";

/// A closed list: each needs its own command line and its own way to count answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    Mux,
    Ssh,
    Asyncssh,
    Bssh,
}

impl Client {
    pub(super) const ALL: &[Self] = &[Self::Mux, Self::Ssh, Self::Asyncssh, Self::Bssh];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mux => "mux",
            Self::Ssh => "ssh + xargs",
            Self::Asyncssh => "asyncssh",
            Self::Bssh => "bssh",
        }
    }

    pub(super) fn is_installed(self) -> bool {
        match self {
            Self::Mux => true,
            Self::Ssh => command::exists("ssh") && command::exists("xargs"),
            Self::Asyncssh => setup::python().exists(),
            Self::Bssh => bssh().is_some(),
        }
    }

    /// What has to be said about its figures.
    pub(super) fn note(self) -> Option<&'static str> {
        match self {
            Self::Ssh => Some("ssh + xargs: peak RSS is that of one process; up to 64 run at once"),
            Self::Bssh => {
                Some("bssh: answers are counted by output lines; its own summary calls them failed")
            }
            Self::Mux | Self::Asyncssh => None,
        }
    }

    /// The run of a shell command on every host. `state` is where ours remembers servers.
    pub(super) fn command(self, fleet: &Fleet, state: &Path, remote: &str) -> Command {
        match self {
            Self::Mux => mux(fleet, state, remote),
            Self::Ssh => ssh(fleet, remote),
            Self::Asyncssh => asyncssh(fleet, remote),
            Self::Bssh => bssh_command(fleet, remote),
        }
    }

    /// How many hosts answered, by the lines of output that have `expected` in them.
    pub(super) fn answers(self, stdout: &str, expected: &str) -> usize {
        stdout.lines().filter(|line| line.contains(expected)).count()
    }
}

/// Builds and installs the peers that are missing, all below the target directory.
pub(super) fn install() -> Result<()> {
    setup::python_environment()?;
    if bssh().is_some() {
        return Ok(());
    }
    println!("building bssh; this takes some minutes");
    let root = paths::target().join("peers");
    command::run(
        command::cargo(["install", "--quiet", "--locked", BSSH, "--root"])
            .arg(&root)
            .env("CARGO_TARGET_DIR", root.join("build")),
    )
}

fn mux(fleet: &Fleet, state: &Path, remote: &str) -> Command {
    let mut command = Command::new(paths::release("mux"));
    command
        .arg("run")
        .arg("-F")
        .arg(&fleet.config)
        .args(["-f", FANOUT, "-w", &fleet.targets(), "--", remote])
        .env("XDG_STATE_HOME", state)
        .env_remove("SSH_AUTH_SOCK");
    command
}

/// `ssh` as the yardstick of round trips, on the first host. With the cheapest key exchange: half of what it computes
/// for the default one hides behind the network, but only where there is a distance, and bends the line.
pub(super) fn ssh_for_calibration(fleet: &Fleet, remote: &str) -> Command {
    let mut command = Command::new("ssh");
    command
        .arg("-F")
        .arg(&fleet.config)
        .args(["-o", "KexAlgorithms=curve25519-sha256"]);
    command
        .args(fleet.hosts.first().map(|host| &host.name))
        .arg(remote)
        .env_remove("SSH_AUTH_SOCK");
    command
}

fn ssh(fleet: &Fleet, remote: &str) -> Command {
    let mut command = Command::new("xargs");
    command
        .arg("-a")
        .arg(&fleet.names)
        .args(["-P", FANOUT, "-I{}", "ssh", "-F"])
        .arg(&fleet.config)
        .args(["{}", remote])
        .env_remove("SSH_AUTH_SOCK");
    command
}

fn asyncssh(fleet: &Fleet, remote: &str) -> Command {
    let mut command = Command::new(setup::python());
    command
        .arg(paths::root().join("xtask/peers/asyncssh_fleet.py"))
        .args([&fleet.list, &fleet.key, &fleet.known_hosts])
        .args([fleet.user.as_str(), FANOUT, remote])
        .env_remove("SSH_AUTH_SOCK");
    command
}

/// The same on connections that are kept.
pub(super) fn asyncssh_sequence(fleet: &Fleet, remote: &str, count: usize) -> Command {
    let mut command = asyncssh(fleet, remote);
    command.arg(count.to_string());
    command
}

/// It reads known_hosts from the home directory only, so it gets the fleet's scratch directory as one.
fn bssh_command(fleet: &Fleet, remote: &str) -> Command {
    let hosts: Vec<String> = fleet
        .hosts
        .iter()
        .map(|host| format!("{}@{}", fleet.user, host.address))
        .collect();
    let mut command = Command::new(bssh().unwrap_or_else(|| "bssh".into()));
    command
        .args([
            "-H",
            &hosts.join(","),
            "--parallel",
            FANOUT,
            "--batch",
            "--strict-host-key-checking",
            "no",
            "-i",
        ])
        .arg(&fleet.key)
        .arg(remote)
        .env("HOME", &fleet.scratch)
        .env_remove("SSH_AUTH_SOCK");
    command
}

/// The installed one, else the one that `--install-peers` built.
fn bssh() -> Option<PathBuf> {
    let ours = paths::target().join("peers/bin/bssh");
    if ours.exists() {
        Some(ours)
    } else {
        command::find("bssh")
    }
}

/// The address of sshd's host key, as known_hosts wants it.
pub(super) fn openssh_host_key(directory: &crate::cleanup::Directory) -> Result<String> {
    Ok(std::fs::read_to_string(directory.join("host_key.pub"))?)
}

/// The name that every host answers with, and that tables count.
pub(super) fn expected_answer() -> Result<String> {
    Ok(command::output(&mut Command::new("hostname"))?.trim().to_owned())
}
