//! A real `ssh-agent`: keys, signatures, a bound session. (`apt install openssh-client` provides it.)

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use bytes::BytesMut;
use mux_proto::{Protocol, SendQueue};
use mux_ssh::agent::{AgentClient, AgentEvent, AgentRequest, Keep};
use mux_ssh::algorithms::{KeyType, SignatureAlgorithm};
use mux_ssh::keys::PrivateKey;

/// An agent of its own with an Ed25519 and an RSA key, ended at the end.
struct Agent {
    directory: PathBuf,
    process: Child,
    socket: PathBuf,
}

impl Agent {
    fn start(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("agent-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let socket = directory.join("socket");
        let process = Command::new("ssh-agent")
            .args(["-D", "-a", socket.to_str().unwrap()])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("ssh-agent cannot be run ({error}): apt install openssh-client"));
        while UnixStream::connect(&socket).is_err() {
            std::thread::yield_now();
        }
        let agent = Self {
            directory,
            process,
            socket,
        };
        for kind in ["ed25519", "rsa"] {
            let file = agent.key_file(kind);
            run(
                "ssh-keygen",
                &["-q", "-t", kind, "-N", "", "-C", kind, "-f", &file],
                &agent.socket,
            );
            run("ssh-add", &["-q", &file], &agent.socket);
        }
        agent
    }

    fn key_file(&self, kind: &str) -> String {
        self.directory.join(kind).to_str().unwrap().to_owned()
    }

    fn key(&self, kind: &str) -> PrivateKey {
        PrivateKey::parse(&fs::read(self.key_file(kind)).unwrap(), None).unwrap()
    }

    /// Asks, and waits for as many answers as there were questions.
    fn ask(&self, ask: impl FnOnce(&mut AgentClient)) -> Vec<AgentEvent> {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        let mut client = AgentClient::new();
        ask(&mut client);
        let (now, mut input, mut events) = (Instant::now(), BytesMut::new(), Vec::new());
        while !client.is_idle() {
            let mut out = SendQueue::new();
            client.poll_transmit(now, &mut out);
            stream.write_all(&out.take(usize::MAX)).unwrap();
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "the agent hung up");
            input.extend_from_slice(buffer.get(..count).unwrap());
            client.handle_input(now, &mut input).unwrap();
            events.extend(client.poll_event());
        }
        events
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        fs::remove_dir_all(&self.directory).unwrap();
    }
}

fn run(program: &str, arguments: &[&str], socket: &Path) {
    let status = Command::new(program)
        .args(arguments)
        .env("SSH_AUTH_SOCK", socket)
        .status()
        .unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

#[test]
fn an_agent_lists_its_keys_and_signs_with_each_algorithm_of_theirs() {
    let agent = Agent::start("sign");
    let events = agent.ask(AgentClient::request_identities);
    let [
        AgentEvent::Identities {
            identities,
            skipped: 0,
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}")
    };
    let types: Vec<KeyType> = identities
        .iter()
        .map(|identity| identity.key.key_type())
        .collect();
    assert_eq!(types, [KeyType::Ed25519, KeyType::Rsa]);
    assert_eq!(identities.first().unwrap().comment, "ed25519");
    for identity in identities {
        for &algorithm in identity.key.key_type().signature_algorithms() {
            let events = agent.ask(|client| client.sign(identity.blob(), algorithm, b"data"));
            let [AgentEvent::Signature(signature)] = events.as_slice() else {
                panic!("{events:?}")
            };
            assert_eq!(identity.key.verify(algorithm, b"data", signature), Ok(()));
        }
    }
}

#[test]
fn an_agent_that_is_given_a_key_of_any_type_signs_with_it() {
    let agent = Agent::start("add");
    let types = KeyType::ALL.iter().filter(|key_type| !key_type.is_security_key());
    for (&key_type, seconds) in types.zip([None, Some(600)].into_iter().cycle()) {
        let key = PrivateKey::generate(key_type).unwrap();
        let keep = Keep {
            seconds,
            confirm: false,
        };
        let events = agent.ask(|client| client.add(&key, "given", keep).unwrap());
        assert_eq!(events, [AgentEvent::Added], "{key_type:?}");
        let algorithm = *key_type.signature_algorithms().first().unwrap();
        let events = agent.ask(|client| client.sign(key.public().blob(), algorithm, b"data"));
        let [AgentEvent::Signature(signature)] = events.as_slice() else {
            panic!("{key_type:?}: {events:?}")
        };
        assert_eq!(key.public().verify(algorithm, b"data", signature), Ok(()));
    }
}

#[test]
fn an_agent_refuses_a_key_that_it_does_not_hold() {
    let agent = Agent::start("refuse");
    let stranger = Agent::start("stranger").key("ed25519");
    let algorithm = SignatureAlgorithm::Ed25519;
    let events = agent.ask(|client| client.sign(stranger.public().blob(), algorithm, b"data"));
    assert_eq!(events, [AgentEvent::Refused(AgentRequest::Sign(algorithm))]);
}

#[test]
fn a_session_is_bound_by_the_hosts_signature_over_its_identifier() {
    let agent = Agent::start("bind");
    let host = agent.key("ed25519");
    let signature = host.sign(SignatureAlgorithm::Ed25519, b"session").unwrap();
    let events = agent.ask(|client| client.bind_session(host.public().blob(), b"session", &signature));
    assert_eq!(events, [AgentEvent::Bound]);
    let events = agent.ask(|client| client.bind_session(host.public().blob(), b"other", &signature));
    assert_eq!(events, [AgentEvent::Refused(AgentRequest::BindSession)]);
}
