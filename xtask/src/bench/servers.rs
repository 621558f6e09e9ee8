//! The servers that clients are measured against: real ones, with keys and configuration in a temporary directory.
//!
//! They listen on loopback only, and nothing of them stays: no user, no key in anyone's home, no changed file.

use std::fmt::Write as _;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cleanup::{Directory, Server};
use crate::{command, paths};

/// Generating keys on a busy machine takes a while; a server that is broken exits at once.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A server on loopback that goes away with this value.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) address: SocketAddr,
    server: Server,
}

impl Running {
    /// The process that accepts.
    pub(super) fn process(&mut self) -> u32 {
        self.server.child().id()
    }
}

/// Which of sshd's key exchanges are left on: all, or the one that costs the same in every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyExchange {
    Default,
    Curve25519,
}

impl KeyExchange {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Curve25519 => "curve25519",
        }
    }
}

/// The keys of server and client, all Ed25519, in `directory`: `host_key`, `id_ed25519`, `authorized_keys`.
pub(super) fn generate_keys(directory: &Directory) -> Result<()> {
    for name in ["host_key", "id_ed25519"] {
        command::run_quietly(
            Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
                .arg(directory.join(name)),
        )?;
    }
    std::fs::copy(
        directory.join("id_ed25519.pub"),
        directory.join("authorized_keys"),
    )?;
    Ok(())
}

/// OpenSSH's sshd, which accepts as many strangers at once as a benchmark sends.
pub(super) fn openssh(directory: &Directory, kex: KeyExchange) -> Result<Running> {
    sshd(
        directory,
        kex.name(),
        "MaxStartups 2000:30:4000\nMaxSessions 1000\n",
        kex,
    )
}

/// The log of [`stock`].
pub(super) const STOCK_LOG: &str = "sshd.stock.log";

/// The same with the limits that it comes with.
pub(super) fn stock(directory: &Directory) -> Result<Running> {
    let limits = "MaxStartups 10:30:100\nMaxSessions 10\n";
    sshd(directory, "stock", limits, KeyExchange::Default)
}

fn sshd(directory: &Directory, label: &str, limits: &str, kex: KeyExchange) -> Result<Running> {
    let port = free_port()?;
    let path = directory.path().display();
    let mut config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {path}/host_key\nAuthorizedKeysFile {path}/authorized_keys\n\
         PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nPrintMotd no\nUseDNS no\n{limits}"
    );
    // A shell under ssh reads the user's start-up files, which cost what they cost. Nobody's belong to a measurement.
    let home = directory.join("home");
    std::fs::create_dir_all(&home)?;
    writeln!(config, "SetEnv HOME={}", home.display())?;
    if kex == KeyExchange::Curve25519 {
        // On the server's side it holds for every client, whether or not it can be told.
        config.push_str("KexAlgorithms curve25519-sha256\n");
    }
    let file = directory.join(&format!("sshd_config.{label}"));
    std::fs::write(&file, config)?;
    // A relative or symbolic path makes sshd refuse to re-execute itself.
    let sshd =
        command::find("sshd").context("bench needs sshd; `cargo xtask test --only setup` installs it")?;
    let mut command = Command::new(sshd);
    command.args(["-D", "-e", "-f"]).arg(file);
    start(command, port, &directory.join(&format!("sshd.{label}.log")))
}

/// dropbear reads keys from the user's home only. It gets a mount namespace of its own in which that home is one below
/// `directory`: nothing is written to the real one, and the namespace is gone with the process.
pub(super) fn dropbear(directory: &Directory) -> Result<Running> {
    let port = free_port()?;
    let ssh = directory.join("home/.ssh");
    std::fs::create_dir_all(&ssh)?;
    std::fs::copy(directory.join("authorized_keys"), ssh.join("authorized_keys"))?;
    command::run_quietly(
        Command::new("dropbearkey")
            .args(["-t", "ed25519", "-f"])
            .arg(directory.join("dropbear_host_key")),
    )?;
    // Relative paths: should `directory` lie below the home, it is still there as the working directory.
    let script = format!(
        "mount --bind home '{home}' && exec '{dropbear}' -F -E -s -p 127.0.0.1:{port} -r dropbear_host_key -P dropbear.pid",
        home = account()?.dir.display(),
        dropbear = command::find("dropbear")
            .context("bench rtt needs dropbear")?
            .display(),
    );
    let mut command = Command::new("unshare");
    // Mounts of its own are anyone's right in a user namespace of one's own, and root's without.
    let namespaces: &[&str] = if nix::unistd::geteuid().is_root() {
        &["--mount"]
    } else {
        &["--mount", "--map-root-user"]
    };
    command
        .args(namespaces)
        .args(["sh", "-c", &script])
        .current_dir(directory.path());
    start(command, port, &directory.join("dropbear.log"))
}

/// Our delay relay in front of a server: an address for each distance (in milliseconds of round trip) asked for.
/// It charges the TCP handshake's round trip, too.
pub(super) fn relay(
    directory: &Directory,
    to: SocketAddr,
    distances: impl IntoIterator<Item = u32>,
) -> Result<(Vec<SocketAddr>, Server)> {
    let mut command = Command::new(paths::release("examples/relay"));
    let mut count = 0;
    for distance in distances {
        command.args([
            "--listen",
            "127.0.0.1:0",
            "--to",
            &to.to_string(),
            "--rtt",
            &distance.to_string(),
        ]);
        count += 1;
    }
    let (lines, server) = Server::ready(command, count, &directory.join("relay.log"))?;
    let address = |line: &String| {
        line.parse()
            .with_context(|| format!("the relay is ready at `{line}`"))
    };
    Ok((lines.iter().map(address).collect::<Result<_>>()?, server))
}

/// The `known_hosts` text of dropbear's key: `dropbearkey -y` prints the public half among other lines.
pub(super) fn dropbear_public_key(directory: &Directory) -> Result<String> {
    let text = command::output(
        Command::new("dropbearkey")
            .args(["-y", "-f"])
            .arg(directory.join("dropbear_host_key")),
    )?;
    let line = text
        .lines()
        .find(|line| line.starts_with("ssh-ed25519 "))
        .context("dropbearkey printed no public key")?;
    Ok(line.to_owned())
}

/// Who logs in: whoever runs the benchmark.
pub(super) fn user() -> Result<String> {
    Ok(account()?.name)
}

fn account() -> Result<nix::unistd::User> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid())?;
    user.context("this user has no name")
}

/// Starts a server in the background and waits until it accepts.
fn start(mut command: Command, port: u16, log: &Path) -> Result<Running> {
    let output = File::create(log)?;
    command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    let child = command
        .spawn()
        .with_context(|| format!("cannot start `{}`", command::line(&command)))?;
    let mut server = Server::new(child);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let start = Instant::now();
    while TcpStream::connect(address).is_err() {
        if let Some(status) = server.child().try_wait()? {
            bail!(
                "`{}` ended with {status}: {}",
                command::line(&command),
                std::fs::read_to_string(log)?
            );
        }
        ensure!(
            start.elapsed() < START_TIMEOUT,
            "`{}` does not accept connections",
            command::line(&command)
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(Running { address, server })
}

/// A port that nobody had a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
