//! A user's home with a server, a runtime directory and perhaps a daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::rig::{Ran, Rig, wait_for};

pub(crate) struct Home {
    pub(crate) rig: Rig,
    daemon: Option<Child>,
}

impl Home {
    /// Without a daemon.
    pub(crate) fn new() -> Self {
        Self::of(Rig::new())
    }

    pub(crate) fn of(rig: Rig) -> Self {
        let runtime = rig.path("runtime");
        fs::create_dir(&runtime).unwrap();
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
        Self { rig, daemon: None }
    }

    /// With one.
    pub(crate) fn with_daemon() -> Self {
        let mut home = Self::new();
        home.start(&[]);
        home
    }

    /// Starts a daemon as a child of ours.
    pub(crate) fn start(&mut self, options: &[&str]) {
        let mut command = self.mux(&["daemon", "run"]);
        command.args(options).stdin(Stdio::null());
        command.stderr(fs::File::create(self.rig.path("daemon_log")).unwrap());
        self.daemon = Some(command.spawn().unwrap());
        wait_for("the daemon to listen", || {
            UnixStream::connect(self.socket()).is_ok()
        });
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.rig.path("socket")
    }

    pub(crate) fn daemon(&self) -> u32 {
        self.daemon.as_ref().unwrap().id()
    }

    pub(crate) fn daemon_child(&mut self) -> &mut Child {
        self.daemon.as_mut().unwrap()
    }

    /// Resident memory of the daemon, in MiB.
    pub(crate) fn resident(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.daemon())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() / 1024
    }

    /// Any `mux`.
    pub(crate) fn mux(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mux"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command
            .env("XDG_STATE_HOME", self.rig.path("state"))
            .env("XDG_RUNTIME_DIR", self.rig.path("runtime"))
            .env("MUX_SOCKET", self.socket())
            .stdin(Stdio::null())
            .args(words);
        command
    }

    /// `mux run` on this server, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.mux(&["run", "-F", &self.rig.text("config")]);
        command.args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.rig.finish(self.command(args).output().unwrap())
    }

    /// The connection that a command ran on, by its ports: the same twice is the same connection.
    pub(crate) fn connection(&self, options: &[&str]) -> String {
        let args = [options, &["-N", "-w", "host", "echo $SSH_CONNECTION"]].concat();
        let ran = self.run(&args);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
        assert_eq!(ran.stdout.split(' ').count(), 4, "{ran:?}");
        ran.stdout
    }

    pub(crate) fn status(&self) -> serde_json::Value {
        let output = self.mux(&["status", "--json"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Connections that nobody uses.
    pub(crate) fn idle(&self) -> usize {
        let status = self.status();
        let connections = status["connections"].as_array().unwrap();
        connections.iter().filter(|line| line["state"] == "idle").count()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
