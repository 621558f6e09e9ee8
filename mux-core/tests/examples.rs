//! The examples do what they say: an example that does not run is worse than none.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../examples/calloop_loop.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod calloop_loop;
#[path = "../examples/echo.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod echo;
#[path = "../examples/poll_loop.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod poll_loop;
#[path = "../examples/relay.rs"]
#[expect(dead_code, reason = "its main is for the command line")]
mod relay;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use echo::{Counters, Server};
use relay::{Relay, Route};

/// Long enough for any machine, and never waited for where things are as they should be.
const LONG: Duration = Duration::from_secs(60);

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Runs an echo server in a thread until it has seen `until`.
fn serve(
    patience: Duration,
    until: impl Fn(&Counters) -> bool + Send + 'static,
) -> (SocketAddr, std::thread::JoinHandle<Counters>) {
    let listener = mio::net::TcpListener::bind(any()).unwrap();
    let at = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut server = Server::new(listener, patience, Duration::from_millis(10)).unwrap();
        while !until(&server.counters) {
            assert!(server.turn().unwrap());
        }
        server.counters
    });
    (at, thread)
}

#[test]
fn the_echo_server_echoes_reports_and_hangs_up_on_the_silent() {
    let until = |seen: &Counters| seen.finished == 1 && seen.silent == 1 && seen.reports >= 3;
    let (at, server) = serve(Duration::from_secs(1), until);
    let mut silent = TcpStream::connect(at).unwrap();
    let mut client = TcpStream::connect(at).unwrap();
    let sent = vec![b'e'; 1_000_000];
    let sending = {
        let (mut client, sent) = (client.try_clone().unwrap(), sent.clone());
        std::thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        })
    };
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    sending.join().unwrap();
    assert!(heard == sent);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "hung up on");
    let counters = server.join().unwrap();
    assert_eq!(counters.connected, 2);
}

#[test]
fn the_loop_runs_inside_a_plain_poll_loop() {
    let (at, server) = serve(LONG, |seen| seen.finished == 1);
    let (own, mut feeder) = std::io::pipe().unwrap();
    let feeding = std::thread::spawn(move || feeder.write_all(b"something of its own").unwrap());
    let got = poll_loop::fetch(at, b"from a foreign loop", own).unwrap();
    assert_eq!(got.reply, b"from a foreign loop");
    assert_eq!(got.own, b"something of its own");
    feeding.join().unwrap();
    server.join().unwrap();
}

#[test]
fn the_loop_runs_inside_the_loop_of_another_library() {
    let (at, server) = serve(LONG, |seen| seen.finished == 1);
    let seen = calloop_loop::fetch(at, b"from a foreign loop", 3).unwrap();
    assert_eq!(seen.reply, b"from a foreign loop");
    assert!(seen.ticks >= 3);
    server.join().unwrap();
}

/// An echo server with a relay before it, and a socket to it.
struct Distant {
    client: TcpStream,
    connected: Instant,
    relay: std::thread::JoinHandle<()>,
    stop: std::io::PipeWriter,
}

fn distant(to: SocketAddr, rtt: Duration) -> Distant {
    let (mut relay, at) = Relay::open(vec![Route {
        listen: any(),
        to,
        rtt,
    }])
    .unwrap();
    let (until, stop) = std::io::pipe().unwrap();
    let relay = std::thread::spawn(move || relay.run(until).unwrap());
    let connected = Instant::now();
    let client = TcpStream::connect(at[0]).unwrap();
    client.set_nodelay(true).unwrap();
    Distant {
        client,
        connected,
        relay,
        stop,
    }
}

#[test]
fn the_relay_charges_every_round_trip_and_the_handshake() {
    let rtt = Duration::from_millis(40);
    let (at, server) = serve(LONG, |seen| seen.finished == 1);
    let Distant {
        mut client,
        connected,
        relay,
        stop,
    } = distant(at, rtt);
    let mut ask = || {
        let mut byte = [0];
        client.write_all(b"x").unwrap();
        client.read_exact(&mut byte).unwrap();
        connected.elapsed()
    };
    // The client's first byte was sent at one round trip after the SYN at the earliest.
    let mut before = ask();
    assert!(before >= 2 * rtt, "{before:?}");
    for _ in 0..5 {
        let now = ask();
        assert!(now - before >= rtt, "{:?}", now - before);
        before = now;
    }
    // An end takes as long as a byte.
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert!(connected.elapsed() - before >= rtt);
    server.join().unwrap();
    drop(stop);
    relay.join().unwrap();
}

#[test]
fn the_relay_keeps_order_and_loses_nothing_at_any_bandwidth() {
    let (at, server) = serve(LONG, |seen| seen.finished == 1);
    let Distant {
        mut client,
        relay,
        stop,
        ..
    } = distant(at, Duration::from_millis(4));
    let sent: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_be_bytes).collect();
    let sending = {
        let (mut client, sent) = (client.try_clone().unwrap(), sent.clone());
        std::thread::spawn(move || {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        })
    };
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert!(heard == sent);
    sending.join().unwrap();
    server.join().unwrap();
    drop(stop);
    relay.join().unwrap();
}

#[test]
fn the_relay_hangs_up_when_the_server_is_not_there() {
    let nobody = std::net::TcpListener::bind(any()).unwrap().local_addr().unwrap();
    let Distant {
        mut client,
        relay,
        stop,
        ..
    } = distant(nobody, Duration::from_millis(2));
    // An end or a reset: either way it is over.
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    drop(stop);
    relay.join().unwrap();
}
