//! Whole sessions, one after the other, until a secret, a signature or a key that begins with zeros would have shown
//! itself: one in 256 does, and both sides must write it alike.
//!
//! ```text
//! cargo run --release -p mux-ssh --features server --example handshakes -- [COUNT [KEX…]]
//! ```
//!
//! Each session is a key exchange, a login, new keys and a command, in memory; host key, user key, cipher and MAC change
//! from one to the next. The first session that fails is named and ends the run.
#![expect(
    clippy::print_stdout,
    clippy::wildcard_enum_match_arm,
    reason = "an example reports what it does, and looks at some events of many"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::{Protocol, SendQueue};
use mux_ssh::algorithms::{Cipher, Kex, KeyType, Mac};
use mux_ssh::client::{Client, ClientConfig, Event, Exec, Identity};
use mux_ssh::keys::PrivateKey;
use mux_ssh::server::{self, Authorized, Plan, Server, ServerConfig};
use mux_ssh::transport::HostKey;

/// Enough that a fault of one in 256 escapes one time in 300 million.
const DEFAULT_COUNT: usize = 5000;
const ANSWER: &[u8] = b"done\n";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments
        .next()
        .map_or(Ok(DEFAULT_COUNT), |count| count.parse())?;
    let named = arguments
        .map(|name| Kex::from_name(&name).ok_or_else(|| format!("{name}: no such key exchange")))
        .collect::<Result<Vec<_>, _>>()?;
    run(count, if named.is_empty() { Kex::ALL } else { &named })
}

/// `count` sessions with each of `kexes`.
pub(crate) fn run(count: usize, kexes: &[Kex]) -> Result<(), Box<dyn Error>> {
    // The private half of a security key is in no file: nothing here could sign with it.
    let types = || KeyType::ALL.iter().filter(|key_type| !key_type.is_security_key());
    let servers = types()
        .map(|&key_type| {
            Ok(ServerConfig::new(
                HostKey::generate(key_type)?,
                Authorized::AnyKey,
            ))
        })
        .collect::<Result<Vec<_>, mux_ssh::Error>>()?;
    let servers: Vec<_> = servers.into_iter().map(Arc::new).collect();
    let users = types()
        .map(|&key_type| PrivateKey::generate(key_type))
        .collect::<Result<Vec<_>, _>>()?;
    for &kex in kexes {
        let start = Instant::now();
        // Lists of lengths without a common factor, but for one: every pair comes up.
        let ciphers = Cipher::ALL.iter().cycle();
        let macs = Mac::ALL.iter().cycle();
        let hosts = servers.iter().cycle();
        let users = users.iter().cycle().skip(1);
        let sessions = hosts.zip(users).zip(ciphers.zip(macs)).enumerate();
        for (number, ((host, user), (&cipher, &mac))) in sessions.take(count) {
            let mut config = ClientConfig::default();
            config.algorithms.kex = vec![kex];
            config.algorithms.ciphers = vec![cipher];
            config.algorithms.macs = vec![mac];
            session(config, user, Arc::clone(host)).map_err(|error| {
                let host = host.host_keys.first().map(|key| key.public().algorithm());
                format!("session {number} with {kex:?}, {host:?}, {cipher:?}, {mac:?}: {error}")
            })?;
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("{:38} {count} sessions in {seconds:.1} s", kex.name());
    }
    Ok(())
}

/// One session from the first byte to the command's end.
fn session(
    mut config: ClientConfig,
    user: &PrivateKey,
    host: Arc<ServerConfig>,
) -> Result<(), Box<dyn Error>> {
    config.user = "root".to_owned();
    config.identities = vec![Identity {
        key: user.public().clone(),
        certificate: None,
        proven: true,
        hardware: false,
    }];
    let now = Instant::now();
    let (mut client, mut server) = (Client::new(config), Server::new(host, Plan::new()));
    let exec = || Exec {
        command: "true".into(),
        ..Exec::default()
    };
    client.exec(now, exec());
    let (mut to_server, mut to_client) = (BytesMut::new(), BytesMut::new());
    let (mut output, mut ended) = (BytesMut::new(), 0);
    while ended < 2 {
        let mut moved = carry(&mut client, now, &mut to_server);
        server.handle_input(now, &mut to_server)?;
        while let Some(event) = server.poll_event() {
            if let server::Event::Exec { session, .. } = event {
                server.reply(session, Bytes::from_static(ANSWER), 0);
            }
        }
        moved |= carry(&mut server, now, &mut to_client);
        client.handle_input(now, &mut to_client)?;
        while let Some(event) = client.poll_event() {
            moved = true;
            if matches!(event, Event::ChannelClosed { .. }) {
                ended += 1;
                // The second command goes under new keys.
                server.start_rekey(now);
                client.exec(now, exec());
            } else {
                answer(&mut client, event, user, &mut output);
            }
        }
        if !moved {
            return Err("it stands still".into());
        }
    }
    if output == [ANSWER, ANSWER].concat() {
        Ok(())
    } else {
        Err(format!("the answers were {output:?}").into())
    }
}

/// What a client asks is answered, what it has read is kept.
fn answer(client: &mut Client, event: Event, user: &PrivateKey, output: &mut BytesMut) {
    match event {
        Event::HostKey { id, .. } => client.answer_host_key(id, true),
        Event::Sign {
            id, algorithm, data, ..
        } => client.answer_signature(id, user.sign(algorithm, &data).ok()),
        Event::Output {
            channel,
            stream,
            data,
        } => {
            output.extend_from_slice(&data);
            client.consume(channel, stream, data.len());
        }
        _ => {}
    }
}

/// Takes what a side has to send. Whether there was something.
fn carry<P: Protocol>(side: &mut P, now: Instant, to: &mut BytesMut) -> bool {
    let before = to.len();
    let mut queue = SendQueue::new();
    loop {
        side.poll_transmit(now, &mut queue);
        if queue.is_empty() {
            return to.len() > before;
        }
        to.extend_from_slice(&queue.take(usize::MAX));
    }
}
