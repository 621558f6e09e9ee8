//! Foreign servers on loopback, each with host keys of every type it takes. What is started goes away with its value.
//!
//! sshd and the Python ones listen by themselves. dropbear and TinySSH are started for each connection, with the
//! connection as standard input, and find the keys of users in their homes only: they get one of their own, mounted
//! over the real one in a namespace that ends with them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tempfile::TempDir;

use crate::keys;
use crate::rig::Rig;

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    OpenSsh,
    Dropbear,
    AsyncSsh,
    Paramiko,
    TinySsh,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Lines as in a `.pub` file, one for each type of key.
    pub(crate) host_keys: Vec<String>,
    log: PathBuf,
    _running: Running,
}

/// Dropped in this order: what writes to a directory goes before it.
enum Running {
    Sshd { _rig: Rig },
    Process { _process: Process, _dir: TempDir },
    Acceptor { _acceptor: Acceptor, _dir: TempDir },
}

/// dropbear 2022.83 holds four host keys at most; these are for a second one.
const DROPBEAR_LEFT_OVER: &str = "ecdsa521";

impl Server {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with_rekey(kind, None)
    }

    /// A server for much data, which renews keys after so many bytes, if it can be told to.
    pub(crate) fn for_volume(kind: Kind, rekey: Option<u64>) -> Self {
        match kind {
            // Its usual window is 24 KiB, and the kernel keeps back the messages that refill it: 2 MB a second.
            Kind::Dropbear => dropbear(&[DROPBEAR_LEFT_OVER], &["-W", "1048576"]),
            Kind::OpenSsh | Kind::AsyncSsh | Kind::Paramiko | Kind::TinySsh => Self::with_rekey(kind, rekey),
        }
    }

    fn with_rekey(kind: Kind, bytes: Option<u64>) -> Self {
        let mut host_keys = keys::types();
        match kind {
            Kind::OpenSsh => sshd(&host_keys, bytes),
            Kind::AsyncSsh => {
                let rekey = bytes.unwrap_or(0).to_string();
                python("asyncssh_server.py", &[rekey], &host_keys)
            }
            Kind::Paramiko => python("paramiko_server.py", &[], &host_keys),
            Kind::Dropbear => {
                host_keys.retain(|name| *name != DROPBEAR_LEFT_OVER);
                dropbear(&host_keys, &[])
            }
            Kind::TinySsh => tinysshd(),
        }
    }

    /// As many servers as it takes for each type of host key that this kind has.
    pub(crate) fn with_every_host_key(kind: Kind) -> Vec<Self> {
        let second = (kind == Kind::Dropbear).then(|| dropbear(&[DROPBEAR_LEFT_OVER], &[]));
        std::iter::once(Self::new(kind)).chain(second).collect()
    }

    /// What the server had to say, for whoever wonders why a test failed.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn files(host_keys: &[&str]) -> Vec<PathBuf> {
    host_keys.iter().map(|name| keys::file("host", name)).collect()
}

fn public_keys(host_keys: &[&str]) -> Vec<String> {
    files(host_keys).iter().map(|file| keys::public(file)).collect()
}

fn sshd(host_keys: &[&str], rekey: Option<u64>) -> Server {
    // The first mention of a keyword counts, and every mention of a host key.
    let mut lines = format!("AuthorizedKeysFile {}\n", keys::authorized().display());
    for file in files(host_keys) {
        lines.push_str(&format!("HostKey {}\n", file.display()));
    }
    if let Some(bytes) = rekey {
        lines.push_str(&format!("RekeyLimit {bytes}\n"));
    }
    let rig = Rig::with(&lines);
    Server {
        address: SocketAddr::from(([127, 0, 0, 1], rig.port)),
        host_keys: public_keys(host_keys),
        log: rig.path("sshd_log"),
        _running: Running::Sshd { _rig: rig },
    }
}

fn directory() -> TempDir {
    tempfile::Builder::new().prefix("mux-interop").tempdir().unwrap()
}

/// The interpreter that has the servers' packages, and the tool for audits.
pub(crate) fn interpreter() -> PathBuf {
    let python = std::env::var_os("MUX_TEST_PYTHON").map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("venv/bin/python"),
        PathBuf::from,
    );
    assert!(
        python.exists(),
        "no {}: cargo xtask test --only setup",
        python.display()
    );
    python
}

/// A script of this directory.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/interop")
        .join(name)
}

fn python(name: &str, arguments: &[String], host_keys: &[&str]) -> Server {
    let dir = directory();
    let log = dir.path().join("log");
    let mut command = Command::new(interpreter());
    command
        .arg(script(name))
        .arg(keys::authorized())
        .args(arguments)
        .args(files(host_keys))
        .stderr(fs::File::create(&log).unwrap());
    let (process, port) = Process::listening(command);
    let port = port.unwrap_or_else(|| {
        let log = fs::read_to_string(&log).unwrap();
        panic!("{name} does not start; cargo xtask test --only setup installs what it needs: {log}")
    });
    Server {
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        host_keys: public_keys(host_keys),
        log,
        _running: Running::Process {
            _process: process,
            _dir: dir,
        },
    }
}

/// A process that ends when its standard input does, even if the test is killed.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Starts a process that prints the port on which it listens; `None` if it ends without.
    pub(crate) fn listening(mut command: Command) -> (Self, Option<u16>) {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = Self(child.unwrap());
        let mut line = String::new();
        // A byte at a time: what follows belongs to whoever reads on.
        let stdout = process.0.stdout.as_mut().unwrap();
        BufReader::with_capacity(1, stdout).read_line(&mut line).unwrap();
        (process, line.trim().parse().ok())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn dropbear(host_keys: &[&str], more: &[&str]) -> Server {
    let dir = home_of_its_own();
    // On a connection that it was given it logs to syslog and nowhere else.
    let mut arguments: Vec<String> = ["-i", "-s"]
        .iter()
        .chain(more)
        .map(|&word| word.to_owned())
        .collect();
    for file in files(host_keys) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let converted = Command::new("dropbearconvert")
            .args(["openssh", "dropbear"])
            .arg(&file)
            .arg(&name)
            .current_dir(dir.path())
            .output();
        let converted = converted.expect("no dropbearconvert: apt-get install dropbear-bin");
        assert!(converted.status.success(), "{converted:?}");
        arguments.extend(["-r".to_owned(), name]);
    }
    per_connection(dir, "/usr/sbin/dropbear", arguments, public_keys(host_keys))
}

fn tinysshd() -> Server {
    let dir = home_of_its_own();
    let tool = |name: &str| {
        let output = Command::new(format!("/usr/sbin/{name}"))
            .arg("keys")
            .current_dir(dir.path())
            .output();
        String::from_utf8(output.expect("no TinySSH: apt-get install tinysshd").stdout).unwrap()
    };
    tool("tinysshd-makekey");
    let key = tool("tinysshd-printkey");
    let arguments = vec!["-v".to_owned(), "keys".to_owned()];
    per_connection(dir, "/usr/sbin/tinysshd", arguments, vec![key])
}

/// A directory with a `home` in which users' keys are found.
fn home_of_its_own() -> TempDir {
    let dir = directory();
    let ssh = dir.path().join("home/.ssh");
    fs::create_dir_all(&ssh).unwrap();
    fs::copy(keys::authorized(), ssh.join("authorized_keys")).unwrap();
    dir
}

fn per_connection(
    dir: TempDir,
    program: &'static str,
    arguments: Vec<String>,
    host_keys: Vec<String>,
) -> Server {
    assert!(
        Path::new(program).exists(),
        "no {program}: cargo xtask test --only setup"
    );
    let log = dir.path().join("log");
    let stderr = fs::File::create(&log).unwrap();
    let path = dir.path().to_owned();
    let acceptor = Acceptor::new(move |connection| {
        let mut command = at_home(&path, program, &arguments);
        command
            .stdin(OwnedFd::from(connection.try_clone().unwrap()))
            .stdout(OwnedFd::from(connection))
            .stderr(stderr.try_clone().unwrap());
        command.spawn().expect("no unshare: apt-get install util-linux")
    });
    Server {
        address: acceptor.address,
        host_keys,
        log,
        _running: Running::Acceptor {
            _acceptor: acceptor,
            _dir: dir,
        },
    }
}

/// A command that sees `home` in place of the user's. Relative paths: should the directory lie below the home, it is
/// still there as the working directory.
fn at_home(dir: &Path, program: &str, arguments: &[String]) -> Command {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid())
        .unwrap()
        .unwrap();
    let mut command = Command::new("unshare");
    command.arg("--mount");
    if !nix::unistd::geteuid().is_root() {
        // Mounts are anyone's right in a user namespace of one's own.
        command.arg("--map-root-user");
    }
    command
        .args(["sh", "-c", "mount --bind home \"$0\" && exec \"$@\""])
        .arg(&user.dir)
        .arg(program)
        .args(arguments)
        .current_dir(dir);
    command
}

/// Starts a process for each connection. Ends them all when dropped.
struct Acceptor {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    fn new(mut start: impl FnMut(TcpStream) -> Child + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut children: Vec<Child> = Vec::new();
            while let Ok((connection, _)) = listener.accept() {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
                children.push(start(connection));
            }
            for mut child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Ends its wait.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
