//! Ctrl-C on a terminal, twice, while a fleet runs something long: nothing survives, for whomever it runs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Read;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::{Child, Command, Stdio};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::processes::{alive, descendants};
use crate::rig::{Rig, read_until, wait_for};

/// A process that has a terminal of its own on all its streams.
struct OnTerminal {
    keys: File,
    child: Child,
}

impl OnTerminal {
    fn start(command: &Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let stream = || -> Stdio {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .custom_flags(i32::try_from(OFlags::NOCTTY.bits()).unwrap());
            options
                .open(std::ffi::OsStr::from_bytes(name.to_bytes()))
                .unwrap()
                .into()
        };
        // Makes it the terminal of a session in which the program is in front, as a shell does: the key is a signal then.
        let mut inner = Command::new("setsid");
        inner
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear();
        inner.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let child = inner
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        Self {
            keys: File::from(terminal),
            child,
        }
    }

    fn press_ctrl_c(&mut self) {
        self.keys.write_all(b"\x03").unwrap();
    }

    /// What it still says, and its exit status.
    fn end(mut self) -> (String, Option<i32>) {
        let mut said = Vec::new();
        let mut buffer = [0; 4096];
        // The end of a terminal is an error: nobody has it open any more.
        while let Ok(len @ 1..) = self.keys.read(&mut buffer) {
            said.extend_from_slice(&buffer[..len]);
        }
        let status = self.child.wait().unwrap();
        (String::from_utf8(said).unwrap(), status.code())
    }
}

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
    let command = rig.command(&[&targets[..], extra, &["--", "echo ready; sleep 600"]].concat());
    let mut run = OnTerminal::start(&command);
    let sleepers = || descendants(rig.sshd_id(), "sleep");
    wait_for("twenty hosts to sleep", || sleepers().len() == 20);
    let sleepers = sleepers();

    run.press_ctrl_c();
    let mut said = read_until(&mut run.keys, "Ctrl-C again stops what runs");
    said += &read_until(&mut run.keys, "command: web[01-20]");
    assert_eq!(alive(&sleepers, "sleep").len(), 20, "{said}");

    run.press_ctrl_c();
    let (rest, status) = run.end();
    let said = said + &rest;
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
