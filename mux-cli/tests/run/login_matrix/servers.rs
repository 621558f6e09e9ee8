//! The servers of the matrix, each told to want what a case wants, and what each has written down about who came.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Outcome, Proof};
use crate::passwords::{Dropbear, dropbear};
use crate::rig::Rig;

/// Whose server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Software {
    OpenSsh,
    Dropbear,
    AsyncSsh,
}

impl Software {
    /// What it sees of us where it sees `expected` of `ssh`. dropbear hangs up over a command that stands behind a proof
    /// which is right and not enough: it is given that proof again.
    pub(super) fn sees(self, expected: &[String], proof: Proof) -> Vec<String> {
        let hangs_up = self == Self::Dropbear && proof == Proof::KeyAndPassword;
        let again = expected.iter().take(usize::from(hangs_up));
        again.chain(expected).cloned().collect()
    }
}

/// One that runs.
pub(super) struct Server {
    software: Software,
    pub(super) port: u16,
    log: PathBuf,
    _running: Running,
}

enum Running {
    /// The rig's own.
    Rig,
    Dropbear {
        _server: Dropbear,
    },
    Process {
        _process: Process,
    },
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Beside the rig's sshd or in its place; keys are in `authorized_keys` by now.
    pub(super) fn new(software: Software, rig: &Rig, proof: Proof, outcome: Outcome) -> Self {
        match software {
            Software::OpenSsh => Self {
                software,
                port: rig.port,
                log: rig.path("sshd_log"),
                _running: Running::Rig,
            },
            Software::Dropbear => {
                let ssh = rig.path("deploy/.ssh");
                fs::create_dir_all(&ssh).unwrap();
                fs::copy(rig.path("authorized_keys"), ssh.join("authorized_keys")).unwrap();
                let server = dropbear(rig, options_of_dropbear(proof, outcome));
                Self {
                    software,
                    port: server.1,
                    log: rig.path("dropbear_log"),
                    _running: Running::Dropbear { _server: server },
                }
            }
            Software::AsyncSsh => {
                let (process, port) = asyncssh(rig, methods_of_asyncssh(proof, outcome));
                Self {
                    software,
                    port,
                    log: rig.path("asyncssh_log"),
                    _running: Running::Process { _process: process },
                }
            }
        }
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Whether it has said that a connection is over, and so all that it has to say.
    pub(super) fn is_over(&self, log: &str) -> bool {
        let ends: &[&str] = match self.software {
            Software::OpenSsh | Software::AsyncSsh => &["onnection closed", "isconnect"],
            Software::Dropbear => &[" Exit "],
        };
        ends.iter().any(|end| log.contains(end))
    }

    /// What it has decided, in order: word, method, user, key. The question for the methods is no attempt.
    pub(super) fn attempts(&self, log: &str) -> Vec<String> {
        match self.software {
            Software::OpenSsh | Software::AsyncSsh => of_openssh(log),
            Software::Dropbear => of_dropbear(log),
        }
    }
}

fn of_openssh(log: &str) -> Vec<String> {
    let decided = log.lines().filter(|line| {
        let words = ["Accepted ", "Failed ", "Partial "];
        let decides = words.iter().any(|word| line.starts_with(word)) && line.contains(" ssh2");
        decides && !line.starts_with("Failed none ")
    });
    let short = decided.map(|line| {
        let (who, rest) = line.split_once(" from ").unwrap();
        let key = rest.split_once(" ssh2").unwrap().1.trim_end_matches(" [preauth]");
        format!("{who}{key}")
    });
    short.collect()
}

/// It counts no key that it does not know.
fn of_dropbear(log: &str) -> Vec<String> {
    let words = [
        "Pubkey auth succeeded",
        "Password auth succeeded",
        "Bad password attempt",
    ];
    let decided = log.lines().filter_map(|line| {
        let at = words.iter().find_map(|word| line.find(word))?;
        Some(line[at..].split_once(" from ")?.0.to_owned())
    });
    decided.collect()
}

/// What sshd wants.
pub(super) fn methods_of_openssh(proof: Proof, outcome: Outcome) -> &'static str {
    let another = outcome == Outcome::ThenAnother;
    match proof {
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate if another => {
            "AuthenticationMethods publickey password"
        }
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate => {
            "AuthenticationMethods publickey"
        }
        Proof::Questions if another => "AuthenticationMethods keyboard-interactive password",
        Proof::Password if another => "AuthenticationMethods password publickey",
        Proof::Questions => "AuthenticationMethods keyboard-interactive",
        Proof::Password => "AuthenticationMethods password",
        Proof::KeyAndPassword if another => {
            "AuthenticationMethods publickey,password publickey,keyboard-interactive"
        }
        Proof::KeyAndPassword => "AuthenticationMethods publickey,password",
    }
}

/// It has keys and passwords, and a switch for each combination.
fn options_of_dropbear(proof: Proof, outcome: Outcome) -> &'static [&'static str] {
    match proof {
        Proof::Key(..) | Proof::Encrypted | Proof::Agent if outcome != Outcome::ThenAnother => &["-s"],
        Proof::KeyAndPassword => &["-t"],
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Password => &[],
        Proof::Questions | Proof::Certificate => unreachable!("dropbear has no {proof:?}"),
    }
}

/// It wants one proof only, any that it offers.
fn methods_of_asyncssh(proof: Proof, outcome: Outcome) -> &'static str {
    let another = outcome == Outcome::ThenAnother;
    match proof {
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate if another => {
            "publickey,password"
        }
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate => "publickey",
        Proof::Questions if another => "keyboard-interactive,password",
        Proof::Questions => "keyboard-interactive",
        Proof::Password if another => "publickey,password",
        Proof::Password => "password",
        Proof::KeyAndPassword => unreachable!("AsyncSSH wants no two proofs"),
    }
}

/// A process that ends with its standard input, and its port.
fn asyncssh(rig: &Rig, methods: &str) -> (Process, u16) {
    let python = std::env::var_os("MUX_TEST_PYTHON").map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("venv/bin/python"),
        PathBuf::from,
    );
    assert!(
        python.exists(),
        "no {}: cargo xtask test --only setup",
        python.display()
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run/login_matrix/asyncssh_server.py");
    let child = Command::new(python)
        .arg(script)
        .args([
            rig.text("authorized_keys"),
            methods.to_owned(),
            rig.text("host_key"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(rig.path("asyncssh_log")).unwrap())
        .spawn();
    let mut process = Process(child.unwrap());
    let mut line = String::new();
    let stdout = process.0.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let port = line.trim().parse();
    let port = port.unwrap_or_else(|error| {
        let log = fs::read_to_string(rig.path("asyncssh_log")).unwrap();
        unreachable!("{error}; cargo xtask test --only setup installs what it needs: {log}")
    });
    fs::write(
        rig.path("known_hosts"),
        format!("[127.0.0.1]:{port} {}\n", rig.host_key),
    )
    .unwrap();
    (process, port)
}
