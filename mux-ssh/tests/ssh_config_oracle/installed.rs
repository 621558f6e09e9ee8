//! The `ssh` that is asked: which program, and what its version knows.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::compare::Values;

/// What is found where `SSH_AUTH_SOCK` points to.
pub(crate) const AGENT: &str = "/run/test-agent";

/// What `ssh -V` says, up to the first comma or blank.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| {
    let output = ssh().arg("-V").output();
    let output =
        output.unwrap_or_else(|error| panic!("ssh cannot be run ({error}): apt install openssh-client"));
    let said = String::from_utf8(output.stderr).unwrap();
    said.split([',', ' ', '\n']).next().unwrap().to_owned()
});

fn ssh() -> Command {
    let mut ssh = Command::new(std::env::var("SSH_CONFIG_SSH").unwrap_or_else(|_| "ssh".to_owned()));
    ssh.stdin(Stdio::null());
    ssh
}

/// Whether it is of this version at least: `OpenSSH_9.2p1` is (9, 2).
pub(crate) fn knows(major: u32, minor: u32) -> bool {
    let numbers = VERSION.strip_prefix("OpenSSH_").unwrap();
    let mut numbers = numbers
        .split(['.', 'p'])
        .map(|digits| digits.parse::<u32>().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
}

/// What `ssh -G` prints, by keyword; `None` if it fails.
pub(crate) fn oracle(arguments: &[&str]) -> Option<Values> {
    let mut ssh = ssh();
    ssh.arg("-G").args(arguments).env("SSH_AUTH_SOCK", AGENT);
    let output = ssh.output();
    let output =
        output.unwrap_or_else(|error| panic!("ssh cannot be run ({error}): apt install openssh-client"));
    output.status.success().then(|| {
        let mut values: Values = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let (keyword, value) = line.split_once(' ').unwrap_or((line, ""));
            values
                .entry(keyword.to_owned())
                .or_default()
                .push(value.to_owned());
        }
        values
    })
}
