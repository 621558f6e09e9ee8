//! The examples do what they say: an example that does not run is worse than none.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/exec.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod exec;
#[path = "../examples/handshakes.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod handshakes;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Protocol, SendQueue};
use mux_ssh::algorithms::{Kex, KeyType};
use mux_ssh::server::{Authorized, Event, Plan, Server, ServerConfig};
use mux_ssh::transport::HostKey;

/// One more than the user keys, the host keys, the ciphers and the MACs that take turns.
const SESSIONS: usize = 9;

#[test]
fn sessions_of_every_kind_succeed() {
    handshakes::run(SESSIONS, Kex::ALL).unwrap();
}

#[test]
fn a_command_runs_on_a_host_whose_key_is_the_named_one() {
    assert_eq!(
        run(true).unwrap(),
        (ExitCode::from(7), b"uptime: done\n".to_vec())
    );
}

#[test]
fn nothing_runs_on_a_host_whose_key_is_another_one() {
    let error = run(false).unwrap_err();
    assert!(error.contains("host key"), "{error}");
}

/// The example against one server: its exit status and what it printed, or why it failed.
fn run(is_expected: bool) -> Result<(ExitCode, Vec<u8>), String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&file)
        .status();
    assert!(made.unwrap().success(), "ssh-keygen comes with openssh-client");
    let key = HostKey::generate(KeyType::Ed25519).unwrap();
    let fingerprint = match is_expected {
        true => key.public().fingerprint_sha256(),
        false => "SHA256:another".to_owned(),
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0, key));
    let file = file.to_str().unwrap().to_owned();
    let arguments = [address, "root".to_owned(), file, fingerprint, "uptime".to_owned()];
    let mut printed = Vec::new();
    let result = exec::run(&arguments, &mut printed);
    server.join().unwrap();
    match result {
        Ok(status) => Ok((status, printed)),
        Err(error) => Err(error.to_string()),
    }
}

/// Answers one command on one connection, which ends when the client leaves.
fn serve(mut stream: TcpStream, key: HostKey) {
    let config = ServerConfig::new(key, Authorized::AnyKey);
    let mut server = Server::new(Arc::new(config), Plan::new());
    let (mut input, mut out) = (BytesMut::new(), SendQueue::new());
    let mut buffer = [0; 4096];
    loop {
        server.poll_transmit(Instant::now(), &mut out);
        while !out.is_empty() {
            // A client that has left does not want it any more.
            let _ = stream.write_all(&out.take(usize::MAX));
            server.poll_transmit(Instant::now(), &mut out);
        }
        let count = stream.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            return;
        }
        input.extend_from_slice(buffer.get(..count).unwrap());
        if server.handle_input(Instant::now(), &mut input).is_err() {
            return;
        }
        while let Some(event) = server.poll_event() {
            if let Event::Exec { session, command } = event {
                server.reply(session, Bytes::from([&command[..], b": done\n"].concat()), 7);
            }
        }
    }
}
