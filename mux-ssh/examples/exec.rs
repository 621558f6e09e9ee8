//! Runs one command on one host, over a plain blocking socket: all that a [`Client`] needs from its surroundings.
//!
//! ```text
//! cargo run -p mux-ssh --example exec -- HOST:PORT USER KEYFILE HOST-KEY-FINGERPRINT COMMAND
//! ```
//!
//! The fingerprint is what `ssh-keygen -lf` prints: `SHA256:…`. Exits with the command's exit status.
#![expect(
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "an example reports whatever it does not act on"
)]

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use mux_proto::{Protocol, SendQueue};
use mux_ssh::client::{Client, ClientConfig, Event, Exec, Identity, StreamKind};
use mux_ssh::keys::PrivateKey;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments, &mut std::io::stdout())
}

/// Everything but the command line; the command's standard output goes to `stdout`.
pub(crate) fn run(arguments: &[String], stdout: &mut impl Write) -> Result<ExitCode, Box<dyn Error>> {
    let [address, user, key_file, fingerprint, command] = arguments else {
        return Err("usage: exec HOST:PORT USER KEYFILE HOST-KEY-FINGERPRINT COMMAND".into());
    };
    let key = PrivateKey::parse(&std::fs::read(key_file)?, None)?;
    // The only key there is: it may be used at once, which saves a round trip.
    let identity = Identity {
        key: key.public().clone(),
        certificate: None,
        proven: true,
        hardware: false,
    };
    let mut client = Client::new(ClientConfig {
        user: user.clone(),
        identities: vec![identity],
        ..ClientConfig::default()
    });
    // Asked for before anything is connected: it leaves as early as the server allows.
    client.exec(
        Instant::now(),
        Exec {
            command: command.clone().into(),
            ..Exec::default()
        },
    );

    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut input = BytesMut::new();
    let mut owner = Owner {
        key,
        fingerprint: fingerprint.clone(),
        status: ExitCode::from(255),
    };
    loop {
        while let Some(event) = client.poll_event() {
            owner.handle(event, &mut client, stdout)?;
        }
        transmit(&mut client, &mut stream)?;
        if client.poll_close().is_some() {
            return Ok(owner.status);
        }
        receive(&mut client, &mut stream, &mut input)?;
    }
}

/// What the client leaves to others: keys, trust, and what becomes of the output.
struct Owner {
    key: PrivateKey,
    fingerprint: String,
    status: ExitCode,
}

impl Owner {
    fn handle(&mut self, event: Event, client: &mut Client, stdout: &mut impl Write) -> std::io::Result<()> {
        match event {
            Event::HostKey { id, key, .. } => {
                client.answer_host_key(id, key.fingerprint_sha256() == self.fingerprint);
            }
            Event::Sign {
                id, algorithm, data, ..
            } => {
                client.answer_signature(id, self.key.sign(algorithm, &data).ok());
            }
            Event::Output {
                channel,
                stream,
                data,
            } => {
                match stream {
                    StreamKind::Stdout => stdout.write_all(&data)?,
                    StreamKind::Stderr => std::io::stderr().write_all(&data)?,
                }
                client.consume(channel, stream, data.len());
            }
            Event::ExitStatus { status, .. } => self.status = ExitCode::from(status.to_le_bytes()[0]),
            // The command is over: 11 is SSH_DISCONNECT_BY_APPLICATION (RFC 4253 §11.1).
            Event::ChannelClosed { .. } => client.disconnect(11, "done"),
            other => eprintln!("{other:?}"),
        }
        Ok(())
    }
}

/// Writes all that the client wants to send.
fn transmit(client: &mut Client, stream: &mut TcpStream) -> std::io::Result<()> {
    let mut out = SendQueue::new();
    loop {
        client.poll_transmit(Instant::now(), &mut out);
        if out.is_empty() {
            return Ok(());
        }
        while !out.is_empty() {
            stream.write_all(&out.take(usize::MAX))?;
        }
    }
}

/// Waits for something to read or for the client's next deadline.
fn receive(client: &mut Client, stream: &mut TcpStream, input: &mut BytesMut) -> Result<(), Box<dyn Error>> {
    let wait = client
        .poll_timeout()
        .map(|due| due.saturating_duration_since(Instant::now()));
    stream.set_read_timeout(wait.map(|wait| wait.max(Duration::from_millis(1))))?;
    let mut buffer = vec![0; 64 * 1024];
    let count = match stream.read(&mut buffer) {
        Ok(count) => count,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Ok(client.handle_timeout(Instant::now())?);
        }
        Err(error) => return Err(error.into()),
    };
    if count == 0 {
        return Ok(client.handle_eof(Instant::now())?);
    }
    buffer.truncate(count);
    input.extend_from_slice(&buffer);
    // Until nothing more is taken, or the client wants an answer first.
    while client.wants_input() {
        let before = input.len();
        client.handle_input(Instant::now(), input)?;
        if input.len() == before {
            break;
        }
    }
    Ok(())
}
