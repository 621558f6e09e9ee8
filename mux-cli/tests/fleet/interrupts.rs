//! Ctrl-C on a terminal, twice, while a fleet runs something long: nothing survives, for whomever it runs.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::processes::{alive, descendants};
use crate::rig::{Rig, read_until, wait_for};

/// What the key types.
const CTRL_C: &[u8] = b"\x03";

/// A user that exists as long as the test runs. Only root can make one; whoever else runs the tests is one already.
struct User {
    name: String,
    made: bool,
}

impl User {
    fn new() -> Self {
        let made = rustix::process::getuid().is_root();
        let name = match made {
            true => format!("mux-t{}", std::process::id()),
            false => {
                let output = Command::new("id").arg("-un").output().unwrap();
                String::from_utf8(output.stdout).unwrap().trim().to_owned()
            }
        };
        if made {
            // A password that nothing matches; an account without one counts as locked.
            let user = Command::new("useradd")
                .args([
                    "--no-create-home",
                    "--home-dir",
                    "/",
                    "--shell",
                    "/bin/sh",
                    "-p",
                    "*",
                    &name,
                ])
                .status();
            assert!(user.unwrap().success());
        }
        Self { name, made }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if self.made {
            let _ = Command::new("userdel").arg(&self.name).status();
        }
    }
}

/// Twenty hosts sleep; Ctrl-C once, and they still do; twice, and none does.
fn check(extra: &[&str], printed: impl Fn(&str) -> bool) {
    let rig = Rig::new();
    // Another user's session has to find the key that may log in.
    fs::set_permissions(rig.dir.path(), Permissions::from_mode(0o755)).unwrap();
    let targets = ["-w", "web[01-20]", "--connect-timeout", "60"];
    let args = [&targets[..], extra, &["--", "echo ready; sleep 600"]].concat();
    let mut run = rig.on_terminal(&args).spawn().unwrap();
    let (mut keys, mut screen) = (run.stdin.take().unwrap(), run.stdout.take().unwrap());
    let sleepers = || descendants(rig.sshd_id(), "sleep");
    wait_for("twenty hosts to sleep", || sleepers().len() == 20);
    let sleepers = sleepers();

    keys.write_all(CTRL_C).unwrap();
    let mut said = read_until(&mut screen, "Ctrl-C again stops what runs");
    said += &read_until(&mut screen, "command: web[01-20]");
    assert_eq!(alive(&sleepers, "sleep").len(), 20, "{said}");

    keys.write_all(CTRL_C).unwrap();
    screen.read_to_string(&mut said).unwrap();
    let status = run.wait().unwrap().code();
    assert!(alive(&sleepers, "sleep").is_empty(), "{said}");
    assert_eq!(status, Some(130), "{said}");
    assert!(!said.contains("may still be running"), "{said}");
    assert!(said.contains("cancelled=20"), "{said}");
    assert!(printed(&said), "{said}");
}

#[test]
fn the_second_one_ends_what_root_runs_and_prints_what_was_gathered() {
    check(&["-b"], |said| {
        said.contains("web[01-20] (20)\r\n---------------\r\nready\r\n")
    });
}

#[test]
fn the_second_one_ends_what_an_ordinary_user_runs_and_prints_what_was_said() {
    let user = User::new();
    check(&["-l", &user.name], |said| {
        (1..=20).all(|host| said.contains(&format!("web{host:02}: ")))
    });
}
