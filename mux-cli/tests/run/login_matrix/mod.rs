//! Every way to log in, accepted, refused, and refused with another one behind it; with the command sent ahead of the
//! answer and without; on OpenSSH, dropbear and AsyncSSH, as far as each has it. What the server has seen is what it sees
//! of `ssh` with the same configuration: the same attempts in the same order, as the same user, with the same key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod servers;

use self::servers::{Server, Software, methods_of_openssh};
use crate::agents::Agent;
use crate::rig::{Rig, write_key};

/// Longer than the server takes to write down what it has answered.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is to log us in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// A key in a file, of this type and size.
    Key(&'static str, &'static str),
    /// A key under a passphrase.
    Encrypted,
    /// A key that only the agent has.
    Agent,
    /// The certificate beside a key that is not accepted by itself.
    Certificate,
    Questions,
    Password,
    KeyAndPassword,
}

/// What the server makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Refused,
    /// Refused, and another way is open.
    ThenAnother,
}

/// The keys that a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// One: what can sign at once does so, with the command behind it.
    One,
    /// Another one in front of it, which is not accepted: each is asked about first.
    Two,
}

/// One server, one way, one outcome.
struct Case {
    server: Server,
    rig: Rig,
    proof: Proof,
    outcome: Outcome,
    _agent: Option<Agent>,
}

impl Case {
    fn new(software: Software, proof: Proof, outcome: Outcome, keys: Keys) -> Self {
        let methods = match software {
            Software::OpenSsh => methods_of_openssh(proof, outcome),
            Software::Dropbear | Software::AsyncSsh => "",
        };
        let rig = Rig::with_password(&format!(
            "{methods}\nPasswordAuthentication yes\nKbdInteractiveAuthentication yes"
        ));
        let agent = prepare_keys(&rig, proof, outcome);
        answers(&rig, proof, outcome);
        let server = Server::new(software, &rig, proof, outcome);
        let mut config = format!("NumberOfPasswordPrompts 1\nPort {}\n", server.port);
        if keys == Keys::Two {
            config.push_str(&format!("IdentityFile {}\n", rig.text("decoy")));
        }
        if agent.is_some() {
            config.push_str(&format!("IdentityAgent {}\n", rig.text("agent")));
        }
        if (proof, outcome) == (Proof::Password, Outcome::ThenAnother) {
            config.push_str("PreferredAuthentications password,publickey\n");
        }
        rig.configure(&config);
        Self {
            server,
            rig,
            proof,
            outcome,
            _agent: agent,
        }
    }

    /// The command as this program's user would give it.
    fn with(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.arg("-w").arg(program).args(args);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.rig.path("home"))
            .env("XDG_STATE_HOME", self.rig.path("state"))
            .env("SSH_ASKPASS", self.rig.path("ask"))
            .env("SSH_ASKPASS_REQUIRE", "force")
            .stdin(Stdio::null());
        command
    }

    /// Attempts that the server has seen of `ssh`, and whether it let it in.
    fn of_ssh(&self) -> (Vec<String>, bool) {
        let before = self.log().len();
        let config = self.rig.text("config");
        let mut ssh = self.with("ssh", &["-F", &config, "-l", "deploy", "web1", "echo $USER"]);
        let output = ssh.output().expect("no ssh: apt-get install openssh-client");
        let success = output.status.success();
        if success {
            assert_eq!(output.stdout, b"deploy\n");
        }
        // Whatever it has to say is said when its connection is closed.
        let start = Instant::now();
        while !self.server.is_over(&self.log()[before..]) {
            assert!(start.elapsed() < PATIENCE, "{output:?} {}", &self.log()[before..]);
            std::thread::sleep(Duration::from_millis(10));
        }
        (self.server.attempts(&self.log()[before..]), success)
    }

    /// The same of a run, of which everything else is checked.
    fn check(&self, expected: &[String]) {
        let before = self.log().len();
        let run = self
            .rig
            .command(&["-l", "deploy", "-w", "web1", "--", "echo $USER"]);
        let args: Vec<_> = run.get_args().map(|arg| arg.to_str().unwrap()).collect();
        let output = self
            .with(run.get_program().to_str().unwrap(), &args)
            .output()
            .unwrap();
        let ran = self.rig.finish(output);
        let what = format!("{:?} {:?}", self.proof, self.outcome);
        match self.outcome {
            Outcome::Accepted | Outcome::ThenAnother => {
                assert_eq!(
                    (ran.status, ran.stdout.as_str()),
                    (0, "web1: deploy\n"),
                    "{what}: {}",
                    ran.stderr
                );
                assert_eq!(ran.stderr, "", "{what}");
            }
            Outcome::Refused => {
                assert_eq!(
                    (ran.status, ran.stdout.as_str()),
                    (4, ""),
                    "{what}: {}",
                    ran.stderr
                );
                let reason = match self.proof {
                    Proof::Key(..) | Proof::Encrypted => "DIR/id: not accepted",
                    Proof::Certificate => "DIR/id-cert.pub: not accepted",
                    Proof::Agent => "agent key DIR/id (SHA256:",
                    Proof::Questions => "keyboard-interactive: not accepted",
                    Proof::Password | Proof::KeyAndPassword => "password: not accepted",
                };
                assert!(ran.stderr.contains(reason), "{what}: {}", ran.stderr);
            }
        }
        let start = Instant::now();
        while self.server.attempts(&self.log()[before..]) != expected && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let log = self.log();
        assert_eq!(
            self.server.attempts(&log[before..]),
            expected,
            "{what}: {}",
            &log[before..]
        );
    }

    fn log(&self) -> String {
        self.server.log()
    }
}

/// `id` is the key that counts, and `decoy` one that nobody accepts.
fn prepare_keys(rig: &Rig, proof: Proof, outcome: Outcome) -> Option<Agent> {
    let generate = |name: &str, kind: &str, bits: &str| {
        let _ = fs::remove_file(rig.path(name));
        let mut keygen = Command::new("ssh-keygen");
        keygen
            .args(["-q", "-N", "", "-t", kind, "-C"])
            .arg(rig.path(name));
        if !bits.is_empty() {
            keygen.args(["-b", bits]);
        }
        assert!(keygen.arg("-f").arg(rig.path(name)).status().unwrap().success());
    };
    generate("decoy", "ed25519", "");
    match proof {
        Proof::Key(kind, bits) => generate("id", kind, bits),
        Proof::Encrypted
        | Proof::Agent
        | Proof::Certificate
        | Proof::Questions
        | Proof::Password
        | Proof::KeyAndPassword => generate("id", "ed25519", ""),
    }
    let accepted = match proof {
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate => outcome == Outcome::Accepted,
        Proof::KeyAndPassword => true,
        Proof::Password => outcome == Outcome::ThenAnother,
        Proof::Questions => false,
    };
    let authority = write_key(&rig.path("ca"));
    let authorized = match accepted {
        true if proof == Proof::Certificate => format!("cert-authority {authority}\n"),
        true => fs::read_to_string(rig.path("id.pub")).unwrap(),
        false => String::new(),
    };
    fs::write(rig.path("authorized_keys"), authorized).unwrap();
    match proof {
        Proof::Encrypted => {
            crate::keys::lock(rig);
            None
        }
        Proof::Agent => Some(agent(rig)),
        Proof::Certificate => {
            crate::user_certificates::sign(rig, "id", &["-n", "deploy"]);
            None
        }
        Proof::Key(..) | Proof::Questions | Proof::Password | Proof::KeyAndPassword => None,
    }
}

/// An agent with the key, which is in no file any more.
fn agent(rig: &Rig) -> Agent {
    let agent = Agent::start(rig);
    agent.add(&[&rig.text("id")]);
    fs::remove_file(rig.path("id")).unwrap();
    fs::remove_file(rig.path("id.pub")).unwrap();
    agent
}

/// A program that knows the passphrase, and of password and answers those that are right in this case.
fn answers(rig: &Rig, proof: Proof, outcome: Outcome) {
    let right = |right| if right { "secret" } else { "wrong" };
    let password = right(match proof {
        Proof::Password => outcome == Outcome::Accepted,
        Proof::KeyAndPassword => outcome != Outcome::Refused,
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate | Proof::Questions => true,
    });
    let question = right(match proof {
        Proof::Questions => outcome == Outcome::Accepted,
        Proof::KeyAndPassword => false,
        Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate | Proof::Password => true,
    });
    let script = format!(
        "#!/bin/sh\ncase $1 in\n*passphrase*) echo secret;;\n*\"'s password: \") echo {password};;\n\
         *' Password: ') echo {question};;\n*) exit 1;;\nesac\n"
    );
    fs::write(rig.path("ask"), script).unwrap();
    fs::set_permissions(rig.path("ask"), fs::Permissions::from_mode(0o700)).unwrap();
}

fn check(software: Software, proof: Proof, outcome: Outcome) {
    for keys in [Keys::One, Keys::Two] {
        let case = Case::new(software, proof, outcome, keys);
        let (expected, success) = case.of_ssh();
        assert_eq!(
            success,
            outcome != Outcome::Refused,
            "{proof:?} {outcome:?}: {expected:?}"
        );
        case.check(&software.sees(&expected, proof));
        // The second time the key that worked is known, goes first, and takes the command along.
        let is_remembered = match proof {
            Proof::Key(..) | Proof::Encrypted | Proof::Agent | Proof::Certificate => {
                outcome == Outcome::Accepted
            }
            Proof::KeyAndPassword => true,
            Proof::Password => outcome == Outcome::ThenAnother,
            Proof::Questions => false,
        };
        let remembered: Vec<String> = expected
            .iter()
            .filter(|attempt| !is_remembered || !attempt.starts_with("Failed publickey"))
            .cloned()
            .collect();
        case.check(&software.sees(&remembered, proof));
    }
}

/// A test for each server, way and outcome.
macro_rules! matrix {
    ($($server:ident: $software:expr => { $($name:ident: $proof:expr => $($test:ident)+;)+ })+) => {
        $(mod $server {
            $(mod $name {
                use super::super::*;

                $(matrix!(test $test, $software, $proof);)+
            })+
        })+
    };
    (test accepted, $software:expr, $proof:expr) => {
        #[test]
        fn accepted() {
            check($software, $proof, Outcome::Accepted);
        }
    };
    (test refused, $software:expr, $proof:expr) => {
        #[test]
        fn refused() {
            check($software, $proof, Outcome::Refused);
        }
    };
    (test refused_and_then_another_way, $software:expr, $proof:expr) => {
        #[test]
        fn refused_and_then_another_way() {
            check($software, $proof, Outcome::ThenAnother);
        }
    };
}

matrix! {
    openssh: Software::OpenSsh => {
        ed25519: Proof::Key("ed25519", "") => accepted refused refused_and_then_another_way;
        ecdsa_256: Proof::Key("ecdsa", "256") => accepted refused refused_and_then_another_way;
        ecdsa_384: Proof::Key("ecdsa", "384") => accepted refused refused_and_then_another_way;
        ecdsa_521: Proof::Key("ecdsa", "521") => accepted refused refused_and_then_another_way;
        rsa: Proof::Key("rsa", "2048") => accepted refused refused_and_then_another_way;
        encrypted_key: Proof::Encrypted => accepted refused refused_and_then_another_way;
        agent_key: Proof::Agent => accepted refused refused_and_then_another_way;
        certificate: Proof::Certificate => accepted refused refused_and_then_another_way;
        questions: Proof::Questions => accepted refused refused_and_then_another_way;
        password: Proof::Password => accepted refused refused_and_then_another_way;
        key_and_password: Proof::KeyAndPassword => accepted refused refused_and_then_another_way;
    }
    // No certificates and no questions, and after two proofs no third.
    dropbear: Software::Dropbear => {
        ed25519: Proof::Key("ed25519", "") => accepted refused refused_and_then_another_way;
        ecdsa_256: Proof::Key("ecdsa", "256") => accepted refused refused_and_then_another_way;
        ecdsa_384: Proof::Key("ecdsa", "384") => accepted refused refused_and_then_another_way;
        ecdsa_521: Proof::Key("ecdsa", "521") => accepted refused refused_and_then_another_way;
        rsa: Proof::Key("rsa", "2048") => accepted refused refused_and_then_another_way;
        encrypted_key: Proof::Encrypted => accepted refused refused_and_then_another_way;
        agent_key: Proof::Agent => accepted refused refused_and_then_another_way;
        password: Proof::Password => accepted refused refused_and_then_another_way;
        key_and_password: Proof::KeyAndPassword => accepted refused;
    }
    // No two proofs.
    asyncssh: Software::AsyncSsh => {
        ed25519: Proof::Key("ed25519", "") => accepted refused refused_and_then_another_way;
        ecdsa_256: Proof::Key("ecdsa", "256") => accepted refused refused_and_then_another_way;
        ecdsa_384: Proof::Key("ecdsa", "384") => accepted refused refused_and_then_another_way;
        ecdsa_521: Proof::Key("ecdsa", "521") => accepted refused refused_and_then_another_way;
        rsa: Proof::Key("rsa", "2048") => accepted refused refused_and_then_another_way;
        encrypted_key: Proof::Encrypted => accepted refused refused_and_then_another_way;
        agent_key: Proof::Agent => accepted refused refused_and_then_another_way;
        certificate: Proof::Certificate => accepted refused refused_and_then_another_way;
        questions: Proof::Questions => accepted refused refused_and_then_another_way;
        password: Proof::Password => accepted refused refused_and_then_another_way;
    }
}

#[test]
fn a_remembered_key_that_is_accepted_no_more_costs_one_attempt_and_leaves_the_others() {
    let mut case = Case::new(
        Software::OpenSsh,
        Proof::Key("ed25519", ""),
        Outcome::Accepted,
        Keys::Two,
    );
    case.check(&case.of_ssh().0);
    let decoy = fs::read_to_string(case.rig.path("decoy.pub")).unwrap();
    fs::write(case.rig.path("authorized_keys"), decoy).unwrap();
    let (mut expected, success) = case.of_ssh();
    assert!(success);
    let refused = Command::new("ssh-keygen")
        .args(["-l", "-f", &case.rig.text("id.pub")])
        .output()
        .unwrap();
    let refused = String::from_utf8(refused.stdout).unwrap();
    let print = refused.split(' ').nth(1).unwrap();
    expected.insert(0, format!("Failed publickey for deploy: ED25519 {print}"));
    case.check(&expected);
    // It is forgotten, and the other one remembered.
    expected.remove(0);
    case.outcome = Outcome::Accepted;
    case.check(&expected);
}
