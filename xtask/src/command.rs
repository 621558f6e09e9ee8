//! Running other programs: one way to do it, with errors that name the command line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::paths;

/// `cargo` in the workspace's root. rustup hands the toolchain that runs this program down in the environment.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(paths::root());
    command
}

/// Runs to the end, output going where ours goes; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}`: {status}", line(command));
    }
    Ok(())
}

/// Like [`run`], with every line of standard output shown and given to `read`.
pub(crate) fn run_and_read(command: &mut Command, mut read: impl FnMut(&str)) -> Result<()> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    for text in BufReader::new(child.stdout.take().context("no pipe was made")?).lines() {
        let text = text?;
        println!("{text}");
        read(&text);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("`{}`: {status}", line(command));
    }
    Ok(())
}

/// Like [`run`], with the output shown only if it fails.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Standard output of a command that must succeed; standard error is part of the error otherwise.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    streams(command).map(|(stdout, _)| stdout)
}

/// Standard error of a command that must succeed.
pub(crate) fn stderr(command: &mut Command) -> Result<String> {
    streams(command).map(|(_, stderr)| stderr)
}

fn streams(command: &mut Command) -> Result<(String, String)> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    if !output.status.success() {
        bail!("`{}`: {}\n{stdout}{stderr}", line(command), output.status);
    }
    Ok((stdout, stderr))
}

/// Whether a program can be found.
pub(crate) fn exists(program: &str) -> bool {
    find(program).is_some()
}

/// The program's path; daemons live in directories that a user's PATH often lacks.
pub(crate) fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(Into::into))
        .map(|dir| dir.join(program))
        .find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The command as one would type it, environment included: what is printed can be pasted.
pub(crate) fn line(command: &Command) -> String {
    let environment = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={}", key.display(), quote(value?))));
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quote);
    environment.chain(words).collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_can_be_pasted_into_a_shell() {
        let mut command = Command::new("cargo");
        command
            .args(["doc", "a b", "it's"])
            .env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(
            line(&command),
            r"RUSTDOCFLAGS='-D warnings' cargo doc 'a b' 'it'\''s'"
        );
    }
}
