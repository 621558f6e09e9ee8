//! A real sshd with keys, configuration and known_hosts of its own in a temporary directory, and `mux` pointed at it.
//! Everything that was started is ended by its process id. Without sshd tests fail and say what to install.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use mux_ssh::keys::PrivateKey;
use mux_ssh::server::key_file::{Seed, public_line};
use rustix::event::{PollFd, PollFlags, Timespec};
use tempfile::TempDir;

/// Longer than anything takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    pub(crate) port: u16,
    pub(crate) host_key: String,
    sshd: Option<Child>,
}

/// What a run printed, with everything that differs from run to run replaced.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With further lines of sshd_config.
    pub(crate) fn with(lines: &str) -> Self {
        Self::started(lines, false)
    }

    /// A server with a user of its own, `deploy`, whose password is `secret` and who is root in everything else. The
    /// password files and the rules of PAM are mounted over the machine's in a namespace that ends with the server.
    pub(crate) fn with_password(lines: &str) -> Self {
        Self::started(&format!("{lines}\nUsePAM yes\nLogLevel VERBOSE"), true)
    }

    fn started(lines: &str, password: bool) -> Self {
        let dir = tempfile::Builder::new().prefix("mux-rig").tempdir().unwrap();
        let host_key = write_key(&dir.path().join("host_key"));
        let user_key = write_key(&dir.path().join("id"));
        fs::write(dir.path().join("authorized_keys"), user_key).unwrap();
        let mut rig = Self {
            dir,
            port: free_port(),
            host_key,
            sshd: None,
        };
        rig.know(&rig.host_key.clone());
        rig.configure("");
        rig.start(lines, password);
        rig
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Makes this line the only key by which the server is known.
    pub(crate) fn know(&self, key: &str) {
        fs::write(
            self.path("known_hosts"),
            format!("[127.0.0.1]:{} {key}\n", self.port),
        )
        .unwrap();
    }

    /// Writes the ssh configuration; `first` stands before everything else and wins.
    pub(crate) fn configure(&self, first: &str) {
        let dir = self.dir.path().display();
        let text = format!(
            "{first}\nHost *\n  HostName 127.0.0.1\n  Port {}\n  IdentityFile {dir}/id\n  IdentityAgent none\n  \
             UserKnownHostsFile {dir}/known_hosts\n  GlobalKnownHostsFile /dev/null\n  \
             StrictHostKeyChecking yes\n",
            self.port
        );
        fs::write(self.path("config"), text).unwrap();
    }

    /// The process that serves connections.
    pub(crate) fn sshd_id(&self) -> u32 {
        self.sshd.as_ref().unwrap().id()
    }

    /// The server goes, and one with further lines of sshd_config comes in its place.
    pub(crate) fn restart(&mut self, lines: &str) {
        self.stop();
        self.start(lines, false);
    }

    fn stop(&mut self) {
        if let Some(mut sshd) = self.sshd.take() {
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
    }

    fn start(&mut self, lines: &str, password: bool) {
        let dir = self.dir.path().display();
        // The first one of a keyword counts, but of this one the last does.
        let startups = match lines.contains("MaxStartups") {
            true => "",
            false => "MaxStartups 2000:30:4000\n",
        };
        let config = format!(
            "{lines}\n{startups}Port {}\nListenAddress 127.0.0.1\nHostKey {dir}/host_key\nAuthorizedKeysFile {dir}/authorized_keys\n\
             PidFile none\nSetEnv HOME={dir}\nUsePAM no\nStrictModes no\nPermitRootLogin yes\n",
            self.port
        );
        fs::write(self.path("sshd_config"), config).unwrap();
        // With a home of their own, sessions don't run what the user's shell does at its start.
        // Where sshd as root wants to lock itself up; a package creates it at boot only.
        let _ = fs::create_dir_all("/run/sshd");
        // Another one than the system's, where a test of newer ones asks for it.
        let program = std::env::var_os("MUX_TEST_SSHD").unwrap_or_else(|| "/usr/sbin/sshd".into());
        let mut command = match password {
            true => self.among_own_users(&program),
            false => Command::new(program),
        };
        let sshd = command
            .args(["-D", "-e", "-f", &self.text("sshd_config")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.path("sshd_log")).unwrap())
            .spawn();
        self.sshd = Some(sshd.expect("no /usr/sbin/sshd: apt-get install openssh-server"));
        wait_for("sshd to listen", || {
            fs::read_to_string(self.path("sshd_log"))
                .unwrap()
                .contains("Server listening")
        });
    }

    /// A program for which other password files and rules of PAM stand in the place of the machine's.
    ///
    /// A directory is mounted, and not the files: a mount over a file is gone once somebody replaces the file below, as
    /// everything does that adds a user.
    pub(crate) fn among_own_users(&self, program: &std::ffi::OsStr) -> Command {
        let (own, machine) = (self.path("etc"), self.path("etc-of-machine"));
        fs::create_dir_all(&machine).unwrap();
        fs::create_dir_all(own.join("pam.d")).unwrap();
        for place in ["", "pam.d"] {
            for entry in fs::read_dir(Path::new("/etc").join(place)).unwrap() {
                let name = entry.unwrap().file_name();
                let _there =
                    std::os::unix::fs::symlink(machine.join(place).join(&name), own.join(place).join(&name));
            }
        }
        let put = |name: &str, text: &str| {
            let _link = fs::remove_file(own.join(name));
            fs::write(own.join(name), text).unwrap();
        };
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let home = self.text("deploy");
        fs::create_dir_all(&home).unwrap();
        put("passwd", &format!("{users}deploy:x:0:0::{home}:/bin/sh\n"));
        // The word `secret`.
        put(
            "shadow",
            "deploy:$6$muxtest1$uFMg69.c.kmm8UOXbd/GpmWSO6mDjtbFa5.ZVW7YNQ/ZZ//dKC/uEzz5Fbav4JcENGsP4MSFCGjJE4wFwe3id1:19000:0:99999:7:::\n",
        );
        put(
            "pam.d/sshd",
            "auth required pam_unix.so nodelay\naccount required pam_permit.so\nsession required pam_permit.so\n",
        );
        let mut command = Command::new("unshare");
        let line = format!(
            "mount --bind /etc '{}' && mount --bind '{}' /etc && exec \"$@\"",
            machine.display(),
            own.display()
        );
        command.args(["-m", "sh", "-c", &line, "sh"]).arg(program);
        command
    }

    /// `mux run` with this configuration, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        self.subcommand(&["run"], args)
    }

    /// The same for another subcommand.
    pub(crate) fn subcommand(&self, names: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mux"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("preferences"))
            .stdin(Stdio::null());
        command.args(names).args(["-F", &self.text("config")]).args(args);
        command
    }

    /// The same on a terminal of its own, which types what is written to its standard input.
    pub(crate) fn on_terminal(&self, args: &[&str]) -> Command {
        self.typed(&self.command(args))
    }

    /// A command on a terminal of its own.
    pub(crate) fn typed(&self, command: &Command) -> Command {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<_> = words
            .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")))
            .collect();
        let mut script = Command::new("script");
        script
            .args(["-qec", &words.join(" "), "/dev/null"])
            .env("NO_COLOR", "1")
            .env("XDG_STATE_HOME", self.path("state"));
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        script
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.finish(self.command(args).output().unwrap())
    }

    pub(crate) fn finish(&self, output: Output) -> Ran {
        Ran {
            status: std::os::unix::process::ExitStatusExt::into_raw(output.status) >> 8,
            stdout: self.stable(&output.stdout),
            stderr: self.stable(&output.stderr),
        }
    }

    /// One run, all of what it prints and its exit status.
    pub(crate) fn check(&self, args: &[&str], status: i32, stdout: &str, stderr: &str) {
        let expected = Ran {
            status,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        assert_eq!(self.run(args), expected, "mux run {args:?}");
    }

    fn stable(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let text = text
            .replace(self.dir.path().to_str().unwrap(), "DIR")
            .replace(&format!(":{}", self.port), ":PORT");
        let lines = text
            .split_inclusive('\n')
            .map(|line| match line.rsplit_once(" in ") {
                Some((rest, time))
                    if time.ends_with("s\n") && time.starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    format!("{rest} in TIME\n")
                }
                _ => line.to_owned(),
            });
        lines.collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes a new key of this name and its public half beside it; returns the latter.
pub(crate) fn write_key(path: &Path) -> String {
    let file = Seed::generate().unwrap().to_openssh().unwrap();
    fs::write(path, file.as_bytes()).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let public = public_line(PrivateKey::parse(file.as_bytes(), None).unwrap().public());
    let public = public.trim().to_owned();
    fs::write(path.with_extension("pub"), format!("{public}\n")).unwrap();
    public
}

/// A port on which nobody listens.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

pub(crate) fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the process whose id is in this file is alive.
pub(crate) fn is_alive(pid_file: &Path) -> bool {
    let pid = fs::read_to_string(pid_file).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // A zombie has ended; whoever should collect it is not our concern.
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Reads from a stream until it has said `text`. One that says nothing for too long fails the test.
pub(crate) fn read_until(stream: &mut (impl Read + AsFd), text: &str) -> String {
    let mut seen = Vec::new();
    let mut byte = [0];
    let patience = Timespec {
        tv_sec: PATIENCE.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    while !String::from_utf8_lossy(&seen).contains(text) {
        let mut end = [PollFd::new(&*stream, PollFlags::IN)];
        let ready = rustix::event::poll(&mut end, Some(&patience)).unwrap();
        assert!(ready > 0, "no {text:?} in: {}", String::from_utf8_lossy(&seen));
        assert_eq!(
            stream.read(&mut byte).unwrap(),
            1,
            "{}",
            String::from_utf8_lossy(&seen)
        );
        seen.extend(byte);
    }
    String::from_utf8(seen).unwrap()
}
