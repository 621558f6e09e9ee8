//! Clients that say nothing, nonsense or too much, and clients that stop listening: none of them costs another one
//! anything.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;
use crate::rig::wait_for;

/// A client that says these bytes; what it hears until the daemon hangs up, if that is so.
fn hears(home: &Home, said: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The daemon may have hung up before the last of them.
    let _ = stream.write_all(said);
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return heard,
            Ok(count) => heard.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return heard,
            Err(error) => panic!("{error}: the daemon does not hang up"),
        }
    }
}

/// The greeting of a client, as the golden frame has it.
fn hello() -> Vec<u8> {
    let text = include_str!("../../../mux-proto/golden/hello-client.hex");
    let digits = text.lines().map(|line| line.split('#').next().unwrap());
    let digits: Vec<u8> = digits
        .flat_map(str::bytes)
        .filter(u8::is_ascii_hexdigit)
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn silent_clients_cost_nobody_anything() {
    let home = Home::with_daemon();
    let silent: Vec<UnixStream> = (0..500)
        .map(|_| UnixStream::connect(home.socket()).unwrap())
        .collect();
    let half: Vec<UnixStream> = (0..50)
        .map(|_| {
            let mut stream = UnixStream::connect(home.socket()).unwrap();
            stream.write_all(&hello()[..11]).unwrap();
            stream
        })
        .collect();
    assert_eq!(home.connection(&[]), home.connection(&[]));
    drop((silent, half));
}

#[test]
fn what_is_no_frame_ends_that_client_and_no_other() {
    let home = Home::with_daemon();
    let greeted = hello();
    let with = |more: &[u8]| [&*greeted, more].concat();
    let mut oversize = greeted.clone();
    oversize[4..8].copy_from_slice(&[0x11, 0, 0xff, 0xff]);
    for (what, bytes) in [
        ("text", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("wrong magic behind a greeting", with(&[0; 64])),
        ("too long a body", with(&oversize)),
        ("a second greeting", with(&greeted)),
        ("another version", vec![0xf5, 0x6d, 0x78, 0x02, 0, 0, 0, 0]),
    ] {
        let heard = hears(&home, &bytes);
        assert!(heard.len() < 4096, "{what}: {} bytes", heard.len());
        home.status();
    }
    home.connection(&[]);
}

#[test]
fn random_bytes_end_that_client_and_no_other() {
    let home = Home::with_daemon();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    for round in 0..200 {
        let mut bytes: Vec<u8> = (0..64).flat_map(|_| next()).collect();
        if round % 2 == 0 {
            // Behind a greeting and the head of a frame that opens a channel.
            let head = [
                0xf5, 0x6d, 0x78, 0x01, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
            ];
            bytes.splice(0..0, [&*hello(), &head].concat());
        }
        let mut stream = UnixStream::connect(home.socket()).unwrap();
        let _ = stream.write_all(&bytes);
    }
    home.connection(&[]);
    wait_for("them to be forgotten", || home.status()["clients"] == 0);
}

#[test]
fn messages_that_nobody_understands_end_that_run() {
    let home = Home::with_daemon();
    let frame = |kind: u8, body: &[u8]| {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        let head = [
            0xf5, 0x6d, 0x78, 0x01, kind, 0, len[0], len[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
        ];
        [&head, body].concat()
    };
    // {"kind": "hub/1", "arguments": [1, 1, false]}
    let open = [
        &[0xa2, 0x64][..],
        b"kind",
        &[0x65],
        b"hub/1",
        &[0x69],
        b"arguments",
        &[0x83, 0x01, 0x01, 0xf4],
    ]
    .concat();
    for nonsense in [
        &[0xff, 0xff, 0xff, 0xff, 0][..],
        &[0, 0, 0, 1, 0xff],
        // An order before what all have in common, and a number that no message has.
        &[0, 0, 0, 2, 0x81, 0x18],
        &[0, 0, 0, 3, 0x81, 0x18, 0x63],
    ] {
        let mut stream = UnixStream::connect(home.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let said = [hello(), frame(0x10, &open), frame(0x11, nonsense)].concat();
        stream.write_all(&said).unwrap();
        let mut heard = Vec::new();
        let mut piece = [0; 4096];
        // A reset: kind 0x15.
        while !heard
            .windows(5)
            .any(|bytes| bytes == [0xf5, 0x6d, 0x78, 0x01, 0x15])
        {
            let count = stream.read(&mut piece).unwrap();
            assert_ne!(count, 0, "{nonsense:?}: hung up after {heard:?}");
            heard.extend_from_slice(&piece[..count]);
        }
    }
    home.connection(&[]);
}

#[test]
fn a_client_that_stops_reading_is_held_up_alone_and_costs_its_windows() {
    let home = Home::with_daemon();
    home.connection(&[]);
    let before = home.resident();
    let mut run = home
        .command(&["-N", "-w", "host", "yes | head -c 400000000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = run.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100_000]).unwrap();
    let pid = Pid::from_child(&run);
    kill_process(pid, Signal::STOP).unwrap();
    // The daemon takes what fits into the windows, and no more.
    let received = || {
        let status = home.status();
        let lines = status["connections"].as_array().unwrap();
        lines
            .iter()
            .map(|line| line["bytes_received"].as_u64().unwrap())
            .sum::<u64>()
    };
    wait_for("the transfer to stand still", || {
        let then = received();
        std::thread::sleep(Duration::from_secs(1));
        received() == then
    });
    let grown = home.resident().saturating_sub(before);
    assert!(grown <= 32, "{grown} MiB more for a client that does not read");
    home.connection(&["-l", "root"]);
    kill_process(pid, Signal::CONT).unwrap();
    let rest = std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
    assert_eq!(rest, 400_000_000 - 100_000);
    assert!(run.wait().unwrap().success());
    assert!(home.resident() <= before + 32);
}
