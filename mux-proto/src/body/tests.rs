//! Every body there and back, and what is no body.

use super::*;
use crate::frame::MAX_NOTE;

fn nodes(numbers: &[u32]) -> Vec<NodeId> {
    numbers.iter().copied().map(NodeId).collect()
}

fn hello() -> Hello {
    Hello {
        software: "mux 0.1.0".to_owned(),
        platform: "Linux x86_64".to_owned(),
        is_above: false,
        channels: 1024,
        node: Some(NodeId(1)),
        peer: None,
    }
}

#[test]
fn every_body_goes_there_and_back() {
    let hello = hello();
    assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    let route = Route {
        added: nodes(&[2, u32::MAX]),
        lost: nodes(&[7]),
        reason: "sudo: exit status 1".to_owned(),
    };
    assert_eq!(Route::decode(&route.encode()), Ok(route));
    let log = Log {
        severity: 4,
        text: "disk is full".to_owned(),
    };
    assert_eq!(Log::decode(&log.encode()), Ok(log));
    for code in GoodbyeCode::ALL {
        let goodbye = Goodbye {
            code: *code,
            text: code.to_string(),
        };
        assert_eq!(Goodbye::decode(&goodbye.encode()), Ok(goodbye));
    }
    for code in ResetCode::ALL {
        let reset = Reset {
            code: *code,
            text: code.to_string(),
        };
        assert_eq!(Reset::decode(&reset.encode()), Ok(reset));
    }
    let open = Open {
        kind: "exec".to_owned(),
        arguments: hello_arguments(),
    };
    let body = open.encode().expect("it is well-formed");
    assert_eq!(Open::decode(&body), Ok(open));
}

fn hello_arguments() -> Bytes {
    exec(Command::Shell(Bytes::from_static(b"id"))).encode()
}

fn exec(command: Command) -> Exec {
    Exec {
        command,
        env: vec![(Bytes::from_static(b"LANG"), Bytes::from_static(b"\xff"))],
        cwd: Some(Bytes::from_static(b"/tmp")),
        stdin: true,
    }
}

#[test]
fn commands_and_exits_go_there_and_back() {
    let words = vec![Bytes::from_static(b"ls"), Bytes::from_static(b"\xff")];
    for command in [Command::Shell(Bytes::from_static(b"a | b")), Command::Argv(words)] {
        let exec = exec(command);
        assert_eq!(Exec::decode(&exec.encode()), Ok(exec));
    }
    for exit in [
        Exit::Status(0),
        Exit::Status(255),
        Exit::Signal("KILL".to_owned()),
    ] {
        assert_eq!(Exit::decode(&exit.encode()), Ok(exit));
    }
    let empty = exec(Command::Argv(Vec::new()));
    assert_eq!(Exec::decode(&empty.encode()), Err(BodyError::Field("argv")));
    assert_eq!(Exec::decode(b"\xa0"), Err(BodyError::Missing("argv")));
    assert_eq!(Exit::decode(b"\xa0"), Err(BodyError::Missing("status")));
}

#[test]
fn the_longest_texts_fit_and_longer_ones_are_cut_between_characters() {
    let text = "ä".repeat(MAX_TEXT);
    let reset = Reset {
        code: ResetCode::Other(u16::MAX),
        text,
    };
    let body = reset.encode();
    assert!(body.len() <= MAX_NOTE, "{}", body.len());
    let cut = Reset::decode(&body).expect("it is well-formed");
    assert_eq!(cut.text, "ä".repeat(MAX_TEXT / 2));
    let route = Route {
        added: vec![NodeId(u32::MAX); MAX_ROUTE_NODES],
        lost: Vec::new(),
        reason: "x".repeat(MAX_TEXT),
    };
    assert!(route.encode().len() <= MAX_BODY);
    assert_eq!(Route::decode(&route.encode()), Ok(route));
}

#[test]
fn fields_that_nobody_knows_are_passed_over() {
    let body = b"\xa3\x64code\x01\x66future\x81\xa1\x00\x00\x64text\x60";
    assert_eq!(Reset::decode(body), Ok(Reset::new(ResetCode::Cancelled)));
}

#[test]
fn what_is_no_body_is_named() {
    let keys = b'!'..b'!' + 33;
    assert_eq!(keys.len(), MAX_FIELDS + 1);
    let many: Vec<u8> = keys.fold(vec![0xb8, 33], |map, key| [map, vec![0x61, key, 0]].concat());
    let rows: &[(&[u8], BodyError)] = &[
        (b"", BodyError::Truncated),
        (b"\xa1", BodyError::Truncated),
        (b"\xa1\x64cod", BodyError::Truncated),
        // 2^64 - 1 items in nine bytes.
        (b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", BodyError::Truncated),
        (b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff", BodyError::Truncated),
        (b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff", BodyError::Truncated),
        // A text that is no UTF-8.
        (b"\x61\xff", BodyError::Truncated),
        (b"\x9f\xff", BodyError::Unsupported),
        (b"\xbf\xff", BodyError::Unsupported),
        (b"\x7f\xff", BodyError::Unsupported),
        (b"\xc0\x00", BodyError::Unsupported),
        (b"\xfb\0\0\0\0\0\0\0\0", BodyError::Unsupported),
        (b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff", BodyError::Unsupported),
        (b"\xff", BodyError::Unsupported),
        (b"\xa0\xa0", BodyError::Trailing),
        (b"\x80", BodyError::NotFields),
        (b"\xa1\x01\x01", BodyError::NotFields),
        (b"\xa2\x61a\x01\x61a\x01", BodyError::NotFields),
        (&many, BodyError::NotFields),
        (b"\xa0", BodyError::Missing("code")),
        (b"\xa1\x64code\x01", BodyError::Missing("text")),
        (b"\xa1\x64code\x60", BodyError::Field("code")),
        (b"\xa1\x64code\x1a\x00\x01\x00\x00", BodyError::Field("code")),
        (b"\xa2\x64code\x01\x64text\x01", BodyError::Field("text")),
    ];
    for (body, error) in rows {
        assert_eq!(Reset::decode(body), Err(*error), "{}", body.escape_ascii());
    }
}

#[test]
fn depth_is_bounded_without_recursion() {
    let nested = |levels: usize| [vec![0x81; levels], vec![0]].concat();
    assert_eq!(check_item(&nested(MAX_DEPTH)), Ok(()));
    assert_eq!(check_item(&nested(MAX_DEPTH + 1)), Err(BodyError::TooDeep));
    assert_eq!(check_item(&nested(1_000_000)), Err(BodyError::TooDeep));
}

#[test]
fn values_that_a_field_cannot_have_are_refused() {
    let no_node = Hello {
        node: Some(NodeId::NEIGHBOUR),
        ..hello()
    };
    assert_eq!(Hello::decode(&no_node.encode()), Err(BodyError::Field("node")));
    let loud = Log {
        severity: 8,
        text: String::new(),
    };
    assert_eq!(Log::decode(&loud.encode()), Err(BodyError::Field("severity")));
    let crowd = Route {
        added: vec![NodeId(9); MAX_ROUTE_NODES],
        lost: nodes(&[9]),
        reason: String::new(),
    };
    assert_eq!(Route::decode(&crowd.encode()), Err(BodyError::Field("added")));
    let name = "k".repeat(MAX_NAME + 1);
    let long = Open {
        kind: name,
        arguments: Bytes::from_static(b"\xa0"),
    };
    assert_eq!(long.encode(), Err(BodyError::Field("kind")));
    let large = Open {
        kind: "exec".to_owned(),
        arguments: Bytes::from([b"\x59\x80\x00".to_vec(), vec![0; 0x8000]].concat()),
    };
    assert_eq!(large.encode(), Err(BodyError::Field("arguments")));
}
