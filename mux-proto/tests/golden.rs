//! The golden frames of `golden/*.hex`: bytes that every implementation has to write and to understand. What follows a
//! `#` is for people.

use std::fs;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use mux_proto::body::{Command, Exec, Exit, Goodbye, GoodbyeCode, Hello, Log, Open, Reset, ResetCode, Route};
use mux_proto::frame::{FLAG_STDERR, Frame, Header, Kind, NodeId};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn golden(name: &str) -> Vec<u8> {
    let path = folder().join(name).with_extension("hex");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| format!("# {error}"));
    let digits = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    digits
        .map(|digits| u8::from_str_radix(digits, 16).expect("two digits"))
        .collect()
}

fn link(kind: Kind, body: Bytes) -> Frame {
    Frame::new(Header::link(kind, 0), body)
}

/// To the neighbour.
fn near(kind: Kind, channel: u32, body: Bytes) -> Frame {
    let header = Header {
        channel,
        ..Header::link(kind, 0)
    };
    Frame::new(header, body)
}

/// Between two nodes, on channel 2.
fn far(kind: Kind, source: u32, destination: u32, flags: u8, body: Bytes) -> Frame {
    let header = Header {
        flags,
        channel: 2,
        source: NodeId(source),
        destination: NodeId(destination),
        ..Header::link(kind, 0)
    };
    Frame::new(header, body)
}

fn exec(exec: &Exec) -> Bytes {
    let open = Open {
        kind: Exec::KIND.to_owned(),
        arguments: exec.encode(),
    };
    open.encode().expect("it is well-formed")
}

fn shell() -> Bytes {
    exec(&Exec {
        command: Command::Shell(Bytes::from_static(b"wc -c")),
        env: Vec::new(),
        cwd: None,
        stdin: true,
    })
}

fn argv() -> Bytes {
    exec(&Exec {
        command: Command::Argv(vec![Bytes::from_static(b"ls"), Bytes::from_static(b"\xff")]),
        env: vec![(Bytes::from_static(b"LC_ALL"), Bytes::from_static(b"C"))],
        cwd: Some(Bytes::from_static(b"/tmp")),
        stdin: false,
    })
}

fn hello(software: &str, platform: &str, is_above: bool, channels: u32, names: Option<(u32, u32)>) -> Frame {
    let hello = Hello {
        software: software.to_owned(),
        platform: platform.to_owned(),
        is_above,
        channels,
        node: names.map(|names| NodeId(names.0)),
        peer: names.map(|names| NodeId(names.1)),
    };
    assert_eq!(Hello::decode(&hello.encode()), Ok(hello.clone()));
    link(Kind::Hello, hello.encode())
}

fn notes() -> Vec<(&'static str, Frame)> {
    let route = Route {
        added: vec![NodeId(18), NodeId(70_000)],
        lost: vec![NodeId(5)],
        reason: "sudo: exit status 1".to_owned(),
    };
    let log = Log {
        severity: 4,
        text: "disk is full".to_owned(),
    };
    let goodbye = Goodbye {
        code: GoodbyeCode::Restart,
        text: "mux 0.2.0 takes over".to_owned(),
    };
    vec![
        ("hello-client", hello("muxclient 1", "", true, 0, None)),
        (
            "hello-hub",
            hello("mux 0.1.0", "Linux x86_64", false, 1024, Some((1, 17))),
        ),
        (
            "ping",
            link(Kind::Ping, Bytes::from_static(b"\0\0\0\0\0\0\0\x01")),
        ),
        (
            "pong",
            link(Kind::Pong, Bytes::from_static(b"\0\0\0\0\0\0\0\x01")),
        ),
        ("route", link(Kind::Route, route.encode())),
        ("log", link(Kind::Log, log.encode())),
        ("goodbye", link(Kind::Goodbye, goodbye.encode())),
    ]
}

fn channels() -> Vec<(&'static str, Frame)> {
    let killed = Exit::Signal("KILL".to_owned()).encode();
    let unknown = Reset::new(ResetCode::UnknownChannel).encode();
    let credit = Bytes::copy_from_slice(&32_768_u32.to_be_bytes());
    vec![
        ("open-exec-shell", near(Kind::Open, 1, shell())),
        ("open-exec-argv", far(Kind::Open, 1, 18, 0, argv())),
        ("data", near(Kind::Data, 1, Bytes::from_static(b"hello"))),
        (
            "data-stderr",
            far(Kind::Data, 18, 1, FLAG_STDERR, Bytes::from_static(b"oops\n")),
        ),
        ("credit", near(Kind::Credit, 1, credit)),
        ("finish", near(Kind::Finish, 1, Bytes::new())),
        ("result-status", near(Kind::Result, 1, Exit::Status(3).encode())),
        ("result-signal", far(Kind::Result, 18, 1, 0, killed)),
        ("reset", near(Kind::Reset, 9, unknown)),
    ]
}

#[test]
fn what_is_written_is_the_golden_frame_and_it_is_understood() {
    for (name, frame) in notes().into_iter().chain(channels()) {
        let mut wire = frame.header.encode().to_vec();
        wire.extend_from_slice(&frame.body);
        assert_eq!(wire, golden(name), "{name}");
        let mut input = BytesMut::from(&wire[..]);
        assert_eq!(Frame::take(&mut input), Ok(Some(frame)), "{name}");
    }
}

#[test]
fn no_golden_frame_is_left_out() {
    let mut files: Vec<String> = fs::read_dir(folder())
        .expect("the folder is part of the crate")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hex"))
        .map(|path| {
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort();
    let mut known: Vec<&str> = notes().iter().chain(&channels()).map(|row| row.0).collect();
    known.sort_unstable();
    assert_eq!(files, known);
}
