//! A chain of machines of which each sees only its neighbours: network namespaces with a pair of interfaces between two
//! of them, and a real sshd in each but the first. Everything is made for one test and taken away after it.
//!
//! Needs root, and `ip`; without them tests fail and say so. The first machine is `here`, where `mux` runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::rig::{wait_for, write_key};

/// Namespaces are shared by everything on this machine: their names hold who made them, and the how-manieth it is.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Machines in a row.
pub(crate) struct Network {
    pub(crate) dir: TempDir,
    names: Vec<String>,
    sshds: Vec<Option<Child>>,
}

impl Network {
    /// `here` and so many more behind each other, without a server yet.
    pub(crate) fn chain(servers: usize) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |index| format!("mux-{}-{number}-{index}", std::process::id());
        let dir = tempfile::Builder::new().prefix("mux-jumps").tempdir().unwrap();
        // Users of other names have to read their keys there.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut network = Self {
            dir,
            names: Vec::new(),
            sshds: Vec::new(),
        };
        for index in 0..=servers {
            network.names.push(name(index));
            network.sshds.push(None);
            ip(&["netns", "add", &name(index)]);
            network.ip_in(index, &["link", "set", "lo", "up"]);
            if index > 0 {
                network.connect(index);
            }
        }
        network
    }

    /// Joins a machine with the one before it: 10.0.N.1 there, 10.0.N.2 here.
    fn connect(&self, index: usize) {
        let (before, this) = (&self.names[index - 1], &self.names[index]);
        ip(&[
            "link", "add", "down0", "netns", before, "type", "veth", "peer", "name", "up0", "netns", this,
        ]);
        let near = format!("10.0.{index}.1/24");
        self.ip_in(index - 1, &["address", "add", &near, "dev", "down0"]);
        self.ip_in(index - 1, &["link", "set", "down0", "up"]);
        let far = format!("{}/24", self.address(index));
        self.ip_in(index, &["address", "add", &far, "dev", "up0"]);
        self.ip_in(index, &["link", "set", "up0", "up"]);
    }

    /// Where the machine before it reaches a machine.
    pub(crate) fn address(&self, index: usize) -> String {
        format!("10.0.{index}.2")
    }

    pub(crate) fn ip_in(&self, index: usize, args: &[&str]) {
        ip(&[&["-n", &self.names[index]], args].concat());
    }

    /// Cuts a machine off from the one before it, without a word to either.
    pub(crate) fn cut(&self, index: usize) {
        self.ip_in(index, &["link", "set", "up0", "down"]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A program on one of the machines.
    pub(crate) fn command(&self, index: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[index], program]);
        command
    }

    /// Starts a sshd on a machine, with a host key of its own, that lets `key` in; `lines` win over what is usual here.
    /// Returns its host key.
    pub(crate) fn serve(&mut self, index: usize, key: &str, lines: &str) -> String {
        let host_key = self.path(&format!("host_key{index}"));
        let public = match host_key.exists() {
            true => fs::read_to_string(host_key.with_extension("pub")).unwrap(),
            false => write_key(&host_key),
        };
        let keys = self.path(&format!("authorized_keys{index}"));
        fs::write(&keys, format!("{key}\n")).unwrap();
        let config = format!(
            "{lines}\nPort 22\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nSetEnv HOME={}\n",
            host_key.display(),
            keys.display(),
            self.dir.path().display(),
        );
        let config_file = self.path(&format!("sshd_config{index}"));
        fs::write(&config_file, config).unwrap();
        let _ = fs::create_dir_all("/run/sshd");
        let log = self.path(&format!("sshd_log{index}"));
        let sshd = self
            .command(index, "/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(&config_file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn();
        self.sshds[index] = Some(sshd.expect("no ip: apt-get install iproute2"));
        wait_for("sshd to listen", || {
            let log = fs::read_to_string(&log).unwrap();
            assert!(
                !log.contains("not found") && !log.contains("No such file"),
                "{log}; apt-get install openssh-server"
            );
            log.contains("Server listening")
        });
        public.trim().to_owned()
    }

    /// Ends the server of a machine; connections that it has made live on.
    pub(crate) fn stop(&mut self, index: usize) {
        if let Some(mut sshd) = self.sshds[index].take() {
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
    }

    /// Stands the server of a machine still: the kernel goes on to take connections, and nobody says anything on them.
    pub(crate) fn still(&self, index: usize) {
        let id = self.sshds[index].as_ref().unwrap().id().cast_signed();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::STOP).unwrap();
    }

    /// Ends the connections of a machine's server, and not the server.
    pub(crate) fn kill_sessions(&self, index: usize) {
        let listener = self.sshds[index].as_ref().unwrap().id();
        for pid in self.processes(index) {
            if u32::try_from(pid.as_raw_nonzero().get()) != Ok(listener) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }

    fn processes(&self, index: usize) -> Vec<rustix::process::Pid> {
        let pids = Command::new("ip")
            .args(["netns", "pids", &self.names[index]])
            .output();
        let pids = pids.map(|output| output.stdout).unwrap_or_default();
        let pids = String::from_utf8_lossy(&pids).into_owned();
        let pids = pids.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.filter_map(rustix::process::Pid::from_raw).collect()
    }

    /// What the server of a machine has said about this.
    pub(crate) fn logged(&self, index: usize, text: &str) -> usize {
        let log = fs::read_to_string(self.path(&format!("sshd_log{index}"))).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    }

    /// `mux run` on the first machine, by the configuration that was written to `config`.
    pub(crate) fn mux(&self, args: &[&str]) -> Command {
        let mut command = self.command(0, env!("CARGO_BIN_EXE_mux"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::null());
        command.args(["run", "-F", &self.text("config")]).args(args);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(self.mux(args).output().unwrap())
    }
}

/// Status, standard output and standard error, whose times are made equal.
pub(crate) fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let lines = text(output.stderr);
    let lines = lines
        .split_inclusive('\n')
        .map(|line| match line.rsplit_once(" in ") {
            Some((rest, time)) if time.ends_with("s\n") => format!("{rest} in TIME\n"),
            _ => line.to_owned(),
        });
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        lines.collect(),
    )
}

impl Drop for Network {
    fn drop(&mut self) {
        for index in 0..self.sshds.len() {
            self.stop(index);
        }
        for index in 0..self.names.len() {
            // Sessions of a server outlive it, and what is left in a namespace keeps it.
            for pid in self.processes(index) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            let _ = Command::new("ip")
                .args(["netns", "delete", &self.names[index]])
                .output();
        }
    }
}

fn ip(args: &[&str]) {
    let output = Command::new("ip").args(args).output();
    let output = output.expect("no ip: apt-get install iproute2");
    assert!(
        output.status.success(),
        "ip {args:?}: {}; network namespaces are for root: sudo cargo xtask test",
        String::from_utf8_lossy(&output.stderr)
    );
}
