//! The framed protocol between mux processes: frames, bodies, and a connection that gets anything. Outputs are checked,
//! not only that nothing panics.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use mux_proto::body::{Exec, Exit, Goodbye, Hello, Log, Open, Reset, Route, check_item};
use mux_proto::connection::{Config, Event, Role, Stream};
use mux_proto::frame::{Frame, Header, Kind, NodeId};
use mux_proto::{Connection, Protocol, SendQueue};

/// A frame is the same whether it comes whole or byte by byte, and is written as it was read.
pub(crate) fn frame(data: &[u8]) {
    let (mut whole, mut given) = (BytesMut::from(data), BytesMut::new());
    let at_once = Frame::take(&mut whole);
    let in_pieces = data.iter().find_map(|byte| {
        given.extend_from_slice(&[*byte]);
        Frame::take(&mut given).transpose()
    });
    let in_pieces = in_pieces.transpose();
    assert_eq!(at_once.is_ok(), in_pieces.is_ok());
    if let (Ok(at_once), Ok(in_pieces)) = (&at_once, &in_pieces) {
        assert_eq!(at_once, in_pieces);
    }
    if let Ok(Some(frame)) = at_once {
        let mut again = frame.header.encode().to_vec();
        again.extend_from_slice(&frame.body);
        assert!(data.starts_with(&again));
    }
}

/// What was understood is written so that it is understood again, as the same.
pub(crate) fn frame_body(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    macro_rules! again {
        ($($body:ident),*) => {
            {$(if let Ok(value) = $body::decode(body) {
                assert_eq!($body::decode(&value.encode()), Ok(value));
            })*}
        };
    }
    match kind % 4 {
        0 => again!(Hello, Route),
        1 => again!(Log, Goodbye, Reset),
        2 => again!(Exec, Exit),
        _ => {
            if let Ok(open) = Open::decode(body) {
                assert_eq!(check_item(&open.arguments), Ok(()));
                assert_eq!(open.encode().and_then(|body| Open::decode(&body)), Ok(open));
            }
        }
    }
}

/// A connection whose owner echoes, and a peer that is the input: what it answers are frames, and what it holds is
/// bounded. The first byte chooses the end, whether a greeting precedes, and how the input is cut.
pub(crate) fn connection(now: Instant, data: &[u8]) {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let role = if choice & 1 == 0 { Role::Below } else { Role::Above };
    let config = Config {
        names: Some((NodeId(1), NodeId(2))),
        max_channels: 3,
        ..Config::new(role)
    };
    let mut connection = Connection::new(now, config);
    let mut input = BytesMut::new();
    if choice & 2 == 0 {
        let hello = greeting(role);
        input.extend_from_slice(&hello.header.encode());
        input.extend_from_slice(&hello.body);
    }
    if role == Role::Above {
        for _ in 0..2 {
            let opened = connection.open(NodeId::NEIGHBOUR, "echo", Bytes::from_static(b"\xa0"));
            assert!(opened.is_ok());
        }
    }
    let piece = usize::from(choice >> 2) + 1;
    for piece in data.chunks(piece) {
        input.extend_from_slice(piece);
        feed(now, &mut connection, &mut input);
    }
    let ended = connection.handle_eof(now);
    assert_eq!(
        connection.handle_eof(now).is_ok(),
        ended.is_ok(),
        "errors are sticky"
    );
    while let Some(event) = connection.poll_event() {
        assert!(
            !matches!(event, Event::Opened { .. }),
            "all were taken before the end"
        );
    }
    assert_eq!(connection.channels(), 0, "nothing is open behind the end");
    transmit(now, &mut connection);
}

fn feed(now: Instant, connection: &mut Connection, input: &mut BytesMut) {
    loop {
        let before = input.len();
        let result = connection.handle_input(now, input);
        while let Some(event) = connection.poll_event() {
            echo(connection, event);
        }
        transmit(now, connection);
        assert!(connection.wants_input(), "everything was taken and sent");
        assert!(connection.channels() <= 3);
        if result.is_err() || input.len() == before {
            return;
        }
    }
}

fn echo(connection: &mut Connection, event: Event) {
    if let Event::Data { channel, data, .. } = event {
        connection.consume(channel, data.len());
        let room = connection.room(channel);
        if data.len() <= room {
            // A channel that is gone, or finished, has no room.
            assert!(connection.send(channel, Stream::Err, data).is_ok());
        }
    } else if let Event::Finished(channel) = event {
        // One that is gone, or has its result, refuses it.
        let _ = connection.give_result(channel, Bytes::from_static(b"\xa0"));
    }
}

/// Takes all that is to be sent: whole frames.
fn transmit(now: Instant, connection: &mut Connection) {
    let (mut out, mut wire) = (SendQueue::new(), BytesMut::new());
    loop {
        connection.poll_transmit(now, &mut out);
        if out.is_empty() {
            break;
        }
        while !out.is_empty() {
            wire.extend_from_slice(&out.take(usize::MAX));
        }
    }
    while let Some(frame) = Frame::take(&mut wire).expect("what is sent are frames") {
        assert!(frame.header.len <= mux_proto::frame::MAX_BODY);
    }
    assert!(wire.is_empty(), "and nothing else");
}

/// The hello of a peer that suits.
fn greeting(role: Role) -> Frame {
    let hello = Hello {
        software: String::new(),
        platform: String::new(),
        is_above: role == Role::Below,
        channels: 3,
        node: None,
        peer: None,
    };
    Frame::new(Header::link(Kind::Hello, 0), hello.encode())
}
